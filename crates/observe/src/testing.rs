//! Facts for the tests of this crate.

use hybridsim_engine::{
    Cause, DiskCacheOutcome, Fact, Lba, NodeId, Op, Part, PowerState, SimDuration, SimTime, Stamped,
};

/// `fact` at `time` ns at node `node`.
pub fn stamp(time: u64, node: u16, fact: Fact) -> Stamped {
    Stamped { time: SimTime::from_ns(time), node: NodeId(node), fact }
}

/// Shorthand for a length of time.
pub const fn ns(ns: u64) -> SimDuration {
    SimDuration::from_ns(ns)
}

/// Pairs of facts that differ in one field, every field of every fact at least once.
pub fn one_field_apart() -> Vec<(Fact, Fact)> {
    let (read, write) = (Op::Read, Op::Write);
    let arrived = |op, sectors, lba| Fact::Arrived { op, sectors, lba: Lba(lba) };
    let completed = |op, sectors, lba, latency| Fact::Completed {
        op,
        sectors,
        lba: Lba(lba),
        latency: ns(latency),
    };
    let spent = |op, part, time| Fact::Spent { op, part, time: ns(time) };
    let seek = |distance, time| Fact::Seek { distance, time: ns(time) };
    let transfer = |sectors, time| Fact::MediaTransfer { sectors, time: ns(time) };
    let cache = |op, outcome| Fact::DiskCache { op, outcome };
    let state = |state, time| Fact::StateTime { state, time: ns(time) };
    let flash_read = |cause, die| Fact::FlashRead { cause, die };
    let program = |cause, die| Fact::FlashProgram { cause, die };
    let erase = |cause, die, block, erases| Fact::FlashErase { cause, die, block, erases };
    let lookup = |op, hits, misses| Fact::CacheLookup { op, hits, misses };
    let bypassed = |op, sectors| Fact::Bypassed { op, sectors };
    vec![
        (arrived(read, 8, 9), arrived(write, 8, 9)),
        (arrived(read, 8, 9), arrived(read, 9, 9)),
        (arrived(read, 8, 9), arrived(read, 8, 10)),
        (completed(read, 8, 9, 50), completed(write, 8, 9, 50)),
        (completed(read, 8, 9, 50), completed(read, 7, 9, 50)),
        (completed(read, 8, 9, 50), completed(read, 8, 8, 50)),
        (completed(read, 8, 9, 50), completed(read, 8, 9, 51)),
        (spent(read, Part::Queue, 4), spent(write, Part::Queue, 4)),
        (spent(read, Part::Queue, 4), spent(read, Part::Gc, 4)),
        (spent(read, Part::Queue, 4), spent(read, Part::Queue, 5)),
        (Fact::QueueDepth { depth: 1 }, Fact::QueueDepth { depth: 2 }),
        (seek(1, 5), seek(2, 5)),
        (seek(1, 5), seek(1, 6)),
        (Fact::Rotate { time: ns(1) }, Fact::Rotate { time: ns(2) }),
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
        (Fact::FreeBlocks { free: 1 }, Fact::FreeBlocks { free: 2 }),
        (Fact::VictimSearch { blocks: 1 }, Fact::VictimSearch { blocks: 2 }),
        (Fact::Wear { erases: 1, blocks: 1 }, Fact::Wear { erases: 2, blocks: 1 }),
        (Fact::Wear { erases: 1, blocks: 1 }, Fact::Wear { erases: 1, blocks: 2 }),
        (lookup(read, 1, 2), lookup(write, 1, 2)),
        (lookup(read, 1, 2), lookup(read, 2, 2)),
        (lookup(read, 1, 2), lookup(read, 1, 1)),
        (bypassed(read, 1), bypassed(write, 1)),
        (bypassed(read, 1), bypassed(read, 2)),
        (Fact::Destaged { sectors: 1 }, Fact::Destaged { sectors: 2 }),
        (Fact::CleanupStarted, Fact::CleanupEnded { pages: 0 }),
        (Fact::CleanupEnded { pages: 1 }, Fact::CleanupEnded { pages: 2 }),
        (Fact::DirtyPages { pages: 1 }, Fact::DirtyPages { pages: 2 }),
        (Fact::PowerCut { lost: 0 }, Fact::PowerCut { lost: 1 }),
        (Fact::Recovered { took: ns(1) }, Fact::Recovered { took: ns(2) }),
        (Fact::Custom { name: 0, value: 1 }, Fact::Custom { name: 1, value: 1 }),
        (Fact::Custom { name: 0, value: 1 }, Fact::Custom { name: 0, value: 2 }),
    ]
}

/// A stream with every kind of fact.
pub fn every_fact() -> Vec<Stamped> {
    let pairs = one_field_apart().into_iter().zip(1u16..);
    pairs.map(|((fact, _), at)| stamp(u64::from(at) * 10, at % 4, fact)).collect()
}
