//! A random system whose data are read after its workload.

use crate::relations::{Applied, NotApplicable, Ran, Relation, open, serve};
use hybridsim_engine::{Lba, Op, Request, SimTime};
use hybridsim_simulation::session::Options;

/// Everything that the workload accessed is read when it has ended, as many workloads read little,
/// and the data are verified. Applied to the systems for which no other relation is chosen.
pub(crate) const READ_BACK: Relation =
    Relation { name: "reading everything back", check: read_back };

/// Sectors of a read.
const SECTORS: u64 = 8;

fn read_back(ran: &Ran<'_>) -> Applied {
    let requests = ran.requests()?;
    let end = requests.iter().map(|(_, it)| it.end().0).max().ok_or(NotApplicable)?;
    let read = |lba| Request::new(Op::Read, Lba(lba), SECTORS.min(end - lba) as u32);
    let reads: Vec<_> =
        (0..end).step_by(SECTORS as usize).map(|lba| (SimTime::ZERO, read(lba))).collect();
    let mut session = open(ran, ran.scenario, Options::default())?;
    // A device may be full.
    serve(&mut session, &requests, SimTime::ZERO).map_err(|_| NotApplicable)?;
    let ended = session.now();
    serve(&mut session, &reads, ended).map_err(|_| NotApplicable)?;
    let output = session.finish(ran.registry, None, Vec::new()).map_err(|_| NotApplicable)?;
    let violations = output.results.violations;
    Ok((!violations.is_empty()).then(|| violations.join("; ")))
}
