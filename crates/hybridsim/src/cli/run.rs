//! The commands that simulate: run, compare, fuzz.

use super::columns;
use super::export::Exports;
use super::interrupt::on_interrupt;
use super::output::{Exit, Failure, note, print, probe, report, unwritable, write_file};
use super::progress::Bars;
use super::{RunArgs, SimulateArgs};
use hybridsim_config::registry::Registry;
use hybridsim_engine::{EventSink, Fault};
use hybridsim_fuzz::Verdict;
use hybridsim_fuzz::coverage::Coverage;
use hybridsim_observe::{Detail, RunResults};
use hybridsim_report::Run;
use hybridsim_report::json::pretty;
use hybridsim_report::terminal::Style;
use hybridsim_simulation::memory;
use hybridsim_simulation::parallel::{parallel_map, processors};
use hybridsim_simulation::run::{self, Options, RunOutput};
use hybridsim_simulation::scenario::{STANDARD_INPUT, Scenario};
use hybridsim_simulation::state::{self, PreconditionCache};
use hybridsim_simulation::{text, workload};
use hybridsim_sweep::Memory;
use std::fs::{self, File, TryLockError};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time from an interrupt until a command that has not ended says so.
const PATIENCE: Duration = Duration::from_secs(1);

/// One scenario, or several shown side by side.
#[derive(Clone, Copy)]
pub enum Kind<'a> {
    /// One, whose state is saved into this file.
    Single(Option<&'a Path>),
    /// Several, at most this many at a time.
    Compare(usize),
}

/// Runs one scenario.
pub fn single(registry: &Registry, mut args: RunArgs) -> Result<(), Failure> {
    if let Some(state) = &args.load_state {
        let path = std::path::absolute(state)
            .map_err(|error| Failure::usage(format!("{}: {error}", state.display())))?;
        let quoted = toml::Value::from(path.to_string_lossy().into_owned());
        args.simulate.sets.push(format!("run.state={quoted}"));
    }
    if let Some(path) = &args.faults {
        args.simulate.sets.push(faults(path)?);
    }
    args.save_state.iter().try_for_each(|path| free_for_state(path).and_then(|()| probe(path)))?;
    let kind = Kind::Single(args.save_state.as_deref());
    simulate(registry, std::slice::from_ref(&args.scenario), &args.simulate, kind)
}

/// Checks that a state written to `path` replaces no other file than a state: a scenario or trace
/// that is named by mistake is not lost.
fn free_for_state(path: &Path) -> Result<(), Failure> {
    if !path.is_file() || state::is_state(path) {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::usage(format!("--save-state: {path} is no saved state; name another file")))
}

/// The option that sets the faults in the file at `path`.
fn faults(path: &Path) -> Result<String, Failure> {
    let wrong = |reason: String| Failure::usage(format!("--faults {}: {reason}", path.display()));
    let text = text::read(path, text::SCENARIO_BYTES_MAX);
    let text = text.map_err(|error| wrong(error.to_string()))?;
    let root: toml::Table =
        text.parse().map_err(|error: toml::de::Error| wrong(error.to_string()))?;
    let alone = |table: &toml::Table| table.len() == 1;
    let run = root.get("run").and_then(toml::Value::as_table).filter(|run| alone(run));
    match run.and_then(|run| run.get("faults")) {
        Some(list @ toml::Value::Array(_)) if alone(&root) => Ok(format!("run.faults={list}")),
        _ => Err(wrong("it has to be a list `[[run.faults]]`, and nothing else".to_owned())),
    }
}

