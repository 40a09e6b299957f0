//! A measured drive as the simulator sees it: hidden capacity, blocks, and two rates.
//!
//! A saturated drive is limited by the bandwidth of its flash, so dies are not simulated one by
//! one: a page written for the host takes `program_us` of the whole drive, a page copied by
//! garbage collection `copy_us`. Both are simulated serially; the rate of the host follows from
//! how many pages are copied.

use crate::{ExperimentError, Job, JobOutput, Runner};

/// Bytes of a gibibyte.
const GIB: f64 = (1_u64 << 30) as f64;
const PAGE: f64 = 4096.0;
/// Bytes of a request of the stream experiment.
const STREAM_REQUEST: f64 = 524_288.0;

/// The part of a run that counts, as in the measurements: from 60 to 99 % of its time.
const WINDOW: (f64, f64) = (0.6, 0.99);

/// How a drive chooses the blocks that it collects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Collector {
    /// The fewest valid pages.
    Greedy,
    /// Cost-benefit, with this power of the age.
    CostBenefit(f64),
}

impl Collector {
    /// The value of `gc`, in TOML.
    fn toml(self) -> String {
        match self {
            Self::Greedy => "\"greedy\"".to_owned(),
            Self::CostBenefit(exponent) => {
                format!("{{ kind = \"cost-benefit\", age_exponent = {exponent:.3} }}")
            }
        }
    }
}

/// A drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drive {
    /// Exported capacity in GiB.
    pub user_gib: f64,
    /// Capacity of its flash in GiB.
    pub hidden_gib: f64,
    /// Size of the blocks that are collected as one, in GiB.
    pub block_gib: f64,
    /// Time of a page written for the host.
    pub program_us: f64,
    /// Time of a page copied.
    pub copy_us: f64,
    /// Capacities and blocks are simulated this many times smaller.
    pub scale: f64,
    pub collector: Collector,
}

/// Writes that the drives were measured under.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    Uniform,
    /// Zipf with this exponent.
    Zipf(f64),
    /// This share of the pages gets that share of the writes.
    Hot {
        pages: f64,
        writes: f64,
    },
    /// Regions written at a time, in order, and their size in GiB.
    Streams {
        active: u32,
        region_gib: f64,
    },
}

impl Load {
    /// The load that the tables call `words`.
    pub fn of_words(words: &str) -> Option<Self> {
        let (kind, rest) = words.split_once(' ').unwrap_or((words, ""));
        match kind {
            "uniform" => Some(Self::Uniform),
            "zipf-shuffle" => rest.parse().ok().map(Self::Zipf),
            "zones-shuffle" => Self::of_zones(rest),
            _ => None,
        }
    }

    /// The hotter of two zones, each `sSIZE fFREQUENCY`.
    fn of_zones(words: &str) -> Option<Self> {
        let numbers: Option<Vec<f64>> =
            words.split(' ').map(|word| word.trim_start_matches(['s', 'f']).parse().ok()).collect();
        let zones = numbers.filter(|numbers| numbers.len() == 4)?;
        let hotter = if zones[1] / zones[0] > zones[3] / zones[2] { 0 } else { 2 };
        Some(Self::Hot { pages: zones[hotter], writes: zones[hotter + 1] })
    }

    /// Sets the generator's keys in `job`, on a drive `scale` times smaller.
    fn set(self, job: Job, scale: f64) -> Job {
        let key = |name: &str| format!("workload.generator.{name}");
        let kind = |job: Job, name: &str| job.set(&key("kind"), format!("\"{name}\""));
        match self {
            Self::Uniform => job,
            Self::Zipf(theta) => {
                kind(job, "zipf").set(&key("theta"), theta).set(&key("ranks_per_block"), scale)
            }
            Self::Hot { pages, writes } => kind(job, "hotcold")
                .set(&key("hot_fraction"), pages)
                .set(&key("hot_probability"), writes)
                .set(&key("scatter"), true),
            Self::Streams { active, region_gib } => kind(job, "streams")
                .set(&key("block"), "\"4KiB\"")
                .set(&key("active"), active)
                .set(&key("trim"), true)
                .set(&key("region"), format!("\"{}B\"", whole_pages(region_gib / scale))),
        }
    }
}

/// The bytes of `gib` GiB, in whole pages.
fn whole_pages(gib: f64) -> u64 {
    ((gib * GIB / PAGE).round() * PAGE) as u64
}

