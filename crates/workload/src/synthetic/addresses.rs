//! Addresses of requests: a region of the device, sequential runs in it, and popularity.

use super::GeneratorInput;
use hybridsim_config::param::{Kind, Problem};
use hybridsim_engine::sample::{Zipf, standard_normal};
use hybridsim_engine::{SECTOR_BYTES, Stream};

/// A range of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First sector.
    pub start: u64,
    pub sectors: u64,
}

hybridsim_config::params! {
    pub struct RegionParameters {
        pub(crate) start: u64 = Kind::Bytes, default "\"0B\"", "First byte of the region used.";
        pub(crate) span: Option<u64> = Kind::Bytes, optional,
            "Bytes of the region used (not of a request); up to the end of the device when absent.";
    }
}

impl Region {
    pub const fn whole(sectors: u64) -> Self {
        Self { start: 0, sectors }
    }

    /// The first sector after it.
    pub const fn end(&self) -> u64 {
        self.start + self.sectors
    }

    /// The region of `params`. Where the region is not within the device or smaller than
    /// `request_sectors`, adds a problem and returns the whole device.
    pub(crate) fn new(
        input: &GeneratorInput<'_>,
        params: &RegionParameters,
        request_sectors: u64,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let capacity = input.capacity_sectors;
        let RegionParameters { start, span } = *params;
        for (name, bytes) in [("start", Some(start)), ("span", span)] {
            if bytes.is_some_and(|bytes| !bytes.is_multiple_of(SECTOR_BYTES)) {
                problems.push(Problem::new(name, "must be a multiple of 512 bytes"));
            }
        }
        let start = start / SECTOR_BYTES;
        let sectors = span.map_or(capacity.saturating_sub(start), |bytes| bytes / SECTOR_BYTES);
        let whole = Self::whole(capacity);
        if start.checked_add(sectors).is_none_or(|end| end > capacity) {
            let message = format!(
                "the region of {sectors} sectors from {start} is not within the device of \
                 {capacity} sectors"
            );
            problems.push(Problem::new("span", message));
            return whole;
        }
        if sectors < request_sectors.max(1) {
            let message = format!(
                "the region has {sectors} sectors, the largest request {request_sectors}: use a \
                 larger region or device, or smaller requests"
            );
            problems.push(Problem::new("span", message));
            return whole;
        }
        Self { start, sectors }
    }
}

/// The sectors of parameter `name`, whose `bytes` must be a whole number of sectors, at least one,
/// below 2^32.
pub(crate) fn sectors_of(name: &'static str, bytes: u64, problems: &mut Vec<Problem>) -> u32 {
    match u32::try_from(bytes / SECTOR_BYTES) {
        Ok(sectors) if sectors > 0 && bytes.is_multiple_of(SECTOR_BYTES) => sectors,
        _ => {
            let message = format!("{bytes} bytes: must be a multiple of 512 below 2 TiB");
            problems.push(Problem::new(name, message));
            8
        }
    }
}

/// A fixed permutation of `0..n`, so that popular blocks are not adjacent.
///
/// Maps rank `r` to `(r * multiplier) mod n` with a multiplier near the golden section of `n`:
/// neighbouring ranks are far apart, and no table is needed.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    n: u64,
    multiplier: u64,
}

impl Scatter {
    pub fn new(n: u64) -> Self {
        let n = n.max(1);
        let mut multiplier = ((n as f64 * 0.618_033_988_749_894_9) as u64).max(1);
        while common_divisor(multiplier, n) != 1 {
            multiplier -= 1;
        }
        Self { n, multiplier }
    }

    /// Maps every rank to itself unless ranks are `scattered`.
    pub fn of(n: u64, scattered: bool) -> Self {
        if scattered { Self::new(n) } else { Self { n, multiplier: 1 } }
    }

