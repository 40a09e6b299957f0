//! Faults on demand over the control socket, as a client sees them.

use super::client::Client;
use super::server::Server;
use super::{DISK, KIB, bytes, folder, ssd};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const CONTROL: &[&str] = &["--control", "unix:control.sock", "--time-scale", "0"];

/// The error number of a request that the device fails: EIO.
const EIO: u32 = 5;

/// An SSD of two dies and 6 MiB whose flash takes ten times as long to read as to transfer.
const FLASH: &str = "kind = \"ssd\"\nftl = \"page\"\npage_size = \"4KiB\"\npages_per_block = 16\n\
                     blocks_per_plane = 64\nchannels = 2\ndies_per_channel = 1\n\
                     planes_per_die = 1\nover_provisioning = 0.25\n\
                     read_time = \"50us\"\nprogram_time = \"200us\"\nerase_time = \"1.5ms\"\n";

fn flash() -> String {
    format!("[component.ssd]\n{FLASH}")
}

/// A RAID 5 of three members, with or without a spare.
fn raid(spare: bool) -> String {
    let spares = if spare { "spares = [\"d3\"]\n" } else { "" };
    let mut text = format!(
        "system = \"raid\"\n[component.raid]\nkind = \"raid5\"\nchunk = \"16KiB\"\n\
         members = [\"d0\", \"d1\", \"d2\"]\n{spares}"
    );
    for number in 0..if spare { 4 } else { 3 } {
        text += &format!(
            "[component.d{number}]\nkind = \"constant-device\"\ncapacity = \"2MiB\"\n\
             latency = \"100us\"\n"
        );
    }
    text
}

fn ok(server: &Server, request: &str) -> u64 {
    let reply = server.control(request);
    reply["time_ns"].as_u64().unwrap_or_else(|| panic!("{request}: {reply}"))
}

fn error(server: &Server, request: &str) -> String {
    let reply = server.control(request);
    reply["error"].as_str().unwrap_or_else(|| panic!("{request}: {reply}")).to_owned()
}

/// Simulated time of one read in whole microseconds: after a fault it begins a nanosecond later.
fn read_ns(server: &Server, client: &mut Client, offset: u64) -> u64 {
    let before = ok(server, "{\"do\": \"status\"}");
    client.read(offset, 4096).expect("it is readable");
    (ok(server, "{\"do\": \"status\"}") - before) / 1000 * 1000
}

#[test]
fn hostile_lines_get_one_line_each_and_change_nothing() {
    let folder = folder();
    let server = Server::start(folder.path(), &raid(true), CONTROL);
    for (line, wanted) in [
        ("", "JSON object"),
        ("fail 1", "JSON object"),
        ("[1, 2]", "JSON object"),
        ("{\"do\": \"fail\"", "JSON object"),
        ("{\"do\": 7}", "`do` is one of `status`, `cut-power`, `fail`, `slow`, `wear`, `fill`"),
        ("{\"do\": \"explode\"}", "`do` is one of"),
        ("{\"do\": \"fail\"}", "`fail` needs `member`"),
        ("{\"do\": \"fail\", \"member\": 4}", "members and spares are 0 to 3"),
        ("{\"do\": \"fail\", \"member\": -1}", "`member`"),
        ("{\"do\": \"fail\", \"member\": 1e99}", "`member`"),
        ("{\"do\": \"fail\", \"member\": 99999999999999999999}", "`member`"),
        ("{\"do\": \"fail\", \"member\": 1, \"component\": \"d1\"}", "support `fail`: raid"),
        ("{\"do\": \"fail\", \"member\": 1, \"component\": \"disk\"}", "there is no component"),
        ("{\"do\": \"fail\", \"member\": 1, \"factor\": 2}", "`factor` has an effect only with"),
        ("{\"do\": \"fail\", \"member\": 1, \"when\": 2}", "`when`"),
        (
            "{\"do\": \"slow\", \"factor\": 2}",
            "name the component; components that support `slow`: d0, d1",
        ),
        ("{\"do\": \"slow\", \"component\": \"raid\", \"factor\": 2}", "does not support `slow`"),
        ("{\"do\": \"slow\", \"component\": \"d1\", \"factor\": 0}", "`factor`"),
        ("{\"do\": \"slow\", \"component\": \"d1\", \"factor\": 2, \"die\": 0}", "no dies"),
        ("{\"do\": \"wear\"}", "no component of this system supports `wear`"),
        ("{\"do\": \"fill\", \"component\": \"d1\"}", "does not support `fill`"),
        ("{\"do\": \"fill\", \"component\": {\"a\": [{}]}}", "`component`"),
    ] {
        let message = error(&server, line);
        assert!(message.contains(wanted) && !message.contains('\n'), "{line}: {message}");
    }
    let path = server.socket.with_file_name("control.sock");
    for hostile in [vec![0xff; 100], vec![0; 3], "{\"a\":".repeat(700).into_bytes()] {
        let mut stream = UnixStream::connect(&path).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        stream.write_all(&[&hostile[..], b"\n"].concat()).expect("a socket");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("a reply");
        assert!(line.contains("JSON object"), "{line}");
    }
    let mut stream = UnixStream::connect(&path).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    // It may close the socket before it has read all of them.
    drop(stream.write_all(&[b'x'; 10_000]));
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("a reply");
    assert!(line.contains("a line is longer than"), "{line}");
    let status = server.control("{\"do\": \"status\"}");
    assert_eq!(status["faults"]["raid"], serde_json::json!(["fail"]), "{status}");
    let mut client = Client::open(&server.socket, "", false);
    assert_eq!(client.write(0, 0, &bytes(1, 64 * KIB)), Ok(vec![]));
    assert_eq!(client.read(0, 64 * KIB), Ok(bytes(1, 64 * KIB)));
    let results = server.stop();
    assert_eq!(results["served"]["faults"], 0);
    assert_eq!(results["violations"], serde_json::json!([]));
}

