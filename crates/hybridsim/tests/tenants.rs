//! Several workloads that share one system.

use hybridsim_config::diagnostic::SourceText;
use hybridsim_engine::{CommonEvent, EventRecord};
use hybridsim_observe::results::TenantResult;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options, RunOutput};
use hybridsim_simulation::scenario::resolve::{Resolved, resolve};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::path::PathBuf;

/// A device that serves 40,000 requests per second, four at a time.
const DEVICE: &str = "[component.device]\nkind = \"constant-device\"\ncapacity = \"64MiB\"\n\
                      latency = \"100us\"\nqueue_depth = 4\n";

fn scenario(text: &str) -> Result<Scenario, String> {
    let source = SourceText { name: "test".to_owned(), text: format!("{text}{DEVICE}") };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    Scenario::check(input, &standard()).map_err(|wrong| wrong.to_string())
}

fn observed(text: &str) -> (RunOutput, Vec<EventRecord>) {
    let scenario = scenario(text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut events = Vec::new();
    let options = Options { sink: Some(&mut events), ..Options::default() };
    let done = run::run(&scenario, &standard(), options).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(done.fault, None);
    assert!(done.results.violations.is_empty(), "{:?}", done.results.violations);
    (done, events)
}

fn tenant<'a>(done: &'a RunOutput, name: &str) -> &'a TenantResult {
    &done.results.tenants.as_ref().expect("several workloads").by_name[name]
}

/// A workload that always has requests, for as long as the others.
fn busy(name: &str, keys: &str) -> String {
    format!(
        "[workload.{name}]\n{keys}outstanding = 64\n\
         generator = {{ kind = \"uniform\", requests = 1000000, duration = \"2s\" }}\n"
    )
}

#[test]
fn one_workload_in_a_table_of_its_own_is_the_workload() {
    let generator = "generator = { kind = \"uniform\", requests = 3000, read = 0.5";
    for (host, more) in [
        ("mode = \"closed\"\nqueue_depth = 8\n", " }"),
        ("mode = \"closed\"\nqueue_depth = 2\noutstanding = 9\nthink_time = \"3us\"\n", " }"),
        ("mode = \"open\"\nqueue_depth = 2\n", ", interarrival_ms = 0.03 }"),
        (
            "mode = \"open\"\nqueue_depth = 1\nend = \"last-arrival\"\n",
            ", interarrival_ms = 0.11 }",
        ),
    ] {
        for run in ["", "verify = true\n", "verify = true\npower_cut_every = 700\n"] {
            let text =
                |table: &str| format!("[run]\n{run}[host]\n{host}[{table}]\n{generator}{more}\n");
            let (one, _) = observed(&text("workload"));
            let (tenant, _) = observed(&text("workload.database"));
            if run.contains("power_cut_every") {
                // Failures fall between messages, and only the host of one workload announces
                // requests to the device.
                assert!(tenant.results.power_cuts > 0 && tenant.results.requests_lost > 0);
                continue;
            }
            assert_eq!(one.results.fingerprint, tenant.results.fingerprint, "{host}{run}");
            assert!(one.results.requests >= 2_900 && one.results.tenants.is_none());
            let found = tenant.results.tenants.expect("a table of its own");
            assert_eq!(found.by_name["database"].latency_ns, one.results.latency_ns);
        }
    }
}

#[test]
fn weights_are_shares_under_saturation() {
    let host = "[host]\nmode = \"closed\"\nqueue_depth = 4\narbitration = ";
    for burst in [1, 3] {
        let text = format!("{host}\"weighted-round-robin\"\narbitration_burst = {burst}\n")
            + &busy("gold", "weight = 5\n")
            + &busy("silver", "weight = 3\n")
            + &busy("bronze", "weight = 2\n");
        let (done, _) = observed(&text);
        for (name, share) in [("gold", 0.5), ("silver", 0.3), ("bronze", 0.2)] {
            let found = tenant(&done, name).share.expect("requests completed");
            assert!((found - share).abs() < 0.01 * share, "{name}: {found}");
        }
        let fairness = done.results.tenants.expect("several").fairness.expect("requests");
        assert!(fairness > 0.9999, "{fairness}");
    }
    let text = format!("{host}\"round-robin\"\n")
        + &busy("gold", "weight = 5\n")
        + &busy("bronze", "weight = 1\n");
    let (done, _) = observed(&text);
    let share = tenant(&done, "gold").share.expect("requests completed");
    assert!((share - 0.5).abs() < 0.005, "weights do not matter to round robin: {share}");
    let fairness = done.results.tenants.as_ref().expect("several").fairness.expect("requests");
    assert!(fairness < 0.75, "by weight it is unfair: {fairness}");
    let warnings = done.results.warnings.join("\n");
    assert!(
        warnings.contains("the weight of gold matters to the fairness index only"),
        "{warnings}"
    );
}

