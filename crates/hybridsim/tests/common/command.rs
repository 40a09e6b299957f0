//! The program as a user calls it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

/// The root of the repository, in which the program is called.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hybridsim"));
    command.args(args).current_dir(root());
    command
}

pub fn call(args: &[&str]) -> Output {
    program(args).output().expect("the program starts")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// Sends `signal` (`-INT`) to `child`.
#[allow(dead_code, reason = "not every test uses it")]
pub fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.expect("kill is there").success());
}

/// Waits until the process `id` handles SIGINT, which it would not survive before; at most a
/// minute, and only on Linux, where that can be seen.
#[allow(dead_code, reason = "not every test uses it")]
pub fn wait_for_handler(id: u32) {
    let handles = || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        Some(u64::from_str_radix(mask.trim(), 16).ok()? & 2 != 0)
    };
    for _ in 0..6_000 {
        if handles() != Some(false) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// A small, fast system and workload.
#[allow(dead_code, reason = "not every test uses it")]
pub const TOY: &str = r#"
title = "Toy <b>&</b>"
[workload]
generator = { kind = "uniform", requests = 500, read = 0.5 }
[host]
mode = "closed"
queue_depth = 4
[component.device]
kind = "constant-device"
capacity = "16MiB"
latency = "100us"
"#;

/// Writes a scenario into a folder, and gives its path.
#[allow(dead_code, reason = "not every test uses it")]
pub fn scenario(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).expect("a writable folder");
    path.to_str().expect("UTF-8").to_owned()
}

/// Runs `args`, which fail with exit code `code`; returns what standard error has.
#[allow(dead_code, reason = "not every test uses it")]
pub fn fails(code: i32, args: &[&str]) -> String {
    let output = call(args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}\n{message}");
    message
}

/// The document that `args` print, which succeed.
#[allow(dead_code, reason = "not every test uses it")]
pub fn document(args: &[&str]) -> serde_json::Value {
    let output = call(args);
    assert!(output.status.success(), "{args:?}\n{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}
