//! Copies that are suspended for host reads.

use super::{IN_ORDER, SimDuration, SimTime, two_dies};
use hybridsim_engine::Op;
use hybridsim_flash::Cause;
use hybridsim_flash::array::{Array, ProgramOrder};
use hybridsim_flash::geometry::{Lpn, Ppn};
use hybridsim_flash::ops::{After, FlashOps};
use hybridsim_flash::timing::{
    ChipPages, CopyBack, DieScheduling, Queued, Scheduled, SuspendPoints, TimingModel, WriteBuffer,
};

/// Completions of host reads that arrive at these times, and then the end of a copy that begins at
/// zero on their die, in microseconds.
fn reads_beside_a_copy(scheduling: DieScheduling, reach: CopyBack, reads: &[u64]) -> Vec<u64> {
    let (geometry, times) = two_dies(reach);
    let mut flash = FlashOps::new(Array::new(geometry, ProgramOrder::Any, 10));
    flash.host_program(Ppn(0), Lpn(0), After::NOTHING);
    flash.host_program(Ppn(1), Lpn(1), After::NOTHING);
    flash.clear();
    let chip = ChipPages::single(times.read);
    let buffer = WriteBuffer::new(0, 1, false);
    let queued = Queued::new(geometry, times, (scheduling, chip), buffer);
    let mut clock = queued;
    flash.copy(Ppn(0), Ppn(8), Cause::Gc, After::NOTHING);
    clock.begin_background(SimTime::ZERO);
    clock.page(flash.list(), 0, 0);
    let mut idle_from = clock.end().busy_until();
    let mut ends = Vec::new();
    for &at in reads {
        flash.clear();
        flash.host_read(Ppn(1), After::NOTHING);
        clock.begin(SimTime::from_ns(at * 1_000), Op::Read, 2048);
        clock.page(flash.list(), 2048, 0);
        let Scheduled::Completes(timed) = clock.end() else { panic!("reads do not wait") };
        ends.push(timed.end.as_ns() / 1_000);
        idle_from = idle_from.max(timed.idle_from);
    }
    ends.push(idle_from.as_ns() / 1_000);
    ends
}

#[test]
fn a_copy_can_be_suspended_while_it_programs() {
    let micro = SimDuration::from_us;
    let suspends = DieScheduling {
        program_suspend: Some(micro(10)),
        resume: micro(5),
        suspends_max: 8,
        ..IN_ORDER
    };
    // Cells 0..25, out and in again 25..49, program 49..349. A read takes 1 + 25 + 12 on the die
    // and then 100 in RAM.
    let over_the_channel =
        |scheduling, reads: &[u64]| reads_beside_a_copy(scheduling, CopyBack::None, reads);
    assert_eq!(over_the_channel(IN_ORDER, &[100]), [349 + 38 + 100, 487]);
    // Suspended at 100 for 10: the read leaves the die at 148, and 249 + 5 of the program are left.
    assert_eq!(over_the_channel(suspends, &[100]), [148 + 100, 148 + 254]);
    // What is left is a program that can be suspended: at 200 for 10, when 202 + 5 are left.
    assert_eq!(over_the_channel(suspends, &[100, 200]), [248, 248 + 100, 248 + 207]);
    // A read that arrives while the copy reads or transfers waits for the program.
    assert_eq!(over_the_channel(suspends, &[10]), [49 + 48 + 100, 97 + 305]);
    // In the chip the program is the last 300 of 310 + 2.
    let inside = reads_beside_a_copy(suspends, CopyBack::Plane, &[5]);
    assert_eq!(inside, [12 + 48 + 100, 60 + 305]);
    // The program is suspended at its point of 99 + 50, and for the second read, as each point has
    // one only, when it has run again for 5 + 50.
    let points = Some(SuspendPoints { interval: micro(50), reads_max: 1 });
    let at_points = DieScheduling { program_points: points, ..suspends };
    assert_eq!(over_the_channel(at_points, &[100, 101]), [297, 252 + 48 + 100, 300 + 155]);
}
