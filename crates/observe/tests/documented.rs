//! Every key a run can produce stands in `docs/reference/results.md`.

use hybridsim_cache::CacheEvent;
use hybridsim_disk::DiskEvent;
use hybridsim_engine::{
    CommonEvent, ComponentId, ComponentInfo, Event, EventRecord, EventSink, LatencyPhase, Lba, Op,
    PowerState, SimDuration, SimTime,
};
use hybridsim_flash::{Cause, ECC_BITS, FlashAct, FlashBusy, FlashEvent, FlashUnit};
use hybridsim_observe::{Cost, Detail, EndedBy, Ending, Label, Recorder, Warmup};
use serde_json::Value;
use std::collections::BTreeSet;

/// Maps whose keys are names the user or a model gave.
const NAMED: [&str; 5] = ["components", "constants", "custom", "reads_by_retries", "versions"];

fn of(event: impl Event) -> EventRecord {
    EventRecord::new(SimTime::from_ns(45), ComponentId(0), event)
}

/// One node that does everything a node can do.
fn everything() -> Vec<EventRecord> {
    let (op, sectors, lba) = (Op::Read, 8, Lba(0));
    let time = SimDuration::from_ns(5);
    let mut events = vec![
        of(CommonEvent::Arrived { op, sectors, lba }),
        of(CommonEvent::PhaseTime { op, phase: LatencyPhase::Seek, duration: time }),
        of(CommonEvent::Completed { op, sectors, lba, latency: time }),
        of(CommonEvent::QueueDepth { depth: 1 }),
        of(DiskEvent::Seek { distance: 1, duration: time }),
        of(FlashEvent::Program { cause: Cause::Host, die: 0 }),
        of(FlashEvent::Erase { cause: Cause::Gc, die: 0, block: 0, erases: 1 }),
        of(FlashEvent::Wear { erases: 1, blocks: 1 }),
        of(FlashEvent::ReadRetried { cause: Cause::Host, die: 0, retries: 2 }),
        of(FlashEvent::Uncorrectable { cause: Cause::Host, die: 0, page: 7 }),
        of(FlashBusy {
            unit: FlashUnit::Die(0),
            act: FlashAct::Program,
            cause: Cause::Host,
            begin: SimTime::ZERO,
            end: SimTime::from_ns(9),
        }),
        of(CacheEvent::CacheLookup { op, hits: 1, misses: 1 }),
        of(CacheEvent::DirtyPages { pages: 1 }),
        of(CommonEvent::Custom { name: 0, value: 1 }),
    ];
    events
        .extend(PowerState::ALL.map(|state| of(CommonEvent::StateTime { state, duration: time })));
    events
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
    let info = ComponentInfo {
        kind: "everything",
        watts: Some([1.0; PowerState::COUNT]),
        constants: ["anything", "channels", "dies", "planes", "blocks", "endurance", ECC_BITS]
            .map(|name| (name, 1.0))
            .to_vec(),
        custom: &["anything"],
        ..ComponentInfo::default()
    };
    let mut recorder = Recorder::new(vec![("all".into(), info)], Detail::Full, Warmup::None);
    recorder.take(&everything());
    let ending = Ending { time: SimTime::from_ns(45), events: 1, by: EndedBy::Completion };
    let versions = [("hybridsim".to_owned(), "1".to_owned())].into();
    let label = Label { versions, ..Label::default() };
    let run = recorder.finish(ending, label, Cost::default(), Vec::new()).results;
    assert_eq!(run.violations, [""; 0]);
    let component = &run.components["all"];
    assert!(component.power.is_some() && component.disk.is_some() && component.flash.is_some());
    assert!(component.cache.is_some() && component.queue.is_some());

    let page = include_str!("../../../docs/reference/results.md");
    let mut found = BTreeSet::new();
    keys(&serde_json::to_value(&run).expect("plain values"), false, &mut found);
    assert!(found.len() > 100, "{found:?}");
    let missing: Vec<_> = found.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "not in docs/reference/results.md: {missing:?}");
}
