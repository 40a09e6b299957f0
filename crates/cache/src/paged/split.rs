//! Splits a request into sub-requests, each contiguous on one of the two media.

use super::directory::PageDirectory;

/// The media behind a controller, by child number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// The cache.
    Flash = 0,
    /// The backing store.
    Disk = 1,
}

/// A part of a request that is issued to one medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubRequest {
    pub medium: Medium,
    /// First sector on the medium.
    pub at: u64,
    pub sectors: u32,
    /// Offset in the request, in sectors.
    pub skip: u32,
}

/// Which sectors of a request go to which medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Every sector to the medium with its newest version.
    Read,
    /// Every sector of a cached page to flash, the others to the disk.
    Write,
    /// As [`Split::Write`], one sub-request per cached page.
    WritePages,
    /// Valid sectors of cached pages, at their flash addresses.
    Cached,
    /// Valid sectors of cached pages, at their disk addresses.
    Destage,
}

/// Splits sectors `lba..lba + sectors` into `parts`.
pub fn split(
    cache: &PageDirectory,
    lba: u64,
    sectors: u32,
    how: Split,
    parts: &mut Vec<SubRequest>,
) {
    parts.clear();
    let size = cache.page_sectors;
    let end = lba + u64::from(sectors);
    let mut at = lba;
    while at < end {
        let (page, from) = (at / size, at % size);
        let to = size.min(from + (end - at));
        split_page(cache, page, (from, to), (at - lba) as u32, how, parts);
        at += to - from;
    }
}

fn split_page(
    cache: &PageDirectory,
    page: u64,
    (from, to): (u64, u64),
    skip: u32,
    how: Split,
    parts: &mut Vec<SubRequest>,
) {
    let disk = page * cache.page_sectors;
    let Some(slot) = cache.find(page) else {
        if !matches!(how, Split::Cached | Split::Destage) {
            let sectors = (to - from) as u32;
            push(parts, SubRequest { medium: Medium::Disk, at: disk + from, sectors, skip }, true);
        }
        return;
    };
    let flash = u64::from(slot) * cache.page_sectors;
    if matches!(how, Split::Write | Split::WritePages) {
        let part = SubRequest {
            medium: Medium::Flash,
            at: flash + from,
            sectors: (to - from) as u32,
            skip,
        };
        push(parts, part, how == Split::Write);
        return;
    }
    let valid = cache.slot(slot).valid;
    let mut at = from;
    while at < to {
        let rest = valid >> at;
        let cached = rest & 1 == 1;
        let length = if cached { rest.trailing_ones() } else { rest.trailing_zeros() };
        let stop = to.min(at + u64::from(length));
        let target = match (how, cached) {
            (Split::Read | Split::Cached, true) => Some((Medium::Flash, flash)),
            (Split::Read, false) | (Split::Destage, true) => Some((Medium::Disk, disk)),
            _ => None,
        };
        if let Some((medium, base)) = target {
            let sectors = (stop - at) as u32;
            let skip = skip + (at - from) as u32;
            push(parts, SubRequest { medium, at: base + at, sectors, skip }, true);
        }
        at = stop;
    }
}

/// Adds a sub-request, or extends the last one if contiguous with it.
fn push(parts: &mut Vec<SubRequest>, part: SubRequest, merge: bool) {
    if let Some(last) = parts.last_mut() {
        let contiguous = last.medium == part.medium
            && last.at + u64::from(last.sectors) == part.at
            && last.skip + last.sectors == part.skip;
        if merge && contiguous {
            last.sectors += part.sectors;
            return;
        }
    }
    parts.push(part);
}

#[cfg(test)]
mod tests {
    use super::*;
    use Medium::{Disk, Flash};

    /// Pages of 8 sectors: all of page 1 in slot 0, page 2 in slot 1 except its sectors 2 and 3.
    fn cache() -> PageDirectory {
        let mut cache = PageDirectory::new(8, 4);
        let first = cache.add(1);
        cache.mark(first, 0, 8);
        let second = cache.add(2);
        cache.mark(second, 0, 8);
        cache.unmark(second, 2, 4);
        cache
    }

    fn check(how: Split, lba: u64, sectors: u32, expect: &[(Medium, u64, u32, u32)]) {
        let mut parts = Vec::new();
        split(&cache(), lba, sectors, how, &mut parts);
        let got: Vec<_> =
            parts.iter().map(|part| (part.medium, part.at, part.sectors, part.skip)).collect();
        assert_eq!(got, expect, "{how:?} of {sectors} sectors at {lba}");
    }

    #[test]
    fn runs_follow_the_newest_data() {
        check(Split::Read, 0, 8, &[(Disk, 0, 8, 0)]);
        check(Split::Read, 4, 8, &[(Disk, 4, 4, 0), (Flash, 0, 4, 4)]);
        let whole = [(Disk, 0, 8, 0), (Flash, 0, 10, 8), (Disk, 18, 2, 18), (Flash, 12, 4, 20)];
        check(Split::Read, 0, 24, &whole);
        check(Split::Read, 18, 1, &[(Disk, 18, 1, 0)]);
        check(Split::Read, 24, 100, &[(Disk, 24, 100, 0)]);
    }

    #[test]
    fn writes_go_where_the_page_is() {
        check(Split::Write, 6, 20, &[(Disk, 6, 2, 0), (Flash, 0, 16, 2), (Disk, 24, 2, 18)]);
        let apart = [(Disk, 6, 2, 0), (Flash, 0, 8, 2), (Flash, 8, 8, 10), (Disk, 24, 2, 18)];
        check(Split::WritePages, 6, 20, &apart);
    }

    #[test]
    fn destaging_moves_valid_sectors_only() {
        check(Split::Cached, 8, 16, &[(Flash, 0, 10, 0), (Flash, 12, 4, 12)]);
        check(Split::Destage, 8, 16, &[(Disk, 8, 10, 0), (Disk, 20, 4, 12)]);
        check(Split::Destage, 0, 8, &[]);
    }

    #[test]
    fn pages_of_one_and_of_64_sectors_work() {
        for size in [1, 64] {
            let mut cache = PageDirectory::new(size, 2);
            let slot = cache.add(3);
            cache.mark(slot, 0, size);
            let mut parts = Vec::new();
            split(&cache, 2 * size, 3 * size as u32, Split::Read, &mut parts);
            let media: Vec<_> = parts.iter().map(|part| (part.medium, part.at / size)).collect();
            assert_eq!(media, [(Disk, 2), (Flash, 0), (Disk, 4)]);
            assert!(cache.unmark(slot, 0, size));
        }
    }
}
