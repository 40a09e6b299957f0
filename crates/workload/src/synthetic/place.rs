//! Where requests go: a region of the device, walks through it, and which parts of it are popular.

use super::GeneratorInput;
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_engine::sample::{Zipf, standard_normal};
use hybridsim_engine::{SECTOR_BYTES, Stream};

/// Start of the region.
pub const START: Param =
    Param::with("start", Kind::Bytes, "\"0B\"", "First byte of the region that is used.");
/// Size of the region.
pub const SIZE: Param = Param::optional(
    "size",
    Kind::Bytes,
    "Bytes of the region that is used; up to the end of the device when absent.",
);

/// A range of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First sector.
    pub start: u64,
    /// Number of sectors.
    pub sectors: u64,
}

impl Region {
    /// Sectors 0 to `sectors`.
    pub const fn whole(sectors: u64) -> Self {
        Self { start: 0, sectors }
    }

    /// The first sector after it.
    pub const fn end(&self) -> u64 {
        self.start + self.sectors
    }

    /// Reads `start` and `size`. The region has room for `request_sectors` and lies within the
    /// device; where that cannot be, a problem is added and the device itself is returned.
    pub(crate) fn read(
        input: &GeneratorInput<'_>,
        request_sectors: u64,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let capacity = input.capacity_sectors;
        let start = input.settings.bytes("start");
        let size = input.settings.bytes_opt("size");
        for (name, bytes) in [("start", Some(start)), ("size", size)] {
            if bytes.is_some_and(|bytes| !bytes.is_multiple_of(SECTOR_BYTES)) {
                problems.push(Problem::new(name, "must be a multiple of 512 bytes"));
            }
        }
        let start = start / SECTOR_BYTES;
        let sectors = size.map_or(capacity.saturating_sub(start), |bytes| bytes / SECTOR_BYTES);
        let whole = Self::whole(capacity);
        if start.checked_add(sectors).is_none_or(|end| end > capacity) {
            let message = format!(
                "the region of {sectors} sectors from {start} does not fit the device of \
                 {capacity} sectors"
            );
            problems.push(Problem::new("size", message));
            return whole;
        }
        if sectors < request_sectors.max(1) {
            let message = format!(
                "the region has {sectors} sectors, the largest request {request_sectors}: use a \
                 larger region or device, or smaller requests"
            );
            problems.push(Problem::new("size", message));
            return whole;
        }
        Self { start, sectors }
    }
}

/// Reads a size in bytes that must be a whole number of sectors, at least one, below 2^32.
pub(crate) fn sectors_of(
    input: &GeneratorInput<'_>,
    name: &'static str,
    problems: &mut Vec<Problem>,
) -> u32 {
    let bytes = input.settings.bytes(name);
    match u32::try_from(bytes / SECTOR_BYTES) {
        Ok(sectors) if sectors > 0 && bytes.is_multiple_of(SECTOR_BYTES) => sectors,
        _ => {
            let message = format!("{bytes} bytes: must be a multiple of 512 below 2 TiB");
            problems.push(Problem::new(name, message));
            8
        }
    }
}

/// A fixed one-to-one shuffle of `0..n`, so that popular things do not lie side by side.
///
/// Rank `r` goes to `(r * multiplier) mod n` with a multiplier near the golden section of `n`:
/// neighbouring ranks land far apart, and no table is needed.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    n: u64,
    multiplier: u64,
}

impl Scatter {
    /// A shuffle of `0..n`; `n` at least 1.
    pub fn new(n: u64) -> Self {
        let n = n.max(1);
        let mut multiplier = ((n as f64 * 0.618_033_988_749_894_9) as u64).max(1);
        while common_divisor(multiplier, n) != 1 {
            multiplier -= 1;
        }
        Self { n, multiplier }
    }

    /// Leaves everything where it is.
    pub const fn identity(n: u64) -> Self {
        Self { n, multiplier: 1 }
    }

