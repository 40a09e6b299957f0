//! Scenario files: from text to a checked description of a system, its workload and the run.

mod component;
mod components;
pub mod explain;
pub mod manual;
mod replicas;
pub mod resolve;
pub mod schema;
mod source;
pub mod tenants;

use crate::faults;
use crate::text;
use hybridsim_config::build::ComponentEntry;
use hybridsim_config::check::Checker;
pub use hybridsim_config::diagnostic::Diagnostics;
use hybridsim_config::diagnostic::{SourceText, Span};
use hybridsim_config::document::{self, Datum, Item, Table};
use hybridsim_config::effect::Needs;
use hybridsim_config::ineffective;
use hybridsim_config::param::{Kind, Param, Settings, Value};
use hybridsim_config::registry::{Description, Entry, Registry};
use hybridsim_engine::SimDuration;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub use component::ScenarioComponent;
pub use source::SourceSettings;
pub(crate) use source::WORKLOAD;
pub use tenants::Tenant;

hybridsim_config::params! {
    /// The `[run]` table.
    pub struct RunSettings {
        pub seed: u64 = Kind::Count { min: 0, max: u64::MAX }, default "1",
            "Seed of all random numbers of the run.";
        pub verify: bool = Kind::Flag, default "false",
            "Check that every read returns the last write. Slower; needs memory per sector.";
        pub power_cut_every: Option<u64> = Kind::Count { min: 1, max: u64::MAX }, optional,
            "Random power failures, on average one in so many messages between components. With \
             `verify`, the run checks that no acknowledged write is lost.";
        pub power_cuts_max: u64 = Kind::Count { min: 0, max: u64::MAX }, default "10000"
            needs &[Needs::given("power_cut_every")],
            "The maximum number of power failures.";
        pub warmup_requests: u64 = Kind::Count { min: 0, max: u64::MAX }, default "0",
            "Requests at the start that are simulated but excluded from the statistics.";
        pub warmup_time: SimDuration = Kind::Duration, default "\"0s\"",
            "Simulated time at the start that is excluded from the statistics.";
        pub state: Option<String> = Kind::Text, optional,
            "A file written by `run --save-state` from the same system, with which the run starts. \
             Relative to the scenario.";
        pub faults: Vec<Settings> = Kind::Tables(faults::Scheduled::PARAMS), default "[]",
            "Faults to inject, in any order, as `[[run.faults]]` with `at`, `do` and what that \
             takes.";
    }
}

/// The declared keys of `[host]`.
pub(crate) const HOST: &[&[Param]] =
    &[hybridsim_host::driver::PARAMS, hybridsim_host::tenants::HOST_PARAMS];

/// The file name that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// The name of a workload that comes from outside.
const OUTSIDE: &str = "live";

const TOP: &[&str] = &["title", "system", "run", "workload", "host", "component"];

/// A scenario without errors.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The title in results.
    pub title: String,
    /// The name of the text it was read from.
    pub name: String,
    /// Checked `[run]`.
    pub run: RunSettings,
    /// The same, to be resolved.
    pub(crate) run_keys: Settings,
    /// The source of requests of `[workload]`; none where `tenants` have theirs.
    pub source: SourceSettings,
    /// Checked `[workload]`.
    pub workload: Settings,
    /// Several workloads that share the system, in the order of the scenario.
    pub tenants: Vec<Tenant>,
    /// The table of the workload, for messages, and the name of its random stream.
    pub(crate) workload_key: String,
    pub(crate) stream: String,
    /// Checked `[host]`.
    pub host: Settings,
    /// All components; children come before their parents.
    pub components: Vec<ScenarioComponent>,
    /// Index of the top component.
    pub system: usize,
    /// Folder that relative paths start from.
    pub base: PathBuf,
    /// The texts it came from, for messages about it.
    pub sources: Vec<SourceText>,
    /// Notes and warnings for the user.
    pub notes: Vec<String>,
}

/// The text of a scenario, and the options that change it.
#[derive(Clone, Debug)]
pub struct Input {
    /// The scenario's text and name.
    pub source: SourceText,
    /// Folder that relative paths start from.
    pub base: PathBuf,
    /// `--set key=value` options, in order.
    pub sets: Vec<String>,
    /// A trace that takes the place of the scenario's workload, relative to the current folder:
    /// of the whole `[workload]` table, unless that names no source of requests itself.
    pub trace: Option<PathBuf>,
}

