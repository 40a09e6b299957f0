//! How many blocks can wear out before a device fails, and that it keeps its data.

use hybridsim_engine::Stream;
use hybridsim_flash::array::{Array, ProgramOrder};
use hybridsim_flash::defaults;
use hybridsim_flash::ftl::{self, FtlEntry, FtlError, FtlInput, Hint};
use hybridsim_flash::geometry::{Geometry, Lpn, Shape};
use hybridsim_flash::ops::FlashOps;

const BLOCKS: u32 = 48;
const PAGES: u32 = 8;
/// Exported capacity in blocks.
const EXPORTED: u32 = 32;

/// Writes random pages until the device is worn out. Returns how many blocks are still usable.
fn usable_at_the_end(entry: &FtlEntry, order: ProgramOrder) -> u32 {
    let registry = defaults::registry();
    let shape = Shape {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: u64::from(BLOCKS / 2),
        pages_per_block: u64::from(PAGES),
        page_bytes: 2048,
        spare_bytes: 0,
    };
    let geometry = Geometry::new(&shape).expect("a valid shape");
    let settings = defaults::settings(entry.description.params, &registry);
    let input = FtlInput {
        settings: &settings,
        geometry: &geometry,
        exported_pages: EXPORTED * PAGES,
        registry: &registry,
        seed: 1,
        path: "endurance",
    };
    let mut ftl = (entry.build)(&input).expect("defaults fit");
    let slc_pages = ftl.properties().slc_blocks.map_or(0, |slc| slc.pages_per_block);
    let mut flash = FlashOps::new(Array::new(geometry, order, 30).with_slc_mode(slc_pages));
    if let Some(maintenance) = ftl.maintenance() {
        maintenance.prepare(&mut flash).expect("new flash");
    }
    let mut stream = Stream::new(1, "endurance");
    let fill = 0..EXPORTED * PAGES;
    let overwrite = (0..2_000_000).map(|_| stream.below(u64::from(EXPORTED * PAGES)) as u32);
    let error = fill.chain(overwrite).find_map(|page| {
        flash.clear();
        ftl.write(Lpn(page), Hint::of_pages(1), &mut flash).err()
    });
    let name = entry.description.name;
    assert!(matches!(error, Some(FtlError::WornOut(_))), "{name} on {order:?}: {error:?}");
    assert_eq!(flash.violation(), None, "{name} on {order:?}");
    flash.array().audit().expect("a consistent array");
    ftl.audit(&flash).expect("consistent metadata");
    for page in (0..EXPORTED * PAGES).map(Lpn) {
        flash.clear();
        ftl.read(page, &mut flash);
        let read = flash.list().last().expect("what was written can be read").page;
        assert_eq!(flash.array().owner(hybridsim_flash::geometry::Ppn(read)), page, "{name}");
    }
    BLOCKS - flash.array().retired_blocks()
}

/// Most blocks still usable when a device of 48 blocks is worn out; 32 of them hold its data. An
/// FTL that cannot move a block's data fails with the first block that wears out, which is all that
/// is required of an FTL not listed here.
const USABLE_MAX: [(&str, u32); 11] = [
    ("page", 36),
    ("slc-cache", 35),
    ("dftl", 44),
    ("block", 32),
    ("log-block", 33),
    ("bast", 33),
    ("anand", 32),
    ("fmax", 32),
    ("fast", 34),
    ("last", 34),
    ("superblock", 33),
];

#[test]
fn devices_work_until_few_blocks_are_left_besides_the_data() {
    for entry in ftl::ENTRIES.iter().filter(|entry| entry.description.name != "raw") {
        let name = entry.description.name;
        let listed = USABLE_MAX.iter().find(|(listed, _)| *listed == name);
        let most = listed.map_or(BLOCKS, |(_, most)| *most);
        for order in [ProgramOrder::Sequential, ProgramOrder::Ascending, ProgramOrder::Any] {
            let left = usable_at_the_end(entry, order);
            println!("{name} on {order:?} pages: {left} left");
            assert!(left <= most, "{name} on {order:?} pages failed with {left} usable blocks");
        }
    }
}
