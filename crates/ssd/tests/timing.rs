//! Timelines worked out by hand, to the nanosecond.

mod common;

use common::{Host, answers, build, chosen, page_ftl, pausing, queued, run, settings, text, us};
use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::{
    Component, ComponentTree, EventRecord, LatencyPhase, Lba, Machine, Op, Request, SimDuration,
    SimTime, Stream,
};
use hybridsim_flash::Cause;
use hybridsim_flash::FlashAct;
use hybridsim_flash::FlashBusy;
use hybridsim_flash::FlashEvent;
use hybridsim_flash::FlashUnit;
use hybridsim_flash::array::{Array, ProgramOrder};
use hybridsim_flash::defaults;
use hybridsim_flash::geometry::{BlockId, Geometry, Lpn, Ppn, Shape};
use hybridsim_flash::ops::{After, FlashOps};
use hybridsim_flash::timing::{
    ChipPages, CopyBack, DieScheduling, Interleaved, OperationTimes, Queued, Serial, SlcTimes,
    TimingModel, WriteBuffer,
};
use std::collections::BTreeMap;

#[path = "timing/chip_pages.rs"]
mod chip_pages;
#[path = "timing/copies.rs"]
mod copies;
#[path = "timing/serial.rs"]
mod serial;

/// Completion times of single-page requests in nanoseconds, in order of issue.
fn timeline(settings: &Settings, op: Op, asked: &[(u64, u64)]) -> Vec<u64> {
    let request = |page: u64| Request::new(op, Lba(page * 4), 4);
    let at = SimTime::from_ns;
    let listed = asked.iter().map(|&(ns, page)| (at(ns), request(page))).collect();
    let (mut done, _, end) = run(build(settings).expect("valid settings"), Host::new(listed));
    end.expect("a run without a fault");
    done.sort_by_key(|done| (done.issued, done.request.lba));
    done.iter().map(|done| done.completed.as_ns()).collect()
}

/// One channel of three dies; control takes 2 us, data 10 us. Pages 0, 1, 2 lie on dies 0, 1, 2.
fn figure_4(channels: u64, cells_ns: u64, start: &str) -> Settings {
    settings()
        .and("channels", Value::Count(channels))
        .and("dies_per_channel", Value::Count(3))
        .and("command_time", us(2))
        .and("data_command_time", us(2))
        .and("channel_rate", Value::Rate(204_800_000))
        .and("read_time", Value::Duration(SimDuration::from_ns(cells_ns)))
        .and("precondition", text(start))
}

#[test]
fn figure_4a_three_reads_on_one_channel() {
    let reads = [(0, 0), (0, 1), (0, 2)];
    // Cells of 3 us. R1: control 0..2, cells ..5, control and data 5..17. R2: control 2..4, cells
    // ..7, control and data 17..29. The bus is idle 4..5, too short for the control of R3, which
    // has to wait until R2 is finished: control 29..31, cells ..34, control and data 34..46.
    assert_eq!(timeline(&figure_4(1, 3_000, "fill"), Op::Read, &reads), [17_000, 29_000, 46_000]);
    // A nanosecond short of fitting, and fitting: the gap is 4..6.
    let almost = figure_4(1, 3_999, "fill");
    assert_eq!(timeline(&almost, Op::Read, &reads), [17_999, 29_999, 47_998]);
    assert_eq!(timeline(&figure_4(1, 4_000, "fill"), Op::Read, &reads), [18_000, 30_000, 42_000]);
    // On separate channels they are independent.
    let apart = figure_4(3, 3_000, "fill");
    assert_eq!(timeline(&apart, Op::Read, &reads), [17_000, 17_000, 17_000]);
}

#[test]
fn figure_4b_writes_are_contiguous_and_in_order() {
    let writes = [(0, 0), (1_000, 1), (2_000, 2), (3_000, 3)];
    // Control and data in consecutive slots of 12 us, then 300 us of cells; the fourth goes to die
    // 0 again and waits for its cells.
    let expected = [312_000, 324_000, 336_000, 624_000];
    assert_eq!(timeline(&figure_4(1, 25_000, "none"), Op::Write, &writes), expected);
}

#[test]
fn a_full_schedule_table_sends_transfers_to_the_end() {
    // Reads of dies 0 and 1 leave the gap 4..27; with a table of two slots the control of a third
    // read has no entry for the gap and goes behind the last.
    let reads = [(0, 0), (0, 1), (0, 2)];
    let free = figure_4(1, 25_000, "fill");
    assert_eq!(timeline(&free, Op::Read, &reads), [39_000, 51_000, 63_000]);
    let full = free.and("timing.schedule_slots", Value::Count(2));
    let late = timeline(&full, Op::Read, &reads);
    assert!(late[2] > 63_000, "{late:?}");
}

