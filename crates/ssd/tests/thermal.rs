//! Temperature and thermal throttling against the closed form of a first-order model.

mod common;

use common::{Host, build, chosen, run, settings, text, us};
use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::{
    CommonEvent, Completion, Component, ComponentInfo, ComponentTree, Ctx, EventRecord, Lba,
    Machine, Op, PowerState, Request, RequestId, SimTime,
};
use hybridsim_flash::{Cause, FlashEvent, Throttling, defaults};

/// 35 °C when idle, 95 °C when pages of 25 us are read without a pause; time constant 0.5 s.
const AMBIENT: f64 = 25.0;
const RESISTANCE: f64 = 10.0;
const TAU: f64 = 0.5;
const IDLE: f64 = 1.0;
const ACTIVE: f64 = 6.0;
const READ_JOULES: f64 = 25e-6;

fn number(value: f64) -> Value {
    Value::Number(value)
}

fn warm() -> Settings {
    settings()
        .and("precondition", text("fill"))
        .and("throttle", chosen("throttle", "thermal"))
        .and("throttle.thermal_resistance", number(RESISTANCE))
        .and("throttle.heat_capacity", number(TAU / RESISTANCE))
        .and("throttle.ambient_celsius", number(AMBIENT))
        .and("energy.idle_power", number(IDLE))
        .and("energy.active_power", number(ACTIVE))
        .and("energy.read_energy", number(READ_JOULES))
}

/// Light throttling at 70 °C, until 60 °C, to one page per millisecond.
fn throttled() -> Settings {
    warm()
        .and("throttle.tmt1_celsius", number(70.0))
        .and("throttle.tmt1_end_celsius", number(60.0))
        .and("throttle.tmt1_rate", Value::Rate(2_048_000))
}

/// The time a temperature takes to get from one value to another while it approaches `target`.
fn time(from: f64, to: f64, target: f64) -> f64 {
    TAU * ((target - from) / (target - to)).ln()
}

/// Reads a page after the other until a time.
struct Reader {
    until: SimTime,
    reads: u64,
}

impl Component for Reader {
    fn capacity(&self) -> u64 {
        4
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo::default()
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        ctx.issue(0, Request::new(Op::Read, Lba(0), 4), 0);
    }