#[test]
fn latency_from_the_issue_counts_no_wait_for_the_queue() {
    // `slow` asks for 15,000 a second and gets 10,000: one at a time, 100 us each.
    let run = |host: &str, gap_ms: f64| {
        let generator = |gap_ms: f64| {
            format!(
                "generator = {{ kind = \"uniform\", requests = 500, interarrival_ms = {gap_ms} }}"
            )
        };
        let [slow, quick] = [generator(gap_ms), generator(1.0)];
        let text = format!(
            "[host]\n{host}[workload.slow]\nqueue_depth = 1\n{slow}\n[workload.quick]\n{quick}\n"
        );
        observed(&text).0
    };
    let mean = |done: &RunOutput, name: &str| {
        tenant(done, name).latency_ns.all.mean.expect("requests completed") / 1e3
    };
    let (arrival, issue) = (run("", 1.0 / 15.0), run("latency_from = \"issue\"\n", 1.0 / 15.0));
    assert!(mean(&arrival, "slow") > 5_000.0, "{}", mean(&arrival, "slow"));
    assert!((mean(&issue, "slow") - 100.0).abs() < 1e-9, "{}", mean(&issue, "slow"));
    assert!((mean(&issue, "quick") - 100.0).abs() < 1e-9);
    assert_eq!(arrival.results.simulated_ns, issue.results.simulated_ns, "same requests");
    let warned = |done: &RunOutput| done.results.warnings.join("\n").contains("latency_from");
    assert!(!warned(&issue) && !warned(&arrival));
    assert!(warned(&run("latency_from = \"issue\"\n", 1.0)), "no request waits");
}

#[test]
fn the_urgent_class_precedes_all_others() {
    let (done, _) = observed(
        &("[host]\nmode = \"closed\"\nqueue_depth = 4\n".to_owned()
            + &busy("log", "priority = \"urgent\"\n")
            + &busy("rest", "")),
    );
    assert!(tenant(&done, "log").share.expect("requests") > 0.999);
}

/// Completions of a tenant in any window of time, the device being of constant latency.
fn most_in(events: &[EventRecord], tenant: u16, window_ns: u64) -> usize {
    let of_tenant = |record: &&EventRecord| match record.event() {
        Some(CommonEvent::TenantCompleted { tenant: of, .. }) => of == tenant,
        _ => false,
    };
    let times: Vec<u64> =
        events.iter().filter(of_tenant).map(|record| record.time.as_ns()).collect();
    let end = |at: usize| times.partition_point(|time| *time < times[at] + window_ns);
    (0..times.len()).map(|at| end(at) - at).max().unwrap_or(0)
}

#[test]
fn a_limited_workload_never_exceeds_its_limit() {
    let host = "[host]\nmode = \"closed\"\nqueue_depth = 4\n";
    let limited = |keys: &str| host.to_owned() + &busy("limited", keys) + &busy("other", "");
    let (done, events) = observed(&limited("iops_max = 1500\n"));
    // 1,500 per second in any 10 and 100 ms, plus two.
    assert!(most_in(&events, 0, 10_000_000) <= 17, "{}", most_in(&events, 0, 10_000_000));
    assert!(most_in(&events, 0, 100_000_000) <= 152);
    assert!(most_in(&events, 1, 10_000_000) > 300, "the other has the rest");
    let iops = tenant(&done, "limited").iops.expect("requests");
    assert!((1_495.0..=1_501.0).contains(&iops), "{iops}");
    let other = tenant(&done, "other");
    let other = other.requests as f64 * 1e9 / other.last_completion_ns as f64;
    assert!((38_300.0..38_600.0).contains(&other), "no time of the device is lost: {other}");

    let (done, events) = observed(&limited("bandwidth_max = \"2MiB/s\"\n"));
    let tenant = tenant(&done, "limited");
    let bytes = tenant.read_bytes / tenant.requests;
    let most = most_in(&events, 0, 100_000_000) as u64;
    assert!((most - 2) * bytes <= (2 << 20) / 10 + 1, "{most} of {bytes} bytes");
    assert!(tenant.bytes_per_s.is_some_and(|rate| (2.0e6..=2_102_000.0).contains(&rate)));
}

