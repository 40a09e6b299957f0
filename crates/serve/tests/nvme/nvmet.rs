//! Pages beside those of the kernel's NVMe target, which `nvmet.txt` has as scripts/nvmet_pages.sh
//! recorded them: each field that differs is listed with the reason, and what belongs to no field
//! is zero in both.

use super::client::{Command, DISCOVERY, Queue};
use super::nvmet_fields::{DIFFERENCES, Field, fields};
use super::server::{BLOCK, Server, Setup};
use super::zones::ZNS;
use super::{SSD, bytes};
use std::collections::BTreeSet;

/// A command that was recorded, and the reply to it.
struct Recorded {
    opcode: u8,
    nsid: u32,
    /// Command dwords 10 to 14.
    dwords: [u32; 5],
    status: u16,
    data: Vec<u8>,
}

fn number(word: &str) -> u32 {
    let hex = word.strip_prefix("0x").map(|it| u32::from_str_radix(it, 16));
    hex.unwrap_or_else(|| word.parse()).expect("a number")
}

/// The commands recorded of a subsystem.
fn recorded(subsystem: &str) -> Vec<Recorded> {
    let mut all: Vec<Recorded> = Vec::new();
    let mut is_here = false;
    for line in include_str!("nvmet.txt").lines().filter(|it| !it.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["=", name] => is_here = name == subsystem,
            _ if !is_here => {}
            [">", opcode, nsid, a, b, c, d, e, length, "status", status] => {
                let status = u16::from_str_radix(status, 16).expect("a status") & 0x7FF;
                let length = if status == 0 { number(length) as usize } else { 0 };
                let dwords = [a, b, c, d, e].map(number);
                let (opcode, nsid) = (number(opcode) as u8, number(nsid));
                all.push(Recorded { opcode, nsid, dwords, status, data: vec![0; length] });
            }
            [offset, hex] => {
                let at = usize::from_str_radix(offset, 16).expect("an offset");
                let page = &mut all.last_mut().expect("a command").data;
                for (index, byte) in page[at..].iter_mut().take(16).enumerate() {
                    let digits = &hex[index * 2..index * 2 + 2];
                    *byte = u8::from_str_radix(digits, 16).expect("hexadecimal digits");
                }
            }
            _ => panic!("not a line of a recording: {line}"),
        }
    }
    assert!(!all.is_empty(), "{subsystem} was recorded");
    all
}

/// The name of the page that a command reads.
fn page(it: &Recorded, is_discovery: bool) -> String {
    let (kind, set) = (it.dwords[0] & 0xFF, it.dwords[1] >> 24);
    let of = if is_discovery { "discovery " } else { "" };
    match (it.opcode, kind) {
        (6, 0) if it.nsid == u32::MAX => "common namespace".to_owned(),
        (6, 5..=7) => format!("{of}identify {kind:02X}h of set {set}"),
        (6, _) => format!("{of}identify {kind:02X}h"),
        (2, _) => format!("{of}log {kind:02X}h"),
        _ => "zones".to_owned(),
    }
}

/// The differences between pages, by page and field.
#[derive(Default)]
struct Differences(BTreeSet<(String, String)>);

impl Differences {
    fn pages(&mut self, name: &str, kernel: &[u8], own: &[u8]) {
        assert_eq!(kernel.len(), own.len(), "{name}");
        let mut reserved = [kernel.to_vec(), own.to_vec()];
        for Field { name: field, at, bytes } in fields(name, own.len()) {
            let all = at..at + bytes;
            if kernel[all.clone()] != own[all.clone()] {
                self.0.insert((name.to_owned(), field));
            }
            reserved.iter_mut().for_each(|it| it[all.clone()].fill(0));
        }
        for (whose, page) in ["the kernel's", "ours"].iter().zip(&reserved) {
            let odd = page.iter().position(|byte| *byte != 0);
            assert_eq!(odd, None, "{name} ({whose}): reserved");
        }
    }

    fn status(&mut self, name: &str, kernel: u16, own: u16) {
        if kernel != own {
            self.0.insert((name.to_owned(), format!("status {kernel:03X} {own:03X}")));
        }
    }

    /// Asks as the recording did.
    fn ask(&mut self, queue: &mut Queue, it: &Recorded, is_discovery: bool) {
        let length = match (it.opcode, it.dwords[0] & 0xFF) {
            (6, _) => 4096,
            (2, _) => ((it.dwords[0] >> 16) as usize + 1) * 4,
            _ => (it.dwords[2] as usize + 1) * 4,
        };
        let command = (10..)
            .zip(it.dwords)
            .fold(Command::new(it.opcode, it.nsid), |command, (dword, value)| {
                command.dword(dword, value)
            });
        let done = queue.call(command, None, length);
        let mut name = page(it, is_discovery);
        if (it.opcode, done.status) == (2, 0x109) && it.status != 0 {
            "other log pages".clone_into(&mut name);
        }
        self.status(&name, it.status, done.status);
        if it.status == 0 && done.status == 0 {
            self.pages(&name, &it.data, &done.data);
        }
    }
}

