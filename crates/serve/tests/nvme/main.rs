//! NVMe over TCP: the protocol, zones and placement, clocks and failures, and hostile hosts. The
//! host is of these tests; scripts/nvme_guest.sh uses Linux.

#![cfg(unix)]

mod client;
mod failures;
mod hostile;
mod nvmet;
mod nvmet_fields;
mod placement;
mod server;
mod zones;

use client::{Command, DISCOVERY, Queue, SUBSYSTEM, u32_at, u64_at};
use server::{BLOCK, Server, Setup};

pub const SSD: &str = "[component.ssd]\nkind = \"ssd\"\nchannels = 2\ndies_per_channel = 2\n\
    blocks_per_plane = 24\npages_per_block = 64\nover_provisioning = 0.5\nread_time = \"25us\"\n\
    program_time = \"200us\"\nerase_time = \"1.5ms\"\nchannel_rate = \"100MB/s\"\n\
    program_order = \"any\"\n";

pub fn bytes(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed).collect()
}

#[test]
fn a_discovery_controller_names_the_subsystem_and_its_address() {
    let server = Server::start(SSD);
    let mut queue = Queue::initialize(server.address, 0);
    assert_eq!(queue.connect(DISCOVERY, (0, 31, 0xFFFF), 0).0, 0);
    queue.enable();
    let controller = queue.identify(1, 0, 0).ok();
    assert_eq!(controller[111], 2, "a discovery controller");
    let page = queue.log(0x70, 0, 2048).ok();
    assert_eq!((u64_at(&page, 8), page[1024], page[1026]), (1, 3, 2));
    let text = |at: usize, length: usize| {
        let text = String::from_utf8_lossy(&page[1024 + at..1024 + at + length]);
        text.trim_end_matches([' ', '\0']).to_owned()
    };
    assert_eq!(text(256, 256), SUBSYSTEM);
    assert_eq!(text(512, 256), "127.0.0.1");
    assert_eq!(text(32, 32), server.address.port().to_string());
    assert_eq!(queue.log(2, 0, 512).status, 0x109, "no health of a discovery controller");
    assert_eq!(queue.identify(2, 0, 0).status, 2);
    server.stop();
}

#[test]
fn a_controller_is_described() {
    let exports = vec!["a=4MiB".to_owned(), "b".to_owned()];
    let server = Server::with(Setup { system: SSD.to_owned(), exports, ..Setup::default() });
    let (mut queue, number) = Queue::admin(server.address, 0);
    assert_eq!(queue.property(8), 0x2_0100, "version 2.1");
    let capabilities = queue.property(0);
    assert!(capabilities & 0xFFFF >= 63 && capabilities >> 37 & 0x41 == 0x41, "{capabilities:x}");
    let timeouts = (capabilities >> 59 & 3, queue.property(0x68));
    assert_eq!(timeouts, (1, capabilities >> 24 & 0xFF), "ready with its media");
    let controller = queue.identify(1, 0, 0).ok();
    assert_eq!((controller[77], u32_at(&controller, 516)), (8, 2));
    assert_eq!(u32_at(&controller, 78) & 0xFFFF, u32::from(number));
    assert_eq!(&controller[768..768 + SUBSYSTEM.len()], SUBSYSTEM.as_bytes());
    let list = queue.identify(2, 0, 0).ok();
    assert_eq!([0, 4, 8].map(|at| u32_at(&list, at)), [1, 2, 0]);
    assert_eq!(u32_at(&queue.identify(2, 1, 0).ok(), 0), 2);
    let first = queue.identify(0, 1, 0).ok();
    assert_eq!((u64_at(&first, 0), first[130]), (1024, 12), "blocks of 4 KiB");
    let second = queue.identify(0, 2, 0).ok();
    assert_ne!(first[104..120], second[104..120], "identifiers differ");
    assert_eq!(queue.identify(0, 3, 0).status, 0x0B);
    assert_eq!(queue.identify(0x55, 1, 0).status, 2);
    let descriptors = queue.identify(3, 1, 0).ok();
    assert_eq!((descriptors[0], &descriptors[4..20]), (2, &first[104..120]));
    assert_eq!((descriptors[20], descriptors[24]), (4, 0));
    assert_eq!(u64_at(&queue.identify(0x1C | 0xFFFF << 16, 0, 0).ok(), 0), 1, "one command set");
    assert!(queue.identify(5, 1, 0).ok().iter().all(|byte| *byte == 0));
    assert_eq!(queue.identify(5, 1, 1).status, 2, "no key value namespaces");
    server.stop();
}

