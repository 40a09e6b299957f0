//! Warnings of a run: what the user gave that had no effect, and results to read with care.

use crate::build;
use crate::scenario::{Scenario, ScenarioComponent, Tenant};
use crate::zones;
use hybridsim_config::ineffective;
use hybridsim_config::param::{Kind, Param, Settings, Value};
use hybridsim_config::params::field;
use hybridsim_config::registry::Registry;
use hybridsim_engine::zone_table::ZONE_SECTORS;
use hybridsim_engine::{ComponentInfo, ComponentTree, Placements};
use hybridsim_observe::RunResults;
use hybridsim_observe::results::Component;
use hybridsim_ssd::device::EFFECTIVE_OVER_PROVISIONING;
use std::collections::BTreeMap;

/// Reads of unwritten data above this share cause a warning.
const UNWRITTEN_SHARE_MAX: f64 = 0.2;

/// Requests lost to power failures above this share cause a warning.
const LOST_SHARE_MAX: f64 = 0.1;

/// Keys that the user gave and that have no effect on the run; called once the system is built.
pub fn without_effect(scenario: &Scenario, registry: &Registry) -> Vec<String> {
    let keys = scenario.tables().into_iter().flat_map(|(path, settings, params)| {
        ineffective::without_effect(settings, params, registry, &path)
    });
    keys.map(|(key, why)| format!("{key} {why}: it changes nothing in this run")).collect()
}

/// Keys that the user gave and that have no effect where flash operations are counted without a
/// clock.
pub fn without_effect_untimed(scenario: &Scenario, registry: &Registry) -> Vec<String> {
    let host: Vec<String> = scenario
        .host
        .iter()
        .filter(|(name, _)| scenario.host.is_given(name))
        .map(|(name, _)| format!("host.{name}"))
        .collect();
    let mut found = without_effect(scenario, registry);
    found.retain(|text| !host.iter().any(|key| text.starts_with(key.as_str())));
    let mut add = |key: &str, why| {
        found.push(format!("{key}: {why}: it changes nothing in this run"));
    };
    if !host.is_empty() {
        add(&host.join(", "), "requests are served in their order, without a host");
    }
    for component in &scenario.components {
        if component.settings.is_given("idle_after") {
            add(&format!("component.{}.idle_after", component.name), "there is no idle time");
        }
        if component.settings.value("errors").is_some_and(|it| it.word() != "none") {
            add(&format!("component.{}.errors", component.name), "data have no age");
        }
    }
    for key in ["times", "time_scale"].iter().filter(|key| scenario.workload.is_given(key)) {
        add(&format!("workload.{key}"), "there are no times");
    }
    if !scenario.run.warmup_time.is_zero() {
        add("run.warmup_time", "there is no time; use run.warmup_requests");
    }
    found
}

/// Weights of workloads that are served in turn.
pub fn unused_weights(scenario: &Scenario) -> Option<String> {
    if scenario.host_word("arbitration") == "weighted-round-robin" {
        return None;
    }
    let weighted = |tenant: &&Tenant| field::<u64>(&tenant.settings, "weight") > 1;
    let names: Vec<_> =
        scenario.tenants.iter().filter(weighted).map(|tenant| tenant.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "the weight of {} matters to the fairness index only: requests are taken in turn; \
             choose `arbitration = \"weighted-round-robin\"` under [host] to serve by weight",
            names.join(", ")
        )
    })
}

/// An SSD whose FTL leaves less than this share of the stated over-provisioning causes a warning.
const SPARE_LEFT_MIN: f64 = 0.8;

/// The warning about a component with these constants whose FTL keeps so many blocks for itself
/// that little of the stated over-provisioning is left.
pub fn small_spare(component: &ScenarioComponent, constants: &[(&str, f64)]) -> Option<String> {
    let constant = |name: &str| constants.iter().find(|(it, _)| *it == name).map(|(_, it)| *it);
    let left = constant(EFFECTIVE_OVER_PROVISIONING)?;
    let stated = component.settings.number_opt("over_provisioning")?;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    (left < SPARE_LEFT_MIN * stated).then(|| {
        format!(
            "component.{}: of {} over-provisioning, {} is left for garbage collection, as the FTL \
             keeps some blocks of each plane for itself: write amplification is that of a drive \
             with so much less; raise blocks_per_plane",
            component.name,
            percent(stated),
            percent(left)
        )
    })
}