/// Runs all scenarios.
pub fn simulate(
    registry: &Registry,
    paths: &[PathBuf],
    args: &SimulateArgs,
    kind: Kind<'_>,
) -> Result<(), Failure> {
    let compare = matches!(kind, Kind::Compare(_));
    if args.json && !args.columns.is_empty() {
        let message = "--column adds rows to the table; the document of --json has every key";
        return Err(Failure::usage(message.to_owned()));
    }
    if let Some(seed) = &args.seed {
        let message = format!("--seed: the seed is a key of the scenario: --set run.seed={seed}");
        return Err(Failure::usage(message));
    }
    columns::check(&args.columns)?;
    let scenarios = read_all(registry, paths, args)?;
    let counts =
        |scenario: &Scenario| !scenario.tenants.is_empty() && scenario.run.warmup_requests > 0;
    if args.slowdown && scenarios.iter().any(counts) {
        let message = "--slowdown: run.warmup_requests counts the requests of all workloads, so a \
                       workload alone has another warm-up; use run.warmup_time";
        return Err(Failure::usage(message.to_owned()));
    }
    if args.slowdown && scenarios.iter().all(|scenario| scenario.tenants.is_empty()) {
        let message = "--slowdown: there is one workload; it compares several in one scenario";
        return Err(Failure::usage(message.to_owned()));
    }
    if scenarios.len() > 1 {
        scenarios.iter().try_for_each(Scenario::check_repeatable)?;
    }
    if let Some(text) = differing_work(&scenarios) {
        note(&text);
    }
    let names = names(paths);
    let _folder = args.out.as_ref().map(|out| prepare(out, args.force)).transpose()?;
    let has_results = Arc::new(AtomicBool::new(false));
    let before = "interrupted before anything was simulated";
    let interrupted = interrupts(args.json, Arc::clone(&has_results), before);
    let threads = match kind {
        Kind::Single(_) => 1,
        Kind::Compare(jobs) => jobs.min(scenarios.len()),
    };
    let runner = Runner {
        registry,
        args,
        save_state: matches!(kind, Kind::Single(Some(_))),
        threads,
        memory: Memory::available(),
        bars: Bars::new(args.progress),
        interrupted: &interrupted,
        has_results: &has_results,
        failed: AtomicBool::new(false),
    };
    let folder =
        |name| args.out.as_ref().map(|out| if compare { out.join(name) } else { out.clone() });
    let items = scenarios.iter().zip(names.iter().map(folder)).collect();
    let done =
        parallel_map(items, threads, |(scenario, folder)| runner.run(scenario, folder), |_, _| ());
    let mut runs: Vec<RunOutput> = Vec::new();
    // Results are printed even when they cannot be saved.
    let mut saved = Ok(());
    for done in done {
        if let Some(done) = done? {
            saved = saved.and(done.saved);
            runs.push(done.output);
        }
    }
    let saved = saved.and_then(|()| match &args.out {
        Some(out) => save_report(out, &runs),
        None => Ok(()),
    });
    let shown = show(args, &runs, compare);
    let judged = verdict(&runs).and_then(|()| all_ran(&runs, scenarios.len()));
    // The state is kept also where results cannot be shown or saved.
    let kept = match (kind, runs.first()) {
        (Kind::Single(Some(path)), Some(RunOutput { state: Some(state), .. }))
            if judged.is_ok() =>
        {
            state::write(path, state).map_err(|error| unwritable(path, error).after_results())
        }
        _ => Ok(()),
    };
    saved.map_err(Failure::after_results)?;
    if let Some(out) = &args.out {
        note(&format!("report: {}", out.join("report.html").display()));
    }
    judged?;
    kept?;
    shown?;
    if args.verify {
        let requests: u64 = runs.iter().map(|done| done.results.requests).sum();
        let failed: u64 = runs.iter().map(|done| done.failed_requests).sum();
        note(&match failed {
            0 => format!("verified: {requests} requests, every read returned the last write"),
            _ => format!(
                "verified: every read that did not fail returned the last write; {failed} requests \
                 failed"
            ),
        });
    }
    Ok(())
}

fn read_all(
    registry: &Registry,
    paths: &[PathBuf],
    args: &SimulateArgs,
) -> Result<Vec<Scenario>, Failure> {
    let mut scenarios = Vec::with_capacity(paths.len());
    for path in paths {
        let scenario = Scenario::check(args.input(path)?, registry)?;
        scenario.notes.iter().for_each(|text| note(&format!("note: {}: {text}", path.display())));
        scenarios.push(scenario);
    }
    Ok(scenarios)
}

