//! The flash cache against the reference model, over media that reorder, in every scheme.

mod common;

use common::heard::{Notes, heard};
use common::{count, entry_choice, flash_cache, registry};
use hybridsim_cache::CacheEvent;
use hybridsim_cache::replacement::ReplacementEntry;
use hybridsim_config::param::{Settings, Value};
use hybridsim_conformance::{Load, Rig};
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{
    Arrival, ComponentTree, EventRecord, Lba, Machine, Op, PowerFailureInjector, Request,
    SimDuration, SimTime, Source, Stream,
};
use hybridsim_host::{Host, HostOptions};
use hybridsim_hybrid::flash_cache::ENTRY;

#[test]
fn every_scheme_returns_what_was_written() {
    let registry = registry();
    let mut destages = 0;
    for scheme in ["fp", "rw", "op"] {
        for (mapping, checkpoint) in [(false, 0), (true, 0), (true, 20)] {
            for (flash, space) in [(100, 0.95), (64, 0.4), (800, 0.7)] {
                let settings = flash_cache(scheme, space, mapping)
                    .and("checkpoint_pages", Value::Count(checkpoint));
                for (seed, depth) in [(1, 1), (2, 4), (3, 32)] {
                    let load = Load { requests: 1500, sectors_max: 40, seed };
                    let children = [flash, 2000];
                    let rig = Rig {
                        entry: &ENTRY,
                        settings: &settings,
                        registry: &registry,
                        children: &children,
                        seed,
                    };
                    let seen = rig.check_random(&load, depth).expect("conforms");
                    let is = |event: &EventRecord| {
                        matches!(event.event(), Some(CacheEvent::Destaged { .. }))
                    };
                    destages += count(&seen.events, is);
                }
            }
        }
    }
    assert!(destages > 1000, "{destages}");
}

#[test]
fn any_replacement_serves_and_costs_may_be_observed() {
    let registry = registry();
    for entry in registry.iter::<ReplacementEntry>() {
        let name = entry.description.name;
        for scheme in ["fp", "rw", "op"] {
            let settings = flash_cache(scheme, 0.7, true)
                .and("replacement", entry_choice(name, Settings::default()))
                .and("costs", Value::Text("observed".to_owned()))
                .and("write_ahead", Value::Count(10));
            let rig = Rig {
                entry: &ENTRY,
                settings: &settings,
                registry: &registry,
                children: &[100, 2000],
                seed: 3,
            };
            let load = Load { requests: 1500, sectors_max: 40, seed: 3 };
            let seen = rig.check_random(&load, 8).expect("conforms");
            let destages = count(&seen.events, |event| {
                matches!(event.event(), Some(CacheEvent::Destaged { .. }))
            });
            assert!(destages > 10, "{name} {scheme}: {destages}");
        }
    }
}

#[test]
fn every_write_policy_and_promotion_returns_what_was_written() {
    let registry = registry();
    for (policy, (page, flash)) in ["back", "through", "around"]
        .into_iter()
        .flat_map(|policy| [(policy, (4096, 100)), (policy, (16_384, 400))])
    {
        for (after, rate, share) in [(1, None, 1.0), (3, None, 0.1), (2, Some(1 << 20), 0.0)] {
            let mut settings = flash_cache("fp", 0.7, true)
                .and("page_size", Value::Bytes(page))
                .and("write_policy", Value::Text(policy.to_owned()))
                .and("promote_after", Value::Count(after))
                .and("promote_all_below", Value::Number(0.5))
                .and("dirty_share", Value::Number(share));
            if let Some(rate) = rate {
                settings = settings.and("promote_rate", Value::Rate(rate));
            }
            let rig = Rig {
                entry: &ENTRY,
                settings: &settings,
                registry: &registry,
                children: &[flash, 2000],
                seed: 5,
            };
            for depth in [1, 8] {
                let load = Load { requests: 3000, sectors_max: 40, seed: 5 };
                let seen = rig.check_random(&load, depth).expect("conforms");
                let destages = count(&seen.events, |event| {
                    matches!(event.event(), Some(CacheEvent::Destaged { .. }))
                });
                assert_eq!(destages > 0, policy == "back", "{policy} {after}: {destages}");
            }
        }
    }
}

