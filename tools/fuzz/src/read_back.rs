//! A random system whose data are read after its workload.

use crate::relations::{
    Applied, Ended, NotApplicable, PAUSE, Ran, Relation, finished, open, serve,
};
use hybridsim_engine::{Lba, Op, Request, SimTime};
use hybridsim_simulation::run::is_device_answer;
use hybridsim_simulation::session::Options;

/// All sectors up to the last one that the workload accessed are read when it has ended, as many
/// workloads read little, and verified.
pub(crate) const READ_BACK: Relation =
    Relation { name: "reading everything back", check: read_back };

/// The limit of reads, which are of 8 sectors or more.
const READS_MAX: u64 = 500;

fn read_back(ran: &Ran<'_>) -> Applied {
    let requests = ran.requests()?;
    let end = requests.iter().map(|(_, it)| it.end().0).max().ok_or(NotApplicable)?;
    let sectors = end.div_ceil(READS_MAX).max(8);
    let read = |lba| Request::new(Op::Read, Lba(lba), sectors.min(end - lba) as u32);
    let reads: Vec<_> =
        (0..end).step_by(sectors as usize).map(|lba| (SimTime::ZERO, read(lba))).collect();
    let mut scenario = ran.scenario.clone();
    scenario.run.verify = true;
    let mut session = open(ran, &scenario, Options::default())?;
    let served = serve(&mut session, &requests, SimTime::ZERO).and_then(|_| {
        let base = session.now() + PAUSE;
        serve(&mut session, &reads, base)
    });
    match served {
        Err(Ended::Fault(fault)) if is_device_answer(&fault) => Err(NotApplicable),
        Err(ended) => Ok(Some(ended.to_string())),
        Ok(_) => {
            let violations = finished(ran, session)?.results.violations;
            Ok(violations.into_iter().next())
        }
    }
}
