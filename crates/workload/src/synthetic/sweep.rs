//! One size, one direction or a mix, and a given share of sequential requests: a point of the
//! sweeps of flashsim, Figure 5.

use super::histogram::{Histogram, Sizes};
use super::pace::{BYTES, DURATION, INTERARRIVAL, Limits, REQUESTS, finish};
use super::place::{Region, SIZE, START, sectors_of};
use super::uniform::{BLOCK, READ};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::Source;

const SEQUENTIAL: Param = Param::with(
    "sequential",
    Kind::Number { min: 0.0, max: 1.0 },
    "0.2",
    "Share of requests that follow the one before of the same direction. The default is the 80 % \
     random write of Figure 5(c).",
);

fn build(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let mut problems = Vec::new();
    let block = sectors_of(input, "block", &mut problems);
    let region = Region::read(input, u64::from(block), &mut problems);
    let random = 1.0 - input.settings.number("sequential");
    let read = input.settings.number("read");
    let generator = problems.is_empty().then(|| {
        let sizes = Sizes::new(&[(block, 1.0)]);
        Histogram::new(region, sizes, random, read, block, input.stream("requests"))
    });
    finish(input, generator, Limits::NONE, None, problems)
}

/// The generator.
pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "sweep",
        summary: "Requests of one size, a given share of them sequential.",
        origin: "flashsim, Figure 5 (workload recipe W7)",
        params: &[REQUESTS, BYTES, DURATION, INTERARRIVAL, START, SIZE, BLOCK, READ, SEQUENTIAL],
    },
    build,
};
