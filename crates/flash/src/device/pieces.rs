//! Requests cut into pages.

use crate::ftl::{Ftl, FtlError, Hint, WriteRun};
use crate::geometry::Lpn;
use crate::ops::FlashOps;
use hybridsim_engine::{Op, Request};

/// The part of a request that lies in one page.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub lpn: Lpn,
    /// Sectors of the request before it.
    pub skip: u32,
    /// First sector within the page.
    pub offset: u32,
    pub sectors: u32,
}

/// Cuts `request` at page boundaries.
pub fn pieces(request: &Request, sectors_per_page: u32) -> impl Iterator<Item = Piece> + use<> {
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
        let piece = Piece { lpn, skip, offset, sectors };
        skip += sectors;
        Some(piece)
    })
}

/// The pages that `request` writes, partly or whole.
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

/// Has `ftl` do what `request` asks for, page by page as a run would, but without a clock.
pub fn serve_untimed(
    ftl: &mut dyn Ftl,
    flash: &mut FlashOps,
    request: &Request,
    sectors_per_page: u32,
) -> Result<(), FtlError> {
    if request.op == Op::Flush {
        return Ok(());
    }
    let run = write_run(request, sectors_per_page);
    if request.op == Op::Write {
        ftl.begin_write(run);
    }
    let hint = Hint { request_pages: run.pages };
    pieces(request, sectors_per_page).try_for_each(|piece| {
        let whole = piece.sectors == sectors_per_page;
        match request.op {
            Op::Write => {
                if !whole && ftl.holds(piece.lpn, flash) {
                    ftl.read(piece.lpn, flash);
                }
                ftl.write(piece.lpn, hint, flash)
            }
            Op::Read => {
                ftl.read(piece.lpn, flash);
                Ok(())
            }
            Op::Trim if whole => ftl.trim(piece.lpn, flash),
            Op::Trim | Op::Flush => Ok(()),
        }
    })
}
