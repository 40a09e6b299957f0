//! `hybridsim serve`: the protocol, hostile clients, clocks, saved states, power failures, and real
//! programs, where they are installed.

#![cfg(unix)]

#[path = "../common/mod.rs"]
#[allow(dead_code)]
mod common;

mod client;
mod faults;
mod programs;
mod server;

use client::{Client, FUA, ONE};
use common::{SSD, ZNS, component};
use server::Server;
use std::io::Write;
use std::path::Path;
use std::process::Command;

const DISK: &str = "[component.disk]\npreset = \"seagate-cheetah-9lp\"\n";
const KIB: u32 = 1 << 10;

fn ssd() -> String {
    component("ssd", SSD)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn bytes(seed: u8, length: u32) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed).collect()
}

#[test]
fn a_refused_write_of_a_zone_leaves_its_data() {
    let folder = folder();
    let server = Server::start(folder.path(), &component("zns", ZNS), &[]);
    let mut client = Client::open(&server.socket, "", false);
    let data = bytes(1, 4096);
    assert_eq!(client.write(0, 0, &data), Ok(vec![]));
    assert!(client.write(0, 0, &bytes(2, 4096)).is_err(), "not at the write pointer");
    assert_eq!(client.read(0, 4096), Ok(data));
    server.stop();
}

#[test]
fn requests_are_served_in_both_forms_of_replies() {
    let folder = folder();
    let server = Server::start(folder.path(), &ssd(), &[]);
    for structured in [false, true] {
        let mut client = Client::open(&server.socket, "", structured);
        assert_eq!(client.read(0, 4096), Ok(vec![0; 4096]));
        let data = bytes(1, 64 * KIB);
        assert_eq!(client.write(0, 8192, &data), Ok(vec![]));
        assert_eq!(client.write(FUA, 8192 + 512, &data[..512]), Ok(vec![]));
        let mut expected = data.clone();
        expected.copy_within(..512, 512);
        assert_eq!(client.read(8192, 64 * KIB), Ok(expected.clone()));
        assert_eq!(client.flush(), Ok(vec![]));
        assert_eq!(client.zero(8192, 4096), Ok(vec![]));
        expected[..4096].fill(0);
        assert_eq!(client.read(8192, 64 * KIB), Ok(expected));
        if structured {
            let status = client.status(0, 0, 1 << 20);
            assert_eq!(status, [(12_288, 3), (60 * KIB, 0), ((1 << 20) - 72 * KIB, 3)]);
            assert_eq!(client.status(ONE, 0, 1 << 20), [(12_288, 3)]);
        }
        assert_eq!(client.trim(0, 1 << 20), Ok(vec![]));
        assert_eq!(client.read(8192, 64 * KIB), Ok(vec![0; 64 << 10]));
        // Wrong ranges and lengths are refused, and the connection continues.
        assert_eq!(client.read(1 << 50, 512), Err(22));
        assert_eq!(client.write(0, u64::MAX - 511, &data[..512]), Err(28));
        assert_eq!(client.read(100, 512), Err(22));
        assert_eq!(client.read(0, 33 << 20), Err(22));
        assert_eq!(client.read(0, 512), Ok(vec![0; 512]));
        // Two at a time may end in any order.
        let cookies = [client.send(0, 0, 0, 512, &[]), client.send(0, 0, 4096, 512, &[])];
        let mut answered = [client.receive(512).0, client.receive(512).0];
        answered.sort_unstable();
        assert_eq!(answered, cookies);
        client.send(0, 2, 0, 0, &[]);
        assert!(client.dropped());
    }
    let results = server.stop();
    assert_eq!(results["served"]["connections"], 2);
    assert_eq!(results["served"]["dropped_connections"], 0);
    assert_eq!(results["violations"], serde_json::json!([]));
}

