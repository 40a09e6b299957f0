//! A longer run allocates no more than a shorter one: nothing is allocated per request.

use hybridsim_config::diagnostic::SourceText;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::path::PathBuf;

const DISK: &str = "[component.disk]\npreset = \"seagate-cheetah-9lp\"\nscheduler = \"sptf\"\n";
const SSD: &str = "[component.ssd]\npreset = \"sata-ssd\"\nblocks_per_plane = 64\n\
                   over_provisioning = 0.28\nprecondition = \"steady\"\n";
const HYBRID: &str = "[component.hybrid]\nkind = \"hybrid-disk\"\n\
    flash = \"flash\"\ndisk = \"disk\"\n\
                      [component.flash]\npreset = \"konanki-hybrid-flash-256mb\"\n\
                      blocks_per_plane = 80\n\
                      [component.disk]\npreset = \"seagate-cheetah-9lp\"\n";
const BOTH: &str = "[component.ssd]\nkind = \"slc-mlc-ssd\"\ncapacity = \"80MiB\"\n\
                    mlc_size = \"96MiB\"\nmlc_pages_per_block = 32\nslc_size = \"4MiB\"\n";

/// Allocations of a run of `requests` requests.
fn allocations(system: &str, requests: u64) -> u64 {
    let text = format!(
        "[workload]\ngenerator = {{ kind = \"fio\", requests = {requests}, rw = \"randrw\", \
         bs = \"4KiB\", span = \"64MiB\", norandommap = true }}\n\
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
    let block_layers = ["in-place", "log-block", "bast", "anand", "fmax"].map(|component| {
        let preset = "precondition = \"fill\"\nprogram_order = \"any\"\npages_per_block = 16";
        let sizes = "blocks_per_plane = 100\nover_provisioning = 0.28";
        let kind = format!("preset = \"sata-ssd\"\nftl = \"{component}\"");
        (component, format!("[component.ssd]\n{kind}\n{preset}\n{sizes}\n"))
    });
    let block_layers = block_layers.iter().map(|(component, system)| (*component, system.as_str()));
    let systems =
        [("disk", DISK), ("ssd", SSD), ("hybrid", HYBRID), ("SLC and MLC", BOTH)].into_iter();
    for (name, system) in systems.chain(block_layers) {
        let (short, long) = (allocations(system, 60_000), allocations(system, 120_000));
        // Lists that grow to their final length by doubling may do so once more, and the tables of
        // wear and latency get a row for every new value.
        let more = long.saturating_sub(short);
        assert!(more < 100, "{name}: {more} more allocations in 60,000 more requests");
    }
}
