//! What a verified run holds every answer against.

use hybridsim_engine::reference_model::ReferenceModel;
use hybridsim_engine::{Completion, Ctx, Fault, Op, Outcome, Request, RequestId, SimTime};
use std::collections::VecDeque;

/// The longest request a verified run takes: its stamps must be held.
const VERIFIED_SECTORS_MAX: u32 = 1 << 22;

/// What a verified run remembers.
#[derive(Default)]
pub struct Check {
    reference: ReferenceModel,
    /// Counts beginnings and ends. The reference model is told this instead of the time, because
    /// what happens at one instant happens in order all the same.
    tick: u64,
    /// Beginnings that are not yet past, ascending, and whether the request is still in flight.
    in_flight: VecDeque<(SimTime, bool)>,
    /// When the request of that number began.
    began: Vec<SimTime>,
}

impl Check {
    /// `request` is about to be issued.
    pub fn begin(&mut self, ctx: &mut Ctx<'_>, request: &mut Request) {
        let now = self.next_tick();
        self.in_flight.push_back((now, true));
        let (lba, sectors) = (request.lba, request.sectors);
        // A request beyond the device is reported when it is issued; nothing must be held for it.
        if request.end().0 > ctx.child_capacity(0) {
            return;
        }
        if request.op == Op::Trim {
            self.reference.trim_begins(lba, sectors);
        } else if request.op != Op::Flush {
            if sectors > VERIFIED_SECTORS_MAX {
                ctx.fault(Fault::Workload(format!(
                    "a request of {sectors} sectors at {lba} is too long for a verified run (at \
                     most {VERIFIED_SECTORS_MAX}); run without --verify, or split it"
                )));
                return;
            }
            request.data = ctx.take_data(sectors);
            if request.op == Op::Write {
                let stamp = self.reference.stamp();
                ctx.data().stamps_mut(request.data, sectors).fill(stamp);
                self.reference.write_begins(lba, sectors, stamp, now);
            }
        }
    }

    /// A request is done; what was read is held against what may be read.
    pub fn end(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let Request { op, sectors, lba, data, .. } = done.request;
        let now = self.next_tick();
        let began = self.began[done.id.0 as usize];
        let oldest = self.oldest_after(began).unwrap_or(now);
        match (op, done.outcome) {
            (Op::Trim, _) => self.reference.trim_ends(lba, sectors, now),
            // A write that failed may have happened or not: for ever in flight.
            (Op::Write, Outcome::Done) => {
                let stamp = ctx.data().stamps(data, 1)[0];
                self.reference.write_ends(lba, sectors, stamp, now, oldest);
            }
            (Op::Read, Outcome::Done) => {
                let stamps = ctx.data().stamps(data, sectors);
                if let Err(wrong) = self.reference.check_read(lba, stamps, began) {
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

    /// Everything in flight is lost.
    pub fn power_cut(&mut self) {
        let now = self.next_tick();
        self.reference.power_cut(now);
        self.in_flight.clear();
    }

    fn next_tick(&mut self) -> SimTime {
        self.tick += 1;
        SimTime::from_ns(self.tick)
    }

    /// The request that just began is number `id`.
    pub fn issued(&mut self, id: RequestId) {
        let at = id.0 as usize;
        if at >= self.began.len() {
            self.began.resize(at + 1, SimTime::ZERO);
        }
        self.began[at] = self.in_flight.back().expect("it just began").0;
    }

    /// Takes out the request that began at `began`; tells when the oldest of the others did.
    fn oldest_after(&mut self, began: SimTime) -> Option<SimTime> {
        let at = self.in_flight.partition_point(|(time, _)| *time < began);
        self.in_flight[at].1 = false;
        while self.in_flight.front().is_some_and(|(_, in_flight)| !in_flight) {
            self.in_flight.pop_front();
        }
        self.in_flight.front().map(|(time, _)| *time)
    }
}
