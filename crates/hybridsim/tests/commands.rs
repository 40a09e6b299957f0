//! Commands around runs: new scenarios, the cache of preconditioned devices, completions and manual
//! pages, further columns, seeds, results of arrays that fail, and the end of a run by a signal.

#[path = "common/command.rs"]
mod command;

use command::{TOY, call, document, program, root, scenario, send, text, wait_for_handler};
use hybridsim_simulation::memory;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::scenario::Scenario;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

#[cfg(unix)]
#[test]
fn a_terminated_run_prints_the_results_so_far() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let endless = TOY.replace("requests = 500", "requests = 1_000_000_000_000");
    let path = scenario(&folder, "endless.toml", &endless);
    for signal in ["-INT", "-TERM"] {
        let mut command = program(&["run", &path, "--json"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("the program starts");
        std::thread::sleep(std::time::Duration::from_secs(2));
        send(signal, &child);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{signal}\n{}", text(&output.stderr));
        let json: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
        assert!(json["requests"].as_u64() > Some(0), "{signal}");
        assert_eq!(json["complete"], false, "{signal}");
    }
}

/// Work that takes long in different places, each with the signal and the exit code after it;
/// `None` where the signal itself ends a command that has nothing to keep: SIGTERM, as tests in the
/// background of a shell ignore SIGINT, and what they start does.
#[cfg(unix)]
fn long_work(folder: &tempfile::TempDir) -> Vec<(Vec<String>, &'static str, Option<i32>)> {
    let path = |name: &str| folder.path().join(name).display().to_string();
    let endless = TOY.replace("requests = 500", "requests = 1_000_000_000_000");
    let endless = scenario(folder, "endless.toml", &endless);
    let toy = scenario(folder, "toy.toml", TOY);
    // A device whose tables take seconds to fill, and to save.
    let large = "[workload]\ngenerator = { kind = \"uniform\", requests = 500 }\n[host]\n\
                 mode = \"closed\"\n[component.ssd]\npreset = \"sata-ssd\"\n\
                 blocks_per_plane = 16384\nprecondition = \"steady\"\n";
    let large = scenario(folder, "large.toml", large);
    // A trace whose end never comes.
    let pipe = path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
    let [out, points, state, converted] = ["out", "points", "state", "x.hst"].map(path);
    let conversations = root().join("examples/studies/sessions.jsonl").display().to_string();
    let vary = ["--vary", "run.seed=1,2,3"];
    let rows: &[(&[&str], &str, Option<i32>)] = &[
        (&["run", &endless], "-INT", Some(130)),
        (&["run", &endless, "--out", &out, "--requests"], "-TERM", Some(130)),
        (&["run", &large, "--no-cache"], "-INT", Some(130)),
        (&["run", &large, "--no-cache", "--save-state", &state], "-TERM", Some(130)),
        (&["run", &toy, "--trace", &pipe], "-INT", Some(130)),
        (&["compare", &toy, &large, "--no-cache"], "-INT", Some(130)),
        (&["compare", &toy, &large, "--no-cache", "--seeds", "2"], "-INT", Some(130)),
        (
            &[&["sweep", &large, "--no-cache", "--out", &points], &vary[..]].concat(),
            "-INT",
            Some(130),
        ),
        (&["write-amplification", &large, "--no-cache"], "-INT", Some(130)),
        (&["surrogate", &large, "--no-cache"], "-INT", Some(130)),
        (&["serve", &large, "--no-cache", "--nbd", "127.0.0.1:0"], "-INT", Some(130)),
        (
            &["serve", &large, "--no-cache", "--nbd", "127.0.0.1:0", "--state", &state],
            "-INT",
            Some(130),
        ),
        (&["serve", &toy, "--nbd", "127.0.0.1:0"], "-TERM", Some(0)),
        (&["reproduce", "all"], "-INT", Some(130)),
        (&["verify"], "-INT", Some(130)),
        (&["fuzz", "--runs", "1000000000"], "-TERM", None),
        (&["plan", &pipe], "-TERM", None),
        (&["kv", "generate", &conversations, "--count", "10000000", &path("k")], "-TERM", None),
        (&["trace", "info", &pipe], "-TERM", None),
        (&["trace", "check", &pipe], "-TERM", None),
        (&["trace", "mrc", &pipe], "-TERM", None),
        (&["trace", "convert", &pipe, &converted], "-TERM", None),
    ];
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    rows.iter().map(|(words, signal, code)| (owned(words), *signal, *code)).collect()
}

#[cfg(unix)]
#[test]
fn every_command_ends_soon_after_a_signal() {
    use std::os::unix::process::ExitStatusExt;
    use std::time::{Duration, Instant};
    /// The longest time to the end, most of it for other tests that run beside this one.
    const SOON: Duration = Duration::from_secs(10);
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (words, signal, code) in long_work(&folder) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut child = program(&words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        if code.is_some() {
            wait_for_handler(child.id());
        }
        std::thread::sleep(Duration::from_millis(500));
        send(signal, &child);
        let asked = Instant::now();
        let ended = loop {
            match child.try_wait().expect("it runs") {
                Some(ended) => break ended,
                None if asked.elapsed() > SOON => {
                    child.kill().expect("it runs");
                    panic!("{words:?} still runs {SOON:?} after {signal}");
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        assert_eq!(ended.code(), code, "{words:?}: {ended}");
        assert_eq!(ended.signal(), code.is_none().then_some(15), "{words:?}");
    }
}

#[test]
fn new_scenarios_run_as_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for system in ["disk", "ssd", "hybrid", "flash-cache", "raid5"] {
        let path = folder.path().join(format!("{system}.toml"));
        let path = path.to_str().expect("UTF-8");
        let made = call(&["new", path, "--system", system]);
        assert!(made.status.success(), "{}", text(&made.stderr));
        let small = "workload.generator={ kind = \"zipf\", span = \"64MiB\", requests = 500 }";
        let sets = if system == "ssd" {
            // A small, new drive: preconditioning 64 GB takes long here.
            vec!["--set", "component.ssd.precondition=\"none\"", "--set", small]
        } else {
            vec!["--set", small]
        };
        let run = call(&[&["run", path, "--json"][..], &sets].concat());
        assert!(run.status.success(), "{system}: {}", text(&run.stderr));
        let json: Value = serde_json::from_slice(&run.stdout).expect("one JSON document");
        assert_eq!(json["requests"], 500, "{system}");
        let checked = call(&["check", path]);
        assert!(checked.status.success(), "{system}: {}", text(&checked.stderr));
        assert!(!text(&checked.stderr).contains("warning"), "{}", text(&checked.stderr));
    }
    let disk = folder.path().join("disk.toml");
    let written = fs::read_to_string(&disk).expect("it was written");
    let schema = written.strip_prefix("#:schema ./").and_then(|rest| rest.lines().next());
    let schema = folder.path().join(schema.expect("the first line names the schema"));
    let schema: Value =
        serde_json::from_slice(&fs::read(schema).expect("beside it")).expect("JSON");
    assert!(schema["properties"]["workload"].is_object());
    let again = call(&["new", disk.to_str().expect("UTF-8")]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("--force"));
}

#[test]
fn the_cache_of_preconditioned_devices_is_shown_and_cleared() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ssd = scenario(
        &folder,
        "ssd.toml",
        "[workload]\ngenerator = { kind = \"uniform\", requests = 10 }\n[host]\nmode = \"closed\"\n\
         [component.ssd]\npreset = \"samsung-k9f2g08-slc\"\nprecondition = \"fill\"\n",
    );
    let cache = folder.path().join("cache");
    let with_cache = |args: &[&str]| {
        let output = program(args).env("HYBRIDSIM_CACHE", &cache).output();
        let output = output.expect("the program starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(with_cache(&["cache"]).contains("0 states"));
    // A state that the user saved there is none of the cache.
    fs::create_dir(&cache).expect("a writable folder");
    let saved = cache.join("mine.state");
    fs::write(&saved, "of the user").expect("a writable folder");
    with_cache(&["run", &ssd]);
    assert!(with_cache(&["cache"]).contains("1 states"));
    assert!(with_cache(&["cache", "--clear"]).contains("1 states deleted"));
    assert!(saved.exists());
    assert!(with_cache(&["cache"]).contains("0 states"));
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    let script = call(&["completions", "bash"]);
    assert!(text(&script.stdout).contains("reproduce"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("man");
    let made = call(&["man", out.to_str().expect("UTF-8")]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let help = text(&call(&["help"]).stdout);
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    // Further lines of a description are indented more.
    let named = lines.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let commands = named.filter_map(|line| line.split_whitespace().next());
    for command in commands.filter(|command| *command != "help") {
        let page = fs::read_to_string(out.join(format!("hybridsim-{command}.1")));
        assert!(page.expect("a page for each").contains(command));
    }
}

#[test]
fn examples_are_written_once_and_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("tour");
    let path = path.to_str().expect("UTF-8");
    let written = call(&["examples", path]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in ["examples/ssd.toml", "examples/caches/flash-cache.toml", "workloads/sqlite.hst"] {
        let copy = fs::read(Path::new(path).join(file)).expect("it was written");
        assert_eq!(copy, fs::read(ours.join(file)).expect("the original"), "{file}");
    }
    assert!(!Path::new(path).join("workloads/record").exists());
    let checked = call(&["check", &format!("{path}/examples/hybrid.toml")]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let again = call(&["examples", path]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("--force"));
    assert!(call(&["examples", path, "--force"]).status.success());
}

#[test]
fn words_of_all_kinds_are_explained() {
    for (word, expected) in [
        ("dftl", "Mapping entries cached in memory"),
        ("sata-ssd", "program_time = \"300us\""),
        ("p99", "99th percentile"),
        ("latency_ns.read.p99", "99th percentile"),
        ("waf", "write_amplification"),
        ("iodepth=32", "host.queue_depth"),
        ("rw=randread", "generator"),
        ("numjobs", "queue depth"),
        ("Write Amplification", "Bytes programmed"),
        ("konanki", "thesis"),
    ] {
        let output = call(&["explain", word]);
        assert!(output.status.success(), "{word}: {}", text(&output.stderr));
        let explained = text(&output.stdout);
        assert!(explained.contains(expected), "{word}: {explained}");
    }
    let unknown = call(&["explain", "iodeptj"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("did you mean `iodepth`?"));
}

#[test]
fn reproduce_alone_lists_and_runs_nothing() {
    for args in [&["reproduce"][..], &["reproduce", "--list"]] {
        let output = call(args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let list = text(&output.stdout);
        for expected in ["konanki: P. Konanki.", "disk: ", "flashsim/table3", "reproduce all"] {
            assert!(list.contains(expected), "{expected}: {list}");
        }
        assert!(!list.contains("reproduced,"), "{list}");
    }
    let one = text(&call(&["reproduce", "--list", "op-fcl"]).stdout);
    assert!(one.contains("op-fcl/surface") && !one.contains("konanki/"), "{one}");
    let nothing = call(&["reproduce", "--json"]);
    assert_eq!(nothing.status.code(), Some(2));
}

#[test]
fn the_reference_has_every_entry_and_preset() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("reference");
    let written = call(&["man", "--markdown", path.to_str().expect("UTF-8")]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    for line in text(&call(&["list"]).stdout).lines() {
        let (category, names) = line.split_once(' ').expect("category and names");
        let file = if category == "preset" { "presets" } else { category };
        let page = fs::read_to_string(path.join(format!("{file}.md"))).expect("its page");
        assert!(!page.starts_with(&format!("# {category}\n")), "{category} has no title");
        for name in names.split(',').map(str::trim) {
            assert!(page.contains(&format!("\n## {name}\n")), "{name} is not in {file}.md");
        }
    }
    let commands = fs::read_to_string(path.join("command-line.md")).expect("commands");
    assert!(commands.contains("\n## hybridsim trace mrc\n"));
    let scenario = fs::read_to_string(path.join("scenario.md")).expect("sections");
    assert!(scenario.contains("| `queue_depth` |"));
}

#[test]
fn a_sweep_over_seeds_has_intervals_and_a_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let jitter = TOY.replace("latency = \"100us\"", "latency = \"100us\"\njitter = \"50us\"");
    let base = scenario(&folder, "base.toml", &jitter);
    let out = folder.path().join("out").display().to_string();
    let vary = ["sweep", &base, "--vary", "component.device.latency=100us,0.1ms,300us"];
    let columns =
        ["--column", "components.device.state_ns.idle", "--column", "latency_ns.all.mean"];
    let done = call(&[&vary[..], &["--seeds", "4", "--out", &out], &columns[2..]].concat());
    assert!(done.status.success(), "{}", text(&done.stderr));
    let table = text(&done.stdout);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].trim_end().ends_with("latency_ns.all.mean"), "{table}");
    assert!(lines[1].contains(" +-") && !lines[1].contains('~'), "{table}");
    assert!(
        lines[2].ends_with('~') && !lines[3].contains('~'),
        "the same latency is no difference: {table}"
    );
    let csv = fs::read_to_string(format!("{out}/sweep.csv")).expect("the table");
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 4, "a row for each combination");
    assert!(rows[0].contains("mean_us,mean_us_ci95") && rows[0].contains(",seeds,"), "{csv}");
    let points = fs::read_dir(format!("{out}/points")).expect("the points").count();
    assert_eq!(points, 8, "a point for each seed; equal scenarios share them");
    let page = fs::read_to_string(format!("{out}/sweep.html")).expect("the page");
    assert!(page.contains("Sweep of base") && page.contains("\"seeds\":4"));
    let json = call(&[&vary[..], &["--seeds", "2", "--json"]].concat());
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json[0]["results"].as_array().map(Vec::len), Some(2));
    assert!(json[0]["statistics"]["mean_us"]["ci95"].as_f64() > Some(0.0), "{json:#}");
    assert_ne!(json[0]["results"][0]["fingerprint"], json[0]["results"][1]["fingerprint"]);
    // A key that this device does not have; the table is there all the same.
    let wrong = call(&[&vary[..], &columns[..2]].concat());
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong.stderr));
    assert!(text(&wrong.stderr).contains("--column"), "{}", text(&wrong.stderr));
    assert!(text(&wrong.stdout).contains("mean_us"));
    let both = ["sweep", &base, "--vary", "run.seed=1,2", "--seeds", "2"];
    assert_eq!(call(&both).status.code(), Some(2));
}

#[test]
fn a_sweep_draws_points_replays_traces_and_lists_points() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let base = scenario(&folder, "base.toml", TOY);
    let rows = |args: &[&str]| -> Vec<Value> {
        let done = call(&[&["sweep", "--json"][..], args].concat());
        assert!(done.status.success(), "{}", text(&done.stderr));
        serde_json::from_slice(&done.stdout).expect("JSON")
    };
    let key = "component.device.latency";
    let drawn = rows(&[&base, "--vary", &format!("{key}=log:10us..1000us"), "--sample", "lhs:10"]);
    let value = |row: &Value| row["set"][key].as_str().expect("a text").replace("us", "");
    let decades = drawn.iter().map(|row| value(row).parse::<f64>().expect("a number").log10());
    let mut fifths: Vec<usize> = decades.map(|decade| ((decade - 1.0) * 5.0) as usize).collect();
    fifths.sort_unstable();
    assert_eq!(fifths, (0..10).collect::<Vec<_>>(), "one in each slice");
    let lines = |lines: &[&str]| lines.join("\n") + "\n";
    let trace = |name: &str, text: &str| scenario(&folder, name, text);
    let head = "time_ns,op,volume,lba,sectors,flags,response_ns";
    let [one, two, three] = ["0,read,0,0,8,0,", "9,write,0,8,8,0,", "20,read,0,0,8,0,"];
    let small = trace("small.csv", &lines(&[head, one, two, "x"]));
    let large = trace("large.csv", &lines(&[head, one, two, three]));
    let replayed = rows(&[
        &base,
        "--trace",
        &small,
        "--trace",
        &large,
        "--skip-bad-lines",
        "--vary",
        "run.seed=1",
    ]);
    let requests: Vec<&Value> = replayed.iter().map(|row| &row["results"]["requests"]).collect();
    assert_eq!(requests, [2, 3]);
    assert_eq!(replayed[1]["set"]["trace"], large.as_str());
    let listed = "scenario = \"base.toml\"\nseeds = [3, 4]\n[[point]]\nhost.queue_depth = 1\n\
                  run.verify = true\n[[point]]\nhost.queue_depth = 7\nrun.verify = false\n";
    let listed = rows(&[&scenario(&folder, "sweep.toml", listed)]);
    assert_eq!(listed[1]["set"]["host.queue_depth"], 7);
    assert_eq!(listed[1]["results"][1]["seed"], 4, "{:#}", listed[1]["results"][1]);
    let refused = call(&["sweep", &base, "--vary", "run.seed=1..3"]);
    assert!(text(&refused.stderr).contains("is a range"), "{}", text(&refused.stderr));
}

#[test]
fn what_does_not_fit_into_memory_is_refused_with_the_figure() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let large = TOY.replace("constant-device\"", "ssd\"").replace("capacity", "# capacity");
    let large =
        large.replace("latency = \"100us\"", "read_time = \"25us\"\nprogram_time = \"200us\"");
    let large = format!("{large}erase_time = \"1.5ms\"\n");
    let base = scenario(&folder, "base.toml", &large);
    let blocks = "component.device.blocks_per_plane=64,40000";
    let out = folder.path().join("out").display().to_string();
    let words = ["sweep", &base, "--vary", blocks, "--out", &out, "--memory", "128MiB"];
    let done = call(&words);
    assert_eq!(done.status.code(), Some(4), "{}", text(&done.stderr));
    let table = text(&done.stdout);
    assert!(table.contains("needs about") && table.contains("128MiB can be used"), "{table}");
    let points = fs::read_dir(format!("{out}/points")).expect("the points").count();
    assert_eq!(points, 1, "a computer with more memory may run it");
}

#[cfg(target_os = "linux")]
#[test]
fn estimates_of_memory_are_near_what_runs_take() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let fills = "[workload]\ngenerator = { kind = \"uniform\", block = \"64KiB\", \
                 requests = 30000, read = 0.5 }\n[host]\nmode = \"closed\"\n";
    let cached = "[component.cache]\nkind = \"memory-cache\"\ndevice = \"disk\"\nsize = \"1GiB\"\n\
                  [component.disk]\nkind = \"constant-device\"\ncapacity = \"16GiB\"\n";
    let flash = "[component.cache]\nkind = \"flash-cache\"\nflash = \"flash\"\ndisk = \"disk\"\n\
                 [component.flash]\nkind = \"constant-device\"\ncapacity = \"1GiB\"\n\
                 [component.disk]\nkind = \"constant-device\"\ncapacity = \"16GiB\"\n";
    let ssd = "[component.ssd]\npreset = \"sata-ssd\"\nprecondition = \"fill\"\n";
    for (name, system) in [("memory cache", cached), ("flash cache", flash), ("ssd", ssd)] {
        let path = scenario(&folder, "x.toml", &format!("{fills}{system}"));
        let checked = Scenario::read(Path::new(&path), &[], &standard()).expect("a scenario");
        let estimate = memory::needed(&checked, &standard()) as f64;
        let ran = document(&["run", &path, "--json", "--no-cache"]);
        let taken = ran["peak_rss_bytes"].as_f64().expect("Linux reports it");
        let share = taken / estimate;
        assert!((0.6..1.4).contains(&share), "{name}: {taken} of {estimate} bytes");
    }
}

