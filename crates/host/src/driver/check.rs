//! The checks of a verified run: every read is compared with the reference model.

use hybridsim_engine::reference_model::ReferenceModel;
use hybridsim_engine::{
    Completion, Ctx, Fault, Op, Outcome, Request, RequestId, SimTime, ZoneAction,
};
use std::collections::VecDeque;

/// The longest request of a verified run: memory holds its versions.
const VERIFIED_SECTORS_MAX: u32 = 1 << 22;

/// Whether the data of the range are gone afterwards.
const fn empties(op: Op) -> bool {
    matches!(op, Op::Trim | Op::Zone(ZoneAction::Reset))
}

/// The state of the checks of a verified run.
#[derive(Default)]
pub struct Check {
    reference: ReferenceModel,
    /// Counts starts and ends of requests. The reference model uses it instead of the time, to
    /// preserve the order within one instant.
    tick: u64,
    /// Starts still relevant, ascending, and whether the request is in flight.
    in_flight: VecDeque<(SimTime, bool)>,
    /// The start of the request of this number.
    began: Vec<SimTime>,
}

impl Check {
    /// `request` is about to be issued.
    pub fn begin(&mut self, ctx: &mut Ctx<'_>, request: &mut Request) {
        let now = self.next_tick();
        self.in_flight.push_back((now, true));
        let (lba, sectors) = (request.lba, request.sectors);
        // A request beyond the device is reported when it is issued; it needs no buffer.
        if request.end().0 > ctx.child_capacity(0) {
            return;
        }
        if empties(request.op) {
            self.reference.trim_begins(lba, sectors);
        } else if matches!(request.op, Op::Read | Op::Write) {
            if sectors > VERIFIED_SECTORS_MAX {
                ctx.fault(Fault::Workload(format!(
                    "a request of {sectors} sectors at {lba} is too long for a verified run (at \
                     most {VERIFIED_SECTORS_MAX}); run without --verify, or split it"
                )));
                return;
            }
            request.data = ctx.take_data(sectors);
            if request.op == Op::Write {
                let version = self.reference.next_version();
                ctx.data().versions_mut(request.data, sectors).fill(version);
                self.reference.write_begins(lba, sectors, version, now);
            }
        }
    }

    /// A request completed: checks the versions a read returned.
    pub fn end(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let Request { op, sectors, lba, data, .. } = done.request;
        let now = self.next_tick();
        let began = self.began[done.id.0 as usize];
        let oldest = self.oldest_after(began).unwrap_or(now);
        match (op, done.outcome) {
            (op, _) if empties(op) && done.refused => self.reference.trim_refused(lba, sectors),
            (op, _) if empties(op) => self.reference.trim_ends(lba, sectors, now),
            (Op::Write, Outcome::Failed) if done.refused => {
                let version = ctx.data().versions(data, 1)[0];
                self.reference.write_refused(lba, sectors, version);
            }
            // A failed write may have reached the medium or not: it stays in flight.
            (Op::Write, Outcome::Done) => {
                let version = ctx.data().versions(data, 1)[0];
                self.reference.write_ends(lba, sectors, version, now, oldest);
            }
            (Op::Read, Outcome::Done) => {
                let versions = ctx.data().versions(data, sectors);
                if let Err(wrong) = self.reference.check_read(lba, versions, began) {
                    ctx.fault(Fault::WrongData {
                        lba: wrong.lba,
                        time: ctx.now(),
                        got: wrong.got,
                        expected: wrong.expected,
                    });
                }
            }
            _ => {}
        }
        ctx.data().give_back(data);
    }

    /// All requests in flight are lost.
    pub fn power_cut(&mut self) {
        let now = self.next_tick();
        self.reference.power_cut(now);
        self.in_flight.clear();
    }

    fn next_tick(&mut self) -> SimTime {
        self.tick += 1;
        SimTime::from_ns(self.tick)
    }

    /// The request that just started is number `id`.
    pub fn issued(&mut self, id: RequestId) {
        let at = id.0 as usize;
        if at >= self.began.len() {
            self.began.resize(at + 1, SimTime::ZERO);
        }
        self.began[at] = self.in_flight.back().expect("it just began").0;
    }

    /// Removes the request that started at `began`; returns the start of the oldest remaining one.
    fn oldest_after(&mut self, began: SimTime) -> Option<SimTime> {
        let at = self.in_flight.partition_point(|(time, _)| *time < began);
        self.in_flight[at].1 = false;
        while self.in_flight.front().is_some_and(|(_, in_flight)| !in_flight) {
            self.in_flight.pop_front();
        }
        self.in_flight.front().map(|(time, _)| *time)
    }
}