/// As [`small_spare`], for every component of `system`.
pub fn small_spares(scenario: &Scenario, system: &ComponentTree) -> Vec<String> {
    let paths = build::paths(scenario);
    let named = paths.iter().map(String::as_str).zip(&scenario.components).collect();
    let mut found = Vec::new();
    add_small_spares(&named, system, &mut found);
    found
}

fn add_small_spares(
    named: &BTreeMap<&str, &ScenarioComponent>,
    node: &ComponentTree,
    found: &mut Vec<String>,
) {
    let own = named.get(node.path.as_str());
    let constants = node.component.info().constants;
    found.extend(own.and_then(|component| small_spare(component, &constants)));
    node.children.iter().for_each(|child| add_small_spares(named, child, found));
}

/// Adds the warnings known after a run.
pub fn add(
    scenario: &Scenario,
    registry: &Registry,
    components: &[(String, ComponentInfo)],
    failed: u64,
    results: &mut RunResults,
) {
    let mut warnings = idle_policies(scenario, components);
    // A key that cannot have an effect has been reported.
    let keys: Vec<_> = results.warnings.iter().filter_map(|it| it.split(' ').next()).collect();
    warnings.retain(|it| !keys.iter().any(|key| it.split(':').next() == Some(key)));
    let erased = |path: &str| {
        let flash = results.components.get(path).and_then(|it| it.flash.as_ref());
        flash.is_some_and(|flash| flash.erases > 0)
    };
    warnings.extend(idle_flash_policies(scenario, registry, &erased));
    warnings.extend(placement(scenario));
    warnings.extend(unwritten_reads(scenario, results));
    warnings.extend(fresh_drives(scenario, results));
    warnings.extend(failed_requests(failed, results));
    warnings.extend(lost_requests(scenario, results));
    results.warnings.extend(warnings);
}

/// A policy that the user gave and that made no decision, or a choice without effect.
fn idle_policy(key: &str, settings: &Settings, param: &str, why: &str) -> Option<String> {
    let given = settings.is_given(param);
    if let Some((_, Value::Text(choice))) = settings.iter().find(|(name, _)| *name == param) {
        return given
            .then(|| format!("{key}.{param}: `{choice}` had no effect in this run: {why}"));
    }
    let mut choice = None;
    let mut within = settings;
    for step in param.split('.') {
        choice = within.iter().find_map(|(name, value)| match value {
            Value::Entry(choice) if name == step => Some(choice),
            _ => None,
        });
        within = &choice?.settings;
    }
    let name = settings.is_given(param).then_some(&choice?.name)?;
    Some(format!("{key}.{param}: the policy `{name}` made no decision in this run: {why}"))
}

fn idle_policies(scenario: &Scenario, components: &[(String, ComponentInfo)]) -> Vec<String> {
    let paths = build::paths(scenario);
    let mut found = Vec::new();
    for (path, info) in components {
        // The paths of a machine begin at the host.
        let at = paths.iter().position(|it| it == path);
        let (key, settings) = match at.map(|at| &scenario.components[at]) {
            Some(it) => (format!("component.{}", it.name), &it.settings),
            None => ("host".to_owned(), &scenario.host),
        };
        let idle = info.idle_policies.iter();
        found.extend(idle.filter_map(|(param, why)| idle_policy(&key, settings, param, why)));
    }
    found
}

/// The policies of translation layers, unless the device at their path `erased` a block. Without an
/// erase, garbage collection had no victim to choose
/// and wear levelling nothing to level.
pub fn idle_flash_policies(
    scenario: &Scenario,
    registry: &Registry,
    erased: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for (component, path) in scenario.components.iter().zip(build::paths(scenario)) {
        let Some(choice) = component.settings.iter().find_map(|(name, value)| match value {
            Value::Entry(choice) if name == "ftl" => Some(choice),
            _ => None,
        }) else {
            continue;
        };
        if erased(&path) {
            continue;
        }
        let entry = registry.descriptions("ftl").find(|entry| entry.name == choice.name);
        let policy =
            |param: &&Param| matches!(param.kind, Kind::Entry("gc-policy" | "wear-levelling"));
        let params = entry.map_or(&[][..], |entry| entry.params).iter().filter(policy);
        let key = format!("component.{}", component.name);
        found.extend(params.filter_map(|param| {
            let param = format!("ftl.{}", param.name);
            idle_policy(&key, &component.settings, &param, "no block was erased")
        }));
    }
    found
}

