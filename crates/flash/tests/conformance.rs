//! The conformance suite on every registered FTL.

use hybridsim_config::param::{EntryChoice, Kind, Param, Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_flash::array::ProgramOrder;
use hybridsim_flash::conformance::{Subject, check};
use hybridsim_flash::defaults;
use hybridsim_flash::ftl::{self, FtlEntry, REFRESH};

const ORDERS: [ProgramOrder; 3] =
    [ProgramOrder::Sequential, ProgramOrder::Ascending, ProgramOrder::Any];

fn subject<'a>(entry: FtlEntry, settings: &'a Settings, registry: &'a Registry) -> Subject<'a> {
    Subject { entry, settings, registry, order: ProgramOrder::Sequential, saves: true }
}

/// The defaults with one choice or policy changed, which the builder must accept.
fn choices(params: &[Param], plain: &Settings, registry: &Registry) -> Vec<Settings> {
    let mut variants = vec![plain.clone()];
    for param in params {
        match param.kind {
            Kind::Choice(names) => {
                variants.extend(names.iter().map(|name| plain.clone().and(param.name, text(name))))
            }
            Kind::Entry(category) => {
                variants.extend(registry.descriptions(category).map(|entry| {
                    plain
                        .clone()
                        .and(param.name, eager(defaults::entry(category, entry.name, registry)))
                }))
            }
            _ => {}
        }
    }
    variants
}

/// The choice with a low threshold, if it has one: the cases are too short for the usual ones.
fn eager(mut choice: Value) -> Value {
    if let Value::Entry(EntryChoice { settings, .. }) = &mut choice
        && settings.has("threshold")
    {
        settings.set("threshold", Value::Count(1));
    }
    choice
}

/// The defaults with one number or flag changed: small tables overflow on small devices. The
/// builder may reject them, as they may contradict another default.
fn extremes(params: &[Param], plain: &Settings) -> Vec<Settings> {
    let mut variants = Vec::new();
    for param in params {
        let values = match param.kind {
            Kind::Count { min, max } => {
                [0, 1, 2].map(|more| Value::Count(min.saturating_add(more).min(max))).to_vec()
            }
            Kind::Flag => [false, true].map(Value::Flag).to_vec(),
            Kind::Number { min, max } => [min, max].map(Value::Number).to_vec(),
            _ => Vec::new(),
        };
        variants.extend(values.into_iter().map(|value| plain.clone().and(param.name, value)));
    }
    variants
}

#[test]
fn every_ftl_conforms_with_every_choice_policy_and_program_order() {
    let registry = defaults::registry();
    for entry in ftl::ENTRIES {
        let params = entry.description.params;
        let plain = defaults::settings(params, &registry);
        // Cells of several bits need blocks of several pages.
        let least = if plain.has("bits_per_cell") { 40 } else { 45 };
        for (number, settings) in choices(params, &plain, &registry).iter().enumerate() {
            for order in ORDERS {
                let subject = Subject { order, ..subject(*entry, settings, &registry) };
                let name = format!("{} on {order:?} pages", entry.description.name);
                let coverage = check(&subject, 160, number as u64)
                    .unwrap_or_else(|failure| panic!("{name}: {failure}"));
                assert!(coverage.ran > least, "{name}: {coverage:?}");
                assert!(
                    coverage.worn_out > 3 && coverage.erases > 1_000,
                    "{name}: the cases did not wear it out: {coverage:?}"
                );
                let refreshes = entry.provides.contains(&REFRESH);
                assert_eq!(coverage.refreshed > 20, refreshes, "{name}: {coverage:?}");
            }
        }
    }
}

#[test]
fn every_ftl_conforms_with_extreme_parameters() {
    let registry = defaults::registry();
    for entry in ftl::ENTRIES {
        let params = entry.description.params;
        let plain = defaults::settings(params, &registry);
        for settings in extremes(params, &plain) {
            let subject = subject(*entry, &settings, &registry);
            check(&subject, 40, 5).unwrap_or_else(|failure| {
                panic!("{} with {settings:?}: {failure}", entry.description.name)
            });
        }
    }
}

fn text(name: &str) -> Value {
    Value::Text(name.to_owned())
}

#[test]
fn page_mapping_conforms_with_one_mixed_log_and_a_low_mark() {
    let registry = defaults::registry();
    let plain = defaults::settings(ftl::page::ENTRY.description.params, &registry);
    let mixed =
        plain.clone().and("gc_pace", text("blocking")).and("gc_separate", Value::Flag(false));
    let choices = ["greedy", "fifo"].map(|name| ("gc", "gc-policy", name)).into_iter();
    let choices =
        choices.chain(["static", "dual-pool"].map(|name| ("wear", "wear-levelling", name)));
    for (param, category, name) in choices.chain([("placement", "placement", "write-count")]) {
        let choice = eager(defaults::entry(category, name, &registry));
        for low in [1, 3] {
            for settings in [&mixed, &plain] {
                let settings = (settings.clone().and(param, choice.clone()))
                    .and("gc_idle_free_blocks", Value::Count(low + 2))
                    .and("gc_free_blocks", Value::Count(low));
                let subject = subject(ftl::page::ENTRY, &settings, &registry);
                check(&subject, 80, 77).unwrap_or_else(|failure| panic!("{failure}"));
            }
        }
    }
}

#[test]
fn page_mapping_conforms_with_placement_handles() {
    let registry = defaults::registry();
    let plain = defaults::settings(ftl::page::ENTRY.description.params, &registry);
    let mixed =
        plain.clone().and("gc_pace", text("blocking")).and("gc_separate", Value::Flag(false));
    for isolation in ["initially", "persistently"] {
        for settings in [&mixed, &plain] {
            for (groups, wear) in [(1, "none"), (1, "static"), (1, "dual-pool"), (2, "none")] {
                let mut choice = defaults::entry("placement", "handles", &registry);
                if let Value::Entry(entry) = &mut choice {
                    entry.settings = (entry.settings.clone())
                        .and("isolation", text(isolation))
                        .and("reclaim_groups", Value::Count(groups));
                }
                let wear = eager(defaults::entry("wear-levelling", wear, &registry));
                let settings = settings.clone().and("placement", choice).and("wear", wear);
                let subject = subject(ftl::page::ENTRY, &settings, &registry);
                let coverage =
                    check(&subject, 120, 5).unwrap_or_else(|failure| panic!("{failure}"));
                // Devices of an odd number of dies are refused.
                let ran = if groups == 1 { 20 } else { 10 };
                assert!(coverage.ran > ran && coverage.erases > 500, "{isolation}: {coverage:?}");
            }
        }
    }
}

/// In one of these cases background work fails after it has copied data.
#[test]
fn background_work_that_fails_leaves_copied_data_mapped() {
    let registry = defaults::registry();
    let settings = defaults::settings(ftl::dftl::ENTRY.description.params, &registry)
        .and("cache_entries", Value::Count(2));
    let subject = subject(ftl::dftl::ENTRY, &settings, &registry);
    let coverage = check(&subject, 60, 90_431_011).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(coverage.worn_out > 3, "{coverage:?}");
}
