//! `hybridsim surrogate`: its errors on loads outside the fit, what is refused, and that the
//! readers in other languages give what the table gives.

#[path = "common/command.rs"]
mod command;

use command::{call, document, fails, text};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_surrogate::{
    Access, Axes, DeviceState, ErrorSummary, FitError, FitOptions, Surrogate, fit,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const SSD: &str = "kind = \"ssd\"\nchannels = 2\ndies_per_channel = 2\nblocks_per_plane = 64\n\
                   pages_per_block = 64\nover_provisioning = 0.5\nread_time = \"25us\"\n\
                   program_time = \"200us\"\nerase_time = \"1.5ms\"\nchannel_rate = \"100MB/s\"\n";
const CONSTANT: &str =
    "kind = \"constant-device\"\ncapacity = \"64MiB\"\nlatency = \"100us\"\njitter = \"50us\"\n";

/// A table of a component.
fn component(keys: &str) -> String {
    format!("[component.it]\n{keys}")
}

fn scenario(keys: &str) -> Scenario {
    let source = SourceText { name: "test".to_owned(), text: component(keys) };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    Scenario::check_system(input, &standard()).expect("a valid system")
}

fn options(states: &[DeviceState]) -> FitOptions {
    FitOptions {
        states: states.to_vec(),
        access: Access::Random,
        axes: Axes {
            read_share: vec![0.0, 0.5, 1.0],
            bytes: vec![4096, 16384],
            depth: vec![1, 8],
            utilization: vec![0.2, 0.6],
        },
        requests: 1_000,
        knots_max: 12,
        validation: 4,
        seed: 1,
        jobs: 2,
        cache: None,
    }
}

fn spread(it: Option<ErrorSummary>) -> ErrorSummary {
    it.expect("loads were simulated")
}

fn fitted(keys: &str, options: &FitOptions) -> Surrogate {
    fit(&scenario(keys), &standard(), options, &mut |_| {}).expect("a table")
}

#[test]
fn a_device_of_constant_latency_is_met_exactly() {
    let keys = CONSTANT.replace("jitter = \"50us\"\n", "");
    let table = fitted(&keys, &options(&[DeviceState::AsGiven]));
    let tables = &table.states["as-given"];
    assert!(spread(tables.validation.mean).max < 1e-12, "{:?}", tables.validation);
    assert_eq!(tables.validation.loads, 8);
    let [read, write] = tables.closed.at([0.3, 8192.0, 3.0]).expect("within").0;
    assert!(read.is_none(), "no reads at a share of 0");
    assert!((write.expect("writes").mean() - 100.0).abs() < 1e-9);
    let iops = tables.closed.iops([1.0, 4096.0, 8.0]).expect("within");
    assert!((iops / 80_000.0 - 1.0).abs() < 1e-9, "Little's law: {iops}");
}

#[test]
fn a_grid_grows_until_the_errors_between_its_knots_are_small() {
    let mut options = options(&[DeviceState::Fresh]);
    options.axes.read_share = vec![1.0];
    options.axes.bytes = vec![4096];
    options.axes.depth = vec![1, 32];
    options.requests = 4_000;
    options.knots_max = 40;
    options.validation = 8;
    let table = fitted(SSD, &options);
    let tables = &table.states["fresh"];
    // Four dies: latency is constant up to about four requests, then proportional to the depth.
    assert!(tables.closed.load.len() > 3, "{:?}", tables.closed.load);
    let validation = &tables.validation;
    let [mean, p99] = [validation.mean, validation.p99].map(|it| spread(it).mean);
    assert!(mean < 0.05 && p99 < 0.10, "{validation:?}");
    let again = fitted(SSD, &options);
    let text = |it: &Surrogate| serde_json::to_string(it).expect("plain values");
    assert_eq!(text(&table), text(&again), "the same seed");
}

#[test]
fn mixes_are_added_between_reads_alone_and_writes_alone() {
    let mut options = options(&[DeviceState::AsGiven]);
    options.axes.read_share = vec![0.0, 1.0];
    let table = fitted(CONSTANT, &options);
    let tables = &table.states["as-given"];
    assert_eq!(tables.closed.read_share, [0.0, 0.5, 1.0]);
    let [read, write] = tables.closed.at([0.5, 4096.0, 8.0]).expect("within").0;
    assert!(read.is_some() && write.is_some());
}

#[test]
fn a_table_whose_every_load_is_a_knot_is_not_validated() {
    let mut options = options(&[DeviceState::AsGiven]);
    options.axes =
        Axes { read_share: vec![1.0], bytes: vec![4096], depth: vec![1], utilization: vec![0.5] };
    let table = fitted(CONSTANT, &options);
    assert_eq!(table.states["as-given"].validation.mean, None);
    let shown = hybridsim_surrogate::terminal(&table);
    assert!(
        shown.contains("as-given: not validated, as each load is one that was fitted to"),
        "{shown}"
    );
}

#[test]
fn without_a_cache_of_states_devices_are_preconditioned_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let system = folder.path().join("drive.toml");
    std::fs::write(&system, component(SSD)).expect("one's own folder");
    let system = system.to_str().expect("UTF-8");
    let args = ["surrogate", system, "--states", "steady", "--read-shares", "1", "--json"];
    let few = ["--requests", "1000", "--validation", "2", "--sizes", "4KiB", "--depths", "1,4"];
    let table = document(&[&args[..], &few].concat());
    assert_eq!(table, document(&[&args[..], &few, &["--no-cache"]].concat()));
}

