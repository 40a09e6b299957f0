//! Mistakes and rare conditions: what the program refuses, before anything runs where possible,
//! and what it leaves behind.

#[path = "common/command.rs"]
mod command;

use command::{TOY, call, document, fails, program, root, scenario, text};
use serde_json::Value;
use std::fs;
use std::process::Stdio;

/// An SSD with so many blocks in each of its planes, written at random.
fn small_ssd(blocks: u32, precondition: &str) -> String {
    format!(
        "[workload]\ngenerator = {{ kind = \"uniform\", requests = 40000, read = 0.0, \
         block = \"4KiB\", interarrival_ms = 0.02 }}\n\
         [component.ssd]\npreset = \"sata-ssd\"\nchannels = 1\ndies_per_channel = 1\n\
         planes_per_die = 1\npage_size = \"4KiB\"\npages_per_block = 64\n\
         blocks_per_plane = {blocks}\nover_provisioning = 0.28\n\
         precondition = \"{precondition}\"\n"
    )
}

#[test]
fn an_fqueue_unlike_the_nv_cache_is_refused_by_check() {
    let example = root().join("examples/flash-backed.toml").display().to_string();
    let set = "component.host-scheduler.fqueue=\"41KiB\"";
    let message = fails(2, &["check", &example, "--set", set]);
    assert!(message.contains("fqueue") && message.contains("82 sectors"), "{message}");
}

#[test]
fn classes_in_python_are_not_run_by_the_program() {
    let example = root().join("examples/hybrid.toml").display().to_string();
    let class = "{ kind = \"python\", class = \"own:Mru\" }";
    let set = format!("component.hybrid.replacement={class}");
    let trace = root().join("workloads/mail.hst").display().to_string();
    for words in
        [["run", &example, "--set", &set].as_slice(), &["trace", "mrc", &trace, "--policy", class]]
    {
        let message = fails(2, words);
        assert!(
            message.contains("run the scenario with `python -m hybridsim --allow-code`"),
            "{message}"
        );
    }
}

#[test]
fn only_policies_are_written_in_python() {
    let example = root().join("examples/ssd.toml").display().to_string();
    let set = "component.ssd.timing={ kind = \"python\", class = \"own:Clock\" }";
    let message = fails(2, &["check", &example, "--set", set]);
    assert!(!message.contains("--allow-code") && message.contains("there are: "), "{message}");
}

#[test]
fn a_drive_without_a_qualified_name_is_refused_at_once() {
    let example = root().join("examples/zns.toml").display().to_string();
    for name in ["a b", "drive", "nqn.2014-08.org.nvmexpress.discovery"] {
        let words = ["serve", &example, "--nvme", "tcp://127.0.0.1:0", "--nqn", name];
        let message = fails(2, &words);
        assert!(message.contains("a qualified name has up to 223 characters"), "{message}");
    }
}

#[test]
fn a_run_beyond_584_years_is_one_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let slow = "[workload]\ngenerator = { kind = \"uniform\", requests = 70 }\n\
                [host]\nmode = \"closed\"\nqueue_depth = 1\n\
                [component.d]\nkind = \"constant-device\"\ncapacity = \"1MiB\"\n\
                latency = \"3650d\"\n";
    let path = scenario(&folder, "slow.toml", slow);
    let output = call(&["run", &path, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert_eq!(message.matches("584 years").count(), 1, "{message}");
    assert!(!message.contains("a check failed"), "{message}");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["complete"], false);
    assert_eq!(json["violations"], serde_json::json!([]));
}

