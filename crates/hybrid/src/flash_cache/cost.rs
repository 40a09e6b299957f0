//! Mean cost of a page access for a division of flash (op-fcl; the full model is that of its
//! authors' released code).

/// Cost of single operations, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Programming a flash page (`C_PROG`).
    pub program: f64,
    /// Reading one from the cells (`C_READ`).
    pub read: f64,
    /// Erasing a block (`C_E`).
    pub erase: f64,
    /// Transferring a page over the flash bus (`C_BUS`); 0 gives the formula of the paper without
    /// it.
    pub bus: f64,
    /// Reading a page for the host (`C_PR`): from the cells and over the bus.
    pub host_read: f64,
    /// Pages in a block (`NP`).
    pub pages_per_block: f64,
    /// Reading a page from the disk (`C_DR`).
    pub disk_read: f64,
    /// Writing one to it (`C_DW`).
    pub disk_write: f64,
}

/// The utilisation `u'` of the block that is collected when a share `u` of flash is in use and
/// updates are uniform: the solution of `u = (u' - 1) / ln u'`, found by bisection.
pub fn victim_utilisation(u: f64) -> f64 {
    if u <= 0.0 {
        return 0.0;
    }
    if u >= 1.0 {
        return 1.0;
    }
    // With v = -ln u' the relation is u = (1 - e^-v) / v, which falls with v and is accurate at
    // both ends, where u' itself loses precision.
    let (mut low, mut high) = (0.0_f64, 1.0 / u);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        let in_use = -libm::expm1(-middle) / middle;
        if in_use > u { low = middle } else { high = middle }
    }
    libm::exp(-0.5 * (low + high))
}

impl Costs {
    /// Collecting a block (`C_GC`).
    pub fn collection(&self, victim: f64) -> f64 {
        victim * self.pages_per_block * (self.program + self.read) + self.erase
    }

    /// Writing a page with its share of garbage collection (`C_PW`).
    pub fn page_write(&self, u: f64) -> f64 {
        let victim = victim_utilisation(u);
        let freed = ((1.0 - victim) * self.pages_per_block).max(f64::MIN_POSITIVE);
        self.collection(victim) / freed + self.program + self.bus
    }

    /// Reading a page from flash (`C_PR`).
    pub fn page_read(&self) -> f64 {
        self.host_read
    }

    /// Erases per page written.
    pub fn erases_per_write(&self, u: f64) -> f64 {
        let victim = victim_utilisation(u);
        1.0 / ((1.0 - victim) * self.pages_per_block).max(f64::MIN_POSITIVE)
    }
}

/// The workload: hit ratios by cache size, and its shares of reads and writes.
pub trait Demand {
    /// Hit ratio of a read cache of `pages` pages, over the accesses it handles.
    fn read_hits(&self, pages: f64) -> f64;
    /// Hit ratio of a write cache of `pages` pages, over the accesses it handles.
    fn write_hits(&self, pages: f64) -> f64;
    /// Share of all accesses that the read cache handles; the write cache handles the others.
    fn read_share(&self) -> f64;
    /// Share of reads among the hits of the write cache (`h'`).
    fn reads_of_write_hits(&self) -> f64;
}

/// Mean cost of a page access in seconds (`C_HY`) when a share `u` of `pages` is used and a share
/// `r` of that for the read cache. `wear` is added to the cost of an erase.
pub fn access(costs: &Costs, demand: &dyn Demand, pages: f64, u: f64, r: f64, wear: f64) -> f64 {
    let write = costs.page_write(u) + wear * costs.erases_per_write(u);
    let read = costs.page_read();
    let hit = demand.read_hits(u * r * pages);
    let of_reads = hit * read + (1.0 - hit) * (costs.disk_read + write);
    let reads = demand.reads_of_write_hits();
    let write_hit = reads * read + (1.0 - reads) * write;
    let hit = demand.write_hits(u * (1.0 - r) * pages);
    let of_writes = hit * write_hit + (1.0 - hit) * (read + costs.disk_write + write);
    of_reads * demand.read_share() + of_writes * (1.0 - demand.read_share())
}

/// The constants of the paper, with `bus` seconds for a transfer over the flash bus.
pub fn published(bus: f64) -> Costs {
    Costs {
        program: 200e-6,
        read: 25e-6,
        erase: 1500e-6,
        bus,
        host_read: 25e-6 + bus,
        pages_per_block: 64.0,
        disk_read: 4.454e-3,
        disk_write: 4.954e-3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(name: &str, got: f64, expect: f64, share: f64) {
        assert!((got / expect - 1.0).abs() <= share, "{name}: {got} instead of {expect}");
    }

    #[test]
    fn the_cost_model_gives_the_values_worked_out_for_it() {
        // u, u', C_GC and C_PW in us, 1 / (1 - u').
        let table = [
            (0.30, 0.0409, 2088.7, 234.0, 1.043),
            (0.50, 0.2032, 4425.9, 286.8, 1.255),
            (0.60, 0.3242, 6169.1, 342.6, 1.480),
            (0.70, 0.4670, 8224.7, 441.1, 1.876),
            (0.80, 0.6286, 10552.0, 644.0, 2.693),
            (0.85, 0.7158, 11808.0, 849.2, 3.519),
            (0.90, 0.8069, 13119.0, 1261.6, 5.179),
            (0.92, 0.8444, 13659.0, 1571.5, 6.426),
            (0.95, 0.9017, 14484.0, 2502.2, 10.17),
            (0.97, 0.9406, 15045.0, 4157.9, 16.84),
        ];
        let costs = published(0.0);
        for (u, victim, collection, write, amplification) in table {
            let found = victim_utilisation(u);
            near("u'", found, victim, 1.5e-3);
            near("C_GC", costs.collection(found) * 1e6, collection, 1e-3);
            near("C_PW", costs.page_write(u) * 1e6, write, 1e-3);
            near("1 / (1 - u')", 1.0 / (1.0 - found), amplification, 1e-3);
            near("with the bus", published(102.4e-6).page_write(u) * 1e6, write + 102.4, 1e-3);
        }
        near("C_GC at .1", costs.collection(victim_utilisation(0.1)) * 1e6, 1500.7, 1e-3);
        near("C_PW at .1", costs.page_write(0.1) * 1e6, 223.4, 1e-3);
    }

    #[test]
    fn the_solver_is_right_to_a_millionth_everywhere() {
        for step in 1..1000 {
            let victim = f64::from(step) / 1000.0;
            let u = (victim - 1.0) / libm::log(victim);
            let found = victim_utilisation(u);
            assert!((found - victim).abs() < 1e-6, "{u}: {found} instead of {victim}");
        }
        assert_eq!((victim_utilisation(0.0), victim_utilisation(1.0)), (0.0, 1.0));
    }

    #[test]
    fn the_read_example_divides_flash_as_printed() {
        // u = 0.92 of 4 GB: 3.68 GB of cache and 0.32 GB of over-provisioned space.
        near("cache", 0.92 * 4.0, 3.68, 1e-12);
        near("over-provisioned", 4.0 - 0.92 * 4.0, 0.32, 1e-12);
    }
}
