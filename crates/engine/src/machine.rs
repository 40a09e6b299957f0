//! The one machine that moves messages between layers.

use crate::contents::{DataPool, DataSlice};
use crate::event::{EventQueue, Phase};
use crate::fact::{Fact, FactSink, NodeId, Part, Parts, Stamped};
use crate::fault::Fault;
use crate::layer::{Completion, Layer, LayerInfo, Node, Outcome};
use crate::power::PowerCuts;
use crate::request::{Command, Lba, Op, Request, RequestId};
use crate::state::{Loader, Saver, StateError};
use crate::time::{SimDuration, SimTime};
use std::collections::VecDeque;

/// Facts are handed on in batches of about this many.
const FACT_BATCH: usize = 256;
/// A layer that answers itself without time passing this often is a defect, not a workload.
const MESSAGES_PER_INSTANT_MAX: u64 = 100_000_000;
/// Marks a command that was passed down ([`Ctx::pass_down`]); its tag is the one it came from.
const PASSED_DOWN: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
enum Event {
    Complete(RequestId),
    Wake(NodeId, u64),
}

#[derive(Clone, Copy, Debug)]
enum Message {
    Request(RequestId),
    Command(RequestId, Command),
    Completion(RequestId),
    /// What was put into [`Core::expected`] is for this node.
    Expect(NodeId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Free,
    InFlight,
    Finishing,
}

/// A request in flight between a parent and one of its children.
#[derive(Clone, Copy, Debug)]
struct Slot {
    request: Request,
    parts: Parts,
    tag: u64,
    /// Added to the parent's addresses to get the child's.
    base: u64,
    issued: SimTime,
    child: NodeId,
    child_index: u16,
    stage: Stage,
    outcome: Outcome,
}

struct Place {
    path: String,
    parent: NodeId,
    children: Vec<Link>,
    /// Whether each child keeps its own addresses, one behind the other ([`Layer::lanes`]).
    lanes: bool,
}

/// The way from a parent to a child, or to one of its lanes.
#[derive(Clone, Copy)]
struct Link {
    node: NodeId,
    /// Where the lane begins in the child's address space.
    base: u64,
    capacity: u64,
    /// Whether it is one of the child's lanes.
    lane: bool,
}

/// Everything of the machine but the layers.
struct Core {
    now: SimTime,
    events: EventQueue<Event>,
    inbox: VecDeque<Message>,
    slots: Vec<Slot>,
    free: Vec<RequestId>,
    expected: Vec<Request>,
    /// What was answered to commands and not yet taken.
    answers: Vec<(RequestId, Vec<(Lba, u64)>)>,
    /// Commands that were passed down, and to how many children that are not done.
    passed_down: Vec<(RequestId, u32)>,
    facts: Vec<Stamped>,
    places: Vec<Place>,
    data: DataPool,
    fault: Option<Fault>,
    halted: bool,
    power_fails: bool,
}

/// A system ready to run: layers, and what moves between them.
pub struct Machine {
    core: Core,
    layers: Vec<Box<dyn Layer>>,
    /// Layers that need no [`Layer::prepare`] any more.
    prepared: Vec<bool>,
    started: bool,
    handled: u64,
    /// Whether requests in flight are served to their end after the root halted.
    settling: bool,
    power: Option<PowerCuts>,
}

/// Remembers prepared layers between runs.
pub trait Keeper {
    /// What [`Keeper::store`] was given for the node at `path`; `None` to prepare it afresh.
    fn load(&mut self, path: &str) -> Option<Vec<u8>>;

    /// The node at `path` has been prepared and saved itself as `state`.
    fn store(&mut self, path: &str, state: Vec<u8>);
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Simulated time at the end.
    pub time: SimTime,
    /// Events handled.
    pub events: u64,
}

/// A layer's view of the machine while it handles one message.
pub struct Ctx<'a> {
    core: &'a mut Core,
    node: NodeId,
}

impl Machine {
    /// Numbers the nodes of `root` in depth-first order; `verify` makes stamps travel with data.
    pub fn new(root: Node, verify: bool) -> Self {
        let mut machine = Self {
            core: Core {
                now: SimTime::ZERO,
                events: EventQueue::default(),
                inbox: VecDeque::with_capacity(64),
                slots: Vec::with_capacity(64),
                free: Vec::with_capacity(64),
                expected: Vec::with_capacity(64),
                answers: Vec::new(),
                passed_down: Vec::new(),
                facts: Vec::with_capacity(FACT_BATCH * 2),
                places: Vec::new(),
                data: DataPool::new(verify),
                fault: None,
                halted: false,
                power_fails: false,
            },
            power: None,
            layers: Vec::new(),
            prepared: Vec::new(),
            started: false,
            handled: 0,
            settling: false,
        };
        machine.adopt(root, NodeId(0));
        machine.prepared = vec![false; machine.layers.len()];
        machine
    }