#[test]
fn open_and_closed_workloads_and_depths_of_their_own() {
    let text = "[host]\nqueue_depth = 4\n\
                [workload.open]\nqueue_depth = 1\n\
                generator = { kind = \"uniform\", requests = 5000, interarrival_ms = 0.2 }\n\
                [workload.batch]\nmode = \"closed\"\noutstanding = 16\n\
                namespace_start = \"32MiB\"\nnamespace_size = \"1MiB\"\n\
                generator = { kind = \"uniform\", requests = 9000 }\n";
    let (done, events) = observed(text);
    assert_eq!((tenant(&done, "open").requests, tenant(&done, "batch").requests), (5_000, 9_000));
    let mut upper = 0;
    for record in &events {
        if let Some(CommonEvent::Completed { lba, sectors, .. }) = record.event()
            && lba.0 >= 32 * 2048
        {
            upper += u64::from(lba.0 + u64::from(sectors) <= 33 * 2048);
        }
    }
    assert!((9_000..14_000).contains(&upper), "the batch stays within its namespace: {upper}");
    let early = tenant(&done, "batch").last_completion_ns;
    assert!(early < done.results.simulated_ns / 2, "{early}");
}

#[test]
fn as_many_requests_as_the_limit_says_may_be_outstanding() {
    let fault = |limit: u64| {
        let workload =
            "generator = { kind = \"uniform\", requests = 10, interarrival_ms = 1e-6 }\n";
        let text = format!(
            "[host]\noutstanding_max = {limit}\n[workload.a]\n{workload}[workload.b]\n{workload}"
        );
        let scenario = scenario(&text).unwrap_or_else(|wrong| panic!("{wrong}"));
        let done = run::run(&scenario, &standard(), Options::default());
        done.unwrap_or_else(|wrong| panic!("{wrong}")).fault.map(|fault| fault.to_string())
    };
    assert_eq!(fault(10), None, "all ten of each workload arrive before one completes");
    let overload = fault(9).unwrap_or_else(|| panic!("a tenth is outstanding"));
    assert!(overload.contains("more than 9 requests of workload"), "{overload}");
}

