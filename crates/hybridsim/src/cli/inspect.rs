//! Commands that do not simulate: check, draw, list, explain, schema.

use super::output::{Failure, apart, note, print, write_path};
use super::{CheckArgs, DrawArgs};
use hybridsim_config::registry::Registry;
use hybridsim_report::json::pretty;
use hybridsim_simulation::build;
use hybridsim_simulation::draw::svg;
use hybridsim_simulation::run;
use hybridsim_simulation::scenario::resolve::resolve;
use hybridsim_simulation::scenario::{Scenario, explain, schema};

pub fn check(registry: &Registry, args: &CheckArgs) -> Result<(), Failure> {
    for path in &args.scenarios {
        let scenario = Scenario::read(path, &args.sets, registry)?;
        let checked = run::check(&scenario, registry)?;
        let notes = scenario.notes.iter().map(|text| format!("note: {}: {text}", path.display()));
        notes.for_each(|text| note(&text));
        for text in &checked.warnings {
            note(&format!("warning: {}: {text}", path.display()));
        }
        if args.resolved {
            print(&resolve(&scenario, registry))?;
        } else {
            let gib = checked.capacity_sectors as f64 * 512.0 / f64::from(1 << 30);
            note(&format!("{}: valid; `{}` has {gib:.1} GiB", path.display(), checked.system));
        }
    }
    Ok(())
}

pub fn draw(registry: &Registry, args: &DrawArgs) -> Result<(), Failure> {
    apart([&args.scenario], args.out.as_ref())?;
    let scenario = Scenario::read(&args.scenario, &args.sets, registry)?;
    let picture = svg(&scenario, &build::system(&scenario, registry)?);
    match &args.out {
        None => print(&picture),
        Some(out) => write_path(out, &picture),
    }
}

pub fn list(registry: &Registry, kind: Option<&str>) -> Result<(), Failure> {
    print(&explain::list(registry, kind).map_err(Failure::usage)?)
}

pub fn explain(registry: &Registry, key: &str) -> Result<(), Failure> {
    print(&explain::explain(registry, key).map_err(Failure::usage)?)
}

pub fn schema(registry: &Registry) -> Result<(), Failure> {
    let schema = schema::schema(registry);
    print(&pretty(&schema))
}
