//! Checks of `--column` before anything runs.

use super::output::Failure;
use hybridsim_config::registry::Registry;
use hybridsim_engine::SimTime;
use hybridsim_observe::{Cost, Detail, EndedBy, Ending, Label, Recorder, Warmup};
use hybridsim_simulation::build;
use hybridsim_simulation::scenario::Scenario;
use hybridsim_sweep::Point;
use serde_json::Value;

/// Refuses a path that no results can have. Keys of a component and of optional tables depend on
/// the run and are checked after it.
pub fn check(paths: &[String]) -> Result<(), Failure> {
    if paths.is_empty() {
        return Ok(());
    }
    let ending = Ending { time: SimTime::ZERO, events: 0, by: EndedBy::default() };
    let recorder = Recorder::new(Vec::new(), Detail::Bare, Warmup::None);
    let results = recorder.finish(ending, Label::default(), Cost::default(), Vec::new()).results;
    let mut keys = serde_json::to_value(results).map_err(std::io::Error::from)?;
    // Left out where there is one workload.
    keys["tenants"] = Value::Null;
    paths.iter().try_for_each(|path| {
        possible(&keys, path, "")
            .map_err(|known| Failure::usage(format!("--column: results have no `{path}`; {known}")))
    })
}

/// Refuses a path to a component that no point has.
pub fn check_components(
    registry: &Registry,
    paths: &[String],
    points: &[Point],
) -> Result<(), Failure> {
    for path in paths {
        let component = path.strip_prefix("components.").and_then(|rest| rest.split('.').next());
        let Some(component) = component else { continue };
        let mut known = Vec::new();
        let mut scenarios =
            points.iter().filter_map(|it| Scenario::check(it.input.clone(), registry).ok());
        let is_known = |scenario: Scenario| {
            known = build::paths(&scenario);
            known.push("host".to_owned());
            known.iter().any(|name| name == component)
        };
        if !scenarios.any(is_known) {
            let message = format!(
                "--column: no component is called `{component}`; those of the last point: {}",
                known.join(", ")
            );
            return Err(Failure::usage(message));
        }
    }
    Ok(())
}

/// Follows `path` as far as the keys are known; else returns those at the place where it leaves
/// them.
fn possible(value: &Value, path: &str, before: &str) -> Result<(), String> {
    let entries = match value {
        Value::Object(entries) if !entries.is_empty() => entries,
        _ => return Ok(()),
    };
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    match entries.get(first) {
        Some(inner) if !rest.is_empty() => possible(inner, rest, &format!("{before}{first}.")),
        Some(Value::Object(entries)) if !entries.is_empty() => {
            let keys: Vec<&str> = entries.keys().map(String::as_str).collect();
            Err(format!("it is a table; add one of its keys: {}", keys.join(", ")))
        }
        Some(Value::String(_)) => Err("it is a text".to_owned()),
        Some(_) => Ok(()),
        None => {
            let has = |(name, inner): (&String, &Value)| {
                let found = inner.get(path).is_some();
                found.then(|| format!("did you mean `{before}{name}.{path}`?"))
            };
            let keys: Vec<&str> = entries.keys().map(String::as_str).collect();
            let keys = || format!("keys there: {}", keys.join(", "));
            Err(entries.iter().find_map(has).unwrap_or_else(keys))
        }
    }
}
