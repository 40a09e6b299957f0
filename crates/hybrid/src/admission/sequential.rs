//! Sequential streams go round the cache, however long their requests are.

use super::{Admission, AdmissionEntry};
use hybridsim_engine::Request;
use hybridsim_engine::param::{Kind, Param};
use hybridsim_engine::registry::Description;

/// The registered entry.
pub const ENTRY: AdmissionEntry = AdmissionEntry {
    description: Description {
        name: "sequential",
        summary: "writes that go on a sequential stream go round the cache",
        origin: "paper 003 (128 KB, one stream); several streams as in bcache",
        params: &[
            Param::with(
                "cutoff_sectors",
                Kind::Count { min: 1, max: u32::MAX as u64 },
                "256",
                "A stream of so many sectors of 512 bytes in a row goes round the cache",
            ),
            Param::with(
                "streams",
                Kind::Count { min: 1, max: 1024 },
                "16",
                "Streams followed at a time",
            ),
        ],
    },
    build: |settings| {
        let cutoff = settings.count("cutoff_sectors");
        let streams = vec![Stream::default(); settings.count("streams") as usize];
        Ok(Box::new(Sequential { cutoff, streams, turn: 0 }))
    },
};

/// Writes in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    end: u64,
    sectors: u64,
    used: u64,
}

/// The streams lately seen.
#[derive(Debug)]
pub struct Sequential {
    cutoff: u64,
    streams: Vec<Stream>,
    turn: u64,
}

impl Admission for Sequential {
    fn admit(&mut self, request: &Request, _pages: u64, _cached: u64) -> bool {
        self.turn += 1;
        let start = request.lba.0;
        let follows = |stream: &Stream| stream.used > 0 && stream.end == start;
        let stream = match self.streams.iter().position(follows) {
            Some(at) => &mut self.streams[at],
            None => {
                let oldest = self.streams.iter_mut().min_by_key(|stream| stream.used);
                let oldest = oldest.expect("there is at least one");
                oldest.sectors = 0;
                oldest
            }
        };
        stream.end = request.end().0;
        stream.sectors += u64::from(request.sectors);
        stream.used = self.turn;
        stream.sectors < self.cutoff
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::{Lba, Op};

    #[test]
    fn streams_are_told_apart() {
        let streams = vec![Stream::default(); 2];
        let mut policy = Sequential { cutoff: 24, streams, turn: 0 };
        let mut admit = |lba| policy.admit(&Request::new(Op::Write, Lba(lba), 8), 1, 0);
        assert!(admit(0) && admit(1000), "two begin");
        assert!(admit(8) && admit(1008), "they go on");
        assert!(!admit(16) && !admit(1016), "24 sectors in a row");
        assert!(!admit(24), "and on");
        assert!(admit(500), "a third takes the place of the older one");
        assert!(admit(1024), "which has been forgotten");
    }
}
