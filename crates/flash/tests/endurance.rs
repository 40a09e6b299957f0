//! How long devices go on while their blocks wear out, and that they keep what was written.

use hybridsim_engine::Stream;
use hybridsim_flash::array::{Array, ProgramOrder};
use hybridsim_flash::defaults;
use hybridsim_flash::ftl::{self, FtlEntry, FtlError, FtlInput, Hint};
use hybridsim_flash::geometry::{Geometry, Lpn, Shape};
use hybridsim_flash::ops::FlashOps;

const BLOCKS: u32 = 48;
const PAGES: u32 = 8;
/// Blocks' worth of pages that are offered.
const OFFERED: u32 = 32;

/// Writes pages at random until the device gives up. Says how many blocks are not retired then.
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
    let geometry = Geometry::new(&shape).expect("a sound shape");
    let settings = defaults::settings(entry.description.params, &registry);
    let input = FtlInput {
        settings: &settings,
        geometry: &geometry,
        exported_pages: OFFERED * PAGES,
        registry: &registry,
        seed: 1,
        path: "endurance",
    };
    let mut layer = (entry.build)(&input).expect("defaults fit");
    let mut flash = FlashOps::new(Array::new(geometry, order, 30));
    layer.prepare(&mut flash).expect("fresh flash");
    let mut stream = Stream::new(1, "endurance");
    let fill = 0..OFFERED * PAGES;
    let overwrite = (0..2_000_000).map(|_| stream.below(u64::from(OFFERED * PAGES)) as u32);
    let error = fill.chain(overwrite).find_map(|page| {
        flash.clear();
        layer.write(Lpn(page), Hint { request_pages: 1 }, &mut flash).err()
    });
    let name = entry.description.name;
    assert!(matches!(error, Some(FtlError::WornOut(_))), "{name} on {order:?}: {error:?}");
    assert_eq!(flash.violation(), None, "{name} on {order:?}");
    flash.array().audit().expect("sound cells");
    layer.audit(&flash).expect("sound books");
    for page in (0..OFFERED * PAGES).map(Lpn) {
        flash.clear();
        layer.read(page, &mut flash);
        let read = flash.list().last().expect("what was written can be read").page;
        assert_eq!(flash.array().owner(hybridsim_flash::geometry::Ppn(read)), page, "{name}");
    }
    BLOCKS - flash.array().retired_blocks()
}

/// Blocks that are not retired when a device of 48 gives up, at most; 32 of them hold its data.
/// A layer that cannot move a block's data elsewhere ends with the first block that wears out.
const LEFT: [(&str, u32); 11] = [
    ("page", 36),
    ("dftl", 44),
    ("block", 32),
    ("in-place", 48),
    ("log-block", 33),
    ("bast", 33),
    ("anand", 32),
    ("fmax", 32),
    ("fast", 34),
    ("last", 34),
    ("superblock", 33),
];

#[test]
fn devices_go_on_until_few_blocks_are_left_beside_the_data() {
    for entry in ftl::ENTRIES.iter().filter(|entry| entry.description.name != "raw") {
        let name = entry.description.name;
        let most = LEFT.iter().find(|(layer, _)| *layer == name).expect("every layer is here").1;
        for order in [ProgramOrder::Sequential, ProgramOrder::Ascending, ProgramOrder::Any] {
            let left = usable_at_the_end(entry, order);
            println!("{name} on {order:?} pages: {left} left");
            assert!(left <= most, "{name} on {order:?} pages gave up with {left} blocks left");
        }
    }
}
