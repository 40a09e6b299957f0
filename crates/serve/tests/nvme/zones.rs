//! Zoned namespaces, and flexible data placement.

use super::client::{Command, Queue, u32_at, u64_at};
use super::server::{BLOCK, Server, Setup};
use super::{SSD, bytes};

/// Eight zones of 1 MiB, of which 1000 KiB can be written.
pub const ZNS: &str = "[component.ssd]\nkind = \"zns-ssd\"\nchannels = 2\ndies_per_channel = 2\n\
    blocks_per_plane = 24\npages_per_block = 32\nzone_capacity = \"1000KiB\"\n\
    zone_size = \"1MiB\"\nzones = 8\nmax_open_zones = 3\nmax_active_zones = 5\n\
    read_time = \"25us\"\nprogram_time = \"200us\"\nerase_time = \"1.5ms\"\n\
    channel_rate = \"100MB/s\"\nreset_time = \"1ms\"\n";
const ZONE: u64 = 256;
const CAPACITY: u64 = 250;

const CLOSE: u32 = 1;
const FINISH: u32 = 2;
const OPEN: u32 = 3;
const RESET: u32 = 4;
const COMMIT: u32 = 0x11;
/// Of an open: with a random write area.
const ZRWA: u32 = 1 << 9;
const ALL: u32 = 1 << 8;

fn manage(queue: &mut Queue, zone: u64, action: u32) -> u16 {
    queue.call(Command::range(0x79, 1, zone * ZONE, 1).dword(13, action), None, 0).status
}

fn append(zone: u64, blocks: u32) -> Command {
    Command::range(0x7D, 1, zone * ZONE, blocks)
}

/// The zones from the one named on: (state, write pointer).
fn report(queue: &mut Queue, zone: u64, options: u32) -> (u64, Vec<(u8, u64)>) {
    let command = Command::range(0x7A, 1, zone * ZONE, 1).dword(12, 64 * 9 / 4 - 1);
    let page = queue.call(command.dword(13, options), None, 64 * 9).ok();
    let one = |it: &[u8]| (it[1] >> 4, u64_at(it, 24));
    let listed = page[64..].chunks(64).filter(|it| it[0] == 2).map(one).collect();
    (u64_at(&page, 0), listed)
}

fn zoned() -> (Server, Queue, Queue) {
    let server = Server::start(ZNS);
    let (admin, controller) = Queue::admin(server.address, 0);
    let queue = Queue::io(server.address, (1, controller), 0);
    (server, admin, queue)
}

#[test]
fn a_random_write_area_takes_writes_in_any_order() {
    const INVALID_OPERATION: u16 = 0x1B6;
    let server = Server::start(&format!("{ZNS}zrwa_size = \"64KiB\"\nzrwa_zones = 1\n"));
    let (mut admin, controller) = Queue::admin(server.address, 0);
    let mut queue = Queue::io(server.address, (1, controller), 0);
    let described = admin.identify(5, 1, 2).ok();
    assert_eq!((described[2], u32_at(&described, 44), described[52]), (0b11, 1, 1));
    assert_eq!(u32_at(&described, 48), 1 | 16 << 16, "steps of one block, areas of sixteen");
    assert_eq!(manage(&mut queue, 0, OPEN | ZRWA), 0);
    assert_eq!(manage(&mut queue, 1, OPEN | ZRWA), 0x1B7, "there is one area");
    assert_eq!(manage(&mut queue, 0, OPEN | ZRWA), INVALID_OPERATION, "it is open");
    let write = |queue: &mut Queue, at: u64, blocks: u32, fill: u8| {
        let data = vec![fill; blocks as usize * BLOCK];
        queue.call(Command::range(1, 1, at, blocks), Some(&data), 0).status
    };
    assert_eq!(write(&mut queue, 8, 8, 1), 0, "beyond the write pointer");
    assert_eq!(write(&mut queue, 0, 9, 2), 0, "again in part");
    let attributes = |queue: &mut Queue| {
        let command = Command::range(0x7A, 1, 0, 1).dword(12, 64 * 2 / 4 - 1);
        let page = queue.call(command, None, 64 * 2).ok();
        (page[64 + 2], u64_at(&page, 64 + 24))
    };
    assert_eq!(attributes(&mut queue), (1 << 3, 0), "nothing is committed");
    assert_eq!(write(&mut queue, 17, 1, 3), 0, "it moves the area by two blocks");
    assert_eq!(attributes(&mut queue).1, 2);
    assert_eq!(write(&mut queue, 1, 1, 4), 0x1BC, "before the write pointer");
    assert_eq!(write(&mut queue, 34, 1, 4), 0x1BC, "beyond what moves the area");
    let commit = |queue: &mut Queue, last: u64| {
        queue.call(Command::range(0x79, 1, last, 1).dword(13, COMMIT), None, 0).status
    };
    assert_eq!(commit(&mut queue, 18), 2, "beyond the area");
    assert_eq!(commit(&mut queue, ZONE + 1), INVALID_OPERATION, "a zone without one");
    assert_eq!(commit(&mut queue, 15), 0);
    assert_eq!(attributes(&mut queue), (1 << 3, 16));
    assert_eq!(queue.call(append(0, 1), Some(&[0; BLOCK]), 0).status, INVALID_OPERATION);
    assert_eq!(manage(&mut queue, 0, FINISH), 0);
    assert_eq!(attributes(&mut queue).0, 0, "a full zone has no area");
    let read = queue.call(Command::range(2, 1, 0, 18), None, 18 * BLOCK).ok();
    let fills: Vec<u8> = read.chunks(BLOCK).map(|block| block[0]).collect();
    assert_eq!(fills, [[2; 9].as_slice(), &[1; 7], &[0, 3]].concat());
    server.stop();
}

