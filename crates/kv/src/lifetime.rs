//! Placement handles by lifetime: blocks that will probably be dropped at about the same time get
//! the same handle.
//!
//! The lifetime of a block, from its write to its drop, is estimated from those of earlier blocks
//! at a similar position in their prompts: the common start of many prompts lives long, the end of
//! one prompt does not.

use crate::policy::positions;
use hybridsim_engine::SimTime;

/// Weight of the newest lifetime in the moving average of its class.
const NEWEST: f64 = 1.0 / 64.0;

/// Estimates of lifetimes by position.
pub struct Lifetimes {
    handles: u8,
    positions: Vec<u32>,
    written: Vec<SimTime>,
    /// By class of positions, the mean lifetime in seconds.
    means: [Option<f64>; 32],
}

impl Lifetimes {
    /// Estimates for the blocks whose predecessors are `parents`; blocks get handles from 0 up to
    /// `handles` - 1.
    pub fn new(handles: u8, parents: &[u32]) -> Self {
        let written = vec![SimTime::ZERO; parents.len()];
        Self { handles: handles.max(1), positions: positions(parents), written, means: [None; 32] }
    }

    /// Positions up to powers of two are a class.
    fn class(&self, block: u32) -> usize {
        let position = self.positions[block as usize];
        (32 - position.leading_zeros()).min(31) as usize
    }

    /// The handle of a block that is written: 0 for the shortest lifetimes.
    pub fn written(&mut self, block: u32, at: SimTime) -> u8 {
        self.written[block as usize] = at;
        let Some(mean) = self.means[self.class(block)].filter(|_| self.handles > 1) else {
            return 0;
        };
        let known = || self.means.iter().flatten().copied();
        let shortest = known().fold(f64::INFINITY, f64::min);
        let longest = known().fold(0.0, f64::max);
        if longest <= shortest * 1.01 {
            return 0;
        }
        let share = libm::log(mean / shortest) / libm::log(longest / shortest);
        ((share * f64::from(self.handles)) as u8).min(self.handles - 1)
    }

    /// A block was dropped.
    pub fn dropped(&mut self, block: u32, at: SimTime) {
        let lifetime = at.since(self.written[block as usize]).as_s_f64().max(1e-3);
        let mean = &mut self.means[self.class(block)];
        *mean = Some(mean.map_or(lifetime, |mean| mean + NEWEST * (lifetime - mean)));
    }
}