/// The warning when the workloads of the scenarios differ.
fn differing_work(scenarios: &[Scenario]) -> Option<String> {
    let (first, rest) = scenarios.split_first()?;
    let keys = |scenario: &Scenario| {
        let tenants = scenario.tenants.iter().map(|tenant| &tenant.settings);
        let settings = [&scenario.workload].into_iter().chain(tenants);
        let pairs =
            settings.flat_map(|settings| settings.iter()).filter(|(key, _)| *key != "trace");
        pairs.map(|(key, value)| (key, value.clone())).collect::<Vec<_>>()
    };
    let same = |other: &Scenario| {
        workload::name(first) == workload::name(other) && keys(first) == keys(other)
    };
    (!rest.iter().all(same)).then(|| {
        let names: Vec<String> = scenarios.iter().map(workload::name).collect();
        let names = names.join(", ");
        format!("note: the workloads differ ({names}); use --trace FILE for the same one in all")
    })
}

/// A folder name per scenario: the file's stem, numbered where two are alike.
pub(super) fn names(paths: &[PathBuf]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(paths.len());
    for path in paths {
        let stem = path.file_stem().map_or("run".into(), |stem| stem.to_string_lossy());
        let stem = if stem == STANDARD_INPUT { "run".into() } else { stem };
        let mut name = stem.to_string();
        for number in 2.. {
            if !names.contains(&name) {
                break;
            }
            name = format!("{stem}-{number}");
        }
        names.push(name);
    }
    names
}

/// A folder for results, which no other program writes into meanwhile. If it is new and nothing is
/// written, it is removed.
pub(super) struct OutFolder {
    /// The folder and those above it that did not exist, the innermost first.
    made: Vec<PathBuf>,
    /// Locked for as long as it is open.
    lock: Option<File>,
}

impl Drop for OutFolder {
    fn drop(&mut self) {
        self.lock = None;
        // Fails where something is in it.
        let _ = self.made.iter().try_for_each(fs::remove_dir);
    }
}

/// Locks `out`; `None` where folders cannot be locked.
fn lock(out: &Path) -> Result<Option<File>, Failure> {
    let Ok(folder) = File::open(out) else { return Ok(None) };
    match folder.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let message = format!("another hybridsim writes into {}", out.display());
            Err(Failure::usage(format!("{message}; wait for it, or choose another folder")))
        }
        Err(TryLockError::Error(_)) => Ok(None),
        Ok(()) => Ok(Some(folder)),
    }
}

/// Checks before the run that results can be written.
pub(super) fn prepare(out: &Path, force: bool) -> Result<OutFolder, Failure> {
    let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let made = out.ancestors().take_while(missing).map(Path::to_owned).collect();
    fs::create_dir_all(out)
        .map_err(|error| Failure::usage(format!("cannot create {}: {error}", out.display())))?;
    let mut folder = OutFolder { made, lock: None };
    folder.lock = lock(out)?;
    // Ignore the temporary files of interrupted runs.
    let partial = |name: &str| name.starts_with('.') && name.ends_with(".partial");
    let counts = |entry: &fs::DirEntry| !partial(&entry.file_name().to_string_lossy());
    let taken = fs::read_dir(out).is_ok_and(|entries| entries.flatten().any(|e| counts(&e)));
    if taken && !force {
        let message = format!("{} is not empty; add --force to write there", out.display());
        return Err(Failure::usage(message));
    }
    Ok(folder)
}

pub(super) fn interrupt_flag() -> Arc<AtomicBool> {
    interrupts(false, Arc::new(AtomicBool::new(true)), "")
}

/// Lets Ctrl-C end the program at once with `message`, for work of which no part would be kept.
/// The flag that is returned is set when the work is done.
pub(super) fn end_at_interrupt(wants_json: bool, message: &'static str) -> Arc<AtomicBool> {
    let has_results = Arc::new(AtomicBool::new(false));
    interrupts(wants_json, Arc::clone(&has_results), message);
    has_results
}