#[test]
fn an_overloaded_queue_takes_as_many_slots_as_it_needs() {
    // Writes that wait for a buffer take no slots meanwhile; without one all are scheduled at once.
    let overload = queued(0)
        .and("dies_per_channel", Value::Count(4))
        .and("channel_rate", Value::Rate(204_800_000));
    let mut stream = Stream::new(1, "writes");
    let writes: Vec<(u64, u64)> =
        (0..4_000).map(|number| (1_000 * number, stream.below(256))).collect();
    let last = |settings: &Settings| *timeline(settings, Op::Write, &writes).last().expect("many");
    let needed = last(&overload);
    let slots = |count: u64| overload.clone().and("timing.schedule_slots", Value::Count(count));
    assert_eq!(last(&slots(1 << 20)), needed);
    let limited = last(&slots(512));
    assert!(limited > needed * 5 / 4, "{limited} and {needed}: 512 slots take longer");
}

#[test]
fn registers_and_memory_are_charged_once_each_way() {
    for timing in ["interleaved", "serial"] {
        let slow = |start| {
            settings()
                .and("timing", chosen("timing", timing))
                .and("precondition", text(start))
                .and("register_time", us(3))
                .and("controller.ram_time", us(5))
        };
        assert_eq!(timeline(&slow("fill"), Op::Read, &[(0, 0)]), [25_000 + 3_000 + 5_000]);
        assert_eq!(timeline(&slow("none"), Op::Write, &[(0, 0)]), [300_000 + 3_000 + 5_000]);
        assert_eq!(timeline(&slow("none"), Op::Read, &[(0, 0)]), [0], "nothing to fetch");
    }
}

/// Two dies of two planes on one channel, with copy-back within `reach`.
fn two_dies(reach: CopyBack) -> (Geometry, OperationTimes) {
    let shape = Shape {
        channels: 1,
        dies_per_channel: 2,
        planes_per_die: 2,
        blocks_per_plane: 4,
        pages_per_block: 8,
        page_bytes: 2048,
        spare_bytes: 0,
    };
    let geometry = Geometry::new(&shape).expect("a valid shape");
    let micro = SimDuration::from_us;
    let delays = OperationTimes {
        read: micro(25),
        program: micro(300),
        erase: micro(1500),
        retry: SimDuration::ZERO,
        slc: SlcTimes::NONE,
        copy_plane: micro(310),
        copy_die: micro(320),
        command: micro(1),
        data_command: micro(2),
        page_transfer: micro(10),
        plane_transfer: micro(10),
        ram: micro(100),
        copy_back: reach,
        firmware_cores: 0,
        request_interval: micro(0),
        read_overhead: micro(0),
        write_overhead: micro(0),
        host_rate: 0,
        host_write_rate: 0,
        host_full_duplex: false,
        schedule_slots: None,
    };
    (geometry, delays)
}

/// End of a copy of a page from block 0 to block `target`, timed by `clock`.
fn copied(geometry: Geometry, clock: &mut dyn TimingModel, target: u32) -> SimTime {
    let mut flash = FlashOps::new(Array::new(geometry, ProgramOrder::Any, 10));
    flash.host_program(Ppn(0), Lpn(0), After::NOTHING);
    flash.clear();
    flash.copy(Ppn(0), Ppn(target * 8), Cause::Gc, After::NOTHING);
    assert_eq!(flash.violation(), None);
    clock.begin_background(SimTime::ZERO);
    clock.page(flash.list(), 0, 0);
    clock.end().busy_until()
}

/// Dies without suspension and multi-plane operations.
const IN_ORDER: DieScheduling = DieScheduling {
    program_suspend: None,
    program_points: None,
    erase_suspend: None,
    resume: SimDuration::ZERO,
    suspends_max: 0,
    multi_plane: false,
};

/// The time in nanoseconds that background operations take on dies of [`two_dies`] with this chip,
/// where pages 0, 1 and 2 hold data.
fn background(
    chip: ChipPages,
    (geometry, times): (Geometry, OperationTimes),
    ops: impl FnOnce(&mut FlashOps),
) -> u64 {
    let mut queued = Queued::new(geometry, times, (IN_ORDER, chip), WriteBuffer::new(0, 1, false));
    timed(&mut queued, geometry, ops)
}

/// The time in nanoseconds that `clock` gives background operations, where pages 0, 1 and 2 hold
/// data.
fn timed(clock: &mut dyn TimingModel, geometry: Geometry, ops: impl FnOnce(&mut FlashOps)) -> u64 {
    let mut flash = FlashOps::new(Array::new(geometry, ProgramOrder::Any, 10));
    for page in 0..3 {
        flash.host_program(Ppn(page), Lpn(page), After::NOTHING);
    }
    flash.clear();
    ops(&mut flash);
    assert_eq!(flash.violation(), None);
    clock.begin_background(SimTime::ZERO);
    clock.page(flash.list(), 0, 0);
    clock.end().busy_until().as_ns()
}