    fn request(&mut self, _ctx: &mut Ctx<'_>, _id: RequestId, _request: &Request) {}

    fn completion(&mut self, ctx: &mut Ctx<'_>, _done: &Completion) {
        if ctx.now() < self.until {
            self.reads += 1;
            ctx.issue(0, Request::new(Op::Read, Lba(0), 4), 0);
        } else {
            // Of the last request, how many came before.
            ctx.emit(CommonEvent::Custom { name: 0, value: self.reads });
        }
    }
}

/// The events of reads in a closed loop for so many milliseconds.
fn read_for(settings: &Settings, ms: u64) -> Vec<EventRecord> {
    let ssd = build(settings).expect("valid settings");
    let reader = Reader { until: SimTime::from_ns(ms * 1_000_000), reads: 1 };
    let root = ComponentTree::inner("host", reader, vec![ComponentTree::leaf("ssd", ssd)]);
    let mut events: Vec<EventRecord> = Vec::new();
    Machine::new(root, false).run(&mut events, &mut |_| true).expect("no fault");
    events
}

/// Reports of the temperature: the instant in seconds, °C, and throttling.
fn reports(events: &[EventRecord]) -> Vec<(f64, f64, Throttling)> {
    let report = |record: &EventRecord| match record.event() {
        Some(FlashEvent::Temperature { throttling, millikelvin, ago }) => {
            let at = (record.time.as_ns() - ago.as_ns()) as f64 / 1e9;
            Some((at, f64::from(millikelvin) / 1e3 - 273.15, throttling))
        }
        _ => None,
    };
    events.iter().filter_map(report).collect()
}

/// Changes of throttling: the instant in seconds, and the new state.
fn changes(events: &[EventRecord]) -> Vec<(f64, Throttling)> {
    let mut last = Throttling::None;
    let mut found = Vec::new();
    for (at, _, throttling) in reports(events) {
        if std::mem::replace(&mut last, throttling) != throttling {
            found.push((at, throttling));
        }
    }
    found
}

/// The last temperature reported, in °C.
fn end_celsius(events: &[EventRecord]) -> f64 {
    reports(events).last().expect("reported at the end").1
}

/// Reads page 0 every 25 us so many times, which heats as a closed loop does, and then the listed
/// pages at their times in microseconds.
fn heat_and_read(reads: u64, then: &[(u64, u64)]) -> Host {
    let read = |us: u64, page: u64| {
        (SimTime::from_ns(us * 1_000), Request::new(Op::Read, Lba(page * 4), 4))
    };
    let heating = (0..reads).map(|at| read(at * 25, 0));
    Host::new(heating.chain(then.iter().map(|&(us, page)| read(us, page))).collect())
}

#[test]
fn constant_power_heats_exponentially() {
    let events = read_for(&warm(), 600);
    // 6 W while active and 25 uJ every 25 us: 1 W more.
    let target = AMBIENT + RESISTANCE * (ACTIVE + 1.0);
    let expected = target - (target - 35.0) * (-0.6 / TAU).exp();
    let end = end_celsius(&events);
    assert!((end - expected).abs() < 0.01, "{end:.3} °C instead of {expected:.3}");
    assert!(changes(&events).is_empty(), "no thresholds");
}

#[test]
fn throttling_begins_when_the_closed_form_says() {
    let found = changes(&read_for(&throttled(), 600));
    let expected = time(35.0, 70.0, 95.0);
    assert_eq!(found.len(), 1, "{found:?}");
    let (at, state) = found[0];
    assert_eq!(state, Throttling::Light);
    assert!((at - expected).abs() < 1e-6, "at {at} s instead of {expected} s");
}

#[test]
fn throttling_and_full_rate_alternate_with_the_duty_cycle_of_the_closed_form() {
    let events = read_for(&throttled(), 6_000);
    let found = changes(&events);
    assert!(found.len() > 20, "{found:?}");
    // A read every millisecond: active for 25 us of it.
    let share = 0.025;
    let power = ACTIVE * share + IDLE * (1.0 - share) + READ_JOULES * 1e3;
    let (cool, heat) = (time(70.0, 60.0, AMBIENT + RESISTANCE * power), time(60.0, 70.0, 95.0));
    for pair in found.windows(2) {
        let [(from, state), (to, _)] = [pair[0], pair[1]];
        // A read ahead of the end, or a millisecond without one, shifts an edge by its heat.
        let expected = if state == Throttling::Light { cool } else { heat };
        let took = to - from;
        assert!((took - expected).abs() < 0.003, "{state:?} for {took} s, not {expected}");
    }
    // From one change to light throttling to a later one.
    let light: Vec<f64> =
        found.iter().filter(|it| it.1 == Throttling::Light).map(|it| it.0).collect();
    let (first, last) = (light[0], light[light.len() - 1]);
    let reads = events.iter().filter(|record| {
        let at = record.time.as_ns() as f64 / 1e9;
        matches!(record.event(), Some(FlashEvent::Read { .. })) && first <= at && at < last
    });
    let rate = reads.count() as f64 / (last - first);
    let expected = (heat * 40_000.0 + cool * 1_000.0) / (heat + cool);
    assert!((rate / expected - 1.0).abs() < 0.01, "{rate} reads/s instead of {expected}");
}

#[test]
fn light_throttling_that_does_not_cool_becomes_heavy_and_returns() {
    // Light: a read every 50 us, (6 W + 1 W) / 2 and 0.5 W of reads, which heats to 65 °C.
    let two = throttled()
        .and("throttle.tmt1_celsius", number(50.0))
        .and("throttle.tmt1_end_celsius", number(45.0))
        .and("throttle.tmt1_rate", Value::Rate(2048 * 20_000))
        .and("throttle.tmt2_celsius", number(55.0))
        .and("throttle.tmt2_end_celsius", number(52.0))
        .and("throttle.tmt2_rate", Value::Rate(2048 * 1_000));
    let found = changes(&read_for(&two, 1_500));
    let states: Vec<Throttling> = found.iter().map(|it| it.1).collect();
    use Throttling::{Heavy, Light};
    assert_eq!(states[..5], [Light, Heavy, Light, Heavy, Light], "{found:?}");
    let light = AMBIENT + RESISTANCE * ((ACTIVE + IDLE) / 2.0 + READ_JOULES * 20e3);
    let expected = [time(35.0, 50.0, 95.0), time(50.0, 55.0, light)];
    assert!((found[0].0 - expected[0]).abs() < 1e-6, "{found:?}");
    assert!((found[1].0 - found[0].0 - expected[1]).abs() < 1e-4, "{expected:?}, {found:?}");
}

#[test]
fn requests_that_arrive_while_throttled_wait_in_order() {
    // Throttled at 438 ms; the reads from then on are a millisecond apart.
    let five: Vec<_> = (0..5).map(|page| (440_000, page)).collect();
    let host = heat_and_read(17_520, &five);
    let (done, events, end) = run(build(&throttled()).expect("valid"), host);
    end.expect("a run without a fault");
    assert_eq!(changes(&events).first().map(|it| it.1), Some(Throttling::Light));
    let last: Vec<_> = done[17_520..].iter().collect();
    let pages: Vec<u64> = last.iter().map(|done| done.request.lba.0 / 4).collect();
    assert_eq!(pages, [0, 1, 2, 3, 4]);
    for pair in last.windows(2) {
        let apart = pair[1].completed.since(pair[0].completed).as_ns();
        assert_eq!(apart, 1_000_000);
    }
    let of = |done: &common::Done| done.completed.since(done.issued);
    last.iter().for_each(|done| assert_eq!(done.breakdown.total(), of(done)));
}

/// Heavy throttling from 55 to 52 °C, light from 50 to 45 °C, with these bytes per second.
fn throttled_twice(light: u64, heavy: u64) -> Settings {
    throttled()
        .and("throttle.tmt1_celsius", number(50.0))
        .and("throttle.tmt1_end_celsius", number(45.0))
        .and("throttle.tmt1_rate", Value::Rate(light))
        .and("throttle.tmt2_celsius", number(55.0))
        .and("throttle.tmt2_end_celsius", number(52.0))
        .and("throttle.tmt2_rate", Value::Rate(heavy))
}

#[test]
fn a_pause_has_every_change_and_the_course_of_the_temperature() {
    // As fast as without throttling; a read 1000 s later.
    let device = throttled_twice(200_000_000, 200_000_000);
    let host = heat_and_read(20_000, &[(1_000_000_000, 0)]);
    let (_, events, end) = run(build(&device).expect("valid"), host);
    end.expect("a run without a fault");
    let peak = 95.0 - 60.0 * (-0.5 / TAU).exp();
    let cooled = |to: f64| 0.5 + time(peak, to, 35.0);
    let (heavy, light) = (time(35.0, 55.0, 95.0), time(35.0, 50.0, 95.0));
    use Throttling::{Heavy, Light, None};
    let expected = [(light, Light), (heavy, Heavy), (cooled(52.0), Light), (cooled(45.0), None)];
    let found = changes(&events);
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.1, expected.1);
        assert!((found.0 - expected.0).abs() < 1e-5, "{found:?} instead of {expected:?}");
    }
    let reports = reports(&events);
    let hottest = reports.iter().map(|it| it.1).fold(0.0, f64::max);
    assert!((hottest - peak).abs() < 0.1, "{hottest} °C instead of {peak}");
    // A line through the reports of the pause, against the exponential.
    let pause: Vec<_> = reports.iter().filter(|it| (0.5..999.0).contains(&it.0)).collect();
    assert!((10..60).contains(&pause.len()), "{} reports", pause.len());
    for pair in pause.windows(2) {
        let (at, line) = ((pair[0].0 + pair[1].0) / 2.0, (pair[0].1 + pair[1].1) / 2.0);
        let curve = 35.0 + (peak - 35.0) * (-(at - 0.5) / TAU).exp();
        assert!((line - curve).abs() < 0.6, "{line} °C instead of {curve} at {at} s");
    }
    assert!((pause[pause.len() - 1].1 - 35.0).abs() < 0.3, "{pause:?}");
}

