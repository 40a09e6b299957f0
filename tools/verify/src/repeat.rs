//! Equal runs have equal fingerprints, whatever else is observed.

use crate::{Bench, Figures, Pair};
use hybridsim_observe::Detail;
use std::collections::BTreeSet;

/// A flash cache over mirrored disks, which draw random numbers in many places.
const SYSTEM: &str = r#"system = "cache"
[workload]
generator = { kind = "zipf", requests = 4000, read = 0.6, span = "64MiB" }
[host]
mode = "closed"
queue_depth = 16
[component.cache]
kind = "flash-cache"
flash = "flash"
disk = "array"
[component.flash]
preset = "sata-ssd"
blocks_per_plane = 64
pages_per_block = 32
[component.array]
kind = "raid1"
members = ["d0", "d1"]
[component.d0]
preset = "hitachi-travelstar-5k160"
[component.d1]
preset = "hitachi-travelstar-5k160"
"#;

/// The number of different fingerprints of runs, which should be one.
fn fingerprints(bench: &Bench<'_>, runs: &[(&str, Detail, bool)]) -> Figures {
    let run = |(keys, detail, thread): &(&str, Detail, bool)| {
        let done = bench.observe(&format!("{SYSTEM}{keys}"), *detail, *thread)?;
        Ok(done.fingerprint)
    };
    let different: BTreeSet<String> = runs.iter().map(run).collect::<Result<_, String>>()?;
    Ok(Pair { simulated: different.len() as f64, oracle: 1.0 })
}

const PLAIN: (&str, Detail, bool) = ("", Detail::Bare, false);

pub(crate) fn plain(bench: &Bench<'_>) -> Figures {
    fingerprints(bench, &[PLAIN, PLAIN])
}

/// With every read verified, full detail, and a second thread that observes.
pub(crate) fn observed(bench: &Bench<'_>) -> Figures {
    fingerprints(bench, &[PLAIN, ("[run]\nverify = true\n", Detail::Full, true)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::assert_fails;

    #[test]
    fn a_run_at_another_seed_fails() {
        let registry = hybridsim_simulation::registry::standard();
        let bench = Bench::new(&registry, &|| true);
        let other = ("[run]\nseed = 2\n", Detail::Bare, false);
        let pair = fingerprints(&bench, &[PLAIN, other]).expect("both run");
        assert_fails("repeat", pair.simulated, pair.oracle);
        assert_fails("repeat-observed", pair.simulated, pair.oracle);
    }
}