impl Input {
    /// Reads the file at `path`, or standard input where that is `-`; then relative paths start
    /// from the current folder.
    ///
    /// # Errors
    /// Fails when it cannot be read.
    pub fn read(path: &Path, sets: &[String]) -> Result<Self, Diagnostics> {
        if path == Path::new(STANDARD_INPUT) {
            let text =
                text::read_from(std::io::stdin(), text::SCENARIO_BYTES_MAX).map_err(|error| {
                    let message = format!("cannot read a scenario from standard input: {error}");
                    Diagnostics::single(message)
                })?;
            let source = SourceText { name: "standard input".to_owned(), text };
            return Ok(Self { source, base: PathBuf::new(), sets: sets.to_vec(), trace: None });
        }
        let text = text::read(path, text::SCENARIO_BYTES_MAX).map_err(|error| {
            let path = path.display();
            let hint = match error.kind() {
                ErrorKind::NotFound => {
                    "; `hybridsim new` writes one to start from, `hybridsim examples` the examples"
                }
                _ => "",
            };
            Diagnostics::single(format!("cannot read scenario {path}: {error}{hint}"))
        })?;
        let base = path.parent().unwrap_or(Path::new("")).to_owned();
        let source = SourceText { name: path.display().to_string(), text };
        Ok(Self { source, base, sets: sets.to_vec(), trace: None })
    }
}

impl Scenario {
    /// Resolves the files of Python classes (`"file.py:Class"`) from the scenario's folder, like
    /// every path in it.
    fn resolve_classes(&mut self) {
        let resolve = &mut |class: &mut String| {
            if let Some((file, name)) = class.rsplit_once(':')
                && file.ends_with(".py")
            {
                let file = self.base.join(file);
                if let Some(file) = std::path::absolute(&file).unwrap_or(file).to_str() {
                    *class = format!("{file}:{name}");
                }
            }
        };
        self.host.change_texts("class", resolve);
        let components = self.components.iter_mut();
        components.for_each(|component| component.settings.change_texts("class", resolve));
    }

    /// The value of `key` of `[host]` in one word; empty if it has none.
    pub(crate) fn host_word(&self, key: &str) -> String {
        self.host.value(key).map(Value::word).unwrap_or_default()
    }

