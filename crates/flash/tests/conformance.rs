//! Every registered translation layer through the conformance suite.

use hybridsim_config::param::{EntryChoice, Kind, Param, Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_flash::array::ProgramOrder;
use hybridsim_flash::conformance::{Subject, check};
use hybridsim_flash::defaults;
use hybridsim_flash::ftl::{self, FtlEntry};

const ORDERS: [ProgramOrder; 3] =
    [ProgramOrder::Sequential, ProgramOrder::Ascending, ProgramOrder::Any];

/// Layers that start on any device with a page to offer: in need they rewrite a block in place.
const NEEDS_NO_SPARE: [&str; 4] = ["anand", "fmax", "in-place", "raw"];

fn subject<'a>(entry: FtlEntry, settings: &'a Settings, registry: &'a Registry) -> Subject<'a> {
    Subject { entry, settings, registry, order: ProgramOrder::Sequential, saves: true }
}

/// The defaults with one choice or policy changed: none of them may be impossible.
fn choices(params: &[Param], plain: &Settings, registry: &Registry) -> Vec<Settings> {
    let mut variants = vec![plain.clone()];
    for param in params {
        match param.kind {
            Kind::Choice(names) => {
                variants.extend(names.iter().map(|name| plain.clone().and(param.name, text(name))))
            }
            Kind::Entry(slot) => variants.extend(registry.descriptions(slot).map(|entry| {
                plain.clone().and(param.name, eager(defaults::plug(slot, entry.name, registry)))
            })),
            _ => {}
        }
    }
    variants
}

/// The plug with a low threshold, if it has one: the cases are too short for the usual ones.
fn eager(mut plug: Value) -> Value {
    if let Value::Entry(EntryChoice { settings, .. }) = &mut plug
        && settings.has("threshold")
    {
        settings.set("threshold", Value::Count(1));
    }
    plug
}

/// The defaults with one number or flag changed: small tables overflow on small devices. The
/// builder may refuse them, as they may contradict another default.
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
fn every_translation_layer_conforms_with_every_choice_policy_and_program_order() {
    let registry = defaults::registry();
    for entry in ftl::ENTRIES {
        let params = entry.description.params;
        let plain = defaults::settings(params, &registry);
        for (number, settings) in choices(params, &plain, &registry).iter().enumerate() {
            for order in ORDERS {
                let subject = Subject { order, ..subject(*entry, settings, &registry) };
                let name = format!("{} on {order:?} pages", entry.description.name);
                let coverage = check(&subject, 160, number as u64)
                    .unwrap_or_else(|failure| panic!("{name}: {failure}"));
                let refusing = !NEEDS_NO_SPARE.contains(&entry.description.name);
                assert!(coverage.ran > 45, "{name}: {coverage:?}");
                assert_eq!(coverage.refused > 10, refusing, "{name}: {coverage:?}");
                assert!(
                    coverage.worn_out > 3 && coverage.erases > 1_000,
                    "{name}: the cases did not wear it out: {coverage:?}"
                );
            }
        }
    }
}

#[test]
fn every_translation_layer_conforms_with_extreme_parameters() {
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
    let plugs = ["greedy", "fifo"].map(|name| ("gc", "gc-policy", name)).into_iter();
    let plugs = plugs.chain(["static", "dual-pool"].map(|name| ("wear", "wear-levelling", name)));
    for (param, slot, name) in plugs.chain([("hot_cold", "hot-cold", "write-count")]) {
        let plug = eager(defaults::plug(slot, name, &registry));
        for low in [1, 3] {
            for settings in [&mixed, &plain] {
                let settings = (settings.clone().and(param, plug.clone()))
                    .and("gc_idle_free_blocks", Value::Count(low + 2))
                    .and("gc_free_blocks", Value::Count(low));
                let subject = subject(ftl::page::ENTRY, &settings, &registry);
                check(&subject, 80, 77).unwrap_or_else(|failure| panic!("{failure}"));
            }
        }
    }
}

/// In one of these cases a device gives up at background work that has moved data already.
#[test]
fn what_background_work_moved_before_it_gave_up_is_where_it_was_moved() {
    let registry = defaults::registry();
    let settings = defaults::settings(ftl::dftl::ENTRY.description.params, &registry)
        .and("cache_entries", Value::Count(2));
    let subject = subject(ftl::dftl::ENTRY, &settings, &registry);
    let coverage = check(&subject, 60, 90_431_011).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(coverage.worn_out > 3, "{coverage:?}");
}
