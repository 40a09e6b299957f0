//! Every key a run can produce stands in `docs/results.md`.

use hybridsim_engine::{
    Cause, Fact, FactSink, FlashAct, FlashUnit, LayerInfo, Lba, NodeId, Op, Part, PowerState,
    SimDuration, SimTime, Stamped,
};
use hybridsim_observe::{Cost, Detail, Ending, Label, Recorder, Warmup};
use serde_json::Value;
use std::collections::BTreeSet;

/// Maps whose keys are names the user or a model gave.
const NAMED: [&str; 4] = ["components", "constants", "custom", "versions"];

/// One node that does everything a node can do.
fn everything() -> Vec<Stamped> {
    let (op, sectors, lba) = (Op::Read, 8, Lba(0));
    let time = SimDuration::from_ns(5);
    let mut facts = vec![
        Fact::Arrived { op, sectors, lba },
        Fact::Spent { op, part: Part::Seek, time },
        Fact::Completed { op, sectors, lba, latency: time },
        Fact::QueueDepth { depth: 1 },
        Fact::Seek { distance: 1, time },
        Fact::FlashProgram { cause: Cause::Host, die: 0 },
        Fact::FlashErase { cause: Cause::Gc, die: 0, block: 0, erases: 1 },
        Fact::Wear { erases: 1, blocks: 1 },
        Fact::FlashBusy {
            unit: FlashUnit::Die(0),
            act: FlashAct::Program,
            cause: Cause::Host,
            begin: SimTime::ZERO,
            end: SimTime::from_ns(9),
        },
        Fact::CacheLookup { op, hits: 1, misses: 1 },
        Fact::DirtyPages { pages: 1 },
        Fact::Custom { name: 0, value: 1 },
    ];
    facts.extend(PowerState::ALL.map(|state| Fact::StateTime { state, time }));
    let stamp = |fact| Stamped { time: SimTime::from_ns(45), node: NodeId(0), fact };
    facts.into_iter().map(stamp).collect()
}

fn keys(value: &Value, named: bool, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if !named {
                    into.insert(key.clone());
                }
                keys(value, NAMED.contains(&key.as_str()), into);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, false, into)),
        _ => {}
    }
}

#[test]
fn every_key_is_documented() {
    let info = LayerInfo {
        kind: "everything",
        watts: Some([1.0; PowerState::COUNT]),
        constants: ["anything", "channels", "dies", "planes", "blocks", "endurance"]
            .map(|name| (name, 1.0))
            .to_vec(),
        custom: &["anything"],
        ..LayerInfo::default()
    };
    let mut recorder = Recorder::new(vec![("all".into(), info)], Detail::Full, Warmup::None);
    recorder.take(&everything());
    let ending = Ending { time: SimTime::from_ns(45), events: 1, complete: true };
    let versions = [("hybridsim".to_owned(), "1".to_owned())].into();
    let label = Label { versions, ..Label::default() };
    let run = recorder.finish(ending, label, Cost::default(), Vec::new()).results;
    assert_eq!(run.violations, [""; 0]);
    let component = &run.components["all"];
    assert!(component.power.is_some() && component.disk.is_some() && component.flash.is_some());
    assert!(component.cache.is_some() && component.queue.is_some());

    let page = include_str!("../../../docs/results.md");
    let mut found = BTreeSet::new();
    keys(&serde_json::to_value(&run).expect("plain values"), false, &mut found);
    assert!(found.len() > 100, "{found:?}");
    let missing: Vec<_> = found.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "not in docs/results.md: {missing:?}");
}