#[test]
fn a_divided_cache_writes_back() {
    let settings = flash_cache("op", 0.9, true).and("write_policy", Value::Text("around".into()));
    let registry = registry();
    let (settings, children) = (&settings, [800, 2000]);
    let rig = Rig { entry: &ENTRY, settings, registry: &registry, children: &children, seed: 1 };
    let problem = rig.build().err().expect("there is no write cache");
    assert!(problem.contains("need `scheme = \"fp\"`"), "{problem}");
}

/// Every page of a region is written `writes` times, in turn; then all are read.
struct Rounds {
    pages: u64,
    writes: u64,
    sent: u64,
}

impl Source for Rounds {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        let (round, page) = (self.sent / self.pages, self.sent % self.pages);
        self.sent += 1;
        let op = if round < self.writes { Op::Write } else { Op::Read };
        // No two in a row are adjacent on the disk.
        let request = Request::new(op, Lba(page * 37 % self.pages * 8), 8);
        Ok((round <= self.writes).then_some(Arrival { at: SimTime::ZERO, request }))
    }
}

/// Events of [`Rounds`] over 200 pages with a cache of about 900, and the requests to flash.
fn rounds(writes: u64, settings: &Settings) -> (Vec<EventRecord>, Notes) {
    let host = Host::plain(HostOptions::closed(4), Rounds { pages: 200, writes, sent: 0 });
    observe(settings, host, None)
}

/// Pages read and written at the flash device.
fn flash_pages(asked: &Notes) -> [u64; 2] {
    [Op::Read, Op::Write].map(|op| {
        let asked = asked.borrow();
        asked.iter().filter(|note| note.1.op == op).map(|note| u64::from(note.1.sectors) / 8).sum()
    })
}

#[test]
fn a_write_through_is_on_the_disk_and_then_in_flash() {
    let policy = |name: &str| {
        let settings = flash_cache("fp", 0.9, false);
        rounds(2, &settings.and("write_policy", Value::Text(name.to_owned())))
    };
    assert_eq!(flash_pages(&policy("through").1), [200, 400], "every write, then read hits");
    assert_eq!(flash_pages(&policy("around").1), [0, 200], "only reads are promoted");
    let (_, back) = policy("back");
    assert_eq!(flash_pages(&back), [200, 400]);
}

/// Requests one second apart.
struct Listed(std::vec::IntoIter<Request>, u64);

impl Source for Listed {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        self.1 += 1;
        let at = SimTime::ZERO + SimDuration::from_ms(1000 * self.1);
        Ok(self.0.next().map(|request| Arrival { at, request }))
    }
}

/// Hits and misses of each read among `requests`, given as operation, first sector and sectors.
fn reads_of(settings: &Settings, requests: &[(Op, u64, u32)]) -> Vec<(u32, u32)> {
    let requests = requests.iter().map(|(op, lba, sectors)| Request::new(*op, Lba(*lba), *sectors));
    let source = Listed(requests.collect::<Vec<_>>().into_iter(), 0);
    let (events, _) = observe(settings, Host::plain(HostOptions::open(64), source), None);
    let looked_up = |record: &EventRecord| match record.event() {
        Some(CacheEvent::CacheLookup { op: Op::Read, hits, misses }) => Some((hits, misses)),
        _ => None,
    };
    events.iter().filter_map(looked_up).collect()
}

