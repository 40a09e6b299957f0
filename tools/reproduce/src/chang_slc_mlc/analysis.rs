//! Sections 4.1, 4.2 and 5.6: what the paper computes.

use crate::{Claim, Experiment, ExperimentError, Findings, Runner};
use hybridsim_ssd::slc_mlc::model::{
    Factors, MLC, MemoryFootprint, SLC, extra_cost_ratio, operation_uj,
};

pub const EXPERIMENT: Experiment = Experiment { id: "chang-slc-mlc/analysis", run: reproduce };

/// Table 3 as printed: C3' and C3 under NTFS, then under ext3.
pub const TABLE_3: [Factors; 4] = [
    Factors { alpha: 0.0, n1: 0.0, n2: 0.0, n3: 48.4, n4: 2.0, p1: 0.034, p2: 0.028 },
    Factors { alpha: 0.17, n1: 12.58, n2: 10.29, n3: 44.08, n4: 1.92, p1: 0.011, p2: 0.017 },
    Factors { alpha: 0.0, n1: 0.0, n2: 0.0, n3: 81.5, n4: 1.97, p1: 0.012, p2: 0.011 },
    Factors { alpha: 0.23, n1: 10.38, n2: 8.63, n3: 82.18, n4: 1.92, p1: 0.005, p2: 0.009 },
];

fn reproduce(_: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let costs = TABLE_3.map(|factors| factors.write_us(&SLC, &MLC));
    for (name, published, at) in [("NTFS", 1.76, 0), ("ext3", 1.4, 2)] {
        findings.row(
            Claim::of("chang-slc-mlc/section-5-3-3-expected-speed-up")
                .with("name", name)
                .published(published)
                .with_figures(&[("without", costs[at]), ("with", costs[at + 1])])
                .ours(costs[at] / costs[at + 1]),
        );
    }
    let ram = MemoryFootprint::new(40_960, 43_008, 32_768, 65_536, 20 << 19);
    let kib = |bytes: u64| bytes as f64 / 1024.0;
    let tables = Claim::of("chang-slc-mlc/l2p-lb-tables-20-gb-21");
    findings.row(tables.ours(kib(ram.block_tables_bytes)));
    let table = Claim::of("chang-slc-mlc/hash-table-32-768-entries");
    findings.row(table.ours(kib(ram.hash_table_bytes)));
    for (slc_mb, percent) in [(32, 100.5), (64, 101.0), (128, 102.0), (256, 104.1), (512, 108.2)] {
        let ours = (extra_cost_ratio(f64::from(slc_mb), 21.0) * 1000.0).round() / 10.0;
        let claim = Claim::of("chang-slc-mlc/extra-cost-ratio").with("megabytes", slc_mb);
        findings.row(claim.published(percent).ours(ours));
    }
    let energy = operation_uj(800.0);
    let claim = Claim::of("chang-slc-mlc/energy-writing-mlc-page");
    findings.row(claim.ours(energy));
    Ok(findings)
}
