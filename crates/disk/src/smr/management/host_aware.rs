//! The drive has zones, and takes writes that are not in their order.

use super::{CacheParameters, ManagementEntry, Placement, ZoneParameters, result};
use hybridsim_config::registry::Description;

pub(super) const ENTRY: ManagementEntry = ManagementEntry {
    description: Description {
        name: "host-aware",
        summary: "Zones to be written in order: other writes go to the persistent cache.",
        origin: "INCITS 536, Zoned Block Commands (ZBC): sequential write preferred zones",
        params: Parameters::PARAMS,
    },
    parts: |settings| {
        let params = Parameters::from_settings(settings);
        let mut problems = Vec::new();
        let mut parts = params.zones.parts(Placement::Preferred, &mut problems);
        parts.cache = Some(params.cache.parts(parts.band, &mut problems));
        result(parts, problems)
    },
};

hybridsim_config::params! {
    struct Parameters includes { zones: ZoneParameters, cache: CacheParameters } {}
}