#[test]
fn a_copy_reads_the_page_type_of_its_source() {
    // Pages of even offsets are read in 12.5 us, the others in 37.5 us.
    let chip = |times: &OperationTimes| ChipPages::new(times.read, 2, 1.0, 1);
    let copy = |reach, from, target| {
        let (geometry, times) = two_dies(reach);
        background(chip(&times), (geometry, times), |flash| {
            flash.copy(Ppn(from), Ppn(target), Cause::Gc, After::NOTHING);
        })
    };
    // To the other die: command, cells, control and data, and in again.
    let transfers = 1_000 + 2_000 + 10_000 + 1_000 + 10_000;
    assert_eq!(copy(CopyBack::Die, 0, 4 * 8), 12_500 + transfers + 300_000);
    assert_eq!(copy(CopyBack::Die, 1, 4 * 8), 37_500 + transfers + 300_000);
    // Inside the plane: its time is that of an average read.
    assert_eq!(copy(CopyBack::Plane, 0, 8), 310_000 + 2_000 - 12_500);
    assert_eq!(copy(CopyBack::Plane, 1, 8), 310_000 + 2_000 + 12_500);
    // Even where it is shorter than a read and a program.
    let (geometry, times) = two_dies(CopyBack::Plane);
    let short = OperationTimes { copy_plane: SimDuration::from_us(5), ..times };
    let took = background(chip(&times), (geometry, short), |flash| {
        flash.copy(Ppn(0), Ppn(8), Cause::Gc, After::NOTHING);
    });
    assert_eq!(took, 2_000);
}

#[test]
fn an_erased_block_takes_no_page_of_an_earlier_program() {
    let (geometry, times) = two_dies(CopyBack::None);
    let chip = ChipPages::single(times.read).with_program_pages(4, 1, 1);
    let took = background(chip, (geometry, times), |flash| {
        for page in 8..11 {
            flash.program(Ppn(page), Lpn(page), Cause::Gc, After::NOTHING);
        }
        for page in 8..11 {
            flash.invalidate(Ppn(page));
        }
        flash.erase(BlockId(1), Cause::Gc, After::NOTHING);
        flash.program(Ppn(8), Lpn(8), Cause::Gc, After::NOTHING);
    });
    // Three pages in one program, the erase, and the program of the new page.
    assert_eq!(took, 1_000 + 10_000 + 300_000 + 1_500_000 + 300_000);
}

/// The duration of a copy from block 0 to `target` in microseconds.
fn copy(clock: &str, reach: CopyBack, target: u32) -> u64 {
    let (geometry, delays) = two_dies(reach);
    let mut clock = match clock {
        "serial" => Box::new(Serial::new(geometry, delays)) as Box<dyn TimingModel>,
        _ => Box::new(Interleaved::new(geometry, delays)),
    };
    let end = copied(geometry, &mut *clock, target);
    assert_eq!(end.as_ns() % 1_000, 0);
    end.as_ns() / 1_000
}

#[test]
fn a_copy_to_another_die_takes_the_channel_both_ways() {
    use FlashAct::{Program, Read};
    let (geometry, delays) = two_dies(CopyBack::Die);
    let chip = ChipPages::single(delays.read);
    let queued = Queued::new(geometry, delays, (IN_ORDER, chip), WriteBuffer::new(0, 1, false));
    let interleaved = Interleaved::new(geometry, delays);
    // Out: command, cells, control and data. In: command and data, then the cells. A queued die
    // receives the command of a background read in any gap of the channel.
    let command = [(FlashUnit::Channel(0), Read, 0, 1)];
    let rest = [
        (FlashUnit::Channel(0), Read, 26, 38),
        (FlashUnit::Channel(0), Program, 38, 49),
        (FlashUnit::Die(0), Read, 0, 38),
    ];
    let clocks = [
        (Box::new(queued) as Box<dyn TimingModel>, &command[1..], 49),
        (Box::new(interleaved), &command[..], 38),
    ];
    for (mut clock, command, programs_from) in clocks {
        clock.busy(SimTime::ZERO, false).expect("it has times").enable();
        let end = copied(geometry, &mut *clock, 4);
        let mut pieces = Vec::new();
        clock.busy(SimTime::ZERO, true).expect("it has times").report(|event| {
            let busy = event.event::<FlashBusy>();
            if let Some(FlashBusy { unit, act, cause: Cause::Gc, begin, end }) = busy {
                pieces.push((unit, act, begin.as_ns() / 1_000, end.as_ns() / 1_000));
            }
        });
        pieces.sort_by_key(|piece| (piece.0, piece.2));
        let last = (FlashUnit::Die(1), Program, programs_from, 349);
        assert_eq!(pieces, [command, &rest[..], &[last][..]].concat());
        assert_eq!(end, SimTime::from_ns(349_000));
    }
}

