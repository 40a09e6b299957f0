//! Sequential writes of the host, which a drive-managed disk writes to their bands directly.

use serde::{Deserialize, Serialize};

/// A sequence of writes, each of which begins where the one before ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Run {
    next: u64,
    sectors: u64,
}

/// A band with data that is written again from its start on, as far as `next`: the writes damage
/// the data behind, which have to be written again if the sequence ends before it reaches them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overwrite {
    pub band: u32,
    pub next: u32,
}

/// The sequences that the disk follows, the most recent last.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Streams {
    runs: Vec<Run>,
    overwrites: Vec<Overwrite>,
}

/// Conditions under which a write is part of a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamRule {
    /// Sectors of a sequence before it bypasses the cache.
    pub sectors_min: u64,
    /// Sequences followed at a time.
    pub streams: usize,
}

impl Streams {
    /// A write arrives. Returns the sectors of its sequence so far, with its own.
    pub fn arrived(&mut self, rule: StreamRule, lba: u64, sectors: u64) -> u64 {
        let known = self.runs.iter().position(|it| it.next == lba);
        let before = known.map_or(0, |at| self.runs.remove(at).sectors);
        if self.runs.len() == rule.streams {
            self.runs.remove(0);
        }
        let run = Run { next: lba + sectors, sectors: before.saturating_add(sectors) };
        self.runs.push(run);
        run.sectors
    }

    /// A write at `at` of `band`: whether it continues an overwrite.
    pub fn continues(&self, band: u32, at: u32) -> bool {
        self.overwrites.contains(&Overwrite { band, next: at })
    }

    /// A band with data is written from its start on; returns the overwrite that is given up for
    /// it, if there are too many.
    pub fn begin(&mut self, rule: StreamRule, band: u32) -> Option<Overwrite> {
        // One that is begun again is followed from there.
        self.overwrites.retain(|it| it.band != band);
        let oldest = (self.overwrites.len() == rule.streams).then(|| self.overwrites.remove(0));
        self.overwrites.push(Overwrite { band, next: 0 });
        oldest
    }

    /// `band` is written up to `next`, and had data up to `written`.
    pub fn advance(&mut self, band: u32, next: u32, written: u32) {
        if let Some(at) = self.overwrites.iter().position(|it| it.band == band) {
            let it = self.overwrites.remove(at);
            if next < written {
                self.overwrites.push(Overwrite { next, ..it });
            }
        }
    }

    /// The band is written as a whole.
    pub fn cleaned(&mut self, band: u32) {
        self.overwrites.retain(|it| it.band != band);
    }

    /// Gives up all overwrites.
    pub fn give_up(&mut self) -> impl Iterator<Item = Overwrite> + '_ {
        self.overwrites.drain(..)
    }

    /// Bands that are being overwritten.
    pub fn overwritten(&self) -> impl Iterator<Item = u32> + '_ {
        self.overwrites.iter().map(|it| it.band)
    }

    pub fn has_overwrites(&self) -> bool {
        !self.overwrites.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: StreamRule = StreamRule { sectors_min: 16, streams: 2 };

    #[test]
    fn a_sequence_is_found_among_others_and_forgotten_when_there_are_too_many() {
        let mut streams = Streams::default();
        for (lba, run) in [(0, 8), (1_000, 8), (8, 16), (500, 8), (16, 24), (1_008, 8)] {
            assert_eq!(streams.arrived(RULE, lba, 8), run, "{lba}");
        }
    }

    #[test]
    fn an_overwrite_ends_with_the_data_of_the_band_or_is_given_up() {
        let mut streams = Streams::default();
        for band in 1..3 {
            assert_eq!(streams.begin(RULE, band), None);
        }
        streams.advance(1, 8, 16);
        assert!(streams.continues(1, 8) && !streams.continues(1, 0));
        assert_eq!(streams.begin(RULE, 3), Some(Overwrite { band: 2, next: 0 }));
        streams.advance(1, 16, 16);
        assert!(!streams.continues(1, 16));
        assert_eq!(streams.give_up().collect::<Vec<_>>(), [Overwrite { band: 3, next: 0 }]);
    }
}