/// The warnings about placement by handle.
pub fn placement(scenario: &Scenario) -> impl Iterator<Item = String> + '_ {
    idle_handles(scenario).into_iter().chain(filled_groups(scenario))
}

/// The warnings about SSDs whose first reclaim groups are filled before the run.
fn filled_groups(scenario: &Scenario) -> impl Iterator<Item = String> + '_ {
    let is_filled = |component: &&ScenarioComponent| {
        let several = Handles::of_component(component).is_some_and(|it| it.placements.groups > 1);
        let precondition = component.settings.value("precondition");
        several && !matches!(precondition, Some(Value::Text(it)) if it == "none")
    };
    scenario.components.iter().filter(is_filled).map(|component| {
        format!(
            "component.{}.precondition fills the first reclaim groups, and leaves over-provisioned \
             space in the last only; write with handles instead, as a warm-up \
             (run.warmup_requests)",
            component.name
        )
    })
}

/// The warning about placement handles of generators that no SSD of the scenario has.
fn idle_handles(scenario: &Scenario) -> Option<String> {
    let generators = scenario.source.generator.iter();
    let all = generators.chain(scenario.tenants.iter().flat_map(|it| &it.source.generator));
    let exists = |handle: u64| {
        let has = |it: Handles| {
            let identifier = u16::try_from(handle).ok();
            identifier.is_some_and(|handle| it.placements.find(handle, u8::BITS).is_some())
        };
        handle == 0 || Handles::all(scenario).any(has)
    };
    let given = all.flat_map(|generator| handles_of(&generator.settings));
    let given = given.filter(|handle| !exists(*handle)).max()?;
    let message = match Handles::of(scenario).map(|it| it.placements.groups) {
        None => "no SSD places data by it (ftl = { kind = \"page\", placement = \"handles\" })",
        Some(1) => "no SSD has as many: raise ftl.placement.handles",
        Some(_) => "no SSD has this reclaim group (its upper bits) and handle (its lower bits)",
    };
    Some(format!("handle = {given} of a generator has no effect: {message}"))
}

/// Placement handles of an SSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handles {
    pub placements: Placements,
    /// Whether the data of each handle are copied to blocks of its own.
    pub isolates_copies: bool,
}

impl Handles {
    /// Those of each SSD that places data by handle.
    fn all(scenario: &Scenario) -> impl Iterator<Item = Self> + '_ {
        scenario.components.iter().filter_map(Self::of_component)
    }

    /// Those of an SSD, if it places data by handle.
    fn of_component(component: &ScenarioComponent) -> Option<Self> {
        let value = |name: &str| component.settings.value(name);
        let count = |name: &str| match value(&format!("ftl.placement.{name}")) {
            Some(Value::Count(count)) => u8::try_from(*count).ok(),
            _ => None,
        };
        let (handles, groups) = (count("handles")?, count("reclaim_groups").unwrap_or(1));
        let isolation = value("ftl.placement.isolation");
        let isolates_copies = matches!(isolation, Some(Value::Text(it)) if it == "persistently");
        Some(Self { placements: Placements { groups, handles }, isolates_copies })
    }

    /// Those of the SSD with the most reclaim groups, and of these with the most handles.
    pub fn of(scenario: &Scenario) -> Option<Self> {
        Self::all(scenario).max_by_key(|it| (it.placements.groups, it.placements.handles))
    }
}

/// The placement handles of a generator and its jobs.
fn handles_of(generator: &Settings) -> Vec<u64> {
    let mut handles = Vec::new();
    if let Some(Value::Count(handle)) = generator.value("handle") {
        handles.push(*handle);
    }
    if let Some(Value::Entries(jobs)) = generator.value("jobs") {
        handles.extend(jobs.iter().flat_map(|job| handles_of(&job.settings)));
    }
    handles
}

/// The warning about requests that the system could not serve.
fn failed_requests(count: u64, results: &RunResults) -> Option<String> {
    (count > 0).then(|| {
        format!(
            "{count} requests failed because the devices could not serve them; statistics include \
             their latencies{}",
            zones::refusals(results)
        )
    })
}

