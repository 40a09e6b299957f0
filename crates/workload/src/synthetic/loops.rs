//! A generated workload several times, one pass after the other: the same requests each time.

use hybridsim_engine::{Arrival, SimDuration, SimTime, Source};

/// Builds the generator again, for the next pass.
pub type Build = Box<dyn Fn() -> Result<Box<dyn Source>, String>>;

/// Passes of the same requests. A pass starts one mean interarrival time after the last request of
/// the previous pass.
pub struct Loops {
    build: Build,
    pass: Box<dyn Source>,
    loops: u64,
    done: u64,
    start: SimDuration,
    /// Arrival of the last request, since the start of the pass.
    last: SimDuration,
    /// Requests of the pass.
    requests: u64,
    /// Bytes of the application in passes that have ended.
    application_bytes: u64,
}

impl Loops {
    /// `loops` passes, of which `pass` is the first.
    ///
    /// # Errors
    /// A message, if requests of the workload depend on completions.
    pub fn new(loops: u64, pass: Box<dyn Source>, build: Build) -> Result<Self, String> {
        if !pass.reads_ahead() {
            let message = "a generator whose requests depend on completions, or that ends by \
                           `duration` without arrival times, cannot be repeated";
            return Err(message.to_owned());
        }
        let (start, last) = (SimDuration::ZERO, SimDuration::ZERO);
        let (done, requests, application_bytes) = (0, 0, 0);
        Ok(Self { build, pass, loops, done, start, last, requests, application_bytes })
    }
}

impl Source for Loops {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        loop {
            if let Some(mut arrival) = self.pass.next()? {
                self.requests += 1;
                if self.pass.has_times() {
                    self.last = arrival.at.since(SimTime::ZERO);
                    arrival.at += self.start;
                }
                return Ok(Some(arrival));
            }
            if self.requests == 0 || self.done >= self.loops - 1 {
                self.done = self.loops;
                return Ok(None);
            }
            self.start = self.start + self.last + self.last / (self.requests - 1).max(1);
            self.application_bytes += self.pass.application_bytes().unwrap_or(0);
            self.pass = (self.build)()?;
            (self.done, self.last, self.requests) = (self.done + 1, SimDuration::ZERO, 0);
        }
    }

    fn progress(&self) -> Option<f64> {
        let pass = self.pass.progress()?;
        Some(((self.done as f64 + pass) / self.loops as f64).min(1.0))
    }

    fn application_bytes(&self) -> Option<u64> {
        self.pass.application_bytes().map(|bytes| self.application_bytes + bytes)
    }

    fn has_times(&self) -> bool {
        self.pass.has_times()
    }

    fn reads_ahead(&self) -> bool {
        true
    }
}