    #[inline]
    pub fn map(&self, rank: u64) -> u64 {
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

/// The distribution of random requests over `n` slots.
#[derive(Clone, Debug)]
pub enum Popularity {
    Uniform(u64),
    /// Zipf, popular slots scattered.
    Zipf {
        zipf: Zipf,
        /// Neighbouring ranks that share a slot.
        ranks_per_block: u64,
        scatter: Scatter,
    },
    /// The first of `n` ranks are hot and share their accesses evenly, as do the others.
    Hot {
        n: u64,
        hot: u64,
        /// Share of accesses to the hot ranks.
        probability: f64,
        scatter: Scatter,
    },
    /// Slot `(n - 1) u^power`, scattered: the self-similar distribution fio calls Pareto.
    Pareto {
        /// Number of slots.
        n: u64,
        /// `ln h / ln (1 - h)`: the share `1 - h` of accesses goes to the share `h` of slots.
        power: f64,
        scatter: Scatter,
    },
    /// Normal around the middle of the region; values outside it are drawn again.
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
        Self::Zipf { zipf: Zipf::new(n, theta), ranks_per_block: 1, scatter: Scatter::new(n) }
    }

    /// The share `h` of slots gets the share `1 - h` of accesses; `h` between 0 and 1, not 0.5.
    pub fn pareto(n: u64, h: f64) -> Self {
        let power = libm::log(h) / libm::log(1.0 - h);
        Self::Pareto { n, power, scatter: Scatter::new(n) }
    }

    /// Draws a slot.
    #[inline(always)]
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        match self {
            Self::Uniform(n) => stream.below(*n),
            Self::Zipf { zipf, ranks_per_block, scatter } => {
                scatter.map(zipf.draw(stream) / ranks_per_block)
            }
            Self::Hot { n, hot, probability, scatter } => {
                let cold = n - hot;
                scatter.map(match cold == 0 || stream.chance(*probability) {
                    true => stream.below(*hot),
                    false => hot + stream.below(cold),
                })
            }
            Self::Pareto { n, power, scatter } => {
                let rank = (n - 1) as f64 * libm::pow(stream.unit(), *power);
                scatter.map((rank as u64).min(n - 1))
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

/// Places requests sequentially or at random, with an exact share of random ones.
///
/// A sequential request at the end of the region has to be random; the next random one is then
/// sequential instead.
#[derive(Clone, Debug)]
pub struct SequentialRuns {
    region: Region,
    end: Option<u64>,
    forced: u64,
}

impl SequentialRuns {
    pub const fn new(region: Region) -> Self {
        Self { region, end: None, forced: 0 }
    }

    /// First sector of a request of `sectors` that is `contiguous` to the previous one or at offset
    /// `random()` of the region, limited to fit.
    pub fn next_lba(
        &mut self,
        sectors: u32,
        contiguous: bool,
        mut random: impl FnMut() -> u64,
    ) -> u64 {
        let sectors = u64::from(sectors);
        let follows = self.end.filter(|end| end + sectors <= self.region.end());
        let lba = match (follows, contiguous || self.forced > 0) {
            (Some(end), true) => {
                self.forced -= u64::from(!contiguous);
                end
            }
            (None, true) if contiguous && self.end.is_some() => {
                self.forced += 1;
                self.random_lba(sectors, &mut random)
            }
            _ => self.random_lba(sectors, &mut random),
        };
        self.end = Some(lba + sectors);
        lba
    }

    /// A random address other than the end of the previous request, as far as the region allows.
    fn random_lba(&self, sectors: u64, random: &mut impl FnMut() -> u64) -> u64 {
        let last = self.region.sectors - sectors;
        let mut lba = 0;
        for _ in 0..8 {
            lba = self.region.start + random().min(last);
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
    fn scatter_is_a_permutation() {
        for n in [1, 2, 3, 4, 5, 7, 8, 100, 1023, 1024, 1025, 5000] {
            let scatter = Scatter::new(n);
            let mut seen = vec![false; n as usize];
            (0..n).for_each(|index| seen[scatter.map(index) as usize] = true);
            assert!(seen.iter().all(|&seen| seen), "{n}");
        }
    }

    #[test]
    fn scatter_works_beyond_32_bits() {
        let scatter = Scatter::new(1 << 40);
        assert!(scatter.map((1 << 40) - 1) < 1 << 40);
        assert!(scatter.map(1).abs_diff(scatter.map(2)) > 1 << 30);
    }

    #[test]
    fn pareto_has_its_share_of_accesses() {
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
    fn the_share_of_random_requests_is_exact_across_the_end() {
        let mut stream = Stream::new(4, "walk");
        let mut choice = Stream::new(4, "dice");
        let mut runs = SequentialRuns::new(Region { start: 100, sectors: 1000 });
        let (mut end, mut jumps, n) = (0, 0, 50_000);
        for _ in 0..n {
            let contiguous = !choice.chance(0.2);
            let lba = runs.next_lba(8, contiguous, || stream.below(125) * 8);
            assert!(lba >= 100 && lba + 8 <= 1100);
            jumps += u32::from(lba != end);
            end = lba + 8;
        }
        let share = f64::from(jumps) / f64::from(n);
        assert!((share - 0.2).abs() < 0.005, "{share}");
    }
}
