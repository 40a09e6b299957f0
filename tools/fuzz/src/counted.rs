//! A random SSD whose flash operations are counted without a clock.

use crate::relations::{Applied, NotApplicable, Ran, Relation};
use hybridsim_observe::results::Flash;
use hybridsim_simulation::run;
use hybridsim_simulation::write_amplification::{Options, WriteAmplification, count};
use toml::{Table, Value};

/// A system that is one SSD performs the same flash operations in an untimed run. Every system that
/// is run with no other relation is tried.
pub(crate) const COUNTED: Relation = Relation { name: "counting its writes", check: counted };

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
    let text = scenario.to_string();
    let mut scenario = ran.scenario_of(text).map_err(|_| NotApplicable)?;
    scenario.run.verify = false;
    // Counting says what needs a clock, and what is no single SSD.
    let found = count(&scenario, ran.registry, Options::default()).map_err(|_| NotApplicable)?;
    let simulated = match ran.run(&scenario, run::Options::default()) {
        Ok(done) => done,
        Err(problem) => return Ok(Some(problem)),
    };
    if found.fault != simulated.fault {
        return Ok(Some(format!("ended by {:?}, not {:?}", found.fault, simulated.fault)));
    }
    let component = simulated.results.components.get(&found.results.component);
    let flash = component.and_then(|it| it.flash.as_ref()).ok_or(NotApplicable)?;
    Ok(difference(&found.results, flash))
}

/// The first count that differs.
pub(crate) fn difference(counted: &WriteAmplification, simulated: &Flash) -> Option<String> {
    let (one, other) = (counted, simulated);
    let counts = [
        ("reads", format!("{:?}", one.reads_by_cause), format!("{:?}", other.reads_by_cause)),
        (
            "programs",
            format!("{:?}", one.programs_by_cause),
            format!("{:?}", other.programs_by_cause),
        ),
        ("erases", format!("{:?}", one.erases_by_cause), format!("{:?}", other.erases_by_cause)),
        (
            "reads of pages never written",
            one.unwritten_reads.to_string(),
            other.unwritten_reads.to_string(),
        ),
        ("bytes written", one.host_bytes.to_string(), other.host_bytes.to_string()),
    ];
    counts
        .into_iter()
        .find(|(_, one, other)| one != other)
        .map(|(what, one, other)| format!("{what} {one}, not {other}"))
}
