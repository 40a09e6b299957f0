//! Plans: figures that follow by hand from the price table and the trace, bounds, and errors.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const PRICES: &str = r#"
currency = "EUR"
years = 4
energy = 0.25
[[device]]
name = "disk"
role = "disk"
preset = "seagate-cheetah-9lp"
price = 60
[[device]]
name = "flash"
role = "flash"
preset = "sata-ssd"
price = "1/GiB"
size_min = "100GiB"
dwpd = 0.5
warranty_years = 5
"#;

/// 2,000 writes and reads in turn of 4 KiB, a hundred a second, of 512 pages at random.
fn trace() -> String {
    let line = |at: u64| {
        let op = if at.is_multiple_of(2) { "write" } else { "read" };
        format!("{},{op},{},4096\n", at * 10_000, at * 7919 % 512 * 4096)
    };
    let records: String = (0..2000).map(line).collect();
    format!("time_us,op,offset,bytes\n{records}")
}

fn plan(folder: &Path, options: &[&str]) -> Output {
    let formats = "{ kind = \"columns\", time = \"time_us\", op = \"op\", offset = \"offset\", \
                   size = \"bytes\", time_unit = \"us\" }";
    Command::new(env!("CARGO_BIN_EXE_hybridsim"))
        .args(["plan", "trace.csv", "--prices", "prices.toml", "--format", formats])
        .args(options)
        .current_dir(folder)
        .output()
        .expect("the program starts")
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("prices.toml"), PRICES).expect("writable");
    fs::write(folder.path().join("trace.csv"), trace()).expect("writable");
    folder
}

