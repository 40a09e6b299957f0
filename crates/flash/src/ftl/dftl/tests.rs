use super::*;
use crate::array::{Array, ProgramOrder};
use crate::defaults;
use crate::geometry::Shape;
use crate::ops::OpKind;
use hybridsim_config::param::{Settings, Value};

/// 128 entries in a translation page.
fn geometry(planes: u64, blocks_per_plane: u64) -> Geometry {
    let shape = Shape {
        channels: planes,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane,
        pages_per_block: 16,
        page_bytes: 512,
        spare_bytes: 0,
    };
    Geometry::new(&shape).expect("a small shape")
}

fn settings(entries: u64) -> Settings {
    let plain = defaults::settings(&PARAMS, &defaults::registry());
    plain.and("cache_entries", Value::Count(entries)).and("cache_policy", Value::Text("lru".into()))
}

fn build(settings: &Settings, geometry: &Geometry, exported_pages: u32) -> BuiltFtl {
    let registry = defaults::registry();
    (ENTRY.build)(&FtlInput {
        settings,
        geometry,
        exported_pages,
        registry: &registry,
        seed: 1,
        path: "test",
    })
}

struct Bench {
    ftl: Box<dyn Ftl>,
    flash: FlashOps,
}

impl Bench {
    fn new(settings: &Settings, exported_pages: u32) -> Self {
        let geometry = geometry(1, 40);
        let flash = FlashOps::new(Array::new(geometry, ProgramOrder::Sequential, 1_000));
        let ftl = build(settings, &geometry, exported_pages).expect("a working device");
        Self { ftl, flash }
    }

    fn operations(&self) -> Vec<(OpKind, Cause)> {
        self.flash.list().iter().map(|op| (op.kind, op.cause)).collect()
    }

    fn read(&mut self, lpn: u32) -> Vec<(OpKind, Cause)> {
        self.flash.clear();
        self.ftl.read(Lpn(lpn), &mut self.flash);
        self.operations()
    }

    fn write(&mut self, lpn: u32) -> Vec<(OpKind, Cause)> {
        self.flash.clear();
        self.ftl
            .write(Lpn(lpn), Hint { request_pages: 1 }, &mut self.flash)
            .expect("a device that is not full");
        self.operations()
    }

    fn trim(&mut self, lpn: u32) -> Vec<(OpKind, Cause)> {
        self.flash.clear();
        self.ftl.trim(Lpn(lpn), &mut self.flash).expect("a device that is not full");
        self.operations()
    }
}

use Cause::{Host, Mapping};
use OpKind::{Program, Read};

const LOAD: (OpKind, Cause) = (Read, Mapping);
const SAVE: (OpKind, Cause) = (Program, Mapping);
const DATA: (OpKind, Cause) = (Program, Host);

#[test]
fn a_miss_costs_at_most_two_reads_and_one_write_of_the_map() {
    let mut bench = Bench::new(&settings(1), 300);
    assert_eq!(bench.write(0), [DATA], "nothing of the map was written yet");
    assert_eq!(bench.write(0), [DATA], "a hit");
    assert_eq!(bench.write(200), [SAVE, DATA], "the first time there is nothing to read");
    assert_eq!(bench.write(201), [SAVE, LOAD, DATA], "fetched again for its neighbour");
    assert_eq!(bench.write(1), [LOAD, SAVE, LOAD, DATA], "the worst case");
    let data_waits = bench.flash.list()[3].after.index();
    assert_eq!(data_waits, Some(2), "the data wait for the map");
    assert_eq!(bench.read(1), [(Read, Host)], "cached");
    assert_eq!(bench.read(201), [LOAD, SAVE, LOAD, (Read, Host)]);
    assert_eq!(bench.read(200), [LOAD, (Read, Host)], "nothing to write back");
    assert_eq!(bench.read(7), [LOAD], "never written, but the map has to be asked");
    assert_eq!(bench.trim(0), [LOAD]);
    assert_eq!(bench.read(150), [LOAD, SAVE, LOAD], "a trim is a change");
    bench.ftl.audit(&bench.flash).expect("consistent metadata");
}

#[test]
fn one_write_of_a_translation_page_includes_all_dirty_entries() {
    let run = |batch| {
        let mut bench = Bench::new(&settings(4).and("batch_updates", Value::Flag(batch)), 300);
        let mut saves = 0;
        for lpn in [0, 1, 2, 3, 200, 201, 202, 203] {
            saves += bench.write(lpn).iter().filter(|op| **op == SAVE).count();
        }
        bench.ftl.audit(&bench.flash).expect("consistent metadata");
        saves
    };
    assert_eq!((run(true), run(false)), (1, 4));
}

