//! A hard disk against closed forms: the mean random read, and waiting times in a queue.

use crate::{Bench, Figures, Pair};

const RPM: f64 = 7200.0;
const TURN_MS: f64 = 60e3 / RPM;
const CYLINDERS: f64 = 2000.0;
const HEADS: f64 = 4.0;
/// A multiple of the sectors of a read, so that none crosses the end of a track.
const TRACK_SECTORS: f64 = 504.0;
const OVERHEAD_MS: f64 = 0.3;
const READS: u64 = 400_000;

/// A disk without a buffer that serves one command at a time.
fn disk(seek: &str) -> String {
    format!(
        "[component.disk]\nkind = \"hard-disk\"\nrpm = \"{RPM}rpm\"\nheads = {HEADS}\n\
         cylinders = {CYLINDERS}\nouter_sectors_per_track = {TRACK_SECTORS}\n\
         inner_sectors_per_track = {TRACK_SECTORS}\nzone_count = 1\ncache_segments = 0\n\
         queue_depth = 1\nresettle_share = 0\nread_miss_overhead = \"{OVERHEAD_MS}ms\"\n\
         seek = {{ {seek} }}\n"
    )
}

/// Reads of a sector that arrive at random, `rate` in a millisecond. Longer ones begin at fewer
/// angles: with equal seeks the mean angle to the next would not be half a revolution.
fn arrivals(requests: u64, rate: f64) -> String {
    let mean = 1.0 / rate;
    format!(
        "generator = {{ kind = \"uniform\", block = \"512B\", read = 1.0, \
         requests = {requests}, interarrival_ms = {{ kind = \"exponential\", mean = {mean} }} }}\n"
    )
}

/// A mean latency of a run, in milliseconds.
fn mean_ms(bench: &Bench<'_>, text: &str, of: &str) -> Result<f64, String> {
    Ok(bench.run(text, &format!("{of}latency_ns.all.mean"))? / 1e6)
}

/// Mean of a seek between two random cylinders, whose time is a line from `single` over one
/// cylinder to `full` over all; it takes no time to stay.
fn mean_seek(single: f64, full: f64) -> f64 {
    let slope = (full - single) / (CYLINDERS - 2.0);
    let mean_distance = (CYLINDERS * CYLINDERS - 1.0) / (3.0 * CYLINDERS);
    (1.0 - 1.0 / CYLINDERS) * (single - slope) + mean_distance * slope
}

fn mean_read(seek_ms: f64, sectors: f64) -> f64 {
    OVERHEAD_MS + seek_ms + (0.5 + sectors / TRACK_SECTORS) * TURN_MS
}

pub(crate) fn random_read(bench: &Bench<'_>) -> Figures {
    let disk = disk("kind = \"linear\", single = \"1ms\", full = \"16ms\"");
    let text = format!(
        "[host]\nmode = \"closed\"\nqueue_depth = 1\n[workload]\ngenerator = \
         {{ kind = \"uniform\", block = \"4KiB\", read = 1.0, requests = {READS} }}\n{disk}"
    );
    Ok(Pair { simulated: mean_ms(bench, &text, "")?, oracle: mean_read(mean_seek(1.0, 16.0), 8.0) })
}

/// The first two moments of a service time.
#[derive(Clone, Copy)]
struct Service {
    mean: f64,
    second: f64,
}

/// With a seek of 3 ms over any distance, so that service times are independent.
const SEEK: &str = "kind = \"constant\", time = \"3ms\"";

fn service() -> Service {
    // There is no seek to the cylinder that the arm is on.
    let mean = mean_read(3.0 * (1.0 - 1.0 / CYLINDERS), 1.0);
    let variance = TURN_MS * TURN_MS / 12.0;
    Service { mean, second: mean * mean + variance }
}

/// Mean response time by Pollaczek and Khinchine.
fn queue(rate: f64, Service { mean, second }: Service) -> f64 {
    mean + rate * second / (2.0 * (1.0 - rate * mean))
}

pub(crate) fn loaded(bench: &Bench<'_>, load: f64) -> Figures {
    let rate = load / service().mean;
    let workload = arrivals(READS, rate);
    let text = format!("[workload]\n{workload}[host]\nmode = \"open\"\n{}", disk(SEEK));
    Ok(Pair { simulated: mean_ms(bench, &text, "")?, oracle: queue(rate, service()) })
}

/// Mean response times of two classes by Cobham: a request waits for the one in service, for those
/// of its class and above that are there, and for those above that arrive meanwhile.
fn priority_queue(rates: [f64; 2], Service { mean, second }: Service) -> [f64; 2] {
    let in_service = (rates[0] + rates[1]) * second / 2.0;
    let first = 1.0 - rates[0] * mean;
    let both = 1.0 - (rates[0] + rates[1]) * mean;
    [in_service / first, in_service / (first * both)].map(|wait| wait + mean)
}

/// Two workloads of which the first is urgent; `class` is the one that is compared.
fn prioritised(bench: &Bench<'_>, class: usize) -> Figures {
    let rates = [0.25, 0.45].map(|load| load / service().mean);
    let count = |rate: f64| (READS as f64 * rate / (rates[0] + rates[1])) as u64;
    let [urgent, others] = rates.map(|rate| arrivals(count(rate), rate));
    let text = format!(
        "[workload.urgent]\npriority = \"urgent\"\n{urgent}[workload.others]\n{others}\
         [host]\nmode = \"open\"\nqueue_depth = 1\narbitration = \"weighted-round-robin\"\n{}",
        disk(SEEK)
    );
    let tenant = ["tenants.by_name.urgent.", "tenants.by_name.others."][class];
    let simulated = mean_ms(bench, &text, tenant)?;
    Ok(Pair { simulated, oracle: priority_queue(rates, service())[class] })
}

pub(crate) fn urgent(bench: &Bench<'_>) -> Figures {
    prioritised(bench, 0)
}

pub(crate) fn others(bench: &Bench<'_>) -> Figures {
    prioritised(bench, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::assert_fails;

    #[test]
    fn a_queue_with_exponential_service_is_the_textbooks() {
        // M/M/1 at a load of 0.5: the mean response time is twice the service time.
        let exponential = Service { mean: 1.0, second: 2.0 };
        assert!((queue(0.5, exponential) - 2.0).abs() < 1e-12);
        let [first, other] = priority_queue([0.2, 0.3], exponential);
        assert!((first - 1.625).abs() < 1e-12 && (other - 2.25).abs() < 1e-12);
        // Without the urgent class the other one is an ordinary queue.
        assert_eq!(priority_queue([0.0, 0.5], exponential)[1], queue(0.5, exponential));
    }

    #[test]
    fn wrong_times_are_outside_the_tolerances() {
        let seek = mean_seek(1.0, 16.0);
        let right = mean_read(seek, 8.0);
        let wrong = [right - OVERHEAD_MS, mean_read(seek, 0.0), mean_read(seek + 0.1, 8.0)];
        wrong.into_iter().for_each(|wrong| assert_fails("disk-random-read", wrong, right));
        let service = service();
        let constant = Service { second: service.mean * service.mean, ..service };
        for (name, load) in [("disk-queue-30", 0.3), ("disk-queue-70", 0.7)] {
            let rate = load / service.mean;
            assert_fails(name, queue(rate, constant), queue(rate, service));
        }
        let rates = [0.25, 0.45].map(|load| load / service.mean);
        let [urgent, others] = priority_queue(rates, service);
        let shared = queue(rates[0] + rates[1], service);
        assert_fails("disk-urgent", shared, urgent);
        assert_fails("disk-others", shared, others);
    }
}
