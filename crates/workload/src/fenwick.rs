//! A Fenwick tree: counts by position, with sums and searches in logarithmic time.

/// A count at each position.
#[derive(Clone, Debug)]
pub struct Fenwick {
    /// Node `i` is the sum of the positions from `i - (i & -i)` to `i - 1`.
    nodes: Vec<u32>,
}

impl Fenwick {
    /// `len` positions, the first `ones` of which count 1 and the others 0.
    pub fn from_ones(len: usize, ones: usize) -> Self {
        let mut tree = Self { nodes: vec![0; len + 1] };
        tree.set_ones(ones);
        tree
    }

    /// The first `ones` positions count 1 and the others 0.
    pub fn set_ones(&mut self, ones: usize) {
        for (at, node) in self.nodes.iter_mut().enumerate().skip(1) {
            let first = at & (at - 1);
            *node = (at.min(ones).max(first) - first) as u32;
        }
    }

    /// Number of positions.
    pub fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Adds `by` at `position`.
    pub fn add(&mut self, position: u32, by: i32) {
        let mut at = position as usize + 1;
        while at < self.nodes.len() {
            self.nodes[at] = self.nodes[at].wrapping_add_signed(by);
            at += at & at.wrapping_neg();
        }
    }

    /// The sum of the counts up to `position` and of itself.
    pub fn up_to(&self, position: u32) -> u32 {
        let (mut at, mut sum) = (position as usize + 1, 0);
        while at > 0 {
            sum += self.nodes[at];
            at &= at - 1;
        }
        sum
    }

    /// The first position with a sum above `rank`.
    pub fn select(&self, mut rank: u32) -> u32 {
        let mut at = 0;
        let mut step = self.len().next_power_of_two();
        while step > 0 {
            if at + step < self.nodes.len() && self.nodes[at + step] <= rank {
                at += step;
                rank -= self.nodes[at];
            }
            step /= 2;
        }
        at as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Stream;

    #[test]
    fn it_agrees_with_a_list() {
        let mut stream = Stream::new(1, "fenwick");
        for len in [1, 2, 7, 8, 100] {
            for ones in [0, len / 2, len] {
                let mut tree = Fenwick::from_ones(len, ones);
                let mut list: Vec<u32> = (0..len).map(|at| u32::from(at < ones)).collect();
                assert_eq!(tree.len(), len);
                for _ in 0..50 {
                    let at = stream.below(len as u64) as usize;
                    let by = if list[at] > 0 && stream.chance(0.5) { -1 } else { 1 };
                    tree.add(at as u32, by);
                    list[at] = list[at].wrapping_add_signed(by);
                    let sum = |to: usize| list[..=to].iter().sum::<u32>();
                    assert!((0..len).all(|to| tree.up_to(to as u32) == sum(to)));
                    for rank in 0..sum(len - 1) {
                        let first = (0..len).find(|to| sum(*to) > rank);
                        assert_eq!(Some(tree.select(rank) as usize), first);
                    }
                }
            }
        }
    }
}
