//! Many runs: the plan, the store and the tables of sweeps, which the command has as well.

use crate::failure;
use crate::plugin;
use crate::run::{Source, input};
use hybridsim_config::diagnostic::Diagnostics;
use hybridsim_simulation::parallel::processors;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_sweep::{
    Contents, Job, Memory, Outcome, Plan, Point, Range, Sampling, Search, Seeds, Store, Table,
    Task, Values, Vary,
};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

type Varied = (String, VariedValues);

#[derive(FromPyObject)]
pub enum VariedValues {
    /// Values in TOML.
    List(Vec<String>),
    /// The ends of a range in TOML, and whether it is spread by the logarithm.
    Range(String, String, bool),
}

#[derive(FromPyObject)]
pub enum Repeated {
    /// This many seeds, from the scenario's own on.
    Count(u64),
    List(Vec<u64>),
}

/// Combinations given one by one: keys, and the values of each in TOML.
type Listed = (Vec<String>, Vec<Vec<String>>);

/// A plan of runs and the outcomes so far.
#[pyclass(module = "hybridsim._core")]
pub struct Study {
    /// The keys of a point's values.
    #[pyo3(get)]
    keys: Vec<String>,
    points: Vec<Point>,
    outcomes: Vec<Option<Outcome>>,
    store: Option<Store>,
    /// Whether a scenario uses a policy written in Python.
    #[pyo3(get)]
    uses_python: bool,
    /// Whether a missing point uses a class that is registered in this process only.
    #[pyo3(get)]
    uses_registered: bool,
}

#[pymethods]
impl Study {
    /// Plans the runs and reads those that are in the store.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they are keywords of a Python function")]
    fn new(
        py: Python<'_>,
        source: Source,
        sets: Vec<String>,
        vary: Vec<Varied>,
        listed: Option<Listed>,
        sample: &str,
        traces: Vec<PathBuf>,
        seeds: Option<Repeated>,
        folder: Option<PathBuf>,
        retry: bool,
    ) -> PyResult<Self> {
        failure::guarded(|| {
            let wrong = |problems: Diagnostics| failure::scenario(py, &problems);
            let mut plan = Plan::new(input(source, &sets, None).map_err(wrong)?);
            if let Some((keys, rows)) = listed {
                plan.list(keys, rows);
            }
            let vary: Result<Vec<Vary>, String> = vary.into_iter().map(varied).collect();
            plan.vary(&vary.map_err(|error| argument(py, error))?);
            plan.sample(Sampling::parse(sample).map_err(|error| argument(py, error))?);
            plan.replay(&traces);
            let seeds = match seeds {
                None => Seeds::Count(1),
                Some(Repeated::Count(count)) => Seeds::Count(count),
                Some(Repeated::List(list)) => Seeds::List(list),
            };
            plan.repeat(seeds).map_err(wrong)?;
            let registry = plugin::registry();
            let points = plan.points_or_failures(&registry).map_err(wrong)?;
            let store = folder.map(|folder| Store::open(&folder, retry)).transpose();
            let store = store.map_err(|error| failure::raise(py, "Error", error))?;
            let outcomes: Vec<Option<Outcome>> =
                points.iter().map(|point| point.known(store.as_ref())).collect();
            let (mut uses_python, mut uses_registered) = (false, false);
            for (point, outcome) in points.iter().zip(&outcomes) {
                let Ok(scenario) = Scenario::check(point.input.clone(), &registry) else {
                    continue;
                };
                uses_python |= plugin::uses_python(&scenario);
                uses_registered |= outcome.is_none() && plugin::uses_registered(&scenario);
            }
            let keys = plan.keys().into_iter().map(str::to_owned).collect();
            Ok(Self { keys, points, outcomes, store, uses_python, uses_registered })
        })
    }

    /// Values in TOML, seed and key of each point.
    fn points(&self) -> Vec<(Vec<String>, Option<u64>, String)> {
        let point = |point: &Point| (point.values.clone(), point.seed, point.key.clone());
        self.points.iter().map(point).collect()
    }

    /// Why a point without an outcome cannot be simulated on another computer.
    fn remote_problem(&self) -> Option<String> {
        let mut points = self.missing_points().into_iter().map(|at| &self.points[at]);
        points.find_map(|point| point.check_remote().err())
    }

    /// The numbers of the points without an outcome, one for each key.
    fn missing(&self) -> Vec<usize> {
        let (first, _) = hybridsim_sweep::distinct(&self.points);
        let numbers = first.into_iter().map(|point| point.number);
        numbers.filter(|number| self.outcomes[*number].is_none()).collect()
    }

