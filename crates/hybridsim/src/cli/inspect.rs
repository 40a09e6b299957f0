//! Commands that look without running: check, list, explain, schema.

use super::CheckArgs;
use super::output::{Failure, note, print};
use crate::build;
use crate::scenario::resolve::resolve;
use crate::scenario::{Scenario, explain, schema};
use hybridsim_engine::registry::Registry;

pub fn check(registry: &Registry, args: &CheckArgs) -> Result<(), Failure> {
    for path in &args.scenarios {
        let scenario = Scenario::read(path, &args.sets, registry)?;
        let system = build::system(&scenario, registry)?;
        if args.resolved {
            print(&resolve(&scenario, registry))?;
        } else {
            let gib = system.layer.capacity() as f64 * 512.0 / f64::from(1 << 30);
            note(&format!("{}: fine; `{}` offers {gib:.1} GiB", path.display(), system.path));
        }
    }
    Ok(())
}

pub fn list(registry: &Registry, kind: Option<&str>) -> Result<(), Failure> {
    print(&explain::list(registry, kind).map_err(Failure::usage)?)
}

pub fn explain(registry: &Registry, key: &str) -> Result<(), Failure> {
    print(&explain::explain(registry, key).map_err(Failure::usage)?)
}

pub fn schema(registry: &Registry) -> Result<(), Failure> {
    let schema = schema::schema(registry);
    print(&serde_json::to_string_pretty(&schema).expect("a JSON value prints"))
}
