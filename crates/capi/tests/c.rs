//! The header is current, and C programs compile against it and run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SSD: &str = "\
[component.ssd]
kind = \"ssd\"
ftl = \"page\"
page_size = \"4KiB\"
pages_per_block = 16
blocks_per_plane = 64
over_provisioning = 0.2
read_time = \"25us\"
program_time = \"200us\"
erase_time = \"1.5ms\"
";

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The folder that the library was built into.
fn library() -> PathBuf {
    let this = std::env::current_exe().expect("a test is a file");
    this.parent().expect("it is in a folder").to_owned()
}

fn has_compiler() -> bool {
    let found = Command::new("cc").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: there is no C compiler `cc`");
    }
    found
}

fn compile(source: &str, to: &Path) {
    let output = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .arg(root("include"))
        .arg(root(source))
        .arg("-L")
        .arg(library())
        .args(["-lhybridsim_c", "-o"])
        .arg(to)
        .output()
        .expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn run(program: &Path, args: &[&str]) -> Output {
    Command::new(program)
        .args(args)
        .current_dir(program.parent().expect("it is in a folder"))
        .env("LD_LIBRARY_PATH", library())
        .env("DYLD_LIBRARY_PATH", library())
        .output()
        .expect("it was compiled")
}

fn results(output: &Output) -> serde_json::Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let parsed = serde_json::from_slice(&output.stdout);
    let mut all: serde_json::Value = parsed.unwrap_or_else(|error| panic!("{error}\n{errors}"));
    // The memory of the process differs from run to run.
    all.as_object_mut().expect("an object").remove("peak_rss_bytes");
    all
}

#[test]
fn the_header_is_current() {
    let config = cbindgen::Config::from_file(root("cbindgen.toml")).expect("it is valid");
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root("src/lib.rs"))
        .generate()
        .expect("the interface can be expressed in C");
    let mut header = Vec::new();
    bindings.write(&mut header);
    let path = root("include/hybridsim.h");
    if std::env::var_os("HYBRIDSIM_BLESS").is_some() {
        std::fs::write(&path, &header).expect("the source can be written");
    }
    let kept = std::fs::read(&path).unwrap_or_default();
    assert!(
        kept == header,
        "include/hybridsim.h is out of date: HYBRIDSIM_BLESS=1 cargo test -p hybridsim-capi"
    );
}

#[test]
fn misuse_is_answered() {
    if !has_compiler() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("misuse");
    compile("tests/misuse.c", &program);
    let output = run(&program, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_examples_run() {
    if !has_compiler() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("ssd.toml"), SSD).expect("one's own folder");
    let program = folder.path().join("step");
    compile("examples/step.c", &program);
    let new = results(&run(&program, &["ssd.toml"]));
    assert_eq!(new["requests"], 20);
    assert_eq!(new["violations"], serde_json::json!([]));
    // From a state, the second run finds the flash written by the first.
    let first = results(&run(&program, &["ssd.toml", "drive.state"]));
    assert_eq!(first["fingerprint"], new["fingerprint"]);
    let second = results(&run(&program, &["ssd.toml", "drive.state"]));
    assert_ne!(second["fingerprint"], first["fingerprint"]);

    let program = folder.path().join("event_queue");
    compile("examples/event_queue.c", &program);
    let output = run(&program, &["ssd.toml"]);
    let coupled = results(&output);
    assert_eq!(coupled["requests"], 200);
    // The clock of the event queue and that of the drive agree.
    let last_us = coupled["simulated_ns"].as_f64().expect("a number") / 1e3;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains(&format!("the last ended at {last_us:.1} us")), "{errors} {last_us}");
    assert_eq!(results(&run(&program, &["ssd.toml"])), coupled);
}

/// A loop of a drive as a table, and of the drive itself.
#[test]
fn the_go_example_runs() {
    if !has_compiler() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let examples = root("../../examples/surrogate/go");
    for name in ["surrogate.go", "loop.go", "go.mod"] {
        std::fs::copy(examples.join(name), file(name)).expect("one's own folder");
    }
    // A read takes 25 us and waits for those before it on its die: eight workers, one die.
    let one_die = "channels = 1\ndies_per_channel = 1\nplanes_per_die = 1\n";
    let scenario = format!("{SSD}{one_die}precondition = \"fill\"\n");
    std::fs::write(file("ssd.toml"), scenario).expect("one's own folder");
    let us = 8.0 * 16.0 * 25.0;
    let knot = format!("[{}]", vec![us.to_string(); 25].join(", "));
    let table = format!(
        "{{\"read_share\": [1], \"bytes\": [65536], \"load\": [8], \"read\": [{knot}], \
         \"write\": [null]}}"
    );
    let probabilities: Vec<String> = (0..13).map(|at| (f64::from(at) / 12.0).to_string()).collect();
    let text = format!(
        "{{\"format\": \"hybridsim-surrogate\", \"version\": 1, \"probabilities\": [{}], \
         \"states\": {{\"fresh\": {{\"closed\": {table}, \"open\": {table}}}}}}}",
        probabilities.join(", ")
    );
    std::fs::write(file("drive.json"), text).expect("one's own folder");
    let config = format!(
        "Name: hybridsim\nDescription: test\nVersion: 0\nCflags: -I{}\nLibs: -L{} -lhybridsim_c\n",
        root("include").display(),
        library().display()
    );
    std::fs::write(file("hybridsim.pc"), config).expect("one's own folder");
    let output = Command::new("go")
        .args(["run", ".", "drive.json", "fresh", "ssd.toml"])
        .current_dir(folder.path())
        .env("PKG_CONFIG_PATH", folder.path())
        .env("LD_LIBRARY_PATH", library())
        .env("DYLD_LIBRARY_PATH", library())
        .output();
    let Ok(output) = output else { return eprintln!("skipped: `go` is not installed") };
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("pkg-config") && errors.contains("executable file not found") {
        return eprintln!("skipped: `pkg-config` is not installed");
    }
    assert!(output.status.success(), "{errors}");
    let printed = String::from_utf8_lossy(&output.stdout);
    let (_, rest) = printed.split_once("difference ").expect("a difference");
    let percent: f64 = rest.trim_end_matches(" %\n").parse().expect("a number");
    assert!(percent.abs() < 5.0, "{printed}");
}

#[test]
fn the_header_is_valid_in_cpp() {
    let Ok(output) = Command::new("c++")
        .args(["-std=c++11", "-Wall", "-Werror", "-fsyntax-only", "-x", "c++"])
        .arg(root("include/hybridsim.h"))
        .output()
    else {
        return eprintln!("skipped: there is no C++ compiler `c++`");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
