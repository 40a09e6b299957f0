//! Requests to several members of an array, which end with the slowest: order statistics.

use crate::{Bench, Figures, Pair};

const REQUESTS: u64 = 200_000;
/// Service times of a member, even between these.
const LEAST_US: f64 = 100.0;
const MOST_US: f64 = 200.0;

/// The mean latency of random requests, one at a time, to an array of `members` devices.
fn mean_us(bench: &Bench<'_>, members: u32, array: &str, requests: &str) -> Result<f64, String> {
    let names: Vec<String> = (0..members).map(|at| format!("\"d{at}\"")).collect();
    let device = |at| {
        let jitter = MOST_US - LEAST_US;
        format!(
            "[component.d{at}]\nkind = \"constant-device\"\ncapacity = \"64MiB\"\n\
             latency = \"{LEAST_US}us\"\njitter = \"{jitter}us\"\n"
        )
    };
    let devices: String = (0..members).map(device).collect();
    let text = format!(
        "[workload]\ngenerator = {{ kind = \"uniform\", requests = {REQUESTS}, {requests} }}\n\
         [host]\nmode = \"closed\"\nqueue_depth = 1\n\
         [component.array]\n{array}\nmembers = [{}]\n{devices}",
        names.join(", ")
    );
    Ok(bench.run(&text, "latency_ns.all.mean")? / 1e3)
}

/// The expected maximum of `count` independent service times.
fn slowest_of(count: u32) -> f64 {
    LEAST_US + (MOST_US - LEAST_US) * f64::from(count) / f64::from(count + 1)
}

pub(crate) fn stripe(bench: &Bench<'_>) -> Figures {
    let array = "kind = \"stripe\"\nchunk = \"64KiB\"";
    let simulated = mean_us(bench, 4, array, "read = 1.0, block = \"256KiB\"")?;
    Ok(Pair { simulated, oracle: slowest_of(4) })
}

pub(crate) fn mirror(bench: &Bench<'_>) -> Figures {
    let simulated = mean_us(bench, 3, "kind = \"raid1\"", "read = 0.0")?;
    Ok(Pair { simulated, oracle: slowest_of(3) })
}

/// Reads of old data and parity, then writes of new ones.
pub(crate) fn small_write(bench: &Bench<'_>) -> Figures {
    let simulated = mean_us(bench, 5, "kind = \"raid5\"\nchunk = \"64KiB\"", "read = 0.0")?;
    Ok(Pair { simulated, oracle: 2.0 * slowest_of(2) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::assert_fails;

    #[test]
    fn one_member_less_is_outside_the_tolerances() {
        assert_eq!([1, 3].map(slowest_of), [150.0, 175.0]);
        assert_fails("raid-stripe", slowest_of(3), slowest_of(4));
        assert_fails("raid-mirror", slowest_of(2), slowest_of(3));
        assert_fails("raid-5", slowest_of(1) + slowest_of(2), 2.0 * slowest_of(2));
    }
}
