//! The plan of a sweep: a scenario and the values of some of its keys.

use hybridsim_config::diagnostic::Diagnostics;
use hybridsim_config::registry::Registry;
use hybridsim_simulation::scenario::resolve::resolve;
use hybridsim_simulation::scenario::{Input, STANDARD_INPUT, Scenario};
use hybridsim_simulation::text;
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Sweeps with more points are rejected.
const POINTS_MAX: usize = 100_000;

/// The key of the seed.
const SEED: &str = "run.seed";

/// A key and its values, in TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vary {
    /// Such as `component.ssd.over_provisioning`.
    pub key: String,
    /// Such as `0.07`.
    pub values: Vec<String>,
}

impl Vary {
    /// Reads `key=a,b,c`; commas inside brackets and quotes do not separate values.
    ///
    /// # Errors
    /// When the syntax is different.
    pub fn parse(option: &str) -> Result<Self, Diagnostics> {
        let Some((key, list)) = option.split_once('=') else {
            let message = format!("`--vary {option}`: write it as key.path=value,value");
            return Err(Diagnostics::single(message));
        };
        let as_list = format!("v = [{list}]").parse::<Table>().ok();
        let values = match as_list.as_ref().and_then(|table| table["v"].as_array()) {
            Some(values) => values.iter().map(Value::to_string).collect(),
            None => list.split(',').map(|value| value.trim().to_owned()).collect(),
        };
        Self { key: key.trim().to_owned(), values }.checked()
    }

    fn checked(self) -> Result<Self, Diagnostics> {
        match self.values.is_empty() || self.values.iter().any(String::is_empty) {
            true => Err(Diagnostics::single(format!("`{}`: has a missing value", self.key))),
            false => Ok(self),
        }
    }
}

/// A sweep.
#[derive(Clone, Debug)]
pub struct Plan {
    scenario: PathBuf,
    sets: Vec<String>,
    vary: Vec<Vary>,
    seeds: u64,
}

/// One combination at one seed.
#[derive(Clone, Debug)]
pub struct Point {
    /// Hash of all inputs of its result.
    pub key: String,
    /// The varied keys' values, in the order of the plan.
    pub values: Vec<String>,
    /// Which of the seeds of its combination, from 0.
    pub repetition: u64,
    /// The scenario.
    pub input: Input,
}

impl Point {
    /// Its values, separated by spaces.
    pub fn name(&self) -> String {
        self.values.join(" ")
    }

    /// Whether both are of one combination, at seeds of their own.
    pub fn repeats(&self, other: &Self) -> bool {
        self.values == other.values
    }

    /// Whether both are the same combination at the same seed.
    pub fn is_same(&self, other: &Self) -> bool {
        self.repeats(other) && self.repetition == other.repetition
    }
}

impl Plan {
    /// Reads `path`: a scenario, or a sweep file that names one (`scenario = "..."`, with tables
    /// `set` and `vary`). What the command line varies or sets comes after.
    ///
    /// # Errors
    /// What is wrong with the file or the options.
    pub fn read(path: &Path, sets: &[String], vary: &[Vary]) -> Result<Self, Diagnostics> {
        let problem =
            |message: String| Diagnostics::single(format!("{}: {message}", path.display()));
        if path == Path::new(STANDARD_INPUT) {
            let message = "a sweep needs its scenario in a file, which it reads for every point";
            return Err(problem(message.to_owned()));
        }
        let text = text::read(path, text::SCENARIO_BYTES_MAX);
        let text = text.map_err(|error| problem(error.to_string()))?;
        let named = text.parse::<Table>().ok().filter(|table| table.contains_key("scenario"));
        let mut plan = match named {
            Some(table) => Self::of_file(path, &table).map_err(problem)?,
            None => {
                Self { scenario: path.to_owned(), sets: Vec::new(), vary: Vec::new(), seeds: 1 }
            }
        };
        plan.sets.extend_from_slice(sets);
        for added in vary {
            plan.vary.retain(|vary| vary.key != added.key);
            plan.vary.push(added.clone());
        }
        if plan.vary.is_empty() {
            let message = "nothing varies: add `--vary key=value,value`, or a table `vary` to a \
                           sweep file";
            return Err(problem(message.to_owned()));
        }
        Ok(plan)
    }

