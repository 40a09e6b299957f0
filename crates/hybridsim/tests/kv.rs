//! `hybridsim kv`: tables of key-value caches, and what is refused.

#[path = "common/command.rs"]
mod command;

use command::{call, document, fails, text};
use serde_json::Value;
use std::path::PathBuf;

fn rows(args: &[&str]) -> Vec<Value> {
    let document = document(&[&["kv", "plan"], args, &["--json"]].concat());
    document["rows"].as_array().expect("rows").clone()
}

fn refused(args: &[&str], code: i32, expect: &str) {
    let errors = fails(code, args);
    assert!(errors.contains(expect), "{args:?}: {errors}");
}

const TRACE: &str = "examples/studies/sessions.jsonl";
const MODEL: [&str; 3] = [TRACE, "--model", "llama-3-8b"];

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"))
}

#[test]
fn bytes_are_conserved_from_the_trace_to_the_drive() {
    let args = [&MODEL[..], &["--sizes", "20GB", "--gpu", "4GB", "--host", "8GB"]].concat();
    let modes = ["--writes", "put,evict,lazy:20s,second-hit", "--policies", "lru,prefix:s3-fifo"];
    let rows = rows(&[&args[..], &modes, &["--only", "tlc-7.68tb"]].concat());
    assert_eq!(rows.len(), 8);
    let block = f64::from(64 << 20);
    for row in &rows {
        let totals = &row["totals"];
        let counts = |key: &str| totals[key].as_array().unwrap().clone();
        let level = |key: &str, at: usize| counts(key)[at].as_f64().unwrap();
        let used: f64 = (0..3).map(|at| level("used_blocks", at)).sum();
        assert_eq!(number(totals, "references"), used + number(totals, "computed_blocks"));
        for at in 0..3 {
            let out = level("evicted", at) + level("expired", at) + level("moved", at);
            assert_eq!(level("inserted", at), out + level("held", at), "{row}");
        }
        // The drive writes and reads exactly the blocks of the tier.
        assert_eq!(number(row, "stored_bytes"), level("inserted", 2) * block);
        assert_eq!(number(row, "loaded_bytes"), level("used_blocks", 2) * block);
        assert_eq!(number(row, "device_written_bytes"), number(row, "stored_bytes"), "{row}");
        assert_eq!(number(row, "device_read_bytes"), number(row, "loaded_bytes"), "{row}");
        assert_eq!(number(row, "layout_amplification"), 1.0);
        assert!(number(row, "load_p99_s") >= number(row, "load_p50_s"), "{row}");
    }
    let written = |mode: &str| {
        let row = rows.iter().find(|row| row["write"] == mode && row["policy"] == "lru");
        number(row.expect("a row"), "stored_bytes")
    };
    assert!(written("second-hit") < written("evict"), "one in two blocks is requested again");
    assert!(written("evict") <= written("put"));
}

#[test]
fn buckets_write_what_compaction_copies() {
    // Blocks of 2 MiB: a small model, so that the exact requests are few.
    let cache = [TRACE, "--model", "4x4x64", "--sizes", "600MB", "--policies", "s3-fifo"];
    let system = ["--system", "examples/kv-storage.toml", "--layout", "buckets:16MiB:0.5"];
    let args = [&cache[..], &system].concat();
    let [row] = &rows(&args)[..] else { panic!("one row") };
    let copied = number(&row["layout"], "copied") * f64::from(2 << 20);
    assert_eq!(number(row, "device_written_bytes"), number(row, "stored_bytes") + copied);
    assert!(copied > 0.0 && number(row, "layout_amplification") > 1.0, "{row}");
    assert!(row["life_years_rated"].is_null() && number(row, "load_mean_s") > 0.0);
}

#[test]
fn batches_and_depth_change_loads_but_not_hits() {
    let run = |more: &[&str]| {
        let args = [&MODEL[..], &["--sizes", "40GB", "--policies", "lru"], more].concat();
        let rows = rows(&[&args[..], &["--only", "tlc-7.68tb"]].concat());
        (number(&rows[0], "token_hit_ratio"), number(&rows[0], "load_mean_s"))
    };
    let (hits, together) = run(&[]);
    let (hits_alone, alone) = run(&["--batch", "1"]);
    let (hits_shallow, _) = run(&["--depth", "1"]);
    assert_eq!((hits, hits), (hits_alone, hits_shallow));
    assert!(alone >= together, "{alone} against {together}");
}

