//! chang-slc-mlc: SLC and MLC flash in one SSD.

mod analysis;
mod fig11;
mod fig7;
mod fig8;
mod fig9;
mod threshold;
mod today;
mod wear;

use super::{Experiment, Job, JobOutput};
use crate::published::settings;
use hybridsim_ssd::slc_mlc::model::{Factors, MLC};

pub const EXPERIMENTS: &[Experiment] = &[
    analysis::EXPERIMENT,
    threshold::EXPERIMENT,
    fig7::EXPERIMENT,
    fig8::EXPERIMENT,
    fig9::EXPERIMENT,
    fig11::EXPERIMENT,
    wear::EXPERIMENT,
    today::EXPERIMENT,
];

/// Writes of the paper's traces (section 5.3.2).
const WRITES: u64 = 1_534_627;

/// Requests of a month: of all requests 52 % are writes.
const MONTH: u64 = WRITES * 100 / 52;

/// Section 5.1: every trace is replayed ten times.
const REPLAYS: u64 = 10;

const NTFS: &str = "ntfs";
const EXT3: &str = "ext3";

/// The share of small writes. Table 3 gives the share of the data that goes to the SLC flash, 0.17
/// and 0.23; with the generator's 7.55 sectors a small write and 85.9 or 156.3 a large one that is
/// 70 and 86 % of requests. It agrees with the 68 % of the NTFS trace's requests that are
/// handled by the SLC flash (section 5.3.2), as some small ones are rejected.
fn small_share(file_system: &str) -> f64 {
    if file_system == EXT3 { 0.86 } else { 0.7 }
}

/// Seeds at which the claims of `rows` are run.
fn seeds(rows: &[&str]) -> u32 {
    crate::seeds("chang-slc-mlc", rows)
}

/// The reason why response figures differ, by the terms of section 4.1: what scans and folds add to
/// a page written to MLC flash, here and with the factors of table 3.
fn costs(ran: [&JobOutput; 2], published: [&Factors; 2]) -> String {
    let ours = ran.map(factors);
    let both = |of: &dyn Fn(&Factors) -> f64| {
        [&ours[0], published[0], &ours[1], published[1]].map(|factors| of(factors).round())
    };
    let scans = both(&|f| f.p1 * f.n3 * MLC.read_us);
    let folds = both(&|f| f.p2 * (MLC.pages * (MLC.read_us + MLC.write_us) + f.n4 * MLC.erase_us));
    format!(
        "where small writes lie is assumed; by the terms of section 4.1, a page written to MLC \
         flash costs in µs, without SLC flash \
         and with: scans {} (table 3: {}) and {} ({}), folds {} ({}) and {} ({}). Scans follow \
         from refused writes and the mapping cache, of which no size is published (here 64 \
         blocks), folds from where writes lie, which the paper shows in figure 10 only",
        scans[0], scans[1], scans[2], scans[3], folds[0], folds[1], folds[2], folds[3]
    )
}

/// The factors of table 3 as measured. A switch counts as a fold that erases one block: with
/// every logical block mapped before, other folds erase two at least, and table 3 has 1.92.
fn factors(ran: &JobOutput) -> Factors {
    let pages = sum(ran, "mlc_user_write_pages");
    let ((folds, erased), (switches, _)) = (number(ran, "fold_erases"), number(ran, "switches"));
    Factors {
        alpha: alpha(ran),
        n1: mean(ran, "tail_valid_pages"),
        n2: mean(ran, "tail_kept_pages"),
        n3: mean(ran, "scan_pages"),
        n4: (erased + switches) / (folds + switches),
        p1: number(ran, "scan_pages").0 / pages,
        p2: (folds + switches) / pages,
    }
}

/// A month of `file_system` on configuration `name` (`C1`, `C2` or `C3` of table 2) with `slc_mb`
/// of SLC flash.
fn job(name: &str, slc_mb: u64, file_system: &str) -> Job {
    let job = Job::paper("chang-slc-mlc/evaluation.toml")
        .named(format!("{name}, {slc_mb} MB SLC, {file_system}"))
        .set("workload.generator.file_system", format!("\"{file_system}\""))
        .set("workload.generator.small", small_share(file_system))
        .set("component.ssd.slc_size", format!("\"{slc_mb}MiB\""))
        .set("workload.generator.requests", MONTH);
    let configurations = settings("chang-slc-mlc/configurations", &[]);
    let own = configurations.iter().filter(|own| [name, file_system].contains(&own.name.as_str()));
    own.fold(job, Job::at)
}

/// `job` with its month replayed `count` times.
fn replayed(job: Job, count: u64) -> Job {
    let name = format!("{}, replayed {count} times", job.name);
    job.set("workload.loops", count).named(name)
}

/// The mean response of the first over that of the second.
fn speed_up(without: &JobOutput, with: &JobOutput) -> f64 {
    without.mean_ms() / with.mean_ms()
}

/// Energy of the second over that of the first, in per cent.
fn energy_percent(without: &JobOutput, with: &JobOutput) -> f64 {
    100.0 * operation_joules(with) / operation_joules(without)
}

/// Count and sum of the values that the device emitted as `name`.
fn number(ran: &JobOutput, name: &str) -> (f64, f64) {
    let found = ran.results.components.values().find_map(|component| component.custom.get(name));
    found.map_or((0.0, 0.0), |reported| {
        let count = reported.count as f64;
        (count, count * reported.mean.unwrap_or(0.0))
    })
}

/// The sum of the values of `name`.
fn sum(ran: &JobOutput, name: &str) -> f64 {
    number(ran, name).1
}

/// The mean of the values of `name`; NaN without any.
fn mean(ran: &JobOutput, name: &str) -> f64 {
    let (count, sum) = number(ran, name);
    sum / count
}

/// Smallest and greatest value of `name`.
fn range(ran: &JobOutput, name: &str) -> (f64, f64) {
    let found = ran.results.components.values().find_map(|component| component.custom.get(name));
    found.map_or((f64::NAN, f64::NAN), |reported| (reported.min as f64, reported.max as f64))
}

/// Joules of flash operations, standby left out as in the paper.
fn operation_joules(ran: &JobOutput) -> f64 {
    let power = ran.results.components.values().find_map(|component| component.power.as_ref());
    power.map_or(f64::NAN, |power| {
        ["read", "write", "erase"].iter().filter_map(|name| power.energy_by_j.get(*name)).sum()
    })
}

/// Share of the user's sectors that went to the SLC flash.
fn alpha(ran: &JobOutput) -> f64 {
    let slc = sum(ran, "slc_write_sectors");
    slc / (slc + sum(ran, "mlc_write_sectors"))
}

/// Share of write requests that went to the SLC flash.
fn slc_requests(ran: &JobOutput) -> f64 {
    let (slc, mlc) = (number(ran, "slc_write_sectors").0, number(ran, "mlc_write_sectors").0);
    slc / (slc + mlc)
}
