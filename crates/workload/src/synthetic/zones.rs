//! The load of a host on a zoned device: zones are written in order, or with zone appends, are left
//! when they are full, and are reset before they are written again; written zones are read.
//!
//! What follows depends on completions, as a zone takes one write at a time: the host must not
//! delay requests (`mode = "open"`).

use super::addresses::{Region, RegionParameters, sectors_of};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{
    Arrival, Flags, Lba, Op, Request, SECTOR_BYTES, SimDuration, SimTime, Source, Stream,
    ZoneAction,
};
use std::collections::VecDeque;

/// Constants of a run; sizes are in sectors.
#[derive(Clone, Copy, Debug)]
struct Plan {
    start: u64,
    zone_sectors: u64,
    /// Sectors written of a zone before the next zone follows.
    fill: u64,
    capacity: u64,
    block: u32,
    read_block: u32,
    depth: u32,
    pause: SimDuration,
    flags: Flags,
    /// Whether zones are opened with a random write area.
    random: bool,
    /// Share of the blocks that are written twice.
    again: f64,
    open: bool,
    finish: bool,
    requests: u64,
    until: SimTime,
}

/// A zone on which the workload works.
#[derive(Clone, Copy, Debug)]
struct Active {
    zone: u32,
    /// Sectors of writes that have been issued.
    issued: u64,
    outstanding: u32,
    /// Whether the block before the last one issued is written again.
    again: bool,
    /// Next step, once nothing is outstanding.
    then: Then,
}

const FRESH: Active =
    Active { zone: 0, issued: 0, outstanding: 0, again: false, then: Then::Reset };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Reset,
    Open,
    Write,
    Leave,
}

/// The workload.
#[derive(Clone, Debug)]
struct Zones {
    plan: Plan,
    active: Vec<Active>,
    /// Zones that are not active: empty ones first, then those with data, in the order in which
    /// they were left.
    inactive: VecDeque<u32>,
    /// Number of them that hold data.
    dirty: usize,
    /// Sectors with data, by zone.
    written: Vec<u64>,
    /// Readers that found no zone with data.
    idle_readers: u32,
    /// To be issued.
    ready: VecDeque<Arrival>,
    /// The request delivered last, which [`Source::take_back`] returns.
    last: Option<Arrival>,
    delivered: u64,
    outstanding: u64,
    stream: Stream,
}

impl Zones {
    fn lba(&self, zone: u32) -> u64 {
        self.plan.start + u64::from(zone) * self.plan.zone_sectors
    }

    fn issue(&mut self, at: SimTime, request: Request) {
        let behind = self.ready.partition_point(|it| it.at <= at);
        self.ready.insert(behind, Arrival { at, request });
    }

    /// Issues what comes next on the active zone `at`, and the requests after it as far as they
    /// need not wait for it.
    fn advance(&mut self, at: usize, now: SimTime) {
        let plan = self.plan;
        loop {
            let Active { zone, issued, outstanding, then, .. } = self.active[at];
            let lba = Lba(self.lba(zone));
            let manage = |action| Request::new(Op::Zone(action), lba, plan.zone_sectors as u32);
            let request = match then {
                Then::Write if issued == plan.fill => {
                    if outstanding > 0 {
                        return;
                    }
                    self.active[at].then = Then::Leave;
                    match (plan.finish, plan.random) {
                        (true, _) => manage(ZoneAction::Finish),
                        (false, true) => manage(ZoneAction::Commit).part(0, plan.fill as u32, lba),
                        (false, false) => continue,
                    }
                }
                Then::Write if outstanding == plan.depth => return,
                Then::Write => {
                    let block = u64::from(plan.block);
                    let first = match std::mem::take(&mut self.active[at].again) {
                        true => issued - 2 * block,
                        false => {
                            let next = issued + block.min(plan.fill - issued);
                            let two = next >= 2 * block && next < plan.fill;
                            self.active[at].again =
                                plan.again > 0.0 && two && self.stream.chance(plan.again);
                            self.active[at].issued = next;
                            issued
                        }
                    };
                    let sectors = (plan.fill - first).min(block) as u32;
                    let flags = plan.flags;
                    Request { flags, ..Request::new(Op::Write, lba.offset(first), sectors) }
                }
                _ if outstanding > 0 => return,
                Then::Reset => {
                    self.active[at].then = if plan.open { Then::Open } else { Then::Write };
                    if self.written[zone as usize] == 0 {
                        continue;
                    }
                    self.written[zone as usize] = 0;
                    manage(ZoneAction::Reset)
                }
                Then::Open => {
                    self.active[at].then = Then::Write;
                    let flags = if plan.random { Flags::RANDOM_WRITE_AREA } else { Flags::NONE };
                    Request { flags, ..manage(ZoneAction::Open) }
                }
                Then::Leave => {
                    if !self.leave(at, now) {
                        return;
                    }
                    continue;
                }
            };
            self.active[at].outstanding += 1;
            let waits = match request.op {
                Op::Zone(ZoneAction::Reset | ZoneAction::Finish) => plan.pause,
                _ => SimDuration::ZERO,
            };
            self.issue(now + waits, request);
            // Writes follow when the zone is reset or open.
            if request.op != Op::Write {
                return;
            }
        }
    }

