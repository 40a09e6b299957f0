//! Checkpoints of a mapping table: copies of all of it, written to two places in turn, so that
//! recovery reads the newest and the metadata pages written since.

use hybridsim_engine::{Loader, Saver, StateError};
use serde::{Deserialize, Serialize};

/// The entry of a page: where its data belong on the disk, and whether they are dirty.
const ENTRY_BYTES: u64 = 8;

/// The flash pages reserved for checkpoints. They follow the metadata area.
#[derive(Debug)]
pub struct CheckpointArea {
    /// Pages of a checkpoint.
    pages: u64,
    /// Data pages written from one checkpoint to the next.
    interval: u64,
    state: CheckpointState,
    /// The checkpoint being written.
    writing: Option<Writing>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CheckpointState {
    /// The place, 0 or 1, of the newest complete checkpoint.
    newest: Option<u64>,
    /// Metadata pages written since it was begun.
    metadata_since: u64,
    /// Data pages written since the last one was begun, complete or not.
    data_since: u64,
}

#[derive(Clone, Copy, Debug)]
struct Writing {
    place: u64,
    written: u64,
    /// Metadata pages written since it was begun.
    metadata_since: u64,
}

impl CheckpointArea {
    /// Checkpoints of the table of `entries` cached pages, each `interval` data pages.
    pub fn new(entries: u64, page_bytes: u64, interval: u64) -> Self {
        let pages = (entries * ENTRY_BYTES).div_ceil(page_bytes);
        Self { pages, interval, state: CheckpointState::default(), writing: None }
    }

    /// Flash pages reserved: two checkpoints.
    pub const fn reserved(&self) -> u64 {
        2 * self.pages
    }

    /// Counts `pages` data pages written. Returns whether a checkpoint begins.
    pub fn data_written(&mut self, pages: u64) -> bool {
        self.state.data_since += pages;
        let begins = self.writing.is_none() && self.state.data_since >= self.interval;
        if begins {
            let place = self.state.newest.map_or(0, |newest| 1 - newest);
            self.writing = Some(Writing { place, written: 0, metadata_since: 0 });
            self.state.data_since = 0;
        }
        begins
    }

    pub fn metadata_written(&mut self) {
        self.state.metadata_since += 1;
        if let Some(writing) = &mut self.writing {
            writing.metadata_since += 1;
        }
    }

    /// The pages to write next, `most` at most: the first, counted from the start of the area, and
    /// their number. None when the checkpoint is complete.
    pub fn next_run(&mut self, most: u64) -> Option<(u64, u64)> {
        let writing = self.writing.as_mut()?;
        let count = (self.pages - writing.written).min(most);
        if count == 0 {
            self.state.newest = Some(writing.place);
            self.state.metadata_since = writing.metadata_since;
            self.writing = None;
            return None;
        }
        let first = writing.place * self.pages + writing.written;
        writing.written += count;
        Some((first, count))
    }

    /// Power failed: a checkpoint that is incomplete is lost.
    pub fn stop(&mut self) {
        self.writing = None;
    }

    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&self.state);
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.state = from.take()?;
        match self.state.newest {
            Some(place) if place > 1 => Err(StateError(format!("there is no checkpoint {place}"))),
            _ => Ok(()),
        }
    }

    /// Runs that recovery reads of an area of `metadata` pages in which `next` is written next, as
    /// first page and number of pages from the start of that area; none if it is no less than all
    /// of it.
    pub fn recovery(&self, metadata: u64, next: u64) -> Option<[(u64, u64); 3]> {
        let (place, since) = (self.state.newest?, self.state.metadata_since);
        if since + self.pages >= metadata {
            return None;
        }
        let before_wrap = since.min(next);
        let wrapped = since - before_wrap;
        let checkpoint = (metadata + place * self.pages, self.pages);
        Some([checkpoint, (metadata - wrapped, wrapped), (next - before_wrap, before_wrap)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area() -> CheckpointArea {
        // 1,000 entries in two pages of 4 KiB.
        CheckpointArea::new(1000, 4096, 100)
    }

    fn write(area: &mut CheckpointArea) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| area.next_run(1)).collect()
    }

    #[test]
    fn places_alternate() {
        let mut area = area();
        assert_eq!(area.reserved(), 4);
        assert!(!area.data_written(99) && area.data_written(1));
        assert_eq!(write(&mut area), [(0, 1), (1, 1)]);
        assert!(area.data_written(100));
        assert_eq!(write(&mut area), [(2, 1), (3, 1)]);
    }

    #[test]
    fn recovery_reads_the_newest_checkpoint_and_the_pages_since_it_began() {
        let mut area = area();
        assert_eq!(area.recovery(50, 7), None, "there is none yet");
        area.data_written(100);
        area.metadata_written();
        write(&mut area);
        (0..9).for_each(|_| area.metadata_written());
        // Ten pages up to page 7 of a circle of 50.
        assert_eq!(area.recovery(50, 7), Some([(50, 2), (47, 3), (0, 7)]));
        assert_eq!(area.recovery(12, 7), None, "all of the area is no more than that");
    }

    #[test]
    fn an_incomplete_checkpoint_is_not_used() {
        let mut area = area();
        area.data_written(100);
        write(&mut area);
        area.metadata_written();
        area.data_written(100);
        area.next_run(1);
        area.stop();
        assert_eq!(area.recovery(50, 7), Some([(50, 2), (50, 0), (6, 1)]));
        assert!(area.data_written(100));
        assert_eq!(area.next_run(9), Some((2, 2)), "the other place is written again");
    }
}