    /// A point as text for another process.
    fn task(&self, number: usize) -> String {
        let task = Task::of(&self.points[number]);
        serde_json::to_string(&task).expect("tasks can be written as JSON")
    }

    /// The first error of a write to the store, in which points may be missing.
    #[getter]
    fn store_problem(&self) -> Option<&str> {
        self.store.as_ref()?.problem()
    }

    /// Takes the outcome of a point and of all that are the same, and stores it.
    fn put(&mut self, py: Python<'_>, number: usize, outcome: &str) -> PyResult<()> {
        failure::guarded(|| {
            let read = serde_json::from_str(outcome);
            let outcome: Outcome = read.map_err(|error| {
                failure::raise(py, "Error", format!("this is not the outcome of a run: {error}"))
            })?;
            let key = self.points[number].key.clone();
            if let Some(store) = &self.store {
                store.save(&key, &outcome);
            }
            for (point, known) in self.points.iter().zip(&mut self.outcomes) {
                if point.number == number || (point.key == key && !key.is_empty()) {
                    *known = Some(outcome.clone());
                }
            }
            Ok(())
        })
    }

    /// Runs what is missing in threads of this process; `finished` is called after each point.
    /// Python code in it ends the run when it raises, as Ctrl-C does.
    fn run(
        &mut self,
        py: Python<'_>,
        threads: Option<usize>,
        memory: Option<u64>,
        cache: bool,
        finished: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let interrupted = AtomicBool::new(false);
        let registry = plugin::registry();
        let job = Job {
            registry: &registry,
            threads: threads.unwrap_or_else(processors),
            memory: &memory.map_or_else(Memory::available, Memory::new),
            store: self.store.as_ref(),
            cache,
            interrupted: &interrupted,
        };
        let points: Vec<Point> =
            self.missing_points().into_iter().map(|at| self.points[at].clone()).collect();
        let (outcomes, raised) = py.detach(|| {
            let (send, receive) = mpsc::channel();
            let (points, job) = (&points, &job);
            thread::scope(|scope| {
                // The channel closes when all are done.
                let worker = scope.spawn(move || {
                    hybridsim_sweep::run(points, job, |_| {
                        let _ = send.send(());
                    })
                });
                let raised = listen(&receive, finished.as_ref(), &interrupted);
                (worker.join(), raised)
            })
        });
        let outcomes = outcomes.unwrap_or_else(|_| vec![None; points.len()]);
        for (point, outcome) in points.iter().zip(outcomes) {
            self.outcomes[point.number] = outcome;
        }
        raised.map_or(Ok(()), Err)
    }

    /// The outcome of a point as JSON: `done` with its results, or `failed` with the reason.
    fn outcome(&self, number: usize) -> Option<String> {
        self.outcomes[number].as_ref().map(json)
    }

    /// The page of the sweep; of a search with sentences above the table, objectives by their path
    /// with whether more is better, and the best rows.
    fn html(
        &self,
        py: Python<'_>,
        title: &str,
        notes: Vec<String>,
        objectives: Vec<(String, bool)>,
        best: Vec<usize>,
    ) -> PyResult<String> {
        failure::guarded(|| {
            let paths: Vec<String> = objectives.iter().map(|(path, _)| path.clone()).collect();
            let table = self.table(&paths).map_err(|error| argument(py, error))?.with_usual();
            Ok(table.search_html(title, "", &Search { notes, objectives, best }))
        })
    }

    /// The table of the sweep as comma-separated values, with further columns by their path.
    fn csv(&self, py: Python<'_>, columns: Vec<String>) -> PyResult<String> {
        failure::guarded(|| {
            let table = self.table(&columns).map_err(|error| argument(py, error))?;
            Ok(table.csv())
        })
    }
}

impl Study {
    fn missing_points(&self) -> Vec<usize> {
        (0..self.points.len()).filter(|at| self.outcomes[*at].is_none()).collect()
    }

    fn table(&self, columns: &[String]) -> Result<Table<'_>, String> {
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        let rows = self.points.iter().zip(&self.outcomes);
        let rows: Vec<(&Point, &Outcome)> =
            rows.filter_map(|(point, outcome)| Some((point, outcome.as_ref()?))).collect();
        Table::new(&keys, columns, &rows)
    }
}

