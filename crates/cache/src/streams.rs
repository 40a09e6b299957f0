//! Detection of sequential streams, for policies and caches that let them bypass.

use hybridsim_engine::Request;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Stream {
    end: u64,
    sectors: u64,
    used: u64,
}

/// The recent streams. A request that begins where the last one of a stream ended continues it; any
/// other begins a new stream and replaces the least recently continued one.
#[derive(Debug, Serialize, Deserialize)]
pub struct Streams {
    streams: Vec<Stream>,
    cutoff: u64,
    turn: u64,
}

impl Streams {
    /// Tracks `count` streams, at least one. A stream is sequential after `cutoff` sectors.
    pub fn new(count: usize, cutoff: u64) -> Self {
        Self { streams: vec![Stream::default(); count.max(1)], cutoff, turn: 0 }
    }

    /// Removes all streams.
    pub fn clear(&mut self) {
        self.streams.fill(Stream::default());
    }

    /// Tracks a request; returns whether it is part of a sequential stream.
    pub fn is_sequential(&mut self, request: &Request) -> bool {
        self.turn += 1;
        let continues = |stream: &Stream| stream.used > 0 && stream.end == request.lba.0;
        let stream = match self.streams.iter().position(continues) {
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
        stream.sectors >= self.cutoff
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::{Lba, Op};

    #[test]
    fn a_run_of_128_kilobytes_is_sequential() {
        let mut streams = Streams::new(1, 256);
        let mut at = |lba| streams.is_sequential(&Request::new(Op::Read, Lba(lba), 64));
        assert_eq!([0, 64, 128, 192, 256].map(&mut at), [false, false, false, true, true]);
        assert!(!at(1000) && !at(320), "one stream is tracked");
    }

    #[test]
    fn several_streams_are_tracked() {
        let mut streams = Streams::new(2, 24);
        let mut at = |lba| streams.is_sequential(&Request::new(Op::Write, Lba(lba), 8));
        assert!(!at(0) && !at(1000), "two streams begin");
        assert!(!at(8) && !at(1008), "they continue");
        assert!(at(16) && at(1016), "24 contiguous sectors");
        assert!(at(24), "still sequential");
        assert!(!at(500), "a third replaces the older one");
        assert!(!at(1024), "which is no longer tracked");
        streams.clear();
        let continues = Request::new(Op::Write, Lba(32), 8);
        assert!(!streams.is_sequential(&continues), "none is tracked");
    }
}
