//! The plan of a sweep: a scenario and the values of some of its keys.

use crate::contents::Contents;
use crate::store::{Outcome, Store};
use crate::vary::{Sampling, Vary};
use hybridsim_config::diagnostic::{Diagnostics, SourceText};
use hybridsim_config::document;
use hybridsim_config::registry::Registry;
use hybridsim_simulation::scenario::{Input, STANDARD_INPUT, Scenario};
use hybridsim_simulation::text;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Sweeps with more points are rejected.
const POINTS_MAX: usize = 100_000;

const SEED: &str = "run.seed";

/// Name of the trace's column, where several are replayed.
const TRACE: &str = "trace";

/// A sweep.
#[derive(Clone, Debug)]
pub struct Plan {
    base: Input,
    /// Combinations given one by one: their keys, and the values of each.
    listed: Option<(Vec<String>, Vec<Vec<String>>)>,
    vary: Vec<Vary>,
    sampling: Sampling,
    traces: Vec<PathBuf>,
    seeds: Seeds,
}

/// Trace, values and repetition of a point.
type Planned<'p> = (Option<&'p PathBuf>, Vec<String>, u64);

/// At which seeds every combination is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// This many: the seed of the scenario and those after it.
    Count(u64),
    List(Vec<u64>),
}

/// One combination at one seed.
#[derive(Clone, Debug)]
pub struct Point {
    /// The point's number in the plan, from 0.
    pub number: usize,
    /// Hash of all inputs of its result; empty where its scenario is invalid.
    pub key: String,
    /// The varied keys' values, in the order of the plan.
    pub values: Vec<String>,
    /// Which of the seeds of its combination, from 0.
    pub repetition: u64,
    /// The seed, where the plan sets it.
    pub seed: Option<u64>,
    /// The scenario.
    pub input: Input,
    /// The trace that it replays, and the hash of its contents.
    pub trace: Option<(PathBuf, String)>,
    /// Whether several workloads replay traces, which are read where they are.
    pub has_tenant_traces: bool,
    /// Memory that its simulation needs, in bytes; an estimate.
    pub memory: u64,
    /// Why it cannot be simulated, if its scenario is invalid.
    pub problem: Option<String>,
}

impl Point {
    /// The outcome without a simulation: from the store, or the problems of its scenario.
    pub fn known(&self, store: Option<&Store>) -> Option<Outcome> {
        match &self.problem {
            Some(problem) => Some(Outcome::Failed(problem.clone())),
            None => store?.load(&self.key),
        }
    }

    /// Checks that it can be simulated on another computer.
    ///
    /// # Errors
    /// Fails when it needs files that are not sent there.
    pub fn check_remote(&self) -> Result<(), String> {
        match self.has_tenant_traces {
            true => Err("traces of several workloads are not sent to other processes; run the \
                         sweep in this one"
                .to_owned()),
            false => Ok(()),
        }
    }

    /// The point's values, separated by spaces.
    pub fn name(&self) -> String {
        self.values.join(" ")
    }

