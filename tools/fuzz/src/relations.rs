//! Metamorphic relations: what must not change the results of a run.

use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{
    CommonEvent, EventRecord, Fault, Request, SECTOR_BYTES, SimDuration, SimTime,
};
use hybridsim_observe::Detail;
use hybridsim_observe::results::PartTimes;
use hybridsim_simulation::run::{self, Options, RunOutput};
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::session::{self, Answered, Session};
use hybridsim_workload::native::Header;
use hybridsim_workload::record::Record;
use hybridsim_workload::trace::{self, OpenOptions};
use hybridsim_workload::write::{self, RecordWriter};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// A random system that ran, with every check on.
pub(crate) struct Ran<'a> {
    pub registry: &'a Registry,
    pub scenario: &'a Scenario,
    pub text: &'a str,
    pub output: &'a RunOutput,
}

/// A relation between the runs of two systems.
pub struct Relation {
    /// The change to the run that must not matter.
    pub name: &'static str,
    /// Whether it applies to the system, and the difference that it makes.
    pub(crate) check: fn(&Ran<'_>) -> Applied,
}

/// The outcome of a relation: `Err` where it does not apply to a system, and otherwise the
/// difference, if there is one.
pub(crate) type Applied = Result<Option<String>, NotApplicable>;

/// A relation that does not apply to a system.
#[derive(Debug, PartialEq)]
pub(crate) struct NotApplicable;

/// The changes to a run that must not matter.
pub const RELATIONS: &[Relation] = &[
    Relation { name: "observing it differently", check: observed },
    Relation { name: "components in reverse order", check: reversed },
    Relation { name: "spelling out every value", check: spelt_out },
    Relation { name: "naming its workload", check: named },
    Relation { name: "stepping it from outside", check: stepped },
    Relation { name: "converting its trace", check: converted },
    Relation { name: "a stripe of it alone, not a concatenation", check: alone },
    Relation { name: "saving its state halfway", check: resumed },
    #[cfg(unix)]
    Relation { name: "serving it to a client", check: crate::served::served },
];

/// The difference that one of `relations` makes: the one chosen by `number`, or the first after it
/// that applies.
pub(crate) fn broken(ran: &Ran<'_>, relations: &[Relation], number: u64) -> Option<String> {
    let first = number as usize % relations.len();
    let in_turn = relations.iter().cycle().skip(first).take(relations.len());
    in_turn.map(|it| it.apply(ran)).find_map(Applied::ok)?
}

impl Relation {
    /// Checks the relation, and names it before the difference.
    pub(crate) fn apply(&self, ran: &Ran<'_>) -> Applied {
        Ok((self.check)(ran)?.map(|difference| format!("{}: {difference}", self.name)))
    }
}

impl Ran<'_> {
    fn compare(&self, other: Result<RunOutput, String>) -> Applied {
        let ours = &self.output.results.fingerprint;
        match other {
            Err(problem) => Ok(Some(problem)),
            Ok(other) if other.results.fingerprint == *ours => Ok(None),
            Ok(other) => Ok(Some(format!("fingerprint {}, not {ours}", other.results.fingerprint))),
        }
    }

    pub(crate) fn run(
        &self,
        scenario: &Scenario,
        options: Options<'_>,
    ) -> Result<RunOutput, String> {
        run::run(scenario, self.registry, options).map_err(|error| error.to_string())
    }

    pub(crate) fn scenario_of(&self, text: String) -> Result<Scenario, String> {
        let source = SourceText { name: "related".to_owned(), text };
        let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
        Scenario::check(input, self.registry).map_err(|it| it.to_string())
    }

    fn run_text(&self, text: String) -> Result<RunOutput, String> {
        self.run(&self.scenario_of(text)?, Options::default())
    }

