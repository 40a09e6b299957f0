//! Figures 8, 9, 10, 12 and 13: the effect of the FQueue's size.

use super::{Machine, count, foreground_ns, reported, sum, weeks};
use crate::{Claim, Experiment, ExperimentError, Findings, JobOutput, Order, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};

pub const EXPERIMENT: Experiment = Experiment { id: "bisson-fqueue/fig8-13", run: reproduce };

const SIZES: [f64; 4] = [10.0, 40.0, 80.0, 100.0];
/// Times of writes to the disk.
const NAMES: &[&str] = &["disk_write_ns", "coalesced_write_ns", "flush_back_ns", "idle_sync_ns"];
/// How long the queue has to be empty, where it is tried out what that does.
const WAITS: [&str; 3] = ["100ms", "10s", "600s"];
/// An erase block of the flash: 128 KiB, as of large pages (assumed).
const BLOCK_BYTES: f64 = 131_072.0;
const ERASES: f64 = 100_000.0;
const WEEKS_PER_YEAR: f64 = 365.25 / 7.0;

/// A week's runs.
struct Week {
    name: &'static str,
    plain: JobOutput,
    idle: Vec<JobOutput>,
    /// Sizes without idle processing, as shares of what the week fills of 100 MB.
    sizes: [f64; 4],
    never: Vec<JobOutput>,
    /// With 100 MB, after the queue was empty for as long as [`WAITS`] says.
    waited: Vec<JobOutput>,
    /// Writes it has.
    writes: f64,
}

impl Week {
    fn base(&self) -> f64 {
        sum(&self.plain, "disk_write_ns")
    }

    fn run(runner: &Runner, machine: &Machine) -> Result<Self, ExperimentError> {
        let never = |mb: f64| {
            let name = format!("{}, {mb:.1} MB, no idle processing", machine.name);
            machine.backed(mb).named(name).set("component.scheduler.idle", false)
        };
        let mut jobs = vec![machine.plain("c-look"), never(SIZES[3])];
        jobs.extend(SIZES.map(|mb| machine.backed(mb)));
        jobs.extend(WAITS.map(|wait| {
            let job = machine.backed(SIZES[3]).named(format!("{}, idle {wait}", machine.name));
            job.set("component.scheduler.idle_delay", format!("\"{wait}\""))
        }));
        let mut ran = runner.run(&jobs)?.into_iter();
        let plain = ran.next().expect("as many runs as jobs");
        let largest = ran.next().expect("as many runs as jobs");
        let idle = ran.by_ref().take(SIZES.len()).collect();
        let level =
            reported(&largest, "fqueue_sectors").map_or(0.0, |reported| reported.max as f64);
        let filled = (level * 512.0 / 1e6).min(SIZES[3]);
        let sizes = SIZES.map(|mb| mb / SIZES[3] * filled);
        let never = runner.run(&[never(sizes[0]), never(sizes[1]), never(sizes[2])])?;
        let never = never.into_iter().chain([largest]).collect();
        let writes = count(&plain, "disk_write_ns");
        Ok(Self { name: machine.name, plain, idle, sizes, never, waited: ran.collect(), writes })
    }

    /// `value` of the runs without idle processing, by size.
    fn by_size(&self, value: impl Fn(&JobOutput) -> f64) -> Vec<(String, f64)> {
        let pairs = self.sizes.iter().zip(&self.never);
        pairs.map(|(mb, ran)| (format!("{mb:.1} MB"), value(ran))).collect()
    }
}

fn ranked(claim: Claim, order: Order, values: &[(String, f64)]) -> Claim {
    let named: Vec<(&str, f64)> = values.iter().map(|(name, it)| (name.as_str(), *it)).collect();
    claim.ordered(order).ranked(&named)
}