    /// Reads and checks a scenario file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(path: &Path, sets: &[String], registry: &Registry) -> Result<Self, Diagnostics> {
        Self::check(Input::read(path, sets)?, registry)
    }

    /// Checks a scenario.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn check(input: Input, registry: &Registry) -> Result<Self, Diagnostics> {
        let mut sources = vec![input.source];
        let mut root = match document::parse(&sources[0], 0) {
            Ok(root) => root,
            Err(list) => return Err(Diagnostics { sources, list }),
        };
        let mut notes = Vec::new();
        if let Some(trace) = &input.trace {
            notes.extend(replace_workload(&mut root));
            set_trace(&mut root, trace, &mut sources)?;
        }
        for set in &input.sets {
            document::apply_set(&mut root, set, &mut sources)?;
        }
        let mut checker = Checker::new(registry);
        let scenario = check_root(&mut checker, &root, input.base, &mut sources);
        match scenario {
            Some(mut scenario) if checker.problems.is_empty() => {
                scenario.resolve_classes();
                (scenario.sources, scenario.notes) = (sources, notes);
                Ok(scenario)
            }
            _ => Err(Diagnostics { sources, list: checker.problems }),
        }
    }

    /// Checks a scenario of which only the system is used: its requests come from outside
    /// ([`crate::session`]), so that a workload is ignored and may be missing.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn check_system(mut input: Input, registry: &Registry) -> Result<Self, Diagnostics> {
        input.trace = Some(PathBuf::from(OUTSIDE));
        let mut scenario = Self::check(input, registry)?;
        scenario.notes.retain(|note| !note.starts_with("--trace"));
        Ok(scenario)
    }

    /// The scenario as the workload `tenant` of several sees it: with that as its only one.
    pub(crate) fn seen_by(&self, tenant: &Tenant) -> Self {
        let mut view = self.clone();
        view.tenants.clear();
        view.source = tenant.source.clone();
        view.workload = tenant.settings.clone();
        view.workload_key = format!("workload.{}", tenant.name);
        view.stream.clone_from(&tenant.stream);
        if let Some(mode) = tenant.settings.value("mode") {
            view.host.set("mode", mode.clone());
        }
        view
    }

    /// The scenario with one of several workloads, which submits the same requests as among them.
    pub fn alone(&self, at: usize) -> Self {
        Self { tenants: vec![self.tenants[at].clone()], ..self.clone() }
    }

    /// The path of the trace; empty for a generator.
    pub fn trace_path(&self) -> PathBuf {
        let trace = self.source.trace.as_ref();
        trace.map_or_else(PathBuf::new, |trace| self.base.join(trace))
    }

    /// Checks that several runs can read its traces.
    ///
    /// # Errors
    /// A trace that can be read only once, such as a pipe.
    pub fn check_repeatable(&self) -> Result<(), Diagnostics> {
        let of_tenants = self.tenants.iter().map(|tenant| &tenant.source);
        let traces = [&self.source].into_iter().chain(of_tenants).flat_map(|it| &it.trace);
        let mut paths = traces.map(|trace| self.base.join(trace));
        let is_stream =
            |path: &PathBuf| path.metadata().is_ok_and(|about| !about.is_file() && !about.is_dir());
        paths.find(is_stream).map_or(Ok(()), |path| {
            let path = path.display();
            Err(Diagnostics::single(format!(
                "{path}: several runs need this trace, and it can be read only once; save it to a \
                 file"
            )))
        })
    }

    /// All checked tables, each with its path and the declarations of some of its keys.
    pub(crate) fn tables(&self) -> Vec<(String, &Settings, &'static [Param])> {
        let run = [("run".to_owned(), &self.run_keys, RunSettings::PARAMS)];
        let host = HOST.iter().map(|list| ("host".to_owned(), &self.host, *list));
        let workload = WORKLOAD.iter().map(|list| ("workload".to_owned(), &self.workload, *list));
        let tenants = self.tenants.iter().flat_map(|tenant| {
            let key = format!("workload.{}", tenant.name);
            tenants::TENANT.iter().map(move |list| (key.clone(), &tenant.settings, *list))
        });
        let components = self.components.iter().map(|component| {
            let path = format!("component.{}", component.name);
            (path, &component.settings, component.description.params)
        });
        run.into_iter().chain(host).chain(workload).chain(tenants).chain(components).collect()
    }

    /// The registered entries that have a part in the run, each with its category: kinds of
    /// components, and the entries that keys with an effect choose.
    pub fn entries(&self, registry: &Registry) -> Vec<(&'static str, Description)> {
        let kinds = self.components.iter().map(|it| (ComponentEntry::CATEGORY, it.description));
        let tables = self.tables();
        let chosen = tables.iter().flat_map(|(_, settings, params)| {
            ineffective::chosen_entries(settings, params, registry)
        });
        let described = chosen.filter_map(|(category, name)| {
            let entry = registry.descriptions(category).find(|it| it.name == name)?;
            Some((category, entry))
        });
        kinds.chain(described).collect()
    }

    /// The seed of the run.
    pub fn seed(&self) -> u64 {
        self.run.seed
    }
}