    /// Leaves a zone for another. Returns whether there is something to do there.
    fn leave(&mut self, at: usize, now: SimTime) -> bool {
        let left = self.active[at].zone;
        self.written[left as usize] = self.plan.fill;
        if self.plan.fill > 0 {
            self.inactive.push_back(left);
            self.dirty += 1;
        } else {
            let clean = self.inactive.len() - self.dirty;
            self.inactive.insert(clean, left);
        }
        for _ in 0..std::mem::take(&mut self.idle_readers) {
            self.read(now);
        }
        // Zones that are only reset are not reset again while they are empty.
        if self.plan.fill == 0 && self.dirty == 0 {
            self.active[at].then = Then::Leave;
            return false;
        }
        let zone = if self.plan.fill == 0 {
            self.inactive.remove(self.inactive.len() - self.dirty)
        } else {
            self.inactive.pop_front()
        };
        let zone = zone.expect("the zone just left is one");
        self.dirty -= usize::from(self.written[zone as usize] > 0);
        self.active[at] = Active { zone, ..FRESH };
        true
    }

    /// Issues a read of a zone with data, at random.
    fn read(&mut self, now: SimTime) {
        if self.dirty == 0 {
            self.idle_readers += 1;
            return;
        }
        let first = self.inactive.len() - self.dirty;
        let zone = self.inactive[first + self.stream.below(self.dirty as u64) as usize];
        let block = u64::from(self.plan.read_block);
        let blocks = self.written[zone as usize] / block;
        let lba = self.lba(zone) + self.stream.below(blocks.max(1)) * block;
        let sectors = block.min(self.written[zone as usize]) as u32;
        self.issue(now, Request::new(Op::Read, Lba(lba), sectors));
    }
}

impl Source for Zones {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        self.last = None;
        let next = self.ready.front().copied();
        if self.delivered >= self.plan.requests || next.is_some_and(|it| it.at > self.plan.until) {
            self.ready.clear();
            return Ok(None);
        }
        self.ready.pop_front();
        if next.is_some() {
            (self.last, self.delivered) = (next, self.delivered + 1);
            self.outstanding += 1;
        }
        Ok(next)
    }

    fn waits(&self) -> bool {
        let more = self.delivered < self.plan.requests;
        more && (!self.ready.is_empty() || self.outstanding > 0)
    }

    fn take_back(&mut self) {
        if let Some(last) = self.last.take() {
            self.delivered -= 1;
            self.outstanding -= 1;
            self.ready.push_front(last);
        }
    }

    fn completed(&mut self, request: &Request, now: SimTime) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if self.delivered >= self.plan.requests {
            return;
        }
        if request.op == Op::Read {
            return self.read(now);
        }
        let zone = ((request.lba.0 - self.plan.start) / self.plan.zone_sectors) as u32;
        if let Some(at) = self.active.iter().position(|active| active.zone == zone) {
            self.active[at].outstanding -= 1;
            self.advance(at, now);
        }
    }

    fn progress(&self) -> Option<f64> {
        let Plan { requests, until, .. } = self.plan;
        let by_time = self.last.map_or(0.0, |last| match until {
            SimTime::NEVER => 0.0,
            until => last.at.as_ns() as f64 / until.as_ns().max(1) as f64,
        });
        Some((self.delivered as f64 / requests.max(1) as f64).max(by_time).min(1.0))
    }
}