#[test]
fn features_events_and_the_error_log() {
    let server = Server::start(SSD);
    let (mut queue, _) = Queue::admin(server.address, 0);
    let set = |feature: u32, value: u32| Command::new(9, 0).dword(10, feature).dword(11, value);
    let get = |feature: u32| Command::new(0xA, 0).dword(10, feature);
    let granted = queue.call(set(7, 3 << 16 | 2), None, 0);
    assert_eq!((granted.status, granted.result), (0, 3 << 16 | 2));
    assert_eq!(queue.call(set(7, 0xFFFF_FFFE), None, 0).status, 2);
    assert_eq!(queue.call(set(4, 300), None, 0).status, 0);
    assert_eq!(queue.call(get(4), None, 0).result, 300);
    assert_eq!(queue.call(get(4 | 1 << 8), None, 0).result, 343, "the default");
    assert_eq!(queue.call(set(6, 0), None, 0).status, 0x10E, "the cache is always on");
    assert_eq!(queue.call(set(4 | 1 << 31, 300), None, 0).status, 0x10D);
    assert_eq!(queue.call(get(0x55), None, 0).status, 2);
    assert_eq!(queue.call(Command::new(0x18, 0), None, 0).status, 0, "keep alive");
    // Requests for events wait; one too many fails, and one is aborted.
    let waiting: Vec<u16> = (0..4).map(|_| queue.send(Command::new(0xC, 0), None, 0)).collect();
    assert_eq!(queue.call(Command::new(0xC, 0), None, 0).status, 0x105);
    let abort = queue.send(Command::new(8, 0).dword(10, u32::from(waiting[2]) << 16), None, 0);
    let mut both = [0, 0].map(|_| queue.completion(None).expect("two"));
    both.sort_by_key(|it| it.id);
    assert_eq!((both[0].id, both[0].status), (waiting[2], 7));
    assert_eq!((both[1].id, both[1].status, both[1].result), (abort, 0, 0));
    let again = queue.call(Command::new(8, 0).dword(10, 0xABCD << 16), None, 0);
    assert_eq!((again.status, again.result), (0, 1), "there is none");
    let log = queue.log(1, 0, 128).ok();
    assert_eq!(u64_at(&log, 0), u64_at(&log, 64) + 1, "the newest first");
    assert_eq!(u32_at(&log, 12) >> 1 & 0x7FF, 7);
    assert_eq!(queue.log(0x33, 0, 512).status, 0x109);
    server.stop();
}