#[test]
fn reads_that_must_not_be_fragmented_are_not() {
    const MAX: u32 = 32 << 20;
    let folder = folder();
    let device = "[component.d]\nkind = \"constant-device\"\ncapacity = \"64MiB\"\n";
    let server = Server::start(folder.path(), device, &[]);
    let mut client = Client::open(&server.socket, "", true);
    let data = bytes(5, 1 << 20);
    for at in 0..32u64 {
        assert_eq!(client.write(0, at << 20, &data), Ok(vec![]));
    }
    // The client expects one chunk in each reply.
    assert_eq!(client.read_whole(0, MAX).expect("one chunk"), data.repeat(32));
    assert_eq!(client.read_whole(0, MAX + 512), Err(75), "longer than one chunk may be");
    assert_eq!(client.read(0, MAX + 512), Err(22));
    // Whether the flag is offered depends on structured replies, which come first.
    let offered = |structured: bool| {
        let mut client = Client::greet(&server.socket);
        if structured {
            client.option(8, &[]);
        }
        let info = client.option(6, &Client::info("")).swap_remove(0).1;
        info[11] & 0x80 != 0
    };
    assert_eq!([offered(false), offered(true)], [false, true]);
}

#[test]
fn a_busy_connection_does_not_starve_others() {
    let folder = folder();
    let server = Server::start(folder.path(), &ssd(), &[]);
    let mut busy = Client::open(&server.socket, "", false);
    let mut other = Client::open(&server.socket, "", false);
    let mut reader = busy.stream.try_clone().expect("a socket");
    // Both ways are always full: 200,000 reads of 512 bytes.
    let sender = std::thread::spawn(move || {
        for at in 0..200_000u64 {
            busy.send(0, 0, at % 64 * 512, 512, &[]);
        }
        busy
    });
    let receiver = std::thread::spawn(move || {
        let mut reply = vec![0; 16 + 512];
        let mut count = 0;
        while count < 200_000 && std::io::Read::read_exact(&mut reader, &mut reply).is_ok() {
            count += 1;
        }
        count
    });
    let mut slowest = std::time::Duration::ZERO;
    let mut served = 0;
    while !receiver.is_finished() {
        let began = std::time::Instant::now();
        assert_eq!(other.write(0, 1 << 20, &[7; 512]), Ok(vec![]));
        (slowest, served) = (slowest.max(began.elapsed()), served + 1);
    }
    drop(sender.join());
    assert_eq!(receiver.join().ok(), Some(200_000));
    assert!(served > 50, "{served} requests while the other connection was busy");
    assert!(slowest < std::time::Duration::from_secs(2), "one request took {slowest:?}");
}

#[test]
fn a_flood_of_block_status_does_not_starve_others() {
    const FLOOD: usize = 1200;
    let folder = folder();
    let device = "[component.d]\nkind = \"constant-device\"\ncapacity = \"512MiB\"\n";
    let server = Server::start(folder.path(), device, &[]);
    let mut flood = Client::open(&server.socket, "", true);
    let mut other = Client::open(&server.socket, "", false);
    let data = bytes(1, 32 << 20);
    for at in 0..8u64 {
        assert_eq!(flood.write(0, at << 25, &data), Ok(vec![]));
    }
    for _ in 0..FLOOD {
        flood.send(0, 7, 0, 512 << 20, &[]);
    }
    let mut slowest = std::time::Duration::ZERO;
    for _ in 0..50 {
        let began = std::time::Instant::now();
        assert_eq!(other.write(0, 300 << 20, &[7; 512]), Ok(vec![]));
        slowest = slowest.max(began.elapsed());
    }
    assert!(slowest < std::time::Duration::from_millis(500), "one request took {slowest:?}");
    for _ in 0..FLOOD {
        let (_, reply) = flood.receive(0);
        assert_eq!(reply.map(|it| it[..4].to_vec()), Ok((256u32 << 20).to_be_bytes().to_vec()));
    }
    server.stop();
}

