//! The reference model of verified runs: records every write and checks what reads return.
//!
//! Writes that overlap in time may land in either order, and a read may see a write in flight.
//! Times only have to order the starts and ends of requests; the host counts them, so that the
//! order within one instant is preserved.
//!
//! A read may therefore return write `w` unless another write started after `w` had completed
//! and completed before the read started.

use crate::pages::{PAGE_SECTORS, PagePart, PageTable, parts};
use crate::request::Lba;
use crate::time::SimTime;
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Written {
    version: u64,
    from: SimTime,
    /// [`SimTime::NEVER`] while in flight.
    until: SimTime,
    /// Lost in a power failure: it may have reached the medium or not.
    lost: bool,
}

/// The writes that reads of some sectors may still return.
#[derive(Clone, Copy, Debug)]
enum State {
    /// One write, which completed before any request in flight started.
    Settled(u64),
    /// Several, in [`ReferenceModel::lists`].
    List(usize),
}

impl Default for State {
    fn default() -> Self {
        Self::Settled(0)
    }
}

/// The states of the sectors of a page.
#[derive(Clone, Copy, Debug)]
enum Page {
    /// All the same.
    Whole(State),
    /// By sector, in [`ReferenceModel::split`].
    Split(usize),
}

impl Default for Page {
    fn default() -> Self {
        Self::Whole(State::default())
    }
}

/// Per sector, the writes a read may still return.
#[derive(Debug, Default)]
pub struct ReferenceModel {
    pages: PageTable<Page>,
    split: Slab<[State; PAGE_SECTORS]>,
    lists: Slab<Vec<Written>>,
    /// Lists that are not used, to be used again.
    spare: Vec<Vec<Written>>,
    /// Completed writes that requests in flight at their end may not see, in order of completion:
    /// first sector, sectors, end.
    unsettled: VecDeque<(u64, u32, SimTime)>,
    /// Ranges (first, end) of the trims in flight.
    trims: Vec<(u64, u64)>,
    last_version: u64,
    /// Ranges (first, sectors) of the writes in flight, by version.
    open: FxHashMap<u64, (u64, u32)>,
}

/// A read that returned data no correct device could return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The sector.
    pub lba: Lba,
    /// The version returned.
    pub got: u64,
    /// The versions that would have been valid.
    pub expected: Vec<u64>,
}

impl Written {
    const fn past(version: u64, at: SimTime) -> Self {
        Self { version, from: at, until: at, lost: false }
    }
}

impl ReferenceModel {
    /// The version for the next write.
    pub fn next_version(&mut self) -> u64 {
        self.last_version += 1;
        self.last_version
    }

    /// A write of `version` to `sectors` sectors from `lba` on starts.
    pub fn write_begins(&mut self, lba: Lba, sectors: u32, version: u64, now: SimTime) {
        self.open.insert(version, (lba.0, sectors));
        let write = Written { version, from: now, until: SimTime::NEVER, lost: false };
        for part in parts(lba.0, sectors.into()) {
            self.update(&part, |writes| writes.push(write));
        }
    }

    /// The write completed. `oldest` is the start of the oldest request still in flight.
    pub fn write_ends(
        &mut self,
        lba: Lba,
        sectors: u32,
        version: u64,
        now: SimTime,
        oldest: SimTime,
    ) {
        self.open.remove(&version);
        for part in parts(lba.0, sectors.into()) {
            self.update(&part, |writes| {
                if let Some(write) = writes.iter_mut().find(|write| write.version == version) {
                    write.until = now;
                }
                forget_hidden(writes, oldest);
            });
        }
        self.unsettled.push_back((lba.0, sectors, now));
        while let Some((lba, sectors, end)) = self.unsettled.front().copied()
            && end <= oldest
        {
            self.unsettled.pop_front();
            for part in parts(lba, sectors.into()) {
                if !matches!(self.pages.get(part.page), Some(Page::Whole(State::Settled(_)))) {
                    self.update(&part, |writes| forget_hidden(writes, oldest));
                }
            }
        }
    }

    /// The write was refused: nothing of it was written.
    pub fn write_refused(&mut self, lba: Lba, sectors: u32, version: u64) {
        self.open.remove(&version);
        for part in parts(lba.0, sectors.into()) {
            self.update(&part, |writes| writes.retain(|write| write.version != version));
        }
    }

