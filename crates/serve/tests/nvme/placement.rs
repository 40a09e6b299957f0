//! Flexible data placement: what the log pages report of random writes.

use super::client::{Command, Queue, u32_at, u64_at};
use super::server::{BLOCK, Server};
use super::{SSD, bytes};
use hybridsim_engine::Stream;

/// Reclaim groups: one bit of an identifier.
const GROUPS: u64 = 2;
const HANDLES: u64 = 4;
const PAIRS: usize = (GROUPS * HANDLES) as usize;
/// Blocks of the namespace in a block of the flash.
const ERASE: u64 = 64;
/// Blocks of the namespace.
const SIZE: u64 = 6_000;

/// The identifier of a reclaim group and handle.
fn identifier(group: u64, handle: u64) -> u64 {
    (group << 15) | handle
}

/// Sectors left in the open unit of each handle in each reclaim group.
fn left(queue: &mut Queue) -> Vec<u64> {
    let bytes = 16 + 32 * PAIRS;
    let command = Command::new(0x12, 1).dword(10, 1).dword(11, bytes as u32 / 4 - 1);
    let page = queue.call(command, None, bytes).ok();
    for at in 0..PAIRS {
        let (handle, group) = (at as u64 / GROUPS, at as u64 % GROUPS);
        let listed = u32_at(&page, 16 + 32 * at);
        assert_eq!(u64::from(listed), identifier(group, handle) | (handle << 16));
    }
    (0..PAIRS).map(|at| u64_at(&page, 16 + 32 * at + 8)).collect()
}

/// Bytes written by hosts, programmed and erased.
fn statistics(admin: &mut Queue) -> [u64; 3] {
    let page = admin.log(0x22, 1, 64).ok();
    [0, 16, 32].map(|at| u64_at(&page, at))
}

/// The number of events of the host.
fn events(admin: &mut Queue) -> u32 {
    let command = Command::new(2, u32::MAX).dword(10, 0x23 | 1 << 8 | 15 << 16);
    u32_at(&admin.call(command.dword(11, 1 << 16), None, 64).ok(), 0)
}

#[test]
fn reports_of_placement_follow_random_writes() {
    for isolation in ["initially", "persistently"] {
        let ftl = format!(
            "[component.ssd.ftl]\nkind = \"page\"\nplacement = {{ kind = \"handles\", \
             handles = {HANDLES}, reclaim_groups = {GROUPS}, isolation = \"{isolation}\" }}\n"
        );
        let ssd = SSD.replace("over_provisioning = 0.5", "over_provisioning = 1.0");
        let server = Server::start(&format!("{ssd}{ftl}"));
        let (mut admin, controller) = Queue::admin(server.address, 0);
        let mut queue = Queue::io(server.address, (1, controller), 0);
        let configuration = admin.log(0x20, 1, 16 + 80).ok();
        assert_eq!((configuration[18], u32_at(&configuration, 20)), (1 << 7 | 1, 2));
        let unit = u64_at(&configuration, 32) / BLOCK as u64;
        assert_eq!(unit, 4 * ERASE, "four planes of each group");
        let mut stream = Stream::new(1, isolation);
        let (mut host, mut invalid, mut is_enabled) = (0, 0, false);
        let mut before = left(&mut queue);
        assert_eq!(before, vec![unit; PAIRS]);
        for number in 0..600 {
            if number == 20 {
                let kinds = Command::new(9, 1).dword(10, 0x1E).dword(11, 1 << 16).dword(12, 1);
                assert_eq!(admin.call(kinds, Some(&[3]), 0).status, 0);
                is_enabled = true;
            }
            let blocks = 1 + stream.below(64);
            let lba = stream.below(SIZE - blocks);
            let (group, handle) = (stream.below(GROUPS), stream.below(HANDLES));
            let (directive, identifier, place) = match stream.below(10) {
                0 => (0, stream.below(1 << 16), 0),
                1 => (2, identifier(group, HANDLES + stream.below((1 << 15) - HANDLES)), 0),
                _ => (2, identifier(group, handle), (handle * GROUPS + group) as usize),
            };
            let command = Command::range(1, 1, lba, blocks as u32)
                .dword(12, (blocks as u32 - 1) | (directive << 20))
                .dword(13, (identifier as u32) << 16);
            let data = bytes(number as u8, blocks as usize * BLOCK);
            assert_eq!(queue.call(command, Some(&data), 0).status, 0);
            let is_invalid = directive == 2 && identifier & 0x7FFF >= HANDLES;
            host += blocks * BLOCK as u64;
            invalid += u32::from(is_enabled && is_invalid);
            let after = left(&mut queue);
            for (at, (before, after)) in before.iter().zip(&after).enumerate() {
                assert!((1..=unit).contains(after), "{after} of {unit}");
                if at != place {
                    assert_eq!(before, after, "unit {at} was not written");
                } else {
                    let opened = after + blocks - before;
                    assert!(opened.is_multiple_of(ERASE), "{before}, {blocks}, {after}");
                }
            }
            before = after;
            let [written, programmed, erased] = statistics(&mut admin);
            assert_eq!(written, host);
            assert!(programmed >= host && erased <= programmed);
            assert!(erased.is_multiple_of(ERASE * BLOCK as u64));
            assert_eq!(events(&mut admin), invalid.min(63));
        }
        let [written, programmed, erased] = statistics(&mut admin);
        assert!(programmed > written && erased > 0, "it collects garbage");
        assert!(invalid > 30, "{invalid}");
        server.stop();
    }
}
