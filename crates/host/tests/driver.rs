//! The host over ideal devices: times, queueing, verification, hostile workloads.

use hybridsim_config::param::{EntryChoice, Settings, Value};
use hybridsim_disk::constant::{ConstantDevice, Timing};
use hybridsim_engine::source::ListSource;
use hybridsim_engine::{
    Arrival, CommonEvent, Completion, Component, ComponentInfo, ComponentTree, Ctx, EventRecord,
    Fault, LatencyPhase, Lba, Machine, Op, Request, RequestId, RunEnd, SimDuration, SimTime,
    Source, Stream,
};
use hybridsim_host::scheduler::nearest::Nearest;
use hybridsim_host::{Host, HostOptions};

fn us(us: u64) -> SimDuration {
    SimDuration::from_us(us)
}

fn at(us: u64, lba: u64) -> Arrival {
    let request = Request::new(Op::Read, Lba(lba), 1);
    Arrival { at: SimTime::from_ns(us * 1000), request }
}

fn server(latency_us: u64) -> ConstantDevice {
    ConstantDevice::new(Timing { queue_depth: 1, ..Timing::fixed(1000, us(latency_us)) })
}

fn run(
    host: Host,
    device: impl Component + 'static,
    verify: bool,
) -> Result<(RunEnd, Vec<EventRecord>), Fault> {
    let root = ComponentTree::inner("host", host, vec![ComponentTree::leaf("host/device", device)]);
    let mut events = Vec::new();
    let end = Machine::new(root, verify).run(&mut events, &mut |_| true)?;
    Ok((end, events))
}

/// (completion in us, latency in us, lba) of every request, in order of completion.
fn completions(events: &[EventRecord]) -> Vec<(u64, u64, u64)> {
    let completed = |record: &EventRecord| match record.event() {
        Some(CommonEvent::Completed { latency, lba, .. }) => {
            Some((record.time.as_ns() / 1000, latency.as_ns() / 1000, lba.0))
        }
        _ => None,
    };
    events.iter().filter_map(completed).collect()
}

#[test]
fn open_loop_keeps_recorded_times_and_counts_waiting_as_latency() {
    let source = ListSource::new(vec![at(0, 1), at(5, 2), at(6, 3), at(100, 4)]);
    let host = Host::plain(HostOptions::open(1), source);
    let (end, events) = run(host, server(10), true).expect("runs");
    assert_eq!(completions(&events), [(10, 10, 1), (20, 15, 2), (30, 24, 3), (110, 10, 4)]);
    assert_eq!(end.time, SimTime::from_ns(110_000));
    let queued: SimDuration = events
        .iter()
        .filter_map(EventRecord::event)
        .flat_map(CommonEvent::phases)
        .filter(|(phase, _)| *phase == LatencyPhase::Queue)
        .map(|(_, time)| time)
        .sum();
    assert_eq!(queued, us(5 + 14));
    let depths: Vec<u32> = events
        .iter()
        .filter_map(|record| match record.event() {
            Some(CommonEvent::QueueDepth { depth }) => Some(depth),
            _ => None,
        })
        .collect();
    assert_eq!(depths, [1, 2, 1, 0]);
}

#[test]
fn latency_from_the_issue_leaves_out_the_wait_for_the_queue() {
    let source = || ListSource::new(vec![at(0, 1), at(5, 2), at(6, 3), at(100, 4)]);
    let options = HostOptions { from_issue: true, ..HostOptions::open(1) };
    let (end, events) = run(Host::plain(options, source()), server(10), true).expect("runs");
    assert_eq!(completions(&events), [(10, 10, 1), (20, 10, 2), (30, 10, 3), (110, 10, 4)]);
    assert_eq!(end.time, SimTime::from_ns(110_000), "requests are issued as before");
    // Two at the device, which serves one: the second waits there, the third on the host.
    let options = HostOptions { from_issue: true, ..HostOptions::open(2) };
    let (_, events) = run(Host::plain(options, source()), server(10), true).expect("runs");
    assert_eq!(completions(&events), [(10, 10, 1), (20, 15, 2), (30, 20, 3), (110, 10, 4)]);
}

#[test]
fn the_scheduler_orders_what_waits() {
    let source = ListSource::new(vec![at(0, 500), at(1, 10), at(2, 900), at(3, 505), at(4, 12)]);
    let host = Host::new(HostOptions::open(1), Box::new(source), Box::new(Nearest::default()));
    let (_, events) = run(host, server(10), false).expect("runs");
    let order: Vec<u64> = completions(&events).iter().map(|done| done.2).collect();
    assert_eq!(order, [500, 505, 900, 12, 10]);
}