#[test]
fn the_peak_before_a_pause_is_reported() {
    // A read of 550 ms, and another when it is cold again; nothing happens in between.
    let device = warm().and("read_time", us(550_000));
    let host = heat_and_read(1, &[(100_000_000, 0)]);
    let (_, events, end) = run(build(&device).expect("valid"), host);
    end.expect("a run without a fault");
    let target = AMBIENT + RESISTANCE * (ACTIVE + READ_JOULES / 0.55);
    let peak = target - (target - 35.0) * (-0.55 / TAU).exp();
    let at_peak = reports(&events).into_iter().find(|it| (it.0 - 0.55).abs() < 1e-9);
    let celsius = at_peak.expect("reported").1;
    assert!((celsius - peak).abs() < 0.001, "{celsius} °C instead of {peak}");
}

#[test]
fn a_steady_temperature_is_reported_before_it_changes() {
    // Hot since 3 s, until 10 s; the next request finds it cold.
    let host = heat_and_read(400_000, &[(100_000_000, 0)]);
    let (_, events, end) = run(build(&warm()).expect("valid"), host);
    end.expect("a run without a fault");
    let reports = reports(&events);
    let last_hot = reports.iter().rfind(|it| it.0 < 10.1 && it.1 > 94.5).expect("it was hot");
    assert!((last_hot.0 - 10.0).abs() < 1e-3 && (last_hot.1 - 95.0).abs() < 0.1, "{last_hot:?}");
    assert!(reports.windows(2).all(|pair| pair[0].0 <= pair[1].0), "in the order of instants");
}

