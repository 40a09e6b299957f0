//! Numbers in order of their last use: a list in which a number moves to the end in constant time.

/// A doubly linked list of the numbers below `n`; entry `n` is the sentinel.
#[derive(Debug, Default)]
pub(super) struct Order {
    links: Vec<Links>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Links {
    before: u32,
    after: u32,
}

impl Order {
    /// `numbers`, each number below their count once, the least recently used first.
    pub fn new(numbers: impl ExactSizeIterator<Item = u32>) -> Self {
        let end = numbers.len() as u32;
        let mut order = Self { links: vec![Links { before: end, after: end }; end as usize + 1] };
        numbers.for_each(|number| order.insert_last(number));
        order
    }

    #[inline]
    fn insert_last(&mut self, number: u32) {
        let end = self.links.len() as u32 - 1;
        let last = self.links[end as usize].before;
        self.links[number as usize] = Links { before: last, after: end };
        self.links[last as usize].after = number;
        self.links[end as usize].before = number;
    }

    /// `number` is the most recently used.
    #[inline]
    pub fn move_last(&mut self, number: u32) {
        let Links { before, after } = self.links[number as usize];
        if after as usize == self.links.len() - 1 {
            return;
        }
        self.links[before as usize].after = after;
        self.links[after as usize].before = before;
        self.insert_last(number);
    }

    /// All of them, the least recently used first.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let end = self.links.len().saturating_sub(1) as u32;
        let mut at = end;
        std::iter::from_fn(move || {
            at = self.links.get(at as usize)?.after;
            (at != end).then_some(at)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_is_first() {
        let mut order = Order::new([2, 0, 1].into_iter());
        let mut expected = vec![2, 0, 1];
        let mut stream = hybridsim_engine::Stream::new(1, "order");
        for _ in 0..100 {
            assert!(order.iter().eq(expected.iter().copied()));
            let used = stream.below(3) as u32;
            order.move_last(used);
            expected.retain(|number| *number != used);
            expected.push(used);
        }
        assert_eq!(Order::new(0..0).iter().count(), 0);
    }
}
