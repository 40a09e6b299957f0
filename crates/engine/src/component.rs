//! Components: state machines that receive and send messages.

use crate::device::{Health, ZoneLayout, Zoned};
use crate::event::PowerState;
use crate::inject::Inject;
use crate::latency::LatencyBreakdown;
use crate::machine::Ctx;
use crate::request::{Command, Request, RequestId};
use crate::schedule::Positioner;
use crate::state::{Loader, Saver, StateError};
use crate::time::{SimDuration, SimTime};
use std::rc::Rc;

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Served.
    Done,
    /// The device could not serve it (its medium failed or is gone). Data are undefined.
    Failed,
}

/// The completion of a request that a component issued.
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
    /// The latency by phase.
    pub breakdown: LatencyBreakdown,
    /// Served or failed.
    pub outcome: Outcome,
    /// Whether the device refused it: it failed, and nothing of it was written.
    pub refused: bool,
}

/// The description of a component in results; constant over the run except for `idle_policies`.
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
    /// Geometry and other constants shown in results: (name, value).
    pub constants: Vec<(&'static str, f64)>,
    /// Names of the component's [`crate::Event::Custom`] numbers.
    pub custom: &'static [&'static str],
    /// Parameters whose policy has made no decision so far, each with the reason.
    pub idle_policies: Vec<(&'static str, &'static str)>,
    /// Whether a power failure may lose writes it has acknowledged, as a volatile write cache does.
    pub loses_writes: bool,
}

/// A state machine: a controller, a cache, an array, a device.
///
/// A component completes every request it receives exactly once, now or later. Through the [`Ctx`]
/// it issues requests to its children, sets timers and emits events. It knows neither its parent
/// nor the type of its children.
pub trait Component {
    /// Capacity in sectors.
    fn capacity(&self) -> u64;

    /// Description in results.
    fn info(&self) -> ComponentInfo;

