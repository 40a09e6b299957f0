//! The test suite that every controller, cache and array must pass.
//!
//! A component is built over small devices that complete requests in random order and access their
//! data at a random time while a request is in flight. It serves a random load of overlapping
//! reads, writes, trims and flushes. The host checks every read against the reference model, that
//! every request completes exactly once, and that its latency breakdown sums to its latency. At the
//! end all data are read back.

pub mod mean_field;
pub mod placement;
pub mod zones;

use hybridsim_array::concat::Concat;
use hybridsim_config::build::{BuildInput, ChildView, ComponentEntry};
use hybridsim_config::param::Settings;
use hybridsim_config::registry::Registry;
use hybridsim_disk::constant::{ConstantDevice, Timing};
use hybridsim_engine::CommonEvent;
use hybridsim_engine::source::ListSource;
use hybridsim_engine::{
    Arrival, Component, ComponentTree, EventRecord, Lba, Machine, Op, PowerFailureInjector,
    Request, RunEnd, SimDuration, SimTime, Stream,
};
use hybridsim_host::driver::{Host, HostOptions};

/// A component under test and its surroundings.
#[derive(Clone, Copy)]
pub struct Rig<'a> {
    /// The component.
    pub entry: &'a ComponentEntry,
    /// The parameters; the names of its children in them do not matter.
    pub settings: &'a Settings,
    /// Registry of its policies.
    pub registry: &'a Registry,
    /// Sectors of each child, in the order the component declares them.
    pub children: &'a [u64],
    /// Seed of the children's random times.
    pub seed: u64,
}

/// A component over others, at the path `host/it`.
///
/// # Panics
/// If it cannot be built over them.
pub fn over(
    entry: &ComponentEntry,
    settings: &Settings,
    registry: &Registry,
    children: Vec<ComponentTree>,
) -> ComponentTree {
    let view = |it: &ComponentTree| ChildView {
        name: it.path.clone(),
        capacity: it.component.capacity(),
        zones: it.zone_layout(),
        ..ChildView::default()
    };
    let views: Vec<_> = children.iter().map(view).collect();
    let input = BuildInput { settings, registry, seed: 1, path: "it", children: &views };
    let component = (entry.build)(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
    ComponentTree { path: "host/it".to_owned(), component, children }
}

/// A random load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub requests: usize,
    /// The longest request.
    pub sectors_max: u64,
    /// Seed of the requests.
    pub seed: u64,
}

impl Load {
    /// The requests, for a device of `capacity` sectors. Half of them go to its first eighth.
    pub fn draw(&self, capacity: u64) -> Vec<Request> {
        let mut stream = Stream::new(self.seed, "conformance");
        let mut draw = || {
            let op = match stream.below(20) {
                0..8 => Op::Read,
                8..17 => Op::Write,
                17..19 => Op::Trim,
                _ => Op::Flush,
            };
            let reach = if stream.chance(0.5) { (capacity / 8).max(1) } else { capacity };
            let lba = stream.below(reach);
            let longest = if stream.chance(0.7) { 8 } else { self.sectors_max };
            let sectors = 1 + stream.below(longest.min(self.sectors_max).min(capacity - lba));
            Request::new(op, Lba(lba), sectors as u32)
        };
        (0..self.requests).map(|_| draw()).collect()
    }
}

