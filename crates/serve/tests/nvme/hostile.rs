//! Hosts that violate the protocol, flood the server or do not take replies: one closed connection,
//! bounded memory, and everybody else is served.

use super::client::{Command, Queue, SUBSYSTEM};
use super::server::{BLOCK, Server, Setup};
use super::{SSD, bytes};
use std::io::Write;
use std::time::{Duration, Instant};

/// A well-behaved host is served.
fn serves(server: &Server) {
    let (_admin, controller) = Queue::admin(server.address, 0);
    let mut queue = Queue::io(server.address, (1, controller), 0);
    assert_eq!(queue.write(1, 5, &bytes(1, BLOCK)), 0);
    assert_eq!(queue.read(1, 5, 1).ok(), bytes(1, BLOCK));
}

/// A host that has a queue for I/O.
fn host(server: &Server, digests: u8) -> (Queue, Queue) {
    let (admin, controller) = Queue::admin(server.address, digests);
    let queue = Queue::io(server.address, (1, controller), digests);
    (admin, queue)
}

#[test]
fn bytes_that_are_no_pdus_end_the_connection() {
    let server = Server::start(SSD);
    let init = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut request = vec![0, 0, 128, 0, 128, 0, 0, 0];
        request.resize(128, 0);
        change(&mut request);
        request
    };
    let openings: [Vec<u8>; 8] = [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xFF; 4096],
        vec![0; 4096],
        init(&|it| it[4] = 127),
        init(&|it| it[7] = 0xFF),
        init(&|it| it[8] = 1),
        init(&|it| it[10] = 99),
        init(&|it| it[11] = 0xF0),
    ];
    for opening in openings {
        let mut queue = Queue::silent(server.address);
        drop(queue.stream.write_all(&opening));
        assert!(queue.is_closed(), "{:?}", &opening[..12]);
    }
    // PDUs with impossible headers, after the handshake.
    for (at, value) in [(0, 5), (0, 1), (0, 99), (1, 3), (2, 71), (4, 0), (7, 0xFF), (3, 9)] {
        let mut queue = Queue::initialize(server.address, 0);
        let mut pdu = vec![4, 0, 72, 0, 72, 0, 0, 0];
        pdu[at] = value;
        pdu.resize(72, 0);
        drop(queue.stream.write_all(&pdu));
        if at == 3 {
            // Without data their offset has no meaning.
            assert_eq!(queue.completion(None).map(|it| it.status), Some(2));
        } else {
            assert!(queue.is_closed(), "byte {at} is {value}");
        }
    }
    serves(&server);
    assert!(server.stop().served.dropped_connections >= 15);
}

#[test]
fn random_bytes_of_any_length_neither_stop_nor_fill_the_server() {
    let server = Server::start(SSD);
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..200 {
        let (_admin, mut queue) = host(&server, (round % 4) as u8);
        for _ in 0..random() % 8 {
            // Commands whose fields are anything, and then a PDU that is.
            let mut command = Command::new(random() as u8, random() as u32 % 3);
            for dword in 10..16 {
                command = command.dword(dword, (random() >> (random() % 64)) as u32);
            }
            let data = bytes(1, (random() as usize % 8192) & !3);
            let data = Some(&data[..]).filter(|it| !it.is_empty() && random() % 2 == 0);
            queue.send(command, data, random() as usize % (2 << 20));
        }
        let garbage: Vec<u8> = (0..random() % 300).map(|_| random() as u8).collect();
        drop(queue.stream.write_all(&garbage));
        queue.stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a socket");
        while queue.receive().is_some() {}
    }
    serves(&server);
    server.stop();
}

#[test]
fn damaged_digests_fail_a_command_or_end_the_connection() {
    let server = Server::start(SSD);
    let (_admin, mut queue) = host(&server, 2);
    // The data of a command: it fails, and the connection goes on.
    let mut pdu = vec![4, 2, 72, 72, 0, 0, 0, 0, 1, 1 << 6, 9, 0, 1, 0, 0, 0];
    pdu.resize(72, 0);
    pdu[8 + 32..8 + 36].copy_from_slice(&(BLOCK as u32).to_le_bytes());
    pdu[8 + 39] = 1;
    pdu[4..8].copy_from_slice(&(72 + BLOCK as u32 + 4).to_le_bytes());
    pdu.extend(bytes(1, BLOCK + 4));
    queue.stream.write_all(&pdu).expect("a socket");
    let done = queue.completion(None).expect("a completion");
    assert_eq!((done.id, done.status), (9, 0x22), "transient transport error");
    assert_eq!(queue.read(1, 0, 1).status, 0);
    // A header: nothing of it can be trusted.
    let (_admin, mut queue) = host(&server, 1);
    let mut pdu = vec![4, 1, 72, 0, 76, 0, 0, 0];
    pdu.resize(76, 0);
    queue.stream.write_all(&pdu).expect("a socket");
    assert!(queue.is_closed());
    serves(&server);
    server.stop();
}