    /// Applies `change` to the writes of a part of a page: once if all of its sectors share them.
    fn update(&mut self, part: &PagePart, mut change: impl FnMut(&mut Vec<Written>)) {
        let Self { pages, split, lists, spare, .. } = self;
        let page = pages.entry(part.page);
        let mut lists = Lists { lists, spare };
        if let Page::Whole(state) = page {
            if part.is_whole() {
                *state = lists.update(*state, &mut change);
                return;
            }
            let states = std::array::from_fn(|_| lists.copy(*state));
            lists.release(*state);
            *page = Page::Split(split.insert(states));
        }
        let Page::Split(slot) = *page else { unreachable!("it was just split") };
        let states = &mut split[slot];
        for state in &mut states[part.sectors.clone()] {
            *state = lists.update(*state, &mut change);
        }
        // A page that was overwritten as a whole is one again.
        if let State::Settled(version) = states[0]
            && states.iter().all(|state| matches!(state, State::Settled(v) if *v == version))
        {
            split.remove(slot);
            *page = Page::Whole(State::Settled(version));
        }
    }

    fn state(&self, page: Page, sector: usize) -> State {
        match page {
            Page::Whole(state) => state,
            Page::Split(slot) => self.split[slot][sector],
        }
    }

    /// A trim that takes no time; see [`ReferenceModel::trim_begins`].
    pub fn trim(&mut self, lba: Lba, sectors: u32, now: SimTime) {
        self.trim_begins(lba, sectors);
        self.trim_ends(lba, sectors, now);
    }

    /// A trim makes the content of the range undefined until the next write: version 0 becomes
    /// valid too, also for writes that complete while the trim is in flight.
    pub fn trim_begins(&mut self, lba: Lba, sectors: u32) {
        self.trims.push((lba.0, lba.offset(u64::from(sectors)).0));
    }

    /// The trim completed.
    pub fn trim_ends(&mut self, lba: Lba, sectors: u32, now: SimTime) {
        self.trim_refused(lba, sectors);
        self.zero_range((lba.0, lba.offset(u64::from(sectors)).0), now);
    }

    /// The trim, or the reset of a zone, was refused: the data remain.
    pub fn trim_refused(&mut self, lba: Lba, sectors: u32) {
        let range = (lba.0, lba.offset(u64::from(sectors)).0);
        let at = self.trims.iter().position(|trim| *trim == range).expect("a trim that began");
        self.trims.swap_remove(at);
    }

    /// Version 0 becomes valid in a range (first, end).
    fn zero_range(&mut self, range: (u64, u64), now: SimTime) {
        for part in self.pages.present(range.0, range.1 - range.0) {
            self.update(&part, |writes| zero_from(writes, now));
        }
    }

    /// The power fails at `now`: each sector of the writes in flight may be written or not.
    pub fn power_cut(&mut self, now: SimTime) {
        // The order of the map does not matter: each version is handled by itself.
        for (version, (lba, sectors)) in std::mem::take(&mut self.open) {
            for part in parts(lba, sectors.into()) {
                self.update(&part, |writes| {
                    if let Some(write) = writes.iter_mut().find(|write| write.version == version) {
                        (write.until, write.lost) = (now, true);
                    }
                });
            }
        }
        for range in std::mem::take(&mut self.trims) {
            self.zero_range(range, now);
        }
    }

    /// Checks the versions returned by a read that started at `began` and completes now.
    ///
    /// # Errors
    /// The first sector with an invalid version.
    pub fn check_read(
        &mut self,
        lba: Lba,
        versions: &[u64],
        began: SimTime,
    ) -> Result<(), Mismatch> {
        for part in parts(lba.0, versions.len() as u64) {
            let page = self.pages.get(part.page).unwrap_or_default();
            let got = &versions[part.within.clone()];
            if let Page::Whole(State::Settled(version)) = page
                && got.iter().all(|got| *got == version)
            {
                continue;
            }
            for (sector, &got) in part.sectors.clone().zip(got) {
                let lba = part.page * PAGE_SECTORS as u64 + sector as u64;
                self.check_sector(lba, self.state(page, sector), got, began)?;
            }
            self.resolve(&part, page, got);
        }
        Ok(())
    }

