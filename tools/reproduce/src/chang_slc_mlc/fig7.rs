//! Figure 7: profiles of the loads.

use super::{EXT3, EXT3_KEYS, NTFS, WRITES, small_share};
use crate::{Claim, Experiment, ExperimentError, Findings, Runner};
use hybridsim_engine::Op;
use hybridsim_report::study::{Axis, Curve, Plot};

pub const EXPERIMENT: Experiment = Experiment { id: "chang-slc-mlc/fig7", run: reproduce };

/// How far apart "very high" and "low" ratios are at least (assumed; Windows logs: 1.9 and 11).
const UPDATES_APART: f64 = 3.0;

/// Sectors of the device.
const SECTORS: u64 = 40_960 * 1024;

/// The generator of `papers/chang-slc-mlc/evaluation.toml`.
fn workload(file_system: &str) -> String {
    let [cluster, apart, immutable] = match file_system {
        EXT3 => EXT3_KEYS.map(|(_, value)| value),
        _ => ["9", "false", "0.25"],
    };
    format!(
        "generator = {{ kind = \"desktop\", file_system = \"{file_system}\", extent = \"480KiB\", \
         hot = \"320MiB\", hot_cluster = {cluster}, hot_run = 2, hot_area = \"128KiB\", hot_zone = \
         \"512KiB\", hot_zone_clusters = 2, hot_apart = {apart}, immutable = {immutable}, theta = \
         1.05, small = {} }}",
        small_share(file_system)
    )
}

/// Figure 7(c) and (d): how often sectors are written and read.
fn hits(
    findings: &mut Findings,
    runner: &Runner,
    (name, text): (&str, &str),
    reads_max: u32,
) -> Result<(), ExperimentError> {
    let (mut written, mut read) = (vec![0_u32; SECTORS as usize], vec![0_u16; SECTORS as usize]);
    runner.each(name, text, SECTORS, &mut |arrival| {
        let sectors = arrival.request.lba.0 as usize..arrival.request.end().0 as usize;
        match arrival.request.op {
            Op::Write => written[sectors].iter_mut().for_each(|count| *count += 1),
            Op::Read => read[sectors].iter_mut().for_each(|count| *count = count.saturating_add(1)),
            _ => {}
        }
    })?;
    let most = written.iter().max().copied().unwrap_or(0);
    let often = written.iter().filter(|count| **count >= OFTEN).count() as f64;
    let all = written.iter().filter(|count| **count > 0).count() as f64;
    findings.row(
        Claim::of("chang-slc-mlc/sectors-updated-no-less-than-16-384-times")
            .with("name", name)
            .at_least("some", f64::from(OFTEN))
            .ours(f64::from(most)),
    );
    findings.row(
        Claim::of("chang-slc-mlc/a-small-amount-of-sectors-is-updated-so-often")
            .with("name", name)
            .ours(often / all),
    );
    let most = read.iter().max().copied().unwrap_or(0);
    findings.row(
        Claim::of("chang-slc-mlc/no-sector-is-read-more-often")
            .with("name", name)
            .with("times", reads_max)
            .at_most("none", f64::from(reads_max))
            .ours(f64::from(most)),
    );
    Ok(())
}

/// Figure 7(c): "a small amount of sectors are updated no less than 16,384 times".
const OFTEN: u32 = 16_384;

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut curves = Vec::new();
    for (file_system, name, peak, reads) in [(NTFS, "NTFS", 128, 256), (EXT3, "ext3", 256, 64)] {
        let text = workload(file_system);
        let profile = runner.profile(name, &text, SECTORS)?;
        let writes = profile.writes as f64;
        findings.row(
            Claim::of("chang-slc-mlc/write-requests")
                .with("name", name)
                .within_share(WRITES as f64, 0.01)
                .ours(writes),
        );
        let of_size = |sectors: u64| {
            let class = profile.sizes.iter().find(|class| class.up_to_bytes == sectors * 512);
            class.map_or(0.0, |class| class.writes as f64)
        };
        let least = if peak == 128 { "at least the 0.68 that go to SLC" } else { "more than NTFS" };
        let small: f64 = [1, 2, 4, 8].iter().map(|sectors| of_size(*sectors)).sum();
        findings.row(
            Claim::of("chang-slc-mlc/write-requests-up-8-sectors")
                .with("name", name)
                .between(least, if peak == 128 { 0.68 } else { 0.73 }, 0.95)
                .ours(small / writes),
        );
        findings.row(
            Claim::of("chang-slc-mlc/two-humps-8-sectors-writes")
                .with("name", name)
                .with("peak", peak)
                .ranked(&[("8", of_size(8)), ("peak", of_size(peak)), ("between", of_size(32))]),
        );
        let update = |sectors: u64| {
            let class = profile.updates.iter().find(|class| class.up_to_bytes == sectors * 512);
            class.map_or(f64::NAN, |class| class.update_ratio)
        };
        let gigabytes = of_size(peak) * peak as f64 * 512.0 / 1e9;
        findings.row(
            Claim::of("chang-slc-mlc/update-ratio-8-sectors")
                .with("name", name)
                .with("peak", peak)
                .at_least("very high over low", UPDATES_APART)
                .ours(update(8) / update(peak))
                .remark(&format!("{:.1} and {:.1}", update(8), update(peak)))
                .if_it_differs(&format!(
                    "requests of {peak} sectors write {gigabytes:.1} GB of the month; under ext3 \
                     all that is in use are 2.2 GB (section 5.3.3), so large writes come back to \
                     the same sectors {:.1} times on average wherever they go",
                    gigabytes / 2.2
                )),
        );
        hits(&mut findings, runner, (name, &text), reads)?;
        let points = profile.sizes.iter().map(|c| (c.up_to_bytes as f64 / 512.0, c.writes as f64));
        curves.push(Curve::ours(name, points.collect()));
    }
    findings.plot(Plot {
        title: "Figure 7(a)".to_owned(),
        caption: "Writes by the longest size of their class.".to_owned(),
        x: Axis::logarithmic("Request size", "sectors"),
        y: Axis::linear("Writes", "count"),
        curves,
    });
    Ok(findings)
}