#[test]
fn a_workload_that_goes_on_beyond_584_years_is_not_cut_short() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let toy = scenario(&folder, "toy.toml", TOY);
    let slow = "{ kind = \"exponential\", mean = 1e12 }";
    let gaps = format!("{{ kind = \"uniform\", requests = 70, interarrival_ms = {slow} }}");
    let processes = format!(
        "{{ kind = \"processes\", requests = 70, processes = [{{ count = 1, critical = 0, \
         sequential = 0.2, local = 0.3, general_ms = {slow} }}] }}"
    );
    for generator in [gaps, processes] {
        let set = format!("workload.generator={generator}");
        let message = fails(3, &["run", &toy, "--set", &set, "--set", "host.mode=\"open\""]);
        assert!(message.contains("584 years"), "{message}");
        assert!(message.contains("end the workload by `requests` or `duration`"), "{message}");
    }
    let ends = "{ kind = \"uniform\", duration = \"3000d\", interarrival_ms = 1e12 }";
    let set = format!("workload.generator={ends}");
    let ran = document(&["run", &toy, "--json", "--set", &set, "--set", "host.mode=\"open\""]);
    assert_eq!(ran["requests"], 1, "the next would be later");
}

#[cfg(target_os = "linux")]
#[test]
fn a_state_is_kept_where_the_results_cannot_be_shown() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let toy = scenario(&folder, "toy.toml", TOY);
    let state = folder.path().join("state");
    let run = |stdout: Stdio| {
        drop(fs::remove_file(&state));
        let words = ["run", &toy, "--save-state", &state.display().to_string()];
        let output = program(&words).stdout(stdout).stderr(Stdio::piped()).spawn();
        let output = output.and_then(|child| child.wait_with_output()).expect("it ends");
        assert!(state.exists(), "{}", text(&output.stderr));
        (output.status.code(), text(&output.stderr))
    };
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    assert_eq!(run(writer.into()).0, Some(0));
    let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let (code, message) = run(full.into());
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("cannot write to standard output: No space left"), "{message}");
}

#[test]
fn a_closed_output_does_not_hide_what_failed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let toy = scenario(&folder, "toy.toml", TOY);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let vary = ["--vary", "component.device.capacity=16MiB,1B"];
    let points = program(&[&["sweep", &toy][..], &vary].concat()).stdout(writer).output();
    assert_eq!(points.expect("the program starts").status.code(), Some(4));
}

#[test]
fn outputs_replace_no_inputs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let toy = scenario(&folder, "toy.toml", TOY);
    let trace = scenario(&folder, "trace.csv", "0,0,16,8,1\n1000,0,24,8,0\n");
    let state = "--save-state";
    for (words, message) in [
        (&["draw", &toy, "-o", &toy][..], "is what is read: write into another file"),
        (&["trace", "mrc", &trace, "-o", &trace], "is what is read: write into another file"),
        (&["surrogate", &toy, "-o", &toy, "--force"], "is what is read"),
        (&["write-amplification", &toy, "--out", &toy], "is what is read"),
        (&["calibrate", &trace, "--out", &trace, "--force"], "is what is read"),
        (&["import", "disksim", &toy, "--out", &toy, "--force"], "is what is read"),
        (&["run", &toy, state, &toy], "toy.toml is no saved state; name another file"),
        (&["run", &toy, state, &trace], "trace.csv is no saved state; name another file"),
    ] {
        assert!(fails(2, words).contains(message), "{words:?}");
        assert_eq!(fs::read_to_string(&toy).expect("it stays"), TOY, "{words:?}");
        assert!(fs::read_to_string(&trace).expect("it stays").starts_with("0,0,16"), "{words:?}");
    }
    let saved = folder.path().join("state").display().to_string();
    for _ in 0..2 {
        assert!(call(&["run", &toy, state, &saved]).status.success(), "a state is replaced");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_comparison_names_no_way_to_resume_that_it_lacks() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let endless = TOY.replace("requests = 500", "requests = 4_000_000_000");
    let endless = scenario(&folder, "endless.toml", &endless);
    for (words, resumes) in [
        (&["compare", &endless, "--seeds", "2"][..], false),
        (&["sweep", &endless, "--vary", "run.seed=1,2"], true),
    ] {
        let child = program(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let child = child.expect("the program starts");
        command::wait_for_handler(child.id());
        std::thread::sleep(std::time::Duration::from_millis(500));
        command::send("-INT", &child);
        let message = text(&child.wait_with_output().expect("it ends").stderr);
        assert!(message.contains("interrupted: 0 of 2 points are done"), "{message}");
        assert_eq!(message.contains("the same command resumes"), resumes, "{message}");
    }
}

#[test]
fn an_invalid_scenario_leaves_no_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bad = TOY.replace("latency = ", "latency = \"1us\"\nqueue_depht = 3 # ");
    let bad = scenario(&folder, "bad.toml", &bad);
    // Wrong only once it is built.
    let worse = "[component.d]\nkind = \"ssd\"\nblocks_per_plane = 2\n\
                 read_time = \"25us\"\nprogram_time = \"200us\"\nerase_time = \"2ms\"\n\
                 [workload]\ngenerator = { kind = \"uniform\", requests = 70 }\n";
    let worse = scenario(&folder, "worse.toml", worse);
    let outer = folder.path().join("outer");
    let out = outer.join("results").display().to_string();
    for path in [bad, worse] {
        fails(2, &["run", &path, "--out", &out]);
        assert!(!outer.exists(), "{path}");
    }
    fs::create_dir(&outer).expect("one's own folder");
    let worse = folder.path().join("worse.toml").display().to_string();
    fails(2, &["run", &worse, "--out", &outer.display().to_string()]);
    assert!(outer.exists(), "it was there before");
}