const ZONES_MAX: u64 = 1 << 20;
/// Writes outstanding, which memory holds from the start.
const OUTSTANDING_MAX: u64 = 1 << 20;

hybridsim_config::choices! {
    /// Command by which zones are written.
    enum WriteBy { Write = "write", Append = "append", Random = "zrwa" }
}

hybridsim_config::params! {
    struct Parameters includes {
        region: RegionParameters,
        writes: WriteParameters where &[Needs::above_zero("active"), Needs::Not("fill", &["0"])],
    } {
        requests: Option<u64> = Kind::Count { min: 1, max: u64::MAX - 1 }, optional,
            "Ends after this number of requests, zone management included. One of `requests` and \
             `duration` must be given.";
        duration: Option<SimDuration> = Kind::Duration, optional,
            "No request follows a completion later than this.";
        zone_size: u64 = Kind::Bytes, required,
            "Distance of the starts of two zones, as the device's.";
        zone_capacity: Option<u64> = Kind::Bytes, optional,
            "Bytes of a zone that can be written; zone_size when absent.";
        active: u64 = Kind::Count { min: 0, max: ZONES_MAX }, default "1",
            "Zones written at a time. One that is full is replaced by the one that was left first; \
             with data in it, it is reset before.";
        fill: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "1.0"
            needs &[Needs::above_zero("active")],
            "Share of the capacity after which a zone is left, at least a block. Between 0 and 1 \
             without `finish`, zones stay active until they are reset: all of the region then \
             count towards the device's `max_active_zones`. With 0 nothing is written: zones that \
             hold data are reset, and the workload ends when none is left.";
        finish: bool = Kind::Flag, default "false" needs &[Needs::above_zero("active")],
            "Whether a zone is finished when it is left.";
        open: bool = Kind::Flag, default "false" needs &[Needs::above_zero("active")],
            "Whether a zone is opened explicitly at first.";
        pause: SimDuration = Kind::Duration, default "\"0us\"" needs &[Needs::above_zero("active")],
            "Time between the last request of a zone and its finish or reset.";
        readers: u32 = Kind::Count { min: 0, max: 65_536 }, default "0",
            "Random reads outstanding, of zones with data that are not being written.";
        read_block: u64 = Kind::Bytes, default "\"4KiB\"" needs &[Needs::above_zero("readers")],
            "Bytes of a read.";
        filled: u64 = Kind::Count { min: 0, max: ZONES_MAX }, default "0",
            "Zones that are full when the workload begins, from the first of the region on, as the \
             device's `precondition` leaves them. They are read, and reset before they are \
             written.";
    }
}

hybridsim_config::params! {
    struct WriteParameters {
        block: u64 = Kind::Bytes, default "\"4KiB\"", "Bytes of a write.";
        write: WriteBy = Kind::Choice(WriteBy::NAMES), default "\"write\"",
            "Writes name the sector of the write pointer, so that one is outstanding for a zone. \
             Appends name the sector they are expected at, and several may be outstanding. With \
             `zrwa` a zone is opened with a random write area, so that several writes may be \
             outstanding, and its end is committed.";
        depth: u32 = Kind::Count { min: 1, max: 65_536 }, default "1"
            needs &[Needs::Is("write", &["append", "zrwa"])],
            "Writes outstanding for each active zone.";
        again: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.0"
            needs &[Needs::Is("write", &["zrwa"])],
            "Share of the blocks that are written twice in the random write area, as partial \
             parities and metadata are: the second time after the next block.";
    }
}

