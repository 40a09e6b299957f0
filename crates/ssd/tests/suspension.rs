//! Programs that are suspended for reads: timelines worked out by hand, to the microsecond.

mod common;

use common::{Host, answers, build, pausing, queued, run, us};
use hybridsim_config::param::Value;
use hybridsim_engine::{LatencyPhase, Lba, Op, Request, SimTime};

#[test]
fn programs_are_suspended_at_points_and_for_so_many_reads() {
    use Op::{Flush, Read, Write};
    let points = pausing(queued(8)).and("timing.program_suspend_interval", us(50));
    let one = points.clone().and("timing.suspend_reads_max", Value::Count(1));
    // A program of 300. Both reads wait for the point at 150, where it is suspended for 10, and are
    // done at 185 and 210; it has 150 + 5 left. For one read only, it resumes at 185 for 5 + 50, is
    // suspended for the other until 275, and has 100 + 5 left.
    let asked = [(0, Write, 0, 1), (130, Read, 5, 1), (140, Read, 6, 1), (141, Flush, 0, 0)];
    assert_eq!(answers(&points, &asked), [0, 185, 210, 365]);
    assert_eq!(answers(&one, &asked), [0, 185, 275, 380]);
    // No point is left after 250. One read precedes the second program, which waits from 300 on;
    // the other suspends it at its first point, 325 + 50.
    let asked = [(0, Write, 0, 1), (1, Write, 1, 1), (260, Read, 5, 1), (261, Read, 6, 1)];
    assert_eq!(answers(&points, &asked), [0, 1, 325, 350]);
    assert_eq!(answers(&one, &asked), [0, 1, 325, 410]);
    // Where programs are never suspended, the other waits for the end of the second.
    let never = one.clone().and("timing.suspends_max", Value::Count(0));
    assert_eq!(answers(&never, &asked), [0, 1, 325, 650]);
    // Reads without a program do not wait for each other's limit.
    let reads = [(0, Read, 5, 1), (0, Read, 6, 1), (0, Read, 7, 1)];
    assert_eq!(answers(&one, &reads), [25, 50, 75]);
    let none = points.and("timing.program_suspend_interval", us(0));
    let problems = build(&none).err().expect("no interval");
    assert!(problems[0].message.contains("must be above 0"), "{problems:?}");
}

#[test]
fn programs_that_are_never_suspended_have_no_points() {
    use Op::{Read, Write};
    let asked = [(0, Write, 0, 1), (1, Write, 1, 1), (260, Read, 5, 1), (261, Read, 6, 1)];
    let points = queued(8)
        .and("timing.program_suspend_interval", us(50))
        .and("timing.suspend_reads_max", Value::Count(1));
    assert_eq!(answers(&queued(8), &asked), [0, 1, 325, 350]);
    assert_eq!(answers(&points, &asked), [0, 1, 325, 350]);
}

#[test]
fn an_entry_stays_taken_while_the_read_that_suspends_its_program_waits_for_the_channel() {
    use Op::{Read, Write};
    // Two dies behind a channel that takes 10 us for a command and 460 us for a page.
    let slow = pausing(queued(2))
        .and("dies_per_channel", Value::Count(2))
        .and("command_time", us(10))
        .and("channel_rate", Value::Rate(2048 * 1_000_000 / 460))
        .and("timing.program_suspend_interval", us(50));
    // Programs from 470 to 770 and from 940 to 1,240. The read suspends the first at 720, but its
    // command waits for the channel until 940; so the first entry to be free is that of the second.
    let asked = [(0, Write, 0, 1), (0, Write, 1, 1), (690, Read, 0, 1), (700, Write, 2, 1)];
    assert_eq!(answers(&slow, &asked)[3], 1_240);
}

#[test]
fn a_read_suspends_a_program_and_passes_those_that_wait_with_and_without_a_buffer() {
    use Op::{Read, Write};
    let device = |pages| queued(pages).and("read_time", us(50)).and("program_time", us(500));
    let suspends = |pages| device(pages).and("timing.program_suspend_time", us(10));
    // The program of 500 is suspended at 100 for 10, the read is done at 160, and 400 are left.
    let asked = [(0, Write, 0, 1), (100, Read, 5, 1)];
    assert_eq!(answers(&suspends(0), &asked), [560, 160]);
    assert_eq!(answers(&suspends(8), &asked), [0, 160]);
    // Programs that wait are 500 each behind it.
    let asked = [(0, Write, 0, 1), (0, Write, 1, 1), (0, Write, 2, 1), (100, Read, 5, 1)];
    assert_eq!(answers(&suspends(0), &asked), [560, 1_060, 1_560, 160]);
    assert_eq!(answers(&suspends(8), &asked), [0, 0, 0, 160]);
    // Without suspension the read waits for the running program only.
    assert_eq!(answers(&device(0), &asked), [500, 1_050, 1_550, 550]);
    assert_eq!(answers(&device(8), &asked), [0, 0, 0, 550]);
    // A read of data whose program waits is no exception.
    let asked = [(0, Write, 0, 1), (1, Write, 1, 1), (100, Read, 1, 1)];
    assert_eq!(answers(&suspends(0), &asked), [560, 1_060, 160]);
}

#[test]
fn a_write_completes_when_the_last_of_its_delayed_programs_has_ended() {
    use Op::{Read, Write};
    // Even pages are on die 0, odd ones on die 1. Programs of 300 end at 300 and 301. The read on
    // die 0 at 100 takes 10 + 25 and 5 to resume, so that the first ends after the second, at 340;
    // another one at 320, after it would have ended, delays it by 40 again.
    let two = pausing(queued(0)).and("dies_per_channel", Value::Count(2));
    let asked = [(0, Write, 0, 1), (1, Write, 1, 1), (100, Read, 4, 1), (320, Read, 6, 1)];
    assert_eq!(answers(&two, &asked), [380, 301, 135, 355]);
    // A write of both dies would end at 300: the read on one die delays it to 340, and that on the
    // other to 350.
    let asked = [(0, Write, 0, 2), (100, Read, 4, 1)];
    assert_eq!(answers(&two, &asked), [340, 135]);
    let asked = [(0, Write, 0, 2), (100, Read, 4, 1), (120, Read, 5, 1), (130, Read, 7, 1)];
    // Both reads of die 1 suspend its program once, from 120 to 180: 180 + 5 are left.
    assert_eq!(answers(&two, &asked), [365, 135, 155, 180]);
    // The delay is queueing.
    let at = |us: u64| SimTime::from_ns(us * 1_000);
    let listed = vec![
        (at(0), Request::new(Op::Write, Lba(0), 8)),
        (at(100), Request::new(Op::Read, Lba(16), 4)),
    ];
    let (done, _, end) = run(build(&two).expect("valid settings"), Host::new(listed));
    end.expect("a run without a fault");
    let write = done.iter().find(|done| done.request.op == Write).expect("a write");
    let part = |part| write.breakdown.get(part).as_ns() / 1_000;
    assert_eq!((part(LatencyPhase::FlashProgram), part(LatencyPhase::Queue)), (300, 40));
}