#[test]
fn two_runs_do_not_write_into_one_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let toy = scenario(&folder, "toy.toml", TOY);
    let out = folder.path().join("out").display().to_string();
    let endless = "workload.generator.requests=4000000000";
    let mut first = program(&["run", &toy, "--out", &out, "--set", endless])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    while !folder.path().join("out").exists() {
        std::thread::yield_now();
    }
    // The lock is taken just after the folder is made.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let message = fails(2, &["run", &toy, "--out", &out, "--force"]);
    first.kill().and_then(|()| first.wait()).expect("it runs");
    assert!(message.contains("another hybridsim writes into"), "{message}");
    assert!(call(&["run", &toy, "--out", &out, "--force"]).status.success());
    fs::metadata(folder.path().join("out/results.json")).expect("results");
}

#[test]
fn columns_are_checked_before_points_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let toy = scenario(&folder, "toy.toml", TOY);
    let out = folder.path().join("points").display().to_string();
    let vary = ["--vary", "run.seed=1,2", "--column"];
    let components = "components.devise.requests";
    for path in ["hit_ratio", "latency_ns.all.p98", "totals.hits", components] {
        let args = [&["sweep", &toy, "--out", &out][..], &vary, &[path]].concat();
        let message = fails(2, &args);
        let expected = match path == components {
            true => "no component is called `devise`; those of the last point: device, host",
            false => &format!("no `{path}`"),
        };
        assert!(message.contains(expected), "{message}");
        assert!(!folder.path().join("points").exists(), "{path}");
    }
    for path in ["latency_ns.all.p99", "throughput.iops", "totals.hit_ratio"] {
        let args = [&["sweep", &toy][..], &vary, &[path]].concat();
        assert!(call(&args).status.success(), "{path}");
    }
}

#[test]
fn blocks_that_the_ftl_keeps_are_reported_where_they_take_much_of_the_spare() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let warned = |blocks| {
        let path = scenario(&folder, "ssd.toml", &small_ssd(blocks, "fill"));
        let run = document(&["run", &path, "--json", "--no-cache"]);
        let counted = document(&["write-amplification", &path, "--json", "--no-cache"]);
        let left = |of: &Value| of["constants"]["effective_over_provisioning"].as_f64();
        assert_eq!(left(&run["components"]["ssd"]), left(&counted));
        let warns = |of: &Value| of["warnings"].to_string().contains("is left for garbage");
        assert_eq!(warns(&run), warns(&counted));
        (left(&counted).expect("a constant"), warns(&run))
    };
    let (few, many) = (warned(20), warned(100));
    // Two blocks of each plane are kept.
    assert!((few.0 - (18.0 / 20.0 * 1.28 - 1.0)).abs() < 0.01 && few.1, "{few:?}");
    assert!((many.0 - (98.0 / 100.0 * 1.28 - 1.0)).abs() < 0.01 && !many.1, "{many:?}");
}