#[test]
fn copies_take_the_shortest_path_of_the_chip() {
    // Planes are numbered over dies first: blocks 0..4 lie on die 0, 4..8 on die 1, 8..12 on the
    // other plane of die 0 (flashsim, algorithm 2: merges inside planes and inside dies).
    for clock in ["interleaved", "serial"] {
        let table = [
            (CopyBack::Plane, 1, 310 + 2),
            (CopyBack::Die, 1, 310 + 2),
            (CopyBack::Die, 8, 320 + 2),
            // Out and in again: read, control twice and data, then the same into the register.
            (CopyBack::Plane, 8, 25 + 1 + 2 + 10 + 1 + 10 + 300),
            (CopyBack::None, 1, 25 + 1 + 2 + 10 + 1 + 10 + 300),
            (CopyBack::Die, 4, 25 + 1 + 2 + 10 + 1 + 10 + 300),
        ];
        for (reach, target, expected) in table {
            assert_eq!(copy(clock, reach, target), expected, "{clock} {reach:?} {target}");
        }
    }
}

#[test]
fn latency_phases_separate_registers_and_memory() {
    let slow = settings()
        .and("precondition", text("fill"))
        .and("register_time", us(3))
        .and("controller.ram_time", us(5))
        .and("command_time", us(2));
    let listed = vec![(SimTime::ZERO, Request::new(Op::Read, Lba(0), 4))];
    let (done, _, end) = run(build(&slow).expect("valid settings"), Host::new(listed));
    end.expect("a run without a fault");
    let part = |part| done[0].breakdown.get(part).as_ns();
    assert_eq!(
        [
            part(LatencyPhase::FlashRead),
            part(LatencyPhase::Overhead),
            part(LatencyPhase::FlashBus),
            part(LatencyPhase::Queue)
        ],
        [28_000, 5_000, 2_000, 0]
    );
}

#[test]
fn reads_precede_queued_programs_and_suspend_running_ones() {
    use Op::{Flush, Read, Write};
    // Two programs, 0..300 and 300..600; a read at 100; a flush completes when all is done.
    let asked = [(0, Write, 0, 1), (1, Write, 1, 1), (100, Read, 5, 1), (101, Flush, 0, 0)];
    assert_eq!(answers(&queued(8), &asked), [0, 1, 325, 625]);
    // Suspended at 100 for 10, read until 135, 200 + 5 left: until 340, and then the other.
    assert_eq!(answers(&pausing(queued(8)), &asked), [0, 1, 135, 640]);
    let never = pausing(queued(8)).and("timing.suspends_max", Value::Count(0));
    assert_eq!(answers(&never, &asked), [0, 1, 325, 625]);
    // With protection a flush has nothing to wait for, so later requests may precede it.
    let mut more = asked.to_vec();
    more.push((200, Read, 6, 1));
    let protected = pausing(queued(8)).and("timing.power_loss_protection", Value::Flag(true));
    assert_eq!(answers(&protected, &more), [0, 1, 135, 101, 235]);
    // Without it the flush was scheduled to complete at 640, and the read follows.
    assert_eq!(answers(&pausing(queued(8)), &more), [0, 1, 135, 640, 665]);
    // A program is not suspended if that would take longer than the rest of it.
    let late = [(0, Write, 0, 1), (291, Read, 5, 1)];
    assert_eq!(answers(&pausing(queued(8)), &late), [0, 325]);
}

#[test]
fn the_host_link_has_a_rate_for_writes() {
    use Op::{Read, Write};
    // A page takes 10 us to the host and 20 us from it.
    let link = queued(8)
        .and("controller.host_rate", Value::Rate(204_800_000))
        .and("controller.host_write_rate", Value::Rate(102_400_000));
    let asked = [(0, Write, 0, 1), (1_000, Read, 5, 1)];
    assert_eq!(answers(&link, &asked), [20, 1_035]);
    let unbuffered = link.and("timing.write_buffer", Value::Bytes(0));
    for timing in ["interleaved", "serial"] {
        let other = unbuffered.clone().and("timing", chosen("timing", timing));
        assert_eq!(answers(&other, &asked), [320, 1_035], "{timing}");
    }
    // Without a rate of the link, the one for writes is none either.
    let without = queued(8).and("controller.host_write_rate", Value::Rate(102_400_000));
    assert_eq!(answers(&without, &asked), [0, 1_025]);
}

