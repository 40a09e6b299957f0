//! The number of tokens in a block, from the lengths of prompts and their numbers of blocks.

/// Bounds on the number of tokens in a block, as requests narrow them.
pub(super) struct BlockSize {
    /// With a partial last block that has a name, and without.
    partial: Bounds,
    whole: Bounds,
}

#[derive(Clone, Copy)]
struct Bounds {
    least: u64,
    most: u64,
}

impl Bounds {
    const ALL: Self = Self { least: 1, most: u32::MAX as u64 };

    fn narrow(&mut self, least: u64, most: u64) {
        self.least = self.least.max(least);
        self.most = self.most.min(most);
    }

    /// The size within the bounds: the only one, or the only power of two.
    fn size(self) -> Option<u32> {
        let power = self.least.next_power_of_two();
        let size = match self.most.checked_sub(self.least)? {
            0 => self.least,
            _ if power <= self.most && 2 * power > self.most => power,
            _ => return None,
        };
        u32::try_from(size).ok()
    }
}

impl Default for BlockSize {
    fn default() -> Self {
        Self { partial: Bounds::ALL, whole: Bounds::ALL }
    }
}

impl BlockSize {
    /// A prompt of `tokens` has `blocks` blocks.
    pub fn narrow(&mut self, tokens: u64, blocks: u64) {
        if blocks == 0 {
            return;
        }
        let most = tokens.saturating_sub(1).checked_div(blocks - 1).unwrap_or(u64::MAX);
        self.partial.narrow(tokens.div_ceil(blocks), most);
        self.whole.narrow(tokens / (blocks + 1) + 1, tokens / blocks);
    }

    /// The number of tokens in a block, if it is determined. Only where no size fits partial blocks
    /// with names are all blocks whole.
    pub fn size(&self) -> Option<u32> {
        let partial_fits = self.partial.least <= self.partial.most;
        if partial_fits { self.partial.size() } else { self.whole.size() }
    }
}

/// Whether a prompt of `tokens` may have `blocks` blocks of `size` tokens: all, without the partial
/// last one, or none.
pub(super) fn fits(tokens: u64, blocks: u64, size: u32) -> bool {
    let size = u64::from(size);
    blocks == 0 || blocks == tokens.div_ceil(size) || blocks == tokens / size
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(requests: &[(u64, u64)]) -> Option<u32> {
        let mut size = BlockSize::default();
        requests.iter().for_each(|&(tokens, blocks)| size.narrow(tokens, blocks));
        size.size()
    }

    #[test]
    fn block_sizes_follow_from_lengths() {
        assert_eq!(size(&[(6758, 14), (7322, 15), (7236, 15)]), Some(512));
        assert_eq!(size(&[(521, 33), (70, 5)]), Some(16));
        assert_eq!(size(&[(521, 32), (63, 3), (31, 1)]), Some(16));
        assert_eq!(size(&[(1000, 10), (1001, 11), (1099, 11)]), Some(100));
        assert_eq!(size(&[(1000, 1)]), None);
        assert_eq!(size(&[(1000, 10), (10, 10)]), None);
        assert_eq!(size(&[]), None);
    }
}