#[test]
fn data_that_were_not_asked_for_end_the_connection() {
    let server = Server::start(SSD);
    let data = bytes(1, 16 * BLOCK);
    for case in 0..5 {
        let (_admin, mut queue) = host(&server, 0);
        queue.send(Command::range(1, 1, 0, 16), Some(&data), 0);
        let ready = queue.receive().expect("it is ready for data");
        assert_eq!(ready.kind, 9);
        let tags = &ready.header[8..12];
        match case {
            0 => queue.host_data(&[tags[0], tags[1], 77, 77], 0, &data[..BLOCK]),
            1 => queue.host_data(&[tags[0] + 1, tags[1], tags[2], tags[3]], 0, &data[..BLOCK]),
            2 => queue.host_data(tags, BLOCK, &data[..BLOCK]),
            3 => queue.host_data(tags, 0, &bytes(1, 17 * BLOCK)),
            _ => queue.host_data(tags, 0, &bytes(1, 300 << 10)),
        }
        assert!(queue.is_closed(), "case {case}");
    }
    serves(&server);
    server.stop();
}

#[test]
fn more_commands_than_the_queue_has_entries_end_the_connection() {
    let server = Server::start(SSD);
    let (_admin, mut queue) = host(&server, 0);
    // Data never arrive, so the commands stay.
    for _ in 0..128 {
        queue.send(Command::range(1, 1, 0, 16), Some(&bytes(1, 16 * BLOCK)), 0);
    }
    let one_more = Command::range(1, 1, 0, 16);
    queue.send(one_more, Some(&bytes(1, 16 * BLOCK)), 0);
    let mut ready = 0;
    while let Some(pdu) = queue.receive() {
        ready += usize::from(pdu.kind == 9);
    }
    assert!(ready <= 128, "{ready}");
    serves(&server);
    server.stop();
}

/// Memory of this process in bytes, where `/proc` says so.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|it| it.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

#[test]
fn hosts_that_take_no_replies_do_not_fill_the_memory() {
    let buffers = Some(8 << 20);
    let server = Server::with(Setup { system: SSD.to_owned(), buffers, ..Setup::default() });
    let before = resident();
    let mut hosts = Vec::new();
    for _ in 0..8 {
        let (admin, mut queue) = host(&server, 0);
        for _ in 0..100 {
            queue.send(Command::range(2, 1, 0, 256), None, 1 << 20);
        }
        hosts.push((admin, queue));
    }
    std::thread::sleep(Duration::from_millis(500));
    // Administration does not wait for memory that others keep.
    let (mut admin, _) = Queue::admin(server.address, 0);
    assert_eq!(admin.log(2, 0, 512).status, 0);
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{} MiB", grown >> 20);
    // One that takes its replies again gets all of them, once the others have left.
    hosts.truncate(1);
    for _ in 0..100 {
        let done = hosts[0].1.completion(None);
        assert_eq!(done.map(|it| it.ok().len()), Some(1 << 20));
    }
    serves(&server);
    server.stop();
}

#[test]
fn a_host_that_falls_silent_loses_its_controller() {
    let server = Server::start(SSD);
    let mut silent = Queue::initialize(server.address, 0);
    let (status, controller) = silent.connect(SUBSYSTEM, (0, 31, 0xFFFF), 1000);
    assert_eq!(status, 0);
    silent.enable();
    let mut queue = Queue::io(server.address, (1, controller), 0);
    // Commands of any queue keep it alive.
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(1500) {
        assert_eq!(queue.read(1, 0, 1).status, 0);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(silent.is_closed() && queue.is_closed());
    assert!(began.elapsed() < Duration::from_secs(10));
    serves(&server);
    server.stop();
}

#[test]
fn connections_come_and_go_and_too_many_are_refused() {
    let server = Server::start(SSD);
    for round in 0..100u8 {
        let mut queue = Queue::silent(server.address);
        drop(queue.stream.write_all(&vec![0; usize::from(round)]));
    }
    // A controller at most for each connection, and 64 connections.
    let open: Vec<_> = (0..80).map(|_| Queue::silent(server.address)).collect();
    std::thread::sleep(Duration::from_millis(500));
    drop(open);
    std::thread::sleep(Duration::from_millis(500));
    serves(&server);
    assert!(server.stop().served.refused_connections > 0);
}
