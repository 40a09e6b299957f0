//! Table 1: delays of the chips.

use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};

/// The table.
pub const EXPERIMENT: Experiment = Experiment { id: "flashsim/table1", run: reproduce };

struct Chip {
    preset: &'static str,
    page: &'static str,
    read_us: f64,
    program_us: f64,
}

const CHIPS: [Chip; 2] = [
    Chip { preset: "flashsim-small-block", page: "512B", read_us: 41.75, program_us: 226.75 },
    Chip { preset: "flashsim-large-block", page: "2KiB", read_us: 130.9, program_us: 405.9 },
];

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
    for chip in &CHIPS {
        let ran = runner.run(&[job(chip, "randread"), job(chip, "randwrite")])?;
        for (what, ran, published) in
            [("read", &ran[0], chip.read_us), ("written", &ran[1], chip.program_us)]
        {
            let claim = format!("{}: a page {what}", chip.preset);
            findings.row(
                Claim::new("F01", claim)
                    .unit("µs")
                    .within(published, 0.06)
                    .ours(ran.mean_ms() * 1e3)
                    .given()
                    .remark("the table cuts the second decimal"),
            );
        }
    }
    Ok(findings)
}