#[test]
fn a_full_write_buffer_makes_writes_wait() {
    use Op::{Read, Write};
    let asked = [(0, Write, 0, 1), (1, Write, 1, 1), (2, Write, 2, 1), (50, Read, 5, 1)];
    // The third write gets a buffer page when the first is programmed: at 340, as the read suspends
    // that program at 50 for 10, takes until 85, and leaves 250 + 5 of it.
    assert_eq!(answers(&pausing(queued(2)), &asked), [0, 1, 340, 85]);
    // One program after the other without suspension, and the read after the first.
    assert_eq!(answers(&queued(2), &asked), [0, 1, 300, 325]);
    // Without a buffer a write completes when it is programmed: the first at 340 as well.
    assert_eq!(answers(&pausing(queued(0)), &asked), [340, 640, 940, 85]);
}

#[test]
fn waiting_writes_get_entries_in_order_of_arrival() {
    use Op::{Flush, Read, Write};
    // Two pages are in the buffer, programmed 0..300 and 300..600. The third and the fourth page
    // of the first write take their entries, the second write that of the third page, which is
    // programmed 600..900. The flush waits for what is in the buffer when it arrives.
    let asked = [(0, Write, 0, 4), (1, Write, 4, 1), (2, Flush, 0, 0)];
    assert_eq!(answers(&queued(2), &asked), [600, 900, 600]);
    // Programs of waiting writes are not in the queue of the die yet: the read at 610 precedes all
    // but that of the third page.
    let asked = [(0, Write, 0, 4), (1, Write, 4, 1), (610, Read, 6, 1)];
    assert_eq!(answers(&queued(2), &asked), [600, 900, 925]);
    // The wait is queueing, page by page, and nothing else.
    let listed = vec![(SimTime::ZERO, Request::new(Op::Write, Lba(0), 16))];
    let slow = queued(2).and("controller.write_overhead", us(7)).and("controller.ram_time", us(3));
    let (done, _, end) = run(build(&slow).expect("valid settings"), Host::new(listed));
    end.expect("a run without a fault");
    // Received at 7, in RAM at 10; programs end at 310 and 610: the fourth page is in RAM at 613.
    let part = |part| done[0].breakdown.get(part).as_ns() / 1_000;
    assert_eq!(done[0].completed.as_ns(), 613_000);
    assert_eq!((part(LatencyPhase::Queue), part(LatencyPhase::Overhead)), (603, 10));
}

#[test]
fn a_paused_write_buffer_frees_no_entry() {
    use Op::{Read, Write};
    // No entry is free from 400 to 1,000. The first is by then, those of the second and the third
    // are not, though they are programmed at 650 and 950; the sixth waits for the fourth's program.
    let paused = pausing(queued(2))
        .and("timing.buffer_pause_time", us(600))
        .and("timing.buffer_pause_interval", us(1_000));
    let mut asked = vec![(0, Write, 0, 1), (350, Write, 1, 1), (360, Write, 2, 1)];
    asked.extend([(370, Write, 3, 1), (380, Write, 4, 1), (390, Write, 5, 1)]);
    assert_eq!(answers(&paused, &asked), [0, 350, 360, 1_000, 1_000, 1_300]);
    // A read suspends the second's program, for which the fourth write waits, until the pause ends.
    asked.truncate(4);
    asked.push((500, Read, 5, 1));
    assert_eq!(answers(&paused, &asked), [0, 350, 360, 1_000, 535]);
    let words = |settings: Settings| match build(&settings) {
        Ok(_) => String::new(),
        Err(problems) => problems[0].message.clone(),
    };
    let whole = paused.clone().and("timing.buffer_pause_time", us(1_000));
    assert!(words(whole).contains("set a longer buffer_pause_interval"));
    let without = queued(2).and("timing.buffer_pause_time", us(600));
    assert!(words(without).contains("set buffer_pause_interval"));
    let never = paused.clone().and("timing.buffer_pause_full_max", us(600));
    assert!(words(never).contains("less than buffer_pause_time"));
}

#[test]
fn a_pause_ends_early_once_a_write_has_waited_long_enough() {
    use Op::Write;
    let paused = pausing(queued(2))
        .and("timing.buffer_pause_time", us(600))
        .and("timing.buffer_pause_interval", us(1_000));
    let short = paused.and("timing.buffer_pause_full_max", us(500));
    // A write waits from 370 on, in the pause that begins at 400, which therefore ends at 900: the
    // second's entry is free then, the third's when it is programmed at 950, the fourth's at 1,250.
    let mut asked = vec![(0, Write, 0, 1), (350, Write, 1, 1), (360, Write, 2, 1)];
    asked.extend([(370, Write, 3, 1), (380, Write, 4, 1), (390, Write, 5, 1)]);
    assert_eq!(answers(&short, &asked), [0, 350, 360, 900, 950, 1_250]);
    // No write waits before 980: the pause is not cut short.
    asked.truncate(3);
    asked.push((980, Write, 3, 1));
    assert_eq!(answers(&short, &asked), [0, 350, 360, 1_000]);
    // The wait begins in the pause, at 450, and counts from there.
    asked.truncate(3);
    asked.push((450, Write, 3, 1));
    assert_eq!(answers(&short, &asked), [0, 350, 360, 950]);
}

