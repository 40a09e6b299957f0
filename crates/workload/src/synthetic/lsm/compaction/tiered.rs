//! Tiered compaction: sorted runs of similar size are merged when there are too many.

use super::{Compaction, CompactionEntry, EntrySize, Run, Step, entries};
use hybridsim_config::param::{Built, Kind, Settings};
use hybridsim_config::registry::Description;

hybridsim_config::params! {
    struct Parameters {
        runs: u64 = Kind::Count { min: 2, max: 1 << 20 }, default "4",
            "Sorted runs at which runs are merged.";
        size_ratio: f64 = Kind::Number { min: 0.0, max: 1e6 }, default "0.01",
            "A run is merged with the newer ones if it is larger than all of them by this share at \
             most.";
        space_amplification: f64 = Kind::Number { min: 0.0, max: 1e6 }, default "2",
            "All runs are merged when those before the oldest are larger than it by this factor.";
    }
}

struct Tiered(Parameters);

fn build(settings: &Settings, _: EntrySize) -> Built<dyn Compaction> {
    Ok(Box::new(Tiered(Parameters::from_settings(settings))))
}

impl Tiered {
    /// The first runs of similar size, by place and number.
    fn similar(&self, sizes: &[f64]) -> Option<(usize, usize)> {
        let merged = |start: usize| {
            let (mut size, mut count) = (sizes[start], 1);
            for next in &sizes[start + 1..] {
                if size * (1.0 + self.0.size_ratio) < *next {
                    break;
                }
                size += next;
                count += 1;
            }
            (start, count)
        };
        (0..sizes.len()).map(merged).find(|(_, count)| *count > 1)
    }
}

impl Compaction for Tiered {
    fn next(&mut self, runs: &[Run]) -> Option<Step> {
        let excess = (runs.len() as u64).checked_sub(self.0.runs)?;
        let sizes: Vec<f64> = runs.iter().map(|run| entries(run) as f64).collect();
        let (oldest, newer) = sizes.split_last()?;
        let (start, count) = match newer.iter().sum::<f64>() >= oldest * self.0.space_amplification
        {
            true => (0, runs.len()),
            false => self.similar(&sizes).or((excess > 0).then_some((0, excess as usize + 1)))?,
        };
        let places = start..start + count;
        let from = places.map(|place| (place, 0..runs[place].len())).collect();
        Some(Step::Merge { from, to: start + count - 1 })
    }
}

pub const ENTRY: CompactionEntry = CompactionEntry {
    description: Description {
        name: "tiered",
        summary: "Merges sorted runs of similar size.",
        origin: "RocksDB's universal compaction",
        params: Parameters::PARAMS,
    },
    build,
};

#[cfg(test)]
mod tests {
    use super::super::runs_of;
    use super::*;

    #[test]
    fn merges_all_for_space_then_similar_runs_then_the_newest() {
        let mut tiered = Tiered(Parameters { runs: 3, size_ratio: 0.0, space_amplification: 2.0 });
        let mut places = |sizes: &[u32]| match tiered.next(&runs_of(sizes))? {
            Step::Merge { from, to } => Some((from[0].0, from.len(), to)),
            Step::Delete(_) => None,
        };
        assert_eq!(places(&[10, 300]), None);
        assert_eq!(places(&[10, 190, 100]), Some((0, 3, 2)));
        assert_eq!(places(&[10, 10, 15, 300]), Some((0, 3, 2)));
        assert_eq!(places(&[10, 20, 20, 300]), Some((1, 2, 2)));
        assert_eq!(places(&[10, 20, 300]), None);
        assert_eq!(places(&[10, 20, 50, 300]), Some((0, 2, 1)));
    }
}