fn plan(params: &Parameters, region: Region, problems: &mut Vec<Problem>) -> Plan {
    let zone_sectors = u64::from(sectors_of("zone_size", params.zone_size, problems));
    let capacity = params.zone_capacity.map_or(zone_sectors, |capacity| {
        u64::from(sectors_of("zone_capacity", capacity, problems))
    });
    let writes = &params.writes;
    let random = writes.write == WriteBy::Random;
    let block = sectors_of("block", writes.block, problems);
    let wanted = (capacity as f64 * params.fill) as u64;
    let blocks = (wanted / u64::from(block)).max(1) * u64::from(block);
    let fill = match params.fill {
        0.0 => 0,
        1.0 => capacity,
        _ => blocks.min(capacity),
    };
    if capacity > zone_sectors {
        problems.push(Problem::new("zone_capacity", "must be at most zone_size"));
    }
    if u64::from(block) > capacity {
        problems.push(Problem::new("block", "must be at most the capacity of a zone"));
    }
    if params.fill == 0.0 {
        for (key, given) in [("finish", params.finish), ("open", params.open)] {
            if given {
                problems.push(Problem::new(key, "zones are only reset with `fill = 0`"));
            }
        }
    }
    if random && params.fill < 1.0 && !params.finish {
        let message = "the end of a zone that is left with a random write area is in no step of \
                       its write pointer: use `fill = 1` or `finish`";
        problems.push(Problem::new("fill", message));
    }
    if params.requests.is_none() && params.duration.is_none() {
        problems.push(Problem::new("requests", "give `requests` or `duration`"));
    }
    Plan {
        start: region.start,
        zone_sectors,
        fill,
        capacity,
        block,
        read_block: sectors_of("read_block", params.read_block, problems),
        depth: if writes.write == WriteBy::Write { 1 } else { writes.depth },
        pause: params.pause,
        flags: if writes.write == WriteBy::Append { Flags::APPEND } else { Flags::NONE },
        random,
        again: writes.again,
        open: params.open || random,
        finish: params.finish,
        requests: params.requests.unwrap_or(u64::MAX),
        until: params.duration.map_or(SimTime::NEVER, |it| SimTime::ZERO + it),
    }
}