#[test]
fn a_page_that_is_cached_in_part_is_filled() {
    let (settings, half) = (flash_cache("fp", 0.9, true), (Op::Write, 84, 4));
    let through = settings.clone().and("write_policy", Value::Text("through".to_owned()));
    let whole = (Op::Read, 80, 8);
    let seen = reads_of(&through, &[(Op::Write, 80, 8), half, whole]);
    assert_eq!(seen, [(1, 0)], "flash has both writes");
    assert_eq!(reads_of(&through, &[half, whole, whole]), [(0, 1), (1, 0)]);
    assert_eq!(reads_of(&settings, &[half, whole, whole]), [(0, 1), (1, 0)], "a dirty page");
    let around = settings.clone().and("write_policy", Value::Text("around".to_owned()));
    assert_eq!(reads_of(&around, &[whole, half, whole, whole]), [(0, 1), (0, 1), (1, 0)]);
    let large = settings.and("page_size", Value::Bytes(32 << 10));
    let [first, second] = [(Op::Read, 640, 8), (Op::Read, 664, 8)];
    let seen = reads_of(&large, &[first, second, first, second, (Op::Read, 640, 64)]);
    assert_eq!(seen, [(0, 1), (0, 1), (1, 0), (1, 0), (0, 1)]);
}

#[test]
fn a_page_is_cached_from_its_third_access() {
    let settings = flash_cache("fp", 0.9, false).and("promote_after", Value::Count(3));
    assert_eq!(flash_pages(&rounds(1, &settings).1), [0, 0]);
    assert_eq!(flash_pages(&rounds(2, &settings).1), [0, 200], "the read is the third");
    assert_eq!(flash_pages(&rounds(3, &settings).1), [200, 200], "the third write is cached");
    let eager = settings.and("promote_all_below", Value::Number(0.11));
    let [reads, writes] = flash_pages(&rounds(1, &eager).1);
    assert!((95..=110).contains(&writes) && reads == writes, "a tenth of the cache: {writes}");
    // A cache that may use a tenth of the flash is full after half of the pages.
    let small = flash_cache("fp", 0.1, false)
        .and("promote_after", Value::Count(3))
        .and("promote_all_below", Value::Number(1.0));
    let [_, writes] = flash_pages(&rounds(1, &small).1);
    assert!((80..=140).contains(&writes), "{writes}");
}

#[test]
fn promotions_keep_to_their_rate() {
    // A read takes 5 ms of the disk: 200 of them take a second. Eight pages a second.
    let settings = flash_cache("fp", 0.9, false)
        .and("write_policy", Value::Text("around".to_owned()))
        .and("promote_rate", Value::Rate(8 * 4096));
    let (events, asked) = rounds(1, &settings);
    let seconds = events.last().expect("some").time.as_ns() / 1_000_000_000 + 1;
    let [_, writes] = flash_pages(&asked);
    assert!(writes >= 8 && writes <= 8 * seconds, "{writes} in {seconds} s");
}

#[test]
fn dirty_pages_are_written_back_to_their_share_and_stay() {
    let settings = flash_cache("fp", 0.9, false).and("dirty_share", Value::Number(0.1));
    let (events, asked) = rounds(1, &settings);
    let mut dirty = 0;
    for record in &events {
        if let Some(CacheEvent::DirtyPages { pages }) = record.event() {
            dirty = pages;
        }
    }
    assert!((80..=100).contains(&dirty), "a tenth of about 950: {dirty}");
    // The reads of pages that have been written back hit: flash is read for both.
    assert!(flash_pages(&asked)[0] >= 290, "{:?}", flash_pages(&asked));
    let (_, unlimited) = rounds(1, &flash_cache("fp", 0.9, false));
    assert_eq!(flash_pages(&unlimited)[0], 200);
}

/// Rounds in which reads all over the disk fill the cache, and then a few pages are written again
/// and again. Never less than eight requests at a time.
struct Busy {
    stream: Stream,
    sent: u64,
    rounds: u64,
}

const ROUND: u64 = 20_000;

impl Source for Busy {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        self.sent += 1;
        if self.sent >= ROUND * self.rounds {
            return Ok(None);
        }
        let (op, lba) = match self.sent % ROUND {
            0..2_000 => (Op::Read, self.stream.below(1_900)),
            _ => (Op::Write, self.stream.below(16)),
        };
        Ok(Some(Arrival { at: SimTime::ZERO, request: Request::new(op, Lba(lba * 8), 8) }))
    }
}

/// Events of a run under [`Busy`], and the requests to flash, which take 2 ms each.
fn busy(
    adjust: &str,
    mapping: bool,
    cuts: Option<PowerFailureInjector>,
) -> (Vec<EventRecord>, Notes) {
    busy_for(1, adjust, mapping, cuts)
}

