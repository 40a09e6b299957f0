//! Requests split at page boundaries.

use crate::ftl::WriteRun;
use crate::geometry::Lpn;
use hybridsim_engine::Request;

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

/// Splits `request` at page boundaries.
pub fn split(request: &Request, sectors_per_page: u32) -> impl Iterator<Item = PagePart> + use<> {
    let (first, total, per_page) = (request.lba.0, request.sectors, sectors_per_page);
    let mut skip = 0;
    std::iter::from_fn(move || {
        if skip >= total {
            return None;
        }
        let at = first + u64::from(skip);
        let offset = (at % u64::from(per_page)) as u32;
        let sectors = (per_page - offset).min(total - skip);
        let lpn = Lpn((at / u64::from(per_page)) as u32);
        let part = PagePart { lpn, skip, offset, sectors };
        skip += sectors;
        Some(part)
    })
}

/// The pages that `request` writes in whole or in part.
pub fn write_run(request: &Request, sectors_per_page: u32) -> WriteRun {
    let per_page = u64::from(sectors_per_page);
    let first = request.lba.0 / per_page;
    let last = (request.end().0 - 1) / per_page;
    WriteRun {
        first: Lpn(first as u32),
        pages: (last - first + 1) as u32,
        last_whole: request.end().0.is_multiple_of(per_page),
    }
}
