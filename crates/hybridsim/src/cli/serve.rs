//! The command that serves a simulated system over the network.

use super::at_least_one;
use super::output::{Exit, Failure, note, print_beside, unwritable};
use super::progress::{Progress, When};
use super::run;
use clap::{Args, ValueEnum};
use hybridsim_config::registry::Registry;
use hybridsim_config::units;
use hybridsim_engine::SECTOR_BYTES;
use hybridsim_observe::Detail;
use hybridsim_report::json::pretty;
use hybridsim_report::terminal::Style;
use hybridsim_serve::contents::{Contents, History, Store};
use hybridsim_serve::{
    Address, Clock, Drive, Ended, Exports, Limits, Lock, Served, TraceFile, faults_beside, hold,
    unpack,
};
use hybridsim_simulation::run::{RunOutput, RunProgress};
use hybridsim_simulation::scenario::resolve::Resolved;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::session::{self, Session};
use hybridsim_simulation::state::PreconditionCache;
use std::fmt::{Display, Write};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[derive(Args)]
pub struct ServeArgs {
    /// The scenario file, whose workload is ignored; - reads it from standard input
    scenario: PathBuf,
    /// Listen here: unix:/path, or an address such as 127.0.0.1:10809; may be repeated
    #[arg(long, value_name = "ADDRESS", required_unless_present = "nvme")]
    nbd: Vec<String>,
    /// Listen for NVMe over TCP here: tcp://127.0.0.1:4420; may be repeated. Exports, and zoned
    /// devices, are namespaces
    #[arg(long, value_name = "ADDRESS")]
    nvme: Vec<String>,
    /// The NVMe qualified name: drives that one host uses at a time need different ones
    #[arg(
        long,
        value_name = "NAME",
        requires = "nvme",
        default_value = hybridsim_serve::NQN,
        value_parser = hybridsim_serve::qualified_name
    )]
    nqn: String,
    /// Allow addresses that other hosts reach: there is neither encryption nor a password
    #[arg(long)]
    listen_anywhere: bool,
    /// Offer a part of the device under this name, such as data=4GiB, one after the other; the last
    /// may lack a size. Without, the whole device is the default export
    #[arg(long = "export", value_name = "NAME=SIZE")]
    exports: Vec<String>,
    /// Clock of simulated time: virtual replies at once, paced when the simulated device would
    #[arg(long, value_enum, default_value_t = ClockKind::Virtual)]
    clock: ClockKind,
    /// Virtual: factor applied to the think time of clients, 0 for a repeatable run; paced:
    /// simulated seconds per second
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    time_scale: f64,
    /// Paced: time that a request and its reply take between client and server, by which replies
    /// leave early
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = duration)]
    round_trip: Duration,
    /// End when the last client has left and none has come for a second
    #[arg(long)]
    once: bool,
    /// Keep the contents in this sparse file instead of in memory
    #[arg(long, value_name = "FILE", conflicts_with = "state")]
    contents: Option<PathBuf>,
    /// Start from the state of the device and the contents in this file, if it exists, and write
    /// them back at the end
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Write the requests into this file as a trace that `run --trace` replays, and faults into
    /// FILE.faults.toml, for `run --faults`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Accept requests for power failures and other faults here: unix:/path
    #[arg(long, value_name = "ADDRESS")]
    control: Option<String>,
    /// Connections at a time
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = at_least_one)]
    connections: usize,
    /// Memory for data and replies of all connections; further requests wait
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    buffers: usize,
    /// Set a scenario key, such as component.disk.rpm='"10000rpm"'; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Write results, resolved scenario and report into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace existing results in the folder
    #[arg(long, requires = "out")]
    force: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Precondition devices again instead of restoring cached states
    #[arg(long)]
    no_cache: bool,
    /// Show a progress bar while devices are preconditioned
    #[arg(long, value_enum, default_value_t = When::Auto)]
    progress: When,
}

fn duration(text: &str) -> Result<Duration, String> {
    units::duration(text).map(|time| Duration::from_nanos(time.as_ns()))
}

fn size(text: &str) -> Result<usize, String> {
    let bytes = units::bytes(text)?;
    usize::try_from(bytes).map_err(|_| "more than this computer can address".to_owned())
}

#[derive(Clone, Copy, ValueEnum)]
enum ClockKind {
    Virtual,
    Paced,
}