#[test]
fn planes_of_a_die_program_together() {
    use Op::{Flush, Write};
    let two = queued(8).and("planes_per_die", Value::Count(2)).and("precondition", text("none"));
    let asked = [(0, Write, 0, 2), (1, Flush, 0, 0)];
    assert_eq!(answers(&two, &asked), [0, 600]);
    let together = two
        .and("timing.multi_plane", Value::Flag(true))
        .and("channel_rate", Value::Rate(204_800_000));
    // Both transfers of 10 us, then one program.
    assert_eq!(answers(&together, &asked), [0, 320]);
    let apart = [(0, Write, 0, 1), (0, Write, 1, 1), (1, Flush, 0, 0)];
    assert_eq!(answers(&together, &apart)[2], 610, "two requests, two programs");
}

#[test]
fn a_multi_plane_operation_has_one_mode() {
    let micro = SimDuration::from_us;
    let slc = SlcTimes { read: micro(10), program: micro(100), erase: micro(1000), bits: 2 };
    let (geometry, native) = two_dies(CopyBack::None);
    let times = OperationTimes { slc, ..native };
    let scheduling = DieScheduling { multi_plane: true, ..IN_ORDER };
    // Blocks 0 and 8 are in the two planes of die 0.
    let took = |modes: [bool; 2], erases: bool| {
        let array = Array::new(geometry, ProgramOrder::Sequential, 10).with_slc_mode(4);
        let mut flash = FlashOps::new(array);
        for (block, in_slc_mode) in [BlockId(0), BlockId(8)].into_iter().zip(modes) {
            if in_slc_mode {
                flash.begin_slc(block);
            }
            if erases {
                flash.erase(block, Cause::Gc, After::NOTHING);
            } else {
                flash.program(geometry.page(block, 0), Lpn(0), Cause::Gc, After::NOTHING);
            }
        }
        let buffer = WriteBuffer::new(0, 1, false);
        let chip = ChipPages::new(times.read, 1, 0.0, 1);
        let queued = Queued::new(geometry, times, (scheduling, chip), buffer);
        let mut clock = queued;
        clock.begin_background(SimTime::ZERO);
        clock.page(flash.list(), 0, 0);
        clock.end().busy_until().as_ns() / 1_000
    };
    // Transfers of 11 us end at 11 and 22, commands of erases at 1 and 2.
    assert_eq!(took([false, false], false), 22 + 300);
    assert_eq!(took([true, true], false), 22 + 100);
    assert_eq!(took([true, false], false), 11 + 100 + 300);
    assert_eq!(took([false, true], false), 11 + 300 + 100);
    assert_eq!(took([false, false], true), 2 + 1_500);
    assert_eq!(took([true, true], true), 2 + 1_000);
    assert_eq!(took([true, false], true), 1 + 1_000 + 1_500);
}

#[test]
fn the_controller_takes_one_request_per_interval() {
    use Op::Read;
    let four = queued(0)
        .and("dies_per_channel", Value::Count(4))
        .and("controller.request_interval", us(7));
    let asked: Vec<_> = (0..4).map(|page| (0, Read, page, 1)).collect();
    assert_eq!(answers(&four, &asked), [25, 32, 39, 46]);
    let interleaved = four.and("timing", chosen("timing", "interleaved"));
    assert_eq!(answers(&interleaved, &asked), [25, 32, 39, 46]);
    assert_eq!(answers(&interleaved, &[(0, Read, 0, 1), (100, Read, 1, 1)]), [25, 125]);
}

#[test]
fn requests_wait_for_a_free_processor_core() {
    use Op::{Read, Write};
    let four = queued(4)
        .and("dies_per_channel", Value::Count(4))
        .and("controller.read_overhead", us(10))
        .and("controller.write_overhead", us(3));
    let reads: Vec<_> = (0..4).map(|page| (0, Read, page, 1)).collect();
    assert_eq!(answers(&four, &reads), [35; 4]);
    for timing in ["queued", "interleaved"] {
        let buffer = if timing == "queued" { 4 * 2048 } else { 0 };
        let four = four
            .clone()
            .and("timing", chosen("timing", timing))
            .and("timing.write_buffer", Value::Bytes(buffer));
        let cores = |count| four.clone().and("controller.firmware_cores", Value::Count(count));
        assert_eq!(answers(&cores(1), &reads), [35, 45, 55, 65], "{timing}");
        assert_eq!(answers(&cores(2), &reads), [35, 35, 45, 45], "{timing}");
        assert_eq!(answers(&cores(3), &reads), [35, 35, 35, 45], "{timing}");
        // Both cores are busy until 10; the write then takes one until 13.
        let mixed = [(0, Read, 0, 1), (0, Read, 1, 1), (5, Write, 2, 1), (6, Read, 3, 1)];
        // Without a buffer it is programmed after the first read, on the same die.
        let [of_two, of_one] = if timing == "queued" { [13, 23] } else { [335; 2] };
        assert_eq!(answers(&cores(2), &mixed), [35, 35, of_two, 45], "{timing}");
        assert_eq!(answers(&cores(1), &mixed), [35, 45, of_one, 58], "{timing}");
        // A core takes ten microseconds for a read: 100,000 reads a second, whatever else is free.
        let many: Vec<_> = (0..200).map(|read| (read, Read, read % 4, 1)).collect();
        let last = *answers(&cores(1).and("read_time", us(1)), &many).last().expect("reads");
        assert_eq!(last, 200 * 10 + 1, "{timing}");
    }
}