#[test]
fn an_empty_drive_and_loads_that_change_the_state_are_reported() {
    let mut options = options(&[DeviceState::AsGiven]);
    let shown = |options: &FitOptions| hybridsim_surrogate::terminal(&fitted(SSD, options));
    let unwritten = "as-given: some reads find nothing written";
    assert!(shown(&options).contains(unwritten));
    options.axes.read_share = vec![0.0];
    assert!(!shown(&options).contains(unwritten), "nothing is read");
    options.states = vec![DeviceState::Fresh];
    options.axes.bytes = vec![65536];
    // 500 requests of 64 KiB on 85 MiB.
    assert!(shown(&options).contains("fresh: a load writes up to 36"), "{}", shown(&options));
}

#[test]
fn states_differ_and_a_full_cache_is_slower() {
    let slc = "kind = \"ssd\"\nchannels = 2\ndies_per_channel = 2\nblocks_per_plane = 256\n\
               pages_per_block = 32\nover_provisioning = 0.3\nread_time = \"40us\"\n\
               program_time = \"1ms\"\nerase_time = \"3ms\"\nchannel_rate = \"400MB/s\"\n\
               [component.it.ftl]\nkind = \"slc-cache\"\n\
               [component.it.slc]\nread_time = \"20us\"\nprogram_time = \"150us\"\n\
               erase_time = \"2ms\"\n";
    let mut options = options(&[DeviceState::Fresh, DeviceState::CacheFull]);
    options.axes.read_share = vec![0.0];
    options.axes.bytes = vec![16384];
    options.axes.depth = vec![4];
    options.requests = 300;
    let table = fitted(slc, &options);
    let mean = |state: &str| {
        let [_, write] = table.states[state].closed.at([0.0, 16384.0, 4.0]).expect("a knot").0;
        write.expect("writes").mean()
    };
    let [fresh, full] = ["fresh", "cache-full"].map(mean);
    assert!(full > 2.0 * fresh, "{fresh} us, {full} us with a full cache");
}