#[test]
fn a_failed_member_keeps_data_readable_and_a_second_is_an_error() {
    let folder = folder();
    for spare in [false, true] {
        let server = Server::start(folder.path(), &raid(spare), CONTROL);
        let mut client = Client::open(&server.socket, "", false);
        let data = bytes(7, 512 * KIB);
        assert_eq!(client.write(0, 0, &data), Ok(vec![]));
        ok(&server, "{\"do\": \"fail\", \"component\": \"raid\", \"member\": 1}");
        assert_eq!(client.read(0, 512 * KIB), Ok(data.clone()));
        let again = error(&server, "{\"do\": \"fail\", \"member\": 1}");
        assert!(again.contains("has failed already"), "{again}");
        let newer = bytes(8, 64 * KIB);
        assert_eq!(client.write(0, 100 * 512, &newer), Ok(vec![]));
        assert_eq!(client.read(100 * 512, 64 * KIB), Ok(newer.clone()));
        // Time in which a spare is rebuilt.
        for _ in 0..2000 {
            client.read(0, 4096).expect("it is readable");
        }
        ok(&server, "{\"do\": \"fail\", \"member\": 2}");
        let read = client.read(0, 512 * KIB);
        if spare {
            let mut expected = data.clone();
            expected[100 * 512..][..64 << 10].copy_from_slice(&newer);
            assert_eq!(read, Ok(expected), "the spare has been rebuilt");
        } else {
            assert_eq!(read, Err(EIO));
            assert_eq!(client.write(0, 0, &data), Err(EIO));
            assert_eq!(client.flush(), Err(EIO), "nor can it be made durable");
        }
        let results = server.stop();
        assert_eq!(results["served"]["faults"], 2);
        assert_eq!(results["violations"], serde_json::json!([]));
    }
}