/// As [`busy`], for this many rounds.
fn busy_for(
    rounds: u64,
    adjust: &str,
    mapping: bool,
    cuts: Option<PowerFailureInjector>,
) -> (Vec<EventRecord>, Notes) {
    let source = Busy { stream: Stream::new(1, "busy"), sent: 0, rounds };
    let host = Host::plain(HostOptions::closed(8), source);
    let settings = flash_cache("op", 0.9, mapping).and("adjust", Value::Text(adjust.into()));
    observe(&settings, host, cuts)
}

/// Events of a run, and the requests to flash.
fn observe(
    settings: &Settings,
    host: Host,
    cuts: Option<PowerFailureInjector>,
) -> (Vec<EventRecord>, Notes) {
    let registry = registry();
    let children = [8_000, 16_000];
    let rig = Rig { entry: &ENTRY, settings, registry: &registry, children: &children, seed: 0 };
    let component = rig.build().expect("fine");
    let (flash, asked) = heard("flash", 8_000, FLASH_US);
    let (disk, _) = heard("disk", 16_000, 5_000);
    let cache = ComponentTree { path: "cache".into(), component, children: vec![flash, disk] };
    let mut machine = Machine::new(ComponentTree::inner("host", host, vec![cache]), true);
    if let Some(cuts) = cuts {
        machine.fail_power(cuts);
    }
    let mut events = Vec::new();
    machine.run(&mut events, &mut |_| true).expect("runs");
    (events, asked)
}

const FLASH_US: u64 = 2_000;

#[test]
fn a_system_that_is_never_idle_adjusts_if_asked_to() {
    let given_up = |adjust| {
        let (events, asked) = busy(adjust, true, None);
        let done =
            |record: &&EventRecord| matches!(record.event(), Some(CommonEvent::Completed { .. }));
        let last = events.iter().rfind(done).expect("some").time;
        let before = |note: &&(SimTime, Request)| note.1.op == Op::Trim && note.0 < last;
        let asked = asked.borrow();
        asked.iter().filter(before).map(|note| u64::from(note.1.sectors) / 8).sum::<u64>()
    };
    assert!(given_up("always") > 200);
    assert_eq!(given_up("idle"), 0);
}

#[test]
fn trimmed_pages_are_used_again() {
    let (_, asked) = busy_for(6, "always", false, None);
    let asked = asked.borrow();
    let trims = asked.iter().filter(|note| note.1.op == Op::Trim);
    let pages: u64 = trims.map(|note| u64::from(note.1.sectors) / 8).sum();
    assert!(pages > 1_000, "{pages} of a flash of 1,000 pages");
}

#[test]
fn what_was_given_up_when_the_power_failed_is_trimmed_when_it_is_back() {
    let mut lost = 0;
    for seed in 0..10 {
        let cuts = PowerFailureInjector::new(400, 100, Stream::new(seed, "cut"));
        let (events, asked) = busy("always", seed % 2 == 0, Some(cuts));
        let asked = asked.borrow();
        let trims = || asked.iter().filter(|note| note.1.op == Op::Trim);
        let took = SimDuration::from_us(FLASH_US);
        for cut in events
            .iter()
            .filter(|record| matches!(record.event(), Some(CommonEvent::PowerCut { .. })))
        {
            let cut = cut.time;
            for (_, trim) in trims().filter(|note| note.0 < cut && note.0 + took > cut) {
                lost += 1;
                let covers = |again: &Request| again.lba <= trim.lba && trim.end() <= again.end();
                assert!(trims().any(|(at, again)| *at >= cut && covers(again)), "{seed}: {trim:?}");
            }
        }
    }
    assert!(lost > 1, "{lost} trims were lost");
}

