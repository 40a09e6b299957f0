//! The drive manages its bands, and the host sees an ordinary disk.

use super::{CacheParameters, ManagementEntry, Parts, Placement, band, result, sectors};
use crate::smr::streams::StreamRule;
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::SimDuration;

pub(super) const ENTRY: ManagementEntry = ManagementEntry {
    description: Description {
        name: "drive-managed",
        summary: "An ordinary disk to the host: streams go to their bands, other writes to the \
                  persistent cache.",
        origin: "A. Aghayev and P. Desnoyers, Skylight, FAST 2015",
        params: Parameters::PARAMS,
    },
    parts: |settings| {
        let params = Parameters::from_settings(settings);
        let mut problems = Vec::new();
        let band = band("band_size", params.band_size, &mut problems);
        let sectors_min = sectors("stream_min", params.stream_min, &mut problems);
        let cache = params.cache.parts(band, &mut problems);
        let parts = Parts {
            placement: Placement::Streams(StreamRule { sectors_min, streams: params.streams }),
            band,
            conventional: 0,
            open_max: None,
            // Only for a write that fails because no band can be cleaned.
            command_time: SimDuration::from_ns(1),
            fill: params.precondition_fill,
            cache: Some(cache),
        };
        result(parts, problems)
    },
};

hybridsim_config::params! {
    struct Parameters includes { cache: CacheParameters } {
        band_size: u64 = Kind::Bytes, default "\"30MiB\"",
            "Size of a band, in whole physical sectors of 4 KiB. Each has a fixed place.";
        stream_min: u64 = Kind::Bytes, default "\"1MiB\"",
            "Consecutive writes bypass the cache when they are as long as this together. Assumed.";
        streams: usize = Kind::Count { min: 1, max: 1024 }, default "4",
            "Sequences of consecutive writes that the drive follows. Assumed.";
        precondition_fill: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "1",
            "Share of the bands that hold data before the run, from the first on; others are \
             cleaned without being read.";
    }
}