#[test]
fn a_zoned_namespace_is_described() {
    let (server, mut admin, mut queue) = zoned();
    let namespace = admin.identify(0, 1, 0).ok();
    assert_eq!((u64_at(&namespace, 0), u64_at(&namespace, 8)), (8 * ZONE, 8 * CAPACITY));
    let zoned = admin.identify(5, 1, 2).ok();
    assert_eq!((u32_at(&zoned, 4), u32_at(&zoned, 8), u64_at(&zoned, 2816)), (4, 2, ZONE));
    assert_eq!(admin.identify(3, 1, 0).ok()[24], 2, "the zoned command set");
    assert_eq!(u64_at(&admin.identify(0x1C | 0xFFFF << 16, 0, 0).ok(), 0), 5, "NVM and zoned");
    assert_eq!(u32_at(&admin.identify(7, 0, 2).ok(), 0), 1);
    assert_eq!(u32_at(&admin.identify(7, 0, 0).ok(), 0), 0);
    let effects = Command::new(2, u32::MAX).dword(10, 5 | 1023 << 16).dword(14, 2 << 24);
    let effects = admin.call(effects, None, 4096).ok();
    assert_eq!(u32_at(&effects, 1024 + 0x7D * 4) & 1, 1, "append");
    let (count, zones) = report(&mut queue, 0, 0);
    assert_eq!((count, zones.len()), (8, 8));
    assert!(zones.iter().zip(0..).all(|(it, zone)| *it == (1, zone * ZONE)), "{zones:?}");
    server.stop();
}

