//! Wear levelling under skewed workloads, and the effect of hot/cold separation.

use hybridsim_config::param::{EntryChoice, Settings, Value};
use hybridsim_engine::Stream;
use hybridsim_flash::Cause;
use hybridsim_flash::array::{Array, ProgramOrder};
use hybridsim_flash::defaults;
use hybridsim_flash::ftl::{Ftl, FtlInput, Hint, page};
use hybridsim_flash::geometry::{BlockId, Geometry, Lpn, Shape};
use hybridsim_flash::ops::{FlashOps, OpKind};

const BLOCKS: u64 = 256;
const PAGES: u64 = 16;

struct Device {
    ftl: Box<dyn Ftl>,
    flash: FlashOps,
    exported: u32,
    wear_copies: u64,
}

fn entry(category: &'static str, name: &str, param: Option<(&'static str, u64)>) -> Value {
    let mut value = defaults::entry(category, name, &defaults::registry());
    if let (Value::Entry(EntryChoice { settings, .. }), Some((name, count))) = (&mut value, param) {
        settings.set(name, Value::Count(count));
    }
    value
}

fn plain() -> Settings {
    defaults::settings(page::ENTRY.description.params, &defaults::registry())
}

impl Device {
    fn new(settings: &Settings, over_provisioning: f64, planes: u64) -> Self {
        let geometry = Geometry::new(&Shape {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: planes,
            blocks_per_plane: BLOCKS / planes,
            pages_per_block: PAGES,
            page_bytes: 4096,
            spare_bytes: 0,
        })
        .expect("a valid shape");
        let exported = geometry.exported_pages(over_provisioning);
        let registry = defaults::registry();
        let ftl = (page::ENTRY.build)(&FtlInput {
            settings,
            geometry: &geometry,
            exported_pages: exported,
            registry: &registry,
            seed: 1,
            path: "wear",
        })
        .expect("valid parameters");
        let flash = FlashOps::new(Array::new(geometry, ProgramOrder::Sequential, u32::MAX));
        let mut device = Self { ftl, flash, exported, wear_copies: 0 };
        (0..exported).for_each(|lpn| device.write(lpn));
        device
    }

    fn write(&mut self, lpn: u32) {
        self.flash.clear();
        let hint = Hint::of_pages(1);
        self.ftl.write(Lpn(lpn), hint, &mut self.flash).expect("a device that is not full");
        let moved = |op: &&hybridsim_flash::ops::FlashOp| {
            op.kind == OpKind::Copy && op.cause == Cause::Wear
        };
        self.wear_copies += self.flash.list().iter().filter(moved).count() as u64;
    }

    /// Sends 95 % of `count` writes, or all of them, to a tenth of the pages.
    fn write_hot(&mut self, count: u32, only_hot: bool) {
        let mut stream = Stream::new(9, "hot");
        for _ in 0..count {
            let hot = only_hot || stream.chance(0.95);
            let span = if hot { self.exported / 10 } else { self.exported };
            self.write(stream.below(u64::from(span)) as u32);
        }
        self.ftl.audit(&self.flash).expect("consistent metadata");
        assert_eq!(self.flash.violation(), None);
    }

    fn erases(&self) -> Vec<f64> {
        (0..BLOCKS as u32)
            .map(|block| f64::from(self.flash.array().erases(BlockId(block))))
            .collect()
    }

    /// Standard deviation, minimum and maximum of the erase counts.
    fn spread(&self) -> (f64, f64, f64) {
        let erases = self.erases();
        let mean = erases.iter().sum::<f64>() / erases.len() as f64;
        let variance = erases.iter().map(|e| (e - mean) * (e - mean)).sum::<f64>();
        let least = erases.iter().copied().fold(f64::INFINITY, f64::min);
        let most = erases.iter().copied().fold(0.0, f64::max);
        ((variance / erases.len() as f64).sqrt(), least, most)
    }
}

fn with_wear(name: &str, threshold: Option<u64>) -> Device {
    let threshold = threshold.map(|threshold| ("threshold", threshold));
    let settings = plain().and("wear", entry("wear-levelling", name, threshold));
    // One plane: wear levelling works within planes.
    Device::new(&settings, 0.15, 1)
}

