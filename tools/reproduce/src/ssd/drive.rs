//! A measured drive as the simulator sees it, as jobs. `calibrate --counters` fits the same drive,
//! with one time for every copy instead of reads of the chip.

use crate::{ExperimentError, Job, JobOutput, Runner};
pub use hybridsim_calibrate::counters::{Collector, Load, Outcome, SaturatedDrive, simulated_us};

const PAGE: f64 = 4096.0;
/// Bytes of a request of the stream experiment.
const STREAM_REQUEST: f64 = 524_288.0;

/// Loads by the words of the measured tables.
pub trait Words: Sized {
    /// The load that the tables call `words`.
    fn of_words(words: &str) -> Option<Self>;
}

impl Words for Load {
    fn of_words(words: &str) -> Option<Self> {
        let (kind, rest) = words.split_once(' ').unwrap_or((words, ""));
        match kind {
            "uniform" => Some(Self::Uniform),
            "zipf-shuffle" => rest.parse().ok().map(Self::Zipf),
            "zones-shuffle" => of_zones(rest),
            _ => None,
        }
    }
}

/// The hotter of two zones, each `sSIZE fFREQUENCY`.
fn of_zones(words: &str) -> Option<Load> {
    let numbers: Option<Vec<f64>> =
        words.split(' ').map(|word| word.trim_start_matches(['s', 'f']).parse().ok()).collect();
    let zones = numbers.filter(|numbers| numbers.len() == 4)?;
    let hotter = if zones[1] / zones[0] > zones[3] / zones[2] { 0 } else { 2 };
    Some(Load::Hot { pages: zones[hotter], writes: zones[hotter + 1] })
}

/// The drive as it is simulated under `load`. Streams are measured with requests of 512 KiB, to a
/// region chosen at random for each: how far regions drift apart depends on the number of
/// requests, so one request is a page. It fills whole pages of the chip, which are copied as a
/// whole.
fn under(drive: &SaturatedDrive, load: Load) -> SaturatedDrive {
    let (scale, read_us) = (STREAM_REQUEST / PAGE, drive.read_us / f64::from(drive.read_pages));
    match load {
        Load::Streams { .. } => SaturatedDrive { scale, read_us, read_pages: 1, ..*drive },
        _ => *drive,
    }
}

/// The time of a page copied from pages of the chip all of whose data is valid, in microseconds.
pub fn whole_copy_us(drive: &SaturatedDrive) -> f64 {
    drive.program_us + drive.read_us / f64::from(drive.read_pages)
}

/// A drive as jobs of a runner.
pub trait Jobs {
    /// The drive under `load`, which goes to a share `range` of the exported capacity and writes
    /// that share `writes` times.
    fn job(&self, name: &str, load: Load, range: f64, writes: f64) -> Job;

    /// Runs the drive under each load, which is named, for a number of drive writes.
    ///
    /// # Errors
    /// The first run that fails.
    fn run(
        &self,
        runner: &Runner,
        name: &str,
        loads: &[(String, Load, f64)],
    ) -> Result<Vec<Outcome>, ExperimentError>;
}

impl Jobs for SaturatedDrive {
    fn job(&self, name: &str, load: Load, range: f64, writes: f64) -> Job {
        let settings = self.settings(load, range, writes);
        let job = Job::paper("ssd/drive.toml").named(name).in_full();
        settings.iter().fold(job, |job, (key, value)| job.set(key, value))
    }

    fn run(
        &self,
        runner: &Runner,
        name: &str,
        loads: &[(String, Load, f64)],
    ) -> Result<Vec<Outcome>, ExperimentError> {
        let job = |(words, load, writes): &(String, Load, f64)| {
            under(self, *load).job(&format!("{name}, {words}"), *load, 1.0, *writes)
        };
        let jobs: Vec<Job> = loads.iter().map(job).collect();
        let ran = runner.run(&jobs)?;
        let outcome = |(load, ran): (&(String, Load, f64), &JobOutput)| {
            under(self, load.1).outcome(&ran.pictures)
        };
        Ok(loads.iter().zip(&ran).map(outcome).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{Load, Words};

    #[test]
    fn loads_are_read_from_the_words_of_the_tables() {
        assert_eq!(Load::of_words("uniform"), Some(Load::Uniform));
        assert_eq!(Load::of_words("zipf-shuffle 0.8"), Some(Load::Zipf(0.8)));
        let hot = |pages, writes| Some(Load::Hot { pages, writes });
        assert_eq!(Load::of_words("zones-shuffle s0.9 f0.1 s0.1 f0.9"), hot(0.1, 0.9));
        assert_eq!(Load::of_words("zones-shuffle s0.2 f0 s0.8 f1"), hot(0.8, 1.0));
        assert_eq!(Load::of_words("fiozipf 0.8"), None);
    }
}