#[test]
fn a_slow_die_or_disk_raises_the_latency_until_it_is_reset() {
    let folder = folder();
    let server = Server::start(folder.path(), &flash(), CONTROL);
    let mut client = Client::open(&server.socket, "", false);
    assert_eq!(client.write(0, 0, &bytes(1, 64 * KIB)), Ok(vec![]));
    let all = |client: &mut Client| [0, 1, 2, 3].map(|at| read_ns(&server, client, at * 4096));
    let usual = all(&mut client);
    assert_eq!(usual, [50_000; 4]);
    ok(&server, "{\"do\": \"slow\", \"die\": 1, \"factor\": 20}");
    let slow = all(&mut client);
    // Pages alternate between the dies.
    assert_eq!(slow.iter().filter(|time| **time == 50_000).count(), 2, "{slow:?}");
    assert_eq!(slow.iter().filter(|time| **time == 1_000_000).count(), 2, "{slow:?}");
    let message = error(&server, "{\"do\": \"slow\", \"die\": 2, \"factor\": 20}");
    assert!(message.contains("dies are 0 to 1"), "{message}");
    ok(&server, "{\"do\": \"slow\", \"factor\": 3}");
    assert_eq!(all(&mut client), [150_000; 4]);
    ok(&server, "{\"do\": \"slow\", \"factor\": 1}");
    assert_eq!(all(&mut client), usual);
    drop(client);
    server.stop();

    let server = Server::start(folder.path(), DISK, CONTROL);
    let mut client = Client::open(&server.socket, "", false);
    let mut random = || -> u64 {
        let reads = (0..200u64).map(|at| at * 7919 % 1000 * (4 << 20));
        reads.map(|offset| read_ns(&server, &mut client, offset)).sum()
    };
    let usual = random();
    ok(&server, "{\"do\": \"slow\", \"factor\": 4}");
    let ratio = random() as f64 / usual as f64;
    assert!((3.5..4.2).contains(&ratio), "{ratio}");
    ok(&server, "{\"do\": \"slow\", \"component\": \"disk\", \"factor\": 1}");
    let ratio = random() as f64 / usual as f64;
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
    drop(client);
    server.stop();
}

/// Writes random pages until one fails; returns how many succeeded, and the last data of each.
fn write_until_it_fails(client: &mut Client, pages: u64) -> (u64, Vec<Option<Vec<u8>>>) {
    let mut held = vec![None; pages as usize];
    for count in 0..1_000_000u64 {
        let page = count * 7919 % pages;
        let data = bytes(count as u8, 4096);
        match client.write(0, page * 4096, &data) {
            Ok(_) => held[page as usize] = Some(data),
            Err(number) => {
                assert_eq!(number, EIO);
                return (count, held);
            }
        }
    }
    panic!("writes never failed");
}

fn reads_what_was_written(client: &mut Client, held: &[Option<Vec<u8>>]) {
    for (page, data) in held.iter().enumerate() {
        let data = data.clone().unwrap_or_else(|| vec![0; 4096]);
        assert_eq!(client.read(page as u64 * 4096, 4096), Ok(data), "page {page}");
    }
}

#[test]
fn worn_out_flash_fails_writes_and_returns_the_data() {
    let folder = folder();
    let args = [CONTROL, &["--state", "drive.state", "--once"]].concat();
    let server = Server::start(folder.path(), &flash(), &args);
    let mut client = Client::open(&server.socket, "", false);
    for page in 0..64u64 {
        assert_eq!(client.write(0, page * 4096, &bytes(page as u8, 4096)), Ok(vec![]));
    }
    ok(&server, "{\"do\": \"fill\"}");
    for page in 0..64u64 {
        assert_eq!(client.read(page * 4096, 4096), Ok(bytes(page as u8, 4096)));
    }
    assert_eq!(client.read(1 << 20, 4096), Ok(vec![0; 4096]), "filled, not written");
    ok(&server, "{\"do\": \"wear\", \"component\": \"ssd\", \"fraction\": 1}");
    let (count, held) = write_until_it_fails(&mut client, 1024);
    assert!(count > 10, "the spare blocks are written before: {count}");
    let mut held = held;
    for page in 0..64u64 {
        held[page as usize].get_or_insert_with(|| bytes(page as u8, 4096));
    }
    reads_what_was_written(&mut client, &held);
    assert_eq!(client.write(0, 0, &[1; 4096]), Err(EIO));
    assert_eq!(client.trim(1500 * 4096, 4096), Ok(vec![]), "advice without effect");
    assert_eq!(client.flush(), Ok(vec![]));
    let message = error(&server, "{\"do\": \"fill\"}");
    assert!(message.contains("worn out already"), "{message}");
    drop(client);
    let results = server.wait();
    assert_eq!(results["violations"], serde_json::json!([]));
    // The end of life is part of the state.
    let server = Server::start(folder.path(), &flash(), &args);
    let mut client = Client::open(&server.socket, "", false);
    reads_what_was_written(&mut client, &held);
    assert_eq!(client.write(0, 0, &[1; 4096]), Err(EIO));
    drop(client);
    server.wait();
}

