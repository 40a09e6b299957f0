"""Copies of the last commit whose code has changes behind switches: one build for all of them.

A program of such a copy makes the change whose number is in the variable `HYBRIDSIM_CHANGE`.
Without one, it appends the numbers of all changes in code that it runs to the existing file
`HYBRIDSIM_CHANGES_REACHED`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SWITCH = """
/// Whether the change of this number is active; if none is, its number is recorded where asked for.
pub(crate) fn changed(number: u32) -> bool {
    use std::sync::{OnceLock, atomic::{AtomicBool, Ordering::Relaxed}};
    static ACTIVE: OnceLock<u32> = OnceLock::new();
    static REACHED: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];
    let active = || std::env::var("HYBRIDSIM_CHANGE").ok()?.parse().ok();
    let active = *ACTIVE.get_or_init(|| active().unwrap_or(0));
    if active == 0 && !REACHED[number as usize].load(Relaxed)
        && !REACHED[number as usize].swap(true, Relaxed)
        && let Some(path) = std::env::var_os("HYBRIDSIM_CHANGES_REACHED")
    {
        let file = std::fs::OpenOptions::new().append(true).open(path);
        let line = format!("{number}\\n");
        std::io::Write::write_all(&mut file.expect("the file exists"), line.as_bytes())
            .expect("the line is written");
    }
    active == number
}
"""


class Copy:
    """A copy of the last commit in `folder`, and its builds; unchanged files keep their times."""

    def __init__(self, folder):
        self.path = folder / "copy"
        self.builds = folder / "build"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.path)], check=True)
        self.git("fetch", "--quiet", str(ROOT), "HEAD")
        self.git("checkout", "--quiet", "--force", "--detach", "FETCH_HEAD")

    def git(self, *words):
        command = ["git", *words]
        done = subprocess.run(command, cwd=self.path, check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout.strip()

    def add_switch(self, files):
        """Defines the function `changed` in the crates of the files."""
        for crate in {file.split("/")[1] for file in files}:
            root = self.path / "crates" / crate / "src/lib.rs"
            root.write_text(root.read_text() + SWITCH)

    def cargo(self, *words):
        """The exit code of a command and its messages."""
        environment = {**os.environ, "CARGO_TARGET_DIR": str(self.builds),
                       "CARGO_INCREMENTAL": "0", "RUSTFLAGS": "-Awarnings"}
        command = ["cargo", *words, "--quiet", "--locked", "--message-format=json"]
        done = subprocess.run(command, cwd=self.path, env=environment, stdout=subprocess.PIPE,
                              text=True, check=False)
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def errors(messages):
    """The errors of the compiler."""
    return [it["message"] for it in messages
            if it["reason"] == "compiler-message" and it["message"]["level"] == "error"]


def executables(code, messages):
    """The programs that a command has built, as its messages name them."""
    if code:
        sys.exit("".join(it["rendered"] for it in errors(messages)) or "cargo failed")
    return [it for it in messages if it["reason"] == "compiler-artifact" and it["executable"]]
