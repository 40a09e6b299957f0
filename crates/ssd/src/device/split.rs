//! Requests split at page boundaries.

use hybridsim_engine::Request;
use hybridsim_flash::event::Cause;
use hybridsim_flash::ftl::{Ftl, Hint};
use hybridsim_flash::geometry::Lpn;
use hybridsim_flash::ops::{After, FlashOps};
use std::ops::Range;

/// The part of a request that lies in one page.
#[derive(Clone, Copy, Debug)]
pub struct PagePart {
    pub lpn: Lpn,
    /// Sectors of the request before this part.
    pub skip: u32,
    /// First sector within the page.
    pub offset: u32,
    pub sectors: u32,
}

impl PagePart {
    /// All of `request`, if it is one whole page.
    #[inline]
    pub fn whole(request: &Request, sectors_per_page: u32) -> Option<Self> {
        if request.sectors != sectors_per_page {
            return None;
        }
        let (page, offset) = first_page(request, sectors_per_page);
        let part = Self { lpn: Lpn(page as u32), skip: 0, offset, sectors: sectors_per_page };
        (offset == 0).then_some(part)
    }

    /// The sectors within the page.
    pub const fn range(&self) -> Range<usize> {
        self.offset as usize..(self.offset + self.sectors) as usize
    }

    /// Before a write: where the part does not cover its page and the page holds data, reads the
    /// page for the rest, for which the write waits. Returns whether it did.
    #[inline]
    pub fn read_rest(
        &self,
        ftl: &mut dyn Ftl,
        flash: &mut FlashOps,
        sectors_per_page: u32,
    ) -> bool {
        if self.sectors == sectors_per_page || !ftl.holds(self.lpn, flash) {
            return false;
        }
        flash.set_host_cause(Cause::Partial);
        ftl.read(self.lpn, flash);
        flash.set_host_cause(Cause::Host);
        let read = flash.list().iter().rposition(|op| op.cause == Cause::Partial);
        flash.host_waits_for(read.map_or(After::NOTHING, After::index_of));
        true
    }
}

/// The page of the first sector of `request`, and its first sector there.
#[inline]
pub fn first_page(request: &Request, sectors_per_page: u32) -> (u64, u32) {
    let (first, per_page) = (request.lba.0, u64::from(sectors_per_page));
    // Pages of almost all devices are a power of two, and a division is slow.
    let (page, sector) = match per_page.is_power_of_two() {
        true => (first >> per_page.trailing_zeros(), first & (per_page - 1)),
        false => (first / per_page, first % per_page),
    };
    (page, sector as u32)
}

/// Splits `request` at page boundaries.
#[inline]
pub fn split(request: &Request, sectors_per_page: u32) -> impl Iterator<Item = PagePart> + use<> {
    let (total, per_page) = (request.sectors, sectors_per_page);
    let (first, mut offset) = first_page(request, sectors_per_page);
    let (mut lpn, mut skip) = (Lpn(first as u32), 0);
    std::iter::from_fn(move || {
        if skip >= total {
            return None;
        }
        let sectors = (per_page - offset).min(total - skip);
        let part = PagePart { lpn, skip, offset, sectors };
        (lpn, offset) = (Lpn(lpn.0.wrapping_add(1)), 0);
        skip += sectors;
        Some(part)
    })
}

/// The pages that a write request touches.
pub struct WriteRun {
    pages: u32,
    /// The first page behind those written in full.
    whole_end: Lpn,
    handle: u8,
}

impl WriteRun {
    #[inline]
    pub fn new(request: &Request, sectors_per_page: u32) -> Self {
        let (first, offset) = first_page(request, sectors_per_page);
        let end = u64::from(offset) + u64::from(request.sectors);
        let per_page = u64::from(sectors_per_page);
        let pages = if end <= per_page { 1 } else { end.div_ceil(per_page) };
        let whole_end = first + pages - u64::from(end != pages * per_page);
        let (pages, whole_end) = (pages as u32, Lpn(whole_end as u32));
        Self { pages, whole_end, handle: request.flags.handle() }
    }

    /// Properties of the request for the write of its page `lpn`.
    #[inline]
    pub fn hint(&self, lpn: Lpn) -> Hint {
        let whole_pages = self.whole_end.0.saturating_sub(lpn.0);
        Hint { request_pages: self.pages, whole_pages, handle: self.handle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::{Lba, Op};

    #[test]
    fn parts_lie_end_to_end_in_pages() {
        for per_page in [1, 3, 8, 24, 32] {
            let whole = [(0, 8), (16, 8), (5, 8), (96, 24), (7, 32)];
            let others = [(0, 1), (7, 2), (5, 100), (1 << 33, 64), (1_000_003, 31)];
            for (lba, sectors) in whole.into_iter().chain(others) {
                let request = Request::new(Op::Write, Lba(lba), sectors);
                let parts: Vec<PagePart> = split(&request, per_page).collect();
                let mut at = lba;
                for part in &parts {
                    let page = at / u64::from(per_page);
                    let offset = at % u64::from(per_page);
                    assert_eq!((part.lpn.0, u64::from(part.offset)), (page as u32, offset));
                    assert_eq!(u64::from(part.skip), at - lba);
                    assert!(part.sectors > 0 && part.offset + part.sectors <= per_page);
                    at += u64::from(part.sectors);
                }
                assert_eq!(at, lba + u64::from(sectors));
                let run = WriteRun::new(&request, per_page);
                let whole = PagePart::whole(&request, per_page);
                assert_eq!(whole.is_some(), lba % u64::from(per_page) == 0 && sectors == per_page);
                let fields = |it: &PagePart| (it.lpn, it.skip, it.offset, it.sectors);
                let first = fields(&parts[0]);
                assert!(whole.is_none_or(|it| parts.len() == 1 && fields(&it) == first));
                let last_partial = !at.is_multiple_of(u64::from(per_page));
                let mut whole = parts.len() as u32 - u32::from(last_partial);
                for part in &parts {
                    let hint = run.hint(part.lpn);
                    assert_eq!(hint.request_pages as usize, parts.len());
                    assert_eq!(hint.whole_pages, whole);
                    whole = whole.saturating_sub(1);
                }
            }
        }
    }
}