impl Rig<'_> {
    /// Builds the component.
    ///
    /// # Errors
    /// The problems of its parameters.
    pub fn build(&self) -> Result<Box<dyn Component>, String> {
        let child = |(at, capacity): (usize, &u64)| ChildView {
            name: format!("child{at}"),
            capacity: *capacity,
            ..ChildView::default()
        };
        let children: Vec<_> = self.children.iter().enumerate().map(child).collect();
        let built = (self.entry.build)(&BuildInput {
            settings: self.settings,
            registry: self.registry,
            seed: self.seed,
            path: "component",
            children: &children,
        });
        built.map_err(|problems| problems.iter().map(|p| format!("{p}; ")).collect())
    }

    /// Runs `requests` at queue depth `depth`, then reads everything back.
    ///
    /// # Errors
    /// The first rule violated.
    pub fn check(&self, requests: &[Request], depth: u32) -> Result<Checked, String> {
        let arrival = |request: &Request| Arrival { at: SimTime::ZERO, request: *request };
        self.run(HostOptions::closed(depth), requests.iter().map(arrival).collect(), None)
    }

    /// As [`Rig::check`] with a random load, while the power fails before one message in `every`,
    /// `cuts_max` times at most; everything is read back twice.
    ///
    /// # Errors
    /// The first rule violated, with the parameters that reproduce it.
    pub fn check_power_cuts(
        &self,
        load: &Load,
        depth: u32,
        (every, cuts_max): (u64, u64),
    ) -> Result<Checked, String> {
        let arrival = |request| Arrival { at: SimTime::ZERO, request };
        let requests = load.draw(self.build()?.capacity());
        let cuts = PowerFailureInjector::new(every, cuts_max, Stream::new(self.seed, "power"));
        let options = HostOptions::closed(depth);
        self.run(options, requests.into_iter().map(arrival).collect(), Some(cuts)).map_err(
            |error| {
                let name = self.entry.description.name;
                let seed = self.seed;
                format!(
                    "{name} with {load:?}, depth {depth}, seed {seed}, a cut in {every}: {error}"
                )
            },
        )
    }

    /// Runs `requests` as they arrive: in bursts, with pauses in which background work may
    /// finish; then reads all data back.
    ///
    /// # Errors
    /// The first rule violated.
    pub fn check_bursts(&self, requests: &[Request], depth: u32) -> Result<Checked, String> {
        let mut stream = Stream::new(self.seed, "bursts");
        let mut at = SimTime::ZERO;
        let mut arrive = |request: &Request| {
            at += match stream.below(32) {
                0 => SimDuration::from_ms(20),
                1..8 => SimDuration::from_us(stream.below(500)),
                _ => SimDuration::ZERO,
            };
            Arrival { at, request: *request }
        };
        self.run(HostOptions::open(depth), requests.iter().map(&mut arrive).collect(), None)
    }

    fn run(
        &self,
        options: HostOptions,
        mut arrivals: Vec<Arrival>,
        cuts: Option<PowerFailureInjector>,
    ) -> Result<Checked, String> {
        let component = self.build()?;
        let capacity = component.capacity();
        let step = 8.min(capacity);
        let at = arrivals.last().map_or(SimTime::ZERO, |last| last.at);
        for _ in 0..1 + u8::from(cuts.is_some()) {
            arrivals.extend((0..capacity).step_by(step as usize).map(|lba| {
                let sectors = step.min(capacity - lba) as u32;
                Arrival { at, request: Request::new(Op::Read, Lba(lba), sectors) }
            }));
        }
        let expected = arrivals.len();
        let host = Host::plain(options, ListSource::new(arrivals));
        let child = |(at, capacity): (usize, &u64)| {
            let path = format!("host/component/child{at}");
            let device = ConstantDevice::new(Timing {
                latency: SimDuration::from_us(20),
                // Children of different speed, as in a hybrid.
                jitter: SimDuration::from_us(100 + 400 * at as u64),
                stream: Stream::new(self.seed, &path),
                ..Timing::fixed(*capacity, SimDuration::ZERO)
            });
            ComponentTree::leaf(&path, device)
        };
        let children = self.children.iter().enumerate().map(child).collect();
        let targets = component.targets().len();
        let mut node = ComponentTree { path: "host/component".to_owned(), component, children };
        if targets > 1 {
            let sizes: Vec<u64> =
                node.component.targets().iter().map(|target| target.sectors).collect();
            let all = Concat::new(&sizes).ok_or("no device")?;
            node = ComponentTree::inner("host/all", all, vec![node]);
        }
        let mut machine = Machine::new(ComponentTree::inner("host", host, vec![node]), true);
        if let Some(cuts) = cuts {
            machine.fail_power(cuts);
        }
        let mut events = Vec::new();
        let end = machine.run(&mut events, &mut |_| true).map_err(|fault| fault.to_string())?;
        check_events(&events, expected)?;
        Ok(Checked { end, events })
    }

    /// [`Rig::check`] and [`Rig::check_bursts`] with a random load; returns the result of the
    /// first.
    ///
    /// # Errors
    /// The first rule violated, with the parameters that reproduce it.
    pub fn check_random(&self, load: &Load, depth: u32) -> Result<Checked, String> {
        let requests = load.draw(self.build()?.capacity());
        let explain = |error| {
            let name = self.entry.description.name;
            format!("{name} with {load:?}, depth {depth}, seed {}: {error}", self.seed)
        };
        self.check_bursts(&requests, depth).map_err(explain)?;
        self.check(&requests, depth).map_err(explain)
    }
}

/// Result of a check.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The end of the run.
    pub end: RunEnd,
    /// All events.
    pub events: Vec<EventRecord>,
}

/// Checks that every request arrives and completes once, unless the power fails meanwhile, and that
/// the latency breakdown sums to the latency.
fn check_events(events: &[EventRecord], expected: usize) -> Result<(), String> {
    let (mut arrived, mut completed) = (0, 0);
    let mut spent = SimDuration::ZERO;
    for record in events {
        match record.event() {
            Some(CommonEvent::Arrived { .. }) => arrived += 1,
            Some(CommonEvent::PowerCut { lost }) => completed += lost as usize,
            Some(event @ (CommonEvent::PhaseTime { .. } | CommonEvent::PhaseTimes { .. })) => {
                spent += event.phases().map(|(_, time)| time).sum()
            }
            Some(CommonEvent::Completed { latency, lba, op, .. }) => {
                completed += 1;
                if spent != latency {
                    let name = op.name();
                    return Err(format!("parts of a {name} at {lba}: {spent} of {latency}"));
                }
                spent = SimDuration::ZERO;
            }
            _ => {}
        }
    }
    if (arrived, completed) != (expected, expected) {
        return Err(format!("{arrived} arrived and {completed} completed of {expected}"));
    }
    Ok(())
}