    /// Whether both are of one combination, at seeds of their own.
    pub fn repeats(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Plan {
    /// A plan of one point: the scenario as it is.
    pub fn new(base: Input) -> Self {
        let (sampling, seeds) = (Sampling::Grid, Seeds::Count(1));
        let (listed, vary, traces) = (None, Vec::new(), Vec::new());
        Self { base, listed, vary, sampling, traces, seeds }
    }

    /// Reads `path`: a scenario, or a sweep file that names one (`scenario = "..."`, with `set`,
    /// `vary`, `sample`, `seeds` and a list of `point`). What the command line varies or sets comes
    /// after.
    ///
    /// # Errors
    /// Reports what is wrong with the file or the options.
    pub fn read(
        path: &Path,
        sets: &[String],
        vary: &[Vary],
        traces: &[PathBuf],
    ) -> Result<Self, Diagnostics> {
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
            Some(table) => {
                let source = SourceText { name: path.display().to_string(), text };
                if let Err(list) = document::parse(&source, 0) {
                    return Err(Diagnostics { sources: vec![source], list });
                }
                let scenario = table["scenario"].as_str();
                let scenario =
                    scenario.ok_or_else(|| problem("`scenario` must be a file name".to_owned()))?;
                let scenario = path.parent().unwrap_or(Path::new("")).join(scenario);
                let base = Input::read(&scenario, &[])?;
                Self::new(base).with_file(&table).map_err(problem)?
            }
            None => Self::new(Input::read(path, &[])?),
        };
        plan.base.sets.extend_from_slice(sets);
        plan.vary(vary);
        plan.replay(traces);
        if plan.keys().is_empty() {
            let message = "nothing varies: add `--vary key=value,value`, or a table `vary` to a \
                           sweep file";
            return Err(problem(message.to_owned()));
        }
        Ok(plan)
    }

    /// Varies these keys as well; a key that varies already takes the new values.
    pub fn vary(&mut self, vary: &[Vary]) {
        for added in vary {
            self.vary.retain(|vary| vary.key != added.key);
            self.vary.push(added.clone());
        }
    }

    /// Combinations given one by one: `rows` has the values of `keys`.
    pub fn list(&mut self, keys: Vec<String>, rows: Vec<Vec<String>>) {
        self.listed = Some((keys, rows));
    }

    /// Draws combinations instead of running all.
    pub fn sample(&mut self, sampling: Sampling) {
        self.sampling = sampling;
    }

    /// Replays these traces instead of the scenario's workload, each at every combination.
    pub fn replay(&mut self, traces: &[PathBuf]) {
        self.traces = traces.to_vec();
    }

    /// Runs every combination at these seeds.
    ///
    /// # Errors
    /// Fails when the plan sets the seed itself.
    pub fn repeat(&mut self, seeds: Seeds) -> Result<(), Diagnostics> {
        self.seeds = match seeds {
            Seeds::Count(count) => Seeds::Count(count.max(1)),
            list => list,
        };
        self.check_keys().map_err(Diagnostics::single)
    }

    fn with_file(mut self, table: &Table) -> Result<Self, String> {
        let known = ["scenario", "set", "vary", "point", "sample", "seeds"];
        if let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("`{key}` is unknown here; a sweep has {}", known.join(", ")));
        }
        for (key, value) in flat(table, "set")? {
            self.base.sets.push(format!("{key}={value}"));
        }
        for (key, value) in flat(table, "vary")? {
            self.vary.push(Vary::of_file(key, &value)?);
        }
        if let Some(sample) = table.get("sample") {
            let text = sample.as_str().ok_or("`sample` must be a text, such as \"random:50\"")?;
            self.sampling = Sampling::parse(text)?;
        }
        if let Some(points) = table.get("point") {
            let (keys, rows) = listed(points)?;
            self.list(keys, rows);
        }
        if let Some(seeds) = table.get("seeds") {
            let seeds = seeds_of(seeds).ok_or("`seeds` must be a number above 0, or a list")?;
            self.repeat(seeds).map_err(|error| error.to_string())?;
        }
        Ok(self)
    }

    /// The columns of the values of a point: the keys that vary, and the trace where there are
    /// several.
    pub fn keys(&self) -> Vec<&str> {
        let trace = (self.traces.len() > 1).then_some(TRACE);
        trace.into_iter().chain(self.varied()).collect()
    }

    fn varied(&self) -> impl Iterator<Item = &str> {
        let listed = self.listed.iter().flat_map(|(keys, _)| keys);
        listed.chain(self.vary.iter().map(|vary| &vary.key)).map(String::as_str)
    }

    /// All combinations, the last key varying fastest, each at all seeds in turn.
    ///
    /// # Errors
    /// Reports what is wrong with the scenario; a combination that is impossible is a point that
    /// fails.
    pub fn points(&self, registry: &Registry) -> Result<Vec<Point>, Diagnostics> {
        let (points, refused) = self.checked_points(registry)?;
        // An invalid point is a result; if all are invalid, the plan is wrong.
        match refused {
            Some(refused) if points.iter().all(|point| point.key.is_empty()) => Err(refused),
            _ => Ok(points),
        }
    }

    /// As [`Plan::points`]; a plan may consist of points that all fail.
    ///
    /// # Errors
    /// Fails when the plan has too many points.
    pub fn points_or_failures(&self, registry: &Registry) -> Result<Vec<Point>, Diagnostics> {
        Ok(self.checked_points(registry)?.0)
    }

    /// All points, and what is wrong with the first invalid one.
    fn checked_points(
        &self,
        registry: &Registry,
    ) -> Result<(Vec<Point>, Option<Diagnostics>), Diagnostics> {
        let rows = self.rows().map_err(Diagnostics::single)?;
        let mut contents = Contents::default();
        let mut refused = None;
        let mut points = Vec::with_capacity(rows.len());
        for (trace, values, repetition) in rows {
            let mut point = self.point(trace, &values, repetition);
            point.number = points.len();
            if let Err(wrong) = self.complete(&mut point, registry, &mut contents) {
                point.problem = Some(wrong.to_string());
                refused.get_or_insert(wrong);
            }
            points.push(point);
        }
        Ok((points, refused))
    }

    fn rows(&self) -> Result<Vec<Planned<'_>>, String> {
        let repetitions = match &self.seeds {
            Seeds::Count(count) => *count,
            Seeds::List(list) => list.len() as u64,
        };
        let traces: Vec<Option<&PathBuf>> = match self.traces.is_empty() {
            true => vec![None],
            false => self.traces.iter().map(Some).collect(),
        };
        let alone = vec![Vec::new()];
        let listed = self.listed.as_ref().map_or(&alone, |(_, rows)| rows);
        let times = (traces.len() as u64).saturating_mul(repetitions.max(1));
        let times = usize::try_from(times).unwrap_or(usize::MAX).saturating_mul(listed.len());
        self.check_keys()?;
        // The limit counts traces, seeds and listed points as well.
        let drawn = self.sampling.combine(&self.vary, times, POINTS_MAX)?;
        let mut rows = Vec::with_capacity(drawn.len() * times);
        for trace in traces {
            for head in listed {
                for tail in &drawn {
                    let values: Vec<String> = head.iter().chain(tail).cloned().collect();
                    rows.extend((0..repetitions).map(|at| (trace, values.clone(), at)));
                }
            }
        }
        Ok(rows)
    }

    fn check_keys(&self) -> Result<(), String> {
        let keys: Vec<&str> = self.varied().collect();
        if self.seeds != Seeds::Count(1) && keys.contains(&SEED) {
            return Err(format!("`{SEED}` varies: leave it out, or the number of seeds"));
        }
        if let Seeds::List(list) = &self.seeds
            && let Some((_, seed)) =
                list.iter().enumerate().find(|(at, seed)| list[..*at].contains(seed))
        {
            return Err(format!("seed {seed} is in the list twice"));
        }
        match keys.iter().enumerate().find(|(at, key)| keys[..*at].contains(key)) {
            Some((_, key)) => Err(format!("`{key}` varies twice, in the listed points as well")),
            None => Ok(()),
        }
    }

    fn point(&self, trace: Option<&PathBuf>, values: &[String], repetition: u64) -> Point {
        let mut input = self.base.clone();
        if let Some(trace) = trace {
            input.trace = Some(trace.clone());
        }
        let set = |(key, value): (&str, &String)| format!("{key}={value}");
        input.sets.extend(self.varied().zip(values).map(set));
        let quoted =
            |trace: &PathBuf| Value::from(trace.to_string_lossy().into_owned()).to_string();
        let several = (self.traces.len() > 1).then(|| trace.map(quoted)).flatten();
        let values = several.into_iter().chain(values.iter().cloned()).collect();
        let key = String::new();
        Point {
            number: 0,
            key,
            values,
            repetition,
            seed: None,
            input,
            trace: None,
            has_tenant_traces: false,
            memory: 0,
            problem: None,
        }
    }

    fn complete(
        &self,
        point: &mut Point,
        registry: &Registry,
        contents: &mut Contents,
    ) -> Result<(), Diagnostics> {
        let repetition = point.repetition;
        point.seed = match &self.seeds {
            Seeds::List(list) => Some(list[repetition as usize]),
            Seeds::Count(1) => None,
            Seeds::Count(_) => {
                let first = Scenario::check(point.input.clone(), registry)?.seed();
                Some(first.saturating_add(repetition))
            }
        };
        // The first of several seeds is the scenario's own.
        let given = point.seed.filter(|_| repetition > 0 || matches!(self.seeds, Seeds::List(_)));
        point.input.sets.extend(given.map(|seed| format!("{SEED}={seed}")));
        let scenario = Scenario::check(point.input.clone(), registry)?;
        scenario.check_repeatable()?;
        point.key = contents.key(&scenario, registry);
        point.trace = scenario.source.trace.is_some().then(|| {
            let path = scenario.trace_path();
            let hash = contents.of(&path);
            (path, hash)
        });
        point.has_tenant_traces =
            scenario.tenants.iter().any(|tenant| tenant.source.trace.is_some());
        point.memory = hybridsim_simulation::memory::needed(&scenario, registry);
        Ok(())
    }
}

