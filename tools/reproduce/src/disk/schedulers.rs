//! What a drive gains by choosing among its commands.

use super::super::{Artefact, Claim, Findings, Job, Lab, LabError, Order, Ran};

/// The artefact.
pub const ARTEFACT: Artefact = Artefact {
    id: "disk/schedulers",
    title: "Schedulers of a drive at 32 commands",
    method: "Random reads of 4 KiB on drives of three makes and decades, each made to hold 32 \
             commands and choose among them. Worthington, Ganger and Patt (Scheduling algorithms \
             for modern disk drives, 1994) rank shortest positioning time over shortest seek over \
             order of arrival.",
    run,
};

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

fn run(lab: &Lab) -> Result<Findings, LabError> {
    let each = |&(_, preset): &(_, &'static str)| SCHEDULERS.map(|name| job(preset, name));
    let jobs: Vec<Job> = DRIVES.iter().flat_map(each).collect();
    let ran = lab.run(&jobs)?;
    let rate = |ran: &Ran| ran.results.throughput.iops.unwrap_or(f64::NAN);
    let mut findings = Findings::default();
    for ((drive, _), ran) in DRIVES.iter().zip(ran.chunks(SCHEDULERS.len())) {
        let rates: Vec<(&str, f64)> =
            SCHEDULERS.iter().zip(ran).map(|(name, ran)| (*name, rate(ran))).collect();
        let [sptf, sstf, fcfs] = [rates[0].1, rates[1].1, rates[2].1];
        let ratios = format!(
            "sptf {:.2} times fcfs ({sptf:.0} against {fcfs:.0} requests/s), sstf {:.2} times",
            sptf / fcfs,
            sstf / fcfs
        );
        findings.row(
            Claim::new("K08", format!("{drive}, 32 commands: sptf, then sstf, then fcfs"))
                .unit("requests/s")
                .ranked(Order::Falling, &rates)
                .remark(&ratios),
        );
    }
    Ok(findings)
}
