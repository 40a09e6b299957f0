//! No block appears or disappears between the levels.

use hybridsim_config::registry::Registry;
use hybridsim_engine::rng::Stream;
use hybridsim_engine::{Op, SimDuration, SimTime};
use hybridsim_kv::generate::{Fitted, Likeness};
use hybridsim_kv::layout::{Buckets, BucketsOptions, Layout};
use hybridsim_kv::level::Held;
use hybridsim_kv::lifetime::Lifetimes;
use hybridsim_kv::policy::PolicyName;
use hybridsim_kv::tier::{Storage, Tier, TierOptions, WriteMode};
use hybridsim_workload::trace::serving::{ServingRequest, ServingTrace};
use std::collections::HashMap;

fn registry() -> Registry {
    let mut registry = Registry::default();
    hybridsim_cache::register(&mut registry);
    registry
}

/// Sessions that start with a common block, each a conversation of several turns.
fn sessions(requests: usize, seed: u64) -> ServingTrace {
    let mut stream = Stream::new(seed, "sessions");
    let mut trace = ServingTrace { whole_prompts: true, ..ServingTrace::default() };
    let mut open: Vec<Vec<u32>> = Vec::new();
    for number in 0..requests {
        if open.len() < 30 || stream.chance(0.25) {
            open.push(vec![0]);
        }
        let at = open.len() - 1 - stream.below(open.len().min(30) as u64) as usize;
        let blocks = &mut open[at];
        let next = trace.distinct().max(1) as u32;
        blocks.extend(next..next + 1 + stream.below(5) as u32);
        let request = ServingRequest {
            at: SimTime::from_ns(number as u64 * 250_000_000),
            input_tokens: blocks.len() as u64 * 16 - 3,
            output_tokens: 5,
            block_tokens: 16,
            first: 0,
            blocks: 0,
        };
        trace.push(request, blocks);
    }
    trace
}

/// Storage that checks what it is asked.
#[derive(Default)]
struct Checked {
    slots: HashMap<u32, u32>,
    written: u64,
    dropped: u64,
    loaded: u64,
}

impl Storage for Checked {
    fn write(&mut self, _: SimTime, held: Held) {
        assert!(!self.slots.values().any(|block| *block == held.block), "written twice");
        assert_eq!(self.slots.insert(held.slot, held.block), None, "the slot is in use");
        self.written += 1;
    }
    fn load(&mut self, _: SimTime, _: usize, held: Held) {
        assert_eq!(self.slots.get(&held.slot), Some(&held.block), "loaded after it was dropped");
        self.loaded += 1;
    }
    fn begin_loads(&mut self, _: SimTime, _: usize) {}
    fn discard(&mut self, _: SimTime, held: Held) {
        assert_eq!(self.slots.remove(&held.slot), Some(held.block), "dropped without a write");
        self.dropped += 1;
    }
}

#[test]
fn blocks_are_conserved_through_all_levels_under_every_policy_and_write_mode() {
    let (registry, trace) = (registry(), sessions(600, 1));
    let names = registry.descriptions("replacement").map(|entry| entry.name);
    let mut policies: Vec<String> = names.map(str::to_owned).collect();
    policies.extend(policies.clone().iter().map(|name| format!("prefix:{name}")));
    policies.push("length-aware".to_owned());
    let lazy = WriteMode::Lazy(SimDuration::from_s(20));
    for policy in &policies {
        for write in [WriteMode::Put, WriteMode::Evict, lazy, WriteMode::SecondHit] {
            for (gpu, host) in [(60, 200), (60, 0), (0, 200), (0, 0)] {
                if write == lazy && (gpu, host) == (0, 0) {
                    continue;
                }
                let options = TierOptions {
                    gpu_blocks: gpu,
                    host_blocks: host,
                    storage_blocks: 400,
                    policy: PolicyName::parse(policy, &registry).unwrap(),
                    ttl: Some(SimDuration::from_s(100)),
                    write,
                };
                let mut storage = Checked::default();
                let got = Tier::new(&trace, &options, &registry).unwrap().run(&mut storage);
                let what = format!("{policy}, {write:?}, {gpu}, {host}");
                let used: u64 = got.used_blocks.iter().sum();
                assert_eq!(got.references, used + got.computed_blocks, "{what}");
                assert_eq!(got.hits, used + got.held_but_computed, "{what}");
                for level in 0..3 {
                    let out = got.evicted[level] + got.expired[level] + got.moved[level];
                    assert_eq!(got.inserted[level], out + got.held[level], "{what}, {level}");
                }
                assert_eq!(got.inserted[2], storage.written, "{what}");
                assert_eq!(got.evicted[2] + got.expired[2], storage.dropped, "{what}");
                assert_eq!(got.used_blocks[2], storage.loaded, "{what}");
                assert_eq!(storage.slots.len() as u64, got.held[2], "{what}");
                assert!(storage.written > 0 && got.used_blocks[2] > 0, "{what}");
            }
        }
    }
}

