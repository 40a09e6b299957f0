//! Random: each closed block with the same probability.

use super::GcEntry;
use super::drawn::{DrawRank, Drawn};
use hybridsim_config::registry::Description;
use hybridsim_engine::Stream;
use serde::{Deserialize, Serialize};

pub const ENTRY: GcEntry = GcEntry {
    description: Description {
        name: "random",
        summary: "Collects any block with the same probability, whatever its utilisation.",
        origin: "the lower bound of the analyses; Van Houdt, SIGMETRICS 2013",
        params: &[],
    },
    provides: &[],
    build: |input| Ok(Box::new(Drawn::new(input, Random))),
};

#[derive(Serialize, Deserialize)]
struct Random;

impl DrawRank for Random {
    fn draw(&self, candidates: u32, stream: &mut Stream) -> (u32, u32) {
        (stream.below(u64::from(candidates)) as u32, 0)
    }
}