/// Does what the guest did before it read pages, and reads them.
fn compare(subsystem: &str, system: String, found: &mut Differences) {
    let exports = if subsystem == "zoned" { vec![] } else { vec!["a=32MiB".to_owned()] };
    let server = Server::with(Setup { system, exports, ..Setup::default() });
    let (mut admin, controller) = Queue::admin(server.address, 0);
    let mut queue = Queue::io(server.address, (1, controller), 0);
    assert_eq!(queue.write(1, 0, &bytes(1, 4 * BLOCK)), 0);
    assert_eq!(queue.read(1, 0, 4).status, 0);
    assert_eq!(queue.read(1, 0xFFF_FFFF, 1).status, 0x80, "out of range");
    let manage = |queue: &mut Queue, block, action| {
        queue.call(Command::range(0x79, 1, block, 1).dword(13, action), None, 0).status
    };
    let mut is_written = false;
    for it in recorded(subsystem) {
        if it.opcode != 0x7A {
            found.ask(&mut admin, &it, false);
            continue;
        }
        if !is_written {
            is_written = true;
            assert_eq!(manage(&mut queue, 1024, 3), 0);
            assert_eq!(queue.write(1, 2048, &bytes(2, BLOCK)), 0);
            assert_eq!((manage(&mut queue, 2048, 1), manage(&mut queue, 3072, 2)), (0, 0));
        }
        found.ask(&mut queue, &it, false);
    }
    server.stop();
}

#[test]
fn pages_are_those_of_the_kernels_target_but_for_listed_differences() {
    let mut found = Differences::default();
    let ssd = SSD.replace("blocks_per_plane = 24", "blocks_per_plane = 96");
    compare("conventional", ssd, &mut found);
    let zoned = ZNS
        .replace("1000KiB", "3MiB")
        .replace("zone_size = \"1MiB\"", "zone_size = \"4MiB\"")
        .replace("blocks_per_plane = 24", "blocks_per_plane = 80");
    compare("zoned", zoned, &mut found);
    let server = Server::start(SSD);
    let mut queue = Queue::initialize(server.address, 0);
    assert_eq!(queue.connect(DISCOVERY, (0, 31, 0xFFFF), 0).0, 0);
    queue.enable();
    for mut it in recorded("discovery") {
        if it.dwords[0] & 0xFF == 0x70 {
            // The first record is the discovery subsystem itself, which ours does not list.
            it.data.drain(1024..2048);
            it.data.resize(3072, 0);
        }
        found.ask(&mut queue, &it, true);
    }
    server.stop();
    let listed: BTreeSet<(String, String)> = DIFFERENCES
        .iter()
        .flat_map(|(name, fields, _)| {
            fields.split(", ").map(move |field| ((*name).to_owned(), field.to_owned()))
        })
        .collect();
    let unlisted: Vec<_> = found.0.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&found.0).collect();
    assert!(unlisted.is_empty() && gone.is_empty(), "new: {unlisted:#?}, gone: {gone:#?}");
}

/// Commands and log pages that a drive reports as supported answer, and no others.
#[test]
fn what_pages_say_is_supported_answers() {
    for system in [SSD, ZNS] {
        let server = Server::start(system);
        let (mut admin, controller) = Queue::admin(server.address, 0);
        let mut queue = Queue::io(server.address, (1, controller), 0);
        let set = if system == ZNS { 2 } else { 0 };
        let effects = Command::new(2, u32::MAX).dword(10, 5 | 1023 << 16).dword(14, set << 24);
        let effects = admin.call(effects, None, 4096).ok();
        // Event requests (0Ch) are not answered until there is an event.
        for opcode in (0..=255u8).filter(|it| *it != 0x0C && *it != 0x7F) {
            for (base, queue) in [(0, &mut admin), (1024, &mut queue)] {
                // Neither block nor data fit any of them, but the opcode is recognized.
                let command = Command::new(opcode, 1).dword(10, u32::MAX).dword(11, u32::MAX);
                let status = queue.call(command, None, 0).status;
                let is_supported = effects[base + usize::from(opcode) * 4] & 1 != 0;
                assert_eq!(status != 1, is_supported, "{base} {opcode:02X}: {status:03X}");
            }
        }
        let optional = u32::from_le_bytes(
            admin.identify(1, 0, 0).ok()[520..524].try_into().expect("four bytes"),
        ) & 0xFFFF;
        for (bit, opcode) in [(0, 5), (2, 9), (3, 8), (7, 0x0C), (8, 0x19)] {
            assert_eq!(optional >> bit & 1, u32::from(effects[1024 + opcode * 4] & 1), "{bit}");
        }
        let supported = admin.log(0, 0, 1024).ok();
        for page in 0..=255u32 {
            // Pages of the endurance group 1.
            let status = admin.log(page, 1, 512).status;
            let is_supported = supported[page as usize * 4] & 1 != 0;
            assert_eq!(status == 0, is_supported, "{page:02X}: {status:03X}");
        }
        server.stop();
    }
}
