//! A power failure at every event of a small run: nothing acknowledged is lost at any of them.

mod common;

use common::system_around;
use hybridsim_config::diagnostic::SourceText;
use hybridsim_engine::{Fault, Lba, Op, Request, SimDuration, SimTime, Stream};
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::session::{Options, Session};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Sectors that are written, and read again after the failure.
const SECTORS: u64 = 128;
/// Failures of one system at most: at instants spread evenly over all of them.
const INSTANTS_MAX: usize = 400;

fn scenario(system: &str) -> Scenario {
    let text = format!(
        "system = \"it\"\n[workload]\ngenerator = {{ kind = \"uniform\", requests = 1 }}\n\
         [run]\nverify = true\npower_cut_every = 1000000000\n{system}"
    );
    let source = SourceText { name: "test".to_owned(), text };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    Scenario::check(input, &standard()).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Writes with some reads, trims and flushes between them, `pace` apart on average.
fn requests(pace: SimDuration) -> Vec<(SimTime, Request)> {
    let (mut stream, mut at) = (Stream::new(1, "every event"), SimTime::ZERO);
    let mut draw = || {
        at += SimDuration::from_ns(stream.below(2 * pace.as_ns()));
        let op = match stream.below(12) {
            0..2 => Op::Read,
            2 => Op::Trim,
            3 => Op::Flush,
            _ => Op::Write,
        };
        let lba = stream.below(SECTORS);
        let sectors = 1 + stream.below(24.min(SECTORS - lba)) as u32;
        (at, Request::new(op, Lba(lba), sectors))
    };
    let mut requests: Vec<_> = (0..40).map(|_| draw()).collect();
    // Until then there is work in the background.
    let last = requests.last().map_or(SimTime::ZERO, |(at, _)| *at) + pace * 25;
    requests.push((last, Request::new(Op::Read, Lba(0), 1)));
    requests
}

/// The instants of a run without a failure at which something happened: background work as well,
/// because another request is outstanding until the end.
fn instants(scenario: &Scenario, requests: &[(SimTime, Request)]) -> Result<Vec<SimTime>, Fault> {
    let registry = standard();
    let options = Options { power_may_fail: true, ..Options::default() };
    let mut session =
        Session::open(scenario, &registry, options).unwrap_or_else(|error| panic!("{error}"));
    for (at, request) in requests {
        session.submit(*request, *at).expect("it fits");
    }
    let mut instants = BTreeSet::new();
    while let Some(next) = session.next_event() {
        instants.insert(next);
        session.advance_to(next + SimDuration::from_ns(1))?;
        while session.answer().is_some() {}
    }
    Ok(instants.into_iter().collect())
}

/// Runs with a failure a nanosecond after `cut`, then reads everything.
fn fails_at(
    scenario: &Scenario,
    requests: &[(SimTime, Request)],
    cut: SimTime,
) -> Result<(), Fault> {
    let registry = standard();
    let options = Options { power_may_fail: true, ..Options::default() };
    let mut session =
        Session::open(scenario, &registry, options).unwrap_or_else(|error| panic!("{error}"));
    let (before, after) = requests.split_at(requests.partition_point(|(at, _)| *at <= cut));
    for (at, request) in before {
        session.submit(*request, *at).expect("it fits");
    }
    session.advance_to(cut)?;
    session.cut_power(cut)?;
    // All sectors are read at once, and again after the other writes.
    let everything = Request::new(Op::Read, Lba(0), SECTORS as u32);
    let now = session.now();
    session.submit(everything, now).expect("it fits");
    for (at, request) in after {
        session.submit(*request, *at).expect("it fits");
    }
    while session.next_completion()?.is_some() {}
    let now = session.now();
    session.submit(everything, now).expect("it fits");
    while session.next_completion()?.is_some() {}
    let done = session.finish(&registry, None, Vec::new()).unwrap_or_else(|it| panic!("{it}"));
    done.fault.map_or(Ok(()), Err)
}

#[test]
fn nothing_acknowledged_is_lost_whenever_the_power_fails() {
    let registry = standard();
    let (mut systems, mut failures) = (0, 0);
    for kind in registry.descriptions("component").map(|it| it.name) {
        let disk = "preset = \"seagate-cheetah-9lp\"\n";
        let system = system_around(kind).replace(disk, &format!("{disk}write_cache = false\n"));
        let scenario = scenario(&system);
        // Random writes do not suit zones, and some systems lose writes by design.
        let Ok(checked) = run::check(&scenario, &registry) else { continue };
        if checked.loses_writes || kind == "zns-ssd" || kind == "smr-disk" {
            continue;
        }
        let slow = system.contains("hard-disk") || system.contains("preset");
        let requests = requests(SimDuration::from_us(if slow { 4_000 } else { 150 }));
        let all = instants(&scenario, &requests).unwrap_or_else(|it| panic!("{kind}: {it}"));
        let step = all.len().div_ceil(INSTANTS_MAX);
        for cut in all.into_iter().step_by(step) {
            if let Err(fault) = fails_at(&scenario, &requests, cut) {
                panic!("{kind}, power failure after {cut}: {fault}\n{system}");
            }
            failures += 1;
        }
        systems += 1;
    }
    assert!(systems > 15 && failures > 1_500, "{failures} failures of {systems} systems");
}
