//! What every part did when, within a window of the run: what timelines are drawn from.

use crate::events::AnyEvent::{self, Cache, Common, Flash};
use crate::metrics::instant;
use hybridsim_cache::CacheEvent;
use hybridsim_engine::{CommonEvent, EventRecord, EventSink, LatencyPhase, Lba, Op, PowerState};
use hybridsim_flash::{Cause, FlashBusy, FlashEvent};
pub use hybridsim_flash::{FlashAct, FlashUnit};

/// A level a component reports when it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LevelKind {
    /// Requests waiting in a queue.
    QueueDepth = 0,
    /// Erased flash blocks.
    FreeBlocks = 1,
    /// Dirty pages of a cache.
    DirtyPages = 2,
    /// Temperature in thousandths of a kelvin.
    Temperature = 3,
}

impl LevelKind {
    const ALL: [Self; 4] =
        [Self::QueueDepth, Self::FreeBlocks, Self::DirtyPages, Self::Temperature];

    /// The name used in timelines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueDepth => "queue depth",
            Self::FreeBlocks => "free blocks",
            Self::DirtyPages => "dirty pages",
            Self::Temperature => "temperature (°C)",
        }
    }
}

/// Something a timeline shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanEvent {
    /// A request of the workload, with where its time went.
    Request {
        op: Op,
        lba: Lba,
        sectors: u32,
        /// Arrival to completion.
        latency_ns: u64,
        /// Time by part, in the order of [`LatencyPhase::ALL`].
        phases_ns: [u64; LatencyPhase::COUNT],
    },
    State(PowerState),
    /// A cache was cleaned, which made `pages` free.
    Cleanup {
        pages: u32,
    },
    /// A die or a channel of a flash device was busy.
    Flash {
        unit: FlashUnit,
        act: FlashAct,
        cause: Cause,
    },
    /// Data were written back.
    Destaged {
        sectors: u32,
    },
    /// A level from here on.
    Level(LevelKind, u64),
    PowerCut,
}

/// An event with its place and time; both times are equal where it takes none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The node's number.
    pub node: u16,
    /// Start of the span, or of the window.
    pub start_ns: u64,
    /// End of the span, or of the window.
    pub end_ns: u64,
    /// The event.
    pub event: SpanEvent,
}

/// The parts of a request that took any time, by name.
pub fn named(phases_ns: &[u64; LatencyPhase::COUNT]) -> impl Iterator<Item = (&'static str, u64)> {
    let breakdown = LatencyPhase::ALL.into_iter().zip(*phases_ns);
    breakdown.filter(|(_, ns)| *ns > 0).map(|(phase, ns)| (phase.name(), ns))
}

/// The state of one node.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// Power states have been reported up to this time.
    reported_ns: u64,
    cleaning_since: Option<u64>,
    levels: [Option<u64>; LevelKind::ALL.len()],
}

/// The fold: what happened from one instant to another, at most so many events.
#[derive(Clone, Debug)]
pub struct SpanFold {
    from_ns: u64,
    to_ns: u64,
    events_max: usize,
    spans: Vec<Span>,
    left_out: u64,
    nodes: Vec<Memory>,
    phases_ns: [u64; LatencyPhase::COUNT],
}

impl SpanFold {
    /// Keeps what overlaps the window, at most `events_max` events.
    pub fn new(from_ns: u64, to_ns: u64, events_max: usize) -> Self {
        Self {
            from_ns,
            to_ns,
            events_max,
            spans: Vec::new(),
            left_out: 0,
            nodes: Vec::new(),
            phases_ns: [0; LatencyPhase::COUNT],
        }
    }

    /// The window in ns.
    pub const fn window_ns(&self) -> (u64, u64) {
        (self.from_ns, self.to_ns)
    }

    /// Events of the window beyond the limit.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The spans, in the order they were reported; levels at the start of the window come last.
    pub fn finish(mut self) -> Vec<Span> {
        let from_ns = self.from_ns;
        for (node, memory) in (0..).zip(&self.nodes) {
            for (kind, value) in LevelKind::ALL.into_iter().zip(memory.levels) {
                let event = value.map(|value| SpanEvent::Level(kind, value));
                let span = |event| Span { node, start_ns: from_ns, end_ns: from_ns, event };
                self.spans.extend(event.map(span));
            }
        }
        self.spans
    }

