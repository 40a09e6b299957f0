//! Cost-benefit: free space gained times block age, over the cost of cleaning.
//!
//! Cleaning a block with utilisation `u` (its share of valid pages) costs `u` to read and `u` to
//! write, and gains `1 - u`. Space gained from an older block stays free longer, so the victim has
//! the greatest `age * (1 - u) / 2u`, with the age counted from the last invalidation in the block.
//! Time is counted in pages invalidated on the whole device, as a policy has no clock.
//!
//! `age_exponent` is a power of the age: the greater it is, the sooner blocks with few invalid
//! pages are collected if nothing has changed in them for long, and the sooner static data are
//! separated.
//!
//! Of blocks with equally many valid pages the oldest wins, and a block is appended to the list of
//! its utilisation when it changes. Only the heads of these lists are compared: at most one for
//! each page of a block, however large the device.

use super::{BuiltPolicy, GcEntry, GcInput, VictimPolicy};
use crate::geometry::BlockId;
use crate::lists::Lists;
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: GcEntry = GcEntry {
    description: Description {
        name: "cost-benefit",
        summary: "Collects the block with the greatest age times space gained over copying cost.",
        origin: "Kawaguchi, Nishioka and Motoda, USENIX 1995, after Rosenblum and Ousterhout",
        params: Parameters::PARAMS,
    },
    provides: &[],
    build,
};

hybridsim_config::params! {
    struct Parameters {
        age_exponent: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "1.0",
            "Power of the age: 1 as published, 0 is greedy. Measured drives that separate static \
             data are met with 0.14 (docs/models/measured-ssds.md).";
    }
}

/// Fractional bits of the power of an age.
const AGE_SCALE: f64 = 65_536.0;

#[derive(Serialize, Deserialize)]
struct CostBenefit {
    /// A list for each pool and number of valid pages.
    lists: Lists,
    /// By block, when it was closed or lost a page.
    changed: Vec<u64>,
    /// Pages invalidated so far.
    now: u64,
    levels: u32,
    age_exponent: f64,
}

fn build(input: &GcInput<'_>) -> BuiltPolicy {
    let levels = input.pages_per_block + 1;
    let blocks = input.blocks;
    let lists = Lists::new(input.pools * levels as usize, blocks as usize);
    let changed = vec![0; blocks as usize];
    let age_exponent = Parameters::from_settings(input.settings).age_exponent;
    Ok(Box::new(CostBenefit { lists, changed, now: 0, levels, age_exponent }))
}

/// A multiple of the benefit over the cost of a block with `valid` of `pages` pages valid, as a
/// fraction.
fn benefit_over_cost(age_weight: u64, valid: u32, pages: u32) -> (u128, u128) {
    (u128::from(age_weight) * u128::from(pages - valid), u128::from(valid))
}

/// Whether fraction `one` is greater than `other`; a zero denominator is greatest.
fn greater(one: (u128, u128), other: (u128, u128)) -> bool {
    one.0 * other.1 > other.0 * one.1
}

impl CostBenefit {
    /// The power of the age of `block`, up to a factor that is the same for all blocks.
    fn age_weight(&self, block: BlockId) -> u64 {
        // One more than the age, so that a block that has just changed is still preferred to a full
        // one.
        let age = self.now - self.changed[block.0 as usize] + 1;
        if self.age_exponent >= 1.0 {
            return age;
        }
        (libm::pow(age as f64, self.age_exponent) * AGE_SCALE) as u64
    }
}

impl VictimPolicy for CostBenefit {
    fn closed(&mut self, pool: usize, block: BlockId, valid: u32) {
        self.lists.push(pool * self.levels as usize + valid as usize, block.0);
        self.changed[block.0 as usize] = self.now;
    }

    #[inline]
    fn invalidated(&mut self, pool: usize, block: BlockId, valid: u32) {
        self.now += 1;
        if self.lists.list_of(block.0).is_some() {
            self.lists.remove(block.0);
            self.closed(pool, block, valid);
        }
    }

    fn removed(&mut self, _pool: usize, block: BlockId) {
        self.lists.remove(block.0);
    }

    fn choose(&mut self, pool: usize, _valid: &dyn Fn(BlockId) -> u32) -> Option<BlockId> {
        let pages = self.levels - 1;
        let mut best: Option<(BlockId, (u128, u128))> = None;
        for valid in 0..pages {
            let list = pool * self.levels as usize + valid as usize;
            let Some(block) = self.lists.first(list).map(BlockId) else { continue };
            let value = benefit_over_cost(self.age_weight(block), valid, pages);
            if best.is_none_or(|(_, so_far)| greater(value, so_far)) {
                best = Some((block, value));
            }
            if valid == 0 {
                break; // Nothing to copy.
            }
        }
        best.map(|(block, _)| block)
    }
}