/// Calls `finished` for each point until all are done; an exception interrupts the runs.
fn listen(
    finished_points: &mpsc::Receiver<()>,
    finished: Option<&Py<PyAny>>,
    interrupted: &AtomicBool,
) -> Option<PyErr> {
    let mut raised = None;
    loop {
        let waited = finished_points.recv_timeout(Duration::from_millis(100));
        if waited == Err(RecvTimeoutError::Disconnected) {
            return raised;
        }
        let called = Python::attach(|py| {
            py.check_signals()?;
            match finished.filter(|_| waited.is_ok()) {
                Some(finished) => finished.call0(py).map(drop),
                None => Ok(()),
            }
        });
        if let Err(error) = called {
            raised.get_or_insert(error);
            interrupted.store(true, Ordering::Relaxed);
        }
    }
}

fn varied((key, given): Varied) -> Result<Vary, String> {
    match given {
        VariedValues::List(values) => Vary::list(key, values).map_err(|error| error.to_string()),
        VariedValues::Range(from, to, log) => {
            let range = Range::parse(&from, &to, log).map_err(|error| format!("{key}: {error}"))?;
            Ok(Vary { key, values: Values::Range(range) })
        }
    }
}

fn argument(py: Python<'_>, message: String) -> PyErr {
    failure::raise(py, "ArgumentError", message)
}

/// Simulates a task, replaying `trace` where the task's own path leads nowhere; returns the outcome
/// as JSON.
#[pyfunction]
#[pyo3(signature = (task, cache, trace = None))]
pub fn run_task(
    py: Python<'_>,
    task: &str,
    cache: bool,
    trace: Option<PathBuf>,
) -> PyResult<String> {
    failure::guarded(|| {
        let wrong = |error: String| failure::raise(py, "Error", error);
        let task: Task = serde_json::from_str(task)
            .map_err(|error| argument(py, format!("this is not a task: {error}")))?;
        simulate(py, &task.into_input(trace).map_err(wrong)?, cache)
    })
}

/// The hash by which a trace is known on all computers.
#[pyfunction]
pub fn contents(py: Python<'_>, path: PathBuf) -> String {
    py.detach(|| Contents::default().of(&path))
}

fn simulate(py: Python<'_>, input: &Input, cache: bool) -> PyResult<String> {
    let mut registry = plugin::registry();
    registry.take_plugin_errors_from(failure::take_message);
    let uses_python = Scenario::check(input.clone(), &registry)
        .is_ok_and(|scenario| plugin::uses_python(&scenario));
    let go_on = || {
        if let Err(error) = Python::attach(|py| py.check_signals()) {
            failure::keep(error);
        }
        !failure::is_pending()
    };
    let (outcome, raised) = failure::gather(|| {
        if uses_python {
            return hybridsim_sweep::simulate(input, &registry, cache, go_on);
        }
        py.detach(|| hybridsim_sweep::simulate(input, &registry, cache, go_on))
    });
    match (outcome, raised) {
        (_, Some(raised)) if failure::is_wish_to_stop(py, &raised) => Err(raised),
        (Some(outcome), _) => Ok(json(&outcome)),
        (None, Some(raised)) => Err(raised),
        (None, None) => Err(PyKeyboardInterrupt::new_err(())),
    }
}

fn json(outcome: &Outcome) -> String {
    serde_json::to_string(outcome).expect("results can be written as JSON")
}

/// Memory that simulations may use, in bytes; `None` where that is not known.
#[pyfunction]
pub fn available_memory() -> Option<u64> {
    Some(Memory::available().limit()).filter(|limit| *limit < u64::MAX)
}

/// The outcome that is stored under a key, if that run completed.
#[pyfunction]
pub fn completed_outcome(py: Python<'_>, folder: PathBuf, key: &str) -> PyResult<Option<String>> {
    failure::guarded(|| {
        let store = Store::open(&folder, true).map_err(|error| failure::raise(py, "Error", error));
        Ok(store?.load(key).as_ref().map(json))
    })
}

/// Stores an outcome under a key. Write errors are ignored: the driver stores the outcome as well,
/// and reports them.
#[pyfunction]
pub fn save_outcome(py: Python<'_>, folder: PathBuf, key: &str, outcome: &str) -> PyResult<()> {
    failure::guarded(|| {
        let wrong = |error: String| failure::raise(py, "Error", error);
        let outcome: Outcome =
            serde_json::from_str(outcome).map_err(|error| wrong(error.to_string()))?;
        if let Ok(store) = Store::open(&folder, false) {
            store.save(key, &outcome);
        }
        Ok(())
    })
}