/// A flag that Ctrl-C sets. A second Ctrl-C ends the program at once, and so does the first until
/// `has_results` is set: building large devices takes long. `message` then says what is missing.
fn interrupts(
    wants_json: bool,
    has_results: Arc<AtomicBool>,
    message: &'static str,
) -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let setter = Arc::clone(&flag);
    on_interrupt(move || {
        let nothing_yet = !has_results.load(Ordering::Relaxed);
        if setter.swap(true, Ordering::Relaxed) || nothing_yet {
            if nothing_yet {
                report(&Failure::Message(Exit::Interrupted, message.to_owned()), wants_json);
            }
            std::process::exit(i32::from(Exit::Interrupted as u8));
        }
        // Restoring or saving the state of a large device, for example, is not broken off.
        std::thread::spawn(|| {
            std::thread::sleep(PATIENCE);
            note("interrupted: ends after the step under way; a second Ctrl-C ends at once");
        });
    });
    flag
}

/// A run, and whether its results could be saved.
struct Finished {
    output: RunOutput,
    saved: Result<(), Failure>,
}

/// Runs scenarios, several of them at a time where memory suffices.
struct Runner<'a> {
    registry: &'a Registry,
    args: &'a SimulateArgs,
    save_state: bool,
    threads: usize,
    memory: Memory,
    bars: Bars,
    interrupted: &'a AtomicBool,
    has_results: &'a AtomicBool,
    /// One of them could not run, so that nothing will be shown.
    failed: AtomicBool,
}

impl Runner<'_> {
    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// One run, whose results are saved into `folder`; `None` if the command was interrupted before
    /// it began, or another scenario cannot run.
    fn run(
        &self,
        scenario: &Scenario,
        folder: Option<PathBuf>,
    ) -> Result<Option<Finished>, Failure> {
        let needed = memory::needed(scenario, self.registry);
        // One that needs more than there is runs alone.
        let _share = self.memory.take(needed.min(self.memory.limit())).map_err(Failure::usage)?;
        if self.interrupted() || self.failed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let done = self.simulate_into(scenario, folder);
        if done.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        done.map(Some)
    }

    fn simulate_into(
        &self,
        scenario: &Scenario,
        folder: Option<PathBuf>,
    ) -> Result<Finished, Failure> {
        if self.threads == 1 {
            run::forget_peak_memory();
        }
        let begin = |folder: &PathBuf| Exports::begin(self.args, folder);
        let mut exports = folder.as_ref().map(begin).transpose()?;
        let output = self.simulate(scenario, exports.as_mut())?;
        let saved = match (folder, exports) {
            (Some(folder), Some(exports)) => {
                // It may print warnings.
                let save = || save(&folder, &output).and_then(|()| exports.save(&folder, &output));
                self.bars.suspend(save)
            }
            _ => Ok(()),
        };
        Ok(Finished { output, saved })
    }

    fn simulate(
        &self,
        scenario: &Scenario,
        exports: Option<&mut Exports>,
    ) -> Result<RunOutput, Failure> {
        let progress = self.bars.add(&scenario.title);
        let mut on_progress = |now: &run::RunProgress| {
            progress.update(now);
            if !now.preparing {
                self.has_results.store(true, Ordering::Relaxed);
            }
            !self.interrupted()
        };
        let full = self.args.out.is_some();
        let cache = PreconditionCache::standard().filter(|_| !self.args.no_cache);
        let sink = exports.filter(|exports| exports.listens());
        let sink = sink.map(|exports| exports as &mut (dyn EventSink + Send));
        let again = cache.clone();
        let options = Options {
            detail: if full { Detail::Full } else { Detail::Bare },
            on_progress: Some(&mut on_progress),
            sink,
            // For a summary alone, passing events on takes as long as it saves.
            observer_thread: full && processors() >= 2 * self.threads,
            save_state: self.save_state,
            cache,
        };
        let mut done = run::run(scenario, self.registry, options);
        let slowdown = self.args.slowdown;
        if let Ok(done) = &mut done
            && slowdown
            && done.fault.is_none()
        {
            let results = &mut done.results;
            run::add_slowdowns(scenario, self.registry, results, again.as_ref(), &mut on_progress);
        }
        progress.finish();
        let mut done = done?;
        if slowdown && done.fault.is_none() && self.interrupted() {
            done.fault = Some(Fault::Interrupted);
        }
        Ok(done)
    }
}