#[test]
fn exports_are_parts_of_the_device() {
    let folder = folder();
    let args = ["--export", "a=1MiB", "--export", "b", "--once"];
    let server = Server::start(folder.path(), &ssd(), &args);
    let mut client = Client::greet(&server.socket);
    let names: Vec<Vec<u8>> =
        client.option(3, &[]).into_iter().filter(|it| it.0 == 2).map(|it| it.1).collect();
    assert_eq!(names.iter().map(|it| it[4]).collect::<Vec<_>>(), [b'a', b'b']);
    // Encryption is refused with a word, an unknown export and an unknown option as well.
    let refused = client.option(5, &[]);
    assert_eq!(refused[0].0, (1 << 31) + 2);
    assert!(String::from_utf8_lossy(&refused[0].1).contains("encryption"));
    assert_eq!(client.option(7, &Client::info("c"))[0].0, (1 << 31) + 6);
    assert_eq!(client.option(77, b"data")[0].0, (1 << 31) + 1);
    assert_eq!(client.option(6, &Client::info("b")).len(), 3);
    assert_eq!(client.option(2, &[])[0].0, 1);
    assert!(client.dropped(), "aborted");
    let mut a = Client::open(&server.socket, "a", false);
    let mut b = Client::open(&server.socket, "b", true);
    assert_eq!(a.write(0, (1 << 20) - 512, &[1; 512]), Ok(vec![]));
    assert_eq!(b.write(0, 0, &[2; 512]), Ok(vec![]));
    assert_eq!(a.read((1 << 20) - 512, 512), Ok(vec![1; 512]));
    assert_eq!(a.read(1 << 20, 512), Err(22), "that is the other export");
    assert_eq!(b.read(0, 512), Ok(vec![2; 512]));
    drop((a, b));
    assert_eq!(server.wait()["served"]["connections"], 2);
}

#[test]
fn hostile_clients_are_dropped_and_nothing_is_lost() {
    let folder = folder();
    let server = Server::start(folder.path(), &ssd(), &["--connections", "8"]);
    let mut good = Client::open(&server.socket, "", true);
    let data = bytes(9, 128 * KIB);
    assert_eq!(good.write(0, 0, &data), Ok(vec![]));
    let open = || Client::open(&server.socket, "", false);
    let mut wrong_magic = open();
    wrong_magic.stream.write_all(&[7; 28]).expect("a socket");
    assert!(wrong_magic.dropped());
    let mut endless = open();
    endless.send(0, 1, 0, u32::MAX, &[]);
    assert!(endless.dropped(), "a write of 4 GiB");
    let mut half = open();
    half.send(0, 1, 0, 64 * KIB, &data[..1000]);
    drop(half);
    let mut option = Client::greet(&server.socket);
    option.stream.write_all(b"IHAVEOPT\0\0\0\x07\xff\xff\xff\xff").expect("a socket");
    assert!(option.dropped(), "an option of 4 GiB");
    let mut flags = std::os::unix::net::UnixStream::connect(&server.socket).expect("it listens");
    flags.write_all(&[0xff; 4]).expect("a socket");
    drop(flags);
    // Reads whose replies are not taken: memory is bounded, and the others go on.
    let mut deaf = open();
    for _ in 0..1000 {
        deaf.send(0, 0, 0, 64 * KIB, &[]);
    }
    assert_eq!(good.read(0, 128 * KIB), Ok(data.clone()));
    for _ in 0..2_000 {
        drop(std::os::unix::net::UnixStream::connect(&server.socket));
    }
    assert_eq!(good.read(0, 128 * KIB), Ok(data));
    assert_eq!(good.flush(), Ok(vec![]));
    let results = server.stop();
    assert!(results["served"]["dropped_connections"].as_u64() >= Some(3), "{results}");
}

#[test]
fn thousands_of_connections_take_little_memory() {
    const ADMITTED: usize = 300;
    let folder = folder();
    let args = ["--connections", "301"];
    let server = Server::start(folder.path(), &ssd(), &args);
    let mut good = Client::open(&server.socket, "", false);
    let mut open = Vec::new();
    for at in 0..3000u32 {
        if open.len() < ADMITTED {
            let mut client = Client::open(&server.socket, "", false);
            if at % 2 == 0 {
                // A sixty-fourth of what it says.
                client.send(0, 1, 0, 64 * KIB, &[1; 1024]);
            }
            open.push(client);
        } else if let Ok(mut stream) = std::os::unix::net::UnixStream::connect(&server.socket) {
            let greeted = std::io::Read::read(&mut stream, &mut [0; 18]);
            assert!(matches!(greeted, Ok(0) | Err(_)), "a connection beyond the limit is closed");
        }
    }
    assert_eq!(good.read(0, 4096), Ok(vec![0; 4096]));
    if let Some(bytes) = server.resident_bytes() {
        assert!(bytes < 64 << 20, "{bytes} bytes for {ADMITTED} connections");
    }
    drop(open);
    assert_eq!(good.write(0, 0, &[1; 512]), Ok(vec![]));
    let served = server.stop()["served"].clone();
    assert_eq!(served["connections"], 301);
    assert!(served["refused_connections"].as_u64() > Some(2000), "{served}");
}