    /// The requests of a workload that a session can repeat, with their times.
    pub(crate) fn requests(&self) -> Result<Vec<(SimTime, Request)>, NotApplicable> {
        // Generators of zones wait for completions and set flags, which events do not state.
        // Tenants wait for their turns.
        let repeats = self.scenario.tenants.is_empty()
            && self.text.contains("mode = \"open\"")
            && self.scenario.run.power_cut_every.is_none()
            && self.text.contains("kind = \"fio\"")
            && self.output.fault.is_none();
        if !repeats {
            return Err(NotApplicable);
        }
        let mut events: Vec<EventRecord> = Vec::new();
        let options = Options { sink: Some(&mut events), ..Options::default() };
        self.run(self.scenario, options).map_err(|_| NotApplicable)?;
        let request = |record: &EventRecord| match record.event() {
            Some(CommonEvent::Arrived { op, sectors, lba }) => {
                Some((record.time, Request::new(op, lba, sectors)))
            }
            _ => None,
        };
        Ok(events.iter().filter_map(request).collect())
    }
}

/// Neither verification nor the level of detail changes the system.
fn observed(ran: &Ran<'_>) -> Applied {
    let mut scenario = ran.scenario.clone();
    scenario.run.verify = false;
    let options = Options { detail: Detail::Full, ..Options::default() };
    ran.compare(ran.run(&scenario, options))
}

fn reversed(ran: &Ran<'_>) -> Applied {
    let mut scenario: Table = ran.text.parse().map_err(|_| NotApplicable)?;
    let components = scenario.get_mut("component").and_then(Value::as_table_mut);
    let components = components.ok_or(NotApplicable)?;
    if components.len() < 2 {
        return Err(NotApplicable);
    }
    *components = std::mem::take(components).into_iter().rev().collect();
    ran.compare(ran.run_text(scenario.to_string()))
}

fn spelt_out(ran: &Ran<'_>) -> Applied {
    ran.compare(ran.run_text(ran.output.resolved.clone()))
}

/// A single tenant is never delayed by another. Generators of zones are left out: on a device
/// without latency, simultaneous events have another order then.
fn named(ran: &Ran<'_>) -> Applied {
    let is_fcfs = ran.scenario.host.entry("scheduler").name == "fcfs";
    let has_one = ran.scenario.tenants.is_empty() && ran.scenario.run.power_cut_every.is_none();
    if !(is_fcfs && has_one && ran.text.contains("kind = \"fio\"")) {
        return Err(NotApplicable);
    }
    ran.compare(ran.run_text(ran.text.replace("\n[workload]\n", "\n[workload.only]\n")))
}

fn stepped(ran: &Ran<'_>) -> Applied {
    let requests = ran.requests()?;
    let opened = Session::open(ran.scenario, ran.registry, session::Options::default());
    let mut session = match opened {
        Ok(session) => session,
        Err(error) => return Ok(Some(error.to_string())),
    };
    let answers = serve(&mut session, &requests, SimTime::ZERO);
    let output = answers.map_err(|ended| ended.to_string()).and_then(|_| {
        session.finish(ran.registry, None, Vec::new()).map_err(|error| error.to_string())
    });
    ran.compare(output)
}

/// Replayed from CSV, and from the native format converted from that.
fn converted(ran: &Ran<'_>) -> Applied {
    let requests = ran.requests()?;
    let folder = tempfile::tempdir().map_err(|_| NotApplicable)?;
    let [csv, native] = ["csv", "hst"].map(|name| folder.path().join("trace").with_extension(name));
    let written = write_csv(&csv, &requests).and_then(|()| convert_to_native(&csv, &native));
    if let Err(problem) = written {
        return Ok(Some(problem));
    }
    let replayed = |trace: &Path| {
        let mut scenario: Table = ran.text.parse().map_err(|_| NotApplicable)?;
        let path = trace.to_str().ok_or(NotApplicable)?;
        let workload = Table::from_iter([("trace".to_owned(), Value::from(path))]);
        scenario.insert("workload".to_owned(), workload.into());
        Ok(ran.run_text(scenario.to_string()).map(|output| output.results.fingerprint))
    };
    let (one, other) = (replayed(&csv)?, replayed(&native)?);
    Ok((one != other || one.is_err()).then(|| format!("{other:?}, not {one:?}")))
}

fn write_csv(path: &Path, requests: &[(SimTime, Request)]) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let mut writer = writer(path)?;
    for &(at, request) in requests {
        writer.write(&Record { at, request, response: None }).map_err(text)?;
    }
    writer.finish().map_err(text)
}