#[test]
fn what_no_table_can_be_made_of_is_refused() {
    let ended = |keys: &str, options: &FitOptions| match fit(
        &scenario(keys),
        &standard(),
        options,
        &mut |_| {},
    ) {
        Err(FitError::Unsuitable(message)) => message,
        other => panic!("{other:?}"),
    };
    let cases: [(DeviceState, &str); 2] = [
        (DeviceState::Steady, "the system has no state steady"),
        (DeviceState::CacheFull, "the system has no state cache-full"),
    ];
    for (state, message) in cases {
        let error = ended(CONSTANT, &options(&[state]));
        assert!(error.contains(message), "{error}");
    }
    let error = ended(SSD, &options(&[DeviceState::CacheFull]));
    assert!(error.contains("no cache becomes full"), "{error}");
    let change = |change: fn(&mut Axes), message: &str| {
        let mut options = options(&[DeviceState::AsGiven]);
        change(&mut options.axes);
        let error = ended(CONSTANT, &options);
        assert!(error.contains(message), "{error}");
    };
    change(|axes| axes.read_share.push(1.5), "read shares are 0 to 1");
    change(|axes| axes.read_share.push(f64::NAN), "read shares are 0 to 1");
    change(|axes| axes.read_share.push(1e-6), "read shares between 0 and 1 are 0.001 to 0.999");
    change(|axes| axes.utilization.push(0.95), "utilizations are above 0 and up to 0.9");
    change(|axes| axes.bytes.push(6144), "not a multiple of the smallest");
    change(|axes| axes.bytes = vec![100], "multiples of 512 bytes");
    change(|axes| axes.bytes.push(64 << 20), "size 64 MiB: at most 32 MiB here");
    change(|axes| axes.depth.push(0), "depths begin at 1");
    change(|axes| axes.depth.clear(), "each axis needs a value");
    change(|axes| axes.depth.extend([2, 4]), "the initial grid has 24 knots, and 12 are allowed");
}

#[test]
fn the_command_writes_the_table_and_prints_its_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (system, out) = (path("drive.toml"), path("drive.json"));
    let beside = path("drive.partial");
    std::fs::write(&beside, "the user's").expect("one's own folder");
    std::fs::write(&system, component(CONSTANT)).expect("one's own folder");
    let few = ["--requests", "1000", "--validation", "3", "--knots", "20", "--sizes", "4KiB"];
    let args = [&["surrogate", &system, "--out", &out], &few[..]].concat();
    let output = call(&args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("errors on loads that the tables were not fitted to"), "{shown}");
    let written = std::fs::read_to_string(&out).expect("it was written");
    let written: Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(written["capacity_bytes"], 64 << 20);
    assert_eq!(written["states"]["as-given"]["closed"]["bytes"], serde_json::json!([4096.0]));
    let printed = document(&[&["surrogate", &system, "--json"], &few[..]].concat());
    assert_eq!(printed, written, "the same seed");
    assert_eq!(std::fs::read_to_string(&beside).expect("it stays"), "the user's");
    assert!(fails(2, &args).contains("exists; add --force"));
    let wrong = |more: &[&str], message: &str| {
        let errors = fails(2, &[&["surrogate", &system], more].concat());
        assert!(errors.contains(message), "{errors}");
    };
    wrong(
        &["--states", "old"],
        "unknown state `old`; expected as-given, fresh, steady, cache-full",
    );
    wrong(&["--sizes", "4KiB,5KiB"], "not a multiple of the smallest");
    wrong(&["--depths", "0"], "0 is not in 1..=65536");
    // Found out before the simulations.
    let absent = path("absent/drive.json");
    let errors = fails(2, &["surrogate", &system, "--out", &absent]);
    assert!(errors.contains("absent/drive.json"), "{errors}");
    let args = [&["surrogate", &system, "--depths", "1,100"], &few[..]].concat();
    let shown = text(&call(&args).stdout);
    let noted = "Of 100 requests outstanding the host submits 32 at a time";
    assert!(shown.contains(noted), "{shown}");
}