#[test]
fn large_replies_are_released() {
    const CLIENTS: usize = 20;
    let folder = folder();
    let device = "[component.d]\nkind = \"constant-device\"\ncapacity = \"64MiB\"\n";
    let server = Server::start(folder.path(), device, &[]);
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(Client::open(&server.socket, "", clients.len() % 2 == 0));
    }
    let before = server.resident_bytes();
    for client in &mut clients {
        assert_eq!(client.read(0, 32 << 20).map(|it| it.len()), Ok(32 << 20));
    }
    if let (Some(before), Some(after)) = (before, server.resident_bytes()) {
        assert!(after < before + (64 << 20), "{before} bytes, then {after}");
    }
    server.stop();
}

#[test]
fn data_of_all_connections_keep_to_their_budget() {
    let folder = folder();
    let server = Server::start(folder.path(), DISK, &["--buffers", "64MiB"]);
    let data = bytes(3, 32 << 20);
    let Some(before) = server.resident_bytes() else { return };
    let write = || {
        let mut client = Client::open(&server.socket, "", false);
        (0..2).for_each(|_| assert_eq!(client.write(0, 0, &data), Ok(vec![])));
    };
    let most = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(write)).collect();
        let mut most = 0;
        while clients.iter().any(|client| !client.is_finished()) {
            most = server.resident_bytes().unwrap_or(0).max(most);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        most
    });
    // The buffers, each twice while a request is handed over, and what was written.
    assert!(most < before + (192 << 20), "{before} bytes, then {most}");
    let mut client = Client::open(&server.socket, "", false);
    assert_eq!(client.read(0, 4096), Ok(data[..4096].to_vec()));
    drop(client);
    server.stop();
}

#[test]
fn clients_are_served_and_the_state_is_kept_where_the_trace_cannot_be_written() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let folder = folder();
    let args = ["--state", "drive.state", "--once", "--record", "/dev/full"];
    let server = Server::start(folder.path(), &ssd(), &args);
    let mut client = Client::open(&server.socket, "", false);
    assert_eq!(client.write(0, 0, &[1; 512]), Ok(vec![]));
    // More than a buffer of the trace holds.
    for at in 0..4000u64 {
        assert_eq!(client.read(at % 7 * 4096 + 4096, 512), Ok(vec![0; 512]));
    }
    drop(client);
    let message = server.fail();
    assert!(message.contains("cannot write /dev/full"), "{message}");
    assert!(!message.contains("replay:"), "{message}");
    assert!(folder.path().join("drive.state").exists());
    let server = Server::start(folder.path(), &ssd(), &["--state", "drive.state"]);
    let mut client = Client::open(&server.socket, "", false);
    assert_eq!(client.read(0, 512), Ok(vec![1; 512]));
    server.stop();
}

fn replayed(folder: &Path, trace: &str) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_hybridsim"))
        .args(["run", "served.toml", "--json", "--no-cache", "--trace", trace])
        .current_dir(folder)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Some requests, one after the other and several at a time.
fn exercise(socket: &Path) {
    let mut client = Client::open(socket, "", true);
    for at in 0..60u64 {
        let offset = (at * 7919 % 500) * 4096;
        client
            .write(if at % 5 == 0 { FUA } else { 0 }, offset, &bytes(at as u8, 8192))
            .expect("ok");
        client.read(offset, 4096).expect("ok");
    }
    for at in 0..32u64 {
        client.send(0, 0, at * 8192, 4096, &[]);
    }
    (0..32).for_each(|_| drop(client.receive(4096)));
    client.zero(0, 5 << 20).expect("ok");
    client.trim(4096, 64 * KIB).expect("ok");
    client.flush().expect("ok");
}