/// Most zones that are active at a time under a workload with these settings, among those of
/// `bytes` of its region.
pub fn zones_active(settings: &Settings, bytes: u64) -> u64 {
    let params = Parameters::from_settings(settings);
    let active = params.active;
    let (size, fill) = (params.zone_size.max(1), params.fill);
    if fill == 0.0 || active == 0 {
        return 0;
    }
    if fill == 1.0 || params.finish {
        return active;
    }
    bytes / size
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let zone_sectors = params.zone_size / SECTOR_BYTES;
    let region = Region::new(input, &params.region, zone_sectors, &mut problems);
    let plan = plan(&params, region, &mut problems);
    let zones = region.sectors / plan.zone_sectors;
    let (active, filled) = (params.active, params.filled);
    let readers = params.readers;
    if zones > ZONES_MAX {
        let message = format!("{zones} zones in the region; at most {ZONES_MAX} are possible");
        problems.push(Problem::new("zone_size", message));
    }
    if !region.start.is_multiple_of(plan.zone_sectors) {
        problems.push(Problem::new("start", "must be the start of a zone"));
    }
    for (key, count) in [("active", active), ("filled", filled)] {
        if count > zones {
            let message = format!("the region has {zones} zones only");
            problems.push(Problem::new(key, message));
        }
    }
    if active * u64::from(plan.depth) > OUTSTANDING_MAX {
        let message = format!("active * depth is above {OUTSTANDING_MAX} writes outstanding");
        problems.push(Problem::new("depth", message));
    }
    if active == 0 && (readers == 0 || filled == 0) {
        let message = "0 zones are written, and there are no `readers`, or no zone is `filled`";
        problems.push(Problem::new("active", message));
    }
    if plan.fill == 0 && filled == 0 {
        problems.push(Problem::new("fill", "0 is for zones that are `filled`"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut written = vec![0; zones as usize];
    written[..filled as usize].fill(plan.capacity);
    let clean = filled as u32..zones as u32;
    let mut inactive: VecDeque<u32> = clean.chain(0..filled as u32).collect();
    let mut dirty = filled as usize;
    let mut first = Vec::new();
    for _ in 0..active {
        let from = if plan.fill == 0 { inactive.len() - dirty } else { 0 };
        let Some(zone) = inactive.remove(from) else { break };
        dirty -= usize::from(written[zone as usize] > 0);
        first.push(Active { zone, ..FRESH });
    }
    let mut source = Zones {
        plan,
        active: first,
        inactive,
        dirty,
        written,
        idle_readers: 0,
        ready: VecDeque::new(),
        last: None,
        delivered: 0,
        outstanding: 0,
        stream: input.stream("requests"),
    };
    (0..source.active.len()).for_each(|at| source.advance(at, SimTime::ZERO));
    (0..readers).for_each(|_| source.read(SimTime::ZERO));
    Ok(Box::new(source))
}

/// The name of the generator.
pub const ZONES: &str = "zones";

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: ZONES,
        summary: "Zones of a zoned device, written in order, finished, reset and read.",
        origin: "the loads of NVMeBenchmarks (K. Doekemeijer et al., IEEE Cluster 2023)",
        params: Parameters::PARAMS,
    },
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{registry, settings};

    const ZONE: u64 = 128;

    fn source(text: &str) -> Box<dyn Source> {
        built(text).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    fn built(text: &str) -> Built<dyn Source> {
        let settings = settings(ENTRY.description.params, text);
        let registry = registry();
        let input = GeneratorInput {
            settings: &settings,
            registry: &registry,
            seed: 3,
            path: "workload",
            capacity_sectors: 8 * ZONE,
            may_be_endless: false,
        };
        build(&input)
    }

    /// Plays the device: completes one of the requests outstanding at a time. Returns all requests,
    /// in order, each with the number outstanding then, itself included, on its zone.
    fn play(text: &str) -> Vec<(Request, usize)> {
        let mut source = source(text);
        let (mut all, mut outstanding): (Vec<(Request, usize)>, Vec<Request>) = Default::default();
        let mut stream = Stream::new(1, "device");
        for step in 0.. {
            while let Some(Arrival { request, .. }) = source.next().expect("it does not fail") {
                let zone = request.lba.0 / ZONE;
                let same = |it: &&Request| it.op != Op::Read && it.lba.0 / ZONE == zone;
                let managed =
                    outstanding.iter().filter(same).any(|it| matches!(it.op, Op::Zone(_)));
                assert!(request.op == Op::Read || !managed, "{request:?} waits for its zone");
                outstanding.push(request);
                all.push((request, outstanding.iter().filter(same).count()));
            }
            if outstanding.is_empty() {
                assert!(!source.waits(), "it ends with its last completion");
                return all;
            }
            let at = stream.below(outstanding.len() as u64) as usize;
            source.completed(&outstanding.swap_remove(at), SimTime::from_ns(1_000 * step));
        }
        unreachable!("it returns")
    }

    /// Follows the write pointers of 8 zones, of which the first `filled` are full.
    fn check(all: &[(Request, usize)], filled: usize, capacity: u64) -> [u64; 8] {
        let mut pointers = [0; 8];
        pointers[..filled].fill(capacity);
        for (request, _) in all {
            let (zone, within) = ((request.lba.0 / ZONE) as usize, request.lba.0 % ZONE);
            let sectors = u64::from(request.sectors);
            match request.op {
                Op::Write => {
                    assert_eq!(within, pointers[zone], "zone {zone} is written in order");
                    pointers[zone] += sectors;
                    assert!(pointers[zone] <= capacity);
                }
                Op::Read => assert!(within + sectors <= pointers[zone], "it holds data"),
                Op::Zone(ZoneAction::Reset) => {
                    assert!(pointers[zone] > 0, "an empty zone is not reset");
                    pointers[zone] = 0;
                }
                op => assert!(matches!(op, Op::Zone(_)) && within == 0 && sectors == ZONE),
            }
        }
        pointers
    }

    #[test]
    fn one_write_is_outstanding_for_a_zone() {
        let text = "requests = 2000\nzone_size = \"64KiB\"\nzone_capacity = \"50KiB\"\n\
                    block = \"4KiB\"\nactive = 3\nfilled = 2\nreaders = 4\nopen = true";
        let all = play(text);
        assert_eq!(all.len(), 2_000);
        check(&all, 2, 100);
        assert!(all.iter().all(|(_, count)| *count <= 1));
        let reads = all.iter().filter(|(request, _)| request.op == Op::Read).count();
        assert!((800..1_600).contains(&reads), "{reads}: four of seven outstanding");
        let zones = |all: &[(Request, usize)]| {
            all.iter().filter(|(it, _)| it.op == Op::Zone(ZoneAction::Open)).count()
        };
        assert!(zones(&all) > 20);
    }

    #[test]
    fn appends_are_outstanding_up_to_the_depth_and_zones_are_finished() {
        let text = "requests = 3000\nzone_size = \"64KiB\"\nwrite = \"append\"\ndepth = 5\n\
                    fill = 0.5\nfinish = true\nactive = 2";
        let all = play(text);
        check(&all, 0, 64);
        let deepest = all.iter().map(|(_, count)| *count).max();
        assert_eq!(deepest, Some(5));
        let is = |action| all.iter().filter(|it| it.0.op == Op::Zone(action)).count();
        let (finished, reset) = (is(ZoneAction::Finish), is(ZoneAction::Reset));
        assert!(finished > 100 && (finished - 10..finished).contains(&reset), "{finished} {reset}");
        for (request, count) in &all {
            assert!(request.op == Op::Write || *count == 1, "nothing else is outstanding then");
        }
    }

    #[test]
    fn what_cannot_be_is_rejected_by_name() {
        let rejects = |keys: &str, key: &str| {
            let text = format!("requests = 9\nzone_size = \"64KiB\"\n{keys}");
            let Err(problems) = built(&text) else { panic!("{keys} passes") };
            assert_eq!(problems[0].param, key, "{problems:?}");
        };
        rejects("fill = 0.0\nfilled = 2\nopen = true", "open");
        rejects("fill = 0.0\nfilled = 2\nfinish = true", "finish");
        rejects("active = 8\nwrite = \"append\"\ndepth = 65536\nfilled = 9", "filled");
        rejects("active = 9", "active");
        rejects("write = \"zrwa\"\nfill = 0.5", "fill");
    }

    #[test]
    fn blocks_are_written_again_in_a_random_write_area_that_is_committed() {
        let all = play(
            "requests = 400\nzone_size = \"64KiB\"\nblock = \"8KiB\"\nwrite = \"zrwa\"\n\
             depth = 3\nagain = 0.5",
        );
        let mut ends = [0; 8];
        let mut again = 0;
        for (request, outstanding) in &all {
            let (zone, within) = ((request.lba.0 / ZONE) as usize, request.lba.0 % ZONE);
            assert!(*outstanding <= 3);
            match request.op {
                Op::Zone(ZoneAction::Open) => {
                    assert!(request.flags.contains(Flags::RANDOM_WRITE_AREA));
                }
                Op::Write if within == ends[zone] => ends[zone] += u64::from(request.sectors),
                Op::Write => {
                    assert_eq!(within, ends[zone] - 32, "the block before the last one");
                    again += 1;
                }
                Op::Zone(ZoneAction::Commit) => {
                    assert_eq!((within, request.sectors, ends[zone]), (0, ZONE as u32, ZONE));
                }
                Op::Zone(ZoneAction::Reset) => ends[zone] = 0,
                op => panic!("{op:?}"),
            }
        }
        assert!((60..140).contains(&again), "half of the blocks but the first and last: {again}");
        assert!(all.iter().any(|it| it.0.op == Op::Zone(ZoneAction::Commit)));
    }

    #[test]
    fn a_pause_is_made_before_a_finish_and_a_reset() {
        let mut source = source(
            "requests = 4\nzone_size = \"64KiB\"\nspan = \"64KiB\"\nblock = \"32KiB\"\n\
             fill = 0.5\nfinish = true\npause = \"1s\"",
        );
        let mut now = SimTime::ZERO;
        let mut waited = Vec::new();
        while let Some(Arrival { at, request }) = source.next().expect("it does not fail") {
            waited.push((request.op, at.since(now).as_ns()));
            now = at + SimDuration::from_us(1);
            source.completed(&request, now);
        }
        let second = 1_000_000_000;
        let (finish, reset) = (Op::Zone(ZoneAction::Finish), Op::Zone(ZoneAction::Reset));
        let write = (Op::Write, 0);
        assert_eq!(waited, [write, (finish, second), (reset, second), write]);
    }

    #[test]
    fn zones_that_are_only_reset_end_the_workload() {
        let all = play("requests = 100\nzone_size = \"64KiB\"\nfill = 0.0\nfilled = 6");
        assert_eq!(all.len(), 6);
        assert_eq!(check(&all, 6, ZONE), [0; 8]);
    }
}
