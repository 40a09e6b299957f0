//! Write amplification of SSDs under uniform random writes.

use crate::page_map::PageMap;
use crate::{Bench, Figures, Pair};
use hybridsim_conformance::mean_field;
use hybridsim_engine::{Lba, Op, Request, Stream};

const PAGE_SECTORS: u32 = 8;
/// The theory is of infinitely many blocks.
const BLOCKS: u32 = 4096;
const PAGES_PER_BLOCK: u32 = 32;
const OVER_PROVISIONING: f64 = 0.12;

/// One plane, or `planes`, without a clock.
fn ssd(planes: u32, blocks: u32, over_provisioning: f64, keys: &str) -> String {
    format!(
        "[component.ssd]\nkind = \"ssd\"\nchannels = 1\ndies_per_channel = 1\n\
         planes_per_die = {planes}\nblocks_per_plane = {blocks}\n\
         pages_per_block = {PAGES_PER_BLOCK}\nover_provisioning = {over_provisioning}\n\
         timing = \"none\"\n{keys}\n"
    )
}

/// A write for each page, or mapping unit, of a device of [`BLOCKS`] blocks, after two of each.
fn random_writes() -> String {
    let pages = logical_pages(BLOCKS, OVER_PROVISIONING);
    format!(
        "[run]\nwarmup_requests = {}\n[workload]\n\
         generator = {{ kind = \"uniform\", block = \"4KiB\", requests = {} }}\n",
        2 * pages,
        3 * pages
    )
}

fn logical_pages(blocks: u32, over_provisioning: f64) -> u64 {
    (f64::from(blocks * PAGES_PER_BLOCK) / (1.0 + over_provisioning)) as u64
}

/// Share of the flash that holds valid data.
const FULL: f64 = 1.0 / (1.0 + OVER_PROVISIONING);

/// Write amplification of the policy and logs in `ftl`.
fn collected(bench: &Bench<'_>, ftl: &str, oracle: f64) -> Figures {
    let ftl = format!("ftl = {{ kind = \"page\", {ftl} }}");
    let keys = format!("page_size = \"4KiB\"\nprecondition = \"fill\"\n{ftl}");
    let text = random_writes() + &ssd(1, BLOCKS, OVER_PROVISIONING, &keys);
    Ok(Pair { simulated: bench.amplification(&text)?, oracle })
}

pub(crate) fn greedy(bench: &Bench<'_>) -> Figures {
    collected(bench, "gc = \"greedy\"", mean_field::greedy(PAGES_PER_BLOCK, FULL))
}

/// In one log: the theory has blocks in the order they were written, copies included.
pub(crate) fn fifo(bench: &Bench<'_>) -> Figures {
    let ftl = "gc = \"fifo\", gc_pace = \"blocking\", gc_separate = false";
    collected(bench, ftl, mean_field::fifo(1.0 / FULL))
}

pub(crate) fn random(bench: &Bench<'_>) -> Figures {
    collected(bench, "gc = \"random\"", mean_field::random(FULL))
}

pub(crate) fn choices(bench: &Bench<'_>) -> Figures {
    let ftl = "gc = { kind = \"d-choices\", choices = 3 }";
    collected(bench, ftl, mean_field::choices(3, PAGES_PER_BLOCK, FULL))
}

/// A key of the results after the same writes as to a [`PageMap`], which has it as `oracle`.
fn page_map(bench: &Bench<'_>, key: &str, oracle: fn(&PageMap) -> u64) -> Figures {
    const SMALL: u32 = 256;
    const SPARE: f64 = 0.28;
    let pages = logical_pages(SMALL, SPARE);
    let writes = fill_and_overwrite(pages);
    let mut reference = PageMap::new(SMALL as usize, PAGES_PER_BLOCK as usize, pages as usize);
    writes.iter().for_each(|page| reference.write(*page as usize));
    let ftl = "gc = \"greedy\", gc_pace = \"blocking\", gc_separate = false";
    let keys = format!("page_size = \"4KiB\"\nftl = {{ kind = \"page\", {ftl} }}");
    let request = |page| Request::new(Op::Write, Lba(page * u64::from(PAGE_SECTORS)), PAGE_SECTORS);
    let requests = writes.into_iter().map(request);
    let simulated = bench.serve(&ssd(1, SMALL, SPARE, &keys), requests, key)?;
    Ok(Pair { simulated, oracle: oracle(&reference) as f64 })
}