#[test]
fn delayed_requests_are_served_when_throttling_ends() {
    // A page per second: two of these would wait for 1.44 and 2.44 s.
    let device = throttled().and("throttle.tmt1_rate", Value::Rate(2_048));
    // The last of these ends 20 us after 70 °C.
    let then = [(440_000, 0), (440_000, 1), (440_000, 2), (600_000, 3)];
    let host = heat_and_read(17_510, &then);
    let (done, events, end) = run(build(&device).expect("valid"), host);
    end.expect("a run without a fault");
    let found = changes(&events);
    assert_eq!(found.len(), 2, "{found:?}");
    let ended = found[1].0;
    // It cools from then on, but for one read.
    let expected = time(35.0, 70.0, 95.0) + time(70.0, 60.0, 35.0);
    assert!((ended - expected).abs() < 0.001, "at {ended} s instead of {expected} s");
    let last: Vec<_> = done[17_510..].iter().collect();
    let pages: Vec<u64> = last.iter().map(|done| done.request.lba.0 / 4).collect();
    assert_eq!(pages, [0, 1, 2, 3]);
    assert_eq!(last[0].completed.as_ns(), 440_025_000);
    for (done, reads) in last[1..].iter().zip([1.0, 2.0, 3.0]) {
        // They are at once on a die each; no die is shared.
        let late = done.completed.as_ns() as f64 / 1e9 - ended;
        assert!((0.0..=reads * 25e-6 + 2e-9).contains(&late), "{late} s after the end");
        assert_eq!(done.breakdown.total(), done.completed.since(done.issued));
    }
}

#[test]
fn a_request_of_one_period_of_throttling_delays_none_of_the_next() {
    // In each period one page is read; the next waits for the end of the period, not for a second.
    let events = read_for(&throttled().and("throttle.tmt1_rate", Value::Rate(2_048)), 3_000);
    let found = changes(&events);
    let (heat, cool) = (time(60.0, 70.0, 95.0), time(70.0, 60.0, 35.0));
    assert!(found.len() > 10, "{found:?}");
    for pair in found.windows(2) {
        let [(from, state), (to, _)] = [pair[0], pair[1]];
        let expected = if state == Throttling::Light { cool } else { heat };
        assert!((to - from - expected).abs() < 0.001, "{state:?} for {} s", to - from);
        let reads = events.iter().filter(|record| {
            let at = record.time.as_ns() as f64 / 1e9;
            matches!(record.event(), Some(FlashEvent::Read { .. })) && from <= at && at < to
        });
        assert!(state != Throttling::Light || reads.count() == 1, "at {from} s");
    }
}

