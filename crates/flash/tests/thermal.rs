//! Temperature and thermal throttling against the closed form of a first-order model.

mod common;

use common::{Host, build, run, settings, text, us};
use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::{
    CommonEvent, Completion, Component, ComponentInfo, ComponentTree, Ctx, EventRecord, Lba,
    Machine, Op, PowerState, Request, RequestId, SimTime,
};
use hybridsim_flash::{FlashEvent, Throttling};

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
        .and("thermal_resistance", number(RESISTANCE))
        .and("heat_capacity", number(TAU / RESISTANCE))
        .and("ambient_celsius", number(AMBIENT))
        .and("idle_power", number(IDLE))
        .and("active_power", number(ACTIVE))
        .and("read_energy", number(READ_JOULES))
}

/// Light throttling at 70 °C, until 60 °C, to one page per millisecond.
fn throttled() -> Settings {
    warm()
        .and("tmt1_celsius", number(70.0))
        .and("tmt1_end_celsius", number(60.0))
        .and("tmt1_rate", Value::Rate(2_048_000))
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

/// When throttling changed, in seconds, and to what.
fn changes(events: &[EventRecord]) -> Vec<(f64, Throttling)> {
    let mut last = Throttling::None;
    let changed = |record: &EventRecord| match record.event() {
        Some(FlashEvent::Temperature { throttling, elapsed, .. }) if throttling != last => {
            last = throttling;
            Some(((record.time.as_ns() - elapsed.as_ns()) as f64 / 1e9, throttling))
        }
        _ => None,
    };
    events.iter().filter_map(changed).collect()
}

/// The last temperature reported, in °C.
fn end_celsius(events: &[EventRecord]) -> f64 {
    let celsius = |record: &EventRecord| match record.event() {
        Some(FlashEvent::Temperature { millikelvin, .. }) => {
            Some(f64::from(millikelvin) / 1e3 - 273.15)
        }
        _ => None,
    };
    events.iter().filter_map(celsius).next_back().expect("reported at the end")
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
        .and("tmt1_celsius", number(50.0))
        .and("tmt1_end_celsius", number(45.0))
        .and("tmt1_rate", Value::Rate(2048 * 20_000))
        .and("tmt2_celsius", number(55.0))
        .and("tmt2_end_celsius", number(52.0))
        .and("tmt2_rate", Value::Rate(2048 * 1_000));
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
    let asked = |page: u64, us: u64| {
        (SimTime::from_ns(us * 1_000), Request::new(Op::Read, Lba(page * 4), 4))
    };
    let mut listed: Vec<_> = (0..17_520).map(|at| asked(0, at * 25)).collect();
    listed.extend((0..5).map(|page| asked(page, 440_000)));
    let (done, events, end) = run(build(&throttled()).expect("valid"), Host::new(listed));
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

/// All heat is what the results count as energy: without loss to the air, temperature measures it.
#[test]
fn heat_is_the_energy_of_states_and_operations() {
    let capacity = 0.1;
    let device = warm()
        .and("thermal_resistance", number(10_000.0))
        .and("heat_capacity", number(capacity))
        .and("idle_power", number(0.0))
        .and("program_energy", number(40e-6))
        .and("erase_energy", number(300e-6))
        .and("over_provisioning", number(0.3))
        .and("timing", text("queued"))
        .and("write_buffer", Value::Bytes(8 * 2048))
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
    let events = read_for(&throttled().and("timing", text("none")), 1);
    let reported =
        |record: &EventRecord| matches!(record.event(), Some(FlashEvent::Temperature { .. }));
    assert!(events.len() > 100 && !events.iter().any(reported));
}

#[test]
fn wrong_thresholds_are_named() {
    let wrong = |settings: Settings, param: &str| {
        let problems = build(&settings).err().unwrap_or_else(|| panic!("{param} is wrong"));
        assert!(problems.iter().any(|it| it.param == param), "{param}: {problems:?}");
    };
    let with = |key, value| throttled().and(key, value);
    wrong(with("tmt1_end_celsius", number(70.0)), "tmt1_end_celsius");
    wrong(with("ambient_celsius", number(90.0)), "tmt1_end_celsius");
    // 25 + 10 * 4 W: warmer than the end of throttling when idle.
    wrong(with("idle_power", number(4.0)), "tmt1_end_celsius");
    wrong(with("tmt1_rate", Value::Rate(0)), "tmt1_rate");
    wrong(warm().and("tmt1_celsius", number(70.0)), "tmt1_celsius");
    let heavy = |begin, end, rate| {
        let light = throttled().and("tmt2_celsius", number(begin));
        light.and("tmt2_end_celsius", number(end)).and("tmt2_rate", Value::Rate(rate))
    };
    assert!(build(&heavy(80.0, 65.0, 1_000)).is_ok());
    wrong(heavy(70.0, 65.0, 1_000), "tmt2_celsius");
    wrong(heavy(80.0, 60.0, 1_000), "tmt2_end_celsius");
    wrong(heavy(80.0, 80.0, 1_000), "tmt2_end_celsius");
    wrong(heavy(80.0, 65.0, 4_000_000), "tmt2_rate");
    let powers = ["idle_power", "active_power", "read_energy"];
    let cold = powers.into_iter().fold(warm(), |cold, key| cold.and(key, number(0.0)));
    wrong(cold, "thermal_resistance");
    let missing = settings().and("thermal_resistance", number(10.0));
    wrong(missing.and("active_power", number(1.0)), "thermal_resistance");
}