#[test]
fn zones_are_written_in_order_and_reset() {
    let (server, _admin, mut queue) = zoned();
    let data = bytes(3, 4 * BLOCK);
    assert_eq!(queue.write(1, 0, &data), 0);
    assert_eq!(queue.write(1, 0, &data), 0x1BC, "not at the write pointer");
    assert_eq!(queue.write(1, 4, &data), 0);
    assert_eq!(queue.read(1, 0, 8).ok(), [&data[..], &data].concat());
    assert_eq!(queue.write(1, ZONE - 2, &data), 0x1B8, "over the boundary");
    assert_eq!(report(&mut queue, 0, 0).1[0], (2, 8));
    assert_eq!(manage(&mut queue, 0, CLOSE), 0);
    assert_eq!(manage(&mut queue, 1, CLOSE), 0x1BF, "an empty zone");
    assert_eq!(manage(&mut queue, 0, FINISH), 0);
    assert_eq!(report(&mut queue, 0, 5 << 8), (1, vec![(14, u64::MAX)]), "full zones");
    assert_eq!(queue.write(1, 8, &data), 0x1B9);
    assert_eq!(manage(&mut queue, 0, OPEN), 0x1BF);
    assert_eq!(manage(&mut queue, 0, RESET), 0);
    assert_eq!(queue.read(1, 0, 8).ok(), vec![0; 8 * BLOCK]);
    assert_eq!(report(&mut queue, 0, 0).1[0], (1, 0));
    // Three can be open, five active; those opened by writes are closed for others.
    for zone in 0..3 {
        assert_eq!(manage(&mut queue, zone, OPEN), 0);
    }
    assert_eq!(manage(&mut queue, 3, OPEN), 0x1BE, "too many open zones");
    assert_eq!(queue.write(1, 3 * ZONE, &data), 0x1BE);
    for zone in 0..3 {
        assert_eq!(queue.write(1, zone * ZONE, &data), 0);
        assert_eq!(manage(&mut queue, zone, CLOSE), 0);
    }
    for zone in 3..5 {
        assert_eq!(queue.write(1, zone * ZONE, &data), 0);
    }
    assert_eq!(queue.write(1, 5 * ZONE, &data), 0x1BD, "too many active zones");
    assert_eq!(report(&mut queue, 0, 4 << 8).0, 3, "closed zones");
    // From zone 1 on, as many as fit, and their number.
    let partial = Command::range(0x7A, 1, ZONE, 1).dword(12, 64 * 3 / 4 - 1).dword(13, 1 << 16);
    assert_eq!(u64_at(&queue.call(partial, None, 64 * 3).ok(), 0), 2);
    assert_eq!(manage(&mut queue, 0, RESET | ALL), 0);
    assert_eq!(report(&mut queue, 0, 1 << 8).0, 8, "empty zones");
    server.stop();
}

#[test]
fn appends_return_the_place_of_their_data_in_any_order() {
    let (server, _admin, mut queue) = zoned();
    let mut places = Vec::new();
    let sent: Vec<(u16, u8)> = (0..60u8)
        .map(|at| (queue.send(append(2, 2), Some(&bytes(at, 2 * BLOCK)), 0), at))
        .collect();
    for _ in &sent {
        let done = queue.completion(None).expect("a completion");
        assert_eq!(done.status, 0);
        let (_, seed) = sent.iter().find(|it| it.0 == done.id).expect("it was sent");
        places.push((done.result, *seed));
    }
    places.sort_unstable();
    let lbas: Vec<u64> = places.iter().map(|it| it.0).collect();
    let expected: Vec<u64> = (0..60).map(|at| 2 * ZONE + 2 * at).collect();
    assert_eq!(lbas, expected, "without holes");
    for (lba, seed) in places {
        assert_eq!(queue.read(1, lba, 2).ok(), bytes(seed, 2 * BLOCK));
    }
    let at = Command::range(0x7D, 1, 2 * ZONE + 1, 1);
    assert_eq!(queue.call(at, Some(&bytes(0, BLOCK)), 0).status, 2, "not the start of a zone");
    let long = bytes(9, 131 * BLOCK);
    assert_eq!(queue.call(append(2, 131), Some(&long), 0).status, 0x1B8);
    assert_eq!(queue.call(append(2, 130), Some(&long[..130 * BLOCK]), 0).status, 0);
    assert_eq!(queue.call(append(2, 1), Some(&bytes(0, BLOCK)), 0).status, 0x1B9, "full");
    // A reset waits for what is outstanding in its zone, and appends for the reset.
    let appended = queue.send(append(3, 1), Some(&bytes(1, BLOCK)), 0);
    let reset = Command::range(0x79, 1, 3 * ZONE, 1).dword(13, RESET);
    let reset = queue.send(reset, None, 0);
    let again = queue.send(append(3, 1), Some(&bytes(2, BLOCK)), 0);
    let done: Vec<(u16, u16, u64)> = (0..3)
        .map(|_| queue.completion(None).map(|it| (it.id, it.status, it.result)).expect("three"))
        .collect();
    assert_eq!(done, [(appended, 0, 3 * ZONE), (reset, 0, 0), (again, 0, 3 * ZONE)]);
    assert_eq!(queue.read(1, 3 * ZONE, 1).ok(), bytes(2, BLOCK));
    server.stop();
}