#[test]
fn a_request_delayed_by_heavy_throttling_begins_at_the_rate_of_light_throttling() {
    // Light: 100,000 pages per second. Heavy: one.
    let device = throttled_twice(2_048 * 100_000, 2_048);
    let host = heat_and_read(8_400, &[]);
    let (done, events, end) = run(build(&device).expect("valid"), host);
    end.expect("a run without a fault");
    let found = changes(&events);
    let states: Vec<Throttling> = found.iter().map(|it| it.1).collect();
    use Throttling::{Heavy, Light};
    assert_eq!(states[..3], [Light, Heavy, Light], "{found:?}");
    let seconds = |done: &common::Done| done.completed.as_ns() as f64 / 1e9;
    // One begins in heavy throttling, the next when that ends.
    let next = done.iter().position(|it| seconds(it) > found[2].0).expect("it was delayed");
    let delay = seconds(&done[next]) - found[2].0;
    assert!((25e-6..25e-6 + 2e-9).contains(&delay), "{delay} s");
    assert!(seconds(&done[next - 1]) < found[1].0 + 60e-6, "one begins at once");
    let expected = time(55.0, 52.0, 35.0);
    assert!((found[2].0 - found[1].0 - expected).abs() < 0.001, "{found:?}, {expected}");
    assert!(seconds(&done[8_399]) < found[2].0 + 0.01, "the others follow");
}

#[test]
fn a_threshold_at_the_temperature_that_is_approached_is_never_reached() {
    // A read takes a hundred time constants, and 25 + 10 * 7 W is 95 °C exactly.
    let device = warm()
        .and("throttle.heat_capacity", number(0.001))
        .and("read_time", us(1_000_000))
        .and("energy.active_power", number(7.0))
        .and("energy.read_energy", number(0.0))
        .and("throttle.tmt1_celsius", number(95.0))
        .and("throttle.tmt1_end_celsius", number(60.0))
        .and("throttle.tmt1_rate", Value::Rate(1_000));
    let events = read_for(&device, 3_500);
    let hottest = reports(&events).iter().map(|it| it.1).fold(0.0, f64::max);
    assert!((hottest - 95.0).abs() < 0.1 && changes(&events).is_empty(), "{hottest} °C");
    let above = changes(&read_for(&device.and("throttle.tmt1_celsius", number(94.999)), 3_500));
    assert_eq!(above[0].1, Throttling::Light);
}

#[test]
fn background_work_goes_on_while_requests_are_delayed() {
    // Throttled from the first milliseconds to the end, to a write per 100 ms; each leaves garbage,
    // which is collected 0.5 ms later, up to three free blocks per die.
    let mut ftl = defaults::entry("ftl", "page", &hybridsim_ssd::registry());
    if let Value::Entry(page) = &mut ftl {
        page.settings.set("gc_idle_free_blocks", Value::Count(3));
    }
    let device = warm()
        .and("ftl", ftl)
        .and("over_provisioning", number(0.3))
        .and("idle_after", us(500))
        .and("throttle.tmt1_celsius", number(35.1))
        .and("throttle.tmt1_end_celsius", number(35.0001))
        .and("throttle.tmt1_rate", Value::Rate(20_480));
    let writes = (0..200).map(|at: u64| {
        let page = at * 37 % 60;
        (SimTime::from_ns(at * 50_000), Request::new(Op::Write, Lba(page * 4), 4))
    });
    let (done, events, end) = run(build(&device).expect("valid"), Host::new(writes.collect()));
    end.expect("a run without a fault");
    let throttled = changes(&events);
    assert_eq!(throttled.len(), 1, "{throttled:?}");
    assert!(done[199].completed.as_ns() > 15_000_000_000, "they are delayed");
    // Collection before a write is at its time, collection in the background is not.
    let mut written = SimTime::ZERO;
    let mut collected = 0;
    for record in events.iter().filter(|it| it.time < done[198].completed) {
        match record.event() {
            Some(FlashEvent::Program { cause: Cause::Host, .. }) => written = record.time,
            Some(FlashEvent::Erase { cause: Cause::Gc, .. }) if record.time > written => {
                let after = record.time.since(written).as_ns();
                assert!((500_000..99_000_000).contains(&after), "{after} ns after a write");
                collected += 1;
            }
            _ => {}
        }
    }
    assert!(collected > 10, "{collected} blocks while requests were delayed");
}

