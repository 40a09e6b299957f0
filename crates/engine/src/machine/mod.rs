//! The one machine that moves messages between components.

mod ctx;
mod faults;
mod save;
mod step;
mod traffic;

pub use ctx::Ctx;

use crate::component::{Component, ComponentInfo, ComponentTree};
use crate::contents::DataPool;
use crate::device::Zoned;
use crate::event::{ComponentId, EventSink};
use crate::fault::Fault;
use crate::fifo::Fifo;
use crate::power::PowerFailureInjector;
use crate::request::RequestId;
use crate::state::{Loader, Saver};
use crate::time::SimTime;
use crate::timer::TimerQueue;
use faults::ScheduledFault;
use traffic::{BROADCAST, Core, Link, Message, Sent, Timer, TreePosition};

/// Events between two calls of a progress function.
const PROGRESS_EVERY: u64 = 256;

/// Events are passed to the sink in batches of about this many.
const EVENT_BATCH: usize = 256;
/// More messages than this at one instant mean that components loop.
const MESSAGES_PER_INSTANT_MAX: u64 = 100_000_000;

/// A system ready to run: components, and what moves between them.
pub struct Machine {
    core: Core,
    components: Vec<Box<dyn Component>>,
    /// Components that have been prepared or restored.
    prepared: Vec<bool>,
    started: bool,
    handled: u64,
    /// Whether requests in flight are completed after the root halted.
    finishes_requests: bool,
    power: Option<PowerFailureInjector>,
    /// Injected faults, in the order they were scheduled.
    faults: Vec<ScheduledFault>,
    /// First sectors and numbers of the devices whose zones the host can reach one by one.
    zoned: Vec<(u64, usize)>,
    /// Whether the host can reach zones at all.
    has_zones: bool,
}

/// Stores the state of prepared components between runs.
pub trait PreparedStates {
    /// The state that [`PreparedStates::store`] stored for the component at `path`; `None` to
    /// prepare it.
    fn load(&mut self, path: &str) -> Option<Vec<u8>>;

    /// Stores `state`, saved by the component at `path` after its preparation.
    fn store(&mut self, path: &str, state: Vec<u8>);
}

