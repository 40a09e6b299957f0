//! A session, stepped from outside, gives the results of a run that reads the same requests.

mod common;

use common::{DISK, SSD, component, system_around};
use hybridsim_config::build::{ComponentEntry, SchedulerEntry};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_engine::{Lba, Op, Request, SimDuration, SimTime, Stream};
use hybridsim_observe::RunResults;
use hybridsim_simulation::faults::FaultOrder;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::session::{Answered, Options, Rejected, Session};
use hybridsim_workload::native::{Header, NativeWriter};
use hybridsim_workload::record::Record;
use std::fmt::Write;
use std::path::Path;

/// Requests whose times are multiples of 50 us: many coincide with each other and with timers.
fn requests(count: u64, seed: u64) -> Vec<(SimTime, Request)> {
    let mut stream = Stream::new(seed, "session");
    let mut at = 0;
    let mut list = Vec::new();
    for number in 0..count {
        let op = if stream.chance(0.4) { Op::Read } else { Op::Write };
        let request =
            Request::new(op, Lba(stream.below(900) * 8), 8 * (1 + stream.below(4)) as u32);
        list.push((SimTime::from_ns(at), request));
        let pause = if number % 50 == 49 { 30_000_000 } else { 50_000 * stream.below(12) };
        at += pause;
    }
    list
}

fn trace(requests: &[(SimTime, Request)]) -> String {
    let mut text = String::new();
    for (at, request) in requests {
        let (ns, read) = (at.as_ns(), u64::from(request.op == Op::Read));
        let Request { lba, sectors, .. } = request;
        writeln!(text, "{}.{:06} 0 {lba} {sectors} {read}", ns / 1_000_000, ns % 1_000_000)
            .expect("memory can be written");
    }
    text
}

fn scenario(folder: &Path, text: String, system_only: bool) -> Scenario {
    let source = SourceText { name: "test".to_owned(), text };
    let input = Input { source, base: folder.to_owned(), sets: Vec::new(), trace: None };
    let checked = match system_only {
        true => Scenario::check_system(input, &standard()),
        false => Scenario::check(input, &standard()),
    };
    checked.unwrap_or_else(|problems| panic!("{problems}"))
}

/// A session of `system` that keeps versions, and whose power may fail.
fn may_fail(system: String) -> Session {
    let options = Options { versions: true, power_may_fail: true, ..Options::default() };
    let system = scenario(Path::new(""), system, true);
    Session::open(&system, &standard(), options).expect("it opens")
}

/// The results of a run without cost and label.
fn essence(results: &RunResults) -> serde_json::Value {
    let mut value = serde_json::to_value(results).expect("results are JSON");
    let object = value.as_object_mut().expect("an object");
    for key in ["trace", "scenario", "warnings", "wall_s", "requests_per_wall_s", "peak_rss_bytes"]
    {
        object.remove(key);
    }
    value
}

