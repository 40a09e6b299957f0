//! MQSim's ASCII traces: `time device sector size type`.

use super::five::{Evidence, Five, Last, Unit, shift_of};
use super::lines::open_lines;
use super::{Confidence, FormatEntry, Head, choice, time_unit};
use hybridsim_config::param::Param;
use hybridsim_config::registry::Description;

/// The unit stands in MQSim's workload file, not in the trace; the traces shipped use ns.
const TIME_UNIT: Param = time_unit("\"ns\"");

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "mqsim",
        summary: "MQSim ASCII: time (ns unless told otherwise), device, first sector, sectors, \
                  1 read or 0 write.",
        origin: "MQSim (FAST 2018), trace-based IO flows",
        params: &[TIME_UNIT],
    },
    sniff: sniff_whole_times,
    open: |opening| {
        let shift = shift_of(choice(&opening.settings, &TIME_UNIT));
        open_lines(opening, Five { shift, size: Unit::Sectors, last: Last::OneIsRead })
    },
    same_as: &["ssdsim"],
    sample: b"938000000 4 26470 16 0\n938500000 3 19757 16 0\n938900000 13 93230 32 1\n",
};

/// Whole numbers as times: nanoseconds, not DiskSim's milliseconds.
pub(super) fn sniff_whole_times(head: &Head<'_>) -> Confidence {
    let evidence = Evidence::of(head);
    match evidence.fits() && evidence.plain_ops {
        false => Confidence::No,
        true if evidence.whole_times && evidence.bad == 0 => Confidence::Likely,
        true if evidence.whole_times => Confidence::Possible,
        true => Confidence::No,
    }
}
