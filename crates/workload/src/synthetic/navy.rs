//! A flash cache with an engine for small objects and one for large ones, as the device sees it:
//! CacheLib's Navy.
//!
//! A small object is in a bucket, which an insertion reads and rewrites. Large objects fill
//! regions, which are written as a whole; the victim is the region written or used least recently.
//! All objects of an engine have one size. Removals are left out.

use super::addresses::{Popularity, Region, RegionParameters, sectors_of};
use super::arrivals::{self, Generator, Limits, build_workload};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Flags, Lba, Op, Request, SECTOR_BYTES, Source, Stream};
use std::collections::{BTreeMap, VecDeque};

/// Placement handles of the engines.
const SMALL: u8 = 1;
const LARGE: u8 = 2;

/// Buckets of small objects; each keeps the newest.
struct Buckets {
    start: u64,
    sectors: u32,
    buckets: u64,
    /// Objects of a bucket, the newest first, as their key + 1; 0 is none. Empty without lookups.
    held: Vec<u32>,
    per_bucket: usize,
}

/// A hash of `key`.
fn hash(key: u64) -> u64 {
    let mixed = (key ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl Buckets {
    fn bucket(&self, key: u64) -> u64 {
        hash(key) % self.buckets
    }

    fn objects(&mut self, bucket: u64) -> &mut [u32] {
        let first = bucket as usize * self.per_bucket;
        self.held.get_mut(first..first + self.per_bucket).unwrap_or_default()
    }

    fn holds(&mut self, key: u64) -> bool {
        let bucket = self.bucket(key);
        self.objects(bucket).contains(&(key as u32 + 1))
    }

    fn request(&self, op: Op, key: u64) -> Request {
        let lba = self.start + self.bucket(key) * u64::from(self.sectors);
        Request::new(op, Lba(lba), self.sectors)
    }

    fn insert(&mut self, key: u64) {
        let bucket = self.bucket(key);
        let objects = self.objects(bucket);
        let own = objects.iter().position(|held| *held == key as u32 + 1);
        if let Some(last) = own.or(objects.len().checked_sub(1)) {
            objects[..=last].rotate_right(1);
            objects[0] = key as u32 + 1;
        }
    }
}

/// Place of a large object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Nowhere,
    /// In memory, for the next region.
    Buffer,
    /// In a region, at a place among its objects.
    Region(u32, u32),
}

/// A large object that lookups may find.
#[derive(Clone, Copy, Default)]
struct Held {
    place: Place,
    hit: bool,
}

/// Regions of large objects. Objects are followed where there are lookups.
struct Regions {
    start: u64,
    /// Sectors of a region, and of a write to it.
    sectors: u32,
    block: u32,
    object_sectors: u32,
    per_region: usize,
    /// By key; empty without lookups.
    held: Vec<Held>,
    /// Keys of each region, in order of their place; empty without lookups.
    keys: Vec<Vec<u32>>,
    /// Regions in order of the victims, by the time of their last write or use.
    order: BTreeMap<u64, u32>,
    /// By region.
    times: Vec<u64>,
    clock: u64,
    lru: bool,
    reinserts: bool,
    /// Objects for the next region, in memory.
    buffer: Vec<u32>,
}

impl Regions {
    /// The outcome of a lookup: a miss, a hit in memory, or a read.
    fn look_up(&mut self, key: u64) -> Option<Option<Request>> {
        let held = self.held.get_mut(key as usize)?;
        held.hit = true;
        match held.place {
            Place::Nowhere => None,
            Place::Buffer => Some(None),
            Place::Region(region, place) => {
                if self.lru {
                    self.touch(region);
                }
                let within = u64::from(place) * u64::from(self.object_sectors);
                let lba = self.start + u64::from(region) * u64::from(self.sectors) + within;
                Some(Some(Request::new(Op::Read, Lba(lba), self.object_sectors)))
            }
        }
    }

    /// Makes `region` the last victim.
    fn touch(&mut self, region: u32) {
        let time = std::mem::replace(&mut self.times[region as usize], self.clock);
        self.order.remove(&time);
        self.order.insert(self.clock, region);
        self.clock += 1;
    }

    fn add_to_buffer(&mut self, key: u32) {
        self.buffer.push(key);
        if let Some(held) = self.held.get_mut(key as usize) {
            *held = Held { place: Place::Buffer, hit: false };
        }
    }

    /// Adds an object; the writes of a region when the buffer is full.
    fn insert(&mut self, key: u32, out: &mut VecDeque<Request>, flags: Flags) {
        self.add_to_buffer(key);
        if self.buffer.len() < self.per_region {
            return;
        }
        let region = *self.order.first_key_value().expect("there is a region").1;
        self.touch(region);
        let objects = std::mem::take(&mut self.buffer);
        if !self.held.is_empty() {
            self.replace_objects(region, objects);
        }
        let start = self.start + u64::from(region) * u64::from(self.sectors);
        let mut written = 0;
        while written < self.sectors {
            let sectors = self.block.min(self.sectors - written);
            let lba = Lba(start + u64::from(written));
            out.push_back(Request { flags, ..Request::new(Op::Write, lba, sectors) });
            written += sectors;
        }
    }

    /// Notes that a region has these `objects`; keeps what was hit of those before.
    fn replace_objects(&mut self, region: u32, objects: Vec<u32>) {
        let old = std::mem::take(&mut self.keys[region as usize]);
        for (place, key) in (0..).zip(old) {
            let held = self.held[key as usize];
            if held.place != Place::Region(region, place) {
                continue;
            }
            self.held[key as usize] = Held::default();
            if self.reinserts && held.hit && self.buffer.len() + 1 < self.per_region {
                self.add_to_buffer(key);
            }
        }
        for (place, key) in (0..).zip(&objects) {
            let place = Place::Region(region, place);
            self.held[*key as usize] = Held { place, hit: false };
        }
        self.keys[region as usize] = objects;
    }
}

struct Cache {
    small: Buckets,
    large: Regions,
    /// Shares of requests.
    small_requests: f64,
    lookups: f64,
    admission: f64,
    small_keys: Popularity,
    large_keys: Popularity,
    small_bytes: u64,
    by_engine: bool,
    pending: VecDeque<Request>,
    application_bytes: u64,
    stream: Stream,
    /// Requests of the application have ceased to reach the device.
    stuck: bool,
}

/// Most requests of the application in a row that do not reach the device.
const ROUNDS_MAX: u64 = 10_000_000;

impl Cache {
    fn flags(&self, handle: u8) -> Flags {
        if self.by_engine { Flags::NONE.with_handle(handle) } else { Flags::NONE }
    }

    /// The application's requests up to the next that reaches the device.
    fn advance(&mut self) {
        let mut rounds = 0;
        while self.pending.is_empty() && !self.stuck {
            self.serve();
            rounds += 1;
            self.stuck = rounds > ROUNDS_MAX;
        }
    }

    fn serve(&mut self) {
        let is_small = self.stream.chance(self.small_requests);
        let is_lookup = self.lookups > 0.0 && self.stream.chance(self.lookups);
        let keys = if is_small { &self.small_keys } else { &self.large_keys };
        let key = keys.draw(&mut self.stream);
        if is_lookup {
            let found = match is_small {
                true => self.small.holds(key).then(|| Some(self.small.request(Op::Read, key))),
                false => self.large.look_up(key),
            };
            if let Some(read) = found {
                self.pending.extend(read);
                return;
            }
        }
        if self.admission < 1.0 && !self.stream.chance(self.admission) {
            return;
        }
        if is_small {
            self.application_bytes += self.small_bytes;
            self.small.insert(key);
            self.pending.push_back(self.small.request(Op::Read, key));
            let flags = self.flags(SMALL);
            self.pending.push_back(Request { flags, ..self.small.request(Op::Write, key) });
        } else {
            self.application_bytes += u64::from(self.large.object_sectors) * SECTOR_BYTES;
            let flags = self.flags(LARGE);
            self.large.insert(key as u32, &mut self.pending, flags);
        }
    }
}

impl Generator for Cache {
    fn draw(&mut self) -> Request {
        let request = self.pending.pop_front().expect("asked for its end before");
        self.advance();
        request
    }

    fn end(&self) -> Option<Result<(), String>> {
        self.stuck.then(|| {
            Err(format!(
                "{ROUNDS_MAX} requests in a row did not reach the device: objects are in memory or \
                 not admitted; give more `large_keys`, smaller regions, or more `admission`"
            ))
        })
    }

    fn application_bytes(&self) -> Option<u64> {
        Some(self.application_bytes)
    }
}

hybridsim_config::choices! {
    /// The region that is written next.
    enum Eviction { Fifo = "fifo", Lru = "lru" }
}

hybridsim_config::params! {
    struct Parameters includes {
        arrivals: arrivals::Parameters,
        span: RegionParameters,
    } {
        small_area: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.04",
            "Share of the span for small objects, at its end; large ones have the rest.";
        small_requests: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.95",
            "Share of requests for small objects.";
        small_keys: u64 = Kind::Count { min: 1, max: u32::MAX as u64 - 1 }, default "100000000",
            "Keys of small objects.";
        large_keys: u64 = Kind::Count { min: 1, max: 1 << 30 }, default "1000000",
            "Keys of large objects. With lookups the simulator needs 16 bytes of memory for \
             each, and 4 for each in the cache.";
        theta: f64 = Kind::Number { min: 0.0, max: 10.0 }, default "0.9",
            "Exponent of the power law of requests for keys: 0 is uniform.";
        lookups: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0",
            "Share of requests that are lookups; a miss inserts the object. The others insert. \
             With lookups the simulator needs 4 bytes of memory for each small object that fits.";
        admission: f64 = Kind::Number { min: 0.000_001, max: 1.0 }, default "1",
            "Probability that an object is admitted to the cache.";
        small_object: u64 = Kind::Bytes, default "\"300B\"", "Bytes of a small object.";
        bucket: u64 = Kind::Bytes, default "\"4KiB\"", "Bytes of a bucket of small objects.";
        large_object: u64 = Kind::Bytes, default "\"16KiB\"", "Bytes of a large object.";
        region: u64 = Kind::Bytes, default "\"16MiB\"",
            "Bytes of a region of large objects, which is filled in memory.";
        eviction: Eviction = Kind::Choice(Eviction::NAMES), default "\"lru\""
            needs &[Needs::above_zero("lookups")],
            "The region that is overwritten: the one written (`fifo`) or used (`lru`) least \
             recently.";
        reinsertion: bool = Kind::Flag, default "false" needs &[Needs::above_zero("lookups")],
            "Whether large objects that were hit are kept when their region is overwritten.";
        block: u64 = Kind::Bytes, default "\"1MiB\"", "Bytes of a write of a region.";
        engine_handles: bool = Kind::Flag, default "false",
            "Whether writes have a placement handle by engine: 1 for small objects, 2 for large \
             ones.";
    }
}

/// Bytes of parameters in sectors.
struct Sectors {
    bucket: u32,
    object: u32,
    region: u32,
    block: u32,
}

impl Parameters {
    fn sectors(&self, problems: &mut Vec<Problem>) -> Sectors {
        let sizes = Sectors {
            bucket: sectors_of("bucket", self.bucket, problems),
            object: sectors_of("large_object", self.large_object, problems),
            region: sectors_of("region", self.region, problems),
            block: sectors_of("block", self.block, problems),
        };
        if sizes.object > sizes.region {
            problems.push(Problem::new("large_object", "must be at most `region`"));
        }
        if self.small_object == 0 || self.small_object > self.bucket {
            problems.push(Problem::new("small_object", "must be 1 byte to a `bucket`"));
        }
        sizes
    }

    fn buckets(&self, area: Region, sectors: u32) -> Buckets {
        let buckets = area.sectors / u64::from(sectors);
        let per_bucket = (self.bucket / self.small_object) as usize;
        let held = if self.lookups > 0.0 { buckets as usize * per_bucket } else { 0 };
        let per_bucket = if held > 0 { per_bucket } else { 0 };
        Buckets { start: area.start, sectors, buckets, held: vec![0; held], per_bucket }
    }

    fn regions(&self, area: Region, sizes: &Sectors) -> Regions {
        let regions = (area.sectors / u64::from(sizes.region)) as u32;
        let followed = |count: usize| if self.lookups > 0.0 { count } else { 0 };
        Regions {
            start: area.start,
            sectors: sizes.region,
            block: sizes.block,
            object_sectors: sizes.object,
            per_region: (sizes.region / sizes.object) as usize,
            held: vec![Held::default(); followed(self.large_keys as usize)],
            keys: vec![Vec::new(); followed(regions as usize)],
            order: (0..regions).map(|region| (u64::from(region), region)).collect(),
            times: (0..u64::from(regions)).collect(),
            clock: u64::from(regions),
            lru: self.eviction == Eviction::Lru,
            reinserts: self.reinsertion,
            buffer: Vec::new(),
        }
    }

    fn popularity(&self, keys: u64) -> Popularity {
        match self.theta {
            0.0 => Popularity::Uniform(keys),
            theta => Popularity::zipf(keys, theta),
        }
    }
}

/// Most buckets with lookups, and regions.
const HELD_MAX: u64 = 1 << 31;
const REGIONS_MAX: u64 = 1 << 24;

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let sizes = params.sectors(&mut problems);
    let span = Region::new(input, &params.span, u64::from(sizes.region), &mut problems);
    let small = (span.sectors as f64 * params.small_area) as u64 / u64::from(sizes.bucket)
        * u64::from(sizes.bucket);
    let large = (span.sectors - small) / u64::from(sizes.bucket) * u64::from(sizes.bucket);
    if small == 0 && params.small_requests > 0.0 {
        problems.push(Problem::new("small_area", "has no bucket for requests of small objects"));
    }
    if large < u64::from(sizes.region) && params.small_requests < 1.0 {
        problems.push(Problem::new("small_area", "leaves less than a region for large objects"));
    }
    let objects = small * SECTOR_BYTES / params.small_object.max(1);
    if large / u64::from(sizes.region) > REGIONS_MAX || (params.lookups > 0.0 && objects > HELD_MAX)
    {
        let message = format!("at most {REGIONS_MAX} regions and {HELD_MAX} small objects");
        problems.push(Problem::new("span", message));
    }
    let mut cache = problems.is_empty().then(|| Cache {
        small: params.buckets(Region { start: span.start + large, sectors: small }, sizes.bucket),
        large: params.regions(Region { start: span.start, sectors: large }, &sizes),
        small_requests: params.small_requests,
        lookups: params.lookups,
        admission: params.admission,
        small_keys: params.popularity(params.small_keys),
        large_keys: params.popularity(params.large_keys),
        small_bytes: params.small_object,
        by_engine: params.engine_handles,
        pending: VecDeque::new(),
        application_bytes: 0,
        stream: input.stream("requests"),
        stuck: false,
    });
    if let Some(cache) = &mut cache {
        cache.advance();
    }
    build_workload(input, &params.arrivals, cache, Limits::NONE, None, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "navy",
        summary: "The requests of a flash cache: buckets of small objects, regions of large.",
        origin: "CacheLib's Navy (B. Berg et al., OSDI 2020)",
        params: Parameters::PARAMS,
    },
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{registry, settings};

    /// The first `count` requests on a device of 4 MiB with buckets in its last MiB.
    fn requests(text: &str, count: usize) -> (Vec<Request>, u64) {
        let registry = registry();
        let text = format!(
            "requests = {count}\nsmall_area = 0.25\nregion = \"256KiB\"\nblock = \"64KiB\"\n\
             small_keys = 5000\nlarge_keys = 400\n{text}"
        );
        let settings = settings(Parameters::PARAMS, &text);
        let input = GeneratorInput {
            settings: &settings,
            registry: &registry,
            seed: 1,
            path: "workload",
            capacity_sectors: 8192,
            may_be_endless: false,
        };
        let mut source = build(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
        let mut all = Vec::new();
        while let Some(arrival) = source.next().expect("it goes on") {
            all.push(arrival.request);
        }
        (all, source.application_bytes().expect("a store"))
    }

    #[test]
    fn insertions_rewrite_a_bucket_or_fill_the_next_region() {
        let (all, bytes) = requests("engine_handles = true", 20_000);
        let mut next = 0;
        let (mut small, mut large) = (0, 0);
        for pair in all.windows(2) {
            let [before, Request { op, lba, sectors, flags, .. }] = [pair[0], pair[1]];
            if op == Op::Write && lba.0 >= 6144 {
                assert_eq!((before.op, before.lba, sectors), (Op::Read, lba, 8));
                assert_eq!(flags.handle(), SMALL);
                small += 1;
            } else if op == Op::Write {
                assert_eq!((lba.0, sectors, flags.handle()), (next, 128, LARGE));
                next = (next + 128) % 6144;
                large += u64::from(sectors) * SECTOR_BYTES;
            }
        }
        assert!(large > 6144 * SECTOR_BYTES, "the regions are overwritten");
        let expected = small * 300 + large;
        assert!(bytes.abs_diff(expected) < 300_000, "{bytes} of {expected}");
    }

    #[test]
    fn lookups_hit_what_is_held_and_misses_insert_it() {
        let share_of_reads = |text: &str| {
            let (all, _) = requests(text, 30_000);
            let writes = all.iter().filter(|request| request.op == Op::Write).count();
            1.0 - writes as f64 / all.len() as f64
        };
        // Half the small keys and the large ones are held; popular ones hit more often.
        let uniform = share_of_reads("lookups = 1.0\ntheta = 0");
        let skewed = share_of_reads("lookups = 1.0\ntheta = 1.1");
        assert!(skewed > uniform + 0.05, "{skewed} and {uniform}");
    }

    #[test]
    fn the_region_used_least_recently_is_overwritten_and_what_was_hit_is_kept() {
        let cases = [(false, false, 0, false), (true, false, 8, false), (false, true, 0, true)];
        for (lru, reinserts, victim, kept) in cases {
            let mut regions = Regions {
                start: 0,
                sectors: 8,
                block: 8,
                object_sectors: 4,
                per_region: 2,
                held: vec![Held::default(); 10],
                keys: vec![Vec::new(); 3],
                order: (0..3).map(|region| (u64::from(region), region)).collect(),
                times: vec![0, 1, 2],
                clock: 3,
                lru,
                reinserts,
                buffer: Vec::new(),
            };
            let mut out = VecDeque::new();
            (0..6).for_each(|key| regions.insert(key, &mut out, Flags::NONE));
            let read = regions.look_up(1).expect("a hit").expect("in a region");
            assert_eq!(read.lba, Lba(4));
            out.clear();
            (6..8).for_each(|key| regions.insert(key, &mut out, Flags::NONE));
            assert_eq!(out.iter().map(|write| write.lba.0).collect::<Vec<_>>(), [victim]);
            assert!(regions.look_up(7).is_some() && regions.look_up(8).is_none());
            assert_eq!(regions.buffer == [1], kept, "what was hit waits for the next region");
            assert_eq!(regions.look_up(1) == Some(None), kept, "and is found there");
        }
    }

    #[test]
    fn a_cache_that_is_all_in_memory_ends_with_an_error() {
        let registry = registry();
        let text = "requests = 10\nlookups = 1.0\nsmall_requests = 0\nlarge_keys = 5";
        let settings = settings(Parameters::PARAMS, text);
        let input = GeneratorInput {
            settings: &settings,
            registry: &registry,
            seed: 1,
            path: "workload",
            capacity_sectors: 1 << 20,
            may_be_endless: false,
        };
        let mut source = build(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
        let error = source.next().expect_err("no request reaches the device");
        assert!(error.contains("`large_keys`"), "{error}");
    }
}