#[test]
fn a_recorded_trace_replays_to_the_same_fingerprint() {
    for (system, args) in [
        (ssd(), &["--clock", "virtual"][..]),
        (ssd(), &["--clock", "paced"]),
        (DISK.to_owned(), &["--clock", "virtual", "--time-scale", "0"]),
    ] {
        let folder = folder();
        let args = [args, &["--record", "live.hst", "--once"]].concat();
        let server = Server::start(folder.path(), &system, &args);
        exercise(&server.socket);
        let served = server.wait();
        let replayed = replayed(folder.path(), "live.hst");
        for key in ["fingerprint", "requests", "latency_ns", "simulated_ns"] {
            assert_eq!(served[key], replayed[key], "{key} {args:?}");
        }
        assert!(served["requests"].as_u64() > Some(150));
    }
}

#[test]
fn without_the_clients_time_a_session_is_repeatable() {
    let fingerprint = || {
        let folder = folder();
        let server = Server::start(folder.path(), DISK, &["--time-scale", "0", "--once"]);
        let mut client = Client::open(&server.socket, "", false);
        for at in 0..100u64 {
            client.write(0, at * 7919 % 500 * 4096, &bytes(1, 4096)).expect("ok");
        }
        drop(client);
        server.wait()["fingerprint"].clone()
    };
    assert_eq!(fingerprint(), fingerprint());
}

#[test]
fn a_paced_clock_delays_replies_as_the_device_does() {
    let folder = folder();
    let device =
        "[component.d]\nkind = \"constant-device\"\ncapacity = \"64MiB\"\nlatency = \"20ms\"\n";
    let server = Server::start(folder.path(), device, &["--clock", "paced", "--once"]);
    let mut client = Client::open(&server.socket, "", false);
    let began = std::time::Instant::now();
    (0..10).for_each(|at| drop(client.read(at * 4096, 4096)));
    let took = began.elapsed().as_secs_f64();
    assert!(took >= 0.2, "{took} s for ten requests of 20 ms");
    drop(client);
    let results = server.wait();
    let late = &results["served"]["lateness_ns"];
    assert!(late["p50"].as_f64().is_some_and(|p50| p50 < 20e6), "{late}");
    assert_eq!(results["latency_ns"]["all"]["min"], 20_000_000);
}

#[test]
fn the_state_keeps_device_and_contents() {
    let folder = folder();
    let serve = |control: bool| {
        let mut args = vec!["--state", "drive.state", "--once"];
        if control {
            args.extend(["--control", "unix:control.sock"]);
        }
        Server::start(folder.path(), &ssd(), &args)
    };
    let data = bytes(3, 256 * KIB);
    for round in 0..4u8 {
        let server = serve(round == 1 || round == 2);
        let mut client = Client::open(&server.socket, "", false);
        if round > 0 {
            assert_eq!(client.read(1 << 20, 256 * KIB), Ok(data.clone()));
            assert_eq!(client.read(0, 4096), Ok(vec![round - 1; 4096]));
        }
        assert_eq!(client.write(0, 1 << 20, &data), Ok(vec![]));
        assert_eq!(client.write(0, 0, &[round; 4096]), Ok(vec![]));
        drop(client);
        let results = server.wait();
        // The flash of a new device would be unwritten.
        let ssd = &results["components"]["ssd"];
        let reads = if round > 0 { 65 } else { 0 };
        assert_eq!((&ssd["reads"], &ssd["unwritten_reads"]), (&reads.into(), &0.into()));
    }
    // Another system does not take it.
    std::fs::write(folder.path().join("served.toml"), DISK).expect("one's own folder");
    let refused = Command::new(env!("CARGO_BIN_EXE_hybridsim"))
        .args(["serve", "served.toml", "--nbd", "unix:x.sock", "--state", "drive.state"])
        .current_dir(folder.path())
        .output()
        .expect("the program starts");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("another system"));
}