    fn memory(&mut self, node: u16) -> &mut Memory {
        let at = usize::from(node);
        if at >= self.nodes.len() {
            self.nodes.resize(at + 1, Memory::default());
        }
        &mut self.nodes[at]
    }

    fn add_span(&mut self, node: u16, start_ns: u64, end_ns: u64, event: SpanEvent) {
        let instant = start_ns == end_ns && (self.from_ns..self.to_ns).contains(&start_ns);
        if !instant && (end_ns <= self.from_ns || start_ns >= self.to_ns) {
            return;
        }
        if self.spans.len() >= self.events_max {
            self.left_out += 1;
            return;
        }
        let (start_ns, end_ns) = (start_ns.max(self.from_ns), end_ns.min(self.to_ns));
        self.spans.push(Span { node, start_ns, end_ns, event });
    }

    fn level(&mut self, node: u16, now: u64, kind: LevelKind, value: u32) {
        if now < self.from_ns {
            self.memory(node).levels[kind as usize] = Some(value.into());
        } else {
            self.add_span(node, now, now, SpanEvent::Level(kind, value.into()));
        }
    }

    fn add(&mut self, record: &EventRecord) {
        let (node, now) = (record.component().0, record.time.as_ns());
        match AnyEvent::of(record) {
            Some(Common(
                event @ (CommonEvent::PhaseTime { .. } | CommonEvent::PhaseTimes { .. }),
            )) => {
                for (phase, time) in event.phases() {
                    let spent = &mut self.phases_ns[phase as usize];
                    *spent = spent.saturating_add(time.as_ns());
                }
            }
            Some(Common(CommonEvent::Completed { op, sectors, lba, latency })) => {
                let (latency_ns, phases_ns) = (latency.as_ns(), self.phases_ns);
                self.phases_ns = [0; LatencyPhase::COUNT];
                let event = SpanEvent::Request { op, lba, sectors, latency_ns, phases_ns };
                self.add_span(node, now.saturating_sub(latency_ns), now, event);
            }
            Some(Common(
                event @ (CommonEvent::StateTime { .. } | CommonEvent::StateTimes { .. }),
            )) => {
                for (state, time) in event.states() {
                    let memory = self.memory(node);
                    let start = memory.reported_ns;
                    memory.reported_ns = start.saturating_add(time.as_ns());
                    let end = memory.reported_ns;
                    // A resting device needs no mark.
                    if state != PowerState::Idle {
                        self.add_span(node, start, end, SpanEvent::State(state));
                    }
                }
            }
            Some(Common(CommonEvent::QueueDepth { depth })) => {
                self.level(node, now, LevelKind::QueueDepth, depth)
            }
            Some(Flash(FlashEvent::FreeBlocks { free })) => {
                self.level(node, now, LevelKind::FreeBlocks, free)
            }
            Some(Flash(FlashEvent::Temperature { millikelvin, ago, .. })) => {
                if let Some(at) = instant(now, ago) {
                    self.level(node, at, LevelKind::Temperature, millikelvin);
                }
            }
            Some(Flash(event)) => {
                if let Some(FlashBusy { unit, act, cause, begin, end }) = event.busy() {
                    let span = SpanEvent::Flash { unit, act, cause };
                    self.add_span(node, begin.as_ns(), end.as_ns(), span);
                }
            }
            Some(Cache(CacheEvent::DirtyPages { pages })) => {
                self.level(node, now, LevelKind::DirtyPages, pages)
            }
            Some(Cache(CacheEvent::Destaged { sectors })) => {
                self.add_span(node, now, now, SpanEvent::Destaged { sectors })
            }
            Some(Cache(CacheEvent::CleanupStarted)) => self.memory(node).cleaning_since = Some(now),
            Some(Cache(CacheEvent::CleanupEnded { pages })) => {
                let since = self.memory(node).cleaning_since.take().unwrap_or(now);
                self.add_span(node, since, now, SpanEvent::Cleanup { pages });
            }
            Some(Common(CommonEvent::PowerCut { .. })) => {
                self.add_span(node, now, now, SpanEvent::PowerCut)
            }
            _ => {}
        }
    }
}

