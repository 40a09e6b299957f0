use super::*;
use crate::array::{Array, ProgramOrder};
use crate::defaults;
use crate::geometry::{BlockId, Shape};
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
    let plain = defaults::settings(Parameters::PARAMS, &defaults::registry());
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
            .write(Lpn(lpn), Hint::of_pages(1), &mut self.flash)
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
    assert_eq!(bench.ftl.properties().mapping_ram_bytes, 10 * 8 + 3 * 4);
    let whole = Bench::new(&settings(1_000_000), 300);
    assert_eq!(
        whole.ftl.properties().mapping_ram_bytes,
        300 * 8 + 3 * 4,
        "no more than there are pages"
    );
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

/// One entry in the controller's memory, and so many translation pages in the host's.
fn with_host_buffer(pages: u64) -> Settings {
    settings(1).and("host_buffer", Value::Bytes(pages * 512))
}

#[test]
fn entries_are_read_from_the_hosts_memory_and_written_back_there() {
    let mut bench = Bench::new(&with_host_buffer(2), 300);
    assert_eq!(bench.write(0), [DATA]);
    assert_eq!(bench.write(200), [SAVE, DATA], "page 0 of the map is new, and not in the buffer");
    assert_eq!(bench.write(1), [SAVE, LOAD, DATA], "page 1 is, and page 0 enters the buffer");
    let host_read = (Read, Host);
    let accesses = |bench: &Bench| bench.flash.host_accesses();
    assert_eq!(bench.read(0), [host_read], "page 0 of the map is in the buffer");
    assert_eq!(accesses(&bench), 1, "the dirty entry of 1 was written there without waiting");
    assert_eq!(bench.read(15), [], "never written, as the entry says");
    assert_eq!(accesses(&bench), 0, "brought with that of page 0");
    bench.read(16);
    assert_eq!(accesses(&bench), 1, "16 entries are an access");
    assert_eq!(bench.read(200), [LOAD, host_read], "page 1 of the map enters the buffer");
    assert_eq!(bench.write(270), [DATA], "page 2 was never written");
    // Page 2 is written to flash from the controller, and enters the full buffer when it is read:
    // page 0, which is dirty, leaves, and needs no read.
    assert_eq!(bench.read(271), [SAVE, LOAD, SAVE]);
    assert_eq!(accesses(&bench), 1, "page 0 is read from the buffer");
    assert_eq!(bench.read(0), [LOAD, host_read], "and page 1, which is clean, just leaves");
    bench.ftl.audit(&bench.flash).expect("consistent metadata");
}

#[test]
fn a_power_failure_takes_the_clean_pages_of_the_hosts_memory() {
    let mut bench = Bench::new(&with_host_buffer(3), 300);
    for lpn in [0, 200, 1, 201, 2] {
        bench.write(lpn);
    }
    // Both pages are in the buffer; that of 1 and 2 was changed there.
    assert_eq!(bench.read(1), [(Read, Host)]);
    assert_eq!(bench.read(200), [(Read, Host)]);
    bench.read(201);
    let mut clean = Bench::new(&with_host_buffer(3), 300);
    for lpn in [0, 200] {
        clean.write(lpn);
    }
    clean.read(0);
    clean.read(201);
    assert_eq!(clean.read(1), [], "from the buffer");
    clean.ftl.maintenance().expect("it has a host buffer").power_lost();
    assert_eq!(clean.read(200), [LOAD, (Read, Host)], "lost with the host's memory");
    bench.ftl.maintenance().expect("it has a host buffer").power_lost();
    assert_eq!(bench.read(0), [(Read, Host)], "rebuilt, as no other copy has the changes");
    bench.ftl.audit(&bench.flash).expect("consistent metadata");
}

#[test]
fn no_entry_is_lost_between_controller_host_and_flash() {
    let mut stream = hybridsim_engine::Stream::new(3, "host buffer");
    for (entries, pages, batch) in [(1, 1, true), (4, 2, true), (16, 2, false), (1, 3, false)] {
        let settings = settings(entries).and("host_buffer", Value::Bytes(pages * 512));
        let mut bench = Bench::new(&settings.and("batch_updates", Value::Flag(batch)), 300);
        for number in 0..4_000 {
            let lpn = stream.below(300) as u32;
            match stream.below(10) {
                0..6 => _ = bench.write(lpn),
                6 => _ = bench.trim(lpn),
                _ => _ = bench.read(lpn),
            }
            if number % 500 == 499 {
                bench.ftl.maintenance().expect("it has a host buffer").power_lost();
            }
            if number % 100 == 99 {
                bench.ftl.audit(&bench.flash).expect("consistent metadata");
            }
        }
        let mut reads = |bench: &mut Bench| bench.read(stream.below(300) as u32).len();
        assert!((0..100).map(|_| reads(&mut bench)).sum::<usize>() > 50);
    }
}

#[test]
fn a_host_buffer_without_room_for_a_page_is_rejected() {
    let small = settings(10).and("host_buffer", Value::Bytes(511));
    let Err(problems) = build(&small, &geometry(1, 40), 300) else { panic!("must be rejected") };
    assert_eq!(problems[0].param, "host_buffer");
}

/// Refreshes every block of data or, with `of_map`, of the map. Returns how many could be.
fn refresh_all(bench: &mut Bench, of_map: bool) -> u32 {
    let mut count = 0;
    for block in (0..40).map(BlockId) {
        let array = bench.flash.array();
        let Some(first) = array.next_valid(block, 0) else { continue };
        let erases = array.erases(block);
        if (array.owner(array.geometry().page(block, first)).0 >= 300) != of_map {
            continue;
        }
        bench.flash.clear();
        if bench.ftl.maintenance().expect("it refreshes").refresh(block, &mut bench.flash) {
            count += 1;
            assert_eq!(bench.flash.array().erases(block), erases + 1);
            let erased = (OpKind::Erase, Cause::Refresh);
            assert_eq!(bench.operations().iter().filter(|it| **it == erased).count(), 1);
        }
        bench.ftl.audit(&bench.flash).expect("consistent metadata");
    }
    count
}

#[test]
fn blocks_of_data_and_of_the_map_are_refreshed() {
    let mut bench = Bench::new(&settings(1), 300);
    let mut of_map = 0;
    for n in 0..600 {
        bench.write(n * 131 % 300);
        of_map += refresh_all(&mut bench, true);
    }
    let of_data = refresh_all(&mut bench, false);
    assert!(of_data > 10 && of_map > 10, "{of_data} blocks of data and {of_map} of the map");
    assert!((0..300).all(|page| bench.ftl.holds(Lpn(page), &bench.flash)));
}