/// What `value` is when idle processing waits, in words.
fn by_wait(week: &Week, value: impl Fn(&JobOutput) -> f64) -> String {
    let reported =
        WAITS.iter().zip(&week.waited).map(|(wait, ran)| format!("{wait} {:.2}", value(ran)));
    let reported: Vec<String> = reported.collect();
    format!("{}, never {:.2}", reported.join(", "), value(&week.never[3]))
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut curves = Vec::new();
    for machine in weeks(runner) {
        let week = Week::run(runner, &machine)?;
        times(&week, &mut findings);
        endurance(&week, &mut findings);
        duty(&week, &mut findings);
        let both = [("", &SIZES, &week.idle), (", no idle processing", &week.sizes, &week.never)];
        for (what, sizes, ran) in both {
            let points = sizes.iter().zip(ran);
            let points = points.map(|(mb, ran)| (*mb, foreground_ns(ran) / week.base())).collect();
            curves.push(Curve::ours(&format!("{}{what}", week.name), points));
        }
    }
    findings.plot(Plot {
        title: "Write access time by FQueue size".to_owned(),
        caption: "Normalised to the same week without an FQueue; idle time not counted.".to_owned(),
        x: Axis::linear("FQueue", "MB"),
        y: Axis::linear("Write access time, without = 1", ""),
        curves,
    });
    Ok(findings)
}

fn times(week: &Week, findings: &mut Findings) {
    let (name, base) = (week.name, week.base());
    let claim = format!("{name}: write access time falls with size (no idle processing)");
    let falls = week.by_size(|ran| foreground_ns(ran) / base);
    findings.row(ranked(Claim::new("B12", claim), Order::Falling, &falls));
    let share = sum(&week.idle[0], "idle_sync_ns") / base;
    findings.row(
        Claim::of("bisson-fqueue/synchronised-idle-time-10-mb").with("name", name).ours(share),
    );
    if name.starts_with("HP") {
        findings.row(Claim::of("bisson-fqueue/same-hp-s-claim").with("name", name).ours(share));
    }
    // "The percentage of I/O that occurs due to flush-back I/O."
    let operations = [NAMES, &["flash_write_ns", "disk_read_ns"]].concat();
    let flushed = |ran: &JobOutput| {
        let all: f64 = operations.iter().map(|name| count(ran, name)).sum();
        count(ran, "flush_back_ns") / all
    };
    let mut pairs: Vec<(f64, f64)> =
        week.never.iter().map(|ran| (flushed(ran), foreground_ns(ran) / base)).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let by_share: Vec<(String, f64)> =
        pairs.iter().map(|(share, time)| (format!("{share:.4} flushed"), *time)).collect();
    let claim =
        format!("{name}: the more is flushed back, the less is gained (no idle processing)");
    findings.row(ranked(Claim::new("B14", claim), Order::Rising, &by_share));
    let whole = |ran: &JobOutput| (foreground_ns(ran) + sum(ran, "idle_sync_ns")) / base;
    let claim = Claim::of("bisson-fqueue/idle-time-processing-counted-100-mb").with("name", name);
    let claim = match name {
        "Mac" | "WinPC" => claim.at_least("more than without", 1.0),
        _ => claim.between("0.5 to 0.7", 0.4, 0.8),
    };
    let own = match name.starts_with("HP") {
        true => {
            "Of HP the paper's own figures exclude each other: what figure 9 adds up holds the \
             synchronisation of figure 8(a), 0.9 of the time without, so it cannot be 0.7. "
        }
        false => "",
    };
    findings.row(claim.ours(whole(&week.idle[3])).if_it_differs(&format!(
        "{own}Users wait {:.2}, idle processing takes {:.2}: section III.C writes back as soon as \
         the queue is empty, so that nearly every request is written to flash and, unchanged, to \
         the disk. To be less, requests have to stay; if the queue must first be empty for {}",
        foreground_ns(&week.idle[3]) / base,
        sum(&week.idle[3], "idle_sync_ns") / base,
        by_wait(week, whole)
    )));
}

