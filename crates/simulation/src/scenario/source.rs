//! The source of requests of a workload: a trace or a generator.

use hybridsim_config::check::Checker;
use hybridsim_config::diagnostic::Span;
use hybridsim_config::document::Table;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{EntryChoice, Kind, Param, Settings};

hybridsim_config::params! {
    /// The source of requests in the `[workload]` table; the workload crate declares the options
    /// of replays.
    pub struct SourceSettings {
        pub trace: Option<String> = Kind::Text, optional,
            "A trace file, relative to the scenario. Its format is detected from its content.";
        pub format: Option<EntryChoice> = Kind::Entry("trace-format"), optional
            needs &[Needs::given("trace")],
            "The trace's format, where its content is ambiguous or options are needed.";
        pub skip_bad_lines: bool = Kind::Flag, default "false" needs &[Needs::given("trace")],
            "Leave out records of the trace that cannot be read, and report their number, instead \
             of ending the run at the first.";
        pub generator: Option<EntryChoice> = Kind::Entry("generator"), optional,
            "A generator of requests, instead of a trace.";
    }
}

/// The declared keys of `[workload]`.
pub(crate) const WORKLOAD: &[&[Param]] =
    &[SourceSettings::PARAMS, hybridsim_workload::shape::PARAMS];

/// Checks the table `key`, which describes a source of requests.
pub(super) fn check(
    checker: &mut Checker<'_>,
    table: &Table,
    span: Option<&Span>,
    key: &str,
    groups: &[&'static [Param]],
) -> Settings {
    let settings = checker.settings(table, groups, &[], key, span);
    match (settings.has("trace"), settings.has("generator")) {
        (true, true) => {
            let message = "give either `trace` or `generator`, not both".to_owned();
            checker.problem(span, key, message, None);
        }
        // One that is wrong has been reported.
        (false, false) if ["trace", "generator"].iter().any(|key| table.get(key).is_some()) => {}
        (false, false) => {
            let help = format!(
                "write `trace = \"FILE\"` or `generator = \"...\"` under [{key}], or pass --trace \
                 FILE"
            );
            let message = "has no source of requests".to_owned();
            checker.problem(span, key, message, Some(help));
        }
        (false, true) => replay_keys(checker, table, &settings, key),
        (true, false) => {}
    }
    settings
}

/// Rejects replay options of traces beside a generator, which would ignore all but `loops`.
fn replay_keys(checker: &mut Checker<'_>, table: &Table, settings: &Settings, path: &str) {
    let defaults = checker.settings(&Table::default(), WORKLOAD, &[], path, None);
    let value = |of: &Settings, key: &str| {
        of.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone())
    };
    let is_replay = |key: &str| {
        let own = hybridsim_host::tenants::PARAMS;
        !["generator", "loops"].contains(&key) && !own.iter().any(|param| param.name == key)
    };
    for (key, span, _) in table.iter().filter(|(key, ..)| is_replay(key)) {
        // Resolved scenarios spell out every default.
        if value(settings, key) != value(&defaults, key) {
            let message = "is a replay option of traces, and this workload is generated".to_owned();
            let help = "set it in the generator if that has such a key (see `hybridsim explain`), \
                        or remove it";
            checker.problem(Some(span), &format!("{path}.{key}"), message, Some(help.into()));
        }
    }
}