#[test]
fn the_state_takes_precedence_over_that_of_the_scenario() {
    let folder = folder();
    let aged = folder.path().join("aged.state");
    let fill = "[workload]\ngenerator = { kind = \"uniform\", requests = 3000 }\n";
    std::fs::write(folder.path().join("aged.toml"), ssd() + fill).expect("one's own folder");
    let output = Command::new(env!("CARGO_BIN_EXE_hybridsim"))
        .args(["run", "aged.toml", "--no-cache", "--save-state", "aged.state"])
        .current_dir(folder.path())
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let args = ["--state", "drive.state", "--set", "run.state=\"aged.state\"", "--once"];
    let serve = || {
        let server = Server::start(folder.path(), &ssd(), &args);
        let mut client = Client::open(&server.socket, "", false);
        for at in 0..64u64 {
            client.read(at * 4096, 4096).expect("ok");
        }
        client.write(0, 0, &[1; 4096]).expect("ok");
        drop(client);
        server.wait()["components"]["ssd"]["reads"].as_u64()
    };
    let aged_reads = serve();
    assert!(aged_reads > Some(0), "the device starts as the run left it: {aged_reads:?}");
    // Were it used again, its absence would be an error.
    std::fs::remove_file(&aged).expect("one's own folder");
    assert!(serve() >= aged_reads, "the device goes on from its own state");
}

/// Writes, of which the first half is flushed, a power failure, and what is there afterwards: the
/// shares of flushed and of other writes that are.
fn after_a_power_failure(system: &str) -> ([usize; 2], serde_json::Value) {
    const WRITES: u64 = 40;
    let folder = folder();
    let args = ["--control", "unix:control.sock", "--time-scale", "0"];
    let server = Server::start(folder.path(), system, &args);
    let mut client = Client::open(&server.socket, "", false);
    let offset = |at: u64| at * 7919 % 800 * 8192;
    for at in 0..2 * WRITES {
        if at == WRITES {
            client.flush().expect("ok");
        }
        client.write(0, offset(at), &bytes(at as u8, 4096)).expect("ok");
    }
    assert!(server.control("{\"do\": \"status\"}")["time_ns"].as_u64() > Some(0));
    assert!(server.control("{\"do\": \"explode\"}")["error"].is_string());
    let reply = server.control("{\"do\": \"cut-power\"}");
    assert!(reply["time_ns"].is_u64(), "{reply}");
    assert!(client.dropped(), "the host lost power, too");
    let mut client = Client::open(&server.socket, "", true);
    let mut kept = [0; 2];
    for at in 0..2 * WRITES {
        let read = client.read(offset(at), 4096).expect("ok");
        kept[usize::from(at >= WRITES)] += usize::from(read == bytes(at as u8, 4096));
        assert_eq!(client.read(offset(at), 4096), Ok(read), "it stays what it is");
    }
    drop(client);
    (kept, server.stop())
}

#[test]
fn a_volatile_buffer_loses_what_was_not_flushed() {
    let (kept, results) = after_a_power_failure(DISK);
    assert_eq!(kept[0], 40, "what was flushed is there");
    assert!(kept[1] < 40, "some of the rest is lost");
    assert_eq!(results["served"]["power_cuts"], 1);
    assert!(results["served"]["lost_sectors"].as_u64() > Some(0), "{results}");
    let (kept, results) = after_a_power_failure(&format!("{DISK}write_cache = false\n"));
    assert_eq!(kept, [40, 40], "without a buffer, an acknowledged write is durable");
    assert_eq!(results["served"]["lost_sectors"], 0);
    let (kept, _) = after_a_power_failure(&ssd());
    assert_eq!(kept, [40, 40], "the buffer of the SSD survives");
}

#[test]
fn writes_in_flight_at_a_power_failure_are_there_or_not() {
    let folder = folder();
    let args = ["--control", "unix:control.sock", "--clock", "paced"];
    let system = format!("{DISK}write_cache = false\n");
    let server = Server::start(folder.path(), &system, &args);
    let mut client = Client::open(&server.socket, "", false);
    let offset = |at: u64| at * 7919 % 800 * 8192;
    let new = |at: u64| bytes(at as u8 | 1, 4096);
    let cookies: Vec<u64> =
        (0..32).map(|at| client.send(0, 1, offset(at), 4096, &new(at))).collect();
    let (done, reply) = client.receive(0);
    assert_eq!(reply, Ok(vec![]));
    let reply = server.control("{\"do\": \"cut-power\"}");
    assert!(reply["time_ns"].is_u64(), "{reply}");
    let mut client = Client::open(&server.socket, "", true);
    let mut kept = 0;
    for (at, cookie) in (0..32).zip(cookies) {
        let read = client.read(offset(at), 4096).expect("ok");
        let is_new = read == new(at);
        assert!(is_new || cookie != done, "an acknowledged write is durable");
        let new = new(at);
        let mut sectors = read.chunks(512).zip(new.chunks(512));
        assert!(sectors.all(|(is, new)| is == new || is == [0; 512]), "a sector is old or new");
        assert_eq!(client.read(offset(at), 4096), Ok(read), "it stays what it is");
        kept += usize::from(is_new);
    }
    assert!(kept < 32, "some were in flight");
    drop(client);
    let results = server.stop();
    assert!(results["requests_lost"].as_u64() > Some(0), "{results}");
    assert_eq!(results["served"]["lost_sectors"], 0, "none of them was acknowledged");
}