/// All heat is what the results count as energy: without loss to the air, temperature measures it.
#[test]
fn heat_is_the_energy_of_states_and_operations() {
    let capacity = 0.1;
    let device = warm()
        .and("throttle", chosen("throttle", "thermal"))
        .and("throttle.thermal_resistance", number(10_000.0))
        .and("throttle.heat_capacity", number(capacity))
        .and("energy.idle_power", number(0.0))
        .and("energy.program_energy", number(40e-6))
        .and("energy.erase_energy", number(300e-6))
        .and("over_provisioning", number(0.3))
        .and("timing", chosen("timing", "queued"))
        .and("timing.write_buffer", Value::Bytes(8 * 2048))
        .and("idle_after", us(500));
    let (_, events, end) = run(build(&device).expect("valid"), Host::random(2_000, 4, 400));
    end.expect("a run without a fault");
    let joules = |record: &EventRecord| match (record.event(), record.event()) {
        (Some(FlashEvent::Read { .. }), _) => READ_JOULES,
        (Some(FlashEvent::Program { .. }), _) => 40e-6,
        (Some(FlashEvent::Erase { .. }), _) => 300e-6,
        (_, Some(CommonEvent::StateTime { state: PowerState::Active, duration })) => {
            ACTIVE * duration.as_s_f64()
        }
        _ => 0.0,
    };
    let expected: f64 = events.iter().map(joules).sum();
    let heat = (end_celsius(&events) - AMBIENT) * capacity;
    // The time constant is 1000 s, the run takes some two.
    assert!(expected > 0.5 && (heat / expected - 1.0).abs() < 0.003, "{heat} J of {expected} J");
}

#[test]
fn a_device_without_times_has_no_temperature() {
    let events = read_for(&throttled().and("timing", chosen("timing", "none")), 1);
    let reported =
        |record: &EventRecord| matches!(record.event(), Some(FlashEvent::Temperature { .. }));
    assert!(events.len() > 100 && !events.iter().any(reported));
}

#[test]
fn wrong_thresholds_are_named() {
    // All problems are those of this parameter.
    let count = |settings: Settings, param: &str| {
        let problems = build(&settings).err().unwrap_or_else(|| panic!("{param} is wrong"));
        let param = format!("throttle.{param}");
        assert!(problems.iter().all(|it| it.param == param), "{param}: {problems:?}");
        problems.len()
    };
    let wrong = |settings: Settings, param: &str| assert_eq!(count(settings, param), 1, "{param}");
    let with = |key, value| throttled().and(key, value);
    wrong(with("throttle.tmt1_end_celsius", number(70.0)), "tmt1_end_celsius");
    wrong(with("throttle.ambient_celsius", number(90.0)), "tmt1_end_celsius");
    // 25 + 10 * 4 W: warmer than the end of throttling when idle.
    wrong(with("energy.idle_power", number(4.0)), "tmt1_end_celsius");
    wrong(with("throttle.tmt1_rate", Value::Rate(0)), "tmt1_rate");
    // Neither end nor rate; then no end, with a heavier threshold that cannot be compared.
    let begins = warm().and("throttle.tmt1_celsius", number(70.0));
    assert_eq!(count(begins.clone(), "tmt1_celsius"), 2);
    let heavier = begins
        .and("throttle.tmt1_rate", Value::Rate(1_000_000))
        .and("throttle.tmt2_celsius", number(80.0))
        .and("throttle.tmt2_end_celsius", number(65.0));
    wrong(heavier.clone().and("throttle.tmt2_rate", Value::Rate(1_000)), "tmt1_celsius");
    let zero = heavier
        .and("throttle.tmt1_end_celsius", number(60.0))
        .and("throttle.tmt1_rate", Value::Rate(0));
    wrong(zero.and("throttle.tmt2_rate", Value::Rate(1_000)), "tmt1_rate");
    let heavy = |begin, end, rate| {
        let light = throttled().and("throttle.tmt2_celsius", number(begin));
        light
            .and("throttle.tmt2_end_celsius", number(end))
            .and("throttle.tmt2_rate", Value::Rate(rate))
    };
    assert!(build(&heavy(80.0, 65.0, 1_000)).is_ok());
    wrong(heavy(70.0, 65.0, 1_000), "tmt2_celsius");
    wrong(heavy(80.0, 60.0, 1_000), "tmt2_end_celsius");
    wrong(heavy(80.0, 80.0, 1_000), "tmt2_end_celsius");
    wrong(heavy(80.0, 65.0, 4_000_000), "tmt2_rate");
    let powers = ["energy.idle_power", "energy.active_power", "energy.read_energy"];
    let cold = powers.into_iter().fold(warm(), |cold, key| cold.and(key, number(0.0)));
    wrong(cold, "thermal_resistance");
}
