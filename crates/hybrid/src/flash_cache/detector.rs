//! Sequential streams, which go round the cache (paper 003, sequential I/O detector).

use hybridsim_engine::Request;

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    end: u64,
    sectors: u64,
    used: u64,
}

/// Follows streams.
#[derive(Debug)]
pub struct Detector {
    streams: Vec<Stream>,
    cutoff: u64,
    turn: u64,
}

impl Detector {
    /// Follows `streams` streams, and calls one sequential from `cutoff` sectors in a row on.
    pub fn new(streams: usize, cutoff: u64) -> Self {
        Self { streams: vec![Stream::default(); streams], cutoff, turn: 0 }
    }

    /// Whether a request is part of a sequential stream.
    pub fn is_sequential(&mut self, request: &Request) -> bool {
        self.turn += 1;
        let goes_on = |stream: &Stream| stream.used > 0 && stream.end == request.lba.0;
        let at = self.streams.iter().position(goes_on);
        let stream = match at {
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
        let mut detector = Detector::new(1, 256);
        let mut at = |lba| detector.is_sequential(&Request::new(Op::Read, Lba(lba), 64));
        assert_eq!([0, 64, 128, 192, 256].map(&mut at), [false, false, false, true, true]);
        assert!(!at(1000) && !at(320), "one stream is followed");
    }
}