/// The commands of the NVM command set, with and without digests.
#[test]
fn data_are_written_read_compared_copied_and_deallocated() {
    let server = Server::start(SSD);
    for digests in 0..4 {
        let (mut admin, controller) = Queue::admin(server.address, digests);
        let mut queue = Queue::io(server.address, (1, controller), digests);
        let data = bytes(digests, 64 * BLOCK);
        // In the capsule, and in PDUs of their own.
        assert_eq!(queue.write(1, 10, &data[..BLOCK]), 0);
        assert_eq!(queue.read(1, 10, 1).ok(), data[..BLOCK]);
        assert_eq!(queue.write(1, 0, &data), 0);
        assert_eq!(queue.read(1, 0, 64).ok(), data);
        assert_eq!(queue.call(Command::new(0, 1), None, 0).status, 0, "flush");
        assert_eq!(queue.call(Command::new(0, u32::MAX), None, 0).status, 0);
        let compare = |lba| Command::range(5, 1, lba, 2);
        assert_eq!(queue.call(compare(4), Some(&data[4 * BLOCK..6 * BLOCK]), 0).status, 0);
        assert_eq!(queue.call(compare(5), Some(&data[4 * BLOCK..6 * BLOCK]), 0).status, 0x285);
        assert_eq!(queue.call(Command::range(0xC, 1, 0, 64), None, 0).status, 0, "verify");
        // Copies two ranges one after the other.
        let mut ranges = vec![0; 64];
        (ranges[8], ranges[16], ranges[32 + 8], ranges[32 + 16]) = (3, 1, 9, 0);
        let copy = Command::new(0x19, 1).dword(10, 200).dword(12, 1);
        assert_eq!(queue.call(copy, Some(&ranges), 0).status, 0);
        let copied = queue.read(1, 200, 3).ok();
        assert_eq!(copied[..2 * BLOCK], data[3 * BLOCK..5 * BLOCK]);
        assert_eq!(copied[2 * BLOCK..], data[9 * BLOCK..10 * BLOCK]);
        assert_eq!(queue.call(Command::range(8, 1, 2, 2), None, 0).status, 0, "write zeroes");
        let mut range = vec![0; 16];
        (range[4], range[8]) = (1, 20);
        let deallocate = Command::new(9, 1).dword(11, 4);
        assert_eq!(queue.call(deallocate, Some(&range), 0).status, 0);
        let mut expected = data.clone();
        expected[2 * BLOCK..4 * BLOCK].fill(0);
        expected[20 * BLOCK..21 * BLOCK].fill(0);
        assert_eq!(queue.read(1, 0, 64).ok(), expected);
        // Many at a time, in any order.
        let sent: Vec<u16> =
            (0..100).map(|at| queue.send(Command::range(2, 1, at % 64, 1), None, BLOCK)).collect();
        let mut done: Vec<u16> =
            sent.iter().map(|_| queue.completion(None).expect("a completion").id).collect();
        done.sort_unstable();
        assert_eq!(done, sent);
        let health = admin.log(2, 0, 512).ok();
        assert!(u64_at(&health, 64) >= 100 && u64_at(&health, 48) >= 1);
        assert_eq!((health[0], health[3], health[5]), (0, 100, 0));
    }
    let end = server.stop();
    assert_eq!((end.served.connections, end.served.dropped_connections), (8, 0));
}

/// Linux takes two subsystems of one name, or namespaces of one identifier, for one.
#[test]
fn drives_of_different_names_have_different_identifiers() {
    let identify = |nqn: &str| {
        let own = Some(nqn.to_owned());
        let server = Server::with(Setup { system: SSD.to_owned(), nqn: own, ..Setup::default() });
        let mut queue = Queue::initialize(server.address, 0);
        assert_eq!(queue.connect(SUBSYSTEM, (0, 31, 0xFFFF), 0).0, 0x182);
        assert_eq!(queue.connect(nqn, (0, 31, 0xFFFF), 0).0, 0);
        queue.enable();
        let controller = queue.identify(1, 0, 0).ok();
        assert!(controller[768..].starts_with(nqn.as_bytes()));
        (controller[4..24].to_vec(), queue.identify(0, 1, 0).ok()[104..120].to_vec())
    };
    let (one, other) = (identify("nqn.2026-11.local:a"), identify("nqn.2026-11.local:b"));
    assert!(one.0 != other.0 && one.1 != other.1);
}