#[test]
fn handles_that_no_ssd_places_data_by_are_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let warns = |generator: &str, placement: &str| {
        let ssd = small_ssd(60, "fill").replace("uniform\"", &format!("uniform\"{generator}"));
        let dies =
            if placement.contains("reclaim_groups") { "channels = 2" } else { "channels = 1" };
        let ssd = ssd.replace("channels = 1", dies);
        let text = format!("{ssd}ftl = {{ kind = \"page\", placement = {placement} }}\n");
        let path = scenario(&folder, "ssd.toml", &text);
        let ran = document(&["run", &path, "--json", "--no-cache"]);
        ran["warnings"].to_string().contains("of a generator has no effect")
    };
    assert!(warns(", handle = 1", "\"none\""));
    assert!(!warns(", handle = 1", "\"handles\"") && !warns("", "\"none\""));
    assert!(warns(", handle = 2", "{ kind = \"handles\", handles = 2 }"), "0 and 1");
    let groups = "{ kind = \"handles\", handles = 2, reclaim_groups = 2 }";
    assert!(!warns(", handle = 129", groups), "handle 1 of group 1");
    assert!(warns(", handle = 130", groups) && warns(", handle = 2", groups));
    let filled = |precondition: &str, placement: &str| {
        let ssd = small_ssd(60, precondition).replace("channels = 1", "channels = 2");
        let text = format!("{ssd}ftl = {{ kind = \"page\", placement = {placement} }}\n");
        let path = scenario(&folder, "ssd.toml", &text);
        let ran = document(&["run", &path, "--json", "--no-cache"]);
        ran["warnings"].to_string().contains("fills the first reclaim groups")
    };
    assert!(filled("fill", groups) && !filled("none", groups) && !filled("fill", "\"handles\""));
}

#[test]
fn write_amplification_of_a_new_drive_is_marked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let warnings = |precondition: &str, command: &str| {
        let path = scenario(&folder, "ssd.toml", &small_ssd(512, precondition));
        document(&[command, &path, "--json", "--no-cache"])["warnings"].to_string()
    };
    assert!(warnings("none", "run").contains("is that of a new drive"));
    assert!(!warnings("steady", "run").contains("is that of a new drive"));
    // Drives that are written 13 and 40 times over, and 7 times after a warm-up of 7.
    let written = |blocks: u32, sets: &[&str]| {
        let path = scenario(&folder, "ssd.toml", &small_ssd(blocks, "none"));
        let args = [&["run", &path, "--json", "--no-cache"], sets].concat();
        document(&args)["warnings"].to_string().contains("is that of a new drive")
    };
    assert!(written(60, &[]));
    assert!(!written(20, &[]));
    assert!(!written(60, &["--set", "run.warmup_requests=20000"]));
    assert!(warnings("none", "write-amplification").contains("was not constant"));
    assert!(!warnings("steady", "write-amplification").contains("was not constant"));
}

#[test]
fn flushes_and_trims_have_rows_of_their_own() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("trace.csv");
    let head = "time_ns,op,volume,lba,sectors,flags,response_ns\n";
    fs::write(&trace, format!("{head}0,write,0,0,8,0,\n9,flush,0,0,0,0,\n20,trim,0,0,8,0,\n"))
        .expect("one's own folder");
    let toy = scenario(&folder, "toy.toml", TOY);
    let output = call(&["run", &toy, "--trace", &trace.display().to_string()]);
    let table = text(&output.stdout);
    for row in ["Write mean", "Flush mean", "Trim mean"] {
        assert!(table.contains(row), "{row} is missing in\n{table}{}", text(&output.stderr));
    }
}

