//! Leveled compaction: each level is one sorted run, many times as large as the one before it.

use super::{Compaction, CompactionEntry, EntrySize, File, Run, Step, entries};
use hybridsim_config::param::{Built, Kind, Settings};
use hybridsim_config::registry::Description;
use std::cmp::Reverse;
use std::ops::Range;

hybridsim_config::choices! {
    /// The file of a level that is merged into the next.
    enum Priority {
        Largest = "largest",
        LeastOverlap = "least-overlap",
        RoundRobin = "round-robin",
    }
}

hybridsim_config::params! {
    struct Parameters {
        level0_files: u64 = Kind::Count { min: 1, max: 1 << 20 }, default "4",
            "Flushed files, level 0, at which they are merged into the first level.";
        levels: u64 = Kind::Count { min: 1, max: 20 }, default "6", "Levels after level 0.";
        base: u64 = Kind::Bytes, default "\"256MiB\"", "Bytes of the first level that is used.";
        multiplier: f64 = Kind::Number { min: 2.0, max: 1000.0 }, default "10",
            "Size of a level relative to the one before it.";
        dynamic: bool = Kind::Flag, default "true",
            "Whether sizes of levels follow from that of the last, so that those before it have a \
             fixed share of the data; otherwise they follow from `base`.";
        priority: Priority = Kind::Choice(Priority::NAMES), default "\"least-overlap\"",
            "The file of a level that is merged first: the largest (of several the one after the \
             last), the one with the fewest bytes to rewrite for each of its own, or the one after \
             the last.";
    }
}

struct Leveled {
    params: Parameters,
    base_entries: u64,
    /// For each level, the last key that was merged into the next.
    cursors: Vec<Option<u32>>,
}

fn build(settings: &Settings, entry: EntrySize) -> Built<dyn Compaction> {
    let params = Parameters::from_settings(settings);
    let base_entries = entry.entries(params.base);
    let cursors = vec![None; params.levels as usize];
    Ok(Box::new(Leveled { params, base_entries, cursors }))
}

/// Files of `run` with keys between those of `keys`.
fn overlapping(run: &Run, (first, last): (u32, u32)) -> Range<usize> {
    let from = run.partition_point(|file| file.keys.last().is_none_or(|key| *key < first));
    let to = run.partition_point(|file| file.keys.first().is_some_and(|key| *key <= last));
    from..to.max(from)
}

/// The first and last key of files.
fn bounds<'a>(files: impl Iterator<Item = &'a File>) -> Option<(u32, u32)> {
    let each = files.filter_map(|file| Some((*file.keys.first()?, *file.keys.last()?)));
    each.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}

impl Leveled {
    /// The first level that is used, and the target size of each, in entries.
    fn targets(&self, levels: &[Run]) -> (usize, Vec<f64>) {
        let base = self.base_entries as f64;
        let multiplier = self.params.multiplier;
        let largest = levels.iter().map(entries).max().unwrap_or(0) as f64;
        let last = levels.len() - 1;
        let (mut first, mut size) = (0, base);
        if self.params.dynamic {
            (first, size) = (last, largest);
            while first > 0 && size > base {
                first -= 1;
                size /= multiplier;
            }
            // A level that holds data is used.
            let holds_data = levels.iter().position(|run| !run.is_empty()).unwrap_or(last);
            while first > holds_data {
                first -= 1;
                size /= multiplier;
            }
        }
        // A level smaller than the files that are merged into it would be rewritten for little.
        let target = |level: usize| {
            let above = level.saturating_sub(first) as f64;
            base.max(size * libm::pow(multiplier, above))
        };
        (first, (0..levels.len()).map(target).collect())
    }

    /// The file of `run` to merge into `next`.
    fn pick(&self, level: usize, run: &Run, next: &Run) -> usize {
        let files = run.iter().enumerate();
        let after = |file: &File| file.keys.first() > self.cursors[level].as_ref();
        let picked = match self.params.priority {
            // Many are full; those of some keys must not be preferred.
            Priority::Largest => {
                files.max_by_key(|(at, file)| (file.keys.len(), after(file), Reverse(*at)))
            }
            Priority::LeastOverlap => files.min_by_key(|(_, file)| {
                let keys = bounds(std::iter::once(*file)).unwrap_or_default();
                let files = &next[overlapping(next, keys)];
                let rewritten: usize = files.iter().map(|file| file.keys.len()).sum();
                rewritten * 1024 / file.keys.len().max(1)
            }),
            Priority::RoundRobin => files.max_by_key(|(at, file)| (after(file), Reverse(*at))),
        };
        picked.map_or(0, |(at, _)| at)
    }

