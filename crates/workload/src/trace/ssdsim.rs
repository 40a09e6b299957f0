//! SSDsim's ASCII traces: as MQSim's, always in nanoseconds.

use super::five::{Five, Last, Unit, shift_of};
use super::lines::open_lines;
use super::mqsim::sniff_whole_times;
use super::{FormatEntry, choice, time_unit};
use hybridsim_config::param::Param;
use hybridsim_config::registry::Description;

const TIME_UNIT: Param = time_unit("\"ns\"");

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "ssdsim",
        summary: "SSDsim ASCII: time in ns, device, first sector, sectors, 1 read or 0 write.",
        origin: "SSDsim (Hu et al., ICS 2011)",
        params: &[TIME_UNIT],
    },
    sniff: sniff_whole_times,
    open: |opening| {
        let shift = shift_of(choice(&opening.settings, &TIME_UNIT));
        open_lines(opening, Five { shift, size: Unit::Sectors, last: Last::OneIsRead })
    },
    same_as: &["mqsim"],
    sample: b"0 0 4000 7 0\n0 1 90 6 0\n30000000 0 4007 7 1\n",
};
