//! Table 1: delays of the chips.

use crate::published::parameters;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};
use hybridsim_config::units;
use hybridsim_simulation::presets;
use serde::Deserialize;
use std::path::Path;

/// The table.
pub const EXPERIMENT: Experiment = Experiment { id: "flashsim/table1", run: reproduce };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    chips: Vec<Chip>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chip {
    preset: String,
    page: String,
    read_us: f64,
    program_us: f64,
    /// Spare area of a page, data and spare bytes of a block.
    bytes: [u64; 3],
}

fn job(chip: &Chip, rw: &str) -> Job {
    let text = format!(
        "[host]\nmode = \"closed\"\nqueue_depth = 1\n[workload]\ngenerator = {{ kind = \"fio\", \
         requests = 1, rw = \"{rw}\", bs = \"{}\" }}\n[component.ssd]\npreset = \"{}\"\n\
         precondition = \"fill\"\n",
        chip.page, chip.preset
    );
    Job::new(format!("{} {rw}", chip.preset), text)
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    for chip in &parameters::<Parameters>("flashsim/table1").chips {
        let ran = runner.run(&[job(chip, "randread"), job(chip, "randwrite")])?;
        for (what, ran, published) in
            [("read", &ran[0], chip.read_us), ("written", &ran[1], chip.program_us)]
        {
            let claim = Claim::of("flashsim/chip-page").with("preset", &chip.preset);
            let claim = claim.with("what", what).published(published);
            findings.row(claim.ours(ran.mean_ms() * 1e3));
        }
        preset_rows(&mut findings, chip)?;
    }
    Ok(findings)
}

/// Rows of values that the preset takes from the table, without a run.
fn preset_rows(findings: &mut Findings, chip: &Chip) -> Result<(), ExperimentError> {
    let failed = |error: String| ExperimentError::of(&chip.preset, error);
    let source = presets::load(&chip.preset, Path::new("")).map_err(failed)?;
    let keys: toml::Table = source.text.parse().map_err(|error| failed(format!("{error}")))?;
    let text = |key: &str| keys.get(key).and_then(toml::Value::as_str).unwrap_or_default();
    let bytes = |key: &str| units::bytes(text(key)).unwrap_or(0) as f64;
    let pages = keys.get("pages_per_block").and_then(toml::Value::as_integer).unwrap_or(0) as f64;
    let [spare, data, spare_of_block] = chip.bytes.map(|bytes| bytes as f64);
    for (what, published, ours) in [
        ("spare area of a page", spare, bytes("spare_size")),
        ("data of a block", data, pages * bytes("page_size")),
        ("spare area of a block", spare_of_block, pages * bytes("spare_size")),
    ] {
        let claim = Claim::of("flashsim/chip-organisation").with("preset", &chip.preset);
        findings.row(claim.with("what", what).published(published).ours(ours));
    }
    let erase = units::duration(text("erase_time")).map_or(f64::NAN, |time| time.as_ns() as f64);
    let claim = Claim::of("flashsim/chip-erase").with("preset", &chip.preset);
    findings.row(claim.ours(erase / 1e6));
    Ok(())
}