#[test]
fn closed_loop_keeps_its_depth_and_thinks() {
    let list = || ListSource::new((0..6).map(|lba| at(999, lba)).collect());
    let device = || ConstantDevice::new(Timing::fixed(1000, us(10)));
    let (end, _) = run(Host::plain(HostOptions::closed(2), list()), device(), true).expect("runs");
    assert_eq!(end.time, SimTime::from_ns(30_000), "six requests, two at a time");
    let thinking = HostOptions { think_time: us(5), ..HostOptions::closed(2) };
    let (end, _) = run(Host::plain(thinking, list()), device(), true).expect("runs");
    assert_eq!(end.time, SimTime::from_ns(40_000), "two pauses, none after the last");
    let waiting = HostOptions { outstanding: 3, ..HostOptions::closed(1) };
    let (end, events) = run(Host::plain(waiting, list()), device(), true).expect("runs");
    assert_eq!(end.time, SimTime::from_ns(60_000), "one at the device at a time");
    assert_eq!(completions(&events)[5], (60, 30, 5), "two more wait");
}

/// One server with constant service at utilisation rho: the mean wait is rho s / 2 (1 - rho).
#[test]
fn an_open_queue_meets_pollaczek_and_khinchine() {
    for rho in [0.3, 0.6, 0.8] {
        let mut stream = Stream::new(11, "arrivals");
        let mut time = 0.0;
        let arrivals = (0..200_000).map(|lba| {
            time += hybridsim_engine::sample::standard_exponential(&mut stream) * 10_000.0 / rho;
            Arrival { at: SimTime::from_ns(time as u64), ..at(0, lba % 1000) }
        });
        let host = Host::plain(HostOptions::open(1), ListSource::new(arrivals.collect()));
        let (_, events) = run(host, server(10), false).expect("runs");
        let latencies = completions(&events);
        let mean = latencies.iter().map(|done| done.1 as f64).sum::<f64>() / latencies.len() as f64;
        let theory = 10.0 + rho * 10.0 / (2.0 * (1.0 - rho));
        // Half a microsecond is lost by counting whole ones.
        assert!((mean + 0.5 - theory).abs() < 0.04 * theory, "rho {rho}: {mean} for {theory}");
    }
}

#[test]
fn nothing_to_do_ends_at_once() {
    for options in [HostOptions::open(4), HostOptions::closed(4)] {
        let (end, events) = run(Host::plain(options, ListSource::new(vec![])), server(1), true)
            .expect("an empty workload is fine");
        assert_eq!((end.time, events.len()), (SimTime::ZERO, 0));
    }
}

/// Goes wrong after three requests.
struct Breaking(u64);

impl Source for Breaking {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        self.0 += 1;
        if self.0 > 3 { Err("line 4: nonsense".to_owned()) } else { Ok(Some(at(self.0, 1))) }
    }
}

#[test]
fn a_broken_workload_is_one_error() {
    for options in [HostOptions::open(1), HostOptions::closed(1), HostOptions::closed(32)] {
        let fault = run(Host::plain(options, Breaking(0)), server(10), true).expect_err("breaks");
        assert_eq!(fault, Fault::Workload("line 4: nonsense".to_owned()));
    }
}

#[test]
fn hostile_workloads_are_errors_that_say_what_to_do() {
    let check = |options, arrivals: Vec<Arrival>, expect: &str| {
        let host = Host::plain(options, ListSource::new(arrivals));
        let message = run(host, server(10), true).expect_err("refused").to_string();
        assert!(message.contains(expect), "{message}");
    };
    let open = HostOptions::open(1);
    let never = Arrival { at: SimTime::NEVER, ..at(0, 1) };
    let long = Arrival { request: Request::new(Op::Write, Lba(0), u32::MAX), ..at(0, 0) };
    let empty = Arrival { request: Request::new(Op::Read, Lba(0), 0), ..at(0, 0) };
    let flood = HostOptions { outstanding_max: 100, ..open };
    check(open, vec![at(5, 1), at(4, 1)], "must not go back");
    check(open, vec![at(5, 1), never], "584 years");
    check(open, vec![at(0, 1000)], "exceeds the 1000 sectors");
    check(open, vec![at(0, u64::MAX)], "exceeds the 1000 sectors");
    check(open, vec![long], "exceeds the 1000 sectors");
    check(open, vec![empty], "exceeds the 1000 sectors");
    check(flood, (0..200).map(|us| at(us, 1)).collect(), "overload: more than 100 requests");
}

#[test]
fn a_request_too_long_to_verify_is_refused_by_name() {
    let device = || ConstantDevice::new(Timing::fixed(1 << 40, us(1)));
    let host = || {
        let request = Request::new(Op::Write, Lba(0), u32::MAX);
        Host::plain(HostOptions::open(1), ListSource::new(vec![Arrival { request, ..at(0, 0) }]))
    };
    let message = run(host(), device(), true).expect_err("too long").to_string();
    assert!(message.contains("without --verify"), "{message}");
    run(host(), device(), false).expect("no matter when not verified");
}

