//! Traces as users have them: ambiguous, damaged, too large for the device, without times.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const DEVICE: &str = "[component.device]\nkind = \"constant-device\"\ncapacity = \"16MiB\"\n\
                      latency = \"100us\"\n";

/// A folder with a scenario `s.toml` and files of the given names and contents.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in [("s.toml", DEVICE)].iter().chain(files) {
        fs::write(folder.path().join(name), text).expect("a writable folder");
    }
    folder
}

fn call(folder: &tempfile::TempDir, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hybridsim"));
    command.args(args).current_dir(folder.path()).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// Expects exit code `code` and all of `words` on standard error.
#[track_caller]
fn ends(folder: &tempfile::TempDir, args: &[&str], code: i32, words: &[&str]) {
    let output = call(folder, args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}\n{message}");
    for word in words {
        assert!(message.contains(word), "{args:?}: `{word}` is missing in\n{message}");
    }
}

#[track_caller]
fn results(folder: &tempfile::TempDir, args: &[&str]) -> Value {
    let output = call(folder, &[args, &["--json"]].concat());
    assert!(output.status.success(), "{args:?}\n{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

fn warnings(results: &Value) -> String {
    let list = results["warnings"].as_array().expect("a list").iter();
    list.map(|warning| warning.as_str().expect("a text")).collect::<Vec<_>>().join("\n")
}

/// Lines of five columns, `gap` time units apart.
fn five_columns(gap: u64) -> String {
    let line = |row: u64| {
        format!("{} {} {} 8 {}\n", row * gap + row % 7, row % 3, row * 7919 % 4096 * 8, row % 2)
    };
    (0..200).map(line).collect()
}

#[test]
fn an_ambiguous_trace_asks_for_its_format() {
    let folder = folder(&[("t", &five_columns(27_000))]);
    let words =
        ["no reading stands out", "mqsim (one request every 27", "time_unit = \"us\"", "--format"];
    for args in [&["trace", "info", "t"][..], &["run", "s.toml", "--trace", "t"]] {
        ends(&folder, args, 3, &words);
    }
    let span = |format: &str| {
        let info = results(&folder, &["trace", "info", "t", "--format", format]);
        assert_eq!(info["guess"], false);
        info["profile"]["span_ns"].as_u64().expect("a time")
    };
    let us = "{ kind = \"ssdsim\", time_unit = \"us\" }";
    assert_eq!(span(us), span("ssdsim") * 1000);
    let run = ["run", "s.toml", "--trace", "t", "--format", us, "--fit"];
    assert_eq!(results(&folder, &run)["requests"], 200);
}

#[test]
fn a_guess_is_shown_as_a_guess() {
    let folder = folder(&[("t", &five_columns(4_000_000))]);
    let info = results(&folder, &["trace", "info", "t"]);
    assert_eq!((&info["format"], &info["guess"]), (&"mqsim".into(), &true.into()));
    let others = info["other_readings"].as_array().expect("a list");
    let us = others.iter().find(|other| other["reading"].as_str().unwrap().contains("\"us\""));
    assert!(us.expect("microseconds")["effect"].as_str().unwrap().contains("every 4"));
    let table = text(&call(&folder, &["trace", "info", "t"]).stdout);
    assert!(table.contains("a guess: one request every 4") && table.contains("also possible"));
    let done = results(&folder, &["run", "s.toml", "--trace", "t", "--fit"]);
    let warnings = warnings(&done);
    assert!(warnings.contains("the format is a guess: read as mqsim"), "{warnings}");
    assert!(warnings.contains("time_unit = \"us\"") && warnings.contains("workload.format"));
    let given = ["run", "s.toml", "--trace", "t", "--fit", "--format", "mqsim"];
    assert!(!self::warnings(&results(&folder, &given)).contains("guess"));
}

#[test]
fn bad_lines_can_be_left_out_and_are_counted() {
    let line = |row: u64| match row {
        40 => "0,-8,4096,w,0.4\n".to_owned(),
        60 => "garbage\n".to_owned(),
        _ => format!("0,{},4096,w,{}.5\n", row * 8, row),
    };
    let trace: String = (0..100).map(line).collect();
    let folder = folder(&[("t", &trace), ("not-spc", "a,b,c\n0,8,4096,w,1\n")]);
    let words = ["t:41: the LBA is negative", "--skip-bad-lines"];
    ends(&folder, &["trace", "check", "t"], 3, &words);
    ends(&folder, &["run", "s.toml", "--trace", "t"], 3, &words);
    let words = ["98 records as spc", "t:41: bad records left out; the first: ", "(2 times)"];
    ends(&folder, &["trace", "check", "t", "--skip-bad-lines"], 0, &["bad records left out"]);
    let output = call(&folder, &["trace", "check", "t", "--skip-bad-lines"]);
    let all = text(&output.stdout) + &text(&output.stderr);
    assert!(words.iter().all(|word| all.contains(word)), "{all}");
    let done = results(&folder, &["run", "s.toml", "--trace", "t", "--skip-bad-lines"]);
    assert_eq!(done["requests"], 98);
    let warnings = warnings(&done);
    assert!(warnings.contains("bad records left out") && warnings.contains("(2 times)"));
    // The first line alone makes the format doubtful; nothing but bad lines is an error.
    fs::write(folder.path().join("first"), "0,-8,4096,w,1\n0,8,4096,w,2\n").expect("writable");
    let args = ["trace", "check", "first", "--format", "spc"];
    ends(&folder, &args, 3, &["first:1", "is this the format?"]);
    fs::write(folder.path().join("bad"), "0,-8,4096,w,1\n0,8,-1,w,2\n").expect("writable");
    let args = ["trace", "check", "bad", "--format", "spc", "--skip-bad-lines"];
    ends(&folder, &args, 3, &["no requests in 2 lines", "2 times: bad records left out"]);
}

#[test]
fn fit_replays_what_does_not_fit() {
    // Without times, and far beyond a device of 16 MiB.
    let arc: String = (0..50).map(|row| format!("{} 8 0 {row}\n", row * 1_000_000)).collect();
    let folder = folder(&[("t", &arc), ("large", &five_columns(4_000_000).replace(" 8 ", " 80 "))]);
    ends(&folder, &["run", "s.toml", "--trace", "t"], 3, &["needs a device of", "--fit"]);
    let remap = ["run", "s.toml", "--trace", "t", "--set", "workload.address=remap"];
    ends(&folder, &remap, 3, &["16 granules", "--fit"]);
    let remap = [&remap[..], &["--set", "workload.granule=\"64KiB\""]].concat();
    ends(&folder, &remap, 2, &["no arrival times", "--fit"]);
    let done = results(&folder, &["run", "s.toml", "--trace", "t", "--fit"]);
    assert_eq!((&done["requests"], &done["simulated_ns"]), (&50.into(), &5_000_000.into()));
    let warnings = warnings(&done);
    assert!(warnings.contains("50 granules of 256 KiB"), "{warnings}");
    assert!(warnings.contains("closed loop of one request"), "{warnings}");
    // A key as well, and in the report.
    let out = folder.path().join("out");
    let out = out.to_str().expect("UTF-8");
    let args = ["run", "s.toml", "--trace", "t", "--set", "workload.fit=true", "--out", out];
    assert!(call(&folder, &args).status.success());
    let page = fs::read_to_string(Path::new(out).join("report.html")).expect("a report");
    assert!(page.contains("granules of 256 KiB with accesses"));
    let resolved = fs::read_to_string(Path::new(out).join("scenario.toml")).expect("resolved");
    assert!(resolved.contains("fit = true"));
}

#[test]
fn remapped_requests_stay_whole() {
    let line = |row: u64| format!("0,{},65536,r,{row}\n", (row * 97 + 2000) * 64);
    let trace: String = (0..150).map(line).collect();
    let folder = folder(&[("t", &trace)]);
    for address in ["remap", "scale"] {
        let set = format!("workload.address={address}");
        let args = ["run", "s.toml", "--trace", "t", "--set", &set];
        let small = [&args[..], &["--set", "workload.granule=\"64KiB\""]].concat();
        let args = if address == "remap" { small } else { args.to_vec() };
        let args = [&args[..], &["--set", "component.device.capacity=\"24MiB\""]].concat();
        assert_eq!(results(&folder, &args)["requests"], 150, "{address}");
    }
}

#[test]
fn trace_info_orders_arrivals_as_run_does() {
    // A gap of 1 s each, in an order of their own.
    let times = [0, 2, 1, 3, 5, 4, 6, 8, 7, 9];
    let trace: String = times.iter().map(|at| format!("0,{},4096,r,{at}\n", at * 8)).collect();
    let folder = folder(&[("t", &trace)]);
    let info = results(&folder, &["trace", "info", "t"]);
    let gaps = &info["profile"]["interarrival_ns"];
    assert!((gaps["p50"].as_f64().expect("a time") / 1e9 - 1.0).abs() < 0.01, "{gaps}");
    assert_eq!((&gaps["min"], &gaps["max"]), (&1_000_000_000.into(), &1_000_000_000.into()));
    assert_eq!(info["profile"]["device_bytes"], 80 * 512);
}

#[test]
fn check_rejects_what_run_rejects() {
    let scenario = |head: &str| format!("{head}\n{DEVICE}");
    let only_duration = scenario(
        "[workload]\n\
         generator = { kind = \"uniform\", duration = \"1s\" }",
    );
    let missing = scenario("[workload]\ntrace = \"nowhere\"");
    let beyond = scenario("[workload]\ntrace = \"far\"");
    let small =
        scenario("[workload]\ngenerator = { kind = \"uniform\", requests = 9, span = \"4KiB\" }");
    let folder = folder(&[
        ("duration.toml", &only_duration),
        ("missing.toml", &missing),
        ("beyond.toml", &beyond),
        ("small.toml", &small),
        ("far", "0,99999999,4096,r,1\n0,8,4096,r,2\n"),
    ]);
    for command in ["check", "run"] {
        ends(&folder, &[command, "duration.toml"], 2, &["duration", "interarrival_ms"]);
        ends(&folder, &[command, "missing.toml"], 3, &["nowhere", "cannot be opened"]);
        ends(&folder, &[command, "beyond.toml"], 3, &["far", "workload.address", "--fit"]);
    }
    ends(&folder, &["check", "small.toml"], 0, &["4096 bytes", "workload.generator.span"]);
    let done = results(&folder, &["run", "small.toml"]);
    assert!(warnings(&done).contains("the same 4096 bytes"));
}

#[test]
fn an_overload_is_a_failed_run() {
    let text = format!(
        "[host]\noutstanding_max = 100\n[workload]\n\
         generator = {{ kind = \"uniform\", requests = 2000 }}\n{DEVICE}"
    );
    let ssd = "[host]\noutstanding_max = 100\n[workload]\n\
               generator = { kind = \"uniform\", requests = 2000 }\n\
               [component.ssd]\nkind = \"ssd\"\nchannels = 1\ndies_per_channel = 1\n\
               blocks_per_plane = 64\npages_per_block = 32\nover_provisioning = 0.3\n\
               read_time = \"25us\"\nprogram_time = \"200us\"\nerase_time = \"1.5ms\"\n\
               timing = \"none\"\n";
    let folder = folder(&[("over.toml", &text), ("ssd.toml", ssd)]);
    ends(&folder, &["run", "over.toml"], 1, &["overload", "mode = \"closed\""]);
    // Nothing has times: a closed loop is all that can be meant.
    let done = results(&folder, &["run", "ssd.toml"]);
    assert_eq!(done["requests"], 2000);
    assert!(warnings(&done).contains("closed loop"));
}

#[test]
fn any_table_can_be_described() {
    let csv = "when;what;where;bytes;disk\n5.25;0;4096;8192;a\n7.5;1;0;512;b\n";
    let binary = [7u64, 3, 7, 1 << 40].map(u64::to_le_bytes).concat();
    let folder = folder(&[("t.csv", csv)]);
    fs::write(folder.path().join("t.bin"), binary).expect("writable");
    ends(&folder, &["trace", "info", "t.csv"], 3, &["no known trace format", "columns"]);
    let format = "{ kind = \"columns\", time = \"when\", time_unit = \"ms\", op = \"what\", \
                  read = \"1\", offset = \"where\", size = \"4\", volume = \"disk\" }";
    let info = results(&folder, &["trace", "info", "t.csv", "--format", format]);
    let profile = &info["profile"];
    assert_eq!((&profile["reads"], &profile["writes"]), (&1.into(), &1.into()));
    assert_eq!(profile["span_ns"], 2_250_000);
    assert_eq!((&profile["bytes"], &profile["volumes"][1]["name"]), (&8704.into(), &"b".into()));
    let wrong = format.replace("where", "place");
    ends(&folder, &["trace", "info", "t.csv", "--format", &wrong], 3, &["no column called"]);
    let format = "{ kind = \"binary\", layout = \"<Q\", unit = \"4KiB\" }";
    let info = results(&folder, &["trace", "info", "t.bin", "--format", format]);
    assert_eq!(
        (&info["profile"]["reads"], &info["profile"]["has_times"]),
        (&4.into(), &false.into())
    );
    assert_eq!(info["profile"]["footprint_bytes"], 3 * 4096);
}

/// blkparse text of `queued` Q events, of which the block layer merged all but `issued`.
fn merged(queued: u32, issued: u32) -> String {
    let line = |act: char, at: u32, sectors: u32| {
        format!("8,0 1 1 {}.5 5 {act} R {} + {sectors} [x]\n", at / 10, at * 8)
    };
    let queued = (0..queued).map(|at| line('Q', at, 8));
    let issued = (0..issued).map(|at| line('D', at * 10, 80));
    queued.chain(issued).collect()
}

#[test]
fn block_events_are_counted_by_kind() {
    let folder = folder(&[("t.txt", &merged(40, 4))]);
    let info = results(&folder, &["trace", "info", "t.txt"]);
    let events = &info["profile"]["block_events"];
    assert_eq!(info["profile"]["requests"], 4);
    assert_eq!((&events["arrival"], &events["chosen"]), (&"D".into(), &false.into()));
    assert_eq!((&events["queued"], &events["issued"]), (&40.into(), &4.into()));
    let words = "requests are the 4 D events (issued to the device); 40 Q events";
    let table = text(&call(&folder, &["trace", "info", "t.txt"]).stdout);
    assert!(table.contains(words), "{table}");
    let run = ["run", "s.toml", "--trace", "t.txt"];
    let done = results(&folder, &run);
    assert_eq!(done["requests"], 4);
    assert!(warnings(&done).contains(words), "{}", warnings(&done));
    // Choosing is enough, and what was chosen acts.
    let format = ["--format", "{ kind = \"blkparse\", event = \"Q\" }"];
    let done = results(&folder, &[&run[..], &format].concat());
    assert_eq!(done["requests"], 40);
    assert!(!warnings(&done).contains("events"), "{}", warnings(&done));
    assert!(!warnings(&done).contains("effect"), "{}", warnings(&done));
    ends(&folder, &["trace", "check", "t.txt"], 0, &[words]);
}

#[test]
fn numbers_that_are_no_addresses_are_reported_by_info_and_by_run() {
    // Numbers of objects beyond 64 PiB, if they are bytes.
    let record = |at: u64| {
        let (time, next) = ((at as u32).to_le_bytes(), (-1i64).to_le_bytes());
        [&time[..], &((1 << 60) + at * 512).to_le_bytes(), &4096u32.to_le_bytes(), &next].concat()
    };
    let folder = folder(&[]);
    let bytes: Vec<u8> = (0..50).flat_map(record).collect();
    fs::write(folder.path().join("t.bin"), bytes).expect("writable");
    let format = ["--format", "{ kind = \"oracle-general\", objects = \"byte\" }"];
    let words = ["64 PiB", "objects = \"dense\""];
    ends(&folder, &[&["trace", "info", "t.bin"], &format[..]].concat(), 0, &words);
    let run = ["run", "s.toml", "--trace", "t.bin", "--fit"];
    ends(&folder, &[&run, &format[..]].concat(), 3, &words);
    let dense = ["--format", "{ kind = \"oracle-general\", objects = \"dense\" }"];
    ends(&folder, &[&run, &dense[..]].concat(), 0, &[]);
}

#[test]
fn a_backlog_within_a_run_is_reported() {
    let line = |at_ms: u64, row: u64| format!("{}.{:03} 0 {} 8 1\n", at_ms, row % 1000, row * 8);
    let burst = |count: u64| {
        let rows = (0..count).map(|row| line(10_000, row));
        let text = rows.chain((0..20).map(|row| line(60_000 + row * 1_000, row)));
        text.collect::<String>()
    };
    let folder = folder(&[("long", &burst(600)), ("short", &burst(200))]);
    let run = |trace: &str, mode: &str| {
        let sets = ["--set", "component.device.latency=10ms", "--set", "host.queue_depth=1"];
        let trace = ["run", "s.toml", "--trace", trace, "--format", "disksim", "--set", mode];
        warnings(&results(&folder, &[&trace[..], &sets].concat()))
    };
    let found = run("long", "host.mode=open");
    assert!(found.contains("did not keep up for 5."), "{found}");
    assert!(found.contains("up to 599 requests waited at the host"), "{found}");
    assert!(!run("short", "host.mode=open").contains("keep up"));
    assert!(!run("long", "host.mode=closed").contains("keep up"));
}
