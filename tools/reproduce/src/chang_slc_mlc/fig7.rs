//! Figure 7: profiles of the loads.

use super::{EXT3, MONTH, NTFS, WRITES, job};
use crate::{Claim, Experiment, ExperimentError, Findings, Runner};
use hybridsim_engine::{Op, Request};
use hybridsim_report::study::Curve;
use hybridsim_workload::profile::Profile;

pub const EXPERIMENT: Experiment = Experiment { id: "chang-slc-mlc/fig7", run: reproduce };

/// Sectors of the device.
const SECTORS: u64 = 40_960 * 1024;

/// Writes and reads of each sector.
struct Hits {
    written: Vec<u32>,
    read: Vec<u16>,
}

impl Hits {
    fn new() -> Self {
        Self { written: vec![0; SECTORS as usize], read: vec![0; SECTORS as usize] }
    }

    fn count(&mut self, request: &Request) {
        let sectors = request.lba.0 as usize..request.end().0 as usize;
        match request.op {
            Op::Write => self.written[sectors].iter_mut().for_each(|count| *count += 1),
            Op::Read => {
                self.read[sectors].iter_mut().for_each(|count| *count = count.saturating_add(1));
            }
            _ => {}
        }
    }
}

/// Figure 7(c) and (d): how often sectors are written and read.
fn sectors(findings: &mut Findings, name: &str, hits: &Hits, reads_max: u32) {
    let Hits { written, read } = hits;
    let most = written.iter().max().copied().unwrap_or(0);
    let often = written.iter().filter(|count| **count >= OFTEN).count() as f64;
    let all = written.iter().filter(|count| **count > 0).count() as f64;
    let claim = |id: &str| Claim::of(id).with("name", name);
    let updated = claim("chang-slc-mlc/sectors-updated-no-less-than-16-384-times");
    findings.row(updated.ours(f64::from(most)));
    let often_updated = claim("chang-slc-mlc/a-small-amount-of-sectors-is-updated-so-often");
    findings.row(often_updated.ours(often / all));
    let most = read.iter().max().copied().unwrap_or(0);
    let often_read = claim("chang-slc-mlc/no-sector-is-read-more-often").with("times", reads_max);
    let often_read = often_read.between("none", f64::NEG_INFINITY, f64::from(reads_max));
    findings.row(often_read.ours(f64::from(most)));
}

/// Another number of requests, as the paper has none for ext3.
const FEWER: &str = "a sixth of the requests";

/// Writes of requests of `sectors` over the sectors that they are to.
fn update_ratio(profile: &Profile, sectors: u64) -> f64 {
    let class = profile.updates.iter().find(|class| class.up_to_bytes == sectors * 512);
    class.map_or(f64::NAN, |class| class.update_ratio)
}

/// Figure 7(c): "a small amount of sectors are updated no less than 16,384 times".
const OFTEN: u32 = 16_384;

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut curves = Vec::new();
    for (file_system, name, peak, reads) in [(NTFS, "NTFS", 128, 256), (EXT3, "ext3", 256, 64)] {
        let mut hits = Hits::new();
        let job = job("C3", 0, file_system).named(name);
        let profile = runner.profile(&job, SECTORS, &mut |arrival| hits.count(&arrival.request))?;
        let writes = profile.writes as f64;
        let claim = |id: &str| Claim::of(id).with("name", name).with("peak", peak);
        // Section 5.3.2 has "only results under the NTFS workload".
        if file_system == NTFS {
            let requests = claim("chang-slc-mlc/write-requests").published(WRITES as f64);
            findings.row(requests.ours(writes));
        }
        let of_size = |sectors: u64| {
            let class = profile.sizes.iter().find(|class| class.up_to_bytes == sectors * 512);
            class.map_or(0.0, |class| class.writes as f64)
        };
        let least = if peak == 128 { "at least the 0.68 that go to SLC" } else { "more than NTFS" };
        let small: f64 = [1, 2, 4, 8].iter().map(|sectors| of_size(*sectors)).sum();
        let short = claim("chang-slc-mlc/write-requests-up-8-sectors");
        let short = short.between(least, if peak == 128 { 0.68 } else { 0.73 }, 0.95);
        findings.row(short.ours(small / writes));
        let humps = [("8", of_size(8)), ("peak", of_size(peak)), ("between", of_size(32))];
        findings.row(claim("chang-slc-mlc/two-humps-8-sectors-writes").ranked(&humps));
        let update = |sectors: u64| update_ratio(&profile, sectors);
        let fewer = job.set("workload.generator.requests", MONTH / 6);
        let fewer = runner.profile(&fewer, SECTORS, &mut |_| {})?;
        let gigabytes = of_size(peak) * peak as f64 * 512.0 / 1e9;
        findings.row(
            claim("chang-slc-mlc/update-ratio-8-sectors")
                .with_figures(&[("small", update(8)), ("large", update(peak))])
                .with_figures(&[("gigabytes", gigabytes), ("times", gigabytes / 2.2)])
                .ours(update(8) / update(peak))
                .sensitive(FEWER, update_ratio(&fewer, 8) / update_ratio(&fewer, peak)),
        );
        sectors(&mut findings, name, &hits, reads);
        let points = profile.sizes.iter().map(|c| (c.up_to_bytes as f64 / 512.0, c.writes as f64));
        curves.push(Curve::ours(name, points.collect()));
    }
    findings.plot("chang-slc-mlc/writes-by-size", &[], curves);
    Ok(findings)
}
