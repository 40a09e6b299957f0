//! What is under way in a machine: requests, messages and events, without the layers.

use crate::contents::DataPool;
use crate::event::EventQueue;
use crate::fact::{NodeId, Part, Parts, Stamped};
use crate::fault::Fault;
use crate::layer::{Completion, Outcome};
use crate::request::{Command, Lba, Request, RequestId};
use crate::time::SimTime;
use std::collections::VecDeque;

/// Marks a command that was passed down ([`super::Ctx::pass_down`]); its tag is the one it came
/// from.
pub(super) const PASSED_DOWN: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Complete(RequestId),
    Wake(NodeId, u64),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Message {
    Request(RequestId),
    Command(RequestId, Command),
    Completion(RequestId),
    /// What was put into [`Core::expected`] is for this node.
    Expect(NodeId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Free,
    InFlight,
    Finishing,
}

/// A request in flight between a parent and one of its children.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) request: Request,
    pub(super) parts: Parts,
    pub(super) tag: u64,
    /// Added to the parent's addresses to get the child's.
    pub(super) base: u64,
    pub(super) issued: SimTime,
    pub(super) child: NodeId,
    pub(super) child_index: u16,
    pub(super) stage: Stage,
    pub(super) outcome: Outcome,
}

pub(super) struct Place {
    pub(super) path: String,
    pub(super) parent: NodeId,
    pub(super) children: Vec<Link>,
    /// Whether each child keeps its own addresses, one behind the other ([`Layer::lanes`]).
    pub(super) lanes: bool,
}

/// The way from a parent to a child, or to one of its lanes.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) node: NodeId,
    /// Where the lane begins in the child's address space.
    pub(super) base: u64,
    pub(super) capacity: u64,
    /// Whether it is one of the child's lanes.
    pub(super) lane: bool,
}

/// Everything of the machine but the layers.
pub(super) struct Core {
    pub(super) now: SimTime,
    pub(super) events: EventQueue<Event>,
    pub(super) inbox: VecDeque<Message>,
    pub(super) slots: Vec<Slot>,
    pub(super) free: Vec<RequestId>,
    pub(super) expected: Vec<Request>,
    /// What was answered to commands and not yet taken.
    pub(super) answers: Vec<(RequestId, Vec<(Lba, u64)>)>,
    /// Commands that were passed down, and to how many children that are not done.
    pub(super) passed_down: Vec<(RequestId, u32)>,
    pub(super) facts: Vec<Stamped>,
    pub(super) places: Vec<Place>,
    pub(super) data: DataPool,
    pub(super) fault: Option<Fault>,
    pub(super) halted: bool,
    pub(super) power_fails: bool,
    pub(super) tells_flash_busy: bool,
}

impl Core {
    #[inline]
    pub(super) fn retire(&mut self, id: RequestId) -> (NodeId, Completion) {
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
    pub(super) fn passed_down_done(&mut self, done: &Completion) {
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

    #[inline]
    pub(super) fn finish(&mut self, id: RequestId, parts: Parts, outcome: Outcome) {
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

    #[inline]
    pub(super) fn admit(&mut self, slot: Slot) -> RequestId {
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