    /// Every combination at `seeds` seeds: that of the scenario and those after it.
    ///
    /// # Errors
    /// When the plan sets the seed itself.
    pub fn repeated(mut self, seeds: u64) -> Result<Self, Diagnostics> {
        if seeds > 1 && self.vary.iter().any(|vary| vary.key == SEED) {
            let message = format!("`{SEED}` varies: leave it out, or the number of seeds");
            return Err(Diagnostics::single(message));
        }
        self.seeds = seeds.max(1);
        Ok(self)
    }

    fn of_file(path: &Path, table: &Table) -> Result<Self, String> {
        let known = ["scenario", "set", "vary"];
        if let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("`{key}` is unknown here; a sweep has scenario, set and vary"));
        }
        let scenario = table["scenario"].as_str().ok_or("`scenario` must be a file name")?;
        let scenario = path.parent().unwrap_or(Path::new("")).join(scenario);
        let mut plan = Self { scenario, sets: Vec::new(), vary: Vec::new(), seeds: 1 };
        for (key, value) in flat(table, "set")? {
            plan.sets.push(format!("{key}={value}"));
        }
        for (key, value) in flat(table, "vary")? {
            let values = value.as_array().ok_or(format!("`vary.{key}` must be a list"))?;
            let values = values.iter().map(Value::to_string).collect();
            plan.vary.push(Vary { key, values }.checked().map_err(|error| error.to_string())?);
        }
        Ok(plan)
    }

    /// The keys that vary.
    pub fn keys(&self) -> Vec<&str> {
        self.vary.iter().map(|vary| vary.key.as_str()).collect()
    }

    /// All combinations, the last key varying fastest, each at all seeds in turn.
    ///
    /// # Errors
    /// What is wrong with the scenario; a combination that is impossible is a point that fails.
    pub fn points(
        &self,
        registry: &Registry,
        trace: Option<&Path>,
    ) -> Result<Vec<Point>, Diagnostics> {
        let repetitions = usize::try_from(self.seeds).unwrap_or(usize::MAX);
        let factors = self.vary.iter().map(|vary| vary.values.len()).chain([repetitions]);
        let count = factors.into_iter().try_fold(1usize, |product, factor| {
            product.checked_mul(factor).filter(|count| *count <= POINTS_MAX)
        });
        let Some(count) = count else {
            let message = format!("the sweep has more than {POINTS_MAX} points; split it");
            return Err(Diagnostics::single(message));
        };
        let base = Input::read(&self.scenario, &self.sets)?;
        let mut refused = None;
        let mut points = Vec::with_capacity(count);
        for number in 0..count {
            let (point, wrong) = self.point(number, &base, registry, trace);
            if let (Some(wrong), None) = (wrong, &refused) {
                refused = Some(wrong);
            }
            points.push(point);
        }
        // An invalid point is a result; if all are invalid, the plan is wrong.
        let all_wrong = points.iter().all(|point| point.key.is_empty());
        match refused {
            Some(refused) if all_wrong => Err(refused),
            _ => Ok(points),
        }
    }

    fn point(
        &self,
        number: usize,
        base: &Input,
        registry: &Registry,
        trace: Option<&Path>,
    ) -> (Point, Option<Diagnostics>) {
        let repetition = number as u64 % self.seeds;
        let mut rest = number / self.seeds as usize;
        let mut values = Vec::with_capacity(self.vary.len());
        for vary in self.vary.iter().rev() {
            values.push(vary.values[rest % vary.values.len()].clone());
            rest /= vary.values.len();
        }
        values.reverse();
        let mut input = base.clone();
        input.trace = trace.map(Path::to_owned);
        let set = |(vary, value): (&Vary, &String)| format!("{}={value}", vary.key);
        input.sets.extend(self.vary.iter().zip(&values).map(set));
        let mut checked = Scenario::check(input.clone(), registry);
        if let (Ok(scenario), 1..) = (&checked, repetition) {
            input.sets.push(format!("{SEED}={}", scenario.seed().saturating_add(repetition)));
            checked = Scenario::check(input.clone(), registry);
        }
        let (key, wrong) = match checked {
            Ok(scenario) => (key(&scenario, registry), None),
            Err(problems) => (String::new(), Some(problems)),
        };
        (Point { key, values, repetition, input }, wrong)
    }
}

