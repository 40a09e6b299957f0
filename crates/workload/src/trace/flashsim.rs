//! FlashSim's traces: DiskSim's columns, but with sizes in pages while addresses stay in sectors.

use super::five::{Evidence, Five, Last, Unit, shift_of};
use super::lines::open_lines;
use super::{Confidence, FormatEntry, Head, choice, time_unit};
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Description;
use hybridsim_engine::SECTOR_BYTES;

const TIME_UNIT: Param = time_unit("\"ms\"");
const PAGE: Param = Param::with(
    "page_bytes",
    Kind::Bytes,
    "\"4KiB\"",
    "Unit of the sizes: a multiple of 512 bytes, up to 1 GiB.",
);
const PAGE_BYTES: u64 = 4096;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "flashsim",
        summary: "FlashSim text: time in ms, device, first sector, size in pages, 1 read or 0 \
                  write.",
        origin: "traces shipped with FlashSim; units found from runs of sequential requests",
        params: &[TIME_UNIT, PAGE],
    },
    sniff,
    open: |opening| {
        let shift = shift_of(choice(&opening.settings, &TIME_UNIT));
        let page_bytes = opening.settings.bytes_opt(PAGE.name).unwrap_or(PAGE_BYTES);
        let size = Unit::Pages(page_bytes / SECTOR_BYTES);
        open_lines(opening, Five { shift, size, last: Last::HexFlags })
    },
    same_as: &[],
    sample: b"0.875000\t0\t7\t1\t1\n1.5\t0\t15\t2\t1\n2.5\t0\t31\t1\t1\n4.5\t0\t39\t3\t0\n",
};

fn sniff(head: &Head<'_>) -> Confidence {
    let evidence = Evidence::of(head);
    match evidence.fits() {
        false => Confidence::No,
        true if evidence.pages() && !evidence.whole_times && evidence.bad == 0 => {
            Confidence::Likely
        }
        true => Confidence::Possible,
    }
}
