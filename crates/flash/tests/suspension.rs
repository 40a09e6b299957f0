//! Programs that are suspended for reads: timelines worked out by hand, to the microsecond.

mod common;

use common::{answers, build, pausing, queued, us};
use hybridsim_config::param::Value;
use hybridsim_engine::Op;

#[test]
fn programs_are_suspended_at_points_and_for_so_many_reads() {
    use Op::{Flush, Read, Write};
    let points = pausing(queued(8)).and("program_suspend_interval", us(50));
    let one = points.clone().and("suspend_reads_max", Value::Count(1));
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
    let never = one.clone().and("suspends_max", Value::Count(0));
    assert_eq!(answers(&never, &asked), [0, 1, 325, 650]);
    // Reads without a program do not wait for each other's limit.
    let reads = [(0, Read, 5, 1), (0, Read, 6, 1), (0, Read, 7, 1)];
    assert_eq!(answers(&one, &reads), [25, 50, 75]);
    let none = points.and("program_suspend_interval", us(0));
    let problems = build(&none).err().expect("no interval");
    assert!(problems[0].message.contains("must be above 0"), "{problems:?}");
}

#[test]
fn programs_that_are_never_suspended_have_no_points() {
    use Op::{Read, Write};
    let asked = [(0, Write, 0, 1), (1, Write, 1, 1), (260, Read, 5, 1), (261, Read, 6, 1)];
    let points =
        queued(8).and("program_suspend_interval", us(50)).and("suspend_reads_max", Value::Count(1));
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
        .and("program_suspend_interval", us(50));
    // Programs from 470 to 770 and from 940 to 1,240. The read suspends the first at 720, but its
    // command waits for the channel until 940; so the first entry to be free is that of the second.
    let asked = [(0, Write, 0, 1), (0, Write, 1, 1), (690, Read, 0, 1), (700, Write, 2, 1)];
    assert_eq!(answers(&slow, &asked)[3], 1_240);
}
