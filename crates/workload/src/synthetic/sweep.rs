//! Requests of one size with a given share of reads and of sequential requests: a point of the
//! sweeps of flashsim, Figure 5.

use super::addresses::{REGION, Region, sectors_of};
use super::arrivals::{LIMITS_AND_ARRIVALS, Limits, build_workload};
use super::histogram::{Histogram, Sizes};
use super::uniform::{BLOCK, READ};
use super::{GeneratorEntry, GeneratorInput, params};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::Source;

const SEQUENTIAL: Param = Param::with(
    "sequential",
    Kind::Number { min: 0.0, max: 1.0 },
    "0.2",
    "Share of requests contiguous with the previous one of the same direction. The default is the \
     80 % random write of Figure 5(c).",
);

fn build(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let mut problems = Vec::new();
    let block = sectors_of(input, "block", &mut problems);
    let region = Region::from_settings(input, u64::from(block), &mut problems);
    let random = 1.0 - input.settings.number("sequential");
    let read = input.settings.number("read");
    let generator = problems.is_empty().then(|| {
        let sizes = Sizes::new(&[(block, 1.0)]);
        Histogram::new(region, sizes, random, read, block, input.stream("requests"))
    });
    build_workload(input, generator, Limits::NONE, None, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "sweep",
        summary: "Requests of one size with a given share of sequential ones.",
        origin: "flashsim, Figure 5 (workload recipe W7)",
        params: params![LIMITS_AND_ARRIVALS, REGION, &[BLOCK, READ, SEQUENTIAL]],
    },
    build,
};
