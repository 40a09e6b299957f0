//! The program as a user calls it: exit codes, streams, files, and what it says.

#[path = "common/command.rs"]
mod command;

use command::{TOY, call, program, root, scenario, text};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Expects exit code `code` and every word on standard error, and nothing on standard output.
fn refused(args: &[&str], code: i32, words: &[&str]) {
    let output = call(args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}\n{message}");
    assert!(output.stdout.is_empty(), "{args:?} printed {}", text(&output.stdout));
    for word in words {
        assert!(message.contains(word), "{args:?}: `{word}` is missing in\n{message}");
    }
    assert!(!message.contains("panicked"), "{message}");
}

fn toy() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = scenario(&folder, "toy.toml", TOY);
    (folder, path)
}

#[test]
fn json_is_one_document_with_the_promised_keys() {
    let (_folder, toy) = toy();
    let output = call(&["run", &toy, "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(json["requests"], 500);
    for key in ["simulated_ns", "wall_s", "requests_per_wall_s", "peak_rss_bytes", "fingerprint"] {
        assert!(!json[key].is_null(), "{key} is missing");
    }
    for key in ["count", "mean", "stddev", "min", "p50", "p90", "p99", "p999", "max"] {
        assert!(!json["latency_ns"]["all"][key].is_null(), "latency_ns.all.{key} is missing");
    }
    assert!(json["throughput"]["iops"].as_f64().expect("a number") > 0.0);
    assert!(json["components"]["device"].is_object(), "{}", json["components"]);
}

#[test]
fn comparisons_have_the_same_results_however_many_run_at_a_time() {
    let (folder, toy) = toy();
    let slow = TOY.replace("latency = \"100us\"", "latency = \"1ms\"");
    assert_ne!(slow, TOY);
    let slow = scenario(&folder, "slow.toml", &slow);
    let results = |jobs: &str| {
        let output = call(&["compare", &toy, &slow, &toy, "--json", "--jobs", jobs]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mut all: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
        let runs = all.as_array_mut().expect("a list of runs");
        assert_eq!(runs.len(), 3);
        for run in runs.iter_mut().filter_map(Value::as_object_mut) {
            for key in ["wall_s", "requests_per_wall_s", "peak_rss_bytes"] {
                assert!(run.remove(key).is_some(), "{key}");
            }
        }
        assert!(runs[0] == runs[2] && runs[0] != runs[1]);
        all
    };
    assert_eq!(results("1"), results("3"));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_trace_of_several_runs() {
    let (folder, toy) = toy();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
    let trace = ["--trace", pipe.to_str().expect("UTF-8")];
    for args in [
        &["compare", &toy, &toy][..],
        &["compare", &toy, "--seeds", "2"],
        &["sweep", &toy, "--vary", "host.queue_depth=1,2"],
    ] {
        let args = [args, &trace].concat();
        refused(&args, 2, &["can be read only once", "save it to a file"]);
    }
}

/// The failure that `args` print as JSON.
fn failure_json(args: &[&str]) -> Value {
    let output = call(args);
    let json: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(json["error"]["exit_code"].as_i64(), output.status.code().map(i64::from));
    assert!(!output.stderr.is_empty(), "the message is printed as well");
    json["error"].clone()
}

#[test]
fn with_json_a_failure_is_a_document_as_well() {
    let (_folder, toy) = toy();
    let sets = ["--set", "host.queue_deth=3", "--set", "component.device.latency=5"];
    let error = failure_json(&[&["run", &toy, "--json"][..], &sets].concat());
    assert_eq!(error["exit_code"], 2);
    let problems = error["problems"].as_array().expect("a list");
    assert_eq!(problems.len(), 2, "{error}");
    assert_eq!(problems[0]["key"], "host.queue_deth");
    assert_eq!(problems[0]["help"], "did you mean `queue_depth`?");
    assert_eq!((&problems[1]["line"], &problems[1]["column"]), (&1.into(), &1.into()));
    assert_eq!(failure_json(&["trace", "info", "nowhere", "--json"])["exit_code"], 3);
    assert_eq!(failure_json(&["sweep", &toy, "--json"])["exit_code"], 2);
    assert_eq!(failure_json(&["reproduce", "nothing", "--json"])["exit_code"], 2);
    assert_eq!(failure_json(&["calibrate", "nowhere", "--json"])["exit_code"], 3);
    let disk = |start: &str| failure_json(&["calibrate", "nowhere", "--json", "--disk", start]);
    assert_eq!(disk("seagate-barracuda-2gb")["exit_code"], 3);
    assert_eq!(disk("sata-ssd")["exit_code"], 2);
    let usage = failure_json(&["run", "--json", "--nonsense"]);
    assert!(usage["message"].as_str().expect("a text").contains("--nonsense"), "{usage}");
}

#[test]
fn a_results_folder_holds_what_other_tools_read() {
    let (folder, toy) = toy();
    let out = folder.path().join("out");
    let path = out.to_str().expect("UTF-8");
    let also = ["--requests", "--timeline", "0s..2ms"];
    assert!(call(&[&["run", &toy, "--out", path][..], &also].concat()).status.success());
    let read = |name: &str| fs::read_to_string(out.join(name)).expect(name);
    let json = |name: &str| serde_json::from_str::<Value>(&read(name)).expect(name);
    let (results, fio) = (json("results.json"), json("fio.json"));
    for op in ["read", "write"] {
        let (theirs, ours) = (&fio["jobs"][0][op], &results["latency_ns"][op]);
        assert_eq!(theirs["total_ios"], ours["count"]);
        assert_eq!(theirs["clat_ns"]["mean"], ours["mean"]);
        assert_eq!(theirs["clat_ns"]["percentile"]["99.000000"], ours["p99"]);
        assert_eq!(theirs["iops"], results["throughput"][format!("{op}_iops")]);
        assert_eq!(theirs["io_bytes"], results["throughput"][format!("{op}_bytes")]);
        let foot = format!("Total count    = {:12}]", ours["count"].as_u64().expect("a count"));
        assert!(read(&format!("latency-{op}.hgrm")).contains(&foot), "{foot}");
    }
    let series = json("series.json");
    let column = |name: &str| {
        let all = series["columns"].as_array().expect("columns");
        all.iter().find(|column| column["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    let sum = |name: &str| {
        let values = column(name)["values"].as_array().expect("values").clone();
        values.iter().map(|value| value.as_u64().expect("a count")).sum::<u64>()
    };
    assert_eq!(results["throughput"]["write_bytes"], sum("write_bytes"));
    assert_eq!(results["latency_ns"]["all"]["count"], sum("requests"));
    assert_eq!(series["end_ns"], results["simulated_ns"]);
    assert_eq!(column("iops")["unit"], "requests/s");
    let table = read("series.csv");
    let names: Vec<&str> = table.lines().next().expect("a head").split(',').collect();
    assert_eq!(series["columns"].as_array().map(Vec::len), Some(names.len()), "{names:?}");
    assert!(names.contains(&"latency_ns_p99"), "{names:?}");
    let rows: Vec<Vec<u64>> = read("requests.csv")
        .lines()
        .skip(1)
        .map(|row| row.split(',').filter_map(|cell| cell.parse().ok()).collect())
        .collect();
    assert_eq!(rows.len(), 500);
    // Arrival, latency, first sector, sectors (the operation is a word), then the parts.
    assert!(rows.iter().all(|row| row[1] == row[4..].iter().sum::<u64>()));
    let sum: u64 = rows.iter().map(|row| row[1]).sum();
    let mean = results["latency_ns"]["all"]["mean"].as_f64().expect("a mean");
    assert!((sum as f64 / 500.0 - mean).abs() < 1e-6);
    let events = json("timeline.json")["traceEvents"].as_array().expect("a list").len();
    let within = rows.iter().filter(|row| row[0] < 2_000_000).count();
    assert!(events >= 2 * within && within > 10, "{events} {within}");

    // Another run leaves nothing of this one behind.
    assert!(call(&["run", &toy, "--out", path, "--force"]).status.success());
    assert!(out.join("fio.json").exists() && !out.join("requests.csv").exists());
    refused(&["run", &toy, "--requests"], 2, &["--out"]);
    let failed = folder.path().join("failed");
    let failed_path = failed.to_str().expect("UTF-8");
    let no_trace = ["--trace", "nowhere.csv", "--out", failed_path, "--requests"];
    refused(&[&["run", &toy][..], &no_trace].concat(), 3, &["nowhere"]);
    assert!(!failed.exists(), "nothing half done is left");
    refused(&["run", &toy, "--out", path, "--timeline", "2s..1s"], 2, &["ends before it starts"]);
}

/// A folder in the place of a file stands for a disk that is full: neither can be written.
#[test]
fn figures_are_printed_even_where_they_cannot_be_saved() {
    let (folder, path) = toy();
    let out = folder.path().join("out");
    fs::create_dir_all(out.join("results.json")).expect("a writable folder");
    let output = call(&["run", &path, "--out", out.to_str().expect("UTF-8"), "--force"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(text(&output.stdout).contains("fingerprint"), "the figures are lost");
    assert!(message.contains("cannot write results.json"), "{message}");
    let names = fs::read_dir(&out).expect("a readable folder").flatten();
    let left = names.filter(|file| file.file_name().to_string_lossy().contains("partial"));
    assert_eq!(left.count(), 0, "half a file is left behind");
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_written_to_and_not_replaced() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (real, link, pipe) =
        (folder.path().join("real"), folder.path().join("link"), folder.path().join("pipe"));
    fs::write(&real, "old").expect("a writable folder");
    symlink(&real, &link).expect("a writable folder");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there");
    assert!(made.success());
    let draw =
        |path: &Path| program(&["draw", "examples/disk.toml", "-o", path.to_str().expect("UTF-8")]);
    assert!(draw(&link).status().expect("the program starts").success());
    assert!(fs::read_to_string(&real).expect("it is there").contains("<svg"));
    assert!(link.is_symlink());
    let mut drawing = draw(&pipe).spawn().expect("the program starts");
    assert!(fs::read_to_string(&pipe).expect("a pipe can be read").contains("<svg"));
    assert!(drawing.wait().expect("it ends").success());
    assert!(fs::metadata(&pipe).expect("it is there").file_type().is_fifo());
}

#[test]
fn a_scenario_may_come_from_standard_input() {
    let (folder, toy) = toy();
    let run = |args: &[&str], input: &str| {
        let mut child = program(args);
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        std::io::Write::write_all(&mut stdin, input.as_bytes()).expect("it is read");
        drop(stdin);
        child.wait_with_output().expect("it ends")
    };
    let piped = run(&["run", "-", "--json"], TOY);
    let piped: Value = serde_json::from_slice(&piped.stdout).expect("JSON");
    let named: Value =
        serde_json::from_slice(&call(&["run", &toy, "--json"]).stdout).expect("JSON");
    assert_eq!(piped["fingerprint"], named["fingerprint"]);
    assert_eq!(piped["scenario"], "standard input");
    let wrong = run(&["check", "-"], "[host]\nqueue_deth = 3\n");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("standard input"), "{}", text(&wrong.stderr));
    let out = folder.path().join("both");
    let out = out.to_str().expect("UTF-8");
    assert!(run(&["compare", "-", &toy, "--out", out], TOY).status.success());
    assert!(Path::new(out).join("run/results.json").exists());
    refused(&["sweep", "-", "--vary", "run.seed=1,2"], 2, &["in a file"]);
}

#[test]
fn miss_ratio_curves_of_a_trace() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Two pages, then a third: a cache of two pages finds pages 0 and 1 again until then.
    let rows: String = [0, 1, 0, 1, 2, 0].iter().zip(0..).fold(
        "time_ns,op,volume,lba,sectors,flags,response_ns\n".to_owned(),
        |rows, (page, at)| rows + &format!("{at},read,0,{},8,0,\n", page * 8),
    );
    let trace = scenario(&folder, "t.csv", &rows);
    let svg = folder.path().join("mrc.svg");
    let svg = svg.to_str().expect("UTF-8");
    let args = ["trace", "mrc", &trace, "--policy", "lru,fifo", "--sizes", "4KiB,8KiB,1", "--json"];
    let output = call(&[&args[..], &["-o", svg]].concat());
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let curve = |at: usize| {
        let points = json["mrc"]["curves"][at]["points"].as_array().expect("points");
        let misses = |point: &Value| point["miss_ratio"].as_f64().expect("known") * 6.0;
        points.iter().map(|point| misses(point).round()).collect::<Vec<_>>()
    };
    assert_eq!((curve(0), curve(1)), (vec![6.0, 4.0, 3.0], vec![6.0, 4.0, 3.0]));
    assert_eq!(json["mrc"]["footprint_bytes"], 3 * 4096);
    assert!(fs::read_to_string(svg).expect("a picture").contains("fifo"));
    let table = text(&call(&["trace", "mrc", &trace, "--policy", "all"]).stdout);
    assert!(table.contains("w-tinylfu") && table.contains("12 KiB"), "{table}");
    refused(&["trace", "mrc", &trace, "--policy", "lur"], 2, &["there are: lru"]);
    refused(&["trace", "mrc", &trace, "--sizes", "2"], 2, &["between 0 and 1"]);
    let aet = ["trace", "mrc", &trace, "--method", "aet", "--policy", "lru,sieve"];
    refused(&aet, 2, &["--method aet models lru only, not `sieve`"]);
    let table = text(&call(&["trace", "mrc", &trace, "--method", "aet"]).stdout);
    assert!(table.contains("by average eviction time"), "{table}");
    refused(&["trace", "mrc", "nowhere"], 3, &["nowhere"]);
}

#[test]
fn a_result_can_be_run_again_from_its_own_folder() {
    let (folder, toy) = toy();
    let out = folder.path().join("out");
    let out = out.to_str().expect("UTF-8");
    assert!(call(&["run", &toy, "--out", out]).status.success());
    let read = |name: &str| fs::read_to_string(Path::new(out).join(name)).expect(name);
    let first: Value = serde_json::from_str(&read("results.json")).expect("JSON");
    assert!(read("report.html").contains("Toy &lt;b&gt;"), "titles are escaped");
    let again = call(&["run", &format!("{out}/scenario.toml"), "--json"]);
    let second: Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!(first["fingerprint"], second["fingerprint"]);
    refused(&["run", &toy, "--out", out], 2, &["not empty", "--force"]);
    assert!(call(&["run", &toy, "--out", out, "--force"]).status.success());
}

#[test]
fn two_processes_and_observers_agree_on_the_fingerprint() {
    let (folder, toy) = toy();
    let fingerprint = |args: &[&str]| {
        let output = call(args);
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        json["fingerprint"].as_str().expect("a fingerprint").to_owned()
    };
    let out = folder.path().join("seen");
    let bare = fingerprint(&["run", &toy, "--json"]);
    let full = fingerprint(&["run", &toy, "--json", "--out", out.to_str().expect("UTF-8")]);
    assert_eq!(bare, full, "with and without pictures");
    let other = fingerprint(&["run", &toy, "--json", "--set", "run.seed=2"]);
    assert_ne!(bare, other, "another seed is another run");
}

#[test]
fn mistakes_get_their_exit_codes_and_a_remedy() {
    let (folder, toy) = toy();
    refused(&["run", "nowhere.toml"], 2, &["nowhere.toml", "cannot read"]);
    assert!(!text(&call(&["run", "nowhere.toml"]).stderr).contains("problem in the scenario"));
    refused(&["run", &toy, "--set", "host.queue_deth=3"], 2, &["did you mean `queue_depth`?"]);
    refused(&["run", &toy, "--set", "component.device.capacity=4k"], 2, &["4kB", "4KiB"]);
    refused(&["run", &toy, "--trace", "nowhere.trace"], 3, &["nowhere.trace"]);
    refused(&["run", &toy, "--trace", "."], 3, &["directory"]);
    let noise = scenario(&folder, "noise.trace", "this is not a trace\n");
    refused(&["run", &toy, "--trace", &noise], 3, &["noise.trace"]);
    refused(&["trace", "info", &noise], 3, &["noise.trace"]);
    refused(&["trace", "info", "nowhere"], 3, &["nowhere"]);
    refused(&["explain", "queue_dept"], 2, &["queue_depth"]);
    refused(&["list", "nonsense"], 2, &["scheduler"]);
    refused(&["run"], 2, &["Usage"]);
    refused(&["rnu", &toy], 2, &["unrecognized"]);
}

#[test]
fn a_request_beyond_the_device_names_the_remedy() {
    let (folder, toy) = toy();
    let trace = scenario(&folder, "far.spc", "0,0,4096,r,0.0\n0,99999999,4096,w,0.1\n");
    let output = call(&["run", &toy, "--trace", &trace, "--json"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.contains("wrap") && message.contains("larger device"), "{message}");
    assert!(message.contains("workload.address") && message.contains("--fit"), "{message}");
    let json: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(json["error"]["exit_code"], 3, "known before the run");
    let output =
        call(&["run", &toy, "--trace", &trace, "--set", "workload.address=wrap", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_trace_takes_the_place_of_the_whole_workload() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = scenario(&folder, "short.spc", "0,0,4096,r,0.0\n0,8,4096,w,0.5\n0,16,4096,w,1.0\n");
    let span = |scenario: &str, words: &[&str]| -> f64 {
        let output = call(&["run", scenario, "--trace", &trace, "--json"]);
        let message = text(&output.stderr);
        assert!(output.status.success(), "{message}");
        assert_eq!(message.is_empty(), words.is_empty(), "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        json["simulated_ns"].as_f64().expect("a number") / 1e9
    };
    let open = TOY.replace("closed", "open");
    let scaled = open.replace("[workload]", "[workload]\ntime_scale = 10");
    let bare = open.replace("generator =", "time_scale = 10 #");
    let file = |name: &str, text: &str| scenario(&folder, name, text);
    assert!(span(&file("open.toml", &open), &[]) < 1.1);
    // How the scenario's own workload is scaled says nothing of another.
    assert!(span(&file("scaled.toml", &scaled), &["`time_scale` is ignored"]) < 1.1);
    assert!(span(&file("bare.toml", &bare), &[]) > 9.9);
}

#[test]
fn a_comparison_of_different_workloads_says_so() {
    let (folder, path) = toy();
    let other = scenario(&folder, "other.toml", &TOY.replace("requests = 500", "requests = 400"));
    let message = |paths: [&str; 2]| text(&call(&["compare", paths[0], paths[1]]).stderr);
    assert!(message([&path, &other]).contains("the workloads differ"));
    assert!(!message([&path, &path]).contains("the workloads differ"));
}

#[test]
fn a_closed_pipe_is_a_quiet_end() {
    let mut child = program(&["schema"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let mut message = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut message).expect("UTF-8");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{message}");
    assert_eq!(message, "");
}

#[test]
fn everything_registered_is_listed_and_explained() {
    let slots = text(&call(&["list"]).stdout);
    for line in slots.lines() {
        let (slot, names) = line.split_once(' ').expect("slot and names");
        let listed = call(&["list", slot]);
        assert!(listed.status.success(), "list {slot}");
        for name in names.split(',').map(str::trim).filter(|_| slot != "preset") {
            let explained = call(&["explain", name]);
            assert!(explained.status.success(), "explain {name}");
            assert!(text(&explained.stdout).contains(name));
        }
    }
    let schema: Value = serde_json::from_slice(&call(&["schema"]).stdout).expect("JSON");
    assert!(schema["properties"]["component"].is_object());
}

#[test]
fn the_examples_check() {
    let mut examples: Vec<_> = fs::read_dir(root().join("examples"))
        .expect("examples")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    examples.sort();
    assert!(examples.len() >= 3);
    for path in examples {
        let output = call(&["check", path.to_str().expect("UTF-8")]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

#[test]
fn every_preset_builds() {
    let presets = text(&call(&["list", "preset"]).stdout);
    let folder = tempfile::tempdir().expect("a temporary folder");
    assert!(presets.lines().count() >= 10, "{presets}");
    for line in presets.lines() {
        let name = line.split_whitespace().next().expect("a name");
        // A bus and a cache have devices of their owner's choice; every other preset is complete.
        let kind = hybridsim::presets::kinds().into_iter().find(|(preset, _)| preset == name);
        let needs = match kind.expect("it is listed").1.as_str() {
            "bus" => "devices = [\"disk\"]\n[component.disk]\npreset = \"seagate-cheetah-9lp\"\n",
            "smr-disk" => "device = \"disk\"\n[component.disk]\npreset = \"seagate-archive-8tb\"\n",
            "flash-cache" => {
                "flash = \"flash\"\ndisk = \"disk\"\n[component.flash]\npreset = \"sata-ssd\"\n\
                 [component.disk]\npreset = \"seagate-cheetah-9lp\"\n"
            }
            _ => "",
        };
        let text = format!(
            "workload.generator = {{ kind = \"uniform\", requests = 1 }}\n\
             system = \"device\"\n[component.device]\npreset = \"{name}\"\n{needs}"
        );
        let path = scenario(&folder, &format!("{name}.toml"), &text);
        let output = call(&["check", &path]);
        assert!(output.status.success(), "{name}: {}", self::text(&output.stderr));
    }
}

#[test]
fn a_calibration_that_means_little_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let head = "op,bytes,latency_ns\nread,2048,150000\nread,4096,200000\nread,8192,300000\n";
    let good = scenario(&folder, "good.csv", head);
    let bad = scenario(&folder, "bad.csv", &format!("{head}read,65536,310000\n"));
    assert_eq!(text(&call(&["calibrate", &good]).stderr), "");
    let output = call(&["calibrate", &bad]);
    let message = text(&output.stderr);
    assert!(output.status.success() && message.contains("reads do not fit a line"), "{message}");
}

#[test]
fn a_calibration_does_not_replace_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let readings = "op,bytes,latency_ns\nread,2048,150000\nread,4096,200000\nread,8192,300000\n";
    let (csv, out) = (scenario(&folder, "good.csv", readings), scenario(&folder, "out.toml", "#"));
    for start in [&[][..], &["--disk", "seagate-cheetah-9lp"]] {
        let words = [&["calibrate", &csv, "--out", &out], start].concat();
        let output = call(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains("--force"), "{}", text(&output.stderr));
        assert_eq!(std::fs::read_to_string(&out).expect("a file"), "#");
    }
    assert!(call(&["calibrate", &csv, "--out", &out, "--force"]).status.success());
    assert_ne!(std::fs::read_to_string(&out).expect("a file"), "#");
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_preconditioning_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = SSD.replace("\"fill\"", "\"steady\"").replace("plane = 64", "plane = 40000");
    let path = scenario(&folder, "ssd.toml", &text);
    let child = program(&["run", &path, "--no-cache", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(std::time::Duration::from_millis(700));
    command::send("-INT", &child);
    let asked = std::time::Instant::now();
    let output = child.wait_with_output().expect("it ends");
    assert!(asked.elapsed().as_secs() < 10, "{:?}", asked.elapsed());
    assert_eq!(output.status.code(), Some(130), "{}", text_of(&output));
    let json: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert!(json["error"]["message"].as_str().expect("a text").contains("before anything"));
}

fn text_of(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn a_key_as_messages_write_it_is_explained() {
    for (key, word) in [
        ("component.my-ssd.read_time", "ssd.read_time"),
        ("component.a.ftl.gc", "page.gc"),
        ("component.a.ftl", "ssd.ftl"),
        ("host.queue_depth", "host.queue_depth"),
        ("workload.time_scale", "workload.time_scale"),
    ] {
        let message = text(&call(&["explain", key]).stdout);
        assert!(message.contains(word), "{key}: {message}");
    }
    let unknown = "no key, entry or category called `component.a.nonsense`";
    refused(&["explain", "component.a.nonsense"], 2, &[unknown]);
    refused(&["explain", "GREEDY"], 2, &["did you mean `greedy`?"]);
    refused(&["list", "ftls"], 2, &["did you mean `ftl`?"]);
}

#[test]
fn random_systems_pass() {
    let output = call(&["fuzz", "--seed", "1", "--runs", "200"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let message = text(&output.stdout);
    let passed: u64 =
        message.split_whitespace().next().expect("a count").parse().expect("a number");
    // About half of them pass.
    assert!(passed >= 80, "too few of the systems could be built: {message}");
}

#[test]
fn a_reproduction_prints_every_row_and_writes_its_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let out_name = out.display().to_string();
    let output = call(&["reproduce", "flashsim/table3", "--json", "--out", &out_name]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let rows = document["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 10);
    for row in rows {
        for key in ["id", "experiment", "claim", "unit", "tolerance", "verdict"] {
            assert!(row[key].is_string(), "{key} in {row}");
        }
        assert_eq!(row["verdict"], "given", "{row}");
    }
    let page = fs::read_to_string(out.join("reproduction.html")).expect("the page");
    assert!(page.contains("flashsim/table3"));
    refused(&["reproduce", "flashsim/table9"], 2, &["flashsim/table9", "reproduce --list"]);
    refused(&["reproduce", "flashsim", "--out", &out_name], 2, &["--force"]);
    let list = call(&["reproduce", "--list"]);
    assert!(text(&list.stdout).contains("konanki/tables5.1-5.2"));
}

const SSD: &str = r#"
[workload]
generator = { kind = "uniform", requests = 300, read = 0.5 }
[host]
mode = "closed"
[component.ssd]
kind = "ssd"
blocks_per_plane = 64
over_provisioning = 0.3
read_time = "25us"
program_time = "200us"
erase_time = "1500us"
precondition = "fill"
"#;

#[test]
fn a_state_is_saved_and_taken_back_by_the_same_system_only() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = scenario(&folder, "ssd.toml", SSD);
    let state = folder.path().join("end.state");
    let state = state.to_str().expect("UTF-8");
    let json = |args: &[&str]| -> Value {
        let output = call(&[&["run", &path, "--json", "--no-cache"], args].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let first = json(&["--save-state", state]);
    let second = json(&["--load-state", state]);
    let third = json(&["--set", "run.state=\"end.state\"", "--verify"]);
    assert_ne!(first["fingerprint"], second["fingerprint"], "another device by then");
    assert_eq!(second["fingerprint"], third["fingerprint"]);
    let other = ["--set", "component.ssd.blocks_per_plane=65"];
    let refuse = |args: &[&str], words: &[&str]| {
        refused(&[&["run", &path, "--load-state", state], args].concat(), 2, words);
    };
    refuse(&other, &["end.state cannot be used", "`blocks_per_plane = 65` under [component.ssd]"]);
    let bytes = fs::read(state).expect("it was saved");
    fs::write(state, &bytes[..bytes.len() / 2]).expect("a writable folder");
    refuse(&[], &["end.state cannot be used", "damaged or cut short"]);
    fs::write(state, "[component.ssd]").expect("a writable folder");
    refuse(&[], &["this is not a saved state"]);
    fs::remove_file(state).expect("it is there");
    refuse(&[], &["end.state cannot be used", "No such file"]);
    refused(&["run", &path, "--save-state", "/nowhere/at/all"], 2, &["cannot write /nowhere"]);
}

#[test]
fn a_verified_run_says_how_many_requests_failed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = scenario(&folder, "ssd.toml", SSD);
    let verified = |sets: &[&str]| {
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let args: Vec<&str> = ["run", &path, "--verify"].into_iter().chain(sets).collect();
        let output = call(&args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let without = verified(&[]);
    assert!(without.contains("verified: 300 requests, every read returned"), "{without}");
    let errors = [
        "component.ssd.errors.kind=\"power-law\"",
        "component.ssd.errors.rber_base=0.5",
        "component.ssd.errors.retries_max=0",
    ];
    let failed = |sets: &[&str]| {
        let said = verified(&[&errors, sets].concat());
        let (_, rest) = said.split_once("returned the last write; ").expect("reads failed");
        let count = rest.split_once(" requests failed").expect("their number").0;
        count.parse::<u64>().expect("a number")
    };
    let all = failed(&[]);
    assert!((100..200).contains(&all), "{all} of about 150 reads");
    assert_eq!(failed(&["run.warmup_requests=200"]), all, "those of the warm-up count");
}

#[test]
fn preconditioned_devices_are_cached_by_default() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = SSD.replace("\"fill\"", "\"steady\"");
    let path = scenario(&folder, "ssd.toml", &text);
    let cache = folder.path().join("cache");
    let run = |args: &[&str]| -> String {
        let mut command = program(&[&["run", path.as_str(), "--json"], args].concat());
        let output = command.env("HYBRIDSIM_CACHE", &cache).output().expect("the program starts");
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        json["fingerprint"].as_str().expect("a text").to_owned()
    };
    let files = || fs::read_dir(&cache).map_or(0, |files| files.count());
    let fresh = run(&["--no-cache"]);
    assert_eq!(files(), 0);
    assert_eq!((run(&[]), files()), (fresh.clone(), 1));
    assert_eq!((run(&[]), files()), (fresh.clone(), 1), "remembered");
    assert_ne!(run(&["--set", "run.seed=7"]), fresh, "another seed, another device");
    assert_eq!(files(), 2);
    for file in fs::read_dir(&cache).expect("a folder") {
        let file = file.expect("a file").path();
        let mut bytes = fs::read(&file).expect("one's own file");
        *bytes.last_mut().expect("it holds something") ^= 1;
        fs::write(&file, bytes).expect("one's own file");
    }
    assert_eq!(run(&[]), fresh, "damaged ones are made anew");
}

#[test]
fn a_sweep_goes_on_where_it_stopped_and_says_what_failed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let base = scenario(&folder, "base.toml", TOY);
    let out = folder.path().join("out").display().to_string();
    let sweep = |arguments: &[&str]| {
        let vary = ["--vary", "host.queue_depth=1,0,4", "--out", &out];
        call(&[&["sweep", &base][..], &vary, arguments].concat())
    };
    let table = || std::fs::read_to_string(format!("{out}/sweep.csv")).expect("the table");
    let first = sweep(&["--shard", "0/1"]);
    assert_eq!(first.status.code(), Some(4), "{}", text(&first.stderr));
    assert!(text(&first.stdout).contains("failed: "), "{}", text(&first.stdout));
    let before = table();
    assert_eq!(before.lines().count(), 4, "{before}");
    sweep(&[]);
    assert_eq!(table(), before, "finished points are not run again: even their wall times stay");
    let json = call(&["sweep", &base, "--vary", "host.queue_depth=1,4", "--json"]);
    let rows: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(rows[1]["set"]["host.queue_depth"], 4);
    assert!(rows[1]["results"]["latency_ns"]["all"]["mean"].as_f64().expect("a mean") > 0.0);
    let message = text(&call(&["sweep", &base, "--vary", "host.queue_depth=1,4"]).stdout);
    assert!(
        message.contains("only 500 requests were measured") && message.contains("(2 of 2 points)")
    );
    assert!(message.lines().nth(1).expect("a row").contains(" - "), "no p99 of 500: {message}");
    let wrong = call(&["sweep", &base, "--vary", "host.queue_dept=1,4"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("queue_depth"), "{}", text(&wrong.stderr));
}

#[test]
fn every_topology_builds_and_its_picture_is_up_to_date() {
    let topologies = fs::read_dir(root().join("examples/topologies")).expect("they are there");
    let mut count = 0;
    for entry in topologies {
        let path = entry.expect("a readable folder").path();
        let output = call(&["draw", path.to_str().expect("UTF-8")]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let picture = root().join(format!("docs/models/topologies/{stem}.svg"));
        let kept = fs::read_to_string(&picture).expect("its picture is in docs/models/topologies");
        assert_eq!(text(&output.stdout), kept, "{stem}: draw it again with `hybridsim draw`");
        count += 1;
    }
    assert!(count >= 5, "{count}");
}

#[test]
fn every_example_is_drawn_with_all_its_parts() {
    for (example, parts) in [("disk", 1), ("ssd", 1), ("hybrid", 3)] {
        let output = call(&["draw", &format!("examples/{example}.toml")]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let picture = text(&output.stdout);
        assert_eq!(picture.matches("class=\"name\"").count(), parts + 1, "{picture}");
    }
}

#[test]
fn a_trace_is_checked_to_its_end() {
    let whole = root().join("workloads/git.hst");
    let output = call(&["trace", "check", whole.to_str().expect("UTF-8")]);
    let message = text(&output.stdout);
    assert!(output.status.success() && message.contains(" records as native"), "{message}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut bytes = fs::read(&whole).expect("a bundled trace");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged = folder.path().join("damaged.hst");
    fs::write(&damaged, bytes).expect("a writable folder");
    refused(&["trace", "check", damaged.to_str().expect("UTF-8")], 3, &["damaged.hst"]);
}

#[test]
fn figures_that_mislead_come_with_a_warning() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let drive = "kind = \"ssd\"\nblocks_per_plane = 32\npages_per_block = 16\n\
                 read_time = \"25us\"\nprogram_time = \"200us\"\nerase_time = \"1500us\"\n";
    let alone = format!(
        "[workload]\ngenerator = {{ kind = \"fio\", rw = \"randread\", bs = \"4KiB\", \
         requests = 1200, span = \"4MiB\", rate_iops = 5000 }}\n[component.ssd]\n{drive}"
    );
    let warned_of = |base: &str, sets: &[&str]| {
        let path = scenario(&folder, "ssd.toml", base);
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let output = call(&[&["run", &path, "--json"][..], &sets].concat());
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(json["requests"], 1200, "{}", text(&output.stderr));
        json["warnings"].to_string()
    };
    let warned = |sets: &[&str]| warned_of(&alone, sets);
    let (fresh, full) = (&[][..], "component.ssd.precondition=\"fill\"");
    assert!(warned(fresh).contains("had never been written"), "{}", warned(fresh));
    assert!(!warned(&[full]).contains("had never been written"), "{}", warned(&[full]));
    // The warning names a drive below others, and only the empty one.
    let pair = format!(
        "system = \"pair\"\n{alone}[component.other]\n{drive}[component.pair]\nkind = \"stripe\"\n\
         chunk = \"64KiB\"\nmembers = [\"ssd\", \"other\"]\n"
    );
    let message = warned_of(&pair, &[full]);
    assert!(message.contains("100 % of the data read from pair/other had never"), "{message}");
    assert!(warned_of(&pair, fresh).contains("(and a large share from 1 more)"));
    let slow = [
        full,
        "component.ssd.read_time=\"4ms\"",
        "component.ssd.channels=1",
        "component.ssd.dies_per_channel=1",
        "component.ssd.planes_per_die=16",
    ];
    assert!(warned(&slow).contains("fell behind"), "{}", warned(&slow));
    assert!(warned(&slow).contains("latencies grow"), "{}", warned(&slow));
    let issued = [&slow[..], &["host.queue_depth=4", "host.latency_from=\"issue\""]].concat();
    assert!(warned(&issued).contains("do not include the wait"), "{}", warned(&issued));
    let closed = [&slow[..], &["host.mode=\"closed\""]].concat();
    assert!(!warned(&closed).contains("fell behind"), "{}", warned(&closed));
}

#[test]
fn columns_beside_one_json_document_are_refused() {
    let (_folder, toy) = toy();
    for command in ["run", "compare"] {
        let output = call(&[command, &toy, "--json", "--column", "throughput.iops"]);
        assert_eq!(output.status.code(), Some(2));
        let json: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
        assert!(json["error"]["message"].to_string().contains("--column"), "{json}");
    }
}