#[test]
fn the_diagram_of_a_trace_replayed_one_by_one_names_no_queue_depth() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let toy = scenario(&folder, "toy.toml", TOY);
    let trace = root().join("workloads/mail.hst").display().to_string();
    let drawn = |times: &str| {
        let svg = folder.path().join("toy.svg").display().to_string();
        let text = format!(
            "[workload]\ntrace = {trace:?}\nfit = true\ntimes = \"{times}\"\n\
             [component.device]\nkind = \"constant-device\"\ncapacity = \"1GiB\"\n"
        );
        fs::write(&toy, text).expect("one's own folder");
        let output = call(&["draw", &toy, "--out", &svg]);
        assert!(output.status.success(), "{}", self::text(&output.stderr));
        fs::read_to_string(svg).expect("a picture")
    };
    let (replayed, recorded) = (drawn("after-completions"), drawn("recorded"));
    assert!(recorded.contains("open loop") && recorded.contains("depth 32"));
    assert!(replayed.contains("one request at a time") && !replayed.contains("open loop"));
}

#[test]
fn impossible_numbers_are_refused_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let toy = scenario(&folder, "toy.toml", TOY);
    let message = fails(2, &["sweep", &toy, "--vary", "run.seed=1,2", "--jobs", "0"]);
    assert!(message.contains("at least 1"), "{message}");
    let message =
        fails(2, &["run", &toy, "--set", "workload.generator.requests=18446744073709551615"]);
    assert!(message.contains("workload.generator.requests"), "{message}");
    let message = fails(2, &["plan", "workloads/mail.hst", "--p99", "0s"]);
    assert!(message.contains("more than 0"), "{message}");
}

#[test]
fn a_plan_with_a_wrong_key_is_one_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("trace.csv");
    let mut rows = "time_ns,op,volume,lba,sectors,flags,response_ns\n".to_owned();
    for at in 0..200u64 {
        rows += &format!("{},write,0,{},8,0,\n", at * 1_000_000, at * 7919 % 64 * 8);
    }
    fs::write(&trace, rows).expect("one's own folder");
    let trace = trace.display().to_string();
    let message = fails(2, &["plan", &trace, "--set", "x=1"]);
    assert!(message.contains('x') && !message.contains("simulations failed"), "{message}");
}

#[test]
fn control_characters_of_names_do_not_reach_the_terminal() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let toy = scenario(&folder, "toy.toml", TOY);
    for args in [
        &["run", &toy, "--set", "host.\u{1b}[31mdepth=1"][..],
        &["run", &toy, "--trace", "no\u{1b}[31m\rsuch"],
        &["trace", "info", "no\u{1b}[31msuch"],
    ] {
        let output = call(args);
        assert!(!output.status.success());
        let message = text(&output.stderr);
        assert!(!message.contains(['\u{1b}', '\r']), "{message:?}");
    }
}

