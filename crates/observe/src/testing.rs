//! Facts for the tests of this crate.

use hybridsim_engine::{
    Cause, ComponentId, DiskCacheOutcome, Event, EventRecord, LatencyPhase, Lba, Op, PowerState,
    SimDuration, SimTime,
};

/// `event` at `time` ns at node `node`.
pub fn stamp(time: u64, node: u16, event: Event) -> EventRecord {
    EventRecord { time: SimTime::from_ns(time), node: ComponentId(node), event }
}

/// Shorthand for a length of time.
pub const fn ns(ns: u64) -> SimDuration {
    SimDuration::from_ns(ns)
}

/// Pairs of events that differ in one field, every field of every event at least once.
pub fn one_field_apart() -> Vec<(Event, Event)> {
    let (read, write) = (Op::Read, Op::Write);
    let arrived = |op, sectors, lba| Event::Arrived { op, sectors, lba: Lba(lba) };
    let completed = |op, sectors, lba, latency| Event::Completed {
        op,
        sectors,
        lba: Lba(lba),
        latency: ns(latency),
    };
    let spent = |op, phase, time| Event::PhaseTime { op, phase, time: ns(time) };
    let seek = |distance, time| Event::Seek { distance, time: ns(time) };
    let transfer = |sectors, time| Event::MediaTransfer { sectors, time: ns(time) };
    let cache = |op, outcome| Event::DiskCache { op, outcome };
    let state = |state, time| Event::StateTime { state, time: ns(time) };
    let flash_read = |cause, die| Event::FlashRead { cause, die };
    let program = |cause, die| Event::FlashProgram { cause, die };
    let erase = |cause, die, block, erases| Event::FlashErase { cause, die, block, erases };
    let lookup = |op, hits, misses| Event::CacheLookup { op, hits, misses };
    let bypassed = |op, sectors| Event::Bypassed { op, sectors };
    vec![
        (arrived(read, 8, 9), arrived(write, 8, 9)),
        (arrived(read, 8, 9), arrived(read, 9, 9)),
        (arrived(read, 8, 9), arrived(read, 8, 10)),
        (completed(read, 8, 9, 50), completed(write, 8, 9, 50)),
        (completed(read, 8, 9, 50), completed(read, 7, 9, 50)),
        (completed(read, 8, 9, 50), completed(read, 8, 8, 50)),
        (completed(read, 8, 9, 50), completed(read, 8, 9, 51)),
        (spent(read, LatencyPhase::Queue, 4), spent(write, LatencyPhase::Queue, 4)),
        (spent(read, LatencyPhase::Queue, 4), spent(read, LatencyPhase::Gc, 4)),
        (spent(read, LatencyPhase::Queue, 4), spent(read, LatencyPhase::Queue, 5)),
        (Event::QueueDepth { depth: 1 }, Event::QueueDepth { depth: 2 }),
        (seek(1, 5), seek(2, 5)),
        (seek(1, 5), seek(1, 6)),
        (Event::Rotate { time: ns(1) }, Event::Rotate { time: ns(2) }),
        (transfer(1, 5), transfer(2, 5)),
        (transfer(1, 5), transfer(1, 6)),
        (cache(read, DiskCacheOutcome::Hit), cache(write, DiskCacheOutcome::Hit)),
        (cache(read, DiskCacheOutcome::Hit), cache(read, DiskCacheOutcome::Miss)),
        (state(PowerState::Idle, 3), state(PowerState::Seek, 3)),
        (state(PowerState::Idle, 3), state(PowerState::Idle, 4)),
        (flash_read(Cause::Host, 0), flash_read(Cause::Gc, 0)),
        (flash_read(Cause::Host, 0), flash_read(Cause::Host, 1)),
        (program(Cause::Host, 0), program(Cause::Gc, 0)),
        (program(Cause::Host, 0), program(Cause::Host, 1)),
        (program(Cause::Host, 0), flash_read(Cause::Host, 0)),
        (erase(Cause::Gc, 0, 1, 1), erase(Cause::Wear, 0, 1, 1)),
        (erase(Cause::Gc, 0, 1, 1), erase(Cause::Gc, 1, 1, 1)),
        (erase(Cause::Gc, 0, 1, 1), erase(Cause::Gc, 0, 2, 1)),
        (erase(Cause::Gc, 0, 1, 1), erase(Cause::Gc, 0, 1, 2)),
        (Event::FreeBlocks { free: 1 }, Event::FreeBlocks { free: 2 }),
        (Event::VictimSearch { blocks: 1 }, Event::VictimSearch { blocks: 2 }),
        (Event::Wear { erases: 1, blocks: 1 }, Event::Wear { erases: 2, blocks: 1 }),
        (Event::Wear { erases: 1, blocks: 1 }, Event::Wear { erases: 1, blocks: 2 }),
        (lookup(read, 1, 2), lookup(write, 1, 2)),
        (lookup(read, 1, 2), lookup(read, 2, 2)),
        (lookup(read, 1, 2), lookup(read, 1, 1)),
        (bypassed(read, 1), bypassed(write, 1)),
        (bypassed(read, 1), bypassed(read, 2)),
        (Event::Destaged { sectors: 1 }, Event::Destaged { sectors: 2 }),
        (Event::CleanupStarted, Event::CleanupEnded { pages: 0 }),
        (Event::CleanupEnded { pages: 1 }, Event::CleanupEnded { pages: 2 }),
        (Event::DirtyPages { pages: 1 }, Event::DirtyPages { pages: 2 }),
        (Event::PowerCut { lost: 0 }, Event::PowerCut { lost: 1 }),
        (Event::Recovered { took: ns(1) }, Event::Recovered { took: ns(2) }),
        (Event::Custom { name: 0, value: 1 }, Event::Custom { name: 1, value: 1 }),
        (Event::Custom { name: 0, value: 1 }, Event::Custom { name: 0, value: 2 }),
    ]
}

/// A stream with every kind of event.
pub fn every_event() -> Vec<EventRecord> {
    let pairs = one_field_apart().into_iter().zip(1u16..);
    pairs.map(|((event, _), at)| stamp(u64::from(at) * 10, at % 4, event)).collect()
}
