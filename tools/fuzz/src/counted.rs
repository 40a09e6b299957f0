//! A random SSD whose flash operations are counted without a clock.

use crate::relations::{Applied, NotApplicable, Ran, Relation};
use hybridsim_observe::results::Flash;
use hybridsim_simulation::run;
use hybridsim_simulation::write_amplification::{Options, WriteAmplification, count};
use toml::{Table, Value};

/// A system that is one SSD performs the same flash operations in an untimed run.
pub(crate) const COUNTED: Relation =
    Relation { name: "counting its flash operations", check: counted };

fn counted(ran: &Ran<'_>) -> Applied {
    let mut scenario: Table = ran.text.parse().map_err(|_| NotApplicable)?;
    let ssd = &ran.scenario.components[ran.scenario.system].name;
    let untimed = Table::from_iter([("kind".to_owned(), Value::from("none"))]);
    let component = scenario.get_mut("component").and_then(|all| all.get_mut(ssd));
    let component = component.and_then(Value::as_table_mut).ok_or(NotApplicable)?;
    component.insert("timing".to_owned(), untimed.into());
    // Requests are counted in the order of the workload.
    let host = Table::from_iter([("mode".to_owned(), Value::from("closed"))]);
    scenario.insert("host".to_owned(), host.into());
    let mut scenario = ran.scenario_of(scenario.to_string()).map_err(|_| NotApplicable)?;
    scenario.run.verify = false;
    scenario.run.power_cut_every = None;
    scenario.run.faults.clear();
    // `count` rejects what needs a clock, and systems other than one SSD.
    let found = count(&scenario, ran.registry, Options::default()).map_err(|_| NotApplicable)?;
    let simulated = match ran.run(&scenario, run::Options::default()) {
        Ok(done) => done,
        Err(problem) => return Ok(Some(problem)),
    };
    if found.fault != simulated.fault {
        return Ok(Some(format!("ended by {:?}, not {:?}", found.fault, simulated.fault)));
    }
    let component = simulated.results.components.get(&found.results.component);
    let Some(flash) = component.and_then(|it| it.flash.as_ref()) else {
        return Ok(Some("no results of flash".to_owned()));
    };
    Ok(difference(&found.results, flash))
}

/// The first count that differs.
pub(crate) fn difference(counted: &WriteAmplification, simulated: &Flash) -> Option<String> {
    let by_cause = [
        ("reads", &counted.reads_by_cause, &simulated.reads_by_cause),
        ("programs", &counted.programs_by_cause, &simulated.programs_by_cause),
        ("erases", &counted.erases_by_cause, &simulated.erases_by_cause),
    ];
    for (what, one, other) in by_cause {
        let other_by_name = other.iter().map(|(cause, count)| (&**cause, count));
        if !one.iter().map(|(cause, count)| (*cause, count)).eq(other_by_name) {
            return Some(format!("{what} {one:?}, not {other:?}"));
        }
    }
    let numbers = [
        ("reads of pages never written", counted.unwritten_reads, simulated.unwritten_reads),
        ("bytes written", counted.host_bytes, simulated.host_bytes),
    ];
    let (what, one, other) = numbers.into_iter().find(|(_, one, other)| one != other)?;
    Some(format!("{what} {one}, not {other}"))
}
