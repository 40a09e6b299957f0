//! DiskSim's default ASCII format: `time device block size flags`.

use super::five::{Evidence, Five, Last, Unit, shift_of};
use super::lines::open_lines;
use super::{Confidence, FormatEntry, Head, choice, time_unit};
use hybridsim_config::param::Param;
use hybridsim_config::registry::Description;

const TIME_UNIT: Param = time_unit("\"ms\"");

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "disksim",
        summary: "DiskSim ASCII: time in ms, device, first sector, sectors, flags in hexadecimal.",
        origin: "DiskSim 4.0 reference manual, section on input traces",
        params: &[TIME_UNIT],
    },
    sniff,
    open: |opening| {
        let shift = shift_of(choice(&opening.settings, &TIME_UNIT));
        open_lines(opening, Five { shift, size: Unit::Sectors, last: Last::HexFlags })
    },
    same_as: &["replayer-sectors"],
    sample: b"13.190000\t30\t0\t5\t1\n17.820000\t20\t57001\t6\t1\n25.910000\t18\t28600\t12\t1c\n",
};

fn sniff(head: &Head<'_>) -> Confidence {
    let evidence = Evidence::of(head);
    match evidence.fits() {
        false => Confidence::No,
        true if evidence.whole_times || evidence.bad > 0 => Confidence::Possible,
        true if evidence.byte_like || !evidence.sectors() => Confidence::Possible,
        true => Confidence::Likely,
    }
}