/// What one run gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Write amplification in the window.
    pub amplification: f64,
    /// Rate of the host in the window, MB/s.
    pub host_mb_s: f64,
    /// Rate of the host over time: drive writes, MB/s.
    pub course: Vec<(f64, f64)>,
}

impl Drive {
    /// The drive as it is simulated under `load`. Streams are measured with requests of 512 KiB, to
    /// a region chosen at random for each: how far regions drift apart depends on the number of
    /// requests, so one request is a page.
    fn under(&self, load: Load) -> Self {
        match load {
            Load::Streams { .. } => Self { scale: STREAM_REQUEST / PAGE, ..*self },
            _ => *self,
        }
    }

    /// The drive under `load`, which goes to a share `range` of the exported capacity and writes
    /// that share `writes` times.
    pub fn job(&self, name: &str, load: Load, range: f64, writes: f64) -> Job {
        // Two pages more, as the simulator rounds the exported capacity down.
        let exported = whole_pages(self.user_gib / self.scale) + 2 * PAGE as u64;
        let span = whole_pages(self.user_gib * range / self.scale);
        let blocks = (self.hidden_gib / self.block_gib).round();
        // So that the capacity does not go in steps of blocks.
        let pages_per_block = (self.hidden_gib * GIB / self.scale / PAGE / blocks).round().max(1.0);
        let spare = blocks * pages_per_block * PAGE / exported as f64 - 1.0;
        let requests = (writes * span as f64 / PAGE).round();
        let ssd = |name: &str| format!("component.ssd.{name}");
        let time = |us: f64| format!("\"{us:.3}us\"");
        // The kind comes first: a change of it takes the keys of the former kind away.
        load.set(Job::paper("ssd/drive.toml").named(name).in_full(), self.scale)
            .set(&ssd("blocks_per_plane"), blocks)
            .set(&ssd("pages_per_block"), pages_per_block)
            .set(&ssd("over_provisioning"), spare)
            .set(&ssd("program_time"), time(self.program_us))
            .set(&ssd("read_time"), time((self.copy_us - self.program_us).max(0.001)))
            .set(&ssd("precondition_fill"), range)
            .set(&ssd("ftl.gc"), self.collector.toml())
            .set("workload.generator.span", format!("\"{span}B\""))
            .set("workload.generator.requests", requests)
    }

    /// What `ran` of [`Drive::job`] gave.
    pub fn outcome(&self, ran: &JobOutput) -> Outcome {
        let series = &ran.pictures.series;
        let end = ran.pictures.end_ns as f64;
        let width = series.bucket_ns as f64;
        let window = (WINDOW.0 * end, WINDOW.1 * end);
        let inside = |values: &[u64]| -> f64 {
            let share = |at: usize| {
                let (from, to) = (at as f64 * width, (at + 1) as f64 * width);
                ((to.min(window.1) - from.max(window.0)) / width).max(0.0)
            };
            values.iter().enumerate().map(|(at, &value)| value as f64 * share(at)).sum()
        };
        let host_mb_s = inside(&series.write_bytes) / (window.1 - window.0) * 1e3;
        let amplification = inside(&series.programs) / inside(&series.host_programs);
        let user = self.user_gib * GIB / self.scale;
        let mut written = 0.0;
        let course = series.write_bytes.iter().enumerate().map(|(at, &bytes)| {
            let middle = written + bytes as f64 / 2.0;
            written += bytes as f64;
            let time = (end - at as f64 * width).min(width);
            (middle / user, bytes as f64 / time * 1e3)
        });
        Outcome { amplification, host_mb_s, course: course.collect() }
    }

    /// Runs the drive under each load, which is named, for a number of drive writes.
    ///
    /// # Errors
    /// The first run that fails.
    pub fn run(
        &self,
        runner: &Runner,
        name: &str,
        loads: &[(String, Load, f64)],
    ) -> Result<Vec<Outcome>, ExperimentError> {
        let job = |(words, load, writes): &(String, Load, f64)| {
            self.under(*load).job(&format!("{name}, {words}"), *load, 1.0, *writes)
        };
        let jobs: Vec<Job> = loads.iter().map(job).collect();
        let ran = runner.run(&jobs)?;
        Ok(loads.iter().zip(&ran).map(|(load, ran)| self.under(load.1).outcome(ran)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Load;

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