/// Closed loops at which readers are compared with the table: operation; read share, size and
/// depth; mean, 99th percentile, and a quantile within a band.
fn loads(table: &Surrogate) -> Vec<(&'static str, [f64; 3], [f64; 3])> {
    let tables = &table.states["fresh"];
    let mut loads = Vec::new();
    for (place, op) in ["read", "write"].into_iter().enumerate() {
        for at in [[0.25, 4096.0, 1.0], [0.6, 8192.0, 3.0], [0.75, 12288.0, 8.0]] {
            let latency = tables.closed.at(at).expect("within").0[place].expect("both");
            loads.push((op, at, [latency.mean(), latency.p99(), latency.quantile(0.97)]));
        }
    }
    loads
}

fn compare(table: &Surrogate, reader: &str, printed: &str) {
    let lines: Vec<&str> = printed.lines().collect();
    let numbers = |line: &str| -> Vec<f64> {
        line.split_whitespace().map(|it| it.parse().expect("a number")).collect()
    };
    let loads = loads(table);
    for ((op, at, expected), line) in loads.iter().zip(&lines) {
        let got = numbers(line);
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(expected) {
            assert!((got / expected - 1.0).abs() < 1e-9, "{reader} {op} {at:?}: {got} {expected}");
        }
    }
    let tables = &table.states["fresh"];
    let at = [0.5, 8192.0, 8.0];
    let most = tables.closed.iops(at).expect("within");
    let [read, _] = tables.open.at([0.5, 8192.0, 0.4]).expect("within").0;
    let last = numbers(lines[loads.len()]);
    for (got, expected) in last.iter().zip([most, read.expect("reads").mean()]) {
        assert!((got / expected - 1.0).abs() < 1e-9, "{reader}, open: {got} {expected}");
    }
    // Outside: depth, share, size, no reads at a share of 0; throughput, an open loop.
    assert_eq!(lines[loads.len() + 1..], ["outside"; 6], "{reader}");
}

