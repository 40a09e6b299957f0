//! Arrays of hybrids and mixed arrays are configuration: the same components, stacked.

mod common;

use common::{cleanup, entry_choice, hybrid_disk, read, registry, settings};
use hybridsim_cache::CacheEvent;
use hybridsim_config::build::{BuildInput, ChildView, ComponentEntry};
use hybridsim_config::param::Settings;
use hybridsim_conformance::Load;
use hybridsim_disk::constant::{ConstantDevice, Timing};
use hybridsim_engine::source::ListSource;
use hybridsim_engine::{
    Arrival, CommonEvent, Component, ComponentTree, Machine, SimDuration, SimTime, Stream,
};
use hybridsim_host::{Host, HostOptions};

fn device(path: &str, capacity: u64, us: u64) -> ComponentTree {
    let timing = Timing {
        jitter: SimDuration::from_us(us),
        stream: Stream::new(1, path),
        ..Timing::fixed(capacity, SimDuration::from_us(us / 2))
    };
    ComponentTree::leaf(path, ConstantDevice::new(timing))
}

fn over(
    entry: &ComponentEntry,
    settings: &Settings,
    path: &str,
    children: Vec<ComponentTree>,
) -> ComponentTree {
    let views: Vec<ChildView> = children
        .iter()
        .map(|child| ChildView {
            name: child.path.clone(),
            capacity: child.component.capacity(),
            ..ChildView::default()
        })
        .collect();
    let registry = registry();
    let input = BuildInput { settings, registry: &registry, seed: 1, path, children: &views };
    let component: Box<dyn Component> =
        (entry.build)(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
    ComponentTree { path: path.to_owned(), component, children }
}

fn hybrid(path: &str, cleaner: &str) -> ComponentTree {
    let children =
        vec![device(&format!("{path}/flash"), 64, 100), device(&format!("{path}/disk"), 300, 900)];
    over(hybrid_disk(), &settings(8).and("cleanup", cleanup(cleaner)), path, children)
}

/// Runs it with every read checked, and as users mostly do, without.
fn check(build: impl Fn() -> ComponentTree, sectors_max: u64) {
    for verify in [true, false] {
        let device = build();
        let capacity = device.component.capacity();
        let requests = Load { requests: 3000, sectors_max, seed: 7 }.draw(capacity);
        let count = requests.len();
        let arrivals = requests.into_iter().map(|request| Arrival { at: SimTime::ZERO, request });
        let host = Host::plain(HostOptions::closed(16), ListSource::new(arrivals.collect()));
        let mut events = Vec::new();
        Machine::new(ComponentTree::inner("host", host, vec![device]), verify)
            .run(&mut events, &mut |_| true)
            .expect("every read returns the last write");
        assert_eq!(
            common::count(&events, |event| matches!(
                event.event(),
                Some(CommonEvent::Completed { .. })
            )),
            count
        );
        assert!(
            common::count(&events, |event| matches!(
                event.event(),
                Some(CacheEvent::CleanupEnded { .. })
            )) > 5
        );
    }
}

#[test]
fn stacked_layers_conform() {
    let entry = |name: &str| {
        *hybridsim_array::ENTRIES
            .iter()
            .find(|entry| entry.description.name == name)
            .expect("registered")
    };
    let names = "members = [\"one\", \"other\"]";
    let chunk = read(&entry("stripe"), &format!("{names}\nchunk = \"3KiB\""));
    let complete = "on-demand-complete";
    let stripe = || {
        let members = vec![hybrid("array/a", complete), hybrid("array/b", "low-watermark")];
        over(&entry("stripe"), &chunk, "array", members)
    };
    check(stripe, 60);
    let concat = || {
        let members = vec![hybrid("array/a", complete), device("array/ssd", 200, 80)];
        over(&entry("concat"), &read(&entry("concat"), names), "array", members)
    };
    check(concat, 60);
    // A hybrid of a hybrid, and one over a striped disk.
    let hybrid_of_hybrid = || {
        let members = vec![hybrid("top/disk/a", complete), device("top/disk/b", 300, 500)];
        let disk = over(&entry("stripe"), &chunk, "top/disk", members);
        let small = settings(4).and("admission", entry_choice("always", Settings::default()));
        over(hybrid_disk(), &small, "top", vec![device("top/flash", 40, 50), disk])
    };
    check(hybrid_of_hybrid, 50);
}
