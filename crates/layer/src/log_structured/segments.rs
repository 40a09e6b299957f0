//! Segments: their states, and those that may be cleaned.

use hybridsim_engine::{Loader, Saver, StateError};
use hybridsim_flash::gc::VictimPolicy;
use hybridsim_flash::geometry::BlockId;
use serde::{Deserialize, Serialize};
use std::collections::{HashSet, VecDeque};

/// The state of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    Free,
    /// Blocks are appended to it.
    Open,
    /// No block is appended any more.
    Closed,
    /// Its valid blocks are being moved.
    Victim,
    /// It has no valid blocks; the device is flushed, so that copies of them are durable.
    Emptied,
    /// The device has been flushed. It is reset once no read of it is outstanding.
    Settled,
    Resetting,
    /// It could not be read or reset, and is not used again.
    Retired,
}

/// A segment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Segment {
    pub state: State,
    /// Valid blocks.
    pub valid: u32,
    /// Blocks appended, summary not included.
    pub written: u32,
    /// Reads and writes outstanding.
    pub readers: u32,
    pub writers: u32,
    /// It ends with a summary.
    pub summary: bool,
    /// Its zone may be active although the segment is closed.
    pub unfinished: bool,
    /// It is closed and no write is outstanding: the policy may choose it.
    candidate: bool,
}

const FREE: Segment = Segment {
    state: State::Free,
    valid: 0,
    written: 0,
    readers: 0,
    writers: 0,
    summary: false,
    unfinished: false,
    candidate: false,
};

/// All segments.
pub struct Segments {
    all: Vec<Segment>,
    /// Blocks of a segment with data.
    blocks: u32,
    /// In the order in which they became free.
    free: VecDeque<u32>,
    /// Segments that become free once they are reset.
    pub emptied: u32,
    policy: Box<dyn VictimPolicy>,
    /// Blocks of the candidates that are not valid.
    garbage: u64,
    /// Candidates without valid blocks.
    empty: Vec<u32>,
}

/// The pool of the policy: all segments are one.
const POOL: usize = 0;

impl Segments {
    pub fn new(segments: u32, blocks: u32, policy: Box<dyn VictimPolicy>) -> Self {
        let (all, free) = (vec![FREE; segments as usize], (0..segments).collect());
        Self { all, blocks, free, emptied: 0, policy, garbage: 0, empty: Vec::new() }
    }

    pub fn len(&self) -> u32 {
        self.all.len() as u32
    }

    pub fn free(&self) -> u32 {
        self.free.len() as u32
    }

    pub fn get(&self, at: u32) -> &Segment {
        &self.all[at as usize]
    }

    pub fn get_mut(&mut self, at: u32) -> &mut Segment {
        &mut self.all[at as usize]
    }

    /// Opens the segment that has been free for longest, if more than `keep` are free.
    pub fn open(&mut self, keep: u32) -> Option<u32> {
        if self.free() <= keep {
            return None;
        }
        let at = self.free.pop_front()?;
        *self.get_mut(at) = Segment { state: State::Open, ..FREE };
        Some(at)
    }

    /// No block is appended to it any more.
    pub fn close(&mut self, at: u32) {
        self.get_mut(at).state = State::Closed;
        self.offer(at);
    }

    /// A write to it, or the end of its zone, has completed.
    pub fn write_done(&mut self, at: u32) {
        self.get_mut(at).writers -= 1;
        self.offer(at);
    }

    /// The power failed: nothing is outstanding any more.
    pub fn power_lost(&mut self, at: u32) {
        let segment = self.get_mut(at);
        (segment.readers, segment.writers) = (0, 0);
        self.offer(at);
    }

    /// Makes it a candidate if it has become one.
    fn offer(&mut self, at: u32) {
        let segment = &mut self.all[at as usize];
        if segment.state == State::Closed && segment.writers == 0 && !segment.candidate {
            segment.candidate = true;
            self.garbage += u64::from(self.blocks - segment.valid);
            self.policy.closed(POOL, BlockId(at), segment.valid);
            self.empty.extend((segment.valid == 0).then_some(at));
        }
    }

    /// A block of it is not valid any more.
    pub fn invalidated(&mut self, at: u32) {
        let segment = &mut self.all[at as usize];
        segment.valid -= 1;
        if segment.candidate {
            self.garbage += 1;
            self.policy.invalidated(POOL, BlockId(at), segment.valid);
            self.empty.extend((segment.valid == 0).then_some(at));
        }
    }

    /// The segment was reset.
    pub fn set_free(&mut self, at: u32) {
        *self.get_mut(at) = FREE;
        self.emptied -= 1;
        self.free.push_back(at);
    }

