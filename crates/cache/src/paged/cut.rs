//! Cuts a request into runs, each contiguous on one of the two media.

use super::cache::Cache;

/// Which medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// The cache.
    Flash = 0,
    /// The backing store.
    Disk = 1,
}

/// A part of a request that goes to one medium as one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where it goes.
    pub medium: Medium,
    /// First sector there.
    pub at: u64,
    /// How long it is.
    pub sectors: u32,
    /// Sectors of the request before it.
    pub skip: u32,
}

/// How to cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Every sector where it is newest.
    Read,
    /// Every sector of a cached page to flash, the others to the disk.
    Write,
    /// As [`Cut::Write`], pages apart.
    WritePages,
    /// Cached sectors only, where they are in flash.
    Cached,
    /// Cached sectors only, where they belong on the disk.
    Destage,
}

/// Puts the runs of sectors `lba..lba + sectors` into `runs`.
pub fn cut(cache: &Cache, lba: u64, sectors: u32, how: Cut, runs: &mut Vec<Run>) {
    runs.clear();
    let size = cache.page_sectors;
    let end = lba + u64::from(sectors);
    let mut at = lba;
    while at < end {
        let (page, from) = (at / size, at % size);
        let to = size.min(from + (end - at));
        cut_page(cache, page, (from, to), (at - lba) as u32, how, runs);
        at += to - from;
    }
}

fn cut_page(
    cache: &Cache,
    page: u64,
    (from, to): (u64, u64),
    skip: u32,
    how: Cut,
    runs: &mut Vec<Run>,
) {
    let disk = page * cache.page_sectors;
    let Some(slot) = cache.find(page) else {
        if !matches!(how, Cut::Cached | Cut::Destage) {
            let sectors = (to - from) as u32;
            push(runs, Run { medium: Medium::Disk, at: disk + from, sectors, skip }, true);
        }
        return;
    };
    let flash = u64::from(slot) * cache.page_sectors;
    if matches!(how, Cut::Write | Cut::WritePages) {
        let run =
            Run { medium: Medium::Flash, at: flash + from, sectors: (to - from) as u32, skip };
        push(runs, run, how == Cut::Write);
        return;
    }
    let valid = cache.slot(slot).valid;
    let mut at = from;
    while at < to {
        let rest = valid >> at;
        let cached = rest & 1 == 1;
        let length = if cached { rest.trailing_ones() } else { rest.trailing_zeros() };
        let stop = to.min(at + u64::from(length));
        let place = match (how, cached) {
            (Cut::Read | Cut::Cached, true) => Some((Medium::Flash, flash)),
            (Cut::Read, false) | (Cut::Destage, true) => Some((Medium::Disk, disk)),
            _ => None,
        };
        if let Some((medium, base)) = place {
            let sectors = (stop - at) as u32;
            let skip = skip + (at - from) as u32;
            push(runs, Run { medium, at: base + at, sectors, skip }, true);
        }
        at = stop;
    }
}

/// Adds a run, to the one before if it goes on there.
fn push(runs: &mut Vec<Run>, run: Run, merge: bool) {
    if let Some(last) = runs.last_mut() {
        let goes_on = last.medium == run.medium
            && last.at + u64::from(last.sectors) == run.at
            && last.skip + last.sectors == run.skip;
        if merge && goes_on {
            last.sectors += run.sectors;
            return;
        }
    }
    runs.push(run);
}

#[cfg(test)]
mod tests {
    use super::*;
    use Medium::{Disk, Flash};

    /// Pages of 8 sectors: page 1 in slot 0 whole, page 2 in slot 1 but for its sectors 2 and 3.
    fn cache() -> Cache {
        let mut cache = Cache::new(8, 4);
        let first = cache.add(1);
        cache.mark(first, 0, 8);
        let second = cache.add(2);
        cache.mark(second, 0, 8);
        cache.unmark(second, 2, 4);
        cache
    }

    fn check(how: Cut, lba: u64, sectors: u32, expect: &[(Medium, u64, u32, u32)]) {
        let mut runs = Vec::new();
        cut(&cache(), lba, sectors, how, &mut runs);
        let got: Vec<_> =
            runs.iter().map(|run| (run.medium, run.at, run.sectors, run.skip)).collect();
        assert_eq!(got, expect, "{how:?} of {sectors} sectors at {lba}");
    }

    #[test]
    fn runs_follow_the_newest_data() {
        check(Cut::Read, 0, 8, &[(Disk, 0, 8, 0)]);
        check(Cut::Read, 4, 8, &[(Disk, 4, 4, 0), (Flash, 0, 4, 4)]);
        let whole = [(Disk, 0, 8, 0), (Flash, 0, 10, 8), (Disk, 18, 2, 18), (Flash, 12, 4, 20)];
        check(Cut::Read, 0, 24, &whole);
        check(Cut::Read, 18, 1, &[(Disk, 18, 1, 0)]);
        check(Cut::Read, 24, 100, &[(Disk, 24, 100, 0)]);
    }

    #[test]
    fn writes_go_where_the_page_is() {
        check(Cut::Write, 6, 20, &[(Disk, 6, 2, 0), (Flash, 0, 16, 2), (Disk, 24, 2, 18)]);
        let apart = [(Disk, 6, 2, 0), (Flash, 0, 8, 2), (Flash, 8, 8, 10), (Disk, 24, 2, 18)];
        check(Cut::WritePages, 6, 20, &apart);
    }

    #[test]
    fn cleaning_moves_cached_sectors_only() {
        check(Cut::Cached, 8, 16, &[(Flash, 0, 10, 0), (Flash, 12, 4, 12)]);
        check(Cut::Destage, 8, 16, &[(Disk, 8, 10, 0), (Disk, 20, 4, 12)]);
        check(Cut::Destage, 0, 8, &[]);
    }

    #[test]
    fn pages_of_one_and_of_64_sectors_work() {
        for size in [1, 64] {
            let mut cache = Cache::new(size, 2);
            let slot = cache.add(3);
            cache.mark(slot, 0, size);
            let mut runs = Vec::new();
            cut(&cache, 2 * size, 3 * size as u32, Cut::Read, &mut runs);
            let media: Vec<_> = runs.iter().map(|run| (run.medium, run.at / size)).collect();
            assert_eq!(media, [(Disk, 2), (Flash, 0), (Disk, 4)]);
            assert!(cache.unmark(slot, 0, size));
        }
    }
}