#[test]
fn zones_left_open_count_towards_the_open_zones_of_the_device() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let check = |more: &str| {
        let text = format!(
            "[workload]\ngenerator = {{ kind = \"zones\", requests = 500, zone_size = \"1MiB\", \
             open = true{more} }}\n\
             [component.z]\nkind = \"zns-ssd\"\nchannels = 2\ndies_per_channel = 2\n\
             blocks_per_plane = 24\npages_per_block = 32\nzone_size = \"1MiB\"\n\
             zone_capacity = \"1MiB\"\nzones = 8\nmax_open_zones = 3\n\
             read_time = \"25us\"\nprogram_time = \"200us\"\nerase_time = \"1.5ms\"\n"
        );
        call(&["check", &scenario(&folder, "zones.toml", &text)])
    };
    let refused = check(", fill = 0.5");
    let message = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("8 zones are explicitly open"), "{message}");
    for fine in ["", ", fill = 0.5, finish = true"] {
        let output = check(fine);
        assert!(output.status.success(), "{fine}: {}", text(&output.stderr));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_under_nohup_survives_the_end_of_its_terminal() {
    use std::process::Command;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let exit_code = |before: &str, requests: &str| {
        let reads = small_ssd(256, "fill").replace("read = 0.0", "read = 1.0");
        let text = reads.replace("40000", requests) + "[host]\nmode = \"closed\"\n";
        let path = scenario(&folder, "long.toml", &text);
        let out = folder.path().join("out.json");
        let script = format!("{before} \"$0\" run \"$1\" --json --progress never");
        let mut child = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_hybridsim"), &path])
            .stdout(fs::File::create(&out).expect("one's own folder"))
            .stderr(Stdio::null())
            .spawn()
            .expect("sh starts");
        std::thread::sleep(std::time::Duration::from_millis(500));
        let id = child.id().to_string();
        Command::new("kill").args(["-HUP", &id]).status().expect("kill");
        child.wait().expect("it runs").code()
    };
    assert_eq!(exit_code("trap '' HUP; exec", "1800000"), Some(0));
    // It would take hours. The tests may run under nohup themselves.
    assert_eq!(exit_code("exec env --default-signal=HUP", "900000000"), Some(130));
}

#[cfg(unix)]
#[test]
fn an_interrupted_conversion_leaves_nothing() {
    use std::process::Command;
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Large enough for a conversion of some seconds.
    let trace = folder.path().join("trace.csv");
    let mut rows = "time_ns,op,volume,lba,sectors,flags,response_ns\n".to_owned();
    for at in 0..400_000u64 {
        rows += &format!("{at},write,0,{},8,0,\n", at % 64 * 8);
    }
    fs::write(&trace, rows).expect("one's own folder");
    let outside = folder.path().join("out");
    fs::create_dir(&outside).expect("one's own folder");
    let out = outside.join("x.hst").display().to_string();
    let mut child = program(&["trace", "convert", &trace.display().to_string(), &out])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let entries = || fs::read_dir(&outside).expect("a folder").count();
    while entries() == 0 && child.try_wait().expect("it runs").is_none() {
        std::thread::yield_now();
    }
    let id = child.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().expect("kill");
    let status = child.wait().expect("it runs");
    match status.code() {
        Some(130) => assert_eq!(entries(), 0, "the partial file stays"),
        // It was faster.
        code => assert_eq!((code, entries()), (Some(0), 1)),
    }
}

#[test]
fn a_scenario_that_is_missing_says_how_to_get_one() {
    let message = fails(2, &["run", "missing.toml"]);
    assert!(message.contains("`hybridsim new` writes one"), "{message}");
}

#[test]
fn words_and_paths_of_others_name_ours() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let toy = scenario(&folder, "toy.toml", TOY);
    let message = fails(2, &["run", &toy, "--seed", "3"]);
    assert!(message.contains("--set run.seed=3"), "{message}");
    let message = fails(2, &["run", &toy, "--column", "hit_ratio"]);
    assert!(message.contains("did you mean `totals.hit_ratio`?"), "{message}");
    let message = fails(2, &["run", &toy, "--column", "latency_ns.p99"]);
    assert!(message.contains("did you mean `latency_ns.all.p99`?"), "{message}");
}

#[test]
fn keys_of_another_entry_and_of_the_table_around_are_named_without_a_path() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ssd = small_ssd(16, "none");
    let other = format!("{ssd}timing = {{ kind = \"interleaved\", resume_time = \"5us\" }}\n");
    let message = fails(2, &["check", &scenario(&folder, "other.toml", &other)]);
    assert!(message.contains("it belongs to another kind: queued"), "{message}");
    let idle = format!("{ssd}timing = {{ kind = \"queued\", multi_plane = true }}\n");
    let output = call(&["run", &scenario(&folder, "idle.toml", &idle)]);
    let shown = text(&output.stdout);
    assert!(shown.contains("multi_plane has no effect with `planes_per_die = 1`"), "{shown}");
}

#[test]
fn the_optimum_needs_a_file_that_can_be_read_twice() {
    let message = fails(2, &["trace", "mrc", "/dev/null", "--belady"]);
    assert!(message.contains("/dev/null has to be a file"), "{message}");
    let message = fails(3, &["trace", "mrc", "nowhere.csv", "--belady"]);
    assert!(message.contains("cannot be opened"), "{message}");
}

#[test]
fn the_life_of_a_drive_is_in_the_summary() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = scenario(&folder, "ssd.toml", &small_ssd(64, "fill"));
    let shown = text(&call(&["run", &path]).stdout);
    let json = document(&["run", &path, "--json"]);
    let ssd = &json["components"]["ssd"];
    let left = ssd["lifetime"]["host_bytes_left"].as_f64().expect("it erases");
    assert!(left < 1e12, "{ssd}");
    assert!(shown.contains("GB of host writes left to an endurance of 3,000 erases"), "{shown}");
    assert!(shown.contains("at this rate") && !shown.contains("years at"), "{shown}");
    assert!(shown.contains("Drive writes a day, 5 years"), "{shown}");
}

