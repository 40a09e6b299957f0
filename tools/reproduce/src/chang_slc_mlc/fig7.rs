//! Figure 7: profiles of the loads.

use super::{EXT3, NTFS, WRITES, hot_cluster, small_share};
use crate::{Claim, Experiment, ExperimentError, Findings, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};

pub const EXPERIMENT: Experiment = Experiment { id: "chang-slc-mlc/fig7", run: reproduce };

/// How far apart "very high" and "low" ratios are at least (assumed; Windows logs: 1.9 and 11).
const UPDATES_APART: f64 = 3.0;

/// Sectors of the device.
const SECTORS: u64 = 40_960 * 1024;

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut curves = Vec::new();
    for (file_system, name, peak) in [(NTFS, "NTFS", 128), (EXT3, "ext3", 256)] {
        let text = format!(
            "generator = {{ kind = \"desktop\", file_system = \"{file_system}\", extent = \
             \"480KiB\", hot = \"320MiB\", hot_cluster = {}, hot_run = 2, hot_area = \"512KiB\", \
             theta = 1.05, small = {} }}",
            hot_cluster(file_system),
            small_share(file_system)
        );
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