/// Passes everything on to its child, with one defect.
struct Canary {
    defect: Defect,
    requests: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Defect {
    None,
    LosesAWrite,
    ForgetsARequest,
    AnswersTwice,
}

impl Component for Canary {
    fn capacity(&self) -> u64 {
        64
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo::default()
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.requests += 1;
        let now_and_then = self.requests % 50 == 49;
        let wait = SimDuration::ZERO;
        match self.defect {
            Defect::LosesAWrite if now_and_then && request.op == Op::Write => {
                ctx.complete(
                    id,
                    hybridsim_engine::LatencyBreakdown::NONE.plus(LatencyPhase::Overhead, wait),
                );
            }
            Defect::ForgetsARequest if now_and_then => {}
            Defect::AnswersTwice if now_and_then => {
                ctx.complete(id, hybridsim_engine::LatencyBreakdown::NONE);
                ctx.complete(id, hybridsim_engine::LatencyBreakdown::NONE);
            }
            _ => drop(ctx.issue(0, *request, u64::from(id.0))),
        }
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        ctx.complete(RequestId(done.tag as u32), done.breakdown);
    }
}

fn canary(defect: Defect) -> Result<(RunEnd, Vec<EventRecord>), Fault> {
    let mut stream = Stream::new(4, "canary");
    let arrivals = (0..2000).map(|_| {
        let op = if stream.chance(0.5) { Op::Read } else { Op::Write };
        Arrival { request: Request::new(op, Lba(stream.below(60)), 4), ..at(0, 0) }
    });
    let host = Host::plain(HostOptions::closed(4), ListSource::new(arrivals.collect()));
    let device =
        ComponentTree::leaf("host/canary/device", ConstantDevice::new(Timing::fixed(64, us(9))));
    let component = Canary { defect, requests: 0 };
    let root = ComponentTree::inner(
        "host",
        host,
        vec![ComponentTree::inner("host/canary", component, vec![device])],
    );
    let mut events = Vec::new();
    let end = Machine::new(root, true).run(&mut events, &mut |_| true)?;
    Ok((end, events))
}

#[test]
fn verification_sees_every_defect() {
    canary(Defect::None).expect("a correct component passes");
    let fault = |defect| canary(defect).expect_err("seen").to_string();
    assert!(fault(Defect::LosesAWrite).starts_with("wrong data"));
    assert!(fault(Defect::AnswersTwice).contains("completed twice"));
    let forgotten = fault(Defect::ForgetsARequest);
    assert!(forgotten.contains("4 requests had not completed"), "{forgotten}");
}

fn settings() -> Settings {
    Settings::default()
        .and("mode", Value::Text("open".into()))
        .and("queue_depth", Value::Count(8))
        .and(
            "scheduler",
            Value::Entry(EntryChoice { name: "fcfs".into(), settings: Settings::default() }),
        )
        .and("think_time", Value::Duration(SimDuration::ZERO))
        .and("outstanding_max", Value::Count(1000))
        .and("end", Value::Text("completed".into()))
        .and("latency_from", Value::Text("arrival".into()))
}

#[test]
fn a_run_may_end_with_the_last_arrival() {
    let completed = |ends_early: bool| {
        let options = HostOptions { ends_early, ..HostOptions::open(1) };
        // A request takes 10 us, so that all three wait for the first.
        let host = Host::plain(options, ListSource::new(vec![at(0, 1), at(1, 2), at(2, 3)]));
        let (_, events) = run(host, server(10), false).expect("runs");
        let unfinished = events.iter().find_map(|record| match record.event() {
            Some(CommonEvent::Custom { name: 1, value }) => Some(value),
            _ => None,
        });
        (completions(&events).len(), unfinished)
    };
    assert_eq!(completed(false), (3, None));
    assert_eq!(completed(true), (0, Some(3)));
}

#[test]
fn a_closed_loop_may_end_while_all_requests_are_outstanding() {
    let completed = |ends_early: bool, think_time: SimDuration| {
        let options = HostOptions { ends_early, think_time, ..HostOptions::closed(4) };
        let requests = (0..20).map(|number| at(0, number)).collect();
        let (end, events) =
            run(Host::plain(options, ListSource::new(requests)), server(10), false).expect("runs");
        (completions(&events).len(), end.time.as_ns())
    };
    // A server takes one request at a time, 10 us each. The last of 20 requests follows the 16th
    // completion, the 17th is the first that none follows.
    assert_eq!(completed(false, us(0)), (20, 200_000));
    assert_eq!(completed(true, us(0)), (17, 170_000));
    // With a think time too: three others keep the server busy.
    assert_eq!(completed(true, us(5)), (17, 170_000));
}

#[test]
fn options_are_checked_together() {
    let read = HostOptions::read(&settings()).expect("makes sense");
    assert_eq!(read, HostOptions { outstanding_max: 1000, ..HostOptions::open(8) });
    let issue = settings().and("latency_from", Value::Text("issue".into()));
    assert!(HostOptions::read(&issue).expect("makes sense").from_issue);
    let closed = settings().and("mode", Value::Text("closed".into()));
    let problems = HostOptions::read(&closed.clone().and("outstanding", Value::Count(7)));
    assert_eq!(problems.expect_err("fewer than at the device")[0].param, "outstanding");
    let read = HostOptions::read(&closed.and("outstanding", Value::Count(20))).expect("fine");
    assert_eq!((read.queue_depth, read.outstanding), (8, 20));
    let open =
        settings().and("outstanding", Value::Count(20)).and("think_time", Value::Duration(us(1)));
    let problems = HostOptions::read(&open).expect_err("two of them");
    assert_eq!(problems.iter().map(|p| p.param).collect::<Vec<_>>(), ["outstanding", "think_time"]);
}
