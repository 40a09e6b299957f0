//! Static and dynamic caches on small devices, and the conformance suite with sizes.

use super::*;
use crate::array::{Array, ProgramOrder};
use crate::conformance::{Subject, check};
use crate::defaults;
use crate::event::Cause;
use crate::geometry::Shape;
use crate::ops::OpCounts;
use crate::precondition::{self, Precondition};
use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::Stream;

const PAGE: u64 = 512;

/// A device of one plane.
struct Device {
    ftl: Box<dyn Ftl>,
    flash: FlashOps,
}

fn with(settings: &[(&'static str, Value)]) -> Settings {
    let mut all = defaults::settings(Parameters::PARAMS, &defaults::registry());
    for (name, value) in settings {
        all.set(name, value.clone());
    }
    all
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

impl Device {
    /// With `blocks` blocks of 12 pages, 4 in SLC mode.
    fn new(blocks: u64, exported_pages: u32, settings: &Settings) -> Self {
        Self::of(blocks, 12, exported_pages, settings)
    }

    /// With blocks of `pages` pages, a third of them in SLC mode.
    fn of(blocks: u64, pages: u32, exported_pages: u32, settings: &Settings) -> Self {
        let shape = Shape {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: blocks,
            pages_per_block: u64::from(pages),
            page_bytes: PAGE,
            spare_bytes: 0,
        };
        let geometry = Geometry::new(&shape).expect("a valid shape");
        let registry = defaults::registry();
        let input = FtlInput {
            settings,
            geometry: &geometry,
            exported_pages,
            registry: &registry,
            seed: 1,
            path: "test",
        };
        let ftl = build(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
        let array =
            Array::new(geometry, ProgramOrder::Sequential, 100_000).with_slc_mode(pages / 3);
        let mut flash = FlashOps::new(array);
        flash.set_recording(false);
        Self { ftl, flash }
    }

    fn write(&mut self, pages: std::ops::Range<u32>) {
        for page in pages {
            let hint = Hint::of_pages(1);
            self.ftl.write(Lpn(page), hint, &mut self.flash).expect("there is room");
        }
        self.audit();
    }

    /// Works in the background until there is nothing more to do.
    fn idle(&mut self) {
        while self.ftl.idle(&mut self.flash).expect("no block is worn out") {}
        self.audit();
    }

    fn audit(&self) {
        assert_eq!(self.flash.violation(), None);
        self.flash.array().audit().expect("a consistent array");
        self.ftl.audit(&self.flash).expect("consistent metadata");
    }

    /// Valid pages in blocks in SLC mode.
    fn cached(&self) -> u32 {
        let array = self.flash.array();
        let blocks = (0..array.geometry().blocks()).map(BlockId);
        blocks.filter(|block| array.is_slc(*block)).map(|block| array.valid(block)).sum()
    }

    fn counts(&self) -> &OpCounts {
        self.flash.counts()
    }
}

#[test]
fn it_conforms_with_caches_of_every_kind() {
    let registry = defaults::registry();
    let size = |pages: u64| Value::Bytes(pages * PAGE);
    let variants = [
        vec![("static_size", size(1)), ("dynamic_size", size(0))],
        vec![("static_size", size(40)), ("dynamic_size", size(1)), ("low_mark", size(20))],
        vec![("static_size", size(9)), ("keep_free", Value::Number(0.3))],
        vec![("bits_per_cell", Value::Count(2)), ("gc_idle_free_blocks", Value::Count(4))],
    ];
    for (number, variant) in variants.iter().enumerate() {
        for when_full in ["direct", "fold"] {
            for order in [ProgramOrder::Sequential, ProgramOrder::Any] {
                let settings = with(variant).and("when_full", text(when_full));
                let subject = Subject {
                    entry: ENTRY,
                    settings: &settings,
                    registry: &registry,
                    order,
                    saves: true,
                };
                let coverage = check(&subject, 320, number as u64)
                    .unwrap_or_else(|failure| panic!("{variant:?} {when_full}: {failure}"));
                assert!(coverage.ran > 30 && coverage.erases > 1_000, "{coverage:?}");
            }
        }
    }
}

#[test]
fn a_static_cache_takes_its_size_and_idle_time_empties_it() {
    // Two static blocks of 4 pages.
    let settings =
        with(&[("static_size", Value::Bytes(8 * PAGE)), ("dynamic_size", Value::Bytes(0))]);
    let mut device = Device::new(20, 100, &settings);
    device.write(0..30);
    assert_eq!(device.cached(), 8, "further writes are direct");
    assert_eq!(device.counts().programs(Cause::Fold), 0);
    device.idle();
    assert_eq!((device.cached(), device.counts().programs(Cause::Fold)), (0, 8));
    assert_eq!(device.counts().erases(Cause::Fold), 2);
    device.write(30..60);
    assert_eq!(device.cached(), 8, "the cache is as large again");
    assert_eq!(device.counts().programs(Cause::Gc), 0);
}

#[test]
fn data_overwritten_in_the_cache_never_reach_native_blocks() {
    let settings = with(&[("static_size", Value::Bytes(40 * PAGE))]);
    let mut device = Device::new(30, 100, &settings);
    for _ in 0..4 {
        device.write(0..10);
    }
    device.ftl.trim(Lpn(9), &mut device.flash).expect("trims do not fail");
    device.idle();
    assert_eq!(device.counts().programs(Cause::Fold), 9);
    assert_eq!(device.counts().programs(Cause::Host), 40);
}

#[test]
fn a_full_cache_is_folded_first_if_asked() {
    let settings = with(&[
        ("static_size", Value::Bytes(8 * PAGE)),
        ("dynamic_size", Value::Bytes(0)),
        ("when_full", text("fold")),
    ]);
    let mut device = Device::new(20, 100, &settings);
    device.write(0..80);
    // 20 blocks were filled; all but the last 2 have been folded.
    assert_eq!((device.cached(), device.counts().programs(Cause::Fold)), (8, 72));
    assert_eq!(device.counts().erases(Cause::Fold), 18);
}

#[test]
fn a_dynamic_cache_shrinks_as_the_device_fills() {
    let cached_at = |filled: u32, settings: &Settings| {
        let mut device = Device::new(42, 470, settings);
        device.write(0..filled);
        device.idle();
        assert_eq!(device.cached(), 0, "{filled} pages");
        let mut page = filled;
        while device.counts().programs(Cause::Host) == u64::from(page) && page < 470 {
            device.write(page..page + 1);
            page += 1;
            if device.cached() < page - filled {
                return device.cached();
            }
        }
        device.cached()
    };
    // 24 blocks of 4 pages at most; 10 % of 42 native blocks, 5, stay free.
    let settings =
        with(&[("dynamic_size", Value::Bytes(96 * PAGE)), ("keep_free", Value::Number(0.1))]);
    assert_eq!(cached_at(0, &settings), 96, "the maximum");
    // 12 pages fill a block: 42 blocks less 20, less 5 kept.
    assert_eq!(cached_at(240, &settings), 17 * 4);
    assert_eq!(cached_at(360, &settings), 7 * 4);
    assert_eq!(cached_at(444, &settings), 0, "no more than the 5 are free");
}

#[test]
fn idle_folding_stops_at_the_low_mark() {
    let settings = with(&[("low_mark", Value::Bytes(13 * PAGE))]);
    let mut device = Device::new(40, 100, &settings);
    device.write(0..40);
    device.idle();
    assert_eq!(device.cached(), 12, "three full blocks remain");
}

#[test]
fn a_step_is_short_even_if_folding_has_to_collect_first() {
    // A static block of 64 pages, and a native block may have more than 100 to copy.
    let sizes = [("static_size", 64), ("dynamic_size", 64)];
    let settings = with(&sizes.map(|(name, pages)| (name, Value::Bytes(pages * PAGE))));
    let mut device = Device::of(9, 192, 1_100, &settings);
    device.write(0..1_100);
    let moved = |device: &Device| [Cause::Fold, Cause::Gc].map(|it| device.counts().programs(it));
    let (mut stream, mut collected_first) = (Stream::new(1, "pages"), 0);
    for _ in 0..50 {
        for _ in 0..400 {
            let page = stream.below(1_100) as u32;
            device.write(page..page + 1);
        }
        let begin = moved(&device);
        let mut last = begin;
        while device.ftl.idle(&mut device.flash).expect("no block is worn out") {
            let [folded, collected] = moved(&device);
            let step = folded + collected - last[0] - last[1];
            assert!(step <= u64::from(moves::IDLE_PAGES), "{step} pages in a step");
            collected_first += u32::from(folded > last[0] && last[1] > begin[1]);
            last = [folded, collected];
        }
        device.audit();
        assert!(device.cached() < 64, "no full block is left");
    }
    assert!(collected_first > 0, "the case does not occur");
}

#[test]
fn preconditioning_that_is_stopped_does_not_fold() {
    for (reports_max, folds) in [(u32::MAX, true), (1, false)] {
        let pages = 16_900;
        let mut device = Device::of(100, 192, pages, &with(&[]));
        let (mut stream, mut reports) = (Stream::new(1, "precondition"), 0);
        let mut progress = |_| {
            reports += 1;
            reports <= reports_max
        };
        let Device { ftl, flash } = &mut device;
        let fill = Precondition::Fill;
        precondition::run(fill, pages, &mut **ftl, flash, &mut stream, &mut progress)
            .expect("the flash is large enough");
        device.audit();
        let cached = device.cached();
        assert_eq!(cached < 64, folds, "{cached} pages in the cache after {reports} reports");
    }
}

#[test]
fn cells_need_blocks_of_several_pages() {
    let shape = Shape {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 8,
        pages_per_block: 2,
        page_bytes: PAGE,
        spare_bytes: 0,
    };
    let geometry = Geometry::new(&shape).expect("a valid shape");
    let (settings, registry) = (with(&[]), defaults::registry());
    let problem = |settings: &Settings, exported_pages| {
        let input = FtlInput {
            settings,
            geometry: &geometry,
            exported_pages,
            registry: &registry,
            seed: 1,
            path: "test",
        };
        build(&input).err().expect("a problem").remove(0)
    };
    assert_eq!(problem(&settings, 4).param, "bits_per_cell");
    let settings =
        with(&[("bits_per_cell", Value::Count(2)), ("static_size", Value::Bytes(6 * PAGE))]);
    // Six of eight blocks are static.
    let full = problem(&settings, 4);
    assert_eq!(full.param, "over_provisioning");
    assert!(full.message.ends_with("lower static_size"), "{}", full.message);
}

#[test]
fn a_block_in_slc_mode_takes_a_part_of_its_pages_until_it_is_erased() {
    use crate::array::Violation;
    let settings = with(&[]);
    let mut flash = Device::new(10, 20, &settings).flash;
    let geometry = *flash.array().geometry();
    flash.begin_slc(BlockId(1));
    for offset in 0..4 {
        flash.program(geometry.page(BlockId(1), offset), Lpn(0), Cause::Host, After::NOTHING);
        flash.invalidate(geometry.page(BlockId(1), offset));
    }
    assert!(flash.array().is_slc(BlockId(1)) && flash.violation().is_none());
    assert!(flash.erase(BlockId(1), Cause::Fold, After::NOTHING));
    assert!(!flash.array().is_slc(BlockId(1)));
    for offset in 0..5 {
        flash.program(geometry.page(BlockId(1), offset), Lpn(0), Cause::Host, After::NOTHING);
    }
    assert_eq!(flash.violation(), None, "it is in native mode again");
    flash.begin_slc(BlockId(2));
    for offset in 0..5 {
        flash.program(geometry.page(BlockId(2), offset), Lpn(0), Cause::Host, After::NOTHING);
    }
    let beyond = Violation::BeyondSlc(geometry.page(BlockId(2), 4));
    assert_eq!(flash.violation(), Some(beyond));
    let mut flash = Device::new(10, 20, &settings).flash;
    flash.program(geometry.page(BlockId(1), 0), Lpn(0), Cause::Host, After::NOTHING);
    flash.begin_slc(BlockId(1));
    assert_eq!(flash.violation(), Some(Violation::ModeChange(BlockId(1))));
}