/// With huge pages from the start, 2,000 random writes took 3.5 GB.
#[cfg(target_os = "linux")]
#[test]
fn a_large_new_device_takes_memory_for_what_is_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shape = "channels = 8\ndies_per_channel = 4\nplanes_per_die = 2\n\
                 blocks_per_plane = 16384\npages_per_block = 2048\npage_size = \"4KiB\"\n";
    let path = scenario(
        &folder,
        "8TiB.toml",
        &format!(
            "[workload]\ngenerator = {{ kind = \"uniform\", requests = 2000, read = 0 }}\n\
             [host]\nmode = \"closed\"\n[component.ssd]\nkind = \"ssd\"\n{shape}\
             read_time = \"30us\"\nprogram_time = \"185us\"\nerase_time = \"3ms\"\n"
        ),
    );
    let ran = document(&["run", &path, "--json", "--no-cache"]);
    let taken = ran["peak_rss_bytes"].as_u64().expect("Linux reports it");
    assert!(taken < 256 << 20, "{} MiB", taken >> 20);
}

#[cfg(unix)]
#[test]
fn what_needs_python_says_what_to_install() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let base = scenario(&folder, "base.toml", TOY);
    let search = ["optimize", &base, "--vary", "run.seed=1,2", "--objective", "simulated_ns"];
    let sweep = ["sweep", &base, "--vary", "run.seed=1,2", "--dask", "tcp://127.0.0.1:1"];
    for (words, extra) in [(&search[..], "optimize"), (&sweep[..], "dask")] {
        // `ls` complains about the options of an interpreter, as Python does about a module.
        for (python, code) in [("/no/such/python", 2), ("false", 1), ("ls", 1)] {
            let output = program(words).env("HYBRIDSIM_PYTHON", python).output();
            let output = output.expect("the program starts");
            let message = text(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{python}: {message}");
            assert!(message.contains(&format!("pip install \"hybridsim[{extra}]\"")), "{message}");
            assert!(message.contains(python), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }
}

#[test]
fn compare_at_several_seeds_says_which_differences_are_within_noise() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let jitter = |latency: &str| {
        TOY.replace("latency = \"100us\"", &format!("latency = \"{latency}\"\njitter = \"50us\""))
    };
    let base = scenario(&folder, "base.toml", &jitter("100us"));
    let same = scenario(&folder, "same.toml", &jitter("100us").replace("Toy", "Same"));
    let slow = scenario(&folder, "slow.toml", &jitter("300us"));
    let out = folder.path().join("out").display().to_string();
    let words = ["compare", &base, &same, &slow, "--seeds", "4"];
    let done = call(&[&words[..], &["--out", &out]].concat());
    assert!(done.status.success(), "{}", text(&done.stderr));
    let table = text(&done.stdout);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].starts_with("base ") && lines[1].contains(" +-"), "{table}");
    assert!(lines[2].starts_with("same ") && lines[2].contains('~'), "{table}");
    assert!(lines[3].starts_with("slow ") && !lines[3].contains('~'), "{table}");
    assert!(fs::metadata(format!("{out}/compare.html")).is_ok());
    let json = call(&[&words[..], &["--json"]].concat());
    let rows: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(rows[2]["set"]["scenario"], "slow");
    assert_eq!(rows[2]["statistics"]["mean_us"]["within_noise_of_first"], false);
    assert_eq!(rows[0]["results"].as_array().map(Vec::len), Some(4));
}

