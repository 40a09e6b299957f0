//! Every registered translation layer through the conformance suite.

use hybridsim_engine::param::{Kind, Settings, Value};
use hybridsim_flash::array::ProgramOrder;
use hybridsim_flash::conformance::{Subject, check};
use hybridsim_flash::ftl::{self, FtlEntry};
use hybridsim_flash::{defaults, gc};

fn subject<'a>(
    entry: FtlEntry,
    settings: &'a Settings,
    registry: &'a hybridsim_engine::registry::Registry,
) -> Subject<'a> {
    Subject { entry, settings, registry, order: ProgramOrder::Sequential }
}

#[test]
fn every_translation_layer_conforms_with_every_choice_and_policy() {
    let registry = defaults::registry();
    for entry in ftl::ENTRIES {
        let plain = defaults::settings(entry.description.params, &registry);
        let mut variants = vec![plain.clone()];
        for param in entry.description.params {
            match param.kind {
                Kind::Choice(names) => variants
                    .extend(names.iter().map(|name| plain.clone().and(param.name, text(name)))),
                Kind::Plug("gc-policy") => variants.extend(gc::ENTRIES.iter().map(|policy| {
                    let plug = defaults::plug("gc-policy", policy.description.name, &registry);
                    plain.clone().and(param.name, plug)
                })),
                _ => {}
            }
        }
        for (number, settings) in variants.iter().enumerate() {
            let subject = subject(*entry, settings, &registry);
            let coverage = check(&subject, 80, number as u64)
                .unwrap_or_else(|failure| panic!("{}: {failure}", entry.description.name));
            assert!(coverage.ran > 25 && coverage.refused > 5, "{coverage:?}");
            assert!(coverage.worn_out > 3 && coverage.erases > 1_000, "{coverage:?}");
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
    for policy in ["greedy", "fifo"] {
        let mixed = mixed.clone().and("gc", defaults::plug("gc-policy", policy, &registry));
        for low in [1, 3] {
            for settings in [&mixed, &plain] {
                let settings = settings.clone().and("gc_free_blocks", Value::Count(low));
                let subject = subject(ftl::page::ENTRY, &settings, &registry);
                check(&subject, 80, 77).unwrap_or_else(|failure| panic!("{failure}"));
            }
        }
    }
}
