//! What a node of the system is: a state machine that gets messages and writes messages.

use crate::event::PowerState;
use crate::latency::LatencyBreakdown;
use crate::machine::Ctx;
use crate::request::{Command, Request, RequestId};
use crate::schedule::Positioner;
use crate::state::{Loader, Saver, StateError};
use crate::time::{SimDuration, SimTime};
use std::rc::Rc;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Served.
    Done,
    /// The device could not serve it (its medium failed or is gone). Data are undefined.
    Failed,
}

/// The news that a request a component issued is done.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The name [`Ctx::issue`] gave the request; free for reuse from now on.
    pub id: RequestId,
    /// The request, as issued.
    pub request: Request,
    /// The number the component gave when it issued the request.
    pub tag: u64,
    /// The child it was issued to.
    pub child: usize,
    /// Issue to completion.
    pub latency: SimDuration,
    /// The latency, split by where it went.
    pub breakdown: LatencyBreakdown,
    /// How it ended.
    pub outcome: Outcome,
}

/// What a report needs to know about a node; constant over the run.
#[derive(Clone, Debug, Default)]
pub struct ComponentInfo {
    /// Registered name of the kind, such as `hard-disk`.
    pub kind: &'static str,
    /// Watts drawn in each [`PowerState`]; `None` where the component draws no power of its own.
    pub watts: Option<[f64; PowerState::COUNT]>,
    /// Joules per operation, by the name of the operation, added to the power above. The crate
    /// that declares the events of the operation declares its name.
    pub operation_joules: Vec<(&'static str, f64)>,
    /// Watts drawn in every state, by what draws them, added to the power above.
    pub always_watts: Vec<(&'static str, f64)>,
    /// Flash geometry and other constants worth showing: (name, value).
    pub constants: Vec<(&'static str, f64)>,
    /// Names of the component's [`crate::Event::Custom`] numbers.
    pub custom: &'static [&'static str],
}

/// A state machine: a controller, a cache, an array, a device.
///
/// A component completes every request it gets exactly once, now or later. It may issue requests to
/// its children, set timers and tell events, all through the [`Ctx`]. It never asks what time it
/// will be, who its parent is or what its children are.
pub trait Component {
    /// Sectors it offers to its parent.
    fn capacity(&self) -> u64;

    /// Constants for the report.
    fn info(&self) -> ComponentInfo;

    /// Positioning estimates for schedulers above, where the component has a moving head.
    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        None
    }

    /// How it is brought into its initial state, if there is anything to do.
    fn preparation(&mut self) -> Option<&mut dyn Prepare> {
        None
    }

    /// How its state is saved and restored, if it can be.
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        None
    }

    /// What a power failure does to it, if that is modelled.
    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        None
    }

    /// How it uses advance notice of requests, if at all.
    fn lookahead(&self) -> Option<&dyn Lookahead> {
        None
    }

    /// The devices it gives access to without combining them, in order: a bus, or a controller on
    /// the way to one. Empty for everything that is one device itself. Targets lie behind one
    /// another in the component's address space, and the parent sees each as a child of its own.
    fn targets(&self) -> Vec<Target> {
        Vec::new()
    }

    /// Called once before the first request.
    fn start(&mut self, _ctx: &mut Ctx<'_>) {}

    /// A request from the parent. The range is within [`Component::capacity`].
    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request);

    /// A command from the parent about the range of `request`, whose operation means nothing.
    /// What is about the spindle goes on to everything below unless a component knows better; any
    /// other command ends the run.
    fn command(&mut self, ctx: &mut Ctx<'_>, id: RequestId, command: Command, _request: &Request) {
        if command.is_about_spindle() {
            return ctx.broadcast(id, command);
        }
        ctx.unknown_command(self.info().kind, command);
    }

    /// A request issued to a child is done, or a command.
    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion);

    /// A timer set with [`Ctx::wake_at`] went off.
    fn wake(&mut self, _ctx: &mut Ctx<'_>, _token: u64) {}

    /// Called once after the last request: account for time not told yet.
    fn finish(&mut self, _ctx: &mut Ctx<'_>) {}
}

/// Bringing a component into the state a run starts from.
pub trait Prepare {
    /// Reaches the initial state without taking simulated time and without emitting events: fills
    /// a drive, for example. Reports the share that is done to `progress` now and then, and gives
    /// up when it returns `false`. Called once, before [`Component::start`], unless
    /// [`Checkpoint::restore`] took its place.
    ///
    /// # Errors
    /// When the component cannot reach that state.
    fn prepare(&mut self, progress: &mut dyn FnMut(f64) -> bool) -> Result<(), String>;
}

/// Saving and restoring a component's state.
pub trait Checkpoint {
    /// Writes everything a later run needs in order to continue. Called while no request is in
    /// flight. The data versions of verified runs are not part of it.
    ///
    /// # Errors
    /// When the state cannot be saved as configured.
    fn save(&self, to: &mut Saver) -> Result<(), StateError>;

    /// Reads back what [`Checkpoint::save`] wrote. [`Component::start`] follows, at the time of
    /// the save; timers set before still expire.
    ///
    /// # Errors
    /// When the state belongs to another system; the component must not be used afterwards.
    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError>;
}

/// What a power failure does to a component.
pub trait PowerFailure {
    /// The power fails now: all volatile state is lost, and with it every request in flight, from
    /// the parent and to children. No completion, timer or data buffer from before comes back.
    /// What a medium holds of the writes in flight is up to it, see [`crate::InFlightWrites`].
    ///
    /// A disk that acknowledges writes from its buffer loses them, except those it was asked to
    /// force ([`crate::Flags::FUA`]) or to [flush](crate::Op::Flush): a component that destages to
    /// it from a durable copy has to flush before it drops the copy.
    ///
    /// # Errors
    /// When the component, as configured, does not model it.
    fn power_cut(&mut self, now: SimTime) -> Result<(), String>;

    /// The power is back, at the same instant; children are called first. Recovers: requests to
    /// children may be issued and timers set. The parent may issue requests immediately; they wait
    /// until the component can serve them.
    fn power_on(&mut self, _ctx: &mut Ctx<'_>) {}
}

/// Using advance notice of requests.
pub trait Lookahead {
    /// `requests` will probably arrive next, in this order; a component with large tables may
    /// prefetch the entries they need. No result may depend on it. Addresses are unchecked.
    fn expect(&self, requests: &[Request]);
}

/// A device that a component gives access to; see [`Component::targets`].
#[derive(Clone)]
pub struct Target {
    /// Sectors it offers.
    pub sectors: u64,
    /// Its positioning estimates, if it has a moving head.
    pub positioner: Option<Rc<dyn Positioner>>,
}

/// A component with its name and children: what a scenario is built into.
pub struct ComponentTree {
    /// Path from the root, such as `hybrid/flash`.
    pub path: String,
    /// The component.
    pub component: Box<dyn Component>,
    /// Its children, in the order the component numbers them.
    pub children: Vec<ComponentTree>,
}

impl ComponentTree {
    /// A node without children.
    pub fn leaf(path: &str, component: impl Component + 'static) -> Self {
        Self { path: path.to_owned(), component: Box::new(component), children: Vec::new() }
    }

    /// A node with children.
    pub fn inner(path: &str, component: impl Component + 'static, children: Vec<Self>) -> Self {
        Self { path: path.to_owned(), component: Box::new(component), children }
    }
}
