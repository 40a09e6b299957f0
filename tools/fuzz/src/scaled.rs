//! A random system in which everything takes twice as long.

use crate::relations::{Answers, Applied, NotApplicable, Ran, Relation, open, serve};
use hybridsim_config::units;
use hybridsim_engine::{Request, SimDuration, SimTime};
use hybridsim_simulation::session::Options;
use toml::{Table, Value};

/// With all times of the scenario doubled, and all rates halved, latencies are twice as long.
pub(crate) const SCALED: Relation = Relation { name: "doubling every time", check: scaled };

/// Words of systems that do not scale: accelerations, heat capacities, sums of times and distances
/// in sectors where a device has no arm, and `smtf`, which learns: one rotation more or less can
/// change its order for good (at 7200.01 rpm instead of 7200 rpm a mean latency was a quarter
/// longer).
const UNSCALED: [&str; 5] = ["mems", "heat_capacity", "asp", "asatf", "\"smtf\""];

/// The most that rounding changes in a latency.
const ROUNDED_NS: f64 = 1000.0;
/// The share by which the sum of latencies may differ beyond rounding.
const TOLERANCE: f64 = 0.01;
/// The same where a platter turns: whether a sector has just passed the head depends on roundings
/// (7200.001 rpm instead of 7200 rpm made a mean latency 2 % shorter).
const TOLERANCE_ROTATING: f64 = 0.1;

fn scaled(ran: &Ran<'_>) -> Applied {
    let requests = ran.requests()?;
    if UNSCALED.iter().any(|word| ran.text.contains(word)) {
        return Err(NotApplicable);
    }
    let mut scenario: Table = ran.output.resolved.parse().map_err(|_| NotApplicable)?;
    scenario.iter_mut().for_each(|(_, value)| double(value));
    let scenario = ran.scenario_of(scenario.to_string()).map_err(|_| NotApplicable)?;
    let mut session = open(ran, ran.scenario, Options::default())?;
    let one = serve(&mut session, &requests, SimTime::ZERO);
    let twice = |at: &SimTime| *at + at.since(SimTime::ZERO);
    let later: Vec<_> = requests.iter().map(|(at, request)| (twice(at), *request)).collect();
    let mut session = open(ran, &scenario, Options::default())?;
    let other = serve(&mut session, &later, SimTime::ZERO);
    let rotates = ran.text.contains("rpm = ");
    let tolerance = if rotates { TOLERANCE_ROTATING } else { TOLERANCE };
    Ok(difference(&one, &other, &requests, tolerance))
}

/// Doubles the times in `value`, and halves the rates.
fn double(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Ok(time) = units::duration(text) {
                *text = units::write_duration(time + time);
            } else if let Ok(rate) = units::rate(text) {
                *text = format!("{}B/s", rate / 2);
            } else if let Ok(speed) = units::rpm(text) {
                *text = format!("{}rpm", speed / 2.0);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(double),
        Value::Table(table) => table.iter_mut().for_each(|(_, value)| double(value)),
        _ => {}
    }
}

/// Compares the sums of latencies.
fn difference(
    one: &Answers,
    other: &Answers,
    arrivals: &[(SimTime, Request)],
    tolerance: f64,
) -> Option<String> {
    let (Ok(one), Ok(other)) = (one, other) else {
        return (one.is_ok() != other.is_ok()).then(|| format!("{other:?}, not {one:?}"));
    };
    let arrived: f64 = arrivals.iter().map(|(at, _)| at.as_ns() as f64).sum();
    let sum = |answers: &[(SimDuration, _)]| -> f64 {
        answers.iter().map(|(after, _)| after.as_ns() as f64).sum()
    };
    let (was, is) = (2.0 * (sum(one) - arrived), sum(other) - 2.0 * arrived);
    let rounded = ROUNDED_NS * one.len() as f64;
    let differs = (is - was).abs() > tolerance * was + rounded;
    differs.then(|| format!("latencies of {is} ns, not {was} ns"))
}