fn check_root(
    checker: &mut Checker<'_>,
    root: &Table,
    base: PathBuf,
    sources: &mut Vec<SourceText>,
) -> Option<Scenario> {
    checker.settings(root, &[], TOP, "", None);
    let title = match root.get("title") {
        Some(item) => text(checker, item, "title").unwrap_or_default(),
        None => Path::new(&sources[0].name)
            .file_stem()
            // As in strings of a scenario: no control characters.
            .map_or_else(
                || "scenario".to_owned(),
                |stem| stem.to_string_lossy().replace(char::is_control, "\u{fffd}"),
            ),
    };
    let run_keys = section(checker, root, "run", &[RunSettings::PARAMS]);
    faults::check(checker, &run_keys);
    let is_given = |key| run_keys.value(key).is_some_and(|value| value.word() != "0");
    if is_given("warmup_requests") && is_given("warmup_time") {
        let message = "give either `warmup_requests` or `warmup_time`, not both".to_owned();
        checker.problem(root.get("run").map(|item| &item.span), "run", message, None);
    }
    let host = section(checker, root, "host", HOST);
    let tables = tenants::tables(root);
    tenants::check_host(checker, root, &host, tables.is_some());
    let tenants = tables.as_ref().map_or(Vec::new(), |tables| tenants::check(checker, tables));
    let workload = match tables {
        Some(_) => Settings::default(),
        None => workload(checker, root),
    };
    let (components, system) = components::check(checker, root, &base, sources)?;
    let name = sources[0].name.clone();
    // Settings with problems may lack values.
    let run = checker.problems.is_empty().then(|| RunSettings::from_settings(&run_keys))?;
    let source = match tenants.first() {
        Some(tenant) => SourceSettings { generator: None, trace: None, ..tenant.source.clone() },
        None => SourceSettings::from_settings(&workload),
    };
    Some(Scenario {
        title,
        name,
        run,
        run_keys,
        source,
        workload,
        tenants,
        workload_key: "workload".to_owned(),
        stream: "workload".to_owned(),
        host,
        components,
        system,
        base,
        sources: Vec::new(),
        notes: Vec::new(),
    })
}

/// Removes the `[workload]` of a scenario that has a source of requests, and returns a note about
/// its other keys, which describe how to replay that source. Without a source the keys apply to
/// the trace of the command line.
fn replace_workload(root: &mut Table) -> Option<String> {
    if tenants::tables(root).is_some() {
        root.remove("workload");
        if let Some(host) = root.table_mut("host") {
            tenants::ARBITRATION.iter().for_each(|key| drop(host.remove(key)));
        }
        return Some("--trace replaces all workloads of the scenario".to_owned());
    }
    let Some(Item { value: Datum::Table(table), .. }) = root.get("workload") else { return None };
    if table.get("trace").is_none() && table.get("generator").is_none() {
        return None;
    }
    let keys = table.iter().map(|(key, ..)| key);
    let gone: Vec<String> = keys
        .filter(|key| !["trace", "generator", "format"].contains(key))
        .map(|key| format!("`{key}`"))
        .collect();
    root.remove("workload");
    (!gone.is_empty()).then(|| {
        format!(
            "--trace replaces the whole [workload]: {} {} ignored; to apply a key to the trace, \
             add --set workload.KEY=VALUE",
            gone.join(", "),
            if gone.len() == 1 { "is" } else { "are" }
        )
    })
}

/// Makes `trace` what is replayed.
fn set_trace(
    root: &mut Table,
    trace: &Path,
    sources: &mut Vec<SourceText>,
) -> Result<(), Diagnostics> {
    let path = std::path::absolute(trace)
        .map_err(|error| Diagnostics::single(format!("--trace {}: {error}", trace.display())))?;
    let quoted = toml::Value::from(path.to_string_lossy().into_owned());
    document::apply_set(root, &format!("workload.trace={quoted}"), sources)
}

fn text(checker: &mut Checker<'_>, item: &Item, key: &str) -> Option<String> {
    if let Datum::Text(text) = &item.value {
        return Some(text.clone());
    }
    let message = format!("expected a string, found {}", item.value.noun());
    checker.problem(Some(&item.span), key, message, None);
    None
}

fn section(
    checker: &mut Checker<'_>,
    root: &Table,
    key: &str,
    groups: &[&'static [Param]],
) -> Settings {
    let empty = Table::default();
    let (table, span): (&Table, Option<&Span>) = match root.get(key) {
        Some(item) => match &item.value {
            Datum::Table(table) => (table, Some(&item.span)),
            other => {
                let message = format!("expected a table, found {}", other.noun());
                checker.problem(Some(&item.span), key, message, None);
                return Settings::default();
            }
        },
        None => (&empty, None),
    };
    checker.settings(table, groups, &[], key, span)
}

fn workload(checker: &mut Checker<'_>, root: &Table) -> Settings {
    let empty = Table::default();
    match root.get("workload") {
        Some(Item { value: Datum::Table(table), span }) => {
            tenants::check_mixed(checker, table);
            source::check(checker, table, Some(span), "workload", WORKLOAD)
        }
        Some(_) => section(checker, root, "workload", WORKLOAD),
        None => source::check(checker, &empty, None, "workload", WORKLOAD),
    }
}
