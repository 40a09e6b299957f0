//! Equal runs have equal fingerprints, whatever else is observed.

use crate::{Bench, Pair};
use hybridsim_observe::Detail;
use std::collections::BTreeSet;

/// A flash cache over RAID 5, which draws random numbers in many places.
const SYSTEM: &str = r#"
system = "cache"
[workload]
generator = { kind = "zipf", requests = 4000, read = 0.6, span = "64MiB" }
[host]
mode = "closed"
queue_depth = 16
[component.cache]
kind = "flash-cache"
flash = "flash"
disk = "array"
scheme = "op"
[component.flash]
kind = "ssd"
channels = 2
dies_per_channel = 2
planes_per_die = 1
blocks_per_plane = 64
pages_per_block = 32
page_size = "4KiB"
over_provisioning = 0.28
read_time = "60us"
program_time = "500us"
erase_time = "3ms"
channel_rate = "400MB/s"
timing = "queued"
[component.array]
kind = "raid5"
members = ["d0", "d1", "d2"]
[component.d0]
preset = "hitachi-travelstar-5k160"
[component.d1]
preset = "hitachi-travelstar-5k160"
[component.d2]
preset = "hitachi-travelstar-5k160"
"#;

/// The number of different fingerprints of runs, which should be one.
fn fingerprints(bench: &Bench<'_>, runs: &[(&str, Detail, bool)]) -> Result<Pair, String> {
    let run = |(keys, detail, thread): &(&str, Detail, bool)| {
        let done = bench.observe(&format!("{SYSTEM}{keys}"), *detail, *thread)?;
        Ok(done.fingerprint)
    };
    let different: BTreeSet<String> = runs.iter().map(run).collect::<Result<_, String>>()?;
    Ok(Pair { simulated: different.len() as f64, oracle: 1.0 })
}

const PLAIN: (&str, Detail, bool) = ("", Detail::Bare, false);

pub(crate) fn plain(bench: &Bench<'_>) -> Result<Pair, String> {
    fingerprints(bench, &[PLAIN, PLAIN])
}

/// With every read verified, full detail, and a second thread that observes.
pub(crate) fn observed(bench: &Bench<'_>) -> Result<Pair, String> {
    fingerprints(bench, &[PLAIN, ("[run]\nverify = true\n", Detail::Full, true)])
}

#[cfg(test)]
mod tests {
    use crate::tests::assert_fails;

    #[test]
    fn a_second_fingerprint_fails() {
        assert_fails("repeat", 2.0, 1.0);
        assert_fails("repeat-observed", 2.0, 1.0);
    }
}