/// Every page in order, then three times as many at random.
fn fill_and_overwrite(pages: u64) -> Vec<u64> {
    let mut stream = Stream::new(1, "verify");
    let random = (0..3 * pages).map(|_| stream.below(pages));
    (0..pages).chain(random).collect()
}

pub(crate) fn copies(bench: &Bench<'_>) -> Figures {
    page_map(bench, "components.ssd.programs_by_cause.gc", |reference| reference.copies)
}

pub(crate) fn erases(bench: &Bench<'_>) -> Figures {
    page_map(bench, "components.ssd.erases_by_cause.gc", |reference| reference.erases)
}

/// Pages of 16 KiB in units of 64 KiB, which four planes hold.
const UNIT_KEYS: &str = "page_size = \"16KiB\"\nmap_unit = \"64KiB\"\nprecondition = \"fill\"";
/// Writes that a unit holds.
const UNIT_PAGES: f64 = 16.0;

/// Without garbage collection a unit is programmed for every write.
pub(crate) fn map_unit(bench: &Bench<'_>) -> Figures {
    let writes =
        "[workload]\ngenerator = { kind = \"uniform\", block = \"4KiB\", requests = 1000 }\n";
    let text = writes.to_owned() + &ssd(4, 256, 0.28, UNIT_KEYS);
    Ok(Pair { simulated: bench.amplification(&text)?, oracle: UNIT_PAGES })
}

/// Garbage collection multiplies it by the write amplification of units.
pub(crate) fn map_unit_collected(bench: &Bench<'_>) -> Figures {
    let text = random_writes() + &ssd(4, BLOCKS, OVER_PROVISIONING, UNIT_KEYS);
    let oracle = UNIT_PAGES * mean_field::greedy(PAGES_PER_BLOCK, FULL);
    Ok(Pair { simulated: bench.amplification(&text)?, oracle })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::assert_fails;

    #[test]
    fn a_smaller_spare_area_is_outside_the_tolerance_of_the_mean_field() {
        let wrong = 1.0 / (1.0 + OVER_PROVISIONING * 0.95);
        let greedy = |full| mean_field::greedy(PAGES_PER_BLOCK, full);
        assert_fails("gc-greedy", greedy(wrong), greedy(FULL));
        assert_fails("map-unit-gc", 16.0 * greedy(wrong), 16.0 * greedy(FULL));
        assert_fails("gc-fifo", mean_field::fifo(1.0 / wrong), mean_field::fifo(1.0 / FULL));
        assert_fails("gc-random", mean_field::random(wrong), mean_field::random(FULL));
        let choices = |count, full| mean_field::choices(count, PAGES_PER_BLOCK, full);
        assert_fails("gc-d-choices", choices(3, wrong), choices(3, FULL));
        assert_fails("gc-d-choices", choices(4, FULL), choices(3, FULL));
        assert_fails("gc-greedy", mean_field::fifo(1.0 / FULL), greedy(FULL));
    }

    #[test]
    fn one_block_less_changes_copies_and_erases() {
        let pages = logical_pages(256, 0.28);
        let counts = |blocks| {
            let mut map = PageMap::new(blocks, PAGES_PER_BLOCK as usize, pages as usize);
            fill_and_overwrite(pages).into_iter().for_each(|page| map.write(page as usize));
            [map.copies as f64, map.erases as f64]
        };
        let (right, wrong) = (counts(256), counts(255));
        assert_fails("page-map-copies", wrong[0], right[0]);
        assert_fails("page-map-erases", wrong[1], right[1]);
        // Small as it is, it is close to the mean field.
        let amplification = 1.0 + right[0] / (3 * pages) as f64;
        assert!((amplification / mean_field::greedy(32, 1.0 / 1.28) - 1.0).abs() < 0.1);
    }

    #[test]
    fn a_unit_of_another_size_has_another_write_amplification() {
        assert_fails("map-unit", 8.0, UNIT_PAGES);
    }
}