/// Steps a session with `requests` in a pattern that `seed` chooses: requests are submitted one by
/// one or in groups, and the time between them is advanced in one go, in parts, or not at all.
fn stepped(system: &str, requests: &[(SimTime, Request)], seed: u64) -> RunResults {
    let registry = standard();
    let scenario = scenario(Path::new(""), system.to_owned(), true);
    let mut session = Session::open(&scenario, &registry, Options::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let mut stream = Stream::new(seed, "steps");
    let mut ended = 0;
    for (number, (at, request)) in requests.iter().enumerate() {
        match stream.below(4) {
            0 => session.advance_to(*at).expect("it runs"),
            1 => {
                let now = session.now().as_ns();
                let part = now + at.since(SimTime::from_ns(now)).as_ns() / 2;
                session.advance_to(SimTime::from_ns(part)).expect("it runs");
            }
            2 => {
                while session.next_event().is_some_and(|time| time < *at) {
                    let next = session.next_event().expect("there is one");
                    session.advance_to(next).expect("it runs");
                    if session.next_event() == Some(next) {
                        // What follows an arrival at this instant is not simulated yet.
                        break;
                    }
                }
            }
            _ => {}
        }
        while session.answer().is_some() {
            ended += 1;
        }
        let submitted = session.submit(*request, *at).expect("it fits");
        assert_eq!((submitted.number, submitted.at), (number as u64, *at));
    }
    while let Some(answer) = session.next_completion().expect("it runs") {
        // A zoned SSD refuses writes that are not at a write pointer.
        let is_refused = answer.outcome == Answered::Failed && system.contains("zns-ssd");
        assert!(answer.outcome == Answered::Done || is_refused, "{system}");
        ended += 1;
    }
    assert_eq!((ended, session.outstanding()), (requests.len(), 0));
    // Time that passes after the last completion changes nothing.
    session.advance_to(session.now() + SimDuration::from_s(5)).expect("it runs");
    let done = session.finish(&registry, None, Vec::new()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(done.fault, None);
    done.results
}

fn equals_a_run(top: &str, system: &str, host: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let requests = requests(400, 7);
    std::fs::write(folder.path().join("t.txt"), trace(&requests)).expect("one's own folder");
    let text = format!("{top}[workload]\ntrace = \"t.txt\"\nformat = \"disksim\"\n{host}{system}");
    let scenario = scenario(folder.path(), text, false);
    let whole = run::run(&scenario, &standard(), run::Options::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(whole.fault, None, "{system}");
    for seed in 1..4 {
        let steps = stepped(&format!("{top}{host}{system}"), &requests, seed);
        assert_eq!(essence(&steps), essence(&whole.results), "{system} {seed}");
    }
}

#[test]
fn every_component_gives_the_results_of_a_run() {
    for entry in standard().iter::<ComponentEntry>() {
        equals_a_run("system = \"it\"\n", &system_around(entry.description.name), "");
    }
}

#[test]
fn every_scheduler_gives_the_results_of_a_run() {
    for entry in standard().iter::<SchedulerEntry>() {
        let host = format!("[host]\nqueue_depth = 2\nscheduler = \"{}\"\n", entry.description.name);
        equals_a_run("", &component("disk", DISK), &host);
    }
}

#[test]
fn requests_lost_in_random_power_failures_are_answered() {
    let registry = standard();
    let disk = component("disk", DISK);
    let system = scenario(Path::new(""), format!("[run]\npower_cut_every = 400\n{disk}"), true);
    let mut session = Session::open(&system, &registry, Options::default()).expect("it opens");
    for (at, request) in requests(400, 7) {
        session.submit(request, at).expect("it fits");
    }
    let (mut answers, mut lost) = (0, 0);
    while let Some(answer) = session.next_completion().expect("it runs") {
        answers += 1;
        lost += u64::from(answer.outcome == Answered::Lost);
    }
    let done = session.finish(&registry, None, Vec::new()).expect("it ends");
    assert!(lost > 0);
    assert_eq!((answers, lost), (400, done.results.requests_lost));
}

#[test]
fn an_instant_that_has_been_simulated_takes_no_more_requests() {
    let registry = standard();
    let system = scenario(Path::new(""), component("ssd", SSD), true);
    let mut session = Session::open(&system, &registry, Options::default()).expect("it opens");
    let write = Request::new(Op::Write, Lba(0), 8);
    let at = SimTime::from_ns(1_000);
    assert_eq!(session.submit(write, at).expect("it fits").at, at);
    assert_eq!(session.submit(write, at).expect("it fits").at, at, "both arrive together");
    let first = session.next_completion().expect("it runs").expect("the first");
    assert!(first.at > at);
    let late = session.submit(write, at).expect("it fits").at;
    assert!(late >= first.at, "{late} is in the past");
    let outside = Request::new(Op::Read, Lba(session.capacity() - 7), 8);
    let capacity = session.capacity();
    assert_eq!(session.submit(outside, late), Err(Rejected::OutOfRange { capacity }));
}

#[test]
fn reads_return_the_number_of_the_write_they_see() {
    let mut session = may_fail(component("ssd", SSD));
    let now = |session: &Session| session.now();
    let write = |session: &mut Session, lba, sectors| {
        let at = now(session);
        let number = session.submit(Request::new(Op::Write, Lba(lba), sectors), at);
        session.next_completion().expect("it runs").expect("the write");
        number.expect("it fits").number
    };
    let first = write(&mut session, 8, 16);
    let second = write(&mut session, 16, 4);
    let at = session.now();
    session.cut_power(at).expect("an SSD models it");
    session.submit(Request::new(Op::Read, Lba(0), 32), at).expect("it fits");
    let read = session.next_completion().expect("it runs").expect("the read");
    let (first, second) = (first + 1, second + 1);
    let expected = [vec![0; 8], vec![first; 8], vec![second; 4], vec![first; 4], vec![0; 8]];
    assert_eq!(read.versions, expected.concat());
}

#[test]
fn a_power_failure_loses_what_is_outstanding() {
    let mut session = may_fail(component("disk", DISK));
    for lba in 0..4 {
        let write = Request::new(Op::Write, Lba(lba * 1000), 8);
        session.submit(write, SimTime::ZERO).expect("it fits");
    }
    let far = session.submit(Request::new(Op::Flush, Lba(0), 0), SimTime::from_ns(60_000_000_000));
    session.cut_power(SimTime::from_ns(10_000)).expect("a disk models it");
    let mut lost = 0;
    while let Some(answer) = session.next_completion().expect("it runs") {
        match answer.outcome {
            Answered::Lost => lost += 1,
            other => assert_eq!((answer.number, other), (4, Answered::Done)),
        }
    }
    assert!(lost > 0 && far.is_ok());
    let done = session.finish(&standard(), None, Vec::new()).expect("it ends");
    assert_eq!((done.results.power_cuts, done.results.requests_lost), (1, lost));
}

#[test]
fn a_power_failure_while_nothing_happens_occurs_at_its_time() {
    let mut session = may_fail(component("disk", DISK));
    let at = SimTime::from_ns(5_000_000_000);
    session.cut_power(at).expect("a disk models it");
    assert_eq!(session.now(), at + SimDuration::from_ns(1));
    let done = session.finish(&standard(), None, Vec::new()).expect("it ends");
    assert_eq!((done.results.power_cuts, done.results.simulated_ns), (1, 5_000_000_001));
}

#[test]
fn arrays_resynchronise_all_of_themselves_before_a_request_much_later() {
    for kind in ["raid1", "raid10", "raid4", "raid5", "raid6", "declustered"] {
        let mut session = may_fail(system_around(kind));
        let write = Request::new(Op::Write, Lba(0), 8);
        session.submit(write, SimTime::ZERO).expect("it fits");
        session.cut_power(SimTime::from_ns(10_000)).expect("an array models it");
        let lost = session.answer().expect("the write");
        assert_eq!(lost.outcome, Answered::Lost, "{kind}");
        let read = Request::new(Op::Read, Lba(0), 8);
        session.submit(read, SimTime::from_ns(90_000_000_000_000)).expect("it fits");
        session.next_completion().expect("it runs").expect("the read");
        let done = session.finish(&standard(), None, Vec::new()).expect("it ends");
        let custom = &done.results.components["it"].custom;
        let ended = custom.get("resync_ended_ns").map_or(0, |it| it.count);
        assert_eq!(ended, 1, "{kind}: {custom:?}");
    }
}

#[test]
fn a_request_that_arrives_with_the_power_failure_is_lost() {
    let mut session = may_fail(component("disk", DISK));
    let write = Request::new(Op::Write, Lba(0), 8);
    for round in 0..3 {
        let at = session.submit(write, session.now()).expect("it fits").at;
        session.cut_power(at).expect("a disk models it");
        let answer = session.answer().expect("it is lost");
        assert_eq!((answer.number, answer.outcome), (2 * round, Answered::Lost));
        session.submit(write, at).expect("it fits");
        let answer = session.next_completion().expect("it runs").expect("the next");
        assert_eq!((answer.number, answer.outcome), (2 * round + 1, Answered::Done));
    }
}

#[test]
fn without_power_failures_the_power_cannot_be_cut() {
    let disk = scenario(Path::new(""), component("disk", DISK), true);
    let mut session = Session::open(&disk, &standard(), Options::default()).expect("it opens");
    let error = session.cut_power(SimTime::ZERO).expect_err("nothing would be lost");
    assert!(error.to_string().contains("power_may_fail"), "{error}");
}

/// A session with faults at times of requests, and between them, and a run that schedules them.
fn faults_equal_a_schedule(system: &str, faults: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = standard();
    let requests = requests(400, 11);
    let checked = scenario(Path::new(""), system.to_owned(), true);
    let mut session = Session::open(&checked, &registry, Options::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let mut arrivals = Vec::new();
    for (number, (at, request)) in requests.iter().enumerate() {
        if number % 90 == 40 {
            let order = serde_json::from_str(faults[number / 90 % faults.len()]).expect("JSON");
            let order = FaultOrder::from_json(&order).expect("a fault");
            let before = session.now();
            let wanted = if number / 90 % 2 == 0 { *at } else { SimTime::ZERO };
            let occurs = session.inject(&order, wanted).unwrap_or_else(|error| panic!("{error}"));
            assert!(occurs >= wanted && occurs >= before, "{occurs} {wanted} {before}");
        }
        let submitted = session.submit(*request, *at).expect("it fits");
        arrivals.push((submitted.at, *request));
        match number % 3 {
            0 => drop(session.next_completion().expect("it runs")),
            1 => session.advance_to(*at).expect("it runs"),
            _ => {}
        }
    }
    let entry =
        |(at, order): &(SimDuration, FaultOrder)| format!("[[run.faults]]\n{}", order.to_toml(*at));
    let list: String = session.faults().iter().map(entry).collect();
    while session.next_completion().expect("it runs").is_some() {}
    let live = session.finish(&registry, None, Vec::new()).unwrap_or_else(|e| panic!("{e}"));
    let path = folder.path().join("t.hst");
    let file = std::fs::File::create(&path).expect("one's own folder");
    let mut writer = NativeWriter::new(file, &Header::default()).expect("it takes it");
    for (at, request) in arrivals {
        writer.write(&Record { at, request, response: None }).expect("it takes it");
    }
    drop(writer.finish().expect("it takes it"));
    let text = format!("{system}{list}[workload]\ntrace = \"t.hst\"\n[host]\nmode = \"open\"\n");
    let scenario = scenario(folder.path(), text, false);
    let whole = run::run(&scenario, &registry, run::Options::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((&whole.fault, &live.fault), (&None, &None), "{system}");
    assert_eq!(essence(&live.results), essence(&whole.results), "{system}{list}");
}

#[test]
fn faults_of_a_session_equal_those_of_a_scenario() {
    let ssd = component("ssd", SSD);
    faults_equal_a_schedule(
        &ssd,
        &[
            r#"{"do": "slow", "component": "ssd", "factor": 3.3}"#,
            r#"{"do": "fill", "fraction": 0.7}"#,
            r#"{"do": "wear", "component": "ssd"}"#,
            r#"{"do": "slow", "die": 0, "factor": 1}"#,
        ],
    );
    faults_equal_a_schedule(
        &component("disk", DISK),
        &[r#"{"do": "slow", "factor": 1.5}"#, r#"{"do": "slow", "factor": 1}"#],
    );
    let raid = "system = \"raid\"\n[component.raid]\nkind = \"raid5\"\nchunk = \"16KiB\"\n\
                members = [\"d0\", \"d1\", \"d2\", \"d3\"]\nspares = [\"d4\"]\n";
    let member = |number| {
        format!(
            "[component.d{number}]\nkind = \"constant-device\"\ncapacity = \"2MiB\"\n\
             latency = \"50us\"\njitter = \"20us\"\n"
        )
    };
    let members: String = (0..5).map(member).collect();
    faults_equal_a_schedule(
        &format!("{raid}{members}"),
        &[
            r#"{"do": "fail", "component": "raid", "member": 1}"#,
            r#"{"do": "slow", "component": "raid/d0", "factor": 20}"#,
            r#"{"do": "fail", "component": "raid", "member": 3}"#,
            r#"{"do": "slow", "component": "d0", "factor": 1}"#,
        ],
    );
}
