//! Fixtures of the unit tests of drives and schedulers.

use crate::nv_cache::Parameters;
use hybridsim_config::build::ChildView;
use hybridsim_config::check;
use hybridsim_config::param::Settings;
use hybridsim_config::registry::Registry;
use hybridsim_disk::constant::{ConstantDevice, Timing};
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::source::ListSource;
use hybridsim_engine::{
    Arrival, ComponentTree, EventRecord, Fault, Lba, Machine, Op, PowerFailureInjector, Request,
    SimDuration, SimTime, Stream,
};
use hybridsim_host::{Host, HostOptions};
use std::rc::Rc;

/// A device to be.
pub struct Part {
    path: String,
    timing: Timing,
}

impl Part {
    /// One of `capacity` sectors that takes `us` microseconds.
    pub fn new(name: &str, capacity: u64, us: u64) -> Self {
        let timing = Timing::fixed(capacity, SimDuration::from_us(us));
        Self { path: format!("host/component/{name}"), timing }
    }

    /// Always the same time.
    pub fn steady(self) -> ComponentTree {
        ComponentTree::leaf(&self.path, ConstantDevice::new(self.timing))
    }

    /// Random times; requests overtake one another.
    pub fn restless(self, seed: u64) -> ComponentTree {
        let (stream, jitter) = (Stream::new(seed, &self.path), self.timing.latency);
        ComponentTree::leaf(
            &self.path,
            ConstantDevice::new(Timing { jitter, stream, ..self.timing }),
        )
    }
}

/// Views of children of these sizes.
pub fn views(sizes: &[u64], positioner: Option<Rc<dyn Positioner>>) -> Vec<ChildView> {
    let view = |capacity: &u64| ChildView {
        name: "child".to_owned(),
        capacity: *capacity,
        positioner: positioner.clone(),
        ..ChildView::default()
    };
    sizes.iter().map(view).collect()
}

/// The drive's parameters.
pub fn drive_settings() -> Settings {
    let text = "flash = \"flash\"\ndisk = \"disk\"";
    let settings = check::read(text, &[Parameters::PARAMS], &Registry::default());
    settings.expect("they are valid")
}

/// The outcome of a run.
pub struct Outcome {
    /// Fault that ended it early.
    pub fault: Option<Fault>,
    pub events: Vec<EventRecord>,
}

/// Runs `load` at `depth`, then reads everything back; every read is checked.
pub fn run(
    system: ComponentTree,
    load: &[Request],
    depth: u32,
    cuts: Option<PowerFailureInjector>,
) -> Outcome {
    let capacity = system.component.capacity();
    let read_back = (0..capacity).map(|lba| Request::new(Op::Read, Lba(lba), 1));
    let all = load.iter().copied().chain(read_back);
    let arrivals = all.map(|request| Arrival { at: SimTime::ZERO, request }).collect();
    play(system, arrivals, HostOptions::closed(depth), cuts)
}

/// Runs requests as `options` say; every read is checked.
pub fn play(
    system: ComponentTree,
    arrivals: Vec<Arrival>,
    options: HostOptions,
    cuts: Option<PowerFailureInjector>,
) -> Outcome {
    play_in(system, arrivals, options, cuts, true)
}

/// Runs requests on media that keep no data.
pub fn play_unchecked(
    system: ComponentTree,
    arrivals: Vec<Arrival>,
    options: HostOptions,
) -> Outcome {
    play_in(system, arrivals, options, None, false)
}

fn play_in(
    system: ComponentTree,
    arrivals: Vec<Arrival>,
    options: HostOptions,
    cuts: Option<PowerFailureInjector>,
    checked: bool,
) -> Outcome {
    let host = Host::plain(options, ListSource::new(arrivals));
    let mut machine = Machine::new(ComponentTree::inner("host", host, vec![system]), checked);
    if let Some(cuts) = cuts {
        machine.fail_power(cuts);
    }
    let mut events = Vec::new();
    let fault = machine.run(&mut events, &mut |_| true).err();
    Outcome { fault, events }
}
