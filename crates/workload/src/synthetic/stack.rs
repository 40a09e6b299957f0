//! Temporal locality by stack distances: how many other slots were requested since the last
//! request of a slot.
//!
//! Slots are kept in the order of their last request (the LRU stack). A request draws a depth and
//! goes to the slot at that depth, which moves to the top. An LRU cache of n slots then has a hit
//! ratio equal to the probability of a depth below n, whatever the skew of popularity that results.

use crate::fenwick::Fenwick;
use hybridsim_engine::{Permutation, Stream};

/// The distribution of depths: piecewise log-uniform.
#[derive(Clone, Debug)]
pub struct Depths {
    /// (share of requests with a depth below this, depth), ascending; the last share is 1.
    points: Vec<(f64, f64)>,
}

impl Depths {
    /// `shares[i]` of requests have a depth below `scale * depths[i]`; the rest is spread up to
    /// `slots`.
    ///
    /// # Errors
    /// The problem of the lists.
    pub fn new(depths: &[f64], shares: &[f64], scale: f64, slots: u64) -> Result<Self, String> {
        if depths.len() != shares.len() {
            return Err(format!("{} depths, but {} shares", depths.len(), shares.len()));
        }
        let ascending = |values: &[f64]| values.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending(depths) || depths.first().is_some_and(|depth| *depth < 1.0) {
            return Err("depths must be ascending, from 1".to_owned());
        }
        let in_range = shares.iter().all(|share| (0.0..=1.0).contains(share));
        if !in_range || !shares.is_sorted() {
            return Err("shares must be ascending, from 0 to 1".to_owned());
        }
        let all = slots as f64;
        let scaled = depths.iter().map(|depth| depth * scale);
        let mut points: Vec<(f64, f64)> = shares.iter().copied().zip(scaled).collect();
        match points.last() {
            Some((_, depth)) if *depth > all => {
                return Err(format!(
                    "the greatest depth, {depth}, is beyond the {slots} blocks of 4 KiB of the \
                     region: enlarge `span`, or scale all depths with `stack_scale`"
                ));
            }
            Some((share, depth)) if *depth == all && *share < 1.0 => {
                return Err(format!(
                    "the greatest depth is all {slots} blocks of 4 KiB of the region, so its \
                     share must be 1"
                ));
            }
            Some((_, depth)) if *depth == all => {}
            _ => points.push((1.0, all)),
        }
        join_below_one(&mut points);
        Ok(Self { points })
    }

    /// Draws a depth, from 0.
    fn draw(&self, stream: &mut Stream) -> u64 {
        let at = stream.unit();
        let next = self.points.iter().position(|(share, _)| at < *share);
        let next = next.unwrap_or(self.points.len() - 1);
        let (high_share, high) = self.points[next];
        let (low_share, low) = match next {
            0 => (0.0, 1.0),
            _ => self.points[next - 1],
        };
        let within = (at - low_share) / (high_share - low_share).max(f64::MIN_POSITIVE);
        if next == 0 {
            // Depths from 0 to the first one are equally likely.
            return (within * high) as u64;
        }
        let depth = low * libm::pow(high / low, within);
        (depth as u64).clamp(low as u64, (high as u64).max(1) - 1)
    }
}

/// Replaces points below a depth of 1, all of which are depth 0, by one at 1.
fn join_below_one(points: &mut Vec<(f64, f64)>) {
    let below = points.iter().take_while(|(_, depth)| *depth < 1.0).count();
    if let Some(at) = below.checked_sub(1)
        && let Some((high_share, high)) = points.get(below).copied()
    {
        let (share, depth) = points[at];
        let within = libm::log(1.0 / depth) / libm::log(high / depth);
        let at_one = share + (high_share - share) * within;
        points.splice(..below, (high > 1.0).then_some((at_one, 1.0)));
    }
}

/// Slots in the order of their last request.
#[derive(Clone, Debug)]
pub struct LruStack {
    depths: Depths,
    /// By position, the slot. Later is more recent.
    slot_at: Vec<u32>,
    in_use: Fenwick,
    slots: u32,
    /// Place of the next slot.
    next: u32,
}

impl LruStack {
    /// All of `slots` slots in random order.
    pub fn new(slots: u32, depths: Depths, stream: &mut Stream) -> Self {
        let order = Permutation::new(u64::from(slots), stream);
        let positions = 2 * slots as usize;
        let mut slot_at = Vec::with_capacity(positions);
        slot_at.extend((0..slots).map(|at| order.map(u64::from(at)) as u32));
        slot_at.resize(positions, 0);
        let in_use = Fenwick::from_ones(positions, slots as usize);
        Self { depths, slot_at, in_use, slots, next: slots }
    }

