//! The state of a machine without its components: requests in flight, messages, events.

use crate::component::{Completion, Outcome};
use crate::contents::DataPool;
use crate::event::{ComponentId, EventRecord};
use crate::fault::Fault;
use crate::fifo::Fifo;
use crate::latency::{LatencyBreakdown, LatencyPhase};
use crate::request::{Command, Lba, Request, RequestId};
use crate::time::SimTime;
use crate::timer::TimerQueue;

/// Marks a copy of a broadcast command ([`super::Ctx::broadcast`]); its tag is the command it was
/// copied from.
pub(super) const BROADCAST: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    Complete(RequestId),
    Wake(ComponentId, u64),
    /// The scheduled fault of this number.
    Fault(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Message {
    Request(RequestId),
    Command(RequestId, Command),
    Completion(RequestId),
    /// The requests in [`Core::expected`] are for this component.
    Expect(ComponentId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Free,
    InFlight,
    Finishing,
}

/// A request as a parent sends it to one of its children.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) request: Request,
    pub(super) tag: u64,
    /// Added to the parent's addresses to form the child's.
    pub(super) base: u64,
    pub(super) issued: SimTime,
    pub(super) child: ComponentId,
    pub(super) child_index: u16,
}

/// A request in flight between a parent and one of its children.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) sent: Sent,
    pub(super) stage: Stage,
    /// Valid from [`Stage::Finishing`] on.
    pub(super) outcome: Outcome,
    pub(super) refused: bool,
    pub(super) breakdown: LatencyBreakdown,
}

pub(super) struct TreePosition {
    pub(super) path: String,
    pub(super) parent: ComponentId,
    pub(super) children: Vec<Link>,
    /// Whether the children have address ranges of their own, in sequence ([`Component::targets`]).
    pub(super) targets: bool,
    /// The component uses advance notice of requests ([`Component::lookahead`]).
    pub(super) looks_ahead: bool,
}

/// The connection of a parent to a child, or to one of its targets.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) node: ComponentId,
    /// First sector of the target in the child's address space.
    pub(super) base: u64,
    pub(super) capacity: u64,
    /// The node is reached as one of the child's targets.
    pub(super) target: bool,
    /// Whether the child accepts zone commands ([`crate::Component::accepts_zone_commands`]).
    pub(super) zone_commands: bool,
}

/// The machine without its components.
pub(super) struct Core {
    pub(super) now: SimTime,
    pub(super) timers: TimerQueue<Timer>,
    /// Messages of this instant, delivered in the order they were sent.
    pub(super) inbox: Fifo<Message>,
    pub(super) slots: Vec<Slot>,
    pub(super) free: Vec<RequestId>,
    pub(super) expected: Vec<Request>,
    /// Answers to commands that were not taken yet.
    pub(super) answers: Vec<(RequestId, Vec<(Lba, u64)>)>,
    /// Broadcast commands, with the number of copies in flight.
    pub(super) broadcasts: Vec<(RequestId, u32)>,
    pub(super) events: Vec<EventRecord>,
    pub(super) tree: Vec<TreePosition>,
    pub(super) data: DataPool,
    pub(super) fault: Option<Fault>,
    pub(super) halted: bool,
    pub(super) power_fails: bool,
    /// Place of the root's next wake-up in the order of timers ([`super::Ctx::reserve_wake`]).
    pub(super) reserved: Option<u64>,
    /// Whether the place of an arrival at this instant has passed.
    pub(super) arrivals_passed: bool,
    pub(super) detailed_events: bool,
}

impl Core {
    /// Frees the slot of `id`, which has completed.
    #[inline]
    pub(super) fn retire(&mut self, id: RequestId) {
        let slot = &mut self.slots[id.0 as usize];
        debug_assert_eq!(slot.stage, Stage::Finishing, "completed twice");
        slot.stage = Stage::Free;
        self.free.push(id);
    }

    /// The completion of `id`, whose slot has been freed just now.
    #[inline]
    pub(super) fn completion(&self, id: RequestId) -> Completion {
        let slot = &self.slots[id.0 as usize];
        let Sent { request, tag, base, issued, child, child_index } = slot.sent;
        let latency = self.now.since(issued);
        debug_assert_eq!(
            slot.breakdown.total(),
            latency,
            "{}: the latency breakdown of {:?} does not sum to its latency: {:?}",
            self.tree[child.0 as usize].path,
            request,
            slot.breakdown
        );
        Completion {
            id,
            request: Request { lba: Lba(request.lba.0 - base), ..request },
            tag,
            child: child_index as usize,
            latency,
            breakdown: slot.breakdown,
            outcome: slot.outcome,
            refused: slot.refused,
        }
    }

    /// A copy of a broadcast command completed. With the last one, the command completes.
    pub(super) fn broadcast_done(&mut self, done: &Completion) {
        let of = RequestId(done.tag as u32);
        let at =
            self.broadcasts.iter().position(|(id, _)| *id == of).expect("the command is in flight");
        self.broadcasts[at].1 -= 1;
        if self.broadcasts[at].1 > 0 {
            return;
        }
        self.broadcasts.swap_remove(at);
        let before = self.now.since(self.slots[of.0 as usize].sent.issued) - done.latency;
        self.finish(of, done.breakdown.plus(LatencyPhase::Queue, before), Outcome::Done);
        self.inbox.push(Message::Completion(of));
    }

    #[inline]
    pub(super) fn finish(&mut self, id: RequestId, breakdown: LatencyBreakdown, outcome: Outcome) {
        let slot = &mut self.slots[id.0 as usize];
        if slot.stage != Stage::InFlight {
            let request = slot.sent.request;
            self.fault.get_or_insert_with(|| {
                Fault::Invariant(format!("request {request:?} was completed twice"))
            });
            return;
        }
        slot.stage = Stage::Finishing;
        slot.breakdown = breakdown;
        (slot.outcome, slot.refused) = (outcome, false);
    }

    #[inline]
    pub(super) fn admit(&mut self, sent: Sent) -> RequestId {
        match self.free.pop() {
            Some(id) => {
                let slot = &mut self.slots[id.0 as usize];
                (slot.sent, slot.stage) = (sent, Stage::InFlight);
                id
            }
            None => self.add_slot(sent),
        }
    }

    #[cold]
    fn add_slot(&mut self, sent: Sent) -> RequestId {
        self.slots.push(Slot {
            sent,
            stage: Stage::InFlight,
            outcome: Outcome::Done,
            refused: false,
            breakdown: LatencyBreakdown::NONE,
        });
        RequestId(self.slots.len() as u32 - 1)
    }
}