#[test]
fn a_control_client_that_leaves_early_does_not_keep_the_server() {
    let folder = folder();
    let server = Server::start(folder.path(), &ssd(), &["--control", "unix:control.sock"]);
    let mut stream = std::os::unix::net::UnixStream::connect(folder.path().join("control.sock"))
        .expect("the server listens");
    stream.write_all(&b"{\"do\": \"status\"}\n".repeat(40)).expect("a socket");
    drop(stream);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let mut client = Client::open(&server.socket, "", false);
    assert_eq!(client.read(0, 4096), Ok(vec![0; 4096]));
    server.stop();
}

#[test]
fn the_state_is_kept_where_the_results_cannot_be_shown() {
    let folder = folder();
    let args = ["--state", "drive.state", "--once", "--out", "results"];
    let server = Server::start(folder.path(), &ssd(), &args);
    // A file where the folder of the results is to be.
    let results = folder.path().join("results");
    drop(std::fs::remove_dir_all(&results));
    std::fs::write(&results, "").expect("one's own folder");
    let mut client = Client::open(&server.socket, "", false);
    assert_eq!(client.write(0, 0, &[1; 512]), Ok(vec![]));
    drop(client);
    let message = server.fail();
    assert!(message.contains("File exists"), "{message}");
    assert!(folder.path().join("drive.state").exists());
}

#[test]
fn wrong_options_are_refused() {
    let folder = folder();
    std::fs::write(folder.path().join("s.toml"), ssd()).expect("one's own folder");
    for (args, word) in [
        (&["--nbd", "0.0.0.0:10809"][..], "--listen-anywhere"),
        (&["--nbd", "here"], "unix:/path"),
        (&["--nbd", "unix:/nowhere/at/all"], "cannot listen: unix:/nowhere/at/all: No such file"),
        (&["--nbd", "unix:s", "--export", "a=9TiB"], "does not fit"),
        (&["--nbd", "unix:s", "--time-scale=-1"], "--time-scale"),
        (&["--nbd", "unix:s", "--clock", "paced", "--time-scale", "0"], "--time-scale"),
        (&["--nbd", "unix:s", "--state", "a", "--contents", "b"], "cannot be used with"),
        (&["--nbd", "unix:s", "--record", "/nowhere/x"], "cannot write"),
        (&["--nbd", "unix:s", "--set", "run.power_cut_every=100"], "--control"),
        (&[], "--nbd"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_hybridsim"))
            .args(["serve", "s.toml"])
            .args(args)
            .current_dir(folder.path())
            .output()
            .expect("the program starts");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}\n{message}");
        assert!(message.contains(word), "{args:?}\n{message}");
    }
}

#[test]
fn a_second_server_on_the_same_files_is_refused() {
    let folder = folder();
    let device = "[component.d]\nkind = \"constant-device\"\ncapacity = \"1MiB\"\n";
    for option in ["--state", "--contents", "--record"] {
        let path = format!("drive{option}");
        let first = Server::start(folder.path(), device, &[option, &path]);
        let second = Command::new(env!("CARGO_BIN_EXE_hybridsim"))
            .args(["serve", "served.toml", "--nbd", "unix:other.sock", option, &path])
            .current_dir(folder.path())
            .output()
            .expect("the program starts");
        let message = String::from_utf8_lossy(&second.stderr);
        assert_eq!(second.status.code(), Some(2), "{option}: {message}");
        assert!(message.contains("another hybridsim is using it"), "{option}: {message}");
        first.stop();
        // The first has left no lock behind.
        Server::start(folder.path(), device, &[option, &path]).stop();
        assert!(!folder.path().join(format!("{path}.lock")).exists());
    }
}