impl ServeArgs {
    fn clock(&self) -> Result<Clock, Failure> {
        let scale = self.time_scale;
        let is_paced = matches!(self.clock, ClockKind::Paced);
        if !(0.0..=1e6).contains(&scale) || (is_paced && scale < 1e-6) {
            let smallest = if is_paced { "0.000001" } else { "0" };
            let message = format!("--time-scale {scale}: it is from {smallest} to 1000000");
            return Err(Failure::usage(message));
        }
        if !is_paced && !self.round_trip.is_zero() {
            let message = "--round-trip has an effect only with --clock paced".to_owned();
            return Err(Failure::usage(message));
        }
        Ok(match self.clock {
            ClockKind::Paced => Clock::paced(scale, self.round_trip),
            ClockKind::Virtual => Clock::virtual_time(scale),
        })
    }
}

/// Serves until Ctrl-C, or with `--once` until the last client has left.
pub fn serve(registry: &Registry, args: &ServeArgs) -> Result<(), Failure> {
    let scenario = Scenario::check_system(Input::read(&args.scenario, &args.sets)?, registry)?;
    scenario.notes.iter().for_each(|text| note(&format!("note: {text}")));
    if scenario.run.power_cut_every.is_some() {
        let message = "run.power_cut_every: clients would wait for replies that never come; let \
                       the power fail by --control instead";
        return Err(Failure::usage(message));
    }
    let usage = |message: String| Failure::usage(message);
    let parse = |text: &String| Address::parse(text, args.listen_anywhere).map_err(usage);
    let nbd = args.nbd.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let parse_nvme = |text: &String| Address::parse_nvme(text, args.listen_anywhere).map_err(usage);
    let nvme = args.nvme.iter().map(parse_nvme).collect::<Result<Vec<_>, _>>()?;
    let control = args.control.as_ref().map(parse).transpose()?;
    let clock = args.clock()?;
    let _folder = args.out.as_ref().map(|out| run::prepare(out, args.force)).transpose()?;
    // Mistakes are reported before devices are preconditioned.
    Exports::parse(&args.exports, u64::MAX / SECTOR_BYTES).map_err(usage)?;
    let locked = |path: &PathBuf| {
        // A pipe, for example, is written to as it is.
        if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            return Ok(None);
        }
        let failed = |error| Failure::usage(format!("cannot write {}: {error}", path.display()));
        Lock::of(path).map(Some).map_err(failed)
    };
    let _state = args.state.as_ref().map(locked).transpose()?;
    let _trace = args.record.as_ref().map(locked).transpose()?;
    let record = args.record.as_ref().map(|path| {
        let notes = vec![("source".to_owned(), format!("hybridsim serve, {}", scenario.title))];
        let failed = |error| Failure::usage(format!("cannot write {}: {error}", path.display()));
        TraceFile::create(path, notes).map_err(failed)
    });
    let record = record.transpose()?;
    let stop = run::interrupt_flag();
    let from_state = args.state.as_deref().is_some_and(Path::exists);
    let (session, contents) = open(registry, &scenario, args, &stop)?;
    let exports = Exports::parse(&args.exports, session.capacity()).map_err(usage)?;
    let drive = Drive::new(session, contents, clock, record);
    let title = scenario.title.clone();
    let options = hybridsim_serve::Options {
        nbd,
        nvme,
        nqn: args.nqn.clone(),
        exports,
        description: scenario.title.clone(),
        limits: Limits { connections: args.connections, buffer_bytes: args.buffers },
        once: args.once,
        control,
        stop,
        ready: Box::new(move |names| {
            names.iter().for_each(|name| note(&format!("serving {title} at {name}")));
        }),
    };
    let cannot = |error| Failure::usage(format!("cannot listen: {error}"));
    let drive = hybridsim_serve::serve(drive, options).map_err(cannot)?;
    let ended = drive.finish(registry, args.state.is_some())?;
    let Ended { output, served, contents, recorded } = &ended;
    // State and trace are kept also where the results cannot be shown.
    let kept = match (&args.state, &output.state, contents) {
        (Some(path), Some(machine), Ok(Some(contents))) => {
            let system = Resolved::new(&scenario, registry).system();
            written(path, hybridsim_serve::save(path, &system, machine, contents))
        }
        _ => Ok(()),
    };
    show(args, output, served)?;
    kept?;
    if let Some(path) = args.contents.as_ref().or(args.state.as_ref()) {
        written(path, contents.as_ref())?;
    }
    if let Some(path) = &args.record {
        written(path, recorded.as_ref().copied())?;
        // Neither the state at the start nor power failures are in the trace.
        if !from_state && served.power_cuts == 0 {
            note(&replay(args, path, served.faults > 0));
        }
    }
    run::verdict(std::slice::from_ref(output))
}

/// A file that could not be written at the end.
fn written<T>(path: &Path, result: Result<T, impl Display>) -> Result<(), Failure> {
    result.map(drop).map_err(|error| unwritable(path, error).after_results())
}