#[test]
fn a_full_drive_collects_garbage() {
    let erases = |fill: Option<&str>| {
        let folder = folder();
        let server = Server::start(folder.path(), &flash(), CONTROL);
        let mut client = Client::open(&server.socket, "", false);
        fill.map(|fill| ok(&server, fill));
        for count in 0..600u64 {
            let page = count * 7919 % 1024;
            assert_eq!(client.write(0, page * 4096, &bytes(count as u8, 4096)), Ok(vec![]));
        }
        for count in 0..600u64 {
            let page = count * 7919 % 1024;
            assert_eq!(client.read(page * 4096, 4096), Ok(bytes(count as u8, 4096)));
        }
        drop(client);
        server.stop()["components"]["ssd"]["erases"].as_u64().expect("a number")
    };
    let (empty, half, full) = (
        erases(None),
        erases(Some("{\"do\": \"fill\", \"fraction\": 0.5}")),
        erases(Some("{\"do\": \"fill\"}")),
    );
    assert!(empty <= half && half < full && empty == 0, "{empty} {half} {full}");
}

#[test]
fn a_state_keeps_a_failed_member_and_a_slow_die() {
    let folder = folder();
    let args = [CONTROL, &["--state", "drive.state", "--once"]].concat();
    let data = bytes(9, 256 * KIB);
    for round in 0..2 {
        let server = Server::start(folder.path(), &raid(false), &args);
        let mut client = Client::open(&server.socket, "", false);
        if round == 0 {
            assert_eq!(client.write(0, 0, &data), Ok(vec![]));
            // No request follows: the fault is still part of the state.
            ok(&server, "{\"do\": \"fail\", \"member\": 0}");
        } else {
            assert_eq!(client.read(0, 256 * KIB), Ok(data.clone()));
            ok(&server, "{\"do\": \"fail\", \"member\": 2}");
            assert_eq!(client.read(0, 256 * KIB), Err(EIO));
        }
        drop(client);
        server.wait();
    }
    std::fs::remove_file(folder.path().join("drive.state")).expect("one's own folder");
    for round in 0..2 {
        let server = Server::start(folder.path(), &flash(), &args);
        let mut client = Client::open(&server.socket, "", false);
        if round == 0 {
            assert_eq!(client.write(0, 0, &bytes(1, 16 * KIB)), Ok(vec![]));
            ok(&server, "{\"do\": \"slow\", \"factor\": 7}");
        } else {
            assert_eq!(read_ns(&server, &mut client, 0), 350_000);
        }
        drop(client);
        server.wait();
    }
}

/// The fingerprint of a run of the recorded trace, with its faults.
fn replayed(folder: &Path, faults: bool) -> serde_json::Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hybridsim"));
    command.args(["run", "served.toml", "--trace", "session.hst", "--set", "host.mode=open"]);
    if faults {
        command.args(["--faults", "session.hst.faults.toml"]);
    }
    let output = command.args(["--json", "--no-cache"]).current_dir(folder).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    results["fingerprint"].clone()
}