/// The hash of all inputs of a result: scenario, the program's code, and size and modification time
/// of the trace and the saved state.
pub fn key(scenario: &Scenario, registry: &Registry) -> String {
    let mut text =
        format!("{}\n{}\n", hybridsim_simulation::state::SOURCES, resolve(scenario, registry));
    let files = [&scenario.source.trace, &scenario.run.state];
    for file in files.into_iter().flatten() {
        let path = scenario.base.join(file);
        let about =
            fs::metadata(&path).ok().and_then(|file| Some((file.len(), file.modified().ok()?)));
        text.push_str(&format!("{about:?}"));
    }
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// The entries of table `name`, nested tables as dotted keys.
fn flat(table: &Table, name: &str) -> Result<Vec<(String, Value)>, String> {
    let mut found = Vec::new();
    match table.get(name) {
        None => {}
        Some(Value::Table(entries)) => flatten("", entries, &mut found),
        Some(_) => return Err(format!("`{name}` must be a table")),
    }
    Ok(found)
}

fn flatten(prefix: &str, table: &Table, found: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(inner) => flatten(&key, inner, found),
            _ => found.push((key, value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_simulation::registry::standard;

    const SCENARIO: &str = "[workload]\ngenerator = { kind = \"uniform\", requests = 10 }\n\
                            [component.d]\nkind = \"constant-device\"\ncapacity = \"1MB\"\n";

    fn vary(option: &str) -> Vary {
        Vary::parse(option).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn options_part_values_at_commas() {
        assert_eq!(vary("a.b=1,2").values, ["1", "2"]);
        assert_eq!(vary("a=fifo,lru").values, ["fifo", "lru"]);
        assert_eq!(vary("a=\"x,y\",\"z\"").values, ["\"x,y\"", "\"z\""]);
        assert_eq!(vary("a=[1,2],[3]").values, ["[1, 2]", "[3]"]);
        assert!(Vary::parse("a").is_err() && Vary::parse("a=").is_err());
        assert!(Vary::parse("a=1,,2").is_err());
    }

    #[test]
    fn the_last_key_varies_fastest_and_equal_points_have_equal_keys() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let base = folder.path().join("base.toml");
        fs::write(&base, SCENARIO).expect("it can be written");
        let sweep = folder.path().join("sweep.toml");
        let text = "scenario = \"base.toml\"\n[set]\n\"run.seed\" = 7\n\
                    [vary]\nhost.queue_depth = [1, 2]\n";
        fs::write(&sweep, text).expect("it can be written");
        let registry = standard();
        let more = vary("component.d.latency=1ms,2ms,3ms");
        let plan = Plan::read(&sweep, &[], &[more]).unwrap_or_else(|error| panic!("{error}"));
        let points = plan.points(&registry, None).unwrap_or_else(|error| panic!("{error}"));
        let names: Vec<String> = points.iter().map(Point::name).collect();
        assert_eq!(names, ["1 1ms", "1 2ms", "1 3ms", "2 1ms", "2 2ms", "2 3ms"]);
        let again = plan.points(&registry, None).unwrap_or_else(|error| panic!("{error}"));
        assert!(points.iter().zip(&again).all(|(a, b)| a.key == b.key && a.key.len() == 64));
        assert_ne!(points[0].key, points[1].key);
    }

    #[test]
    fn what_is_wrong_everywhere_is_refused_and_one_wrong_point_is_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let base = folder.path().join("base.toml");
        fs::write(&base, SCENARIO).expect("it can be written");
        let registry = standard();
        let points = |option: &str| {
            let plan = Plan::read(&base, &[], &[vary(option)]);
            plan.and_then(|plan| plan.points(&registry, None))
        };
        assert!(points("component.d.speed=1,2").is_err());
        let some = points("host.queue_depth=0,1").unwrap_or_else(|error| panic!("{error}"));
        assert!(some[0].key.is_empty() && !some[1].key.is_empty());
        assert!(Plan::read(&base, &[], &[]).is_err(), "nothing varies");
    }
}
