//! Points of a sweep on a Dask cluster, through the Python package.
//!
//! Plan, store and tables are those of any sweep. A process of Python (`hybridsim._cluster`) reads
//! tasks as lines of JSON, as many at a time as the cluster has use for, and writes outcomes.

use super::output::{Exit, Failure, note};
use hybridsim_sweep::{Outcome, Point, Store, Task, distinct};
use serde::Deserialize;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Names the Python interpreter, in place of the one beside the program or on the path.
const PYTHON: &str = "HYBRIDSIM_PYTHON";

/// A program in Python that fails if the package is not there.
const PROBE: &str =
    "import importlib.util, sys; sys.exit(importlib.util.find_spec('hybridsim') is None)";

/// A cluster that runs points.
pub struct Cluster<'a> {
    /// Address of the scheduler.
    pub address: &'a str,
    /// Whether workers cache preconditioned devices.
    pub cache: bool,
    /// Set to interrupt the sweep.
    pub interrupted: &'a AtomicBool,
}

/// A line from the process.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The task with this number is finished.
    Finished(usize, Outcome),
    /// The cluster cannot be used.
    Refused(String),
}

impl Cluster<'_> {
    /// As `hybridsim_sweep::run`, on the cluster.
    pub fn run(
        &self,
        points: &[Point],
        store: Option<&Store>,
        mut finished: impl FnMut(&Point),
    ) -> Result<Vec<Option<Outcome>>, Failure> {
        let mut outcomes: Vec<Option<Outcome>> = vec![None; points.len()];
        let (first, copies) = distinct(points);
        let mut done = |at: usize, outcome: &Outcome| {
            for copy in &copies[at] {
                outcomes[*copy] = Some(outcome.clone());
                finished(&points[*copy]);
            }
        };
        let mut tasks = Vec::new();
        let mut positions = HashMap::new();
        for (at, point) in first.into_iter().enumerate() {
            match point.known(store) {
                Some(known) => done(at, &known),
                None => {
                    positions.insert(point.number, (at, point.key.as_str()));
                    tasks.push(Task::of(point));
                }
            }
        }
        if tasks.is_empty() {
            return Ok(outcomes);
        }
        let checked = points.iter().try_for_each(Point::check_remote);
        checked.map_err(|error| Failure::usage(format!("--dask: {error}")))?;
        let mut child = self.start(store)?;
        let stdin = child.stdin.take().expect("its standard input is a pipe");
        let stdout = child.stdout.take().expect("its standard output is a pipe");
        let mut refused = None;
        std::thread::scope(|scope| {
            scope.spawn(|| send(stdin, &tasks));
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                match serde_json::from_str(&line) {
                    Ok(Line::Finished(number, outcome)) => {
                        let Some(&(at, key)) = positions.get(&number) else { continue };
                        if let Some(store) = store {
                            store.save(key, &outcome);
                        }
                        done(at, &outcome);
                    }
                    Ok(Line::Refused(message)) => refused = Some(message),
                    Err(_) => note(&line),
                }
            }
        });
        let status = child.wait()?;
        if self.interrupted.load(Ordering::Relaxed) {
            return Ok(outcomes);
        }
        match refused {
            Some(message) => Err(Failure::Message(Exit::Run, message)),
            None if !status.success() => Err(ended("--dask", "dask", status)),
            None => Ok(outcomes),
        }
    }

    fn start(&self, store: Option<&Store>) -> Result<Child, Failure> {
        let mut command = python("hybridsim._cluster", "--dask", "dask")?;
        command.arg(self.address);
        if let Some(store) = store {
            command.arg("--store").arg(store.folder());
        }
        if !self.cache {
            command.arg("--no-cache");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().map_err(|error| without_python("--dask", "dask", &error))
    }
}

/// A module of the Python package as a program.
///
/// # Errors
/// The interpreter cannot be started or does not have the package; it prints nothing about that.
pub(super) fn python(module: &str, what: &str, extra: &str) -> Result<Command, Failure> {
    let mut probe = Command::new(interpreter());
    probe.args(["-c", PROBE]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let found = probe.status().map_err(|error| without_python(what, extra, &error))?;
    if !found.success() {
        let message = format!("there is no Python package hybridsim: {}", needs(what, extra));
        return Err(Failure::Message(Exit::Run, message));
    }
    let mut command = Command::new(interpreter());
    command.args(["-m", module]);
    Ok(command)
}

/// The interpreter of the environment that a wheel has put this program into, unless named.
fn interpreter() -> OsString {
    let beside = || {
        let name = if cfg!(windows) { "python.exe" } else { "python3" };
        let path = std::env::current_exe().ok()?.with_file_name(name);
        path.is_file().then(|| path.into_os_string())
    };
    std::env::var_os(PYTHON).or_else(beside).unwrap_or_else(|| "python3".into())
}

/// The failure when the interpreter cannot be started.
pub(super) fn without_python(what: &str, extra: &str, error: &io::Error) -> Failure {
    Failure::usage(format!("{}: {error}", needs(what, extra)))
}

/// The failure when the module ended for a reason that it has printed, if it was there.
pub(super) fn ended(what: &str, extra: &str, status: ExitStatus) -> Failure {
    Failure::Message(Exit::Run, format!("{}; it ended with {status}", needs(what, extra)))
}

fn needs(what: &str, extra: &str) -> String {
    format!(
        "{what} runs {} with `pip install \"hybridsim[{extra}]\"`; {PYTHON} names another \
         interpreter",
        interpreter().display()
    )
}

/// Ends early when the process does.
fn send(mut stdin: ChildStdin, tasks: &[Task]) {
    for task in tasks {
        let mut line = serde_json::to_string(task).expect("tasks can be written as JSON");
        line.push('\n');
        if stdin.write_all(line.as_bytes()).is_err() {
            return;
        }
    }
}
