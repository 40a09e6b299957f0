//! Requests of one size with a given share of reads and of sequential requests: a point of the
//! sweeps of flashsim, Figure 5.

use super::addresses::RegionParameters;
use super::arrivals::{self, Limits, build_workload};
use super::histogram::{Histogram, Sizes};
use super::uniform::Blocks;
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::param::{Built, Kind};
use hybridsim_config::registry::Description;
use hybridsim_engine::Source;

hybridsim_config::params! {
    struct Parameters includes {
        arrivals: arrivals::Parameters,
        region: RegionParameters,
        blocks: Blocks,
    } {
        sequential: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.2",
            "Share of requests contiguous with the previous one of the same direction. The default \
             is the 80 % random write of Figure 5(c).";
    }
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let (region, block, _) = params.blocks.within(input, &params.region, &mut problems);
    let random = 1.0 - params.sequential;
    let read = params.blocks.read;
    let generator = problems.is_empty().then(|| {
        let sizes = Sizes::new(&[(block, 1.0)]);
        Histogram::new(region, sizes, random, read, block, input.stream("requests"))
    });
    build_workload(input, &params.arrivals, generator, Limits::NONE, None, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "sweep",
        summary: "Requests of one size with a given share of sequential ones.",
        origin: "flashsim, Figure 5 (workload recipe W7)",
        params: Parameters::PARAMS,
    },
    build,
};
