//! Sections 4.1, 4.2 and 5.6: what the paper computes.

use crate::{Claim, Experiment, ExperimentError, Findings, Runner};
use hybridsim_flash::slc_mlc::model::{
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
    let cases = [
        ("C3', NTFS", 4064.98),
        ("C3, NTFS", 2328.27),
        ("C3', ext3", 2102.07),
        ("C3, ext3", 1478.27),
    ];
    for ((name, published), cost) in cases.into_iter().zip(costs) {
        let claim = format!("section 4.1 with table 3: a page write, {name}");
        findings.row(Claim::new("H13", claim).unit("µs").within(published, 0.1).ours(cost).given());
    }
    for (name, published, ours) in
        [("NTFS", 1.76, costs[0] / costs[1]), ("ext3", 1.4, costs[2] / costs[3])]
    {
        findings.row(
            Claim::of("chang-slc-mlc/section-5-3-3-expected-speed-up")
                .with("name", name)
                .within(published, 0.03)
                .ours(ours),
        );
    }
    let ram = MemoryFootprint::new(40_960, 43_008, 32_768, 65_536, 20 << 19);
    let kib = |bytes: u64| bytes as f64 / 1024.0;
    let tables = Claim::of("chang-slc-mlc/l2p-lb-tables-20-gb-21");
    findings.row(tables.exactly(164.0).ours(kib(ram.block_tables_bytes)).given());
    let table = Claim::of("chang-slc-mlc/hash-table-32-768-entries");
    findings.row(table.exactly(160.0).ours(kib(ram.hash_table_bytes)).given());
    for (slc_mb, percent) in [(32, 100.5), (64, 101.0), (128, 102.0), (256, 104.1), (512, 108.2)] {
        let ours = (extra_cost_ratio(f64::from(slc_mb), 21.0) * 1000.0).round() / 10.0;
        let claim = format!("table 4: extra cost ratio with {slc_mb} MB of SLC flash");
        findings.row(Claim::new("H24", claim).unit("%").exactly(percent).ours(ours).given());
    }
    let energy = operation_uj(800.0);
    let claim = Claim::of("chang-slc-mlc/energy-writing-mlc-page");
    findings.row(claim.within(39.6, 1e-9).ours(energy).given());
    Ok(findings)
}