#[test]
fn a_prefix_is_evicted_after_the_blocks_behind_it() {
    let (registry, trace) = (registry(), sessions(1500, 2));
    let ratio = |policy: &str| {
        let options = TierOptions {
            gpu_blocks: 0,
            host_blocks: 0,
            storage_blocks: 300,
            policy: PolicyName::parse(policy, &registry).unwrap(),
            ttl: None,
            write: WriteMode::Put,
        };
        let mut tier = Tier::new(&trace, &options, &registry).unwrap();
        let totals = tier.run(&mut Checked::default());
        (totals.token_hit_ratio(), totals.held_but_computed)
    };
    let ((plain, _), (aware, _)) = (ratio("lru"), ratio("prefix:lru"));
    assert!(aware > plain, "{aware} against {plain}");
    let ((_, useless), (_, useless_aware)) = (ratio("s3-fifo"), ratio("prefix:s3-fifo"));
    assert!(useless > 0 && useless_aware < useless, "{useless}, {useless_aware}");
}

/// Random deletions from buckets: the closed form of the write amplification of compaction.
#[test]
fn compaction_has_the_write_amplification_of_the_closed_form() {
    for threshold in [0.25, 0.5, 0.75, 0.875] {
        let held = 20_000u32;
        let options = BucketsOptions {
            sectors: 8,
            bucket_blocks: 64,
            buckets: (f64::from(held) / threshold / 64.0) as u32 + 40,
            threshold,
            handles: 1,
        };
        let total = 30 * held;
        let mut buckets = Buckets::new(options, total as usize, held).unwrap();
        let (mut stream, mut out) = (Stream::new(1, "deletions"), Vec::new());
        let mut blocks: Vec<u32> = Vec::new();
        let (mut user, mut written) = (0, 0);
        for block in 0..total {
            out.clear();
            if blocks.len() as u32 == held {
                let at = stream.below(u64::from(held)) as usize;
                let old = std::mem::replace(&mut blocks[at], block);
                buckets.discard(Held { block: old, slot: 0 }, &mut out).unwrap();
            } else {
                blocks.push(block);
            }
            buckets.write(Held { block, slot: 0 }, 0, &mut out).unwrap();
            if block > total / 2 {
                user += 1;
                written += out.iter().filter(|request| request.op == Op::Write).count();
            }
        }
        let amplification = written as f64 / f64::from(user);
        let closed = 1.0 / (1.0 - threshold);
        assert!((amplification / closed - 1.0).abs() < 0.01, "{threshold}: {amplification}");
        assert_eq!(buckets.counts().forced, 0, "space was short");
        // Deletions are independent: the number of buckets by utilisation u falls as 1 / u.
        let mean = (1.0 - threshold) / (1.0 / threshold).ln();
        let utilisation = buckets.utilisation().unwrap();
        assert!((utilisation / mean - 1.0).abs() < 0.03, "{threshold}: {utilisation} of {mean}");
    }
}

#[test]
fn buckets_refuse_devices_that_are_too_small() {
    let options =
        BucketsOptions { sectors: 8, bucket_blocks: 4, buckets: 5, threshold: 0.5, handles: 1 };
    assert!(Buckets::new(options, 100, 9).err().unwrap().contains("do not fit"));
    assert!(Buckets::new(options, 100, 8).is_ok());
}

#[test]
fn handles_follow_lifetimes_by_position() {
    let parents = [u32::MAX, 0, 1, 2, 3, 4];
    let mut lifetimes = Lifetimes::new(4, &parents);
    let at = SimTime::from_ns;
    for round in 0..20u64 {
        for block in 0..6 {
            lifetimes.written(block, at(round * 1_000_000_000_000));
        }
        lifetimes.dropped(0, at(round * 1_000_000_000_000 + 900_000_000_000));
        for block in 1..6 {
            lifetimes.dropped(block, at(round * 1_000_000_000_000 + 10_000_000_000));
        }
    }
    let now = at(30_000_000_000_000);
    assert_eq!((lifetimes.written(0, now), lifetimes.written(5, now)), (3, 0));
    assert_eq!(Lifetimes::new(1, &parents).written(0, now), 0);
}

#[test]
fn a_generated_trace_is_like_the_one_it_is_fitted_to() {
    let trace = sessions(4000, 3);
    let made = Fitted::new(&trace).unwrap().generate(4000, 7).unwrap();
    let (real, like) = (Likeness::of(&trace), Likeness::of(&made));
    let near = |name: &str, one: f64, other: f64, bound: f64| {
        assert!((other / one - 1.0).abs() < bound, "{name}: {other} of {one}");
    };
    near("rate", real.requests_per_s, like.requests_per_s, 0.02);
    near("tokens", real.input_tokens_mean, like.input_tokens_mean, 0.2);
    near("reuse", real.reused, like.reused, 0.1);
    assert_eq!(made, Fitted::new(&trace).unwrap().generate(4000, 7).unwrap());
}
