//! The host manages the bands: zones that have to be written in order.

use super::{ManagementEntry, Placement, ZoneParameters, result};
use hybridsim_config::registry::Description;

pub(super) const ENTRY: ManagementEntry = ManagementEntry {
    description: Description {
        name: "host-managed",
        summary: "Zones that have to be written in order: other writes are refused.",
        origin: "INCITS 536, Zoned Block Commands (ZBC): sequential write required zones",
        params: ZoneParameters::PARAMS,
    },
    parts: |settings| {
        let mut problems = Vec::new();
        let params = ZoneParameters::from_settings(settings);
        result(params.parts(Placement::Required, &mut problems), problems)
    },
};