    /// The segment to clean, which is no candidate any more; `None` if no block would be gained.
    pub fn victim(&mut self) -> Option<u32> {
        if self.garbage == 0 {
            return None;
        }
        let all = &self.all;
        let chosen = self.policy.choose(POOL, &|block| all[block.0 as usize].valid)?;
        // A saved state may be that of a policy with other candidates.
        self.all.get(chosen.0 as usize).filter(|it| it.candidate)?;
        self.take(chosen.0, State::Victim);
        Some(chosen.0)
    }

    /// A candidate without valid blocks, which needs no cleaning.
    pub fn take_empty(&mut self) -> Option<u32> {
        let at = self.empty.pop()?;
        self.take(at, State::Emptied);
        Some(at)
    }

    /// A candidate is none any more.
    fn take(&mut self, at: u32, state: State) {
        let segment = &mut self.all[at as usize];
        (segment.state, segment.candidate) = (state, false);
        self.garbage -= u64::from(self.blocks - segment.valid);
        self.policy.removed(POOL, BlockId(at));
    }

    /// # Errors
    /// If the state of the policy cannot be saved.
    pub fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        self.policy.check_saveable()?;
        to.put(&(&self.all, &self.free));
        self.policy.save(to);
        Ok(())
    }

    /// # Errors
    /// If it is the state of other segments.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (count, garbage) = (self.all.len(), |it: &Segment| u64::from(self.blocks - it.valid));
        let (all, free): (Vec<Segment>, VecDeque<u32>) = from.take()?;
        if all.len() != count || !is_consistent(&all, &free, self.blocks) {
            return Err(StateError("it is the state of a log with other segments".to_owned()));
        }
        self.garbage = all.iter().filter(|it| it.candidate).map(garbage).sum();
        let is_empty = |at: &u32| all[*at as usize].candidate && all[*at as usize].valid == 0;
        self.empty = (0..all.len() as u32).filter(is_empty).collect();
        (self.all, self.free, self.emptied) = (all, free, 0);
        self.policy.restore(from)
    }
}

/// Whether a saved state can be that of segments of `blocks` blocks.
fn is_consistent(all: &[Segment], free: &VecDeque<u32>, blocks: u32) -> bool {
    let is_free = |at: &u32| all.get(*at as usize).map(|it| it.state) == Some(State::Free);
    let fits = |it: &Segment| {
        let most = match it.state {
            State::Free => 0,
            State::Open => blocks - 1,
            State::Closed | State::Retired => blocks,
            _ => return false,
        };
        it.valid <= it.written
            && it.written <= most
            && (it.readers, it.writers) == (0, 0)
            && it.candidate == (it.state == State::Closed)
    };
    let distinct: HashSet<_> = free.iter().collect();
    distinct.len() == free.len()
        && all.iter().all(fits)
        && free.iter().all(is_free)
        && free.len() == all.iter().filter(|it| it.state == State::Free).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_config::param::Settings;
    use hybridsim_flash::gc::{GcEntry, GcInput};

    #[test]
    fn a_segment_without_garbage_is_no_victim_after_a_restart_either() {
        let settings = Settings::default();
        let policy = || {
            let registry = hybridsim_flash::defaults::registry();
            let fifo = registry.find::<GcEntry>("fifo").expect("it is registered");
            let input = GcInput {
                settings: &settings,
                blocks: 3,
                pages_per_block: 10,
                pools: 1,
                seed: 1,
                path: "log",
            };
            (fifo.build)(&input).expect("the input is valid")
        };
        let mut segments = Segments::new(3, 10, policy());
        let at = segments.open(0).expect("all are free");
        (segments.get_mut(at).written, segments.get_mut(at).valid) = (10, 10);
        segments.close(at);
        let mut saver = Saver::default();
        segments.save(&mut saver).expect("it is saved");
        let state = saver.into_bytes();
        let mut restored = Segments::new(3, 10, policy());
        restored.restore(&mut Loader::new(&state)).expect("it is of the same segments");
        for segments in [&mut segments, &mut restored] {
            assert_eq!(segments.victim(), None);
            segments.invalidated(at);
            assert_eq!(segments.victim(), Some(at));
        }
    }

    #[test]
    fn saved_states_that_would_end_a_run_are_rejected() {
        let is_accepted = |change: fn(&mut [Segment], &mut VecDeque<u32>)| {
            let mut all = [FREE; 5];
            all[0] = Segment { state: State::Open, written: 3, ..FREE };
            let mut free = (1..5).collect();
            change(&mut all, &mut free);
            is_consistent(&all, &free, 10)
        };
        assert!(is_accepted(|_, _| {}));
        assert!(!is_accepted(|all, _| all[0].written = 10), "it is full, but open");
        assert!(!is_accepted(|all, _| all[0].state = State::Victim), "it is never cleaned");
        assert!(!is_accepted(|all, _| all[0].state = State::Closed), "the policy never chooses it");
        assert!(!is_accepted(|all, _| all[0].readers = 1), "it is never reset");
        assert!(!is_accepted(|_, free| free[0] = free[1]), "free twice");
    }
}