    /// Positioning estimates for schedulers above, where the component has a moving head.
    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        None
    }

    /// Preparation of its initial state, if it needs any.
    fn preparation(&mut self) -> Option<&mut dyn Prepare> {
        None
    }

    /// Saving and restoring its state, if supported.
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        None
    }

    /// Behaviour in a power failure, if modelled.
    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        None
    }

    /// The faults that can be injected into it, if any.
    fn faults(&mut self) -> Option<&mut dyn Inject> {
        None
    }

    /// Use of advance notice of requests, if any.
    fn lookahead(&self) -> Option<&dyn Lookahead> {
        None
    }

    /// The devices it gives access to without combining them, in order: a bus, or a controller on
    /// the way to one. Empty for everything that is one device itself. Targets follow one
    /// another in the component's address space, and the parent sees each as a child of its own.
    fn targets(&self) -> Vec<Target> {
        Vec::new()
    }

    /// Whether the component accepts zone management and zone appends: a device with zones, or one
    /// that forwards them unchanged to children whose address spaces follow one another. For all
    /// others the machine refuses them.
    fn accepts_zone_commands(&self) -> bool {
        false
    }

    /// Whether the component writes the zones of its children in order and resets them: it may
    /// stand over devices with zones although it accepts no zone commands itself.
    fn writes_zones(&self) -> bool {
        false
    }

    /// The zones of a zoned device.
    fn zones(&self) -> Option<&dyn Zoned> {
        None
    }

    /// Size and number of the zones that can be reached through it, where `children` are those of
    /// its children: its own, or those of all children one after the other.
    fn zone_layout(&self, children: &[Option<ZoneLayout>]) -> Option<ZoneLayout> {
        match self.zones() {
            Some(zoned) => Some(zoned.layout()),
            None if self.accepts_zone_commands() => ZoneLayout::joined(children),
            None => None,
        }
    }

    /// Figures of its flash, if it is a flash device.
    fn health(&self) -> Option<Health> {
        None
    }

    /// Sectors that still fit into the open reclaim unit of a placement handle (RUAMW), or of an
    /// identifier where there are several reclaim groups; `None` for components that do not place
    /// by handle or lack this one.
    fn unit_left(&self, _handle: u8) -> Option<u64> {
        None
    }

    /// Called once before the first request.
    fn start(&mut self, _ctx: &mut Ctx<'_>) {}

    /// A request from the parent. The range is within [`Component::capacity`].
    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request);

    /// A command from the parent for the range of `request`, whose operation has no meaning.
    /// Spindle commands are forwarded to all children unless a component handles them itself; any
    /// other command ends the run.
    fn command(&mut self, ctx: &mut Ctx<'_>, id: RequestId, command: Command, _request: &Request) {
        if command.is_about_spindle() {
            return ctx.broadcast(id, command);
        }
        ctx.unknown_command(self.info().kind, command);
    }

    /// A request or command issued to a child completed.
    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion);

    /// A timer set with [`Ctx::wake_at`] expired.
    fn wake(&mut self, _ctx: &mut Ctx<'_>, _token: u64) {}

    /// Called once after the last request: report the time not reported yet.
    fn finish(&mut self, _ctx: &mut Ctx<'_>) {}
}

/// Implements the accessors of capabilities in an `impl` of [`Component`]: the component itself
/// implements these traits.
#[macro_export]
macro_rules! supports {
    ($($capability:ident),+) => {
        $($crate::supports!(@ $capability);)+
    };
    (@ Checkpoint) => {
        fn checkpoint(&mut self) -> Option<&mut dyn $crate::Checkpoint> {
            Some(self)
        }
    };
    (@ PowerFailure) => {
        fn power_failure(&mut self) -> Option<&mut dyn $crate::PowerFailure> {
            Some(self)
        }
    };
    (@ Inject) => {
        fn faults(&mut self) -> Option<&mut dyn $crate::Inject> {
            Some(self)
        }
    };
}

/// Bringing a component into the state a run starts from.
pub trait Prepare {
    /// Reaches the initial state without taking simulated time and without emitting events: fills
    /// a drive, for example. Reports the share that is done to `progress` now and then, and gives
    /// up when it returns `false`. Called once, before [`Component::start`], unless
    /// [`Checkpoint::restore`] took its place.
    ///
    /// # Errors
    /// If the component cannot reach that state.
    fn prepare(&mut self, progress: &mut dyn FnMut(f64) -> bool) -> Result<(), String>;
}

/// Saving and restoring a component's state.
pub trait Checkpoint {
    /// Writes everything a later run needs in order to continue. Called while no request is in
    /// flight. The data versions of verified runs are not part of it.
    ///
    /// # Errors
    /// If the state cannot be saved as configured.
    fn save(&self, to: &mut Saver) -> Result<(), StateError>;

    /// Reads back what [`Checkpoint::save`] wrote. [`Component::start`] follows, at the time of
    /// the save; timers set before still expire.
    ///
    /// # Errors
    /// If the state belongs to another system; the component must not be used afterwards.
    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError>;
}

/// The effects of a power failure on a component.
pub trait PowerFailure {
    /// The power fails now: all volatile state is lost, and with it every request in flight, from
    /// the parent and to children. No completion, timer or data buffer from before comes back. A
    /// medium decides itself what it holds of the writes in flight, see [`crate::InFlightWrites`].
    ///
    /// A disk that acknowledges writes from its buffer loses them, except those it was asked to
    /// force ([`crate::Flags::FUA`]) or to [flush](crate::Op::Flush): a component that destages to
    /// it from a durable copy has to flush before it drops the copy.
    ///
    /// # Errors
    /// If the component, as configured, does not model it.
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
    /// Capacity in sectors.
    pub sectors: u64,
    /// Positioning estimates, where there is a moving head.
    pub positioner: Option<Rc<dyn Positioner>>,
}

/// A component with its path and children: the form in which a scenario is built.
pub struct ComponentTree {
    /// Path from the root, such as `hybrid/flash`.
    pub path: String,
    /// The component.
    pub component: Box<dyn Component>,
    /// Children, in the order the component numbers them.
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

    /// Whether any component of it may lose acknowledged writes at a power failure.
    pub fn loses_writes(&self) -> bool {
        self.component.info().loses_writes || self.children.iter().any(Self::loses_writes)
    }

    /// Whether it is a device with zones, or one can be reached through it.
    pub fn has_zones(&self) -> bool {
        let zoned_child = || self.children.iter().any(Self::has_zones);
        let component = &self.component;
        component.zones().is_some() || (component.accepts_zone_commands() && zoned_child())
    }

    /// Lists the devices with zones that can be reached one by one, if it begins at sector `first`:
    /// their first sectors, and their numbers where it has `number`, in depth-first order.
    pub(crate) fn list_zoned(
        &self,
        (number, first): (&mut usize, Option<u64>),
        list: &mut Vec<(u64, usize)>,
    ) {
        let is_reached = self.component.accepts_zone_commands() && !self.combines_zones();
        let mut first = first.filter(|_| is_reached);
        if let Some(zones) = self.component.zones() {
            list.extend(first.take().map(|first| (first + zones.layout().first, *number)));
        }
        *number += 1;
        for child in &self.children {
            child.list_zoned((&mut *number, first), list);
            first = first.map(|first| first + child.component.capacity());
        }
    }

    /// Whether its zones consist of zones of several children, as those of a stripe do.
    pub fn combines_zones(&self) -> bool {
        let children: Vec<_> = self.children.iter().map(Self::zone_layout).collect();
        let layout = self.component.zone_layout(&children);
        let own = self.component.zones().is_some();
        !own && layout.is_some() && layout != ZoneLayout::joined(&children)
    }

    /// Size and number of the zones that can be reached through it; `None` without zones, and where
    /// devices with different zones, or with and without zones, follow one another.
    pub fn zone_layout(&self) -> Option<ZoneLayout> {
        let children: Vec<_> = self.children.iter().map(Self::zone_layout).collect();
        self.component.zone_layout(&children)
    }
}