#[test]
fn a_recorded_session_with_faults_is_replayed_to_the_same_fingerprint() {
    let scheduled = "[[run.faults]]\nat = \"3ms\"\ndo = \"slow\"\ncomponent = \"d0\"\nfactor = 2\n";
    let faulty_raid = format!("{}{scheduled}", raid(true));
    for (system, faults, scale) in [
        (
            faulty_raid.as_str(),
            [
                "{\"do\": \"slow\", \"component\": \"d2\", \"factor\": 1.7}",
                "{\"do\": \"fail\", \"member\": 1}",
                "{\"do\": \"slow\", \"component\": \"d2\", \"factor\": 1}",
            ],
            "1",
        ),
        (
            &flash(),
            [
                "{\"do\": \"fill\", \"fraction\": 0.9}",
                "{\"do\": \"slow\", \"die\": 0, \"factor\": 3}",
                "{\"do\": \"wear\", \"fraction\": 1}",
            ],
            "0",
        ),
    ] {
        let folder = folder();
        let args = ["--control", "unix:control.sock", "--record", "session.hst", "--time-scale"];
        let server = Server::start(folder.path(), system, &[&args[..], &[scale]].concat());
        let mut client = Client::open(&server.socket, "", false);
        for count in 0..400u64 {
            if count % 100 == 50 {
                // In the middle of requests.
                let cookies: Vec<u64> =
                    (0..8).map(|at| client.send(0, 0, at * 65_536, 4096, &[])).collect();
                ok(&server, faults[count as usize / 100 % 3]);
                cookies.iter().for_each(|_| drop(client.receive(4096)));
            }
            drop(client.write(0, count * 7919 % 700 * 4096, &bytes(count as u8, 4096)));
        }
        drop(client);
        let results = server.stop();
        assert_eq!(results["served"]["faults"], 4);
        assert_eq!(replayed(folder.path(), true), results["fingerprint"], "{system}");
        assert_ne!(replayed(folder.path(), false), results["fingerprint"], "faults matter");
    }
}

#[test]
fn faults_at_the_start_slow_the_first_requests_and_those_after_the_end_are_reported() {
    let folder = folder();
    let scenario = "[host]\nmode = \"closed\"\nqueue_depth = 4\n[workload.generator]\n\
                    kind = \"uniform\"\nrequests = 10\n[component.device]\n\
                    kind = \"constant-device\"\ncapacity = \"1GiB\"\nlatency = \"1ms\"\n";
    let results = |fault: &str| -> serde_json::Value {
        let text = format!("{scenario}{fault}");
        std::fs::write(folder.path().join("s.toml"), text).expect("one's own folder");
        let output = Command::new(env!("CARGO_BIN_EXE_hybridsim"))
            .args(["run", "s.toml", "--json"])
            .current_dir(folder.path())
            .output()
            .expect("the program starts");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let slow = |at: &str| format!("[[run.faults]]\nat = \"{at}\"\ndo = \"slow\"\nfactor = 10\n");
    let mean = |results: &serde_json::Value| results["latency_ns"]["all"]["mean"].clone();
    let (plain, at_once, late) = (results(""), results(&slow("0ns")), results(&slow("20s")));
    let factor = mean(&at_once).as_f64().zip(mean(&plain).as_f64()).map(|(a, b)| a / b);
    assert!(factor.is_some_and(|it| (it - 10.0).abs() < 1e-6), "{factor:?}");
    assert_eq!(mean(&late), mean(&plain));
    let warning = late["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.contains("run.faults[0], at 20.000 s, did not occur"), "{warning}");
    assert_eq!(at_once["warnings"], plain["warnings"]);
}

#[test]
fn a_file_that_is_no_list_of_faults_is_refused() {
    let folder = folder();
    std::fs::write(folder.path().join("s.toml"), ssd()).expect("one's own folder");
    for (text, wanted) in [
        ("", "[[run.faults]]"),
        ("run.faults = 3", "[[run.faults]]"),
        ("[[run.faults]]\n[host]\n", "nothing else"),
        ("[run]\nseed = 7\n[[run.faults]]\ndo = \"fill\"\n", "nothing else"),
        ("[[run.faults]]\ndo = \"fail\"\n", "run.faults[0]"),
        ("[[run.faults]]\ndo = \"fail\"\nmember = 0\n", "no component of this system supports"),
        ("[[run.faults]]\ndo = \"fill\"\ncomponent = \"hdd\"\n", "support `fill`: ssd"),
        ("[[run.faults]]\nat = \"soon\"\ndo = \"fill\"\n", "run.faults[0].at"),
    ] {
        std::fs::write(folder.path().join("faults.toml"), text).expect("one's own folder");
        let output = Command::new(env!("CARGO_BIN_EXE_hybridsim"))
            .args(["run", "s.toml", "--faults", "faults.toml"])
            .args(["--set", "workload.generator={kind=\"uniform\",requests=10}"])
            .current_dir(folder.path())
            .output()
            .expect("the program starts");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}\n{message}");
        assert!(message.contains(wanted), "{text}\n{message}");
    }
}