/// The command that replays the trace at `trace`, with faults if there were any.
fn replay(args: &ServeArgs, trace: &Path, faults: bool) -> String {
    let word = |path: &Path| quoted(&path.display().to_string());
    let beside = faults.then(|| format!(" --faults {}", word(&faults_beside(trace))));
    let beside = beside.unwrap_or_default();
    let (scenario, trace) = (word(&args.scenario), word(trace));
    let sets: String = args.sets.iter().map(|set| format!(" --set {}", quoted(set))).collect();
    format!("replay: hybridsim run {scenario} --trace {trace}{beside}{sets} --set host.mode=open")
}

/// `text` as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Opens the session, and the contents that belong to it.
fn open(
    registry: &Registry,
    scenario: &Scenario,
    args: &ServeArgs,
    stop: &AtomicBool,
) -> Result<(Session, Contents), Failure> {
    let power_may_fail = args.control.is_some();
    let saved = match args.state.as_deref().filter(|path| path.exists()) {
        Some(path) => Some(load(path, &Resolved::new(scenario, registry).system())?),
        None => None,
    };
    let (machine, bytes) = saved.unzip();
    let progress = Progress::new(args.progress, &scenario.title);
    let mut on_progress = |now: &RunProgress| {
        progress.update(now);
        !stop.load(Ordering::Relaxed)
    };
    let options = session::Options {
        detail: if args.out.is_some() { Detail::Full } else { Detail::Bare },
        on_progress: Some(&mut on_progress),
        cache: PreconditionCache::standard().filter(|_| !args.no_cache),
        versions: power_may_fail,
        power_may_fail,
        state: machine,
        save_state: args.state.is_some(),
    };
    let opened = Session::open(scenario, registry, options);
    progress.finish();
    if stop.load(Ordering::Relaxed) {
        let message = "interrupted before anything was served".to_owned();
        return Err(Failure::Message(Exit::Interrupted, message));
    }
    let session = opened?;
    let mut store = match &args.contents {
        Some(path) => {
            let failed = |error| Failure::usage(format!("cannot use {}: {error}", path.display()));
            let mut options = fs::File::options();
            options.read(true).write(true).create(true).truncate(false);
            let file = options.open(path).map_err(failed)?;
            hold(&file).map_err(failed)?;
            Store::file(file, session.capacity() * SECTOR_BYTES).map_err(failed)?
        }
        None => Store::memory(),
    };
    if let (Some(bytes), Some(path)) = (bytes, &args.state) {
        store.restore(&bytes, session.capacity()).ok_or_else(|| {
            Failure::usage(format!("the state {} cannot be used: it is damaged", path.display()))
        })?;
    }
    let contents = match power_may_fail {
        true => Contents::History(Box::new(History::new(store))),
        false => Contents::Plain(store),
    };
    Ok((session, contents))
}

fn load(path: &Path, system: &str) -> Result<(Vec<u8>, Vec<u8>), Failure> {
    let unusable = |error: String| {
        Failure::usage(format!("the state {} cannot be used: {error}", path.display()))
    };
    let bytes = fs::read(path).map_err(|error| unusable(error.to_string()))?;
    unpack(&bytes, system).map_err(unusable)
}

fn show(args: &ServeArgs, output: &RunOutput, served: &Served) -> Result<(), Failure> {
    let save = |out| {
        run::save(out, output).and_then(|()| run::save_report(out, std::slice::from_ref(output)))
    };
    let saved = args.out.as_deref().map_or(Ok(()), save);
    if args.json {
        let mut value = serde_json::to_value(&output.results).map_err(std::io::Error::from)?;
        if let Some(object) = value.as_object_mut() {
            let served = serde_json::to_value(served).map_err(std::io::Error::from)?;
            object.insert("served".to_owned(), served);
        }
        return print_beside(saved, &pretty(&value));
    }
    let style = Style { ansi: run::wants_ansi() };
    let mut text = hybridsim_report::terminal::single(&output.results, style);
    let clock = served.clock;
    write!(text, "\n{} connections, {clock} clock", served.connections).expect("memory");
    if let Some(late) = &served.lateness_ns {
        let us = |ns: f64| ns / 1e3;
        write!(
            text,
            "; replies left {:.0} us late on average, {:.0} us at the 99th percentile",
            us(late.mean),
            us(late.p99 as f64)
        )
        .expect("memory");
    }
    if served.power_cuts > 0 {
        let (cuts, lost) = (served.power_cuts, served.lost_sectors);
        write!(text, "; {cuts} power failures, {lost} sectors read had lost acknowledged writes")
            .expect("memory");
    }
    if served.faults > 0 {
        write!(text, "; {} faults on request", served.faults).expect("memory");
    }
    let refused = served.refused_connections + served.dropped_connections;
    if refused > 0 {
        write!(text, "; {refused} connections refused or dropped").expect("memory");
    }
    text.push('\n');
    print_beside(saved, &text)
}