    /// Where `rank` goes.
    #[inline]
    pub fn place(&self, rank: u64) -> u64 {
        if self.n <= u64::from(u32::MAX) {
            return rank % self.n * self.multiplier % self.n;
        }
        (u128::from(rank) * u128::from(self.multiplier) % u128::from(self.n)) as u64
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A one-to-one shuffle of `0..n` that looks random: each value once, without a table.
///
/// A Feistel network over the next power of four, walked until the value is in range
/// (Black and Rogaway 2002, cycle walking); fewer than four steps on average.
#[derive(Clone, Copy, Debug)]
pub struct Shuffle {
    n: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Shuffle {
    /// A shuffle of `0..n` with keys drawn from `stream`; `n` at least 1.
    pub fn new(n: u64, stream: &mut Stream) -> Self {
        let n = n.max(1);
        let bits = 64 - (n - 1).leading_zeros();
        let keys = std::array::from_fn(|_| stream.bits());
        Self { n, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// Where `index` (below `n`) goes.
    #[inline]
    pub fn place(&self, index: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let mut value = index;
        loop {
            let (mut left, mut right) = (value >> self.half_bits, value & mask);
            for key in self.keys {
                let mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
                (left, right) = (right, left ^ (mixed & mask));
            }
            value = (left << self.half_bits) | right;
            if value < self.n {
                return value;
            }
        }
    }
}

/// Which of `n` slots a random request goes to.
#[derive(Clone, Debug)]
pub enum Popularity {
    /// All alike.
    Uniform(u64),
    /// Zipf, popular slots scattered.
    Zipf(Zipf, Scatter),
    /// Slot `(n - 1) u^power`, scattered: the self-similar distribution fio calls Pareto.
    Pareto {
        /// Number of slots.
        n: u64,
        /// `ln h / ln (1 - h)`: the share `1 - h` of accesses goes to the share `h` of slots.
        power: f64,
        /// Where popular slots lie.
        scatter: Scatter,
    },
    /// Normal around the middle of the region; draws outside are repeated.
    Normal {
        /// Number of slots.
        n: u64,
        /// Standard deviation in slots.
        stddev: f64,
    },
    /// Parts of the region, each with its share of accesses.
    Zoned(Vec<Zone>),
}

/// A part of the region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// Share of accesses to this zone and those before it, 0 to 1.
    pub accesses_up_to: f64,
    /// First slot.
    pub start: u64,
    /// Number of slots.
    pub slots: u64,
}

impl Popularity {
    /// Zipf with exponent `theta` over `n` slots.
    pub fn zipf(n: u64, theta: f64) -> Self {
        Self::Zipf(Zipf::new(n, theta), Scatter::new(n))
    }

    /// The share `h` of slots gets the share `1 - h` of accesses; `h` between 0 and 1, not 0.5.
    pub fn pareto(n: u64, h: f64) -> Self {
        let power = libm::log(h) / libm::log(1.0 - h);
        Self::Pareto { n, power, scatter: Scatter::new(n) }
    }

    /// Draws a slot.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        match self {
            Self::Uniform(n) => stream.below(*n),
            Self::Zipf(zipf, scatter) => scatter.place(zipf.draw(stream)),
            Self::Pareto { n, power, scatter } => {
                let rank = (n - 1) as f64 * libm::pow(stream.unit(), *power);
                scatter.place((rank as u64).min(n - 1))
            }
            Self::Normal { n, stddev } => loop {
                let slot = libm::floor(*n as f64 / 2.0 + stddev * standard_normal(stream));
                if slot >= 0.0 && slot < *n as f64 {
                    return (slot as u64).min(n - 1);
                }
            },
            Self::Zoned(zones) => {
                let at = stream.unit();
                let zone = zones.iter().find(|zone| at < zone.accesses_up_to);
                let zone = zone.or(zones.last()).expect("a zoned distribution has zones");
                zone.start + stream.below(zone.slots)
            }
        }
    }
}

/// Lays requests one after the other or jumps, and keeps the share of jumps exact.
///
/// A run that meets the end of the region has to jump although it should not; the next jump is
/// then left out in return.
#[derive(Clone, Debug)]
pub struct Walk {
    region: Region,
    end: Option<u64>,
    forced: u64,
}

impl Walk {
    /// A walk in `region`.
    pub const fn new(region: Region) -> Self {
        Self { region, end: None, forced: 0 }
    }

    /// First sector of a request of `sectors` that follows the one before (`contiguous`) or goes
    /// where `jump` says (sectors from the start of the region; cut to fit).
    pub fn place(&mut self, sectors: u32, contiguous: bool, mut jump: impl FnMut() -> u64) -> u64 {
        let sectors = u64::from(sectors);
        let follows = self.end.filter(|end| end + sectors <= self.region.end());
        let lba = match (follows, contiguous || self.forced > 0) {
            (Some(end), true) => {
                self.forced -= u64::from(!contiguous);
                end
            }
            (None, true) if contiguous && self.end.is_some() => {
                self.forced += 1;
                self.jump(sectors, &mut jump)
            }
            _ => self.jump(sectors, &mut jump),
        };
        self.end = Some(lba + sectors);
        lba
    }

    /// Jumps to anywhere but where the request before ended, as far as the region allows.
    fn jump(&self, sectors: u64, jump: &mut impl FnMut() -> u64) -> u64 {
        let last = self.region.sectors - sectors;
        let mut lba = 0;
        for _ in 0..8 {
            lba = self.region.start + jump().min(last);
            if self.end != Some(lba) {
                break;
            }
        }
        lba
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_are_one_to_one() {
        for n in [1, 2, 3, 4, 5, 7, 8, 100, 1023, 1024, 1025, 5000] {
            let shuffle = Shuffle::new(n, &mut Stream::new(1, "shuffle"));
            let scatter = Scatter::new(n);
            for place in [&(|i| shuffle.place(i)) as &dyn Fn(u64) -> u64, &|i| scatter.place(i)] {
                let mut seen = vec![false; n as usize];
                (0..n).for_each(|index| seen[place(index) as usize] = true);
                assert!(seen.iter().all(|&seen| seen), "{n}");
            }
        }
    }

    #[test]
    fn scatter_works_beyond_32_bits() {
        let scatter = Scatter::new(1 << 40);
        assert!(scatter.place((1 << 40) - 1) < 1 << 40);
        assert!(scatter.place(1).abs_diff(scatter.place(2)) > 1 << 30);
    }

    #[test]
    fn pareto_gives_the_share_it_names() {
        // h = 0.2: 80 % of accesses to 20 % of slots.
        let n = 1000;
        let popularity = Popularity::pareto(n, 0.2);
        let mut stream = Stream::new(2, "pareto");
        let mut counts = vec![0u32; n as usize];
        (0..200_000).for_each(|_| counts[popularity.draw(&mut stream) as usize] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let top: u32 = counts[..200].iter().sum();
        assert!((f64::from(top) / 200_000.0 - 0.8).abs() < 0.01, "{top}");
    }

    #[test]
    fn a_walk_keeps_its_share_of_jumps_across_the_end() {
        let mut stream = Stream::new(4, "walk");
        let mut dice = Stream::new(4, "dice");
        let mut walk = Walk::new(Region { start: 100, sectors: 1000 });
        let (mut end, mut jumps, n) = (0, 0, 50_000);
        for _ in 0..n {
            let contiguous = !dice.chance(0.2);
            let lba = walk.place(8, contiguous, || stream.below(125) * 8);
            assert!(lba >= 100 && lba + 8 <= 1100);
            jumps += u32::from(lba != end);
            end = lba + 8;
        }
        let share = f64::from(jumps) / f64::from(n);
        assert!((share - 0.2).abs() < 0.005, "{share}");
    }
}