#[test]
fn a_stripe_fills_part_of_a_plane_before_the_next() {
    use Op::Read;
    let two = queued(0).and("dies_per_channel", Value::Count(2));
    let asked: Vec<_> = (0..4).map(|page| (0, Read, page, 1)).collect();
    assert_eq!(answers(&two, &asked), [25, 25, 50, 50]);
    let pairs = two.and("ftl", page_ftl(&[("stripe_pages", Value::Count(2))]));
    assert_eq!(answers(&pairs, &asked), [25, 50, 25, 50]);
}

/// An interval of activity: unit, activity, cause, start and end in nanoseconds.
type Piece = (FlashUnit, FlashAct, Cause, u64, u64);

/// The activity of dies and channels, by unit and time.
fn busy(settings: &Settings, listed: Vec<(SimTime, Request)>) -> Vec<Piece> {
    let root = ComponentTree::leaf("ssd", build(settings).expect("valid settings"));
    let root = ComponentTree::inner("host", Host::new(listed), vec![root]);
    let mut machine = Machine::new(root, true);
    machine.enable_detailed_events();
    let mut events: Vec<EventRecord> = Vec::new();
    machine.run(&mut events, &mut |_| true).expect("a run without a fault");
    let piece = |record: &EventRecord| match record.event() {
        Some(FlashBusy { unit, act, cause, begin, end }) => {
            Some((unit, act, cause, begin.as_ns(), end.as_ns()))
        }
        _ => None,
    };
    let mut pieces: Vec<Piece> = events.iter().filter_map(piece).collect();
    pieces.sort_by_key(|piece| (piece.0, piece.3));
    pieces
}

fn requests(asked: &[(u64, Op, u64)]) -> Vec<(SimTime, Request)> {
    let one = |&(ns, op, page): &(u64, Op, u64)| {
        (SimTime::from_ns(ns), Request::new(op, Lba(page * 4), 4))
    };
    asked.iter().map(one).collect()
}

/// flashsim, figure 4: while the cells of one die work, the channel serves the other.
#[test]
fn two_dies_on_one_channel_alternate_on_it_and_work_in_parallel() {
    use FlashAct::{Program, Read};
    use FlashUnit::{Channel, Die};
    let host = Cause::Host;
    let two = |start| figure_4(1, 25_000, start).and("dies_per_channel", Value::Count(2));
    // Command and data in one slot of 12 us, then 300 us of cells.
    let writes = requests(&[(0, Op::Write, 0), (0, Op::Write, 1)]);
    let written = [
        (Channel(0), Program, host, 0, 12_000),
        (Channel(0), Program, host, 12_000, 24_000),
        (Die(0), Program, host, 0, 312_000),
        (Die(1), Program, host, 12_000, 324_000),
    ];
    assert_eq!(busy(&two("none"), writes.clone()), written);
    // One operation at a time: nothing overlaps.
    let serial = [
        (Channel(0), Program, host, 0, 12_000),
        (Channel(0), Program, host, 312_000, 324_000),
        (Die(0), Program, host, 0, 312_000),
        (Die(1), Program, host, 312_000, 624_000),
    ];
    assert_eq!(
        busy(&two("none").and("timing", chosen("timing", "serial")), writes.clone()),
        serial
    );
    // Queued dies receive the data early and start when they have arrived.
    let queued = [
        (Channel(0), Program, host, 0, 12_000),
        (Channel(0), Program, host, 12_000, 24_000),
        (Die(0), Program, host, 12_000, 312_000),
        (Die(1), Program, host, 24_000, 324_000),
    ];
    assert_eq!(busy(&two("none").and("timing", chosen("timing", "queued")), writes), queued);
    // Reads hold their die until the data are out, and the channel for command and data only:
    // cells 2..27 and 4..29, data 27..39 and 39..51.
    let reads = requests(&[(0, Op::Read, 0), (0, Op::Read, 1)]);
    let read = [
        (Channel(0), Read, host, 0, 2_000),
        (Channel(0), Read, host, 2_000, 4_000),
        (Channel(0), Read, host, 27_000, 39_000),
        (Channel(0), Read, host, 39_000, 51_000),
        (Die(0), Read, host, 0, 39_000),
        (Die(1), Read, host, 2_000, 51_000),
    ];
    for timing in ["interleaved", "queued"] {
        assert_eq!(
            busy(&two("fill").and("timing", chosen("timing", timing)), reads.clone()),
            read,
            "{timing}"
        );
    }
}