    fn adopt(&mut self, node: Node, parent: NodeId) -> NodeId {
        let id = NodeId(u16::try_from(self.layers.len()).expect("at most 65,536 nodes"));
        let lanes = !node.layer.lanes().is_empty();
        self.core.places.push(Place { path: node.path, parent, children: Vec::new(), lanes });
        self.layers.push(node.layer);
        for child in node.children {
            let (whole, lanes) = (child.layer.capacity(), child.layer.lanes());
            let node = self.adopt(child, id);
            let links = &mut self.core.places[id.0 as usize].children;
            if lanes.is_empty() {
                links.push(Link { node, base: 0, capacity: whole, lane: false });
            }
            let mut base = 0;
            for lane in lanes {
                links.push(Link { node, base, capacity: lane.sectors, lane: true });
                base += lane.sectors;
            }
        }
        id
    }

    /// Path and constants of every node, by number.
    pub fn describe(&self) -> Vec<(String, LayerInfo)> {
        let paths = self.core.places.iter().map(|place| place.path.clone());
        paths.zip(self.layers.iter().map(|layer| layer.info())).collect()
    }

    /// Simulated time so far.
    pub fn now(&self) -> SimTime {
        self.core.now
    }

    /// Prepares every layer that is not yet: devices are preconditioned, or `keeper` remembers
    /// how they came out of it. `watch` is told the share done of the layer at hand; when it
    /// returns `false` all is given up.
    ///
    /// # Errors
    /// [`Fault::Interrupted`], or the first layer that cannot be prepared.
    pub fn prepare(
        &mut self,
        mut keeper: Option<&mut dyn Keeper>,
        watch: &mut dyn FnMut(f64) -> bool,
    ) -> Result<(), Fault> {
        for node in 0..self.layers.len() {
            if std::mem::replace(&mut self.prepared[node], true) {
                continue;
            }
            let (layer, path) = (&mut self.layers[node], &self.core.places[node].path);
            let fault = |reason| Fault::Device { device: path.clone(), reason };
            let mut keeper = keeper.as_mut().filter(|_| layer.prepares());
            if let Some(state) = keeper.as_mut().and_then(|keeper| keeper.load(path)) {
                let mut loader = Loader::new(&state);
                let restored = layer.restore(&mut loader).and_then(|()| loader.end());
                restored.map_err(|error| fault(format!("a remembered state is unfit: {error}")))?;
                continue;
            }
            let mut wanted = true;
            let prepared = layer.prepare(&mut |share| {
                wanted &= watch(share);
                wanted
            });
            if !wanted {
                return Err(Fault::Interrupted);
            }
            prepared.map_err(fault)?;
            let mut saver = Saver::default();
            if let Some(keeper) = keeper.filter(|_| layer.save(&mut saver).is_ok()) {
                keeper.store(path, saver.into_bytes());
            }
        }
        Ok(())
    }

    /// Before the run: requests still in flight when the root halts are to be served to their
    /// end, so that [`Machine::save`] is possible.
    pub fn settle_at_end(&mut self) {
        self.settling = true;
    }

    /// Before the run: lets the power fail.
    pub fn fail_power(&mut self, cuts: PowerCuts) {
        self.power = Some(cuts);
        self.core.power_fails = true;
    }

    /// The power fails and comes back: nothing is in flight any more, and every layer begins with
    /// what it had that was durable.
    fn cut_power(&mut self) -> Result<(), Fault> {
        let core = &mut self.core;
        core.events.clear();
        core.inbox.clear();
        core.expected.clear();
        core.answers.clear();
        core.passed_down.clear();
        core.slots.clear();
        core.free.clear();
        core.data.reset();
        for (layer, place) in self.layers.iter_mut().zip(&self.core.places) {
            layer
                .power_cut(self.core.now)
                .map_err(|reason| Fault::Device { device: place.path.clone(), reason })?;
        }
        for node in (0..self.layers.len()).rev() {
            self.with_layer(NodeId(node as u16), |layer, ctx| layer.power_on(ctx));
        }
        Ok(())
    }