fn convert_to_native(csv: &Path, native: &Path) -> Result<(), String> {
    let reader = trace::open(csv, &OpenOptions::default());
    let mut reader = reader.map_err(|error| error.to_string())?;
    let converted = write::convert(&mut reader, writer(native)?, &mut |_| {});
    match converted.map_err(|error| error.to_string())?.left_out {
        0 => Ok(()),
        left_out => Err(format!("{left_out} records were left out")),
    }
}

/// A writer of the format that the extension of `path` names.
fn writer(path: &Path) -> Result<Box<dyn RecordWriter>, String> {
    let extension = path.extension().and_then(|it| it.to_str());
    let entry = write::ENTRIES.iter().find(|it| Some(it.extension) == extension);
    let file = File::create(path).map_err(|error| error.to_string())?;
    let entry = entry.ok_or("no such format")?;
    (entry.create)(Box::new(file), &Header::default()).map_err(|error| error.to_string())
}

/// The system as the only member of a stripe and of a concatenation.
fn alone(ran: &Ran<'_>) -> Applied {
    let requests = ran.requests()?;
    let system = &ran.scenario.components.last().ok_or(NotApplicable)?.name;
    let capacity = open(ran, ran.scenario, session::Options::default())?.capacity();
    let answers = |kind: &str| {
        let mut scenario: Table = ran.text.parse().map_err(|_| NotApplicable)?;
        let chunk = format!("chunk = \"{}B\"\n", capacity * SECTOR_BYTES);
        let chunk = if kind == "stripe" { &*chunk } else { "" };
        let array: Table = format!("kind = \"{kind}\"\nmembers = [\"{system}\"]\n{chunk}")
            .parse()
            .map_err(|_| NotApplicable)?;
        let components = scenario.get_mut("component").and_then(Value::as_table_mut);
        components.ok_or(NotApplicable)?.insert("whole".to_owned(), array.into());
        scenario.insert("system".to_owned(), "whole".into());
        let scenario = ran.scenario_of(scenario.to_string()).map_err(|_| NotApplicable)?;
        let mut session = open(ran, &scenario, session::Options::default())?;
        Ok(serve(&mut session, &requests, SimTime::ZERO))
    };
    let (one, other) = (answers("concat")?, answers("stripe")?);
    Ok(difference(one, other))
}

/// Between the halves of a run: no request arrives at the instant of the last completion, nor at
/// that of a timer set then, which comes first only after a restart. Times of components are mostly
/// round, so this one is not.
pub(crate) const PAUSE: SimDuration = SimDuration::from_ns(1_000_003);

/// With a pause in the middle, the second half is served after a restart from a saved state as
/// without one. Not applicable with scheduled faults, which would occur again after the restart.
fn resumed(ran: &Ran<'_>) -> Applied {
    if !ran.scenario.run.faults.is_empty() {
        return Err(NotApplicable);
    }
    let requests = ran.requests()?;
    let mut scenario = ran.scenario.clone();
    scenario.run.verify = false;
    let (first, second) = requests.split_at(requests.len() / 2);
    let Some(&(pause, _)) = second.first() else { return Err(NotApplicable) };
    let second: Vec<_> =
        second.iter().map(|(at, it)| (SimTime::ZERO + at.since(pause), *it)).collect();

    let saving = session::Options { save_state: true, ..session::Options::default() };
    let mut before = open(ran, &scenario, saving)?;
    serve(&mut before, first, SimTime::ZERO).map_err(|_| NotApplicable)?;
    // A component that cannot be saved says so.
    let before = finished(ran, before)?;
    let state = before.state.clone().ok_or(NotApplicable)?;

    let mut whole = open(ran, &scenario, session::Options::default())?;
    serve(&mut whole, first, SimTime::ZERO).map_err(|_| NotApplicable)?;
    // The state is that after the work in the background that was under way.
    let base = SimTime::from_ns(before.results.simulated_ns) + PAUSE;
    let uninterrupted = serve(&mut whole, &second, base);

    let from_state = session::Options { state: Some(state), ..session::Options::default() };
    let mut restored = match Session::open(&scenario, ran.registry, from_state) {
        Ok(session) => session,
        Err(error) => return Ok(Some(error.to_string())),
    };
    let resumed = serve(&mut restored, &second, SimTime::ZERO + PAUSE);
    let is_served = resumed.is_ok();
    let difference = difference(uninterrupted, resumed);
    if difference.is_some() || !is_served {
        return Ok(difference);
    }
    let restored = finished(ran, restored)?;
    let violation = restored.results.violations.first().cloned();
    Ok(violation.or(other_phases(&finished(ran, whole)?, &before, &restored)))
}

