//! Sequential streams among requests: for policies and caches that let them go round.

use hybridsim_engine::Request;

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    end: u64,
    sectors: u64,
    used: u64,
}

/// The streams lately seen. A request that begins where the last one of a stream ended goes on
/// with it; any other begins one in place of the stream not used for longest.
#[derive(Debug)]
pub struct Streams {
    streams: Vec<Stream>,
    cutoff: u64,
    turn: u64,
}

impl Streams {
    /// Follows `count` streams, at least one, and calls one sequential from `cutoff` sectors in a
    /// row on.
    pub fn new(count: usize, cutoff: u64) -> Self {
        Self { streams: vec![Stream::default(); count.max(1)], cutoff, turn: 0 }
    }

    /// Forgets all it has seen.
    pub fn clear(&mut self) {
        self.streams.fill(Stream::default());
    }

    /// Notes a request; whether it is part of a sequential stream.
    pub fn is_sequential(&mut self, request: &Request) -> bool {
        self.turn += 1;
        let goes_on = |stream: &Stream| stream.used > 0 && stream.end == request.lba.0;
        let stream = match self.streams.iter().position(goes_on) {
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
        assert!(!at(1000) && !at(320), "one stream is followed");
    }

    #[test]
    fn streams_are_told_apart() {
        let mut streams = Streams::new(2, 24);
        let mut at = |lba| streams.is_sequential(&Request::new(Op::Write, Lba(lba), 8));
        assert!(!at(0) && !at(1000), "two begin");
        assert!(!at(8) && !at(1008), "they go on");
        assert!(at(16) && at(1016), "24 sectors in a row");
        assert!(at(24), "and on");
        assert!(!at(500), "a third takes the place of the older one");
        assert!(!at(1024), "which has been forgotten");
        streams.clear();
        let goes_on = Request::new(Op::Write, Lba(32), 8);
        assert!(!streams.is_sequential(&goes_on), "all are forgotten");
    }
}
