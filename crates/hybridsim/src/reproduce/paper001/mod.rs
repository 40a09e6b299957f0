//! Paper 001: flash-backed I/O requests.

mod distance;
mod fig11;
mod fig2;
mod fig7;
mod fqueue;
mod memory;

use super::{Artefact, Job, Lab, Ran};
use hybridsim_observe::results::CustomResult;

/// Its artefacts.
pub const ARTEFACTS: &[Artefact] = &[
    fig2::ARTEFACT,
    distance::ARTEFACT,
    fig7::ARTEFACT,
    fqueue::ARTEFACT,
    fig11::ARTEFACT,
    memory::ARTEFACT,
];

/// A week of work.
#[derive(Clone, Debug)]
struct Machine {
    name: &'static str,
    /// The keys of its `[workload]` table.
    workload: String,
}

/// The generators, and the real week where it is at hand.
fn machines(lab: &Lab) -> Vec<Machine> {
    let generated = [("Eng", "eng"), ("HP", "hp"), ("WinPC", "winpc"), ("Mac", "mac")];
    let mut all: Vec<Machine> = generated
        .map(|(name, preset)| Machine { name, workload: LINE.replace("eng", preset) })
        .into();
    if let Ok(path) = lab.data(REAL) {
        let workload = format!("trace = {:?}", path.display().to_string());
        all.push(Machine { name: "HP, real", workload });
    }
    all
}

/// HP Labs' "hplajw", one week of 1992: the same kind of machine as the paper's HP.
const REAL: &str = "traces/desktop/hpux-hplajw-1992-1week.srt.gz";
/// The line of the scenario that a machine replaces.
const LINE: &str = "generator = { kind = \"week\", preset = \"eng\" }";

impl Machine {
    /// The paper's simulator under this week.
    fn job(&self, what: &str) -> Job {
        let job = Job::paper("001/scheduler.toml").named(format!("{}, {what}", self.name));
        assert!(job.text.contains(LINE), "the scenario has the line that is replaced");
        Job { text: job.text.replace(LINE, &self.workload), ..job }
    }

    /// Without redirection.
    fn plain(&self, scheduler: &str) -> Job {
        self.job(&format!("{scheduler} alone"))
            .set("part.scheduler.redirect", false)
            .set("part.scheduler.scheduler", format!("\"{scheduler}\""))
    }

    /// With an FQueue of `mb` megabytes.
    fn backed(&self, mb: u32) -> Job {
        self.job(&format!("{mb} MB")).set("part.nv.capacity", format!("\"{mb}MB\""))
    }
}

/// What the scheduler tells of itself by `name`.
fn told<'a>(ran: &'a Ran, name: &str) -> Option<&'a CustomResult> {
    ran.results.components.get("scheduler")?.custom.get(name)
}

/// The sum of what it tells.
fn sum(ran: &Ran, name: &str) -> f64 {
    told(ran, name).map_or(0.0, |told| told.count as f64 * told.mean.unwrap_or(0.0))
}

/// How often it tells.
fn count(ran: &Ran, name: &str) -> f64 {
    told(ran, name).map_or(0.0, |told| told.count as f64)
}

/// Time of writes that users wait for: to disk, to flash, and flushing between the watermarks.
fn foreground_ns(ran: &Ran) -> f64 {
    ["disk_write_ns", "flash_write_ns", "coalesced_write_ns", "flush_back_ns"]
        .iter()
        .map(|name| sum(ran, name))
        .sum()
}