impl EventSink for SpanFold {
    fn take(&mut self, events: &[EventRecord]) {
        events.iter().for_each(|record| self.add(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{every_event, ns, record};
    use hybridsim_engine::SimTime;

    fn spans(from: u64, to: u64, events: &[EventRecord]) -> Vec<(u64, u64, SpanEvent)> {
        let mut fold = SpanFold::new(from, to, 100);
        fold.take(events);
        fold.finish().iter().map(|span| (span.start_ns, span.end_ns, span.event)).collect()
    }

    #[test]
    fn states_lie_end_to_end_and_are_cut_at_the_window() {
        let state =
            |now, state, time| record(now, 1, CommonEvent::StateTime { state, duration: ns(time) });
        // Drives report several spans at one instant.
        let events = [
            state(30, PowerState::Idle, 10),
            state(30, PowerState::Seek, 15),
            state(30, PowerState::Read, 5),
            state(50, PowerState::Read, 12),
            state(50, PowerState::Idle, 8),
        ];
        let read = SpanEvent::State(PowerState::Read);
        let seek = SpanEvent::State(PowerState::Seek);
        assert_eq!(spans(0, 100, &events), [(10, 25, seek), (25, 30, read), (30, 42, read)]);
        assert_eq!(spans(12, 28, &events), [(12, 25, seek), (25, 28, read)]);
        assert_eq!(spans(42, 100, &events), []);
    }

    #[test]
    fn requests_overlapping_the_window_come_with_their_own_parts() {
        let request = |now, phase, latency| {
            let (op, lba) = (Op::Read, Lba(8));
            let spent = CommonEvent::PhaseTime { op, phase, duration: ns(latency) };
            let done = CommonEvent::Completed { op, sectors: 1, lba, latency: ns(latency) };
            [record(now, 0, spent), record(now, 0, done)]
        };
        let events = [
            request(10, LatencyPhase::Seek, 10),
            request(25, LatencyPhase::Queue, 20),
            request(90, LatencyPhase::Bus, 5),
        ];
        let found = spans(15, 30, &events.concat());
        let [(15, 25, SpanEvent::Request { latency_ns: 20, phases_ns, .. })] = found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(phases_ns[LatencyPhase::Queue as usize], 20);
        assert_eq!(phases_ns.iter().sum::<u64>(), 20, "what others spent is not its own");
    }

    #[test]
    fn flash_operations_are_shown_when_they_execute() {
        let (unit, act, cause) = (FlashUnit::Die(2), FlashAct::Copy, Cause::Gc);
        let busy = |now, begin, end| {
            let (begin, end) = (SimTime::from_ns(begin), SimTime::from_ns(end));
            record(now, 1, FlashBusy { unit, act, cause, begin, end })
        };
        let event = SpanEvent::Flash { unit, act, cause };
        // Reported before the window and lying in it, reported in it and lying before, across its
        // end.
        let events = [busy(1, 12, 15), busy(11, 2, 9), busy(13, 18, 25), busy(14, 30, 40)];
        assert_eq!(spans(10, 20, &events), [(12, 15, event), (18, 20, event)]);
    }

    #[test]
    fn a_level_that_was_reported_before_the_window_is_known_in_it() {
        let level = |now, depth| record(now, 2, CommonEvent::QueueDepth { depth });
        let kind = LevelKind::QueueDepth;
        let found = spans(10, 20, &[level(1, 4), level(5, 7), level(12, 8), level(20, 9)]);
        assert_eq!(
            found,
            [(12, 12, SpanEvent::Level(kind, 8)), (10, 10, SpanEvent::Level(kind, 7))]
        );
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let events = [every_event(), every_event()].concat();
        let mut fold = SpanFold::new(0, u64::MAX, 5);
        fold.take(&events);
        let left_out = fold.left_out();
        let mut all = SpanFold::new(0, u64::MAX, 1000);
        all.take(&events);
        assert!(left_out > 5);
        assert_eq!(all.finish().len() as u64, 5 + left_out);
        assert_eq!(fold.finish().len(), 5);
    }
}
