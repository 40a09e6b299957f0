//! The interface between a component and the machine.

use super::traffic::{BROADCAST, Core, Link, Message, Sent, Timer};
use crate::component::Outcome;
use crate::contents::{DataPool, DataSlice};
use crate::event::{ComponentId, Event, EventRecord, Times, TimesWriter};
use crate::fault::Fault;
use crate::latency::{LatencyBreakdown, LatencyPhase};
use crate::request::{Command, Lba, Op, Request, RequestId};
use crate::time::{SimDuration, SimTime};
use crate::timer::TimerPhase;

/// A component's view of the machine while it handles one message.
pub struct Ctx<'a> {
    pub(super) core: &'a mut Core,
    pub(super) node: ComponentId,
}

impl Ctx<'_> {
    /// The time of the message being handled.
    #[inline]
    pub fn now(&self) -> SimTime {
        self.core.now
    }

    /// The path of this component, for error messages.
    pub fn path(&self) -> &str {
        &self.core.tree[self.node.0 as usize].path
    }

    /// Number of children.
    pub fn children(&self) -> usize {
        self.core.tree[self.node.0 as usize].children.len()
    }

    /// Capacity of child number `child` in sectors.
    pub fn child_capacity(&self, child: usize) -> u64 {
        self.core.tree[self.node.0 as usize].children[child].capacity
    }

    /// Sends `request` to child number `child`; `tag` comes back with its completion.
    ///
    /// A request outside the child's capacity ends the run with a [`Fault::OutOfRange`].
    #[inline]
    pub fn issue(&mut self, child: usize, request: Request, tag: u64) -> RequestId {
        let link = self.core.tree[self.node.0 as usize].children[child];
        let within = request.end().0 <= link.capacity && request.sectors > 0;
        if request.op == Op::Flush || request.is_zone_command() || !within {
            return self.issue_special((child, link), request, tag, within);
        }
        let id = self.admit((child, link), request, tag);
        self.core.inbox.push(Message::Request(id));
        id
    }

    #[inline(always)]
    fn admit(&mut self, (index, link): (usize, Link), mut request: Request, tag: u64) -> RequestId {
        let Link { node: child, base, .. } = link;
        request.lba = request.lba.offset(base);
        let (issued, child_index) = (self.core.now, index as u16);
        self.core.admit(Sent { request, tag, base, issued, child, child_index })
    }

    /// Issues a flush, a zone command, or a request that is not `within` the child's capacity.
    #[inline(never)]
    fn issue_special(
        &mut self,
        (child, link): (usize, Link),
        mut request: Request,
        tag: u64,
        within: bool,
    ) -> RequestId {
        let deliver = request.op == Op::Flush || within;
        if !deliver {
            let fault = Fault::OutOfRange {
                first: request.lba,
                end: request.end(),
                capacity: link.capacity,
                device: self.core.tree[link.node.0 as usize].path.clone(),
            };
            self.core.fault.get_or_insert(fault);
        }
        if link.target && request.op == Op::Flush {
            // A flush has no range; its address selects the target.
            request.lba = Lba(0);
        }
        let id = self.admit((child, link), request, tag);
        if request.is_zone_command() && !link.zone_commands {
            self.refuse_zone_command(id);
        } else if deliver {
            // Otherwise the run ends: components never receive a request outside their capacity.
            self.core.inbox.push(Message::Request(id));
        }
        id
    }

    /// Refuses the zone command `id`, just issued, as a device without zones refuses an opcode that
    /// it does not know. It fails after a tick: repeating it at once must not stop the time.
    #[cold]
    fn refuse_zone_command(&mut self, id: RequestId) {
        let tick = SimDuration::from_ns(1);
        let breakdown = LatencyBreakdown::NONE.plus(LatencyPhase::Overhead, tick);
        self.refuse_at(id, self.core.now + tick, breakdown);
    }

    /// Sends `command` for the range of `sectors` sectors from `lba` to child number `child`; it
    /// completes as a request does. A range outside the child's capacity ends the run.
    pub fn command(
        &mut self,
        child: usize,
        command: Command,
        (lba, sectors): (Lba, u32),
        tag: u64,
    ) -> RequestId {
        let Link { node: child_node, base, capacity, .. } =
            self.core.tree[self.node.0 as usize].children[child];
        let (first, end) = (lba, lba.offset(u64::from(sectors)));
        if end.0 > capacity {
            let device = self.core.tree[child_node.0 as usize].path.clone();
            self.core.fault.get_or_insert(Fault::OutOfRange { first, end, capacity, device });
        }
        let id = self.core.admit(Sent {
            request: Request::new(Op::Flush, lba.offset(base), sectors),
            tag,
            base,
            issued: self.core.now,
            child: child_node,
            child_index: child as u16,
        });
        if end.0 <= capacity {
            self.core.inbox.push(Message::Command(id, command));
        }
        id
    }

    /// Forwards the parent's command `id`, which applies to the whole device, to all children, or
    /// to the target it addresses. It completes with the last of them; without children,
    /// immediately.
    pub fn broadcast(&mut self, id: RequestId, command: Command) {
        let core = &mut *self.core;
        let Sent { request, issued, .. } = core.slots[id.0 as usize].sent;
        let (mut end, mut count) = (0, 0);
        let own = self.node.0 as usize;
        for index in 0..core.tree[own].children.len() {
            let Link { node: child, base, capacity, .. } = core.tree[own].children[index];
            let first = end;
            end += capacity;
            if core.tree[own].targets && !(first..end).contains(&request.lba.0) {
                continue;
            }
            let sent = Sent {
                request: Request::new(Op::Flush, Lba(base), 0),
                tag: u64::from(id.0),
                base,
                issued: core.now,
                child,
                child_index: BROADCAST,
            };
            let passed = core.admit(sent);
            core.inbox.push(Message::Command(passed, command));
            count += 1;
        }
        if count > 0 {
            core.broadcasts.push((id, count));
        } else {
            let waited = core.now.since(issued);
            self.complete(id, LatencyBreakdown::NONE.plus(LatencyPhase::Queue, waited));
        }
    }

    /// Sets `ranges` (first sector, sectors) as the answer to a command, before completing it.
    pub fn answer(&mut self, id: RequestId, ranges: Vec<(Lba, u64)>) {
        self.core.answers.push((id, ranges));
    }

    /// The answer to a completed command; empty without one.
    pub fn take_answer(&mut self, id: RequestId) -> Vec<(Lba, u64)> {
        let at = self.core.answers.iter().position(|(of, _)| *of == id);
        at.map_or_else(Vec::new, |at| self.core.answers.swap_remove(at).1)
    }

    /// Announces the requests that will probably be issued to child number `child` next.
    pub fn expect(&mut self, child: usize, requests: impl Iterator<Item = Request>) {
        let Link { node: child, base, .. } = self.core.tree[self.node.0 as usize].children[child];
        // Power failures occur between messages, so with them every message is sent.
        if !self.core.tree[child.0 as usize].looks_ahead && !self.core.power_fails {
            return;
        }
        let requests = requests.map(|it| Request { lba: it.lba.offset(base), ..it });
        // Two components may announce requests at one instant: the second announcement is dropped,
        // which is allowed for advice.
        if self.core.expected.is_empty() {
            self.core.expected.extend(requests);
            self.core.inbox.push(Message::Expect(child));
        }
    }

    /// Time at which request `id`, which is in flight, was issued to this component.
    #[inline]
    pub fn issued(&self, id: RequestId) -> SimTime {
        self.core.slots[id.0 as usize].sent.issued
    }

    /// Completes a request of the parent now. `breakdown` must sum to the time since its issue.
    #[inline]
    pub fn complete(&mut self, id: RequestId, breakdown: LatencyBreakdown) {
        self.core.finish(id, breakdown, Outcome::Done);
        self.core.inbox.push(Message::Completion(id));
    }

    /// Completes a request of the parent now, as failed.
    pub fn fail_request(&mut self, id: RequestId, breakdown: LatencyBreakdown) {
        self.core.finish(id, breakdown, Outcome::Failed);
        self.core.inbox.push(Message::Completion(id));
    }

    /// Completes a request of the parent at `time`, not before now.
    #[inline]
    pub fn complete_at(&mut self, id: RequestId, time: SimTime, breakdown: LatencyBreakdown) {
        debug_assert!(time >= self.core.now, "completion in the past");
        self.core.finish(id, breakdown, Outcome::Done);
        self.core.timers.push(time, TimerPhase::Complete, Timer::Complete(id));
    }

    /// Refuses a request of the parent, which completes as failed at `time`, not before now:
    /// nothing of it was written.
    pub fn refuse_at(&mut self, id: RequestId, time: SimTime, breakdown: LatencyBreakdown) {
        self.fail_at(id, time, breakdown);
        self.core.slots[id.0 as usize].refused = true;
    }

    /// Completes a request of the parent at `time`, not before now, as failed.
    pub fn fail_at(&mut self, id: RequestId, time: SimTime, breakdown: LatencyBreakdown) {
        debug_assert!(time >= self.core.now, "completion in the past");
        self.core.finish(id, breakdown, Outcome::Failed);
        self.core.timers.push(time, TimerPhase::Complete, Timer::Complete(id));
    }

    /// Calls this component's [`Component::wake`] with `token` at `time`, not before now.
    #[inline]
    pub fn wake_at(&mut self, time: SimTime, token: u64) {
        debug_assert!(time >= self.core.now, "wake in the past");
        self.core.timers.push(time, TimerPhase::Wake, Timer::Wake(self.node, token));
    }

    /// As [`Ctx::wake_at`], `delay` from now.
    #[inline]
    pub fn wake_after(&mut self, delay: SimDuration, token: u64) {
        self.wake_at(self.core.now + delay, token);
    }

    /// Reserves the place in the order of timers that a wake-up set now would have, for
    /// [`super::Machine::wake_root`]; only the root does this.
    pub fn reserve_wake(&mut self) {
        self.core.reserved = Some(self.core.timers.reserve());
    }

    /// Emits `event`, with the time of the message being handled.
    // Always inlined, so that the compiler removes the encoding of all other events.
    #[inline(always)]
    pub fn emit(&mut self, event: impl Event) {
        self.core.events.push(EventRecord::new(self.core.now, self.node, event));
    }

    /// As [`Ctx::emit`], for an event that was encoded before; only its fields count.
    #[inline]
    pub fn emit_record(&mut self, record: EventRecord) {
        let (time, head) = (self.core.now, record.head | u64::from(self.node.0));
        self.core.events.push(EventRecord { time, head, ..record });
    }

    /// Emits times that sum to `sum`, as they are added, as events of `kinds`; `a` is the records'
    /// [`Slot::A`](crate::event::Slot::A).
    #[inline(always)]
    pub fn emit_times(&mut self, kinds: Times, a: u8, sum: SimDuration) -> TimesWriter<'_> {
        let head = u64::from(self.node.0) | u64::from(a) << 24;
        let plain = EventRecord { time: self.core.now, head, ..EventRecord::default() };
        TimesWriter::new(&mut self.core.events, kinds, plain, sum)
    }

    /// The data versions of requests in flight, for verified runs.
    #[inline]
    pub fn data(&mut self) -> &mut DataPool {
        &mut self.core.data
    }

    /// Whether requests carry data versions.
    #[inline]
    pub fn verifying(&self) -> bool {
        self.core.data.enabled()
    }

    /// Whether media have to record what a power failure undoes ([`crate::InFlightWrites`]).
    pub fn power_may_fail(&self) -> bool {
        self.core.power_fails && self.core.data.enabled()
    }

    /// Whether detailed events are enabled: at least one observer uses them.
    pub fn detailed_events(&self) -> bool {
        self.core.detailed_events
    }

    /// A data buffer for a request that this component issues itself.
    pub fn take_data(&mut self, sectors: u32) -> DataSlice {
        self.core.data.take(sectors)
    }

    /// A copy of the data of `request`, if it carries any.
    pub fn copy_data(&mut self, request: &Request) -> DataSlice {
        if request.data.is_none() {
            return DataSlice::NONE;
        }
        let versions = self.core.data.versions(request.data, request.sectors).to_vec();
        let copy = self.core.data.take(request.sectors);
        self.core.data.versions_mut(copy, request.sectors).copy_from_slice(&versions);
        copy
    }

    /// Ends the run with an error. The first one counts.
    pub fn fault(&mut self, fault: Fault) {
        self.core.fault.get_or_insert(fault);
    }

    /// Ends the run with an error that names this component.
    pub fn device_fault(&mut self, reason: impl Into<String>) {
        let device = self.path().to_owned();
        self.fault(Fault::Device { device, reason: reason.into() });
    }

    /// Ends a run that verifies data if an append is `written` to another sector than it names.
    pub fn check_append(&mut self, named: Lba, written: Lba) {
        if self.verifying() && named != written {
            let device = self.path().to_owned();
            self.fault(Fault::UnverifiableAppend { device, named, written });
        }
    }

    /// Ends the run because a policy of this component violated its interface.
    pub fn policy_fault(&mut self, reason: impl Into<String>) {
        let device = self.path().to_owned();
        self.fault(Fault::Policy { device, reason: reason.into() });
    }

    /// Ends the run because components of this `kind` do not support `command`.
    pub fn unknown_command(&mut self, kind: &str, command: Command) {
        self.device_fault(format!(
            "a `{kind}` does not support the NV cache command `{}`; use a component with a \
             non-volatile cache here, such as `nv-cache-disk`",
            command.name()
        ));
    }

    /// Ends the run after this instant; only the root does this.
    pub fn halt(&mut self) {
        self.core.halted = true;
    }
}
