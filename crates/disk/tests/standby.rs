//! STANDBY IMMEDIATE and IDLE IMMEDIATE: times and energy, worked out by hand.

mod common;

use common::machine;
use hybridsim_engine::{
    Command, CommonEvent, EventRecord, LatencyPhase, Lba, Op, PowerState, Request, SimDuration,
    SimTime,
};
use std::cell::RefCell;
use std::rc::Rc;

/// A turn of 10 ms, 100 sectors on a track, no seek on the first one; watts of the states.
const DRIVE: &str = r#"
kind = "hard-disk"
rpm = "6000rpm"
heads = 1
synchronised = true
cylinders = 100
outer_sectors_per_track = 100
inner_sectors_per_track = 100
zone_count = 1
seek = { kind = "linear", single = "1ms", full = "10ms" }
cache_segments = 4
cache_segment_size = "16KiB"
read_ahead = "none"
destage_delay = "5s"
idle_power = "2W"
active_power = "3W"
seek_power = "4W"
read_power = "3W"
write_power = "3W"
standby_power = "0.25W"
spin_up_power = "5W"
spin_up_time = "2s"
spin_down_power = "1W"
spin_down_time = "1s"
"#;

#[derive(Clone, Copy)]
enum Step {
    Send(Command),
    Ask(Op, u64),
}

/// A step's time in ms, and when it was done.
type Done = Rc<RefCell<Vec<(usize, SimTime, SimDuration)>>>;

/// Sends every step at its time (ms) and goes on until `end` (s). When the steps were done, in
/// their order, the time each waited for the spindle, and what was reported.
fn play(steps: &[(u64, Step)], end: u64) -> (Vec<(u64, u64)>, Vec<EventRecord>) {
    let done = Done::default();
    let (seen, steps) = (Rc::clone(&done), steps.to_vec());
    let mut next = 0;
    let mut machine = machine(DRIVE, false, move |ctx, completion| {
        if let Some(done) = completion {
            let up = done.breakdown.get(LatencyPhase::SpinUp);
            return seen.borrow_mut().push((done.tag as usize, ctx.now(), up));
        }
        let at = |ms| SimTime::ZERO + SimDuration::from_ms(ms);
        while let Some((ms, step)) = steps.get(next).filter(|step| at(step.0) <= ctx.now()) {
            assert_eq!(at(*ms), ctx.now());
            match *step {
                Step::Send(command) => ctx.command(0, command, (Lba(0), 0), next as u64),
                Step::Ask(op, lba) => ctx.issue(0, Request::new(op, Lba(lba), 8), next as u64),
            };
            next += 1;
        }
        match steps.get(next) {
            Some((ms, _)) => ctx.wake_at(at(*ms), 0),
            None if ctx.now() >= at(end * 1000) => ctx.halt(),
            None => ctx.wake_at(at(end * 1000), 0),
        }
    });
    let mut events = Vec::new();
    machine.run(&mut events, &mut |_| true).expect("a good run");
    let mut done = done.borrow().clone();
    done.sort_unstable();
    let ms = |time: u64| time / 1_000_000;
    (done.iter().map(|(_, at, up)| (ms(at.as_ns()), ms(up.as_ns()))).collect(), events)
}

fn seconds(events: &[EventRecord], wanted: PowerState) -> f64 {
    let states = events.iter().filter_map(EventRecord::event).flat_map(CommonEvent::states);
    states.filter(|(state, _)| *state == wanted).map(|(_, time)| time.as_s_f64()).sum()
}

fn joules(events: &[EventRecord]) -> f64 {
    let watts = common::build(DRIVE).info().watts.expect("it draws power");
    PowerState::ALL.iter().map(|state| watts[*state as usize] * seconds(events, *state)).sum()
}

#[test]
fn standby_and_idle_take_the_time_and_energy_of_the_spindle() {
    use Step::Send;
    let steps = [
        (10_000, Send(Command::Standby)),
        (20_000, Send(Command::Idle)),
        (25_000, Send(Command::Idle)),
    ];
    let (done, events) = play(&steps, 30);
    assert_eq!(done, [(11_000, 0), (22_000, 2_000), (25_000, 0)]);
    // 10 s idle at 2 W, 1 s stopping at 1 W, 9 s standing at 0.25 W, 2 s starting at 5 W, 8 s idle.
    assert!((joules(&events) - (20.0 + 1.0 + 2.25 + 10.0 + 16.0)).abs() < 1e-9);
}

#[test]
fn a_command_while_the_spindle_moves_waits_for_it() {
    use Step::{Ask, Send};
    let steps = [
        (1_000, Send(Command::Standby)),
        (1_500, Send(Command::Standby)),
        // Stops until 2 s, starts until 4 s.
        (1_600, Send(Command::Idle)),
        (3_000, Send(Command::Idle)),
        // Stops from 4 s to 5 s: the start is not broken off.
        (3_500, Send(Command::Standby)),
        (4_200, Ask(Op::Read, 0)),
    ];
    let (done, events) = play(&steps, 10);
    let times: Vec<u64> = done.iter().map(|done| done.0).collect();
    assert_eq!(times[..5], [2_000, 2_000, 4_000, 4_000, 5_000]);
    assert!((7_000..7_020).contains(&times[5]), "stops, starts for 2 s, reads: {times:?}");
    assert_eq!(done[5].1, 2_800);
    assert!((seconds(&events, PowerState::SpinUp) - 4.0).abs() < 1e-9);
    assert!((seconds(&events, PowerState::SpinDown) - 2.0).abs() < 1e-9);
    assert_eq!(seconds(&events, PowerState::Standby), 0.0);
}

#[test]
fn the_buffer_is_written_before_the_spindle_stops_and_serves_reads_when_it_stands() {
    use Step::{Ask, Send};
    let steps = [
        (100, Ask(Op::Write, 40)),
        (200, Send(Command::Standby)),
        (5_000, Ask(Op::Read, 40)),
        (6_000, Ask(Op::Flush, 0)),
        (7_000, Ask(Op::Write, 60)),
    ];
    let (done, events) = play(&steps, 11);
    // Without the command it would be written 5 s later. Two turns at most, then 1 s.
    assert_eq!(done[0].0, 100);
    assert!((1_200..1_221).contains(&done[1].0), "{done:?}");
    assert_eq!((done[2], done[3]), ((5_000, 0), (6_000, 0)), "nothing needs the medium");
    assert_eq!(done[4], (7_000, 0), "buffered");
    let written = seconds(&events, PowerState::Write);
    assert!((written - 0.0008).abs() < 1e-6, "8 of 100 sectors of a turn: {written}");
    assert_eq!(seconds(&events, PowerState::SpinUp), 0.0, "the last is not due before 12 s");
}
