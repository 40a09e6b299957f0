//! Several workloads that share one system: the tables `[workload.NAME]`.

use super::source::{self, SourceSettings, WORKLOAD};
use hybridsim_config::check::Checker;
use hybridsim_config::document::{Datum, Item, Table};
use hybridsim_config::param::{Param, Settings};
use hybridsim_host::tenants;

/// The declared keys of `[workload.NAME]`.
pub(crate) const TENANT: &[&[Param]] = &[WORKLOAD[0], WORKLOAD[1], tenants::PARAMS];

/// More than this would be a sweep.
const TENANTS_MAX: usize = 256;

/// The keys of `[host]` that only several workloads have.
pub(super) const ARBITRATION: [&str; 2] = ["arbitration", "arbitration_burst"];

/// A workload of several.
#[derive(Clone, Debug)]
pub struct Tenant {
    /// The name in results.
    pub name: String,
    pub(crate) stream: String,
    /// The source of requests.
    pub source: SourceSettings,
    /// The checked table.
    pub settings: Settings,
}

/// Whether `[workload]` declares `name`, so that no workload can have it for a name.
fn is_key(name: &str) -> bool {
    WORKLOAD.iter().copied().flatten().any(|param| param.name == name)
}

/// The tables of several workloads; `None` where `[workload]` describes one.
pub(super) fn tables(root: &Table) -> Option<Vec<(&str, &Item, &Table)>> {
    let Some(Item { value: Datum::Table(table), .. }) = root.get("workload") else { return None };
    let mut tables = Vec::new();
    for (name, _, item) in table.iter() {
        match &item.value {
            Datum::Table(table) if !is_key(name) => tables.push((name, item, table)),
            _ => return None,
        }
    }
    Some(tables).filter(|tables| !tables.is_empty())
}

/// Reports keys of `[workload]` beside tables of several workloads.
pub(super) fn check_mixed(checker: &mut Checker<'_>, table: &Table) {
    let is_workload = |name: &str, item: &Item| match &item.value {
        Datum::Table(table) if !is_key(name) => {
            table.get("trace").is_some() || table.get("generator").is_some()
        }
        _ => false,
    };
    if let Some((name, ..)) = table.iter().find(|(name, _, item)| is_workload(name, item)) {
        for (key, span, _) in table.iter().filter(|(key, _, item)| !is_workload(key, item)) {
            let message = format!("stands beside [workload.{name}], one of several workloads");
            let help = format!("move it into the tables it is for: workload.{name}.{key}");
            checker.problem(Some(span), &format!("workload.{key}"), message, Some(help));
        }
    }
}

pub(super) fn check(checker: &mut Checker<'_>, tables: &[(&str, &Item, &Table)]) -> Vec<Tenant> {
    if tables.len() > TENANTS_MAX {
        let message = format!("at most {TENANTS_MAX} workloads share a system");
        checker.problem(Some(&tables[TENANTS_MAX].1.span), "workload", message, None);
    }
    let one = |(name, item, table): &(&str, &Item, &Table)| {
        let key = format!("workload.{name}");
        let settings = source::check(checker, table, Some(&item.span), &key, TENANT);
        // One workload alone draws the numbers it draws as `[workload]`.
        let stream = if tables.len() == 1 { "workload".to_owned() } else { key };
        (name.to_string(), stream, settings)
    };
    let checked: Vec<_> = tables.iter().map(one).collect();
    if !checker.problems.is_empty() {
        // Settings with problems may lack values.
        return Vec::new();
    }
    let tenant = |(name, stream, settings): (String, String, Settings)| {
        let source = SourceSettings::from_settings(&settings);
        Tenant { name, stream, source, settings }
    };
    checked.into_iter().map(tenant).collect()
}

/// Checks `[host]` against the number of workloads.
pub(super) fn check_host(checker: &mut Checker<'_>, root: &Table, host: &Settings, shared: bool) {
    let Some(Item { value: Datum::Table(table), span }) = root.get("host") else { return };
    if shared && host.value("scheduler").is_some_and(|it| it.word() != "fcfs") {
        let message = "orders one queue, and each of several workloads has its own".to_owned();
        let help = "remove it, or choose `arbitration` and weights".to_owned();
        checker.problem(Some(span), "host.scheduler", message, Some(help));
    }
    for key in ARBITRATION {
        if let Some(item) = table.get(key).filter(|_| !shared) {
            let message = "chooses between the queues of several workloads".to_owned();
            let help = "remove it, or write [workload.NAME] tables".to_owned();
            checker.problem(Some(&item.span), &format!("host.{key}"), message, Some(help));
        }
    }
}