#[test]
fn what_cannot_be_tabulated_is_refused() {
    refused(&["kv", "plan", TRACE], 3, "name a model");
    refused(&["kv", "plan", TRACE, "--model", "gpt"], 2, "llama-3-8b");
    refused(&[&["kv", "plan"], &MODEL[..], &["--policies", "x"]].concat(), 2, "length-aware");
    refused(&[&["kv", "plan"], &MODEL[..], &["--writes", "x"]].concat(), 2, "second-hit");
    refused(&[&["kv", "plan"], &MODEL[..], &["--only", "x"]].concat(), 2, "tlc-7.68tb");
    refused(
        &[&["kv", "plan"], &MODEL[..], &["--sizes", "9TB", "--only", "tlc-7.68tb"]].concat(),
        4,
        "no figures",
    );
    refused(&[&["kv", "plan"], &MODEL[..], &["--writes", "lazy:1s"]].concat(), 4, "no figures");
    refused(&["kv", "plan", "workloads/mail.hst"], 3, "serving traces");
    refused(&["run", "examples/ssd.toml", "--trace", TRACE], 3, "hybridsim kv");
    refused(&["kv", "plan", "nowhere"], 3, "cannot be opened");
}

#[test]
fn serving_traces_are_described_and_generated() {
    let printed = text(&call(&["trace", "info", TRACE]).stdout);
    for expect in ["mooncake", "512 tokens", "lifetime", "hit ratio, no limit"] {
        assert!(printed.contains(expect), "{expect}: {printed}");
    }
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made.jsonl");
    let made = made.to_str().unwrap();
    assert!(call(&["kv", "generate", TRACE, made, "--count", "500"]).status.success());
    let printed = text(&call(&["trace", "check", made]).stdout);
    assert!(printed.contains("500 requests as mooncake"), "{printed}");
    refused(&["kv", "generate", TRACE, made], 2, "--force");
    let printed = text(&call(&["kv", "generate", TRACE, "--judge"]).stdout);
    assert!(printed.contains("LRU hits"), "{printed}");
}

#[test]
fn a_published_trace_has_its_published_hits_on_every_drive() {
    let Some(data) = std::env::var_os("HYBRIDSIM_DATA") else {
        println!("skipped: HYBRIDSIM_DATA names no folder with data");
        return;
    };
    let path = PathBuf::from(data).join("kv/mooncake_conversation.jsonl.gz");
    if !path.exists() {
        println!("skipped: no {}", path.display());
        return;
    }
    // 10,000 blocks of 64 MiB, which the published table gives a hit ratio of 0.2112.
    let size = (10_000u64 << 26).to_string() + "B";
    let path = path.to_str().unwrap();
    let rows = rows(&[path, "--model", "llama-3-8b", "--policies", "lru", "--sizes", &size]);
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(format!("{:.4}", number(&row, "block_hit_ratio")), "0.2112");
        assert_eq!(row["totals"]["inserted"][2], 227_579);
    }
}

#[test]
fn sizes_and_traces_that_give_no_rate_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("at-once.jsonl");
    let line = "{\"timestamp\":0,\"input_length\":512,\"output_length\":1,\"hash_ids\":[1]}\n";
    std::fs::write(&path, line.repeat(20)).expect("one's own folder");
    let trace = path.to_str().expect("UTF-8");
    let format = "{ kind = \"mooncake\", block_tokens = 512 }";
    let at_once = ["kv", "plan", trace, "--model", "llama-3-8b", "--format", format];
    refused(&at_once, 3, "arrive at once");
    let system = ["--system", "examples/kv-storage.toml", "--request-size", "0"];
    refused(&[&["kv", "plan"], &MODEL[..], &system].concat(), 2, "--request-size");
    refused(&[&["kv", "plan"], &MODEL[..], &["--drives", "/dev/zero"]].concat(), 2, "MiB");
    let count = ["--count", "10000000000000000000"];
    refused(&[&["kv", "generate", TRACE], &count[..]].concat(), 2, "--count");
}