#[test]
fn compare_shows_further_columns() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let base = scenario(&folder, "base.toml", TOY);
    let show = |path: &str| call(&["compare", &base, &base, "--column", path]);
    let done = show("latency_ns.write.count");
    assert!(done.status.success(), "{}", text(&done.stderr));
    let table = text(&done.stdout);
    let line = table.lines().find(|line| line.contains("latency_ns.write.count"));
    let values: Vec<&str> = line.expect("the column").split_whitespace().skip(1).collect();
    assert!(values.len() == 2 && values[0] == values[1] && values[0] != "500", "{table}");
    let wrong = show("latency_ns.write.cont");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("count"), "{}", text(&wrong.stderr));
}

#[test]
fn an_array_reports_how_long_it_was_degraded() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let device = "kind = \"constant-device\"\ncapacity = \"1MiB\"\nlatency = \"100us\"\n";
    let devices: String =
        (0..4).map(|at| format!("[component.d{at}]\n{device}")).collect::<Vec<_>>().join("");
    let array = format!(
        "[workload]\ngenerator = {{ kind = \"uniform\", requests = 20000, read = 0.5 }}\n\
         [host]\nmode = \"closed\"\n[component.array]\nkind = \"raid5\"\n\
         members = [\"d0\", \"d1\", \"d2\"]\nspares = [\"d3\"]\n\
         failures = [{{ member = 1, at = \"10ms\" }}]\n{devices}"
    );
    let path = scenario(&folder, "array.toml", &array);
    let out = folder.path().join("out").display().to_string();
    let done = call(&["run", &path, "--json", "--out", &out]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let json: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let result = &json["components"]["array"];
    assert_eq!((&result["member_failures"], &result["rebuilds"]), (&1.into(), &1.into()));
    assert!(result["degraded_ns"].as_u64() > Some(0), "{result:#}");
    assert_eq!(result["degraded_ns"], result["rebuild_ns_max"], "the spare is there at once");
    assert_eq!(result["rebuild_ns_max"], result["custom"]["rebuild_ended_ns"]["max"]);
    let page = fs::read_to_string(format!("{out}/report.html")).expect("the report");
    for what in ["member_failed", "rebuild_started", "rebuild_ended"] {
        assert!(page.contains(&format!("\"what\":\"{what}\"")), "{what} is marked");
    }
    assert!(page.contains("class=\"diagram\"") && page.contains("Longest rebuild"));
}
