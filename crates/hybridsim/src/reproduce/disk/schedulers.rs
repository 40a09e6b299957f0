//! What a drive gains by choosing among its commands.

use super::super::{Artefact, Claim, Findings, Job, Lab, LabError, Order, Ran};

/// The artefact.
pub const ARTEFACT: Artefact = Artefact {
    id: "disk/schedulers",
    title: "Schedulers of a drive at 32 commands",
    method: "Random reads of 4 KiB on a Cheetah 15K.5 that holds 32 commands and chooses among \
             them. Worthington, Ganger and Patt (Scheduling algorithms for modern disk drives, \
             1994) rank shortest positioning time over shortest seek over order of arrival.",
    run,
};

const SCHEDULERS: [&str; 3] = ["sptf", "sstf", "fcfs"];

fn run(lab: &Lab) -> Result<Findings, LabError> {
    let job = |scheduler: &&str| {
        Job::new(
            format!("{scheduler} at 32 commands"),
            format!(
                "[workload]\ngenerator = {{ kind = \"fio\", rw = \"randread\", bs = \"4KiB\", \
                 requests = 20000, norandommap = true }}\n[host]\nmode = \"closed\"\n\
                 queue_depth = 32\n[part.disk]\npreset = \"seagate-cheetah-15k5-146gb\"\n\
                 queue_depth = 32\nscheduler = \"{scheduler}\"\n"
            ),
        )
    };
    let jobs: Vec<Job> = SCHEDULERS.iter().map(job).collect();
    let ran = lab.run(&jobs)?;
    let rate = |ran: &Ran| ran.results.throughput.iops.unwrap_or(f64::NAN);
    let rates: Vec<(&str, f64)> =
        SCHEDULERS.iter().zip(&ran).map(|(name, ran)| (*name, rate(ran))).collect();
    let [sptf, sstf, fcfs] = [rates[0].1, rates[1].1, rates[2].1];
    let mut findings = Findings::default();
    let ratios = format!(
        "sptf {:.2} times fcfs ({sptf:.0} against {fcfs:.0} requests/s), sstf {:.2} times",
        sptf / fcfs,
        sstf / fcfs
    );
    findings.row(
        Claim::new("K08", "throughput with 32 commands: sptf, then sstf, then fcfs")
            .unit("requests/s")
            .ranked(Order::Falling, &rates)
            .remark(&ratios),
    );
    Ok(findings)
}
