//! A random system behind `hybridsim serve`.

use crate::client;
use crate::relations::{Applied, NotApplicable, Ran, open};
use crate::seeds::{command, option};
use hybridsim_engine::{Op, Request, SECTOR_BYTES, SimTime};
use hybridsim_serve::contents::{Contents, Store};
use hybridsim_serve::{Exports, Protocol, converse};
use hybridsim_simulation::session::{self, Answered, Session};
use std::collections::BTreeMap;
use std::ops::Range;

/// The most requests that are sent; each takes a turn of the client and one of the server.
const REQUESTS_MAX: usize = 200;
const SECTOR_LENGTH: usize = SECTOR_BYTES as usize;
type Sector = [u8; SECTOR_LENGTH];
const NEVER_WRITTEN: Sector = [0; SECTOR_LENGTH];
/// Bytes for the client until its first command: the greeting, and the size of the export.
const HANDSHAKE_BYTES: usize = 18 + 10;
/// Bytes of a reply before its data.
const REPLY_BYTES: usize = 16;

/// A client of the network block device protocol that waits for each reply reads what it wrote
/// last, and the system handles the same events as in a session.
pub(crate) fn served(ran: &Ran<'_>) -> Applied {
    let mut requests: Vec<Request> = ran.requests()?.into_iter().map(|it| it.1).collect();
    requests.truncate(REQUESTS_MAX);
    let mut scenario = ran.scenario.clone();
    scenario.run.verify = false;

    let mut session = open(ran, &scenario, session::Options::default())?;
    let outcomes = one_at_a_time(&mut session, &requests)?;
    let alone = session.finish(ran.registry, None, Vec::new()).map_err(|_| NotApplicable)?;

    let session = open(ran, &scenario, session::Options::default())?;
    let exports = Exports::parse(&[], session.capacity()).map_err(|_| NotApplicable)?;
    let drive = client::drive(session, Contents::Plain(Store::memory()));
    let sent = client_of(&requests);
    let turns: Vec<(usize, &[u8])> = sent.iter().map(|bytes| (0, &bytes[..])).collect();
    let (replies, drive) =
        converse(drive, exports, Protocol::Nbd, &turns, usize::MAX).map_err(|_| NotApplicable)?;
    if let Err(difference) = check(&requests, &outcomes, &replies[0]) {
        return Ok(Some(difference));
    }
    match drive.finish(ran.registry, false) {
        Err(error) => Ok(Some(error.to_string())),
        Ok(ended) => {
            let [is, was] = [&ended.output, &alone].map(|it| &it.results.fingerprint);
            Ok((is != was).then(|| format!("fingerprint {is}, not {was}")))
        }
    }
}

/// The outcomes of `requests`, each of which arrives when the one before it ends.
fn one_at_a_time(
    session: &mut Session,
    requests: &[Request],
) -> Result<Vec<Answered>, NotApplicable> {
    let outcome = |request: &Request| {
        session.submit(*request, SimTime::ZERO).map_err(|_| NotApplicable)?;
        let answer = session.next_completion().map_err(|_| NotApplicable)?;
        Ok(answer.ok_or(NotApplicable)?.outcome)
    };
    requests.iter().map(outcome).collect()
}

/// The parts of what a client sends, each after the reply to the one before.
fn client_of(requests: &[Request]) -> Vec<Vec<u8>> {
    let unnamed = [&3u32.to_be_bytes()[..], &option(1, &[])].concat();
    let commands = (0..).zip(requests).map(|(number, request)| {
        let bytes = u64::from(request.sectors) * SECTOR_BYTES;
        let (kind, data) = match request.op {
            Op::Read => (0, Vec::new()),
            Op::Write => (1, sectors(request).flat_map(|it| data(number, it)).collect()),
            Op::Flush => (3, Vec::new()),
            Op::Trim => (4, Vec::new()),
            Op::Zone(_) => unreachable!("no generator of these requests manages zones"),
        };
        command([0, kind], number, request.lba.0 * SECTOR_BYTES, bytes as u32, &data)
    });
    std::iter::once(unnamed).chain(commands).collect()
}

fn sectors(request: &Request) -> Range<u64> {
    request.lba.0..request.end().0
}

/// The data that request `number` writes to `sector`.
fn data(number: u64, sector: u64) -> Sector {
    let unit = [(1 + number as u32).to_le_bytes(), (sector as u32).to_le_bytes()].concat();
    std::array::from_fn(|at| unit[at % unit.len()])
}

/// A comparison of `replies` with what the session answered and what was written; fails with the
/// first difference.
fn check(requests: &[Request], outcomes: &[Answered], replies: &[u8]) -> Result<(), String> {
    let mut left = replies.get(HANDSHAKE_BYTES..).ok_or("no handshake")?;
    // The data of sectors; `None` where a trim or a failed write leaves open what they are.
    let mut written: BTreeMap<u64, Option<Sector>> = BTreeMap::new();
    for ((number, request), outcome) in (0u64..).zip(requests).zip(outcomes) {
        let missing = || format!("no reply to request {number}");
        let (head, rest) = left.split_at_checked(REPLY_BYTES).ok_or_else(missing)?;
        let failed = head[4..8] != [0; 4];
        if failed != matches!(outcome, Answered::Failed) || head[8..] != number.to_be_bytes() {
            return Err(format!("{head:?} replies to request {number}, which is {outcome:?}"));
        }
        left = rest;
        match request.op {
            Op::Read if !failed => {
                let bytes = u64::from(request.sectors) * SECTOR_BYTES;
                let (read, rest) = left.split_at_checked(bytes as usize).ok_or_else(missing)?;
                left = rest;
                for (sector, read) in sectors(request).zip(read.chunks_exact(SECTOR_LENGTH)) {
                    let expected = written.get(&sector).unwrap_or(&Some(NEVER_WRITTEN));
                    if expected.is_some_and(|expected| *read != expected) {
                        return Err(format!("request {number} reads wrong data at {sector}"));
                    }
                }
            }
            Op::Write | Op::Trim => {
                let known = request.op == Op::Write && !failed;
                let sectors = sectors(request);
                written.extend(sectors.map(|it| (it, known.then(|| data(number, it)))));
            }
            Op::Read | Op::Flush | Op::Zone(_) => {}
        }
    }
    if left.is_empty() { Ok(()) } else { Err(format!("{} bytes too many", left.len())) }
}