#[test]
fn wrong_commands_fail_with_the_statuses_of_the_specification() {
    let server = Server::start(SSD);
    let (mut admin, controller) = Queue::admin(server.address, 0);
    let mut queue = Queue::io(server.address, (1, controller), 0);
    let blocks = u64_at(&admin.identify(0, 1, 0).ok(), 0);
    let block = bytes(1, BLOCK);
    let mut stranger = Queue::initialize(server.address, 0);
    let wrong = stranger.connect("nqn.2014-08.org.example:other", (0, 31, 0xFFFF), 0);
    assert_eq!(wrong, (0x182, 256), "the field of the data that is wrong");
    let effects = admin.call(Command::new(2, u32::MAX).dword(10, 5 | 1023 << 16), None, 4096).ok();
    let supported = [2, 0x19, 0x1A].map(|opcode| u32_at(&effects, opcode * 4) & 1);
    assert_eq!(supported, [1, 0, 0], "no directives without placement");
    assert_eq!(queue.read(1, blocks, 1).status, 0x80);
    assert_eq!(queue.read(1, u64::MAX, 1).status, 0x80);
    assert_eq!(queue.write(1, blocks - 1, &bytes(1, 2 * BLOCK)), 0x80);
    assert_eq!(queue.read(2, 0, 1).status, 0x0B);
    assert_eq!(queue.call(Command::range(2, 1, 0, 2), None, BLOCK).status, 0x0F);
    assert_eq!(queue.call(Command::range(1, 1, 0, 2), Some(&block), 0).status, 0x0F);
    assert_eq!(queue.call(Command::range(2, 1, 0, 512), None, 2 << 20).status, 2, "too long");
    assert_eq!(queue.call(Command::new(0x7E, 1), None, 0).status, 1);
    assert_eq!(queue.call(Command::range(0x79, 1, 0, 1), None, 0).status, 1, "no zones");
    assert_eq!(queue.call(Command::new(0x12, 1).dword(10, 1), None, 64).status, 1, "no placement");
    // A second admin command set, a second connect, and properties of an I/O queue.
    assert_eq!(queue.connect(SUBSYSTEM, (1, 31, controller), 0).0, 0x0C);
    assert_eq!(queue.call(Command::new(0x7F, 4).dword(11, 8), None, 0).status, 1);
    let refused = |ids: (u16, u16, u16), subsystem: &str| {
        Queue::initialize(server.address, 0).connect(subsystem, ids, 0).0
    };
    assert_eq!(refused((1, 31, controller), SUBSYSTEM), 0x182, "the queue exists");
    assert_eq!(refused((99, 31, controller), SUBSYSTEM), 0x182, "too many queues");
    assert_eq!(refused((2, 500, controller), SUBSYSTEM), 0x182, "too many entries");
    assert_eq!(refused((2, 31, 999), SUBSYSTEM), 0x182, "no such controller");
    assert_eq!(refused((0, 31, 0xFFFF), "nqn.2026-11.local.other:drive"), 0x182);
    // A command before connect.
    let mut early = Queue::initialize(server.address, 0);
    assert_eq!(early.call(Command::new(0x18, 0), None, 0).status, 0x0C);
    // Disabling the controller deletes its queues.
    let disable = Command::new(0x7F, 0).dword(11, 0x14);
    assert_eq!(admin.call(disable, None, 0).status, 0);
    assert!(queue.is_closed());
    admin.enable();
    let mut queue = Queue::io(server.address, (1, controller), 0);
    assert_eq!(queue.read(1, 0, 1).status, 0);
    server.stop();
}

#[test]
fn namespaces_are_parts_of_the_device() {
    let exports = ["a=4MiB", "b=4MiB", "c"].map(str::to_owned).to_vec();
    let server = Server::with(Setup { system: SSD.to_owned(), exports, ..Setup::default() });
    let (_admin, controller) = Queue::admin(server.address, 0);
    let mut queue = Queue::io(server.address, (1, controller), 0);
    for nsid in 1..=3 {
        assert_eq!(queue.write(nsid, 1023, &bytes(nsid as u8, BLOCK)), 0);
    }
    for nsid in 1..=3 {
        assert_eq!(queue.read(nsid, 1023, 1).ok(), bytes(nsid as u8, BLOCK));
        assert_eq!(queue.read(nsid, 0, 1).ok(), vec![0; BLOCK]);
    }
    assert_eq!(queue.read(1, 1024, 1).status, 0x80);
    server.stop();
}