/// Fails if fewer than `count` scenarios ran.
fn all_ran(runs: &[RunOutput], count: usize) -> Result<(), Failure> {
    let ran = runs.len();
    match ran == count {
        true => Ok(()),
        false => Err(Failure::AfterResults(
            Exit::Interrupted,
            format!("interrupted: {ran} of {count} scenarios ran"),
        )),
    }
}

pub(super) fn save(folder: &Path, done: &RunOutput) -> Result<(), Failure> {
    fs::create_dir_all(folder)?;
    write_file(folder, "scenario.toml", &done.resolved)?;
    write_file(folder, "results.json", &pretty(&done.results))
}

pub(super) fn save_report(out: &Path, runs: &[RunOutput]) -> Result<(), Failure> {
    let results: Vec<&RunResults> = runs.iter().map(|done| &done.results).collect();
    let shown: Vec<Run> = runs.iter().map(RunOutput::shown).collect();
    write_file(out, "report.html", &hybridsim_report::html::page(&title(&results), &shown))
}

fn show(args: &SimulateArgs, runs: &[RunOutput], compare: bool) -> Result<(), Failure> {
    let results: Vec<&RunResults> = runs.iter().map(|done| &done.results).collect();
    if args.json {
        print(&match (compare, results.as_slice()) {
            (false, [only]) => pretty(only),
            _ => pretty(&results),
        })?;
    } else {
        let style = Style { ansi: wants_ansi() };
        print(&match results.as_slice() {
            [only] => hybridsim_report::terminal::single(only, style),
            _ => hybridsim_report::terminal::table(&results, style),
        })?;
        if !args.columns.is_empty() {
            let columns = hybridsim_report::terminal::columns(&results, &args.columns, style);
            let wrong =
                |message| Failure::AfterResults(Exit::Usage, format!("--column: {message}"));
            print(&format!("\n{}", columns.map_err(wrong)?))?;
        }
    }
    Ok(())
}

fn title(runs: &[&RunResults]) -> String {
    let titles = |runs: &[&RunResults]| {
        runs.iter().map(|run| run.label.title.clone()).collect::<Vec<_>>().join(", ")
    };
    match runs {
        [first, second, rest @ ..] if rest.len() > 2 => {
            format!("{} and {} more", titles(&[first, second]), rest.len())
        }
        all => titles(all),
    }
}

/// Whether standard output is a terminal that takes colours (<https://no-color.org>).
pub(super) fn wants_ansi() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::io::stdout().is_terminal()
}

pub(super) fn verdict(runs: &[RunOutput]) -> Result<(), Failure> {
    for done in runs {
        if let Some(fault) = &done.fault {
            let message = format!("{}: {fault}", done.results.label.title);
            return Err(Failure::AfterResults(Exit::of(fault), message));
        }
        if !done.results.violations.is_empty() {
            let list = done.results.violations.join("\n  ");
            let message = format!("{}: a check failed\n  {list}", done.results.label.title);
            return Err(Failure::AfterResults(Exit::Run, message));
        }
    }
    Ok(())
}

/// Random systems, until one fails or `runs` are done; prints which keys they covered.
pub fn fuzz(registry: &Registry, first_seed: u64, runs: u64) -> Result<(), Failure> {
    let mut coverage = Coverage::new(registry);
    for seed in first_seed..first_seed.saturating_add(runs) {
        let verdict = hybridsim_fuzz::one(registry, seed, &mut coverage);
        if let Verdict::Failed { scenario, reason } = verdict {
            let name = format!("fuzz-{seed}.toml");
            write_file(Path::new(""), &name, &scenario)?;
            let message = format!(
                "seed {seed}: {reason}\nthe part of it that fails is in {name}; run the whole \
                 again with `hybridsim fuzz --seed {seed} --runs 1`"
            );
            return Err(Failure::Message(Exit::Run, message));
        }
    }
    print(&coverage.to_string())
}