#[test]
fn exports_are_whole_zones() {
    let exports = ["a=2MiB", "b"].map(str::to_owned).to_vec();
    let server = Server::with(Setup { system: ZNS.to_owned(), exports, ..Setup::default() });
    let (mut admin, controller) = Queue::admin(server.address, 0);
    let mut queue = Queue::io(server.address, (1, controller), 0);
    assert_eq!(u64_at(&admin.identify(0, 1, 0).ok(), 0), 2 * ZONE);
    assert_eq!(queue.write(2, 0, &bytes(1, BLOCK)), 0);
    assert_eq!(queue.read(1, 0, 1).ok(), vec![0; BLOCK]);
    assert_eq!(report(&mut queue, 0, 0).0, 2);
    server.stop();
}

#[test]
fn placement_handles_are_described_and_counted() {
    let ftl = "[component.ssd.ftl]\nkind = \"page\"\nplacement = { kind = \"handles\", \
               handles = 4, isolation = \"persistently\" }\n";
    let ssd = SSD.replace("over_provisioning = 0.5", "over_provisioning = 1.0");
    let server = Server::start(&format!("{ssd}{ftl}"));
    let (mut admin, controller) = Queue::admin(server.address, 0);
    let mut queue = Queue::io(server.address, (1, controller), 0);
    let identified = admin.identify(1, 0, 0).ok();
    assert_eq!((u32_at(&identified, 96) >> 19 & 1, identified[256] >> 5 & 1), (1, 1));
    let configurations = admin.log(0x20, 1, 16 + 80).ok();
    assert_eq!((configurations[18], configurations[24]), (1 << 7, 4), "valid, four handles");
    let unit = u64_at(&configurations, 32);
    assert_eq!(unit, 8 * 64 * 4096, "a block of each plane");
    assert_eq!(configurations[80], 2, "persistently isolated");
    assert_eq!(admin.log(0x20, 7, 64).status, 2, "another endurance group");
    let get = Command::new(0xA, 0).dword(10, 0x1D).dword(11, 1);
    assert_eq!(admin.call(get, None, 0).result & 1, 1, "enabled");
    // Writes of handle 2, and one of a handle that does not exist, which is an event.
    let kinds = Command::new(9, 1).dword(10, 0x1E).dword(11, 1 << 16).dword(12, 1);
    assert_eq!(admin.call(kinds, Some(&[3]), 0).status, 0);
    let write = |lba, handle: u32| {
        Command::range(1, 1, lba, 16).dword(12, 15 | 2 << 20).dword(13, handle << 16)
    };
    let data = bytes(7, 16 * BLOCK);
    for lba in 0..4 {
        assert_eq!(queue.call(write(16 * lba, 2), Some(&data), 0).status, 0);
    }
    assert_eq!(queue.call(write(0, 9), Some(&data), 0).status, 0);
    let status = queue.call(Command::new(0x12, 1).dword(10, 1).dword(11, 35), None, 144).ok();
    let left = |handle: usize| u64_at(&status, 16 + 32 * handle + 8);
    assert_eq!((status[14], left(0), left(1), left(2)), (4, 496, 512, 448));
    let statistics = admin.log(0x22, 1, 64).ok();
    let (host, media) = (u64_at(&statistics, 0), u64_at(&statistics, 16));
    assert_eq!((host, media), (80 * 4096, 80 * 4096), "nothing was collected");
    let events = Command::new(2, u32::MAX).dword(10, 0x23 | 1 << 8 | 31 << 16);
    let events = admin.call(events.dword(11, 1 << 16), None, 128).ok();
    assert_eq!((u32_at(&events, 0), events[64], events[66]), (1, 3, 9));
    let directives = Command::new(0x1A, 1).dword(10, 1023).dword(11, 1);
    assert_eq!(admin.call(directives, None, 4096).ok()[..33], {
        let mut expected = [0; 33];
        (expected[0], expected[32]) = (5, 5);
        expected
    });
    server.stop();
}