/// Prepares `component` at `path`: it is preconditioned, or restored from `cache`. `progress` is
/// called with the share done; preparation stops when it returns `false`.
///
/// # Errors
/// [`Fault::Interrupted`], or why it cannot be prepared.
pub fn prepare(
    component: &mut dyn Component,
    path: &str,
    cache: Option<&mut dyn PreparedStates>,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<(), Fault> {
    let fault = |reason| Fault::Device { device: path.to_owned(), reason };
    if component.preparation().is_none() {
        return Ok(());
    }
    let mut cache = cache.filter(|_| component.checkpoint().is_some());
    if let Some(state) = cache.as_mut().and_then(|cache| cache.load(path)) {
        let mut loader = Loader::new(&state);
        let checkpoint = component.checkpoint().expect("the cache was kept only with one");
        let restored = checkpoint.restore(&mut loader).and_then(|()| loader.end());
        return restored
            .map_err(|error| fault(format!("a cached state cannot be restored: {error}")));
    }
    let mut wanted = true;
    let preparation = component.preparation().expect("checked above");
    let prepared = preparation.prepare(&mut |share| {
        wanted &= progress(share);
        wanted
    });
    if !wanted {
        return Err(Fault::Interrupted);
    }
    prepared.map_err(fault)?;
    let mut saver = Saver::default();
    if let (Some(cache), Some(checkpoint)) = (cache, component.checkpoint())
        && checkpoint.save(&mut saver).is_ok()
    {
        cache.store(path, saver.into_bytes());
    }
    Ok(())
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Simulated time at the end.
    pub time: SimTime,
    /// Events handled.
    pub events: u64,
}

impl Machine {
    /// The devices: components with zones of their own, and those without children, in the order of
    /// their addresses where these follow one another.
    pub fn devices(&self) -> impl Iterator<Item = &dyn Component> {
        let (mut left, mut found) = (vec![0], Vec::new());
        while let Some(at) = left.pop() {
            let (component, children) = (&*self.components[at], &self.core.tree[at].children);
            if children.is_empty() || component.zones().is_some() {
                found.push(component);
            } else {
                left.extend(children.iter().rev().map(|child| usize::from(child.node.0)));
            }
        }
        found.into_iter()
    }

    /// The devices whose zones the host can reach one by one, with their first sectors.
    pub fn zoned_devices(&self) -> impl Iterator<Item = (u64, &dyn Zoned)> {
        let zoned = |&(first, at): &(u64, usize)| Some((first, self.components[at].zones()?));
        self.zoned.iter().filter_map(zoned)
    }

    /// Whether the host can reach zones, those of a stripe included, which are of several devices.
    pub const fn has_zones(&self) -> bool {
        self.has_zones
    }

    /// Numbers the components of `root` in depth-first order; with `verify`, requests carry data
    /// versions.
    pub fn new(root: ComponentTree, verify: bool) -> Self {
        let mut machine = Self {
            core: Core {
                now: SimTime::ZERO,
                timers: TimerQueue::default(),
                inbox: Fifo::default(),
                slots: Vec::with_capacity(64),
                free: Vec::with_capacity(64),
                expected: Vec::with_capacity(64),
                answers: Vec::new(),
                broadcasts: Vec::new(),
                events: Vec::with_capacity(EVENT_BATCH * 2),
                tree: Vec::new(),
                data: DataPool::new(verify),
                fault: None,
                halted: false,
                power_fails: false,
                reserved: None,
                arrivals_passed: false,
                detailed_events: false,
            },
            power: None,
            faults: Vec::new(),
            components: Vec::new(),
            prepared: Vec::new(),
            started: false,
            handled: 0,
            finishes_requests: false,
            zoned: Vec::new(),
            has_zones: root.children.iter().any(ComponentTree::has_zones),
        };
        let mut number = 1;
        for child in &root.children {
            child.list_zoned((&mut number, Some(0)), &mut machine.zoned);
        }
        machine.adopt(root, ComponentId(0));
        machine.prepared = vec![false; machine.components.len()];
        machine
    }

    fn adopt(&mut self, node: ComponentTree, parent: ComponentId) -> ComponentId {
        let id =
            ComponentId(u16::try_from(self.components.len()).expect("at most 65,536 components"));
        let targets = !node.component.targets().is_empty();
        self.core.tree.push(TreePosition {
            path: node.path,
            parent,
            children: Vec::new(),
            targets,
            looks_ahead: node.component.lookahead().is_some(),
        });
        self.components.push(node.component);
        for child in node.children {
            let (capacity, targets) = (child.component.capacity(), child.component.targets());
            let zone_commands = child.component.accepts_zone_commands();
            let node = self.adopt(child, id);
            let links = &mut self.core.tree[id.0 as usize].children;
            let link = Link { node, base: 0, capacity, target: false, zone_commands };
            if targets.is_empty() {
                links.push(link);
            }
            let mut base = 0;
            for target in targets {
                links.push(Link { base, capacity: target.sectors, target: true, ..link });
                base += target.sectors;
            }
        }
        id
    }

    /// Path and constants of every component, by number.
    pub fn describe(&self) -> Vec<(String, ComponentInfo)> {
        let paths = self.core.tree.iter().map(|it| it.path.clone());
        paths.zip(self.components.iter().map(|component| component.info())).collect()
    }

    /// Simulated time so far.
    pub fn now(&self) -> SimTime {
        self.core.now
    }

    /// Prepares every component that is not prepared yet: devices are preconditioned, or restored
    /// from `cache`. `progress` is called with the share done of the current component; preparation
    /// stops when it returns `false`.
    ///
    /// # Errors
    /// [`Fault::Interrupted`], or the first component that cannot be prepared.
    pub fn prepare(
        &mut self,
        mut cache: Option<&mut dyn PreparedStates>,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<(), Fault> {
        for node in 0..self.components.len() {
            if std::mem::replace(&mut self.prepared[node], true) {
                continue;
            }
            let (component, path) = (&mut *self.components[node], &self.core.tree[node].path);
            let cache = cache.as_mut().map(|cache| &mut **cache as &mut dyn PreparedStates);
            prepare(component, path, cache, progress)?;
        }
        Ok(())
    }

    /// To be called before the run: requests in flight when the root halts are completed, so that
    /// [`Machine::save`] is possible.
    pub fn finish_requests_at_end(&mut self) {
        self.finishes_requests = true;
    }

    /// To be called before the run: components also emit their detailed events, which are not part
    /// of the fingerprint
    /// ([`EventRecord::FIRST_DETAIL_KIND`](crate::EventRecord::FIRST_DETAIL_KIND)).
    pub fn enable_detailed_events(&mut self) {
        self.core.detailed_events = true;
    }

    /// To be called before the run: injects power failures.
    pub fn fail_power(&mut self, cuts: PowerFailureInjector) {
        self.power = Some(cuts);
        self.core.power_fails = true;
    }

    /// The power fails and comes back: requests in flight are lost, and every component continues
    /// from its durable state.
    fn cut_power(&mut self) -> Result<(), Fault> {
        let core = &mut self.core;
        core.timers.clear();
        core.inbox.clear();
        core.expected.clear();
        core.answers.clear();
        core.broadcasts.clear();
        core.slots.clear();
        core.free.clear();
        core.data.reset();
        self.reschedule_faults();
        for (component, position) in self.components.iter_mut().zip(&self.core.tree) {
            let device = || position.path.clone();
            let Some(power) = component.power_failure() else {
                let kind = component.info().kind;
                return Err(Fault::PowerFailureUnsupported { device: device(), kind });
            };
            power
                .power_cut(self.core.now)
                .map_err(|reason| Fault::Device { device: device(), reason })?;
        }
        for node in (0..self.components.len()).rev() {
            self.with_component(ComponentId(node as u16), |component, ctx| {
                if let Some(power) = component.power_failure() {
                    power.power_on(ctx);
                }
            });
        }
        Ok(())
    }

    /// Requests in flight between components.
    pub fn in_flight(&self) -> usize {
        self.core.slots.len() - self.core.free.len()
    }

    /// Prepares and starts every component: the host issues its first requests. [`Machine::run`]
    /// calls it unless it was called before, to exclude it from the measured duration.
    pub fn start(&mut self) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        if let Err(fault) = self.prepare(None, &mut |_| true) {
            self.core.fault.get_or_insert(fault);
            return;
        }
        for node in 0..self.components.len() {
            self.with_component(ComponentId(node as u16), |component, ctx| component.start(ctx));
        }
        self.inject_due();
    }

    /// Runs until the root halts the machine or no event is pending.
    ///
    /// `progress` is called every 256 events, which may take long where events are expensive;
    /// returning `false` interrupts the run.
    ///
    /// # Errors
    /// The first [`Fault`] a component reported. Events up to it have been passed to the sink.
    pub fn run(
        &mut self,
        sink: &mut dyn EventSink,
        progress: &mut dyn FnMut(SimTime) -> bool,
    ) -> Result<RunEnd, Fault> {
        let mut handled = 0u64;
        self.start();
        let mut result = self.run_events(sink, progress, &mut handled);
        if result.is_ok() {
            result = self.finish_components();
        }
        sink.take(&self.core.events);
        self.core.events.clear();
        self.handled += handled;
        result.map(|()| RunEnd { time: self.core.now, events: handled })
    }

    fn finish_components(&mut self) -> Result<(), Fault> {
        for node in 0..self.components.len() {
            self.with_component(ComponentId(node as u16), |component, ctx| component.finish(ctx));
        }
        self.core.fault.take().map_or(Ok(()), Err)
    }

    /// Events handled so far, also by runs that ended in a fault.
    pub const fn events_handled(&self) -> u64 {
        self.handled
    }

    fn run_events(
        &mut self,
        sink: &mut dyn EventSink,
        progress: &mut dyn FnMut(SimTime) -> bool,
        handled: &mut u64,
    ) -> Result<(), Fault> {
        self.drain(sink)?;
        while !self.core.halted || (self.finishes_requests && self.in_flight() > 0) {
            let Some((time, event)) = self.core.timers.pop() else { break };
            self.handle(time, event, sink)?;
            *handled += 1;
            if handled.is_multiple_of(PROGRESS_EVERY) && !progress(self.core.now) {
                return Err(Fault::Interrupted);
            }
        }
        Ok(())
    }

    /// Handles one timer, and delivers the messages that follow from it.
    #[inline]
    fn handle(
        &mut self,
        time: SimTime,
        event: Timer,
        sink: &mut dyn EventSink,
    ) -> Result<(), Fault> {
        debug_assert!(time >= self.core.now, "time went back");
        if time == SimTime::NEVER {
            return Err(Fault::TimeExhausted);
        }
        self.core.now = time;
        match event {
            // The inbox is empty, so it need not go through it, unless the power may fail before
            // it is delivered.
            Timer::Complete(id) if self.power.is_none() => self.deliver_completion(id),
            Timer::Complete(id) => self.core.inbox.push(Message::Completion(id)),
            Timer::Wake(node, token) => {
                self.with_component(node, |component, ctx| component.wake(ctx, token));
            }
            Timer::Fault(number) => self.inject(number as usize),
        }
        self.drain(sink)?;
        self.pass_events(sink);
        Ok(())
    }

    /// Passes events to the sink, if there is a batch of them.
    #[inline]
    fn pass_events(&mut self, sink: &mut dyn EventSink) {
        if self.core.events.len() >= EVENT_BATCH {
            sink.take(&self.core.events);
            self.core.events.clear();
        }
    }

    /// Delivers the messages of this instant.
    #[inline]
    fn drain(&mut self, sink: &mut dyn EventSink) -> Result<(), Fault> {
        let mut delivered = 0;
        while self.core.fault.is_none()
            && let Some(message) = self.core.inbox.pop()
        {
            if self.power.as_mut().is_some_and(PowerFailureInjector::due) && !self.core.halted {
                self.cut_power()?;
                continue;
            }
            match message {
                Message::Request(id) => {
                    let Sent { child, request, .. } = self.core.slots[id.0 as usize].sent;
                    self.with_component(child, |component, ctx| {
                        component.request(ctx, id, &request)
                    });
                }
                Message::Command(id, command) => {
                    let Sent { child, request, .. } = self.core.slots[id.0 as usize].sent;
                    self.with_component(child, |component, ctx| {
                        component.command(ctx, id, command, &request)
                    });
                }
                Message::Completion(id) => self.deliver_completion(id),
                Message::Expect(child) => {
                    if let Some(lookahead) = self.components[child.0 as usize].lookahead() {
                        lookahead.expect(&self.core.expected);
                    }
                    self.core.expected.clear();
                }
            }
            delivered += 1;
            // One instant may emit many events.
            self.pass_events(sink);
            if delivered > MESSAGES_PER_INSTANT_MAX {
                break;
            }
        }
        match self.core.fault.take() {
            Some(fault) => Err(fault),
            None if delivered > MESSAGES_PER_INSTANT_MAX => Err(Fault::Invariant(format!(
                "{delivered} messages at {} without time passing",
                self.core.now
            ))),
            None => Ok(()),
        }
    }

    #[inline]
    fn deliver_completion(&mut self, id: RequestId) {
        // First the slot, so that the breakdown is copied once.
        self.core.retire(id);
        let done = self.core.completion(id);
        if done.child == usize::from(BROADCAST) {
            return self.core.broadcast_done(&done);
        }
        let child = self.core.slots[id.0 as usize].sent.child;
        let parent = self.core.tree[child.0 as usize].parent;
        self.with_component(parent, |component, ctx| component.completion(ctx, &done));
    }

    #[inline]
    fn with_component(
        &mut self,
        node: ComponentId,
        act: impl FnOnce(&mut dyn Component, &mut Ctx<'_>),
    ) {
        let mut ctx = Ctx { core: &mut self.core, node };
        act(&mut *self.components[node.0 as usize], &mut ctx);
    }
}
