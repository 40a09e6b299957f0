//! The text a block-trace replayer for Microsoft production traces takes:
//! `time disk offset size op`, with addresses and sizes in bytes or in sectors.

use super::five::{Evidence, Five, Last, Unit, shift_of};
use super::lines::open_lines;
use super::{Confidence, FormatEntry, Head, choice, time_unit};
use hybridsim_config::param::Param;
use hybridsim_config::registry::Description;

const TIME_UNIT: Param = time_unit("\"ms\"");
const ORIGIN: &str = "cuts of the MSR Cambridge and Microsoft production server traces";

pub(super) const ENTRY_BYTES: FormatEntry = FormatEntry {
    description: Description {
        name: "replayer-bytes",
        summary: "Replayer text: time in ms, disk, offset and size in bytes, 1 read or 0 write.",
        origin: ORIGIN,
        params: &[TIME_UNIT],
    },
    sniff: sniff_bytes,
    open: |opening| {
        let shift = shift_of(choice(&opening.settings, &TIME_UNIT));
        open_lines(opening, Five { shift, size: Unit::Bytes, last: Last::OneIsRead })
    },
    same_as: &[],
    sample: b"0.000 0 2048000 4096 0\n223.400 0 31457280 36864 1\n24290.625 0 512 7680 0\n",
};

pub(super) const ENTRY_SECTORS: FormatEntry = FormatEntry {
    description: Description {
        name: "replayer-sectors",
        summary: "Replayer text: time in ms, disk, offset and size in sectors, 1 read or 0 write.",
        origin: ORIGIN,
        params: &[TIME_UNIT],
    },
    sniff: sniff_sectors,
    open: |opening| {
        let shift = shift_of(choice(&opening.settings, &TIME_UNIT));
        open_lines(opening, Five { shift, size: Unit::Sectors, last: Last::OneIsRead })
    },
    same_as: &["disksim"],
    sample: b"0.000 5 17400 16 1\n0.250 5 16200 16 1\n0.600 5 17488 16 0\n",
};

fn sniff_bytes(head: &Head<'_>) -> Confidence {
    let evidence = Evidence::of(head);
    match evidence.fits() && evidence.plain_ops {
        false => Confidence::No,
        true if evidence.whole_times || evidence.bad > 0 => Confidence::Possible,
        true if evidence.byte_like => Confidence::Likely,
        true => Confidence::Possible,
    }
}

fn sniff_sectors(head: &Head<'_>) -> Confidence {
    let evidence = Evidence::of(head);
    match evidence.fits() && evidence.plain_ops {
        false => Confidence::No,
        true if evidence.whole_times || evidence.bad > 0 => Confidence::Possible,
        true if evidence.byte_like || !evidence.sectors() => Confidence::Possible,
        true => Confidence::Likely,
    }
}