    fn check_sector(
        &self,
        sector: u64,
        state: State,
        got: u64,
        began: SimTime,
    ) -> Result<(), Mismatch> {
        if self.is_being_trimmed(sector, got) {
            return Ok(());
        }
        let settled;
        let writes: &[Written] = match state {
            State::List(slot) => &self.lists[slot],
            State::Settled(version) => {
                settled = [Written::past(version, SimTime::ZERO)];
                &settled
            }
        };
        if writes.iter().any(|write| write.version == got && !hidden(write, writes, began)) {
            return Ok(());
        }
        let valid = writes.iter().filter(|write| !hidden(write, writes, began));
        Err(Mismatch {
            lba: Lba(sector),
            got,
            expected: valid.map(|write| write.version).collect(),
        })
    }

    /// A read returned `got` for `part` of `page`, after a power failure perhaps.
    fn resolve(&mut self, part: &PagePart, page: Page, got: &[u64]) {
        let is_lost = |state: State| match state {
            State::List(slot) => self.lists[slot].iter().any(|write| write.lost),
            State::Settled(_) => false,
        };
        if !part.sectors.clone().any(|sector| is_lost(self.state(page, sector))) {
            return;
        }
        for (sector, got) in part.sectors.clone().zip(got) {
            if !self.is_being_trimmed(part.page * PAGE_SECTORS as u64 + sector as u64, *got) {
                let (sectors, within) = (sector..sector + 1, 0..1);
                let one = PagePart { page: part.page, sectors, within };
                self.update(&one, |writes| resolve_lost(writes, *got));
            }
        }
    }

    /// Whether `sector` reads as `got` because of a trim in flight, perhaps.
    fn is_being_trimmed(&self, sector: u64, got: u64) -> bool {
        got == 0 && self.trims.iter().any(|trim| (trim.0..trim.1).contains(&sector))
    }
}

/// Lists of writes, used again and again.
struct Lists<'a> {
    lists: &'a mut Slab<Vec<Written>>,
    spare: &'a mut Vec<Vec<Written>>,
}

impl Lists<'_> {
    /// The state after `change`.
    fn update(&mut self, state: State, change: &mut impl FnMut(&mut Vec<Written>)) -> State {
        let slot = match state {
            State::List(slot) => slot,
            State::Settled(version) => self.add(&[Written::past(version, SimTime::ZERO)]),
        };
        change(&mut self.lists[slot]);
        // No later read or write depends on when the only write was made.
        if let [Written { version, until, lost: false, .. }] = self.lists[slot][..]
            && until != SimTime::NEVER
        {
            self.release(State::List(slot));
            return State::Settled(version);
        }
        State::List(slot)
    }

    fn add(&mut self, writes: &[Written]) -> usize {
        let mut list = self.spare.pop().unwrap_or_default();
        list.extend_from_slice(writes);
        self.lists.insert(list)
    }

    fn copy(&mut self, state: State) -> State {
        match state {
            State::Settled(_) => state,
            State::List(slot) => {
                let list = self.lists[slot].clone();
                State::List(self.add(&list))
            }
        }
    }

    fn release(&mut self, state: State) {
        if let State::List(slot) = state {
            let mut list = self.lists.remove(slot);
            list.clear();
            self.spare.push(list);
        }
    }
}

/// Whether a read that started at `began` can no longer return `write`.
fn hidden(write: &Written, writes: &[Written], began: SimTime) -> bool {
    writes.iter().filter(|later| !later.lost).any(|later| {
        later.version > write.version && later.from >= write.until && later.until <= began
    })
}

/// A read returned `got`. If that is the data of a write interrupted by a power failure, or what
/// was there before it, later reads have to agree.
fn resolve_lost(writes: &mut Vec<Written>, got: u64) {
    if !writes.iter().any(|write| write.lost) {
        return;
    }
    let Some(seen) = writes.iter().find(|write| write.version == got).copied() else { return };
    let decides = |cut: SimTime| seen.until <= cut && seen.from < cut;
    writes.retain(|write| write.version == got || !(write.lost && decides(write.until)));
    writes.iter_mut().filter(|write| write.version == got).for_each(|write| write.lost = false);
}

/// Makes version 0 valid from `now` on. One such entry is enough: it hides no write, and the latest
/// remains valid longest.
fn zero_from(writes: &mut Vec<Written>, now: SimTime) {
    writes.retain(|write| write.version != 0);
    writes.insert(0, Written::past(0, now));
}