    /// The state of everything below the root, after a run that settled.
    ///
    /// # Errors
    /// When requests are in flight, or a layer cannot save itself.
    pub fn save(&self) -> Result<Vec<u8>, StateError> {
        if self.in_flight() > 0 {
            return Err(StateError(format!("{} requests are in flight", self.in_flight())));
        }
        let mut saver = Saver::default();
        let wakes: Vec<(SimTime, u16, u64)> = self
            .core
            .events
            .in_order()
            .into_iter()
            .filter_map(|(time, event)| match event {
                // The root's timers belong to its workload, which ends with the run.
                Event::Wake(node, token) if node.0 != 0 => Some((time, node.0, token)),
                _ => None,
            })
            .collect();
        saver.put(&(self.core.now, wakes));
        for (layer, place) in self.layers.iter().zip(&self.core.places).skip(1) {
            layer.save(&mut saver).map_err(|error| located(&place.path, &error))?;
        }
        Ok(saver.into_bytes())
    }

    /// Goes on from `state`: everything below the root takes its own back, and it is the time it
    /// was then. The root begins afresh.
    ///
    /// # Errors
    /// When the state is not of this system; the machine must not be used afterwards.
    pub fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let mut loader = Loader::new(state);
        let (now, wakes): (SimTime, Vec<(SimTime, u16, u64)>) = loader.take()?;
        for (layer, place) in self.layers.iter_mut().zip(&self.core.places).skip(1) {
            layer.restore(&mut loader).map_err(|error| located(&place.path, &error))?;
        }
        loader.end()?;
        self.core.now = now;
        for (time, node, token) in wakes {
            if time < now || usize::from(node) >= self.layers.len() {
                return Err(StateError(format!("a timer of node {node} at {time} makes no sense")));
            }
            self.core.events.push(time, Phase::Wake, Event::Wake(NodeId(node), token));
        }
        self.prepared[1..].fill(true);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.core.slots.len() - self.core.free.len()
    }

    /// Lets every layer start, prepared or not: the host issues its first requests.
    /// [`Machine::run`] does it unless it is done; before, it is left out of the run's duration.
    pub fn start(&mut self) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        if let Err(fault) = self.prepare(None, &mut |_| true) {
            self.core.fault.get_or_insert(fault);
            return;
        }
        for node in 0..self.layers.len() {
            self.with_layer(NodeId(node as u16), |layer, ctx| layer.start(ctx));
        }
    }

    /// Runs until the root halts the machine or nothing is left to do.
    ///
    /// `pulse` is called about every million events; returning `false` interrupts the run.
    ///
    /// # Errors
    /// The first [`Fault`] a layer reported. Facts up to it have been handed on.
    pub fn run(
        &mut self,
        sink: &mut dyn FactSink,
        pulse: &mut dyn FnMut(SimTime) -> bool,
    ) -> Result<RunEnd, Fault> {
        let mut handled = 0u64;
        self.start();
        let mut result = self.run_events(sink, pulse, &mut handled);
        if result.is_ok() {
            for node in 0..self.layers.len() {
                self.with_layer(NodeId(node as u16), |layer, ctx| layer.finish(ctx));
            }
            result = self.core.fault.take().map_or(Ok(()), Err);
        }
        sink.take(&self.core.facts);
        self.core.facts.clear();
        self.handled += handled;
        result.map(|()| RunEnd { time: self.core.now, events: handled })
    }

    /// Events handled so far, also by runs that ended in a fault.
    pub const fn events_handled(&self) -> u64 {
        self.handled
    }

    fn run_events(
        &mut self,
        sink: &mut dyn FactSink,
        pulse: &mut dyn FnMut(SimTime) -> bool,
        handled: &mut u64,
    ) -> Result<(), Fault> {
        self.drain(sink)?;
        while !self.core.halted || (self.settling && self.in_flight() > 0) {
            let Some((time, event)) = self.core.events.pop() else { break };
            debug_assert!(time >= self.core.now, "time went back");
            self.core.now = time;
            match event {
                Event::Complete(id) => self.core.inbox.push_back(Message::Completion(id)),
                Event::Wake(node, token) => {
                    self.with_layer(node, |layer, ctx| layer.wake(ctx, token));
                }
            }
            self.drain(sink)?;
            self.hand_on(sink);
            *handled += 1;
            if *handled & 0xF_FFFF == 0 && !pulse(self.core.now) {
                return Err(Fault::Interrupted);
            }
        }
        Ok(())
    }

    /// Hands facts on, if there is a batch of them.
    #[inline]
    fn hand_on(&mut self, sink: &mut dyn FactSink) {
        if self.core.facts.len() >= FACT_BATCH {
            sink.take(&self.core.facts);
            self.core.facts.clear();
        }
    }

    /// Delivers messages until none is left at this instant.
    #[inline]
    fn drain(&mut self, sink: &mut dyn FactSink) -> Result<(), Fault> {
        let mut delivered = 0;
        while let Some(message) = self.core.inbox.pop_front() {
            if self.power.as_mut().is_some_and(PowerCuts::due) && !self.core.halted {
                self.cut_power()?;
                continue;
            }
            match message {
                Message::Request(id) => {
                    let slot = self.core.slots[id.0 as usize];
                    self.with_layer(slot.child, |layer, ctx| layer.request(ctx, id, &slot.request));
                }
                Message::Command(id, command) => {
                    let Slot { child, request, .. } = self.core.slots[id.0 as usize];
                    self.with_layer(child, |layer, ctx| layer.command(ctx, id, command, &request));
                }
                Message::Completion(id) => {
                    let (parent, done) = self.core.retire(id);
                    if done.child == usize::from(PASSED_DOWN) {
                        self.core.passed_down_done(&done);
                        continue;
                    }
                    self.with_layer(parent, |layer, ctx| layer.completion(ctx, &done));
                }
                Message::Expect(child) => {
                    self.layers[child.0 as usize].expect(&self.core.expected);
                    self.core.expected.clear();
                }
            }
            delivered += 1;
            // Much may happen at one instant, too.
            self.hand_on(sink);
            if self.core.fault.is_some() || delivered > MESSAGES_PER_INSTANT_MAX {
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
    fn with_layer(&mut self, node: NodeId, act: impl FnOnce(&mut dyn Layer, &mut Ctx<'_>)) {
        let mut ctx = Ctx { core: &mut self.core, node };
        act(&mut *self.layers[node.0 as usize], &mut ctx);
    }
}

fn located(path: &str, error: &StateError) -> StateError {
    StateError(format!("{path}: {error}"))
}

impl Core {
    fn retire(&mut self, id: RequestId) -> (NodeId, Completion) {
        let now = self.now;
        let slot = &mut self.slots[id.0 as usize];
        debug_assert_eq!(slot.stage, Stage::Finishing, "completed twice");
        let latency = now.since(slot.issued);
        debug_assert_eq!(
            slot.parts.total(),
            latency,
            "{}: parts of {:?} do not add up: {:?}",
            self.places[slot.child.0 as usize].path,
            slot.request,
            slot.parts
        );
        slot.stage = Stage::Free;
        let lba = Lba(slot.request.lba.0 - slot.base);
        let done = Completion {
            id,
            request: Request { lba, ..slot.request },
            tag: slot.tag,
            child: slot.child_index as usize,
            latency,
            parts: slot.parts,
            outcome: slot.outcome,
        };
        let parent = self.places[slot.child.0 as usize].parent;
        self.free.push(id);
        (parent, done)
    }

    /// One of those a command was passed down to is done. The last is the one it waited for.
    fn passed_down_done(&mut self, done: &Completion) {
        let of = RequestId(done.tag as u32);
        let at = self.passed_down.iter().position(|(id, _)| *id == of).expect("it was noted");
        self.passed_down[at].1 -= 1;
        if self.passed_down[at].1 > 0 {
            return;
        }
        self.passed_down.swap_remove(at);
        let before = self.now.since(self.slots[of.0 as usize].issued) - done.latency;
        self.finish(of, done.parts.plus(Part::Queue, before), Outcome::Done);
        self.inbox.push_back(Message::Completion(of));
    }

    fn finish(&mut self, id: RequestId, parts: Parts, outcome: Outcome) {
        let slot = &mut self.slots[id.0 as usize];
        if slot.stage != Stage::InFlight {
            let request = slot.request;
            self.fault.get_or_insert_with(|| {
                Fault::Invariant(format!("request {request:?} was completed twice"))
            });
            return;
        }
        slot.stage = Stage::Finishing;
        slot.parts = parts;
        slot.outcome = outcome;
    }

    fn admit(&mut self, slot: Slot) -> RequestId {
        match self.free.pop() {
            Some(id) => {
                self.slots[id.0 as usize] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                RequestId(self.slots.len() as u32 - 1)
            }
        }
    }
}

impl Ctx<'_> {
    /// The time of the message being handled.
    #[inline]
    pub fn now(&self) -> SimTime {
        self.core.now
    }

    /// The path of this node, for error messages.
    pub fn path(&self) -> &str {
        &self.core.places[self.node.0 as usize].path
    }

    /// Number of children.
    pub fn children(&self) -> usize {
        self.core.places[self.node.0 as usize].children.len()
    }

    /// Sectors child number `child` offers.
    pub fn child_capacity(&self, child: usize) -> u64 {
        self.core.places[self.node.0 as usize].children[child].capacity
    }

    /// Sends `request` to child number `child`; `tag` comes back with its completion.
    ///
    /// A request outside the child's capacity ends the run with a [`Fault::OutOfRange`].
    #[inline]
    pub fn issue(&mut self, child: usize, mut request: Request, tag: u64) -> RequestId {
        let child_index = child as u16;
        let Link { node: child, base, capacity, lane } =
            self.core.places[self.node.0 as usize].children[child];
        let within = request.end().0 <= capacity && request.sectors > 0;
        let deliver = request.op == Op::Flush || within;
        if !deliver {
            let fault = Fault::OutOfRange {
                first: request.lba,
                end: request.end(),
                capacity,
                device: self.core.places[child.0 as usize].path.clone(),
            };
            self.core.fault.get_or_insert(fault);
        }
        if lane && request.op == Op::Flush {
            // It has no range of its own, but the lane must be known by it.
            request.lba = Lba(0);
        }
        request.lba = request.lba.offset(base);
        let id = self.core.admit(Slot {
            request,
            parts: Parts::NONE,
            tag,
            base,
            issued: self.core.now,
            child,
            child_index,
            stage: Stage::InFlight,
            outcome: Outcome::Done,
        });
        // The run is over otherwise; no layer has to fear a request it has no room for.
        if deliver {
            self.core.inbox.push_back(Message::Request(id));
        }
        id
    }

    /// Sends `command` about `sectors` sectors from `lba` on to child number `child`; it completes
    /// as a request does. A range outside the child's capacity ends the run.
    pub fn command(
        &mut self,
        child: usize,
        command: Command,
        (lba, sectors): (Lba, u32),
        tag: u64,
    ) -> RequestId {
        let Link { node: child_node, base, capacity, .. } =
            self.core.places[self.node.0 as usize].children[child];
        let (first, end) = (lba, lba.offset(u64::from(sectors)));
        if end.0 > capacity {
            let device = self.core.places[child_node.0 as usize].path.clone();
            self.core.fault.get_or_insert(Fault::OutOfRange { first, end, capacity, device });
        }
        let id = self.core.admit(Slot {
            request: Request::new(Op::Flush, lba.offset(base), sectors),
            parts: Parts::NONE,
            tag,
            base,
            issued: self.core.now,
            child: child_node,
            child_index: child as u16,
            stage: Stage::InFlight,
            outcome: Outcome::Done,
        });
        if end.0 <= capacity {
            self.core.inbox.push_back(Message::Command(id, command));
        }
        id
    }

    /// Passes the parent's command `id`, which is about all of the device, on to all children, or
    /// to the one whose lane it names. It is done when they are; where there are none, at once.
    pub fn pass_down(&mut self, id: RequestId, command: Command) {
        let core = &mut *self.core;
        let Slot { request, issued, .. } = core.slots[id.0 as usize];
        let (mut end, mut count) = (0, 0);
        let place = self.node.0 as usize;
        for index in 0..core.places[place].children.len() {
            let Link { node: child, base, capacity, .. } = core.places[place].children[index];
            let first = end;
            end += capacity;
            if core.places[place].lanes && !(first..end).contains(&request.lba.0) {
                continue;
            }
            let slot = Slot {
                request: Request::new(Op::Flush, Lba(base), 0),
                parts: Parts::NONE,
                tag: u64::from(id.0),
                base,
                issued: core.now,
                child,
                child_index: PASSED_DOWN,
                stage: Stage::InFlight,
                outcome: Outcome::Done,
            };
            let passed = core.admit(slot);
            core.inbox.push_back(Message::Command(passed, command));
            count += 1;
        }
        if count > 0 {
            core.passed_down.push((id, count));
        } else {
            let waited = core.now.since(issued);
            self.complete(id, Parts::NONE.plus(Part::Queue, waited));
        }
    }

    /// Gives `ranges` (first sector, sectors) as the answer to a command, before completing it.
    pub fn answer(&mut self, id: RequestId, ranges: Vec<(Lba, u64)>) {
        self.core.answers.push((id, ranges));
    }

    /// What was answered to a command that is done; empty where nothing was.
    pub fn take_answer(&mut self, id: RequestId) -> Vec<(Lba, u64)> {
        let at = self.core.answers.iter().position(|(of, _)| *of == id);
        at.map_or_else(Vec::new, |at| self.core.answers.swap_remove(at).1)
    }

    /// Tells child number `child` what will probably be issued to it next.
    pub fn expect(&mut self, child: usize, requests: impl Iterator<Item = Request>) {
        let Link { node: child, base, .. } = self.core.places[self.node.0 as usize].children[child];
        let requests = requests.map(|it| Request { lba: it.lba.offset(base), ..it });
        // Two layers may expect something at one instant: the first is told, it is only advice.
        if self.core.expected.is_empty() {
            self.core.expected.extend(requests);
            self.core.inbox.push_back(Message::Expect(child));
        }
    }

    /// When the request now in flight was issued to this layer.
    #[inline]
    pub fn issued(&self, id: RequestId) -> SimTime {
        self.core.slots[id.0 as usize].issued
    }

    /// Completes a request of the parent now. `parts` must add up to the time since its issue.
    #[inline]
    pub fn complete(&mut self, id: RequestId, parts: Parts) {
        self.core.finish(id, parts, Outcome::Done);
        self.core.inbox.push_back(Message::Completion(id));
    }

    /// Completes a request of the parent now, as failed.
    pub fn fail_request(&mut self, id: RequestId, parts: Parts) {
        self.core.finish(id, parts, Outcome::Failed);
        self.core.inbox.push_back(Message::Completion(id));
    }

    /// Completes a request of the parent at `time`, not before now.
    #[inline]
    pub fn complete_at(&mut self, id: RequestId, time: SimTime, parts: Parts) {
        debug_assert!(time >= self.core.now, "completion in the past");
        self.core.finish(id, parts, Outcome::Done);
        self.core.events.push(time, Phase::Complete, Event::Complete(id));
    }

    /// Calls this layer's [`Layer::wake`] with `token` at `time`, not before now.
    #[inline]
    pub fn wake_at(&mut self, time: SimTime, token: u64) {
        debug_assert!(time >= self.core.now, "wake in the past");
        self.core.events.push(time, Phase::Wake, Event::Wake(self.node, token));
    }

    /// As [`Ctx::wake_at`], `delay` from now.
    #[inline]
    pub fn wake_after(&mut self, delay: SimDuration, token: u64) {
        self.wake_at(self.core.now + delay, token);
    }

    /// Tells what happened.
    #[inline]
    pub fn observe(&mut self, fact: Fact) {
        let stamped = Stamped { time: self.core.now, node: self.node, fact };
        self.core.facts.push(stamped);
    }

    /// The stamps of requests in flight, for verified runs.
    #[inline]
    pub fn data(&mut self) -> &mut DataPool {
        &mut self.core.data
    }

    /// Whether stamps travel with the data.
    #[inline]
    pub fn verifying(&self) -> bool {
        self.core.data.enabled()
    }

    /// Whether media have to remember what a power failure undoes ([`crate::Undo`]).
    pub fn power_may_fail(&self) -> bool {
        self.core.power_fails && self.core.data.enabled()
    }

    /// A buffer for a request this layer issues on its own account.
    pub fn take_data(&mut self, sectors: u32) -> DataSlice {
        self.core.data.take(sectors)
    }

    /// Ends the run with an error. The first one counts.
    pub fn fault(&mut self, fault: Fault) {
        self.core.fault.get_or_insert(fault);
    }

    /// Ends the run with an error that names this layer.
    pub fn device_fault(&mut self, reason: impl Into<String>) {
        let device = self.path().to_owned();
        self.fault(Fault::Device { device, reason: reason.into() });
    }

    /// Ends the run because a layer of this `kind` cannot do what it was told.
    pub fn unknown_command(&mut self, kind: &str, command: Command) {
        self.device_fault(format!(
            "a `{kind}` knows no NV cache commands and was told `{}`; put a part with a \
             non-volatile cache here, such as `nv-cache-disk`",
            command.name()
        ));
    }

    /// Ends the run after this instant; only the root does this.
    pub fn halt(&mut self) {
        self.core.halted = true;
    }
}