/// The first phase whose time in the run `whole` is not that in its two halves. Phases differ even
/// where completions do not, as a disk makes up for a longer seek by a shorter rotational delay.
fn other_phases(whole: &RunOutput, before: &RunOutput, restored: &RunOutput) -> Option<String> {
    let [whole, before, restored] = [whole, before, restored].map(phases);
    // Sums of whole ns, from means.
    let differs = |(phase, sum): &(&String, &f64)| {
        (*sum - before[*phase] - restored[*phase]).abs() > (*sum * 1e-12).max(0.5)
    };
    let (phase, sum) = whole.iter().find(differs)?;
    Some(format!("{sum} ns of `{phase}`, not {} and {}", before[phase], restored[phase]))
}

/// The time of all requests in each phase, in ns.
fn phases(output: &RunOutput) -> PartTimes {
    let results = &output.results;
    let sum = |(phase, mean): (&String, &f64)| (phase.clone(), mean * results.requests as f64);
    results.breakdown_ns.all.iter().map(sum).collect()
}

pub(crate) fn finished(ran: &Ran<'_>, session: Session) -> Result<RunOutput, NotApplicable> {
    session.finish(ran.registry, None, Vec::new()).map_err(|_| NotApplicable)
}

/// The first difference of the answers `other` from `one`.
fn difference(one: Answers, other: Answers) -> Option<String> {
    match (one, other) {
        (Ok(one), Ok(other)) if one.len() != other.len() => {
            Some(format!("{} completions, not {}", other.len(), one.len()))
        }
        (Ok(one), Ok(other)) => {
            let at = one.iter().zip(&other).position(|(one, other)| one != other)?;
            let ((after, was), (other_after, is)) = (one[at], other[at]);
            Some(format!("completion {at} {is:?} after {other_after}, not {was:?} after {after}"))
        }
        // A device may be full, in the same words.
        (Err(one), Err(other)) if one == other => None,
        (one, other) => Some(format!("{:?}, not {:?}", other.err(), one.err())),
    }
}

/// The end of each request and its outcome, or what ended the run.
pub(crate) type Answers = Result<Vec<(SimDuration, Answered)>, Ended>;

/// The cause of the early end of a run.
#[derive(Debug, PartialEq)]
pub(crate) enum Ended {
    /// A request was not accepted, or not for its time.
    Refused(String),
    Fault(Fault),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => f.write_str(why),
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

pub(crate) fn open(
    ran: &Ran<'_>,
    scenario: &Scenario,
    options: session::Options<'_>,
) -> Result<Session, NotApplicable> {
    Session::open(scenario, ran.registry, options).map_err(|_| NotApplicable)
}

/// Serves `requests`, whose times count from `base`; returns when they ended, from there, and how.
pub(crate) fn serve(
    session: &mut Session,
    requests: &[(SimTime, Request)],
    base: SimTime,
) -> Answers {
    let since = base.since(SimTime::ZERO);
    let mut answers = Vec::new();
    for (at, request) in requests {
        let at = *at + since;
        let submitted = session.submit(*request, at);
        let arrival = submitted.map_err(|it| Ended::Refused(it.to_string()))?.at;
        if arrival != at {
            return Err(Ended::Refused(format!("a request for {at} arrived at {arrival}")));
        }
        session.advance_to(at).map_err(Ended::Fault)?;
        while let Some(answer) = session.answer() {
            answers.push((answer.at.since(base), answer.outcome));
        }
    }
    while let Some(answer) = session.next_completion().map_err(Ended::Fault)? {
        answers.push((answer.at.since(base), answer.outcome));
    }
    Ok(answers)
}
