//! FIFO: the oldest files are deleted when the tree has its size; optionally small new files are
//! merged, so that there are fewer.

use super::{Compaction, CompactionEntry, EntrySize, Run, Step, entries};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Settings};
use hybridsim_config::registry::Description;

hybridsim_config::params! {
    struct Parameters {
        size: u64 = Kind::Bytes, required,
            "Bytes of files beyond which the oldest are deleted.";
        merge_files: Option<u64> = Kind::Count { min: 2, max: 1 << 20 }, optional,
            "Merges this many new files or more into one where that is cheap per file; none are \
             merged if absent.";
        merge_bytes: u64 = Kind::Bytes, default "\"128MiB\"" needs &[Needs::given("merge_files")],
            "Most bytes that a merge may write for each file that it saves.";
    }
}

struct Fifo {
    size: u64,
    merge_files: Option<u64>,
    merge_entries: u64,
}

fn build(settings: &Settings, entry: EntrySize) -> Built<dyn Compaction> {
    let Parameters { size, merge_files, merge_bytes } = Parameters::from_settings(settings);
    let (size, merge_entries) = (entry.entries(size), entry.entries(merge_bytes));
    Ok(Box::new(Fifo { size, merge_files, merge_entries }))
}

impl Fifo {
    /// The newest runs, as many as cost the least per run that is saved.
    fn merge(&self, runs: &[Run]) -> Option<Step> {
        let least = self.merge_files?;
        let mut written = entries(runs.first()?);
        let (mut count, mut cost) = (1, u64::MAX);
        for run in &runs[1..] {
            let more = written + entries(run);
            if more / count > cost {
                break;
            }
            (written, cost) = (more, more / count);
            count += 1;
        }
        let worthwhile = count >= least && cost < self.merge_entries;
        let merged = runs.iter().take(count as usize).enumerate();
        let from = merged.map(|(place, run)| (place, 0..run.len())).collect();
        worthwhile.then_some(Step::Merge { from, to: count as usize - 1 })
    }
}

impl Compaction for Fifo {
    fn splits(&self) -> bool {
        false
    }

    fn next(&mut self, runs: &[Run]) -> Option<Step> {
        if runs.iter().map(entries).sum::<u64>() > self.size {
            return Some(Step::Delete(runs.len() - 1));
        }
        self.merge(runs)
    }
}

pub const ENTRY: CompactionEntry = CompactionEntry {
    description: Description {
        name: "fifo",
        summary: "Deletes the oldest files beyond a size.",
        origin: "RocksDB's FIFO compaction, with its merging of level 0 as an option",
        params: Parameters::PARAMS,
    },
    build,
};

#[cfg(test)]
mod tests {
    use super::super::runs_of;
    use super::*;

    #[test]
    fn deletes_the_oldest_and_merges_new_files_but_not_merged_ones_again() {
        let mut fifo = Fifo { size: 100, merge_files: Some(4), merge_entries: 20 };
        assert_eq!(fifo.next(&runs_of(&[10, 10, 10])), None);
        assert_eq!(fifo.next(&runs_of(&[10, 10, 10, 80])), Some(Step::Delete(3)));
        let four = vec![(0, 0..1), (1, 0..1), (2, 0..1), (3, 0..1)];
        let step = Step::Merge { from: four, to: 3 };
        assert_eq!(fifo.next(&runs_of(&[10, 10, 10, 10, 40])), Some(step));
        assert_eq!(fifo.next(&runs_of(&[10, 10, 10, 40])), None);
    }
}