#[test]
fn an_ssd_needs_times_where_there_is_a_clock() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ssd = "[component.d]\nkind = \"ssd\"\nblocks_per_plane = 64\nprogram_time = \"200us\"\n\
               [workload]\ngenerator = { kind = \"uniform\", requests = 70 }\n";
    let message = fails(2, &["check", &scenario(&folder, "clock.toml", ssd)]);
    for key in ["read_time", "erase_time"] {
        assert!(message.contains(&format!("component.d.{key}: is missing")), "{message}");
    }
    assert!(!message.contains("program_time"), "{message}");
    let none = ssd.replace("program_time = \"200us\"", "timing = \"none\"");
    for command in ["check", "run", "write-amplification"] {
        let done = call(&[command, &scenario(&folder, "none.toml", &none)]);
        assert!(done.status.success(), "{command}: {}", text(&done.stderr));
    }
}

#[test]
#[cfg(unix)]
fn names_with_escape_sequences_reach_no_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    for text in
        ["title = \"\\u001b[2Ja\"", "[component.\"a\\u009bb\"]", "[run]\nstate = \"\\u0007\""]
    {
        let file = at("control.toml");
        fs::write(&file, format!("{text}\n")).expect("written");
        let message = fails(2, &["check", &file]);
        assert!(message.contains("the control character U+"), "{message}");
    }
    let lines = at("lines.toml");
    fs::write(&lines, "title = \"\"\"a\r\nb\"\"\"\r\n").expect("written");
    assert!(!fails(2, &["check", &lines]).contains("U+"), "line ends of Windows are allowed");
    let varied = at("varied.toml");
    fs::write(&varied, "scenario = \"x.toml\"\n[vary]\ntitle = [\"\\u009bm\"]\n").expect("written");
    assert!(fails(2, &["sweep", &varied]).contains("the control character U+009B"));
    let system = "[workload]\ngenerator = { kind = \"uniform\", requests = 200 }\n\
                  [component.device]\nkind = \"constant-device\"\ncapacity = \"1GiB\"\n";
    let file = at("\u{1b}[2J\u{9b}m.toml");
    fs::write(&file, system).expect("written");
    let trace = at("\u{1b}]0;\u{7}.csv");
    fs::write(&trace, "time_ns,op,volume,lba,sectors,flags,response_ns\n0,read,0,0,8,0,\n")
        .expect("written");
    let damaged = at("\u{1b}]0;.csv");
    fs::write(&damaged, "time_ns,op,volume,lba,sectors,flags,response_ns\n0,\u{1b},0,0,8,0,\n")
        .expect("written");
    let missing = at("\u{1b}");
    let out = at("\u{9b}out");
    let words: [&[&str]; 16] = [
        &["compare", &file, &file, "--seeds", "2", "--json"],
        &["check", &file],
        &["run", &file],
        &["run", &file, "--json"],
        &["run", &file, "--trace", &trace, "--out", &out],
        &["compare", &file, &file],
        &["sweep", &file, "--vary", "host.queue_depth=1,2"],
        &["draw", &file],
        &["surrogate", &file, "--sizes", "4KiB,8KiB", "--read-shares", "0,1", "--depths", "1,2"],
        &["trace", "info", &trace],
        &["trace", "info", &damaged],
        &["run", &missing],
        &["run", &file, "--set", "\u{1b}=1"],
        &["explain", "\u{9b}"],
        &["\u{1b}"],
        &["cite", &out],
    ];
    for words in words {
        let output = program(words).output().expect("it starts");
        for bytes in [output.stdout, output.stderr] {
            let shown = text(&bytes);
            let control = shown.find(|it: char| it.is_control() && !matches!(it, '\n' | '\t'));
            assert_eq!(control.map(|at| &shown[at..]), None, "{words:?}");
        }
    }
}