#[test]
fn explicit_levelling_keeps_erases_within_its_threshold_under_any_skew() {
    for only_hot in [false, true] {
        let mut none = with_wear("none", None);
        none.write_hot(400_000, only_hot);
        let (deviation_none, least, most) = none.spread();
        println!("none, {only_hot}: {deviation_none:.1}, {least} to {most}");
        assert_eq!(none.wear_copies, 0);
        for (name, threshold, times) in
            [("static", 16, 1.5), ("dual-pool", 16, 4.0), ("dual-pool", 4, 4.0)]
        {
            let mut device = with_wear(name, Some(threshold));
            device.write_hot(400_000, only_hot);
            let (deviation, least, most) = device.spread();
            let share = device.wear_copies as f64 / 400_000.0;
            println!(
                "{name} {threshold}, {only_hot}: {deviation:.1}, {least} to {most}, {share:.3}"
            );
            assert!(device.wear_copies > 0);
            assert!(deviation < deviation_none / 2.5, "{name}: {deviation} of {deviation_none}");
            assert!(share < 0.6, "{name}: {share} pages relocated per write");
            // A gap grows by one erase at a time, and is closed when it reaches the threshold.
            // Data that are neither hot nor cold let blocks drift within the two pools, which
            // compare only their extremes; with cold data that never change the gap is the sum of
            // the thresholds of the three rules, 4 TH.
            if name == "static" || only_hot {
                let gap = most - least;
                assert!(gap <= times * threshold as f64 + 2.0, "{name}: {least} to {most}");
            }
        }
    }
}

#[test]
fn a_device_levelled_explicitly_lives_longer() {
    // Writes until the first block has seen 300 erases.
    let life = |name: &str| {
        let mut device = with_wear(name, None);
        let mut writes = 0;
        while device.spread().2 < 300.0 {
            device.write_hot(2_000, true);
            writes += 2_000;
        }
        writes
    };
    let [none, implicit, explicit, dual] = ["none", "implicit", "static", "dual-pool"].map(life);
    println!(
        "writes to 300 erases: none {none}, implicit {implicit}, static {explicit}, dual {dual}"
    );
    assert!(explicit > 2 * none && dual > 2 * none && implicit >= none * 9 / 10);
}

/// Programs per host write of a device with 95 % of the writes on a tenth of its pages.
fn amplification(settings: &Settings, over_provisioning: f64) -> f64 {
    let mut device = Device::new(settings, over_provisioning, 1);
    device.write_hot(100_000, false);
    let before = device.flash.array().programs();
    device.write_hot(100_000, false);
    (device.flash.array().programs() - before) as f64 / 100_000.0
}

#[test]
fn hot_cold_separation_reduces_copies() {
    let mixed = amplification(&plain(), 0.1);
    let table = entry("placement", "write-count", None);
    let separate = amplification(&plain().and("placement", table), 0.1);
    println!("write amplification: mixed {mixed:.3}, separate {separate:.3}");
    assert!(separate < 0.95 * mixed, "{separate} separate, {mixed} mixed");
    // Every request has one page: all pages are hot, which gains nothing.
    let size = entry("placement", "request-size", None);
    let all_hot = amplification(&plain().and("placement", size), 0.1);
    assert!((all_hot / mixed - 1.0).abs() < 0.1, "{all_hot} all hot, {mixed} mixed");
}

#[test]
fn trimmed_pages_are_spare_space() {
    // Uniform writes to a part of the pages: as on a device with more over-provisioning.
    let measure = |device: &mut Device, pages: u32| {
        let mut stream = Stream::new(5, "uniform");
        let mut amplification = 0.0;
        for _ in 0..4 {
            let before = device.flash.array().programs();
            let count = 4 * pages;
            (0..count).for_each(|_| device.write(stream.below(u64::from(pages)) as u32));
            amplification = (device.flash.array().programs() - before) as f64 / f64::from(count);
        }
        amplification
    };
    let mut device = Device::new(&plain(), 0.07, 1);
    let exported = device.exported;
    let full = measure(&mut device, exported);
    // The data shrink to 70 %, which leaves (1.07 / 0.7 - 1) = 53 % of spare space.
    let kept = exported * 7 / 10;
    (kept..exported).for_each(|lpn| {
        device.ftl.trim(Lpn(lpn), &mut device.flash).expect("a trim writes nothing");
    });
    device.ftl.audit(&device.flash).expect("consistent metadata");
    let shrunk = measure(&mut device, kept);
    let mut small = Device::new(&plain(), 1.07 / 0.7 - 1.0, 1);
    let exported = small.exported;
    let expected = measure(&mut small, exported);
    println!("full {full:.3}, shrunk {shrunk:.3}, built that size {expected:.3}");
    assert!((shrunk / expected - 1.0).abs() < 0.02, "{shrunk} shrunk, {expected} built that size");
    // The data grow again when the trimmed pages are written.
    (kept..device.exported).for_each(|lpn| device.write(lpn));
    let exported = device.exported;
    let again = measure(&mut device, exported);
    assert!((again / full - 1.0).abs() < 0.04 && full > 2.0 * shrunk, "{full} {again} {shrunk}");
}
