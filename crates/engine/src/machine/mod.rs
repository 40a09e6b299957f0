//! The one machine that moves messages between layers.

mod ctx;
mod save;
mod traffic;

pub use ctx::Ctx;

use crate::contents::DataPool;
use crate::event::EventQueue;
use crate::fact::{FactSink, NodeId};
use crate::fault::Fault;
use crate::layer::{Layer, LayerInfo, Node};
use crate::power::PowerCuts;
use crate::state::{Loader, Saver};
use crate::time::SimTime;
use std::collections::VecDeque;
use traffic::{Core, Event, Link, Message, PASSED_DOWN, Place, Slot};

/// Facts are handed on in batches of about this many.
const FACT_BATCH: usize = 256;
/// A layer that answers itself without time passing this often is a defect, not a workload.
const MESSAGES_PER_INSTANT_MAX: u64 = 100_000_000;

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
                tells_flash_busy: false,
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

    /// Before the run: flash devices are to tell what each die and channel does when.
    pub fn tell_flash_busy(&mut self) {
        self.core.tells_flash_busy = true;
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
