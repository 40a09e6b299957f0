//! RAID level 10: chunks are striped over groups of members that hold copies of the same data.

use super::mirror;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Built, Kind};
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "raid10",
        summary: "RAID 10: chunks are striped over groups of members that mirror each other",
        origin: "common knowledge (stripe of mirrors); read choices as in DiskSim 4",
        params: Parameters::PARAMS,
    },
    build,
);

hybridsim_config::params! {
    struct Parameters includes { mirror: mirror::Parameters } {
        copies: usize = Kind::Count { min: 1, max: 64 }, default "2",
            "Members in a group: neighbours in `members`, whose number must be a multiple of it";
        chunk: u64 = Kind::Bytes, default "\"64KiB\"",
            "Contiguous bytes on one member (stripe unit)";
    }
}

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    let groups = Some((params.copies, params.chunk));
    mirror::build(ENTRY.description.name, input, &params.mirror, groups)
}