fn document(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

fn close(value: &Value, expected: f64) {
    let value = value.as_f64().expect("a number");
    assert!((value / expected - 1.0).abs() < 1e-6, "{value}, expected {expected}");
}

#[test]
fn costs_and_rated_life_follow_from_the_prices() {
    let folder = folder();
    let plan = document(&plan(folder.path(), &["--json", "--duty", "0.5", "--out", "out"]));
    let demand = &plan["demand"];
    assert_eq!(demand["written_bytes"], 1000 * 4096);
    assert_eq!(demand["span_ns"], 1999 * 10_000_000_u64);
    let systems = plan["systems"].as_array().expect("systems");
    let named = |name: &str| {
        systems.iter().find(|system| system["name"] == name).unwrap_or_else(|| panic!("{plan}"))
    };
    let energy = |system: &Value| system["watts"].as_f64().unwrap_or(0.0) / 1e3 * 8766.0 * 0.25;
    let disk = named("disk alone");
    close(&disk["cost_per_year"], 60.0 / 4.0 + energy(disk));
    // Of the flash alone every page that is written is programmed once, or later not at all; all
    // of the drive that is bought takes its share.
    let flash = named("flash alone");
    let times = 0.5 * 365.25 * 86_400.0 / 19.99;
    close(&flash["tb_per_year"], 1000.0 * 4096.0 * times / 1e12);
    let bought = 100.0 * (1u64 << 30) as f64;
    close(&flash["drive_bytes"], bought);
    close(&flash["dwpd"], 1000.0 * 4096.0 * times / 365.25 / bought);
    let rated = 0.5 * 5.0 / flash["dwpd"].as_f64().expect("a number");
    close(&flash["life_years_rated"], rated);
    let life = flash["life_years"].as_f64().expect("a number");
    close(&flash["cost_per_year"], 100.0 / life.min(4.0) + energy(flash));
    assert!(systems.iter().any(|system| system["cache"] == "dm-cache"), "{plan}");
    let ranks = systems.iter().filter(|system| system["unmet"] == serde_json::json!([]));
    let costs: Vec<f64> = ranks.filter_map(|system| system["cost_per_year"].as_f64()).collect();
    assert!(costs.len() > 2 && costs.is_sorted(), "{costs:?}");
    let page = fs::read_to_string(folder.path().join("out/plan.html")).expect("the page");
    assert!(page.contains("Plan for trace.csv") && page.contains("Cheapest: "));
    assert!(page.contains("\"Cost/year, EUR\"") && page.contains("\"Mean latency\""));
    let prices = "Prices: disk 60";
    assert!(page.contains(prices) && plan["prices"].as_str().expect("a text").contains(prices));
}

#[test]
fn write_amplification_of_a_coarse_mapping_unit_counts_bytes() {
    let folder = folder();
    let drive = "kind = \"ssd\"\nchannels = 2\nblocks_per_plane = 64\npages_per_block = 32\n\
                 page_size = \"16KiB\"\nread_time = \"40us\"\nprogram_time = \"500us\"\n\
                 erase_time = \"3ms\"\nover_provisioning = 1.0\n";
    fs::write(folder.path().join("coarse.toml"), drive).expect("writable");
    let prices = PRICES.replace("\"sata-ssd\"", "\"./coarse.toml\"");
    fs::write(folder.path().join("prices.toml"), prices).expect("writable");
    let plan = document(&plan(folder.path(), &["--json", "--caches", "dm-cache"]));
    let systems = plan["systems"].as_array().expect("systems");
    let alone = systems.iter().find(|system| system["name"] == "flash alone");
    let of_4k = alone.expect("it is simulated")["write_amplification"].as_f64();
    // Each write of 4 KiB programs a unit of 16 KiB; half of the flash is spare.
    assert!(of_4k.is_some_and(|it| (4.0..4.8).contains(&it)), "{of_4k:?}");
}

#[test]
fn a_warm_up_changes_neither_wear_nor_power() {
    let folder = folder();
    let of = |set: &str| {
        let plan =
            document(&plan(folder.path(), &["--json", "--caches", "dm-cache", "--set", set]));
        let systems = plan["systems"].as_array().expect("systems").clone();
        let alone = systems.iter().find(|system| system["name"] == "flash alone");
        // Little is written to the flash of a cache, so that no block is erased.
        let cache = systems.iter().find(|system| system["cache"] == "dm-cache").expect("a cache");
        assert!(cache["life_years_simulated"].as_f64().is_some_and(|years| years > 0.0), "{cache}");
        let alone = alone.expect("it is simulated");
        ["tb_per_year", "life_years_simulated", "watts"].map(|key| alone[key].as_f64())
    };
    let [all, half] = ["run.warmup_requests=0", "run.warmup_requests=1000"].map(of);
    for (all, half) in all.into_iter().zip(half) {
        let (Some(all), Some(half)) = (all, half) else { panic!("{all:?} {half:?}") };
        assert!((half / all - 1.0).abs() < 0.02, "{half} against {all}");
    }
}

#[test]
fn bounds_decide_and_are_reported() {
    let folder = folder();
    let out = plan(folder.path(), &["--p99", "1ms", "--caches", "open-cas", "--out", "out"]);
    let page = fs::read_to_string(folder.path().join("out/plan.html")).expect("the page");
    assert_eq!(page.matches("\"bound\":1000.0").count(), 1, "in microseconds, of one column");
    assert!(page.contains("\"unmet\":[\"p99 too long\"]"), "beside the names of systems");
    assert!(!page.contains("disk alone (p99 too long)"), "sizes of a system are one line");
    let text = String::from_utf8(out.stdout).expect("UTF-8");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("disk alone")).collect();
    assert!(rows[0].ends_with("p99 too long"), "{text}");
    assert!(text.contains("Cheapest: flash alone, "), "{text}");
    let out = plan(folder.path(), &["--budget", "16", "--p99", "1us", "--caches", "open-cas"]);
    let text = String::from_utf8(out.stdout).expect("UTF-8");
    assert!(text.contains("No system meets all bounds."), "{text}");
    assert!(text.contains("not simulated: flash alone"), "{text}");
    assert!(text.contains("devices alone cost 25 EUR a year"), "{text}");
    let out = plan(folder.path(), &["--data", "9GiB", "--caches", "open-cas"]);
    let text = String::from_utf8(out.stdout).expect("UTF-8");
    let reason = "not simulated: disk alone: disk holds 8.480 GiB, the data need 9 GiB";
    assert!(text.contains(reason), "{text}");
}

#[test]
fn mistakes_are_reported_with_their_place() {
    let folder = folder();
    let refused = |options: &[&str], exit: i32, part: &str| {
        let output = plan(folder.path(), options);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(exit), "{errors}");
        assert!(errors.contains(part), "{errors}");
    };
    refused(&["--budget", "0"], 2, "must be more than 0");
    refused(&["--duty", "2"], 2, "between 0 and 1");
    refused(&["--p99", "5"], 2, "`5` lacks a unit");
    refused(&["--data", "1MiB"], 2, "--data 1048576: the trace uses 2097152 bytes");
    refused(&["--caches", "no-such"], 2, "there is no preset `no-such`");
    refused(&["--caches", "sata-ssd"], 2, "is not a `flash-cache`");
    fs::write(folder.path().join("prices.toml"), PRICES.replace("1/GiB", "1/acre")).expect("it");
    refused(&[], 2, "prices.toml: device `flash`: price `1/acre`");
    fs::remove_file(folder.path().join("prices.toml")).expect("it was there");
    refused(&[], 2, "prices.toml: ");
    fs::write(folder.path().join("prices.toml"), PRICES).expect("writable");
    fs::write(folder.path().join("trace.csv"), "time_us,op,offset,bytes\n").expect("writable");
    refused(&[], 3, "trace.csv");
}