/// The `[[point]]` tables of a sweep file: keys, and values by point.
fn listed(points: &Value) -> Result<(Vec<String>, Vec<Vec<String>>), String> {
    let wrong = "`point` must be tables `[[point]]` with the same keys";
    let points = points.as_array().filter(|points| !points.is_empty()).ok_or(wrong)?;
    let mut keys: Option<Vec<String>> = None;
    let mut rows = Vec::with_capacity(points.len());
    for point in points {
        let mut entries = Vec::new();
        flatten("", point.as_table().ok_or(wrong)?, &mut entries);
        let (names, values): (Vec<String>, Vec<Value>) = entries.into_iter().unzip();
        if names.is_empty() || *keys.get_or_insert_with(|| names.clone()) != names {
            return Err(wrong.to_owned());
        }
        rows.push(values.iter().map(Value::to_string).collect());
    }
    Ok((keys.unwrap_or_default(), rows))
}

fn seeds_of(value: &Value) -> Option<Seeds> {
    let seed = |value: &Value| u64::try_from(value.as_integer()?).ok();
    match value.as_array() {
        Some(list) if list.is_empty() => None,
        Some(list) => Some(Seeds::List(list.iter().map(seed).collect::<Option<_>>()?)),
        None => Some(Seeds::Count(seed(value).filter(|count| *count > 0)?)),
    }
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
    use std::fs;

    const SCENARIO: &str = "[workload]\ngenerator = { kind = \"uniform\", requests = 10 }\n\
                            [component.d]\nkind = \"constant-device\"\ncapacity = \"1MB\"\n";

    fn vary(option: &str) -> Vary {
        Vary::parse(option).unwrap_or_else(|error| panic!("{error}"))
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
        let plan = Plan::read(&sweep, &[], &[more], &[]).unwrap_or_else(|error| panic!("{error}"));
        let points = plan.points(&registry).unwrap_or_else(|error| panic!("{error}"));
        let names: Vec<String> = points.iter().map(Point::name).collect();
        assert_eq!(names, ["1 1ms", "1 2ms", "1 3ms", "2 1ms", "2 2ms", "2 3ms"]);
        let again = plan.points(&registry).unwrap_or_else(|error| panic!("{error}"));
        assert!(points.iter().zip(&again).all(|(a, b)| a.key == b.key && a.key.len() == 64));
        assert_ne!(points[0].key, points[1].key);
    }

    fn planned(folder: &Path, vary_options: &[&str], seeds: Seeds) -> Result<Plan, Diagnostics> {
        let base = folder.join("base.toml");
        fs::write(&base, SCENARIO).expect("it can be written");
        let vary: Vec<Vary> = vary_options.iter().map(|option| vary(option)).collect();
        let mut plan = Plan::read(&base, &[], &vary, &[])?;
        plan.repeat(seeds)?;
        Ok(plan)
    }

    fn done(point: &Point, latency_ns: f64) -> Outcome {
        let outcome = crate::simulate(&point.input, &standard(), false, || true);
        let Some(Outcome::Done(mut run)) = outcome else { panic!("{outcome:?}") };
        run.latency_ns.all.mean = Some(latency_ns);
        Outcome::Done(run)
    }

    #[test]
    fn a_value_given_twice_is_two_rows_and_no_two_seeds() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let points = |options: &[&str], seeds: Seeds| {
            let plan = planned(folder.path(), options, seeds);
            plan.and_then(|plan| plan.points(&standard())).unwrap_or_else(|error| panic!("{error}"))
        };
        for (seeds, each) in [(Seeds::Count(1), 1), (Seeds::Count(2), 2)] {
            let points = points(&["host.queue_depth=1,1"], seeds);
            let outcome = done(&points[0], 1000.0);
            let finished: Vec<(&Point, &Outcome)> =
                points.iter().map(|point| (point, &outcome)).collect();
            let table = crate::Table::new(&["host.queue_depth"], &[], &finished).expect("a table");
            assert_eq!(table.rows.len(), 2);
            assert_eq!(table.seeds(), each);
            let cell = table.rows[1].cells[1].as_ref().expect("a mean");
            assert_eq!(cell.estimate.half_width.is_some(), each > 1);
            assert_eq!(cell.is_noise, (each > 1).then_some(true));
        }
    }

    #[test]
    fn a_column_that_one_run_has_is_a_column() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let plan = planned(folder.path(), &["host.queue_depth=1,2"], Seeds::Count(1));
        let points = plan.and_then(|plan| plan.points(&standard()));
        let points = points.unwrap_or_else(|error| panic!("{error}"));
        let Outcome::Done(mut run) = done(&points[1], 1.0) else { panic!("it is done") };
        let device = run.components.get_mut("d").expect("the device");
        device.constants.insert("size".to_owned(), 5.0);
        let outcomes = [done(&points[0], 1.0), Outcome::Done(run)];
        let finished: Vec<(&Point, &Outcome)> = points.iter().zip(&outcomes).collect();
        let table =
            |path: &str| crate::Table::new(&["host.queue_depth"], &[path.to_owned()], &finished);
        let found = table("components.d.constants.size").expect("one run has it");
        let last = |at: usize| found.rows[at].cells.last().expect("a column").is_some();
        assert!(!last(0) && last(1));
        assert!(table("components.d.constants.siez").is_err());
    }

    #[test]
    fn rows_without_a_seed_are_compared_at_the_others() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let plan = planned(folder.path(), &["host.queue_depth=1,2"], Seeds::Count(3));
        let points = plan.and_then(|plan| plan.points(&standard()));
        let points = points.unwrap_or_else(|error| panic!("{error}"));
        let outcomes = [10.0, 20.0, 30.0, 20.5, 29.6].map(|mean| done(&points[0], mean));
        // The second row lacks its first seed, which is not finished.
        let there = points.iter().take(3).chain(&points[4..]);
        let finished: Vec<(&Point, &Outcome)> = there.zip(&outcomes).collect();
        let table = crate::Table::new(&["host.queue_depth"], &[], &finished).expect("a table");
        let cell = table.rows[1].cells[1].as_ref().expect("a mean");
        assert_eq!(cell.is_noise, Some(true));
    }

    #[test]
    fn plans_that_are_too_large_or_set_a_key_twice_are_errors() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let error = |options: &[&str], listed: Option<&str>, seeds: Seeds| {
            let base = planned(folder.path(), options, Seeds::Count(1));
            let mut plan = base.unwrap_or_else(|error| panic!("{error}"));
            if let Some(key) = listed {
                plan.list(vec![key.to_owned()], vec![vec!["1".to_owned()]]);
            }
            let repeated = plan.repeat(seeds);
            let found = repeated.and_then(|()| plan.points(&standard()));
            found.expect_err("an error").to_string()
        };
        let depth = ["host.queue_depth=1,2"];
        assert!(error(&depth, None, Seeds::Count(1_000_000_000_000)).contains("100000 points"));
        assert!(error(&["run.seed=1,2"], None, Seeds::Count(2)).contains("run.seed"));
        assert!(error(&depth, None, Seeds::List(vec![3, 3])).contains("seed 3"));
        assert!(error(&depth, Some("host.queue_depth"), Seeds::Count(1)).contains("queue_depth"));
        assert!(error(&depth, Some("run.seed"), Seeds::Count(2)).contains("run.seed"));
    }

    #[test]
    fn what_is_wrong_everywhere_is_refused_and_one_wrong_point_is_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let base = folder.path().join("base.toml");
        fs::write(&base, SCENARIO).expect("it can be written");
        let registry = standard();
        let points = |option: &str| {
            let plan = Plan::read(&base, &[], &[vary(option)], &[]);
            plan.and_then(|plan| plan.points(&registry))
        };
        assert!(points("component.d.speed=1,2").is_err());
        let some = points("host.queue_depth=0,1").unwrap_or_else(|error| panic!("{error}"));
        assert!(some[0].key.is_empty() && !some[1].key.is_empty());
        assert!(Plan::read(&base, &[], &[], &[]).is_err(), "nothing varies");
    }
}
