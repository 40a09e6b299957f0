//! The FTL comparison of flashsim, section 4.3: small devices of one plane, the paper's delays in
//! series, requests like those of its two workloads.

use hybridsim_config::param::Value;
use hybridsim_engine::Stream;
use hybridsim_flash::array::{Array, ProgramOrder};
use hybridsim_flash::defaults;
use hybridsim_flash::ftl::{Ftl, FtlEntry, FtlInput, Hint};
use hybridsim_flash::geometry::{Geometry, Lpn, Shape};
use hybridsim_flash::ops::{FlashOps, OpKind};

/// Pages exported: 64 MiB.
const PAGES: u32 = 32_768;
/// flashsim, table 2.
const READ_US: f64 = 130.9;
const PROGRAM_US: f64 = 405.9;
const ERASE_US: f64 = 1_500.0;

/// The parameters of a workload.
#[derive(Clone, Copy)]
struct Workload {
    reads: f64,
    /// Pages of a request.
    pages: u32,
    /// Probability that a request continues the previous one.
    sequential: f64,
    /// Exponent of popularity: 1 is uniform.
    skew: i32,
    requests: u32,
}

/// flashsim, table 3: 4.38 KB, 9 % reads, 2 % sequential. Popularity assumed.
const FINANCIAL: Workload =
    Workload { reads: 0.09, pages: 2, sequential: 0.02, skew: 3, requests: 30_000 };
/// 12.82 KB, 95 % reads, 18 % sequential. Popularity assumed.
const TPC_H: Workload =
    Workload { reads: 0.95, pages: 6, sequential: 0.18, skew: 3, requests: 30_000 };

/// The cost of the requests.
#[derive(Debug, Default)]
struct Cost {
    /// Service time of each request.
    us: Vec<f64>,
    erases: u32,
    /// Reads and programs besides those of the host.
    extra: u32,
    ram_bytes: u64,
}

impl Cost {
    fn mean(&self) -> f64 {
        self.us.iter().sum::<f64>() / self.us.len() as f64
    }

    fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.us.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[(share * (sorted.len() - 1) as f64) as usize]
    }
}

struct Device {
    ftl: Box<dyn Ftl>,
    flash: FlashOps,
}

fn device(name: &str, params: &[(&'static str, Value)]) -> Device {
    let shape = Shape {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 560,
        pages_per_block: 64,
        page_bytes: 2048,
        spare_bytes: 64,
    };
    let geometry = Geometry::new(&shape).expect("a valid shape");
    let registry = defaults::registry();
    let entry = registry.find::<FtlEntry>(name).expect("it is registered");
    let mut settings = defaults::settings(entry.description.params, &registry);
    for (name, value) in params {
        settings.set(name, value.clone());
    }
    let input = FtlInput {
        settings: &settings,
        geometry: &geometry,
        exported_pages: PAGES,
        registry: &registry,
        seed: 1,
        path: "test",
    };
    let ftl = (entry.build)(&input).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
    let flash = FlashOps::new(Array::new(geometry, ProgramOrder::Any, 100_000));
    Device { ftl, flash }
}

/// A page by popularity; pages of similar popularity have unrelated addresses.
fn popular(stream: &mut Stream, workload: &Workload) -> u32 {
    let rank = (f64::from(PAGES) * stream.unit().powi(workload.skew)) as u32;
    (rank.wrapping_mul(20_021) % PAGES).min(PAGES - workload.pages)
}

fn run(name: &str, params: &[(&'static str, Value)], workload: &Workload) -> Cost {
    let Device { mut ftl, mut flash } = device(name, params);
    let mut cost = Cost { ram_bytes: ftl.properties().mapping_ram_bytes, ..Cost::default() };
    for page in 0..PAGES {
        flash.clear();
        ftl.write(Lpn(page), Hint::of_pages(64), &mut flash).expect("a device that is not full");
    }
    let mut stream = Stream::new(7, "requests");
    let mut next = 0;
    for number in 0..workload.requests {
        let first = match stream.chance(workload.sequential) {
            true => next % (PAGES - workload.pages),
            false => popular(&mut stream, workload),
        };
        next = first + workload.pages;
        let reads = stream.chance(workload.reads);
        let mut us = 0.0;
        for page in first..next {
            flash.clear();
            match reads {
                true => ftl.read(Lpn(page), &mut flash),
                false => ftl
                    .write(Lpn(page), Hint::of_pages(workload.pages), &mut flash)
                    .expect("a device that is not full"),
            }
            let mut operations = 0;
            for op in flash.list() {
                let (time, count) = match op.kind {
                    OpKind::Read => (READ_US, 1),
                    OpKind::Program => (PROGRAM_US, 1),
                    OpKind::Copy => (READ_US + PROGRAM_US, 2),
                    OpKind::Erase => (ERASE_US, 0),
                };
                us += time;
                operations += count;
                // The first third brings the device into its steady state.
                cost.erases +=
                    u32::from(op.kind == OpKind::Erase && number * 3 > workload.requests);
            }
            if number * 3 > workload.requests {
                cost.extra += operations - 1;
            }
        }
        if number * 3 > workload.requests {
            cost.us.push(us);
        }
    }
    cost
}

/// DFTL's cache takes as much memory as FAST, as in the paper.
fn three(workload: &Workload) -> [Cost; 3] {
    let fast = run("fast", &[], workload);
    let entries = Value::Count(fast.ram_bytes / 8);
    let dftl = run("dftl", &[("cache_entries", entries)], workload);
    let pace = Value::Text("blocking".to_owned());
    let one_log = [("gc_pace", pace), ("gc_separate", Value::Flag(false))];
    [run("page", &one_log, workload), dftl, fast]
}

#[test]
fn random_writes_cost_fast_most_and_dftl_more_than_page_mapping() {
    let [page, dftl, fast] = three(&FINANCIAL);
    let means = [page.mean(), dftl.mean(), fast.mean()];
    println!("Financial, mean us: page, DFTL, FAST {means:?}");
    println!("erases {:?}", [page.erases, dftl.erases, fast.erases]);
    println!("extra pages {:?}", [page.extra, dftl.extra, fast.extra]);
    assert!(means[0] < means[1] && means[1] < means[2] * 0.6, "{means:?}");
    assert!(fast.erases > dftl.erases * 2 && fast.extra > dftl.extra * 2);
    let tail = |cost: &Cost| cost.quantile(0.999) / cost.quantile(0.5);
    assert!(tail(&fast) > tail(&page), "full merges make a long tail");
}

#[test]
fn reads_cost_dftl_translations_and_few_writes_cost_fast_its_tail() {
    let [page, dftl, fast] = three(&TPC_H);
    let means = [page.mean(), dftl.mean(), fast.mean()];
    println!("TPC-H, mean us: page, DFTL, FAST {means:?}");
    assert!(means[0] * 1.1 < means[1], "translation reads: {means:?}");
    assert!(means[1] < means[2], "full merges: {means:?}");
    assert!(fast.quantile(0.85) < dftl.quantile(0.85), "most requests are faster with FAST");
    assert!(fast.quantile(0.999) > dftl.quantile(0.999), "but the slowest are slower");
}

#[test]
fn the_page_map_needs_far_more_memory_than_the_others() {
    let bytes = |name| device(name, &[]).ftl.properties().mapping_ram_bytes;
    let [page, block, fast] = ["page", "block", "fast"].map(bytes);
    assert_eq!((page, block), (131_072, 512 * 4));
    assert_eq!(fast, 512 * 4 + 15 * 64 * 4 + 12, "3 % of 512 blocks are 16, one sequential");
    assert!(page > fast * 20 && fast < block * 4);
}