    /// Merges all of level 0 into the first level that is used.
    fn flush_level0(level0: &[Run], base: &Run, to: usize) -> Step {
        let keys = bounds(level0.iter().flatten()).unwrap_or_default();
        let newest = level0.iter().enumerate().map(|(place, run)| (place, 0..run.len()));
        Step::Merge { from: newest.chain([(to, overlapping(base, keys))]).collect(), to }
    }
}

impl Compaction for Leveled {
    fn levels(&self) -> usize {
        self.params.levels as usize
    }

    fn next(&mut self, runs: &[Run]) -> Option<Step> {
        let (level0, levels) = runs.split_at(runs.len() - self.levels());
        let (first, targets) = self.targets(levels);
        let bytes: u64 = level0.iter().map(entries).sum();
        let files = level0.len() as f64 / self.params.level0_files as f64;
        let score0 = files.max(bytes as f64 / self.base_entries as f64);
        let scores = (first..levels.len() - 1).map(|at| entries(&levels[at]) as f64 / targets[at]);
        let fullest = (first..).zip(scores).max_by(|one, other| one.1.total_cmp(&other.1));
        if score0 >= 1.0 && fullest.is_none_or(|(_, score)| score0 >= score) {
            return Some(Self::flush_level0(level0, &levels[first], level0.len() + first));
        }
        let (level, _) = fullest.filter(|(_, score)| *score >= 1.0)?;
        let (run, next) = (&levels[level], &levels[level + 1]);
        let file = self.pick(level, run, next);
        let mut keys = bounds(run[file..=file].iter())?;
        let rewritten = overlapping(next, keys);
        let mut files = file..file + 1;
        if !rewritten.is_empty() {
            // Neighbours that need no other files of the next level come along.
            let all = bounds(run[files.clone()].iter().chain(&next[rewritten.clone()]))?;
            let wider = overlapping(run, all);
            let all = bounds(run[wider.clone()].iter())?;
            if overlapping(next, all) == rewritten {
                (files, keys) = (wider, all);
            }
        }
        self.cursors[level] = Some(keys.1);
        let place = level0.len() + level;
        let mut from = vec![(place, files)];
        from.extend((!rewritten.is_empty()).then_some((place + 1, rewritten)));
        Some(Step::Merge { from, to: place + 1 })
    }
}

pub const ENTRY: CompactionEntry = CompactionEntry {
    description: Description {
        name: "leveled",
        summary: "Merges files into the next level, which is larger by a factor.",
        origin: "LevelDB and RocksDB, with RocksDB's dynamic sizes of levels",
        params: Parameters::PARAMS,
    },
    build,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn leveled(priority: Priority) -> Leveled {
        let params = Parameters {
            level0_files: 2,
            levels: 2,
            base: 1,
            multiplier: 10.0,
            dynamic: true,
            priority,
        };
        Leveled { params, base_entries: 10, cursors: vec![None; 2] }
    }

    fn file(keys: Range<u32>) -> File {
        File { keys: keys.collect(), extents: Vec::new() }
    }

    #[test]
    fn level_0_is_merged_with_the_files_it_overlaps() {
        let last = vec![file(0..4), file(5..9), file(10..14)];
        let runs = vec![vec![file(5..6)], vec![file(8..9)], vec![], last];
        let step = leveled(Priority::Largest).next(&runs);
        let from = vec![(0, 0..1), (1, 0..1), (2, 0..0)];
        assert_eq!(step, Some(Step::Merge { from, to: 2 }));
        let small = vec![vec![file(5..6)], vec![file(8..9)], vec![], vec![file(5..9)]];
        let from = vec![(0, 0..1), (1, 0..1), (3, 0..1)];
        assert_eq!(leveled(Priority::Largest).next(&small), Some(Step::Merge { from, to: 3 }));
    }

    #[test]
    fn the_file_of_a_full_level_is_chosen_by_priority() {
        let full = || vec![file(0..6), file(19..27), file(40..46)];
        let last = || (0..40).map(|at| file(at * 3..at * 3 + 2)).collect::<Run>();
        for (priority, place, files) in [
            (Priority::Largest, 1, 6..9),
            (Priority::LeastOverlap, 0, 0..2),
            (Priority::RoundRobin, 0, 0..2),
        ] {
            let step = leveled(priority).next(&[full(), last()]);
            let from = vec![(0, place..place + 1), (1, files)];
            assert_eq!(step, Some(Step::Merge { from, to: 1 }), "{priority:?}");
        }
    }

    #[test]
    fn neighbours_that_need_no_other_files_are_merged_too() {
        let level = vec![file(0..4), file(10..14), file(16..24), file(40..46)];
        let last = vec![file(0..8), file(9..30), file(31..60)];
        let step = leveled(Priority::Largest).next(&[level, last]);
        let from = vec![(0, 1..3), (1, 1..2)];
        assert_eq!(step, Some(Step::Merge { from, to: 1 }));
    }
}
