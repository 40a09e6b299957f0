//! Comparisons at several seeds: as a sweep whose varied key is the scenario.

use super::CompareArgs;
use super::columns;
use super::output::{Failure, print};
use super::progress::Steps;
use super::run::{interrupt_flag, names, prepare};
use super::sweep::{table, verdict, write_tables};
use hybridsim_config::registry::Registry;
use hybridsim_simulation::parallel::processors;
use hybridsim_simulation::scenario::Input;
use hybridsim_sweep::{Job, Memory, Outcome, Plan, Point, Seeds};

/// Runs every scenario at all seeds.
pub fn at_seeds(registry: &Registry, args: &CompareArgs) -> Result<(), Failure> {
    columns::check(&args.simulate.columns)?;
    let points = points(registry, args)?;
    let force = args.simulate.force;
    let _folder = args.simulate.out.as_ref().map(|out| prepare(out, force)).transpose()?;
    let steps = Steps::new(args.simulate.progress, points.len());
    let job = Job {
        registry,
        threads: processors(),
        memory: &Memory::available(),
        store: None,
        cache: !args.simulate.no_cache,
        interrupted: &interrupt_flag(),
    };
    let outcomes = hybridsim_sweep::run(&points, &job, |point| {
        steps.message(&point.name());
        steps.end();
    });
    steps.finish();
    let finished = points.iter().zip(outcomes);
    let rows: Vec<(&Point, Outcome)> =
        finished.filter_map(|(point, outcome)| Some((point, outcome?))).collect();
    let shown: Vec<(&Point, &Outcome)> =
        rows.iter().map(|(point, outcome)| (*point, outcome)).collect();
    let (table, columns) = table(&["scenario"], &args.simulate.columns, &shown)?;
    if let Some(out) = &args.simulate.out {
        write_tables(out, "compare", &table, "Comparison")?;
    }
    print(&if args.simulate.json { table.json() } else { table.terminal() })?;
    columns?;
    verdict(&rows, points.len())
}

fn points(registry: &Registry, args: &CompareArgs) -> Result<Vec<Point>, Failure> {
    let mut points: Vec<Point> = Vec::new();
    for (path, name) in args.scenarios.iter().zip(names(&args.scenarios)) {
        let mut input = Input::read(path, &args.simulate.sets)?;
        input.trace.clone_from(&args.simulate.trace);
        input.sets.extend(args.simulate.key_options());
        let mut plan = Plan::new(input);
        plan.repeat(Seeds::Count(args.seeds))?;
        for mut point in plan.points(registry)? {
            point.number = points.len();
            point.values = vec![toml::Value::from(name.clone()).to_string()];
            points.push(point);
        }
    }
    Ok(points)
}