fn finished(reader: &str, mut command: Command) -> Option<String> {
    let Ok(output) = command.output() else {
        eprintln!("skipped: `{}` is not installed", command.get_program().display());
        return None;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{reader}: {errors}");
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

const OUTSIDE: &str = "(\"read\", 0.5, 4096, 9), (\"read\", 1.1, 4096, 1), \
                       (\"read\", 0.5, 1024, 1), (\"read\", 0, 4096, 1)";

#[test]
fn the_readers_give_what_the_table_gives() {
    let mut options = options(&[DeviceState::Fresh]);
    options.axes.read_share = vec![0.0, 0.25, 0.75, 1.0];
    options.knots_max = 16;
    let table = fitted(SSD, &options);
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let json = file("drive.json");
    std::fs::write(&json, serde_json::to_string(&table).expect("plain")).expect("own folder");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/surrogate");
    let most = table.states["fresh"].closed.iops([0.5, 8192.0, 8.0]).expect("within");
    let rate = 0.4 * most;
    let calls = |form: &dyn Fn(&str, [f64; 3]) -> String| -> String {
        loads(&table).iter().map(|(op, at, ..)| form(op, *at)).collect()
    };

    let python = format!(
        "from surrogate import Surrogate\nd = Surrogate({json:?}, 'fresh')\n{}\
         print(repr(d.iops(0.5, 8192, 8)), repr(d.open('read', 0.5, 8192, {rate:?}).mean))\n\
         tries = [lambda load=load: d.closed(*load) for load in [{OUTSIDE}]]\n\
         tries += [lambda: d.iops(0.5, 4096, 9), lambda: d.open('read', 0.5, 1024, 10)]\n\
         for load in tries:\n    try:\n        load()\n    \
         except ValueError:\n        print('outside')\n",
        calls(&|op, [share, bytes, depth]| format!(
            "l = d.closed('{op}', {share}, {bytes}, {depth})\n\
             print(repr(l.mean), repr(l.quantile(0.99)), repr(l.quantile(0.97)))\n"
        ))
    );
    let mut command = Command::new("python3");
    command.args(["-B", "-c", &python]).env("PYTHONPATH", &examples);
    if let Some(printed) = finished("Python", command) {
        compare(&table, "Python", &printed);
    }

    let cpp = format!(
        "#include \"surrogate.hpp\"\n#include <cstdio>\nint main() {{\n\
         hybridsim::Surrogate d({json:?}, \"fresh\");\n{}\
         std::printf(\"%.17g %.17g\\n\", d.iops(0.5, 8192, 8), \
         d.open(\"read\", 0.5, 8192, {rate:?}).mean());\n\
         struct {{ const char *op; double s, b, l; }} all[] = {{{}}};\n\
         for (auto it : all) try {{ d.closed(it.op, it.s, it.b, it.l); }} \
         catch (const std::out_of_range &) {{ std::puts(\"outside\"); }}\n\
         try {{ d.iops(0.5, 4096, 9); }} \
         catch (const std::out_of_range &) {{ std::puts(\"outside\"); }}\n\
         try {{ d.open(\"read\", 0.5, 1024, 10); }} \
         catch (const std::out_of_range &) {{ std::puts(\"outside\"); }}\n}}\n",
        calls(&|op, [share, bytes, depth]| format!(
            "{{ auto l = d.closed(\"{op}\", {share}, {bytes}, {depth}); \
             std::printf(\"%.17g %.17g %.17g\\n\", l.mean(), l.quantile(0.99), \
             l.quantile(0.97)); }}\n"
        )),
        OUTSIDE.replace('(', "{").replace(')', "}")
    );
    if Path::new("/usr/include/nlohmann/json.hpp").is_file() {
        std::fs::write(file("main.cpp"), cpp).expect("own folder");
        let mut command = Command::new("c++");
        command.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I"]).arg(&examples);
        command.arg(file("main.cpp")).arg("-o").arg(file("main"));
        if finished("C++", command).is_some() {
            let printed = finished("C++", Command::new(file("main"))).expect("it was compiled");
            compare(&table, "C++", &printed);
        }
    } else {
        eprintln!("skipped: nlohmann/json is not installed");
    }

    let go = format!(
        "package main\n\nimport \"fmt\"\n\nfunc main() {{\n\
         d, err := OpenSurrogate({json:?}, \"fresh\")\nif err != nil {{ panic(err) }}\n{}\
         iops, _ := d.IOPS(0.5, 8192, 8)\n\
         open, _ := d.OpenLatency(\"read\", 0.5, 8192, {rate:?})\n\
         fmt.Printf(\"%.17g %.17g\\n\", iops, d.Mean(open))\n\
         for _, it := range []struct {{ op string; s, b, l float64 }}{{{}}} {{\n\
         if _, err := d.Latency(it.op, it.s, it.b, it.l); err != nil {{ \
             fmt.Println(\"outside\") }}\n\
         }}\n\
         if _, err := d.IOPS(0.5, 4096, 9); err != nil {{ fmt.Println(\"outside\") }}\n\
         if _, err := d.OpenLatency(\"read\", 0.5, 1024, 10); err != nil {{ \
             fmt.Println(\"outside\") }}\n\
         if _, err := d.Latency(\"trim\", 0.5, 4096, 1); err == nil {{ panic(\"an operation\") }}\n\
         }}\n",
        calls(&|op, [share, bytes, depth]| format!(
            "{{ l, _ := d.Latency(\"{op}\", {share}, {bytes}, {depth})\n\
             fmt.Printf(\"%.17g %.17g %.17g\\n\", d.Mean(l), d.Quantile(l, 0.99), \
             d.Quantile(l, 0.97)) }}\n"
        )),
        OUTSIDE.replace('(', "{").replace(')', "}")
    );
    let module = file("go");
    std::fs::create_dir(&module).expect("own folder");
    std::fs::write(module.join("main.go"), go).expect("own folder");
    for name in ["surrogate.go", "go.mod"] {
        std::fs::copy(examples.join("go").join(name), module.join(name)).expect("own folder");
    }
    let mut command = Command::new("go");
    command.args(["run", "."]).current_dir(&module);
    if let Some(printed) = finished("Go", command) {
        compare(&table, "Go", &printed);
    }
}
