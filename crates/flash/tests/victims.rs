//! Victim policies against reference policies that search every block.

use hybridsim_config::param::Value;
use hybridsim_engine::Stream;
use hybridsim_flash::Cause;
use hybridsim_flash::array::{Array, ProgramOrder};
use hybridsim_flash::defaults;
use hybridsim_flash::gc::{ENTRIES, GcInput, VictimPolicy};
use hybridsim_flash::geometry::{BlockId, Geometry, Lpn, Shape};
use hybridsim_flash::ops::{After, FlashOps};

const BLOCKS: u32 = 30;
const PAGES: u32 = 6;
const POOLS: usize = 2;

fn geometry() -> Geometry {
    Geometry::new(&Shape {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: POOLS as u64,
        blocks_per_plane: u64::from(BLOCKS) / POOLS as u64,
        pages_per_block: u64::from(PAGES),
        page_bytes: 512,
        spare_bytes: 0,
    })
    .expect("a valid shape")
}

fn build(name: &str, param: Option<(&'static str, Value)>, seed: u64) -> Box<dyn VictimPolicy> {
    let registry = defaults::registry();
    let entry = ENTRIES.iter().find(|entry| entry.description.name == name).expect("registered");
    let mut settings = defaults::settings(entry.description.params, &registry);
    if let Some((name, value)) = param {
        settings.set(name, value);
    }
    let (settings, pools, path) = (&settings, POOLS, "t");
    let input = GcInput { settings, blocks: BLOCKS, pages_per_block: PAGES, pools, seed, path };
    (entry.build)(&input).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// A closed block, for the reference policies.
#[derive(Clone, Copy, Debug)]
struct Closed {
    block: u32,
    valid: u32,
    closed: u64,
    changed: u64,
}

fn greedy(all: &[Closed], _now: u64) -> Option<u32> {
    let gain = all.iter().filter(|block| block.valid < PAGES);
    gain.min_by_key(|block| (block.valid, block.changed, block.closed)).map(|block| block.block)
}

fn oldest(all: &[Closed], _now: u64) -> Option<u32> {
    all.iter().min_by_key(|block| block.closed).map(|block| block.block)
}

/// The valid pages of the victim: ties may be broken either way.
fn windowed(all: &[Closed], _now: u64) -> Option<u32> {
    let mut all = all.to_vec();
    all.sort_by_key(|block| block.closed);
    let more = all.len() > 4;
    all.truncate(4);
    let best = all.iter().map(|block| block.valid).min()?;
    (best < PAGES || more).then_some(best)
}

/// The best by cost-benefit, with the age to the power of `exponent` in steps of 1/65536.
fn cost_benefit(all: &[Closed], now: u64, exponent: f64) -> Option<u32> {
    let value = |block: &Closed| {
        let age = libm::pow((now - block.changed + 1) as f64, exponent);
        let age = (age * 65_536.0).floor() / 65_536.0;
        age * f64::from(PAGES - block.valid) / f64::from(block.valid)
    };
    let gain = all.iter().filter(|block| block.valid < PAGES);
    let best = gain.max_by(|one, other| {
        value(one).total_cmp(&value(other)).then(other.changed.cmp(&one.changed))
    });
    best.map(|block| if block.valid == 0 { 0 } else { (value(block) * 1e6) as u32 })
}

/// The blocks of a device, and a policy that follows them.
struct Bench {
    policy: Box<dyn VictimPolicy>,
    flash: FlashOps,
    closed: Vec<Option<Closed>>,
    clock: u64,
    changes: u64,
}

impl Bench {
    fn new(policy: Box<dyn VictimPolicy>) -> Self {
        let mut flash = FlashOps::new(Array::new(geometry(), ProgramOrder::Sequential, u32::MAX));
        flash.set_recording(false);
        Self { policy, flash, closed: vec![None; BLOCKS as usize], clock: 0, changes: 0 }
    }

    fn pool(block: u32) -> usize {
        (block / (BLOCKS / POOLS as u32)) as usize
    }

    /// A random block is filled, loses a page, or is collected.
    fn step(&mut self, stream: &mut Stream) {
        let block = stream.below(u64::from(BLOCKS)) as u32;
        let (id, pool) = (BlockId(block), Self::pool(block));
        self.clock += 1;
        match self.closed[block as usize] {
            None => {
                for offset in 0..PAGES {
                    let page = geometry().page(id, offset);
                    self.flash.program(page, Lpn(0), Cause::Host, After::NOTHING);
                }
                self.policy.closed(pool, id, PAGES);
                let (valid, changed) = (PAGES, self.changes);
                self.closed[block as usize] =
                    Some(Closed { block, valid, closed: self.clock, changed });
            }
            Some(_) if stream.chance(0.8) => self.lose_page(id, pool),
            Some(_) => {
                while self.closed[block as usize].is_some_and(|closed| closed.valid > 0) {
                    self.lose_page(id, pool);
                }
                self.policy.removed(pool, id);
                self.flash.erase(id, Cause::Gc, After::NOTHING);
                self.closed[block as usize] = None;
            }
        }
    }

    fn lose_page(&mut self, id: BlockId, pool: usize) {
        let Some(offset) = self.flash.array().next_valid(id, 0) else { return };
        let valid = self.flash.invalidate(geometry().page(id, offset));
        self.policy.invalidated(pool, id, valid);
        self.changes += 1;
        let closed = self.closed[id.0 as usize].as_mut().expect("it is closed");
        (closed.valid, closed.changed) = (valid, self.changes);
    }

    fn candidates(&self, pool: usize) -> Vec<Closed> {
        let closed = self.closed.iter().flatten().copied();
        closed.filter(|closed| Self::pool(closed.block) == pool).collect()
    }
}

/// Compares `of` the policy's victims with the reference policy over a long random history.
fn check(
    policy: Box<dyn VictimPolicy>,
    reference: impl Fn(&[Closed], u64) -> Option<u32>,
    of: impl Fn(&Closed, &[Closed], u64) -> u32,
) {
    let mut bench = Bench::new(policy);
    let mut stream = Stream::new(4, "victims");
    let mut compared = 0;
    for _ in 0..30_000 {
        bench.step(&mut stream);
        for pool in 0..POOLS {
            let all = bench.candidates(pool);
            let victim = {
                let array = bench.flash.array();
                bench.policy.choose(pool, &|block| array.valid(block))
            };
            let victim = victim.map(|victim| {
                let closed = bench.closed[victim.0 as usize].expect("a victim is a candidate");
                assert_eq!(Bench::pool(victim.0), pool);
                of(&closed, &all, bench.changes)
            });
            assert_eq!(victim, reference(&all, bench.changes), "of {all:?}");
            compared += u32::from(victim.is_some());
        }
    }
    assert!(compared > 20_000, "{compared}");
    assert_eq!(bench.flash.violation(), None);
}

#[test]
fn policies_with_lists_equal_policies_that_search_all_blocks() {
    let number: fn(&Closed, &[Closed], u64) -> u32 = |victim, _, _| victim.block;
    check(build("greedy", None, 1), greedy, number);
    check(build("fifo", None, 1), oldest, number);
    let window = Some(("window", Value::Count(4)));
    check(build("windowed-greedy", window, 1), windowed, |victim, _, _| victim.valid);
    for exponent in [1.0, 0.4] {
        let age = Some(("age_exponent", Value::Number(exponent)));
        check(
            build("cost-benefit", age, 1),
            |all, now| cost_benefit(all, now, exponent),
            |victim, _, now| cost_benefit(&[*victim], now, exponent).expect("it gains"),
        );
    }
}

#[test]
fn cost_benefit_without_age_collects_the_fewest_valid_pages() {
    let ageless = build("cost-benefit", Some(("age_exponent", Value::Number(0.0))), 1);
    let fewest = |all: &[Closed], _| {
        all.iter().map(|closed| closed.valid).min().filter(|valid| *valid < PAGES)
    };
    check(ageless, fewest, |victim, _, _| victim.valid);
}

#[test]
fn the_extremes_of_windowed_greedy_are_fifo_and_greedy() {
    let window = |blocks| build("windowed-greedy", Some(("window", Value::Count(blocks))), 1);
    let valid: fn(&Closed, &[Closed], u64) -> u32 = |victim, _, _| victim.valid;
    check(
        window(1 << 31),
        |all, now| {
            greedy(all, now).map(|block| {
                all.iter().find(|closed| closed.block == block).expect("one of them").valid
            })
        },
        valid,
    );
    // FIFO collects full blocks; so does a window of one, unless it holds the only candidate.
    check(
        window(1),
        |all, now| {
            let block = oldest(all, now)?;
            let only = all.len() == 1 && all[0].valid == PAGES;
            (!only).then_some(block)
        },
        |victim, _, _| victim.block,
    );
}

const VALID: fn(BlockId) -> u32 = |block| block.0 / 3;

/// The share of choices of each block in a fixed set: block b of pool 0 has b / 3 valid pages.
fn shares(policy: &mut dyn VictimPolicy, draws: u32) -> Vec<f64> {
    for block in (0..15).rev() {
        policy.closed(0, BlockId(block), PAGES);
        (block / 3..PAGES).rev().for_each(|valid| policy.invalidated(0, BlockId(block), valid));
    }
    let mut counts = [0u32; 15];
    for _ in 0..draws {
        counts[policy.choose(0, &VALID).expect("there are candidates").0 as usize] += 1;
    }
    assert_eq!(policy.choose(1, &VALID), None);
    counts.map(|count| f64::from(count) / f64::from(draws)).to_vec()
}

#[test]
fn random_policies_have_the_distribution_of_a_scan() {
    let draws = 60_000;
    let near = |what: &str, shares: &[f64], expected: &dyn Fn(usize) -> f64| {
        for (block, share) in shares.iter().enumerate() {
            let expected = expected(block);
            let sigma = (expected * (1.0 - expected) / f64::from(draws)).sqrt();
            assert!((share - expected).abs() <= 4.5 * sigma, "{what}: block {block}: {share}");
        }
    };
    let mut random = build("random", None, 3);
    near("random", &shares(&mut *random, draws), &|_| 1.0 / 15.0);
    // The lowest of d draws lies in group g of 5 with probability (1 - g/5)^d - (1 - (g+1)/5)^d.
    for d in [1, 2, 3, 10] {
        let mut choices = build("d-choices", Some(("choices", Value::Count(d))), 3);
        let above = |groups: usize| (1.0 - groups as f64 / 5.0).powi(d as i32);
        let expected = |block: usize| (above(block / 3) - above(block / 3 + 1)) / 3.0;
        near("d-choices", &shares(&mut *choices, draws), &expected);
        assert_eq!(choices.searched(), 0, "the last search was in an empty pool");
    }
    // Of k of 15 without replacement: C(15 - 3 g, k) / C(15, k).
    let choose = |all: i32, k: i32| (0..k).map(|i| f64::from(all - i) / f64::from(k - i)).product();
    for (share, k) in [(0.0, 1), (0.01, 1), (0.2, 3), (0.5, 8), (1.0, 15)] {
        let mut partial = build("partial-search", Some(("fraction", Value::Number(share))), 3);
        let above = |groups: usize| -> f64 {
            let left: f64 = choose(15 - 3 * groups as i32, k);
            left.max(0.0) / choose(15, k)
        };
        let expected = |block: usize| (above(block / 3) - above(block / 3 + 1)) / 3.0;
        near("partial", &shares(&mut *partial, draws), &expected);
        assert!(partial.choose(0, &VALID).is_some());
        assert_eq!(partial.searched(), if share == 0.0 { 0 } else { k as u32 });
    }
}
