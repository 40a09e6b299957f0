//! The tier beside an independent reference: ordered maps, one level, no shared code but the trace.

use hybridsim_config::registry::Registry;
use hybridsim_engine::SimDuration;
use hybridsim_kv::policy::PolicyName;
use hybridsim_kv::tier::{NoStorage, Tier, TierOptions, Totals, WriteMode};
use hybridsim_workload::trace::OpenOptions;
use hybridsim_workload::trace::serving::{ServingTrace, read};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

/// Rules of the reference.
#[derive(Clone, Copy)]
struct Rules {
    capacity: usize,
    /// Whether hits refresh: LRU, or FIFO without.
    refresh: bool,
    ttl_ns: Option<u64>,
    /// Whether only blocks requested before are inserted.
    second: bool,
}

/// References, hits, tokens hit before the first miss, insertions, evictions and expiries.
fn reference(trace: &ServingTrace, rules: Rules) -> [u64; 6] {
    let mut order: BTreeMap<u64, u32> = BTreeMap::new();
    // By block: its key in the order and the time of its last use.
    let mut held: HashMap<u32, (u64, u64)> = HashMap::new();
    let (mut seen, mut clock, mut counts) = (HashSet::new(), 0, [0; 6]);
    for request in &trace.requests {
        let now = request.at.as_ns();
        // The order of a refreshed cache is that of last uses.
        while let Some((&key, &old)) = order.first_key_value() {
            let stale = rules.ttl_ns.is_some_and(|ttl| now - held[&old].1 > ttl);
            if !stale {
                break;
            }
            order.remove(&key);
            held.remove(&old);
            counts[5] += 1;
        }
        let mut usable = true;
        for (index, &block) in trace.blocks(request).iter().enumerate() {
            clock += 1;
            counts[0] += 1;
            if let Some((key, last)) = held.get_mut(&block) {
                counts[1] += 1;
                counts[2] += if usable { request.tokens_of(index) } else { 0 };
                *last = now;
                if rules.refresh {
                    order.remove(key);
                    *key = clock;
                    order.insert(clock, block);
                }
                continue;
            }
            usable = false;
            if seen.insert(block) && rules.second {
                continue;
            }
            if held.len() == rules.capacity {
                let (_, old) = order.pop_first().unwrap();
                held.remove(&old);
                counts[4] += 1;
            }
            held.insert(block, (clock, now));
            order.insert(clock, block);
            counts[3] += 1;
        }
    }
    counts
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    hybridsim_cache::register(&mut registry);
    registry
}

fn run(trace: &ServingTrace, policy: &str, rules: Rules) -> Totals {
    let registry = registry();
    let options = TierOptions {
        gpu_blocks: 0,
        host_blocks: 0,
        storage_blocks: rules.capacity as u32,
        policy: PolicyName::parse(policy, &registry).unwrap(),
        ttl: rules.ttl_ns.map(SimDuration::from_ns),
        write: if rules.second { WriteMode::SecondHit } else { WriteMode::Put },
    };
    Tier::new(trace, &options, &registry).unwrap().run(&mut NoStorage)
}

fn agree(trace: &ServingTrace, policy: &str, rules: Rules) {
    let expected = reference(trace, rules);
    let got = run(trace, policy, rules);
    let storage = [got.inserted[2], got.evicted[2], got.expired[2]];
    let counts = [[got.references, got.hits, got.used_tokens[2]], storage].concat();
    assert_eq!(counts, expected, "{policy}, {} blocks", rules.capacity);
    assert_eq!(got.inserted[2], got.evicted[2] + got.expired[2] + got.held[2]);
}

/// A published trace, where the data are.
fn published(name: &str) -> Option<ServingTrace> {
    let Some(folder) = std::env::var_os("HYBRIDSIM_DATA") else {
        println!("skipped: HYBRIDSIM_DATA names no folder with data");
        return None;
    };
    let path = PathBuf::from(folder).join(format!("kv/mooncake_{name}.jsonl.gz"));
    path.exists().then(|| read(&path, &OpenOptions::default()).unwrap())
}

/// A trace whose sessions share starts and grow.
fn small() -> ServingTrace {
    let mut text = String::new();
    let mut next = 1;
    let mut sessions: Vec<Vec<u32>> = Vec::new();
    for number in 0..600u32 {
        let session = (number.wrapping_mul(2_654_435_761) >> 16) as usize % 40;
        if sessions.len() <= session {
            sessions.push(vec![0]);
        }
        let session = session.min(sessions.len() - 1);
        let blocks = &mut sessions[session];
        blocks.extend(next..next + 1 + number % 3);
        next += 1 + number % 3;
        if blocks.len() > 24 {
            blocks.truncate(1);
        }
        let (time, length) = (number * 700, blocks.len() * 16 - number as usize % 16);
        text += &format!(
            "{{\"timestamp\":{time},\"input_length\":{length},\"output_length\":3,\
             \"block_size\":16,\"hash_ids\":{blocks:?}}}\n"
        );
    }
    let folder = std::env::temp_dir().join(format!("hybridsim-kv-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("small.jsonl");
    std::fs::write(&path, text).unwrap();
    let trace = read(&path, &OpenOptions::default()).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    trace
}

#[test]
fn lru_fifo_ttl_and_second_hit_are_those_of_the_reference() {
    let traces = [Some(small()), published("conversation"), published("synthetic")];
    for trace in traces.iter().flatten() {
        let distinct = trace.distinct();
        for capacity in [distinct / 50, distinct / 7, distinct] {
            let plain = Rules { capacity, refresh: true, ttl_ns: None, second: false };
            agree(trace, "lru", plain);
            agree(trace, "fifo", Rules { refresh: false, ..plain });
            agree(trace, "lru", Rules { second: true, ..plain });
            for ttl_s in [1, 60, 600] {
                agree(trace, "lru", Rules { ttl_ns: Some(ttl_s * 1_000_000_000), ..plain });
            }
        }
    }
}

#[test]
fn lru_has_the_figures_of_the_published_table() {
    for name in ["conversation", "synthetic"] {
        let Some(trace) = published(name) else { return };
        let folder = PathBuf::from(std::env::var_os("HYBRIDSIM_DATA").unwrap());
        let table = std::fs::read_to_string(folder.join("kv/tables/mooncake_lru.csv")).unwrap();
        for row in table.lines().filter(|row| row.starts_with(name)) {
            let cells: Vec<&str> = row.split(',').collect();
            let capacity = cells[1].parse().unwrap_or(trace.distinct());
            let rules = Rules { capacity, refresh: true, ttl_ns: None, second: false };
            let got = run(&trace, "lru", rules);
            let used: u64 = got.used_blocks.iter().sum();
            let row = [
                format!("{:.4}", got.block_hit_ratio()),
                format!("{:.4}", used as f64 / got.references as f64),
                got.inserted[2].to_string(),
                got.evicted[2].to_string(),
            ];
            assert_eq!(row[..], cells[2..], "{name}, {} blocks", cells[1]);
        }
    }
}
