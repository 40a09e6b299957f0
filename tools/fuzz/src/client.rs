//! What must hold for any bytes of clients of `hybridsim serve`.

use crate::input::scenario_of;
use hybridsim_config::registry::Registry;
use hybridsim_serve::contents::{Contents, History, Store};
use hybridsim_serve::{Clock, Drive, Exports, Protocol, converse};
use hybridsim_simulation::scenario::Scenario;
use hybridsim_simulation::session::{self, Session};
use std::time::Duration;

/// A small device that takes its time, so that requests overlap.
const DRIVE: &str =
    "[component.drive]\nkind = \"constant-device\"\ncapacity = \"8MiB\"\nlatency = \"100us\"\n";

/// Whatever a client of the network block device protocol sends, the drive goes on working and
/// every check holds. The first byte chooses how the drive is served, the others are the client's.
/// Returns how many requests reached the drive.
///
/// # Panics
/// Panics when that does not hold.
pub fn nbd(registry: &Registry, bytes: &[u8]) -> Option<u64> {
    let (&choice, sent) = bytes.split_first()?;
    let (replies, requests) = serve(registry, choice, Protocol::Nbd, &[(0, sent)]);
    assert!(replies[0].starts_with(b"NBDMAGICIHAVEOPT"), "no greeting");
    Some(requests)
}

/// As [`nbd`], for a host of NVMe over TCP. The first byte chooses how the drive is served; then
/// come turns: two bytes with the length of what is sent, the highest bit of which chooses one of
/// two connections, and what is sent.
///
/// # Panics
/// Panics when that does not hold.
pub fn nvme(registry: &Registry, bytes: &[u8]) -> Option<u64> {
    let (&choice, mut rest) = bytes.split_first()?;
    let mut turns = Vec::new();
    while let Some((&head, sent)) = rest.split_first_chunk() {
        let head = u16::from_le_bytes(head);
        let sent = sent.split_at(sent.len().min((head & !CONNECTION).into()));
        turns.push((usize::from(head & CONNECTION != 0), sent.0));
        rest = sent.1;
    }
    Some(serve(registry, choice, Protocol::Nvme, &turns).1)
}

/// The bit of a turn's length that chooses the connection.
pub(crate) const CONNECTION: u16 = 1 << 15;

/// Serves clients; returns what each was sent, and how many requests reached the drive.
fn serve(
    registry: &Registry,
    choice: u8,
    protocol: Protocol,
    turns: &[(usize, &[u8])],
) -> (Vec<Vec<u8>>, u64) {
    let (power_may_fail, is_parted, piece) = (choice & 1 != 0, choice & 2 != 0, choice >> 2);
    let scenario =
        Scenario::check_system(scenario_of(DRIVE), registry).expect("the drive is valid");
    let options =
        session::Options { versions: power_may_fail, power_may_fail, ..Default::default() };
    let session = Session::open(&scenario, registry, options).expect("the drive opens");
    let parts: &[&str] = if is_parted { &["a=1MiB", "b"] } else { &[] };
    let parts: Vec<String> = parts.iter().map(|&part| part.to_owned()).collect();
    let exports = Exports::parse(&parts, session.capacity()).expect("the parts fit");
    let contents = match power_may_fail {
        true => Contents::History(Box::new(History::new(Store::memory()))),
        false => Contents::Plain(Store::memory()),
    };
    // Pieces of up to 63 times 7 bytes, or everything at once.
    let piece = if piece == 0 { usize::MAX } else { 7 * usize::from(piece) };
    let (replies, drive) = converse(drive(session, contents), exports, protocol, turns, piece)
        .expect("sockets can be made");
    let ended = drive.finish(registry, true).expect("the state can be saved");
    assert!(ended.output.fault.is_none(), "{:?}", ended.output.fault);
    let results = ended.output.results;
    assert!(results.violations.is_empty(), "{:?}", results.violations);
    (replies, results.requests)
}

/// A drive on which no time passes between a reply and the next request.
pub(crate) fn drive(session: Session, contents: Contents) -> Drive {
    let clock = Clock::virtual_time(0.0).with_grace(Duration::ZERO);
    Drive::new(session, contents, clock, None)
}