#[test]
fn a_suspended_program_shows_as_two_intervals_around_the_read() {
    use FlashAct::{Program, Read};
    let die = FlashUnit::Die(0);
    // As in `reads_precede_queued_programs_and_suspend_running_ones`.
    let asked = requests(&[(0, Op::Write, 0), (1_000, Op::Write, 1), (100_000, Op::Read, 5)]);
    let expected = [
        (die, Program, Cause::Host, 0, 100_000),
        (die, Read, Cause::Host, 100_000, 135_000),
        (die, Program, Cause::Host, 135_000, 340_000),
        (die, Program, Cause::Host, 340_000, 640_000),
    ];
    assert_eq!(busy(&pausing(queued(8)), asked), expected);
}

/// Units do one thing at a time, and every operation is reported with its cause.
#[test]
fn units_do_one_thing_at_a_time_and_every_operation_is_reported() {
    for (timing, ftl) in
        [("interleaved", "page"), ("interleaved", "fast"), ("queued", "page"), ("serial", "bast")]
    {
        let device = pausing(settings())
            .and("timing", chosen("timing", timing))
            .and("ftl", defaults::entry("ftl", ftl, &hybridsim_ssd::registry()))
            .and("command_time", us(1))
            .and("channel_rate", Value::Rate(204_800_000));
        let ssd = build(&device).expect("valid settings");
        let host = Host::random(3_000, 4, ssd.capacity());
        let root = ComponentTree::inner("host", host, vec![ComponentTree::leaf("ssd", ssd)]);
        let mut machine = Machine::new(root, true);
        machine.enable_detailed_events();
        let mut events: Vec<EventRecord> = Vec::new();
        machine.run(&mut events, &mut |_| true).expect("a run without a fault");
        let mut pieces = BTreeMap::<FlashUnit, Vec<(SimTime, SimTime)>>::new();
        // Programs and erases by cause: as issued, and as executed.
        let (mut asked, mut shown) = ([[0; 6]; 2], [[0; 6]; 2]);
        for record in &events {
            match record.event() {
                Some(FlashEvent::Program { cause, .. }) => asked[0][cause as usize] += 1,
                Some(FlashEvent::Erase { cause, .. }) => asked[1][cause as usize] += 1,
                Some(event) => {
                    let Some(busy) = event.busy() else { continue };
                    let FlashBusy { unit, act, cause, begin, end } = busy;
                    assert!(begin < end);
                    pieces.entry(unit).or_default().push((begin, end));
                    match (unit, act) {
                        (FlashUnit::Channel(_), _) | (_, FlashAct::Read) => {}
                        (_, FlashAct::Erase) => shown[1][cause as usize] += 1,
                        (_, FlashAct::Program | FlashAct::Copy) => shown[0][cause as usize] += 1,
                    }
                }
                _ => {}
            }
        }
        if timing == "queued" {
            // A suspended operation is reported in parts.
            let more = |(shown, asked): (&[u32; 6], &[u32; 6])| shown.iter().ge(asked);
            assert!(shown.iter().zip(&asked).all(more), "{shown:?} {asked:?}");
        } else {
            assert_eq!(shown, asked, "{timing} {ftl}");
        }
        assert_eq!(pieces.len(), 2 + 4, "{timing} {ftl}: two channels of two dies");
        for (unit, mut pieces) in pieces {
            pieces.sort();
            let apart = pieces.windows(2).all(|pair| pair[0].1 <= pair[1].0);
            assert!(apart, "{timing} {ftl}: {unit:?} does two things at once");
        }
    }
}

#[test]
fn an_encryption_engine_delays_pages_of_the_host() {
    let Value::Entry(mut engine) = chosen("stage", "encryption") else { panic!("an entry") };
    engine.settings.set("rate", Value::Rate(1_024_000_000));
    let plain = settings().and("precondition", text("fill"));
    let encrypted = plain.clone().and("stages", Value::Entries(vec![engine]));
    for op in [Op::Read, Op::Write] {
        let took = |settings| timeline(settings, op, &[(0, 0)])[0];
        // 1 us to the first byte, and 2 us for 2,048 bytes.
        assert_eq!(took(&encrypted), took(&plain) + 3_000, "{op:?}");
    }
}
