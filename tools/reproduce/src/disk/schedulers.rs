//! Gains of a drive by choosing among its commands.

use super::super::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};

pub const EXPERIMENT: Experiment = Experiment { id: "disk/schedulers", run };

const SCHEDULERS: [&str; 3] = ["sptf", "sstf", "fcfs"];
const DRIVES: [(&str, &str); 3] = [
    ("Cheetah 15K.5", "seagate-cheetah-15k5-146gb"),
    ("HP C3323A", "hp-c3323a-1gb"),
    ("SATA, 7200 rpm", "generic-sata-7200-250gb"),
];

fn job(preset: &str, scheduler: &str) -> Job {
    Job::new(
        format!("{preset}: {scheduler} at 32 commands"),
        format!(
            "[workload]\ngenerator = {{ kind = \"fio\", rw = \"randread\", bs = \"4KiB\", \
             requests = 20000, norandommap = true }}\n[host]\nmode = \"closed\"\n\
             queue_depth = 32\n[component.disk]\npreset = \"{preset}\"\n\
             queue_depth = 32\nscheduler = \"{scheduler}\"\n"
        ),
    )
}

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let each = |&(_, preset): &(_, &'static str)| SCHEDULERS.map(|name| job(preset, name));
    let jobs: Vec<Job> = DRIVES.iter().flat_map(each).collect();
    let ran = runner.run(&jobs)?;
    let rate = |ran: &JobOutput| ran.results.throughput.iops.unwrap_or(f64::NAN);
    let mut findings = Findings::default();
    for ((drive, _), ran) in DRIVES.iter().zip(ran.chunks(SCHEDULERS.len())) {
        let rates: Vec<(&str, f64)> =
            SCHEDULERS.iter().zip(ran).map(|(name, ran)| (*name, rate(ran))).collect();
        let [sptf, sstf, fcfs] = [rates[0].1, rates[1].1, rates[2].1];
        let claim = Claim::of("disk/32-commands-sptf-then-sstf-then").with("drive", drive);
        let claim = claim.with_figures(&[("sptf", sptf), ("fcfs", fcfs)]);
        let gains = [("sptf_gain", sptf / fcfs), ("sstf_gain", sstf / fcfs)];
        findings.row(claim.with_figures(&gains).ranked(&rates));
    }
    Ok(findings)
}