/// Pages of the mapping table and its checkpoints that recoveries read, and how many recoveries.
fn recovered(checkpoint_pages: u64, reserved_pages: u64) -> (u64, usize) {
    let cuts = PowerFailureInjector::new(900, 20, Stream::new(3, "cut"));
    let source = Busy { stream: Stream::new(1, "busy"), sent: 0, rounds: 1 };
    let host = Host::plain(HostOptions::closed(8), source);
    let settings = flash_cache("fp", 0.9, true);
    let settings = settings.and("checkpoint_pages", Value::Count(checkpoint_pages));
    let (events, asked) = observe(&settings, host, Some(cuts));
    let is_end = |event: &EventRecord| matches!(event.event(), Some(CommonEvent::Recovered { .. }));
    let data_end = Lba((1000 - reserved_pages) * 8);
    let asked = asked.borrow();
    let reads = asked.iter().filter(|note| note.1.op == Op::Read && note.1.lba >= data_end);
    (reads.map(|note| u64::from(note.1.sectors) / 8).sum(), count(&events, is_end))
}

#[test]
fn recovery_reads_the_newest_checkpoint_instead_of_the_whole_table() {
    // A table of 1,000 pages takes 16, a checkpoint of it two.
    let (all, recoveries) = recovered(0, 16);
    assert!(recoveries > 10, "{recoveries}");
    assert_eq!(all, 16 * recoveries as u64);
    let (pages, recoveries) = recovered(100, 16 + 2 * 2);
    assert!(recoveries > 10 && pages < 8 * recoveries as u64, "{pages} in {recoveries}");
}

#[test]
fn checkpoints_need_a_mapping_table() {
    let settings = flash_cache("op", 0.9, false).and("checkpoint_pages", Value::Count(100));
    let registry = registry();
    let children = [800, 2000];
    let settings = &settings;
    let rig = Rig { entry: &ENTRY, settings, registry: &registry, children: &children, seed: 1 };
    let problem = rig.build().err().expect("there is nothing to write");
    assert!(problem.contains("set `mapping`"), "{problem}");
}

#[test]
fn divisions_add_up_and_steps_are_small() {
    let (events, asked) = busy("always", true, None);
    let numbers: Vec<u64> = events
        .iter()
        .filter_map(|record| match record.event() {
            Some(CommonEvent::Custom { value, .. }) => Some(value),
            _ => None,
        })
        .collect();
    // Pages for reads, for writes, left to flash; of 8,000 sectors in pages of eight, and of a
    // twentieth of all that the device keeps to itself.
    let divisions = numbers.chunks_exact(3);
    let different: std::collections::BTreeSet<_> = divisions.clone().collect();
    assert!(different.len() > 3, "{different:?}");
    for division in divisions {
        assert_eq!(division.iter().sum::<u64>(), 1052, "{division:?}");
        assert!(division[0] > 0 && division[1] > 0, "neither side is ever without a page");
    }
    // What a step gives up is trimmed at once: four pages here, 128 in the paper.
    let mut steps = std::collections::BTreeMap::new();
    for (at, trim) in asked.borrow().iter().filter(|note| note.1.op == Op::Trim) {
        *steps.entry(*at).or_insert(0) += trim.sectors / 8;
    }
    assert!(steps.len() > 50, "{}", steps.len());
    assert!(steps.values().all(|pages| *pages <= 4), "{steps:?}");
}

/// Groups of four neighbours, each group in another order than that of the disk.
struct Groups {
    sent: u64,
}

impl Source for Groups {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        let (group, place) = (self.sent / 4, [3, 1, 0, 2][self.sent as usize % 4]);
        self.sent += 1;
        let page = group * 37 % 450 * 4 + place;
        let request = Request::new(Op::Write, Lba(page * 8), 8);
        Ok((group < 1_000).then_some(Arrival { at: SimTime::ZERO, request }))
    }
}

#[test]
fn neighbours_are_written_back_together() {
    for scheme in ["fp", "rw", "op"] {
        let host = Host::plain(HostOptions::closed(1), Groups { sent: 0 });
        let (events, _) = observe(&flash_cache(scheme, 0.3, true), host, None);
        let written: Vec<u64> = events
            .iter()
            .filter_map(|record| match record.event() {
                Some(CacheEvent::Destaged { sectors }) => Some(u64::from(sectors) / 8),
                _ => None,
            })
            .collect();
        let pages: u64 = written.iter().sum();
        let writes = written.len() as u64;
        assert!(pages > 500 && 2 * writes < pages, "{scheme}: {pages} pages in {writes} writes");
    }
}

