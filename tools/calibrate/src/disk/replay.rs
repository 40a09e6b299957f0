//! A log replayed on a drive alone, one request at a time, with nothing observed but latencies.

use super::start::DiskDrive;
use hybridsim_engine::{
    Completion, Component, ComponentInfo, ComponentTree, Ctx, Fault, Machine, Request, RequestId,
    SimDuration, SimTime, Stream,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A request to replay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The request.
    pub request: Request,
    /// Time from the completion before to the arrival.
    pub pause: SimDuration,
    /// A time with the rotational position for its arrival.
    pub angle_of: Option<SimTime>,
}

/// A log to replay. With a fixed angle, the pause before a request is up to half a revolution
/// longer or shorter (up to a revolution longer after a shorter pause), so that the request arrives
/// at the
/// same rotational position whatever the latencies before it. Otherwise every change of a constant
/// would randomise the angles of all later requests.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub steps: Arc<[Step]>,
    /// A turn of the platters.
    pub turn: SimDuration,
}

/// Issues each request a pause after the previous completion.
struct Driver {
    script: Script,
    /// Requests to issue, and requests issued.
    until: usize,
    put: usize,
    /// Whether the pause before the next has begun.
    pausing: bool,
    latencies_ms: Rc<RefCell<Vec<f64>>>,
}

impl Script {
    /// The pause before `step` if it begins at `now`.
    fn pause(&self, step: &Step, now: SimTime) -> SimDuration {
        let Some(angle_of) = step.angle_of else { return step.pause };
        let turn = self.turn.as_ns();
        let angle = (now + step.pause).as_ns() % turn;
        let later = (angle_of.as_ns() % turn + turn - angle) % turn;
        let pause = step.pause.as_ns() + later;
        let half_less = step.pause > self.turn && later > turn / 2;
        SimDuration::from_ns(if half_less { pause - turn } else { pause })
    }
}

impl Script {
    /// The requests with other angles of the platters: a pause of up to a turn more before each
    /// request that does not go on where the one before ended, half a turn less where the pause is
    /// long.
    pub fn with_other_angles(&self, draw: u64) -> Self {
        let mut stream = Stream::new(draw, "angles");
        let mut end = None;
        let other = |step: &Step| {
            let mut step = *step;
            if end.replace(step.request.end()).is_some_and(|end| end != step.request.lba) {
                step.pause += SimDuration::from_ns(stream.below(self.turn.as_ns()));
                if step.pause > self.turn {
                    step.pause -= self.turn / 2;
                }
            }
            step
        };
        Self { steps: self.steps.iter().map(other).collect(), turn: self.turn }
    }
}

impl Driver {
    fn go_on(&mut self, ctx: &mut Ctx<'_>) {
        if self.put == self.until {
            return ctx.halt();
        }
        let step = self.script.steps[self.put];
        let pause = self.script.pause(&step, ctx.now());
        if !self.pausing && !pause.is_zero() {
            self.pausing = true;
            return ctx.wake_after(pause, 0);
        }
        self.pausing = false;
        self.put += 1;
        ctx.issue(0, step.request, 0);
    }
}

impl Component for Driver {
    fn capacity(&self) -> u64 {
        0
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo::default()
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.go_on(ctx);
    }

    fn request(&mut self, _ctx: &mut Ctx<'_>, _id: RequestId, _request: &Request) {
        unreachable!("nothing is above the driver");
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        self.latencies_ms.borrow_mut().push(done.latency.as_ns() as f64 / 1e6);
        self.go_on(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, _token: u64) {
        self.go_on(ctx);
    }
}

/// Latencies in ms of the first `until` requests of `script` on `drive`, in their order. When the
/// calibration is interrupted, zeros, whose results the caller discards
/// ([`DiskDrive::unless_interrupted`]).
///
/// # Errors
/// When the drive cannot be built, or stops early.
pub(super) fn replay(
    drive: &DiskDrive<'_>,
    script: &Script,
    until: usize,
) -> Result<Vec<f64>, String> {
    if drive.is_interrupted() {
        return Ok(vec![0.0; until]);
    }
    let component = drive.build()?;
    let latencies_ms = Rc::new(RefCell::new(Vec::with_capacity(until)));
    let driver = Driver {
        script: script.clone(),
        until,
        put: 0,
        pausing: false,
        latencies_ms: Rc::clone(&latencies_ms),
    };
    let disk = ComponentTree { path: "disk".to_owned(), component, children: Vec::new() };
    let mut machine = Machine::new(ComponentTree::inner("driver", driver, vec![disk]), false);
    match machine.run(&mut (), &mut |_| !drive.is_interrupted()) {
        Ok(_) => Ok(latencies_ms.take()),
        Err(Fault::Interrupted) => Ok(vec![0.0; until]),
        Err(fault) => Err(fault.to_string()),
    }
}