    /// The slot at a drawn depth, which moves to the top.
    pub fn draw(&mut self, stream: &mut Stream) -> u64 {
        let depth = self.depths.draw(stream).min(u64::from(self.slots) - 1) as u32;
        let position = self.in_use.select(self.slots - 1 - depth);
        let slot = self.slot_at[position as usize];
        self.in_use.add(position, -1);
        if self.next as usize == self.slot_at.len() {
            self.compact(position);
        }
        self.slot_at[self.next as usize] = slot;
        self.in_use.add(self.next, 1);
        self.next += 1;
        u64::from(slot)
    }

    /// Moves the slots in use to the beginning, in order; the one at `free` is not in use.
    fn compact(&mut self, free: u32) {
        let mut to = 0;
        for rank in 0..self.slots - 1 {
            let from = self.in_use.select(rank);
            debug_assert_ne!(from, free);
            self.slot_at[to] = self.slot_at[from as usize];
            to += 1;
        }
        self.next = to as u32;
        self.in_use.set_ones(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(slots: u32, depths: &[f64], shares: &[f64]) -> (LruStack, Stream) {
        let mut stream = Stream::new(3, "stack");
        let depths = Depths::new(depths, shares, 1.0, u64::from(slots)).expect("ascending");
        (LruStack::new(slots, depths, &mut stream), stream)
    }

    #[test]
    fn it_agrees_with_a_list() {
        for (slots, points) in [(1, 0), (2, 0), (3, 1), (50, 2)] {
            let (mut stack, mut stream) =
                stack(slots, &[2.0, 10.0][..points], &[0.3, 0.7][..points]);
            let mut list: Vec<u64> = (0..slots as usize)
                .rev()
                .map(|position| u64::from(stack.slot_at[position]))
                .collect();
            for _ in 0..1_000 {
                let mut same = stream.clone();
                let depth = stack.depths.draw(&mut same).min(u64::from(slots) - 1);
                let slot = list.remove(depth as usize);
                list.insert(0, slot);
                assert_eq!(stack.draw(&mut stream), slot);
            }
        }
    }

    #[test]
    fn hit_ratios_are_the_shares() {
        let depths = [1.0, 16.0, 256.0];
        let shares = [0.1, 0.4, 0.6];
        let (mut stack, mut stream) = stack(10_000, &depths, &shares);
        let mut recent: Vec<u64> = Vec::new();
        let mut hits = [0u32; 3];
        for _ in 0..40_000 {
            let slot = stack.draw(&mut stream);
            let depth = recent.iter().position(|other| *other == slot);
            if let Some(depth) = depth {
                recent.remove(depth);
                for (hits, below) in hits.iter_mut().zip(depths) {
                    *hits += u32::from((depth as f64) < below);
                }
            }
            recent.insert(0, slot);
            recent.truncate(300);
        }
        for (hits, share) in hits.into_iter().zip(shares) {
            assert!((f64::from(hits) / 40_000.0 - share).abs() < 0.01, "{hits} {share}");
        }
    }

    #[test]
    fn lists_are_checked() {
        let new = |depths: &[f64], shares: &[f64]| Depths::new(depths, shares, 1.0, 100);
        assert!(new(&[1.0], &[]).is_err());
        assert!(new(&[2.0, 1.0], &[0.1, 0.2]).is_err());
        assert!(new(&[1.0, 2.0], &[0.2, 0.1]).is_err());
        assert!(new(&[1.0], &[1.1]).is_err());
        assert!(new(&[], &[]).is_ok(), "then every slot is equally likely");
    }

    #[test]
    fn no_depth_is_beyond_the_region() {
        let new = |depth: f64, share: f64, scale: f64| {
            Depths::new(&[1.0, depth], &[0.1, share], scale, 100)
        };
        let message = new(101.0, 0.5, 1.0).expect_err("beyond the region");
        assert!(message.contains("101") && message.contains("stack_scale"), "{message}");
        let message = new(100.0, 0.5, 1.0).expect_err("the rest has no depth");
        assert!(message.contains("share must be 1"), "{message}");
        assert!(new(100.0, 1.0, 1.0).is_ok());
        assert!(new(1600.0, 0.5, 1.0 / 32.0).is_ok());
        assert!(new(60.0, 0.5, 2.0).is_err());
    }

    #[test]
    fn scaled_depths_are_those_of_a_smaller_region() {
        let share_of_top = |depths: &[f64], shares: &[f64], scale: f64| {
            let depths = Depths::new(depths, shares, scale, 1000).expect("ascending");
            let mut stream = Stream::new(3, "depths");
            let drawn = (0..40_000).filter(|_| depths.draw(&mut stream) == 0).count();
            drawn as f64 / 40_000.0
        };
        let (depths, shares) = ([1.0, 4.0, 16.0, 256.0], [0.1, 0.2, 0.4, 0.8]);
        for (scale, expected) in [(1.0, 0.1), (0.25, 0.2), (0.125, 0.3), (0.0625, 0.4)] {
            let share = share_of_top(&depths, &shares, scale);
            assert!((share - expected).abs() < 0.01, "{scale}: {share}");
        }
    }
}