fn endurance(week: &Week, findings: &mut Findings) {
    let packed = |(mb, ran): (&f64, &JobOutput)| {
        let bytes_per_year = sum(ran, "redirected_sectors") * 512.0 * WEEKS_PER_YEAR;
        (*mb, *mb * 1e6 * ERASES / bytes_per_year)
    };
    let points: Vec<(f64, f64)> = week.sizes.iter().zip(&week.never).map(packed).collect();
    let idle: Vec<(f64, f64)> = SIZES.iter().zip(&week.idle).map(packed).collect();
    // (R² of a line once: that is 0.99 as soon as about as much is written at every size.)
    let each = |(mb, years): (f64, f64)| years / mb;
    let claim =
        format!("{}: years for a megabyte, largest over smallest (no idle processing)", week.name);
    let claim = Claim::new("B16", claim).within_share(1.0, 0.2);
    let ours = each(points[3]) / each(points[0]);
    findings.row(claim.ours(ours).remark("the paper: as many at every size").if_it_differs(&{
        let sectors = |ran: &JobOutput| sum(ran, "redirected_sectors");
        format!(
            "a smaller FQueue is flushed more often, and redirects nothing meanwhile: {:.0} MB a \
             week with the smallest, {:.0} with the largest",
            sectors(&week.never[0]) * 512e-6,
            sectors(&week.never[3]) * 512e-6
        )
    }));
    let writes = count(&week.idle[3], "redirected_sectors");
    let blocks = SIZES[3] * 1e6 / BLOCK_BYTES;
    findings.row(
        Claim::of("bisson-fqueue/years-100-000-erases-100-mb")
            .with("name", week.name)
            .ours(blocks * ERASES / (writes * WEEKS_PER_YEAR))
            .remark(&format!(
                "one erase of 128 KiB for each write to flash (assumed); were its blocks filled \
                 one after the other, {:.0} years",
                idle[3].1
            ))
            .if_it_differs(&format!(
                "{writes:.0} writes go to flash in this week; for 10 years it would be {:.0}",
                blocks * ERASES / (10.0 * WEEKS_PER_YEAR)
            )),
    );
}

fn duty(week: &Week, findings: &mut Findings) {
    let name = week.name;
    let overwritten = |ran: &JobOutput| count(ran, "overwritten_sectors") / week.writes;
    let claim = format!("{name}: overwrites in memory grow with size (no idle processing)");
    let grows = week.by_size(overwritten);
    findings.row(ranked(Claim::new("B18", claim), Order::Rising, &grows));
    findings.row(
        Claim::of("bisson-fqueue/share-writes-100-mb")
            .with("name", name)
            .ours(overwritten(&week.never[3]))
            .if_it_differs(&format!(
                "how long the FQueue keeps its data decides: with idle processing at once it is \
                 {:.3}, when the queue must first be empty for {}",
                overwritten(&week.idle[3]),
                by_wait(week, overwritten)
            )),
    );
    let busy = |ran: &JobOutput| NAMES.iter().map(|name| sum(ran, name)).sum::<f64>();
    let reads = |ran: &JobOutput| sum(ran, "disk_read_ns");
    let time =
        |ran: &JobOutput| (busy(ran) + reads(ran)) / (busy(&week.plain) + reads(&week.plain));
    findings.row(
        Claim::of("bisson-fqueue/disk-time-without-100-mb")
            .with("name", name)
            .ours(time(&week.idle[3]))
            .if_it_differs(&format!(
                "of writes alone it is {:.2}, of reads {:.2}: with idle processing at once {:.2} \
                 of the sectors that were redirected go to the disk in idle time, none the \
                 fewer. Both, if the queue must first be empty for {}",
                busy(&week.idle[3]) / busy(&week.plain),
                reads(&week.idle[3]) / reads(&week.plain),
                sum(&week.idle[3], "idle_sync_sectors") / sum(&week.idle[3], "redirected_sectors"),
                by_wait(week, time)
            )),
    );
    let writes = |ran: &JobOutput| NAMES.iter().map(|name| count(ran, name)).sum::<f64>();
    let ratio = |ran: &JobOutput| writes(ran) / writes(&week.plain);
    findings.row(
        Claim::of("bisson-fqueue/disk-writes-those-without-100-mb")
            .with("name", name)
            .ours(ratio(&week.idle[3]))
            .if_it_differs(&format!(
                "a write that lies against something in the FQueue takes it along, which spares \
                 {:.2} of all writes. If the queue must first be empty for {}",
                count(&week.idle[3], "coalesced_write_ns") / writes(&week.plain),
                by_wait(week, ratio)
            )),
    );
}