/// Bursts of writes all over the disk, a second apart.
struct Bursts {
    stream: Stream,
    sent: u64,
}

impl Source for Bursts {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        self.sent += 1;
        let at = SimTime::ZERO + SimDuration::from_ms(1000 * (self.sent / 40));
        let request = Request::new(Op::Write, Lba(self.stream.below(1_900) * 8), 8);
        Ok((self.sent < 8_000).then_some(Arrival { at, request }))
    }
}

#[test]
fn what_was_written_back_ahead_makes_room_at_once() {
    let mean_us = |scheme: &str, pages: u64| {
        let settings = flash_cache(scheme, 0.3, true).and("write_ahead", Value::Count(pages));
        let source = Bursts { stream: Stream::new(1, "bursts"), sent: 0 };
        let host = Host::plain(HostOptions::open(64), source);
        let (events, _) = observe(&settings, host, None);
        let latency = |record: &EventRecord| match record.event() {
            Some(CommonEvent::Completed { latency, .. }) => Some(latency.as_ns() / 1000),
            _ => None,
        };
        let all: Vec<u64> = events.iter().filter_map(latency).collect();
        all.iter().sum::<u64>() / all.len() as u64
    };
    for scheme in ["fp", "rw", "op"] {
        let (without, with) = (mean_us(scheme, 0), mean_us(scheme, 60));
        assert!(2 * with < without, "{scheme}: {with} us against {without} us");
    }
}

/// A page is written, then read with its neighbours: while those are put into the cache, the only
/// dirty page is locked and no request waits.
struct Staged {
    sent: u64,
}

impl Source for Staged {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        self.sent += 1;
        let (ms, request) = match self.sent {
            1 => (0, Request::new(Op::Write, Lba(8), 8)),
            2 => (0, Request::new(Op::Read, Lba(0), 24)),
            3 => (1000, Request::new(Op::Read, Lba(800), 8)),
            _ => return Ok(None),
        };
        Ok(Some(Arrival { at: SimTime::ZERO + SimDuration::from_ms(ms), request }))
    }
}

#[test]
fn writing_ahead_waits_for_pages_in_use() {
    let settings = flash_cache("rw", 0.5, true)
        .and("write_ahead", Value::Count(10))
        .and("write_ahead_pause", Value::Duration(SimDuration::from_us(1)));
    let host = Host::plain(HostOptions::open(4), Staged { sent: 0 });
    let (events, _) = observe(&settings, host, None);
    assert_eq!(
        count(&events, |event| matches!(event.event(), Some(CacheEvent::Destaged { .. }))),
        1
    );
}

/// Pages written once fill the cache; then others are read again and again.
struct WritesThenReads {
    stream: Stream,
    sent: u64,
}

impl Source for WritesThenReads {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        self.sent += 1;
        let (op, page) = match self.sent {
            0..2_000 => (Op::Write, self.sent % 1_500),
            2_000..12_000 => (Op::Read, 1_600 + self.stream.below(300)),
            _ => return Ok(None),
        };
        Ok(Some(Arrival { at: SimTime::ZERO, request: Request::new(op, Lba(page * 8), 8) }))
    }
}

#[test]
fn reads_evict_dirty_pages_of_the_one_list_in_their_turn() {
    let misses = |scheme| {
        let source = WritesThenReads { stream: Stream::new(1, "reads"), sent: 0 };
        let host = Host::plain(HostOptions::closed(8), source);
        let (events, _) = observe(&flash_cache(scheme, 0.5, true), host, None);
        let missed = events.iter().filter_map(|record| match record.event() {
            Some(CacheEvent::CacheLookup { op: Op::Read, misses, .. }) => Some(misses),
            _ => None,
        });
        missed.sum::<u32>()
    };
    // 300 pages have to be read from the disk, and a few of them twice while room is made.
    assert!((300..1_000).contains(&misses("fp")), "{}", misses("fp"));
}
