//! A device that notes what it is asked for.

use hybridsim_disk::constant::{ConstantDevice, Timing};
use hybridsim_engine::{
    Completion, Component, ComponentInfo, ComponentTree, Ctx, PowerFailure, Request, RequestId,
    SimDuration, SimTime,
};
use std::cell::RefCell;
use std::rc::Rc;

/// Requests that a device received, with their times.
pub type Notes = Rc<RefCell<Vec<(SimTime, Request)>>>;

struct Heard {
    device: ConstantDevice,
    notes: Notes,
}

/// A device of `capacity` sectors that takes `us` microseconds for everything, and its notes.
pub fn heard(path: &str, capacity: u64, us: u64) -> (ComponentTree, Notes) {
    let device = ConstantDevice::new(Timing::fixed(capacity, SimDuration::from_us(us)));
    let notes = Notes::default();
    (ComponentTree::leaf(path, Heard { device, notes: notes.clone() }), notes)
}

impl Component for Heard {
    fn capacity(&self) -> u64 {
        self.device.capacity()
    }

    fn info(&self) -> ComponentInfo {
        self.device.info()
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.notes.borrow_mut().push((ctx.now(), *request));
        self.device.request(ctx, id, request);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        self.device.completion(ctx, done);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        self.device.wake(ctx, token);
    }

    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        Some(self)
    }
}

impl PowerFailure for Heard {
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        self.device.power_cut(now)
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.device.power_on(ctx);
    }
}