/// The warning when power failures lost so many requests that the rest is a biased sample: requests
/// with long latencies are the most likely to be lost.
fn lost_requests(scenario: &Scenario, results: &RunResults) -> Option<String> {
    let (lost, every) = (results.requests_lost, scenario.run.power_cut_every?);
    let share = lost as f64 / (results.requests + lost).max(1) as f64;
    let remedy = match scenario.host_word("mode").as_str() {
        "open" => "; or replay the workload in a closed loop (host.mode = \"closed\")",
        _ => "",
    };
    (share > LOST_SHARE_MAX).then(|| {
        format!(
            "{lost} requests ({:.0} %) were lost in {} power failures; latencies cover only the \
             others and are too low; make power failures rarer (run.power_cut_every above \
             {every}){remedy}",
            share * 100.0,
            results.power_cuts
        )
    })
}

/// The warning about reads of unwritten data from flash devices: they complete without access to
/// the flash, much faster than on a drive in use.
fn unwritten_reads(scenario: &Scenario, results: &RunResults) -> Option<String> {
    let share = |component: &Component| {
        let flash = component.flash.as_ref()?;
        let found = flash.reads_by_cause.get("host").copied().unwrap_or(0);
        let asked = found + flash.unwritten_reads;
        Some(flash.unwritten_reads as f64 / asked as f64).filter(|_| asked > 0)
    };
    let shares = results.components.iter().filter_map(|(path, it)| Some((path, share(it)?)));
    let much: Vec<_> = shares.filter(|(_, share)| *share > UNWRITTEN_SHARE_MAX).collect();
    let (first, most) = much.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let others = match much.len() - 1 {
        0 => String::new(),
        count => format!(" (and a large share from {count} more)"),
    };
    Some(format!(
        "about {:.0} % of the data read from {first}{others} had never been written, or was \
         trimmed: such reads do not access the flash and are too fast; {}",
        most * 100.0,
        fill_first(scenario, first)
    ))
}

/// The setting that fills the device at `path` before a run.
fn fill_first(scenario: &Scenario, path: &str) -> &'static str {
    let at = build::paths(scenario).iter().position(|it| it == path);
    let params = at.map_or(&[][..], |at| scenario.components[at].description.params);
    match params.iter().any(|param| param.name == "precondition") {
        true => "precondition the drive (key `precondition` of its component)",
        false => {
            "let every block hold data before the run (`premapped = true` of its component), or \
             write the data first"
        }
    }
}

/// Times that random writes of all of a new drive have to write its capacity until the rate of
/// garbage collection is steady: 6 at 7 % over-provisioning and 5 at 28 % (measured with the
/// page-mapped FTL and greedy collection).
const STEADY_AFTER: f64 = 5.0;
/// Times the capacity from which on the writes before then weigh little: the write amplification
/// of 18 times is 8 % below that of the steady state at 28 %, that of 15 times 18 % at 7 %
/// (likewise).
const DILUTED_AFTER: f64 = 16.0;

/// The warnings about write amplification of drives that collected garbage and were so new, when
/// measurement began, that it includes the time before a steady state.
fn fresh_drives(scenario: &Scenario, results: &RunResults) -> Vec<String> {
    let paths = build::paths(scenario);
    let warning = |(component, path): (&ScenarioComponent, &String)| {
        let is_new = component.settings.value("precondition")?.word() == "none";
        let result = results.components.get(path).filter(|_| is_new)?;
        // Zoned devices collect no garbage.
        if result.constants.contains_key(ZONE_SECTORS) {
            return None;
        }
        let flash = result.flash.as_ref().filter(|flash| flash.erases > 0)?;
        let (amplification, by_pages) =
            (flash.write_amplification?, flash.page_write_amplification?);
        let constant = |name: &str| result.constants.get(name).copied();
        let capacity = constant("exported_pages")?;
        let pages = constant("blocks")? * constant("pages_per_block")?;
        // A drive that collects garbage is full: each block was written once more than erased.
        let programs = (flash.erase_count?.mean + 1.0) * pages;
        let before = (programs - flash.programs as f64) / by_pages / capacity;
        let measured = flash.host_programs as f64 / capacity;
        (before < STEADY_AFTER && measured < DILUTED_AFTER).then(|| {
            format!(
                "write amplification of {path}, {amplification:.2}, is that of a new drive, which \
                 was written {measured:.1} times over: that of a drive in use is higher; \
                 precondition it (component.{}.precondition = \"steady\")",
                component.name
            )
        })
    };
    scenario.components.iter().zip(&paths).filter_map(warning).collect()
}
