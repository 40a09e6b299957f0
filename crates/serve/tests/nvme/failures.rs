//! Clocks, traces, states, power failures and other faults.

use super::client::{Command, Queue, u32_at, u64_at};
use super::server::{BLOCK, Server, Setup, replay};
use super::zones::ZNS;
use super::{SSD, bytes};

fn setup(system: &str) -> (tempfile::TempDir, Setup) {
    let folder = tempfile::tempdir().expect("a folder");
    (folder, Setup { system: system.to_owned(), ..Setup::default() })
}

/// A load of one command at a time.
fn load(server: &Server, is_zoned: bool) {
    let (_admin, controller) = Queue::admin(server.address, 0);
    let mut queue = Queue::io(server.address, (1, controller), 0);
    for at in 0..40u8 {
        let data = bytes(at, 4 * BLOCK);
        if is_zoned {
            let append = Command::range(0x7D, 1, u64::from(at % 2) * 256, 4);
            assert_eq!(queue.call(append, Some(&data), 0).status, 0);
        } else {
            assert_eq!(queue.write(1, u64::from(at % 7) * 16, &data), 0);
        }
        assert_eq!(queue.read(1, 0, 4).status, 0);
    }
    if is_zoned {
        let reset = Command::range(0x79, 1, 0, 1).dword(13, 4);
        assert_eq!(queue.call(reset, None, 0).status, 0);
    }
    assert_eq!(queue.call(Command::new(0, 1), None, 0).status, 0);
}

#[test]
fn one_command_at_a_time_is_repeatable_and_a_recorded_trace_replays_to_the_same() {
    for (system, is_zoned) in [(SSD, false), (ZNS, true)] {
        let (folder, mut setup) = setup(system);
        let trace = folder.path().join("session.hst");
        setup.record = Some(trace.clone());
        let ends = [(); 2].map(|()| {
            let server = Server::with(setup.clone());
            load(&server, is_zoned);
            server.stop()
        });
        assert_eq!(ends[0].fingerprint, ends[1].fingerprint);
        assert_eq!(ends[0].requests, if is_zoned { 82 } else { 81 });
        assert_eq!(replay(system, &trace), ends[0].fingerprint);
    }
}

#[test]
fn a_state_keeps_zones_and_data() {
    let (folder, mut setup) = setup(ZNS);
    setup.state = Some(folder.path().join("drive.state"));
    for round in 0..3u8 {
        let server = Server::with(setup.clone());
        let (_admin, controller) = Queue::admin(server.address, 0);
        let mut queue = Queue::io(server.address, (1, controller), 0);
        if round > 0 {
            assert_eq!(queue.read(1, u64::from(round) - 1, 1).ok(), bytes(round - 1, BLOCK));
        }
        let append = queue.call(Command::range(0x7D, 1, 0, 1), Some(&bytes(round, BLOCK)), 0);
        assert_eq!((append.status, append.result), (0, u64::from(round)));
        server.stop();
    }
}

#[test]
fn acknowledged_writes_survive_power_failures() {
    for (system, is_zoned) in [(SSD, false), (ZNS, true)] {
        let (folder, mut setup) = setup(system);
        setup.control = Some(folder.path().to_owned());
        let server = Server::with(setup);
        let mut written = Vec::new();
        for round in 0..8u8 {
            let (mut admin, controller) = Queue::admin(server.address, 0);
            assert_eq!(u64_at(&admin.log(2, 0, 512).ok(), 144), u64::from(round), "power failures");
            let mut queue = Queue::io(server.address, (1, controller), 0);
            for (lba, seed) in &written {
                assert_eq!(queue.read(1, *lba, 1).ok(), bytes(*seed, BLOCK), "{round} {lba}");
            }
            for at in 0..10u8 {
                let seed = round * 10 + at;
                let data = bytes(seed, BLOCK);
                let lba = if is_zoned {
                    let done = queue.call(Command::range(0x7D, 1, 256, 1), Some(&data), 0);
                    assert_eq!(done.status, 0);
                    done.result
                } else {
                    assert_eq!(queue.write(1, seed.into(), &data), 0);
                    seed.into()
                };
                written.push((lba, seed));
            }
            // Some are in flight.
            for at in 0..20 {
                let command = match is_zoned {
                    true => Command::range(0x7D, 1, 256 * (2 + at % 2), 1),
                    false => Command::range(1, 1, 200 + at, 1),
                };
                queue.send(command, Some(&bytes(1, BLOCK)), 0);
            }
            assert!(server.control("{\"do\": \"cut-power\"}")["time_ns"].is_u64());
            while queue.completion(None).is_some() {}
            assert!(admin.is_closed());
        }
        assert_eq!(server.stop().served.power_cuts, 8);
    }
}

#[test]
fn worn_out_flash_is_reported_as_an_event_and_in_log_pages() {
    let (folder, mut setup) = setup(SSD);
    setup.control = Some(folder.path().to_owned());
    let server = Server::with(setup);
    let (mut admin, _) = Queue::admin(server.address, 0);
    let event = admin.send(Command::new(0xC, 0), None, 0);
    let wear = server.control("{\"do\": \"wear\", \"component\": \"ssd\", \"fraction\": 1.0}");
    assert!(wear["time_ns"].is_u64(), "{wear}");
    // It occurs with the next request.
    let (_other, controller) = Queue::admin(server.address, 0);
    let mut queue = Queue::io(server.address, (1, controller), 0);
    assert_eq!(queue.read(1, 0, 1).status, 0);
    let done = admin.completion(None).expect("an event");
    assert_eq!((done.id, done.status, done.result), (event, 0, 0x2_0001), "reliability");
    let health = admin.log(2, 0, 512).ok();
    assert_eq!((health[0], health[5]), (4, 100), "critical, and used up");
    let endurance = admin.log(9, 1, 512).ok();
    assert_eq!((endurance[0], endurance[5]), (4, 100));
    server.stop();
}

#[test]
fn the_extended_health_page_has_the_figures_of_the_flash() {
    let server = Server::start(SSD);
    let (mut admin, controller) = Queue::admin(server.address, 0);
    let mut queue = Queue::io(server.address, (1, controller), 0);
    for lba in 0..32 {
        assert_eq!(queue.write(1, lba, &bytes(1, BLOCK)), 0);
    }
    assert_eq!(queue.read(1, 0, 8).status, 0);
    let page = admin.log(0xC0, 0, 512).ok();
    assert_eq!((u64_at(&page, 0), u64_at(&page, 16)), (32 * 4096, 8 * 4096));
    assert_eq!((u32_at(&page, 32), page[38], page[494]), (0, 100, 3));
    assert_eq!(page[496..500], [0xC5, 0xAF, 0x10, 0x28]);
    assert!(page[120] > 80, "most blocks are free: {}", page[120]);
    server.stop();
}

#[test]
fn a_paced_clock_replies_when_the_device_would() {
    let device = "[component.d]\nkind = \"constant-device\"\ncapacity = \"64MiB\"\n\
                  latency = \"20ms\"\n";
    let (_folder, mut setup) = setup(device);
    setup.is_paced = true;
    let server = Server::with(setup);
    let (_admin, controller) = Queue::admin(server.address, 0);
    let mut queue = Queue::io(server.address, (1, controller), 0);
    let began = std::time::Instant::now();
    for _ in 0..5 {
        assert_eq!(queue.read(1, 0, 1).status, 0);
    }
    assert!(began.elapsed().as_millis() >= 100, "{:?}", began.elapsed());
    assert!(server.stop().served.lateness_ns.is_some());
}
