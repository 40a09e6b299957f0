//! Comparisons at several seeds: as a sweep whose varied key is the scenario.

use super::CompareArgs;
use super::columns;
use super::output::{Failure, print_beside};
use super::run::{names, prepare};
use super::sweep::{run_all, table, verdict, write_tables};
use hybridsim_config::registry::Registry;
use hybridsim_simulation::parallel::processors;
use hybridsim_sweep::{Outcome, Plan, Point, Seeds};

/// Runs every scenario at all seeds.
pub fn at_seeds(registry: &Registry, args: &CompareArgs) -> Result<(), Failure> {
    columns::check(&args.simulate.columns)?;
    let points = points(registry, args)?;
    columns::check_components(registry, &args.simulate.columns, &points)?;
    let force = args.simulate.force;
    let _folder = args.simulate.out.as_ref().map(|out| prepare(out, force)).transpose()?;
    let threads = jobs(registry, args);
    let (progress, cache) = (args.simulate.progress, !args.simulate.no_cache);
    let outcomes = run_all(registry, &points, threads, progress, cache);
    let finished = points.iter().zip(outcomes);
    let rows: Vec<(&Point, Outcome)> =
        finished.filter_map(|(point, outcome)| Some((point, outcome?))).collect();
    let shown: Vec<(&Point, &Outcome)> =
        rows.iter().map(|(point, outcome)| (*point, outcome)).collect();
    let (table, columns) = table(&["scenario"], &args.simulate.columns, &shown)?;
    let write = |out| write_tables(out, "compare", &table, "Comparison");
    let saved = args.simulate.out.as_deref().map_or(Ok(()), write);
    print_beside(saved, &if args.simulate.json { table.json() } else { table.terminal() })?;
    columns?;
    verdict(&rows, points.len(), "")
}

/// Runs at a time. Python runs one at a time anyway, and keeps tracebacks by thread.
pub fn jobs(registry: &Registry, args: &CompareArgs) -> usize {
    let default = || if registry.takes_plugin_errors() { 1 } else { processors() };
    args.jobs.unwrap_or_else(default)
}

fn points(registry: &Registry, args: &CompareArgs) -> Result<Vec<Point>, Failure> {
    let mut points: Vec<Point> = Vec::new();
    for (path, name) in args.scenarios.iter().zip(names(&args.scenarios)) {
        let mut plan = Plan::new(args.simulate.input(path)?);
        plan.repeat(Seeds::Count(args.seeds))?;
        for mut point in plan.points(registry)? {
            point.number = points.len();
            point.values = vec![toml::Value::from(name.clone()).to_string()];
            points.push(point);
        }
    }
    Ok(points)
}
