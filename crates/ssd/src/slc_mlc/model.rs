//! The analysis of chang-slc-mlc: expected write costs (section 4.1), memory (section 4.2), extra
//! cost and energy (section 5.6).

use hybridsim_flash::geometry::Geometry;

/// Times of a page read, a page write and a block erase in microseconds, and pages of a block.
#[derive(Clone, Copy, Debug)]
pub struct Chip {
    pub read_us: f64,
    pub write_us: f64,
    pub erase_us: f64,
    pub pages: f64,
}

/// The SLC chip of table 1.
pub const SLC: Chip = Chip { read_us: 25.0, write_us: 200.0, erase_us: 1500.0, pages: 64.0 };
/// The MLC chip of table 1.
pub const MLC: Chip = Chip { read_us: 60.0, write_us: 800.0, erase_us: 1500.0, pages: 128.0 };

/// The performance factors of table 3.
#[derive(Clone, Copy, Debug, Default)]
pub struct Factors {
    /// Fraction of the user's data that goes to the SLC flash.
    pub alpha: f64,
    /// Valid pages in the tail block.
    pub n1: f64,
    /// Valid pages copied to the head.
    pub n2: f64,
    /// Pages scanned when a mapping is not cached.
    pub n3: f64,
    /// Blocks erased by folding a chain.
    pub n4: f64,
    /// Probability that the mapping is not cached.
    pub p1: f64,
    /// Probability that a page write folds a chain.
    pub p2: f64,
}

impl Factors {
    /// The expected cost of a page write to the SLC flash in microseconds.
    pub fn slc_write_us(&self, slc: &Chip) -> f64 {
        let cleaning = self.n1 * slc.read_us + self.n2 * slc.write_us + slc.erase_us;
        cleaning / (slc.pages - self.n2) + slc.write_us
    }

    /// The expected cost of a page write to the MLC flash in microseconds.
    pub fn mlc_write_us(&self, mlc: &Chip) -> f64 {
        let scan = mlc.read_us * self.n3;
        let fold = mlc.pages * (mlc.read_us + mlc.write_us) + self.n4 * mlc.erase_us;
        self.p1 * scan + self.p2 * fold + mlc.write_us
    }

    /// The expected cost of a page write in microseconds.
    pub fn write_us(&self, slc: &Chip, mlc: &Chip) -> f64 {
        let hot = if self.alpha > 0.0 { self.slc_write_us(slc) } else { 0.0 };
        self.alpha * hot + (1.0 - self.alpha) * self.mlc_write_us(mlc)
    }
}

/// RAM of the firmware's tables (section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFootprint {
    /// L2P table and LB table.
    pub block_tables_bytes: u64,
    /// The hash table of the SLC flash, with keys and values for sectors as large as SLC pages,
    /// as the paper counts them.
    pub hash_table_bytes: u64,
}

/// Bits to address `count` items.
fn bits(count: u64) -> u64 {
    u64::from(u64::BITS - count.saturating_sub(1).leading_zeros())
}

impl MemoryFootprint {
    /// Tables of `logical` and `physical` MLC blocks, with addresses of whole bytes, and a hash
    /// table of `entries` for `slc_pages` pages of a device of `slc_sized` pages of that size.
    pub fn new(logical: u64, physical: u64, entries: u64, slc_pages: u64, slc_sized: u64) -> Self {
        let address_bytes = bits(physical).div_ceil(8);
        Self {
            block_tables_bytes: (logical + physical) * address_bytes,
            hash_table_bytes: entries * (bits(slc_sized) + bits(slc_pages)) / 8,
        }
    }

    pub(super) fn of(mlc: &Geometry, logical: u32, slc: Option<&Geometry>, entries: u32) -> Self {
        let bytes = u64::from(logical) * u64::from(mlc.pages_per_block() * mlc.page_bytes());
        let page_bytes = slc.map_or(1, |slc| u64::from(slc.page_bytes()));
        let slc_pages = slc.map_or(1, |slc| u64::from(slc.pages()));
        let physical = u64::from(mlc.blocks());
        Self::new(u64::from(logical), physical, entries.into(), slc_pages, bytes / page_bytes)
    }
}

/// The cost of `slc_mb` MB of SLC flash on top of `mlc_gb` GB of MLC flash, as a ratio to that of
/// the MLC flash alone (EC ratio; 11.05 and 3.22 dollars per GB, table 1).
pub fn extra_cost_ratio(slc_mb: f64, mlc_gb: f64) -> f64 {
    1.0 + slc_mb / 1024.0 * 11.05 / (mlc_gb * 3.22)
}

/// Energy of an operation of `time_us` in microjoules, at 3.3 V and 15 mA (section 5.6).
pub fn operation_uj(time_us: f64) -> f64 {
    3.3 * 15e-3 * time_us
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 3: C3' and C3 under NTFS, then under ext3.
    const TABLE_3: [Factors; 4] = [
        Factors { alpha: 0.0, n1: 0.0, n2: 0.0, n3: 48.4, n4: 2.0, p1: 0.034, p2: 0.028 },
        Factors { alpha: 0.17, n1: 12.58, n2: 10.29, n3: 44.08, n4: 1.92, p1: 0.011, p2: 0.017 },
        Factors { alpha: 0.0, n1: 0.0, n2: 0.0, n3: 81.5, n4: 1.97, p1: 0.012, p2: 0.011 },
        Factors { alpha: 0.23, n1: 10.38, n2: 8.63, n3: 82.18, n4: 1.92, p1: 0.005, p2: 0.009 },
    ];

    #[test]
    fn section_4_1_is_reproduced() {
        let costs = TABLE_3.map(|factors| factors.write_us(&SLC, &MLC));
        for (cost, expected) in costs.iter().zip([4064.98, 2328.27, 2102.07, 1478.27]) {
            assert!((cost - expected).abs() < 0.1, "{cost} {expected}");
        }
    }

    #[test]
    fn section_4_2_is_reproduced() {
        let ram = MemoryFootprint::new(40_960, 43_008, 32_768, 65_536, 20 << 19);
        assert_eq!(
            ram,
            MemoryFootprint { block_tables_bytes: 164 << 10, hash_table_bytes: 160 << 10 }
        );
    }

    #[test]
    fn table_4_extra_cost_is_reproduced() {
        let check = |slc_mb, percent: &str| {
            assert_eq!(format!("{:.1}", 100.0 * extra_cost_ratio(slc_mb, 21.0)), percent);
        };
        check(32.0, "100.5");
        check(64.0, "101.0");
        check(128.0, "102.0");
        check(256.0, "104.1");
        check(512.0, "108.2");
    }

    #[test]
    fn section_5_6_is_reproduced() {
        let check = |time, joules: f64| assert!((operation_uj(time) - joules).abs() < 1e-9);
        check(800.0, 39.6);
        check(60.0, 2.97);
        check(25.0, 1.2375);
        check(200.0, 9.9);
        check(1500.0, 74.25);
    }
}