#[test]
fn slowdown_is_against_a_run_alone() {
    let text = "[host]\nmode = \"closed\"\nqueue_depth = 4\n".to_owned()
        + "[workload.a]\noutstanding = 4\n"
        + "generator = { kind = \"uniform\", requests = 4000 }\n"
        + "[workload.b]\noutstanding = 4\n"
        + "generator = { kind = \"uniform\", requests = 4000 }\n";
    let scenario = scenario(&text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let registry = standard();
    let mut done = run::run(&scenario, &registry, Options::default()).expect("it can run");
    assert_eq!(tenant(&done, "a").slowdown, None);
    let results = &mut done.results;
    run::add_slowdowns(&scenario, &registry, results, None, &mut |_| true);
    for name in ["a", "b"] {
        // Alone, four requests are served at once; together, eight share four slots.
        let slowdown = tenant(&done, name).slowdown.expect("requested");
        assert!((1.98..2.02).contains(&slowdown), "{name}: {slowdown}");
    }
}

#[test]
fn a_warm_up_leaves_the_same_requests_for_all_figures() {
    let text = "[run]\nwarmup_requests = 100\n[host]\nmode = \"closed\"\nqueue_depth = 4\n\
                [workload.a]\ngenerator = { kind = \"uniform\", requests = 300 }\n\
                [workload.b]\ngenerator = { kind = \"uniform\", requests = 300 }\n";
    let (done, _) = observed(text);
    let requests = tenant(&done, "a").requests + tenant(&done, "b").requests;
    assert_eq!(requests, done.results.latency_ns.all.count);
    assert_eq!((requests, done.results.warmup.requests), (500, 100));
}

#[test]
fn the_contents_of_all_traces_are_in_the_identity_of_a_run() {
    let text = "[host]\nmode = \"closed\"\n[workload.a]\ntrace = \"a.csv\"\n\
                [workload.b]\ntrace = \"b.csv\"\n";
    let scenario = scenario(text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let registry = standard();
    let resolved = Resolved::new(&scenario, &registry);
    let with = |hash: &str| {
        resolved.with_files(&scenario, |path| match path.ends_with("b.csv") {
            true => hash.to_owned(),
            false => "the same".to_owned(),
        })
    };
    assert!(with("one").contains("trace = \"one\"") && with("one") != with("two"));
}

#[test]
fn a_trace_replaces_several_workloads_and_their_arbitration() {
    let generator = "generator = { kind = \"uniform\", requests = 10 }\n";
    let text = format!(
        "[host]\narbitration = \"weighted-round-robin\"\narbitration_burst = 2\n\
         [workload.a]\nweight = 2\n{generator}[workload.b]\n{generator}{DEVICE}"
    );
    let source = SourceText { name: "test".to_owned(), text };
    let trace = Some(PathBuf::from("some.csv"));
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace };
    let found = Scenario::check(input, &standard()).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(found.tenants.is_empty() && found.source.trace.is_some());
}

#[test]
fn a_resolved_scenario_is_the_same_run() {
    let text = "[host]\nmode = \"closed\"\nqueue_depth = 4\n\
                arbitration = \"weighted-round-robin\"\n[workload.a]\nweight = 3\niops_max = 9000\n\
                generator = { kind = \"uniform\", requests = 2000 }\n\
                [workload.b]\nbandwidth_max = \"9MB/s\"\nnamespace_start = \"1MiB\"\n\
                generator = { kind = \"zipf\", requests = 2000 }\n";
    let (done, _) = observed(text);
    let registry = standard();
    let resolved = resolve(&scenario(text).expect("it is checked"), &registry);
    let source = SourceText { name: "test".to_owned(), text: resolved };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    let again = Scenario::check(input, &registry).unwrap_or_else(|wrong| panic!("{wrong}"));
    let again = run::run(&again, &registry, Options::default()).expect("it can run");
    assert_eq!(done.results.fingerprint, again.results.fingerprint);
    assert_eq!(done.results.tenants, again.results.tenants);
}

#[test]
fn mistakes_are_reported_with_their_place() {
    let generator = "generator = { kind = \"uniform\", requests = 10 }\n";
    let two = format!("[workload.a]\n{generator}[workload.b]\n{generator}");
    let check = |text: &str, expected: &str| {
        let found = scenario(text).map(|scenario| run::check(&scenario, &standard()).map(drop));
        let message = match found {
            Err(message) => message,
            Ok(Err(error)) => error.to_string(),
            Ok(Ok(())) => panic!("nothing is wrong with {text}"),
        };
        assert!(message.contains(expected), "{message}\nlacks {expected}");
        message
    };
    check(&format!("{two}[host]\nmode = \"closed\"\nscheduler = \"sptf\"\n"), "host.scheduler");
    let one = format!("[workload]\n{generator}[host]\nmode = \"closed\"\n");
    check(&format!("{one}arbitration = \"round-robin\"\n"), "host.arbitration");
    check(&format!("[workload]\nfit = true\n[workload.a]\n{generator}"), "workload.a.fit");
    check("[host]\nmode = \"closed\"\n[workload.a]\nweight = 2\n", "has no source of requests");
    let other = "[host]\nmode = \"closed\"\n[workload.a]\ngenerator = \"nonsense\"\n";
    let message = check(other, "there is no generator called `nonsense`");
    assert!(!message.contains("source of requests"), "one mistake, one message: {message}");
    let keys = |keys: &str| format!("[host]\nmode = \"closed\"\n{two}{keys}");
    check(&keys("wieght = 2\n"), "did you mean `weight`");
    check(&keys("namespace_start = \"65MiB\"\n"), "workload.b.namespace_start");
    check(&keys("namespace_size = \"65MiB\"\n"), "workload.b.namespace_size");
    check(&keys("mode = \"open\"\noutstanding = 3\n"), "workload.b.outstanding");
    check(&keys("time_scale = 2.0\n"), "replay option of traces");
}
