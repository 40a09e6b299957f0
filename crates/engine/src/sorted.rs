//! Waiting requests sorted by (address, arrival), for those that look at neighbours.
//!
//! A treap over a slab: logarithmic like a B-tree, but it takes no memory once it has been as
//! long as it gets. Priorities are a hash of the arrival number, so its shape is reproducible.

use crate::schedule::Queued;

/// Where an item sorts: its position (first sector or cylinder), then its number of arrival.
pub type Key = (u64, u64);

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    priority: u64,
    left: u32,
    right: u32,
    item: Queued,
}

/// The sorted queue.
#[derive(Debug)]
pub struct Sorted {
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: u32,
    arrivals: u64,
}

impl Default for Sorted {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), root: NONE, arrivals: 0 }
    }
}

impl Sorted {
    /// Items in the queue.
    pub fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an item, sorted by its address.
    pub fn push(&mut self, item: Queued) {
        self.push_at(item.request.lba.0, item);
    }

    /// Adds an item, sorted by `position`.
    pub fn push_at(&mut self, position: u64, item: Queued) {
        let key = (position, self.arrivals);
        // The finaliser of SplitMix64.
        let mut priority = self.arrivals.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        priority = (priority ^ (priority >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        priority ^= priority >> 27;
        self.arrivals += 1;
        let node = Node { key, priority, left: NONE, right: NONE, item };
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        self.insert(at);
    }

    /// The first key at or after sector `lba`.
    pub fn at_or_after(&self, lba: u64) -> Option<Key> {
        let (mut at, mut best) = (self.root, None);
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.key >= (lba, 0) {
                best = Some(node.key);
                at = node.left;
            } else {
                at = node.right;
            }
        }
        best
    }

    /// The key that follows `key`.
    pub fn after(&self, key: Key) -> Option<Key> {
        let (mut at, mut best) = (self.root, None);
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.key > key {
                best = Some(node.key);
                at = node.left;
            } else {
                at = node.right;
            }
        }
        best
    }

    /// Of the items with the largest address below `lba`, the key of the one that came first.
    pub fn below(&self, lba: u64) -> Option<Key> {
        let (mut at, mut best) = (self.root, None);
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.key < (lba, 0) {
                best = Some(node.key.0);
                at = node.right;
            } else {
                at = node.left;
            }
        }
        best.and_then(|lba| self.at_or_after(lba))
    }

    /// The item with `key`.
    pub fn get(&self, key: Key) -> Option<&Queued> {
        let mut at = self.root;
        while at != NONE {
            let node = &self.nodes[at as usize];
            match key.cmp(&node.key) {
                std::cmp::Ordering::Less => at = node.left,
                std::cmp::Ordering::Greater => at = node.right,
                std::cmp::Ordering::Equal => return Some(&node.item),
            }
        }
        None
    }

    /// Takes the item with `key` out.
    pub fn take(&mut self, key: Key) -> Option<Queued> {
        // Walk down to it, then replace it by its two subtrees joined.
        let mut link = Link::Root;
        let mut at = self.root;
        while at != NONE && self.nodes[at as usize].key != key {
            link = if key < self.nodes[at as usize].key { Link::Left(at) } else { Link::Right(at) };
            at = self.follow(link);
        }
        if at == NONE {
            return None;
        }
        let Node { left, right, item, .. } = self.nodes[at as usize];
        self.join(link, left, right);
        self.free.push(at);
        Some(item)
    }

    fn follow(&self, link: Link) -> u32 {
        match link {
            Link::Root => self.root,
            Link::Left(of) => self.nodes[of as usize].left,
            Link::Right(of) => self.nodes[of as usize].right,
        }
    }

    fn set(&mut self, link: Link, to: u32) {
        match link {
            Link::Root => self.root = to,
            Link::Left(of) => self.nodes[of as usize].left = to,
            Link::Right(of) => self.nodes[of as usize].right = to,
        }
    }

    /// Puts node `new` where its priority belongs and splits what was there below it.
    fn insert(&mut self, new: u32) {
        let Node { key, priority, .. } = self.nodes[new as usize];
        let mut link = Link::Root;
        let mut at = self.root;
        while at != NONE && self.nodes[at as usize].priority >= priority {
            link = if key < self.nodes[at as usize].key { Link::Left(at) } else { Link::Right(at) };
            at = self.follow(link);
        }
        self.set(link, new);
        let (mut smaller, mut larger) = (Link::Left(new), Link::Right(new));
        while at != NONE {
            if self.nodes[at as usize].key < key {
                self.set(smaller, at);
                smaller = Link::Right(at);
                at = self.follow(smaller);
            } else {
                self.set(larger, at);
                larger = Link::Left(at);
                at = self.follow(larger);
            }
        }
        self.set(smaller, NONE);
        self.set(larger, NONE);
    }

    /// Hangs `left` and `right`, all of the first before all of the second, at `link` as one tree.
    fn join(&mut self, mut link: Link, mut left: u32, mut right: u32) {
        while left != NONE && right != NONE {
            if self.nodes[left as usize].priority >= self.nodes[right as usize].priority {
                self.set(link, left);
                link = Link::Right(left);
                left = self.follow(link);
            } else {
                self.set(link, right);
                link = Link::Left(right);
                right = self.follow(link);
            }
        }
        self.set(link, if left == NONE { right } else { left });
    }
}

#[derive(Clone, Copy)]
enum Link {
    Root,
    Left(u32),
    Right(u32),
}