#[test]
fn copied_pages_update_each_translation_page_once() {
    for (entries, batch) in [(300, true), (4, true), (4, false)] {
        let settings = settings(entries).and("batch_updates", Value::Flag(batch));
        let mut bench = Bench::new(&settings, 300);
        let mut stream = hybridsim_engine::Stream::new(1, "test");
        let (mut copies, mut in_gc, mut collections) = (0, 0, 0);
        for number in 0..3_000 {
            let lpn = if number < 300 { number } else { stream.below(300) as u32 };
            let ops = bench.write(lpn);
            let copied = |op: &FlashOpNote| op.0 == OpKind::Copy;
            // Operations from the first copy of data on belong to the collection.
            if let Some(first) = ops.iter().position(copied) {
                collections += 1;
                copies += ops.iter().filter(|op| copied(op)).count();
                in_gc += ops[first..].iter().filter(|op| **op == SAVE).count();
            }
        }
        bench.ftl.audit(&bench.flash).expect("consistent metadata");
        assert!(copies > 300 && collections > 50, "{copies} copies, {collections} collections");
        match (entries, batch) {
            (300, _) => assert_eq!(in_gc, 0, "everything is cached: lazy copying"),
            (_, true) => assert!(in_gc <= collections * 3 * 4, "{in_gc} in {collections}"),
            (_, false) => assert!(in_gc * 10 > copies * 8, "{in_gc} for {copies} copies"),
        }
    }
}

type FlashOpNote = (OpKind, Cause);

#[test]
fn memory_holds_the_cached_entries_and_the_directory() {
    let bench = Bench::new(&settings(10), 300);
    assert_eq!(bench.ftl.mapping_ram_bytes(), 10 * 8 + 3 * 4);
    let whole = Bench::new(&settings(1_000_000), 300);
    assert_eq!(whole.ftl.mapping_ram_bytes(), 300 * 8 + 3 * 4, "no more than there are pages");
}

#[test]
fn the_map_has_blocks_of_its_own() {
    let shares = Shares::new(&geometry(4, 40), 2_000).expect("it fits");
    // 16 translation pages and 50 % more, in blocks of 16, and two blocks.
    assert_eq!(
        shares,
        Shares { entries_per_page: 128, translation_pages: 16, pools: 1, blocks_per_pool: 4 }
    );
    let shares = Shares::new(&geometry(4, 3), 96).expect("it fits");
    assert_eq!((shares.pools, shares.blocks_per_pool), (1, 3));
    assert_eq!(Shares::new(&geometry(1, 2), 16), None);
}

#[test]
fn a_device_too_small_for_map_and_spare_blocks_is_rejected() {
    let plain = settings(10);
    // 40 blocks, 3 of the map, 2 spare: 35 blocks of 16 pages, one of them for the next write.
    let map_of = |pages: u32| pages.div_ceil(128);
    assert_eq!(map_of(559), 5);
    assert!(build(&plain, &geometry(1, 40), 559).is_ok());
    let Err(problems) = build(&plain, &geometry(1, 40), 560) else { panic!("must be rejected") };
    assert_eq!(problems[0].param, "over_provisioning");
}

#[test]
fn idle_collection_prevents_writes_from_waiting() {
    let mut stream = hybridsim_engine::Stream::new(2, "writes");
    let settings = settings(64).and("gc_idle_free_blocks", Value::Count(6));
    let mut bench = Bench::new(&settings, 300);
    let moved = |did: &[(OpKind, Cause)]| did.iter().any(|(_, cause)| *cause == Cause::Gc);
    let collecting = (0..2_000).filter(|_| moved(&bench.write(stream.below(300) as u32)));
    assert!(collecting.count() > 20, "writes wait for it now and then");
    bench.flash.clear();
    let mut steps = 0;
    while bench.ftl.idle(&mut bench.flash).expect("a working device") {
        steps += 1;
        assert!(steps < 1_000, "it must come to an end");
    }
    assert!(moved(&bench.operations()) && steps > 0);
    assert!(!bench.ftl.idle(&mut bench.flash).expect("a working device"), "nothing is left to do");
    // Four of the six free blocks can be filled before the next collection.
    let waits = (0..4 * 16).find(|_| {
        let did = bench.write(stream.below(300) as u32);
        did.contains(&(OpKind::Copy, Cause::Gc)) && did.contains(&(OpKind::Erase, Cause::Gc))
    });
    assert!(waits.is_none(), "write {waits:?} waited");
    bench.ftl.audit(&bench.flash).expect("consistent metadata");
}
