//! d choices: the block with the fewest valid pages of `d` blocks drawn at random.
//!
//! Blocks are drawn with replacement, as in the analysis; ties are broken evenly. The lowest of `d`
//! ranks drawn among the candidates sorted by valid pages has the same distribution, and touches
//! one block only.

use super::drawn::{DrawRank, Drawn};
use super::{BuiltPolicy, GcEntry, GcInput, SEARCH};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::Stream;
use serde::{Deserialize, Serialize};

pub const ENTRY: GcEntry = GcEntry {
    description: Description {
        name: "d-choices",
        summary: "Collects the block with the fewest valid pages of d blocks drawn at random.",
        origin: "Van Houdt, SIGMETRICS 2013; Li, Lee and Lui, SIGMETRICS 2013",
        params: Parameters::PARAMS,
    },
    provides: &[SEARCH],
    build,
};

hybridsim_config::params! {
    struct Parameters {
        choices: u32 = Kind::Count { min: 1, max: 4096 }, default "10",
            "Blocks drawn (d); 1 is a random victim, large values approach greedy.";
    }
}

#[derive(Serialize, Deserialize)]
struct Choices(u32);

fn build(input: &GcInput<'_>) -> BuiltPolicy {
    let params = Parameters::from_settings(input.settings);
    Ok(Box::new(Drawn::new(input, Choices(params.choices))))
}

impl DrawRank for Choices {
    fn draw(&self, candidates: u32, stream: &mut Stream) -> (u32, u32) {
        let ranks = (0..self.0).map(|_| stream.below(u64::from(candidates)) as u32);
        (ranks.min().expect("at least one is drawn"), self.0)
    }
}