/// Removes the writes that no read from `oldest` on can return, as [`hidden`] says of each, in one
/// pass: thousands may be in flight. Versions increase along the list.
fn forget_hidden(writes: &mut Vec<Written>, oldest: SimTime) {
    // The latest start of a newer write that has ended.
    let mut started = None;
    for at in (0..writes.len()).rev() {
        let Written { from, until, lost, .. } = writes[at];
        if started.is_some_and(|started| started >= until) {
            writes.remove(at);
        } else if !lost && until <= oldest {
            started = started.max(Some(from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> SimTime {
        SimTime::from_ns(ns)
    }

    fn sees(reference: &mut ReferenceModel, version: u64, began: u64) -> bool {
        reference.check_read(Lba(5), &[version], at(began)).is_ok()
    }

    #[test]
    fn the_hidden_writes_are_forgotten() {
        let mut stream = crate::Stream::new(1, "hidden");
        for _ in 0..200 {
            let count = 2 + stream.below(40);
            let mut writes: Vec<Written> = (1..=count)
                .map(|version| {
                    let (from, time) = (version / 3 + stream.below(3), stream.below(6));
                    let until = if stream.chance(0.2) { SimTime::NEVER } else { at(from + time) };
                    Written { version, from: at(from), until, lost: stream.chance(0.1) }
                })
                .collect();
            if stream.chance(0.5) {
                zero_from(&mut writes, at(stream.below(15)));
            }
            let oldest = at(stream.below(20));
            let seen = |it: &&Written| !hidden(it, &writes, oldest);
            let expected: Vec<u64> = writes.iter().filter(seen).map(|it| it.version).collect();
            forget_hidden(&mut writes, oldest);
            assert_eq!(writes.iter().map(|it| it.version).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_power_cut_in_a_trim_of_everything_looks_at_what_was_written_only() {
        let mut reference = ReferenceModel::default();
        let version = reference.next_version();
        reference.write_begins(Lba(5), 1, version, at(10));
        reference.write_ends(Lba(5), 1, version, at(20), at(20));
        reference.trim_begins(Lba(0), u32::MAX);
        let began = std::time::Instant::now();
        reference.power_cut(at(30));
        assert!(began.elapsed().as_secs() < 5, "sector by sector it takes far longer");
        assert!(sees(&mut reference, 0, 40) && sees(&mut reference, version, 40), "done or not");
    }

    #[test]
    fn a_read_after_a_completed_write_must_see_it() {
        let mut reference = ReferenceModel::default();
        assert!(sees(&mut reference, 0, 0));
        let first = reference.next_version();
        reference.write_begins(Lba(5), 1, first, at(10));
        assert!(
            sees(&mut reference, 0, 5) && sees(&mut reference, first, 5),
            "either while in flight"
        );
        reference.write_ends(Lba(5), 1, first, at(20), at(20));
        assert!(sees(&mut reference, first, 20));
        assert!(!sees(&mut reference, 0, 20));
        assert!(!sees(&mut reference, 99, 20));
    }

    #[test]
    fn a_refused_write_leaves_nothing_behind() {
        let mut reference = ReferenceModel::default();
        reference.write_begins(Lba(0), 20, 1, at(1));
        reference.write_ends(Lba(0), 20, 1, at(2), at(2));
        reference.write_begins(Lba(0), 4, 2, at(3));
        for began in 4..1_000 {
            reference.write_begins(Lba(3), 9, began, at(began));
            reference.write_refused(Lba(3), 9, began);
        }
        assert_eq!(reference.open.len(), 1, "the other one");
        assert!(reference.lists.iter().all(|(_, list)| list.len() <= 2));
        reference.write_ends(Lba(0), 4, 2, at(1_000), at(1_000));
        assert!(reference.lists.is_empty());
        let got = [[2; 4].as_slice(), &[1; 16]].concat();
        assert_eq!(reference.check_read(Lba(0), &got, at(1_001)), Ok(()));
        assert!(!sees(&mut reference, 999, 1_001), "it was not written");
    }

    #[test]
    fn writes_that_overlap_may_land_in_either_order() {
        let mut reference = ReferenceModel::default();
        let (first, second) = (reference.next_version(), reference.next_version());
        reference.write_begins(Lba(5), 1, first, at(10));
        reference.write_begins(Lba(5), 1, second, at(12));
        reference.write_ends(Lba(5), 1, second, at(20), at(10));
        reference.write_ends(Lba(5), 1, first, at(30), at(30));
        assert!(sees(&mut reference, first, 40) && sees(&mut reference, second, 40));
        assert!(!sees(&mut reference, 0, 40));
        let third = reference.next_version();
        reference.write_begins(Lba(5), 1, third, at(50));
        reference.write_ends(Lba(5), 1, third, at(60), at(60));
        assert!(sees(&mut reference, third, 60) && !sees(&mut reference, first, 60));
    }

    #[test]
    fn trimmed_sectors_may_read_as_never_written() {
        let mut reference = ReferenceModel::default();
        let version = reference.next_version();
        reference.write_begins(Lba(5), 1, version, at(1));
        reference.write_ends(Lba(5), 1, version, at(2), at(2));
        reference.trim(Lba(5), 1, at(3));
        assert!(sees(&mut reference, 0, 3) && sees(&mut reference, version, 3));
        let next = reference.next_version();
        reference.write_begins(Lba(5), 1, next, at(4));
        reference.write_ends(Lba(5), 1, next, at(5), at(5));
        assert!(!sees(&mut reference, 0, 6) && !sees(&mut reference, version, 6));
    }

    /// Keeps every write of every sector in a list of its own.
    #[derive(Default)]
    struct BySector {
        sectors: FxHashMap<u64, Vec<Written>>,
        trims: Vec<(u64, u64)>,
    }

    impl BySector {
        fn of(&mut self, sector: u64) -> &mut Vec<Written> {
            let first = || vec![Written::past(0, SimTime::ZERO)];
            self.sectors.entry(sector).or_insert_with(first)
        }

        fn valid(&mut self, sector: u64, began: SimTime) -> Vec<u64> {
            let trimmed = self.trims.iter().any(|trim| (trim.0..trim.1).contains(&sector));
            let writes = self.of(sector);
            let valid = writes.iter().filter(|write| !hidden(write, writes, began));
            let mut valid: Vec<u64> = valid.map(|write| write.version).collect();
            valid.extend(trimmed.then_some(0));
            valid
        }
    }

    /// Requests in flight: first sector, sectors, version (0 for a trim), start.
    type InFlight = Vec<(u64, u32, u64, SimTime)>;

    fn start(
        (model, plain, in_flight): (&mut ReferenceModel, &mut BySector, &mut InFlight),
        stream: &mut crate::Stream,
        now: SimTime,
    ) {
        let whole = stream.chance(0.6);
        let lba = stream.below(if whole { 5 } else { 40 }) * if whole { 8 } else { 1 };
        let sectors = if whole { 8 * (1 + stream.below(2)) } else { 1 + stream.below(12) } as u32;
        let range = lba..lba + u64::from(sectors);
        let version = if stream.chance(0.15) { 0 } else { model.next_version() };
        if version == 0 {
            model.trim_begins(Lba(lba), sectors);
            plain.trims.push((range.start, range.end));
        } else {
            model.write_begins(Lba(lba), sectors, version, now);
            let write = Written { version, from: now, until: SimTime::NEVER, lost: false };
            range.for_each(|sector| plain.of(sector).push(write));
        }
        in_flight.push((lba, sectors, version, now));
    }

    fn end(
        (model, plain, in_flight): (&mut ReferenceModel, &mut BySector, &mut InFlight),
        at: usize,
        now: SimTime,
    ) {
        let (lba, sectors, version, _) = in_flight.remove(at);
        let range = lba..lba + u64::from(sectors);
        let oldest = in_flight.iter().map(|request| request.3).min().unwrap_or(now);
        if version == 0 {
            model.trim_ends(Lba(lba), sectors, now);
            let trim = (range.start, range.end);
            let at = plain.trims.iter().position(|other| *other == trim).expect("in flight");
            plain.trims.remove(at);
            range.for_each(|sector| zero_from(plain.of(sector), now));
        } else {
            model.write_ends(Lba(lba), sectors, version, now, oldest);
            let of_version = |write: &&mut Written| write.version == version;
            for sector in range {
                let write = plain.of(sector).iter_mut().find(of_version);
                write.expect("it began").until = now;
            }
        }
    }

    fn fail_power(
        (model, plain, in_flight): (&mut ReferenceModel, &mut BySector, &mut InFlight),
        now: SimTime,
    ) {
        model.power_cut(now);
        plain.trims.clear();
        for (lba, sectors, version, _) in in_flight.drain(..) {
            for sector in lba..lba + u64::from(sectors) {
                let writes = plain.of(sector);
                match writes.iter_mut().find(|write| version != 0 && write.version == version) {
                    Some(write) => (write.until, write.lost) = (now, true),
                    None => zero_from(writes, now),
                }
            }
        }
    }

    #[test]
    fn pages_allow_what_sectors_by_themselves_would() {
        let mut stream = crate::Stream::new(3, "reference");
        let mut model = ReferenceModel::default();
        let (mut plain, mut in_flight) = (BySector::default(), Vec::new());
        for tick in 1..20_000 {
            let (now, state) = (at(tick), (&mut model, &mut plain, &mut in_flight));
            match stream.below(100) {
                0 => fail_power(state, now),
                1..45 if state.2.len() < 4 => start(state, &mut stream, now),
                45..80 if !state.2.is_empty() => {
                    let number = stream.below(state.2.len() as u64) as usize;
                    end(state, number, now);
                }
                _ => {
                    // A read that started no earlier than the oldest request in flight.
                    let oldest = in_flight.iter().map(|request| request.3.as_ns()).min();
                    let oldest = oldest.unwrap_or(tick);
                    let (lba, began) = (stream.below(45), stream.below(tick + 1 - oldest));
                    let began = at(oldest + began);
                    let valid = plain.valid(lba, began);
                    for got in (0..6).map(|back| model.last_version.saturating_sub(back)) {
                        let page = model.pages.get(lba / 8).unwrap_or_default();
                        let state = model.state(page, (lba % 8) as usize);
                        let accepted = model.check_sector(lba, state, got, began).is_ok();
                        assert_eq!(accepted, valid.contains(&got), "{got} of {valid:?}");
                    }
                    let got = valid[stream.below(valid.len() as u64) as usize];
                    model.check_read(Lba(lba), &[got], began).expect("a valid version");
                    if !(got == 0 && model.is_being_trimmed(lba, 0)) {
                        resolve_lost(plain.of(lba), got);
                    }
                }
            }
        }
        assert!(model.unsettled.len() < 1_000);
    }

    #[test]
    fn a_trim_in_flight_may_clear_a_write_that_ended_meanwhile() {
        let mut reference = ReferenceModel::default();
        reference.trim_begins(Lba(0), 10);
        let version = reference.next_version();
        reference.write_begins(Lba(5), 1, version, at(2));
        reference.write_ends(Lba(5), 1, version, at(4), at(1));
        assert!(
            sees(&mut reference, 0, 5) && sees(&mut reference, version, 5),
            "the trim may land last"
        );
        reference.trim_ends(Lba(0), 10, at(6));
        assert!(
            sees(&mut reference, 0, 7)
                && sees(&mut reference, version, 7)
                && !sees(&mut reference, 99, 7)
        );
        for ns in 8..100 {
            reference.trim(Lba(0), u32::MAX, at(ns));
        }
        let kept: usize = reference.lists.iter().map(|(_, writes)| writes.len()).sum();
        assert!(kept <= 2, "repeated trims take no memory");
    }

    #[test]
    fn a_power_failure_leaves_the_old_or_the_new_and_a_read_decides() {
        let mut reference = ReferenceModel::default();
        let (old, new) = (reference.next_version(), reference.next_version());
        reference.write_begins(Lba(5), 1, old, at(1));
        reference.write_ends(Lba(5), 1, old, at(2), at(2));
        reference.write_begins(Lba(5), 1, new, at(3));
        reference.power_cut(at(4));
        assert!(!sees(&mut reference, 0, 5), "what was acknowledged is not lost");
        assert!(sees(&mut reference, new, 5));
        assert!(!sees(&mut reference, old, 6), "it was there, and must stay");
        let after = reference.next_version();
        reference.write_begins(Lba(5), 1, after, at(7));
        reference.write_ends(Lba(5), 1, after, at(8), at(8));
        assert!(sees(&mut reference, after, 9) && !sees(&mut reference, new, 9));
    }
}
