//! A longer run allocates no more than a shorter one: nothing is allocated per request.

use hybridsim::registry::standard;
use hybridsim::run::{self, Options};
use hybridsim::scenario::diagnostic::SourceText;
use hybridsim::scenario::{Input, Scenario};
use std::path::PathBuf;

const DISK: &str = "[part.disk]\npreset = \"seagate-cheetah-9lp\"\nscheduler = \"sptf\"\n";
const SSD: &str = "[part.ssd]\npreset = \"sata-ssd\"\nblocks_per_plane = 64\n\
                   over_provisioning = 0.28\nprecondition = \"steady\"\n";
const HYBRID: &str = "[part.hybrid]\nkind = \"hybrid-disk\"\nflash = \"flash\"\ndisk = \"disk\"\n\
                      [part.flash]\npreset = \"paper000-hybrid-flash-256mb\"\n\
                      blocks_per_plane = 80\n\
                      [part.disk]\npreset = \"seagate-cheetah-9lp\"\n";

/// Allocations of a run of `requests` requests.
fn allocations(system: &str, requests: u64) -> u64 {
    let text = format!(
        "[workload]\ngenerator = {{ kind = \"fio\", requests = {requests}, rw = \"randrw\", \
         bs = \"4KiB\", size = \"64MiB\", norandommap = true }}\n\
         [host]\nmode = \"closed\"\nqueue_depth = 8\n{system}"
    );
    let registry = standard();
    let source = SourceText { name: "test".to_owned(), text };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    let scenario =
        Scenario::check(input, &registry).unwrap_or_else(|problems| panic!("{problems}"));
    let measured = allocation_counter::measure(|| {
        let done = run::run(&scenario, &registry, Options::default());
        let done = done.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((done.fault, done.results.requests), (None, requests));
    });
    measured.count_total
}

#[test]
fn nothing_is_allocated_per_request() {
    for (name, system) in [("disk", DISK), ("ssd", SSD), ("hybrid", HYBRID)] {
        let (short, long) = (allocations(system, 30_000), allocations(system, 60_000));
        // Lists that grow to their final length by doubling may do so once more.
        let more = long.saturating_sub(short);
        assert!(more < 40, "{name}: {more} more allocations in 30,000 more requests");
    }
}
