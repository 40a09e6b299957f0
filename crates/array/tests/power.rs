//! Arrays whose power fails: what was acknowledged is there, or its loss is reported; an array that
//! does not mend what was interrupted is found out.

mod support;

use hybridsim_config::param::{Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_conformance::{Checked, Load, Rig};
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{EventRecord, Op, Request};
use support::{Asked, entry, failing, read, reported, run, settings, write};

const ARRAYS: [&str; 6] = ["raid1", "raid10", "raid4", "raid5", "raid6", "declustered"];
const CHILD_SECTORS: u64 = 72;

fn with(settings: Settings, name: &'static str, word: &str) -> Settings {
    settings.and(name, Value::Text(word.to_owned()))
}

/// Random requests over six members, and `spares`; a power failure takes some dozens of them each.
fn load(name: &str, settings: &Settings, spares: usize, seed: u64) -> Result<Checked, String> {
    let mut children = vec![CHILD_SECTORS; 6 + spares];
    // Room for few stripes, or for many.
    children.extend(settings.has("journal").then_some(60 + 500 * (seed % 2)));
    let registry = Registry::default();
    let rig = Rig { entry: entry(name), settings, registry: &registry, children: &children, seed };
    let load = Load { requests: 2500, sectors_max: 40, seed };
    let depth = [2, 8, 32][seed as usize % 3];
    let seen = rig.check_power_cuts(&load, depth, (60 + 20 * u64::from(depth), 20))?;
    let is_cut = |event: &&hybridsim_engine::EventRecord| {
        matches!(event.event(), Some(CommonEvent::PowerCut { .. }))
    };
    let cuts = seen.events.iter().filter(is_cut).count();
    assert!(cuts > 9, "{name}: {cuts} power failures");
    Ok(seen)
}

/// Everything is served and right.
fn survives(name: &str, settings: &Settings, spares: usize, seed: u64) -> Checked {
    let seen =
        load(name, settings, spares, seed).unwrap_or_else(|error| panic!("{settings:?}: {error}"));
    assert_eq!(reported(&seen.events, "unserved_sectors"), [], "{name} {settings:?}");
    seen
}

#[test]
fn whole_arrays_keep_what_they_acknowledged() {
    for name in ARRAYS {
        for seed in 0..9 {
            for resync in ["full", "bitmap"] {
                let settings = with(settings(1 + seed), "resync", resync);
                let seen = survives(name, &settings, 0, seed);
                assert!(reported(&seen.events, "resync_started").iter().any(|steps| *steps > 0));
                let last = reported(&seen.events, "resync_ended_ns");
                assert!(!last.is_empty(), "{name} {resync}: none came to its end");
            }
            let early = with(settings(4), "small_write", "read-modify-write");
            survives(name, &with(early, "write_order", "early"), 0, seed);
        }
    }
}

/// Time at which the last power failure was mended.
fn mended(seen: &Checked) -> u64 {
    let last = |is: fn(&EventRecord) -> bool| {
        let time = seen.events.iter().rfind(|record| is(record)).map(|it| it.time.as_ns());
        time.expect("reported")
    };
    let cut = last(|event| matches!(event.event(), Some(CommonEvent::PowerCut { .. })));
    let ended = last(|event| matches!(event.event(), Some(CommonEvent::Custom { name: 8, .. })));
    assert!(ended > cut, "the last resync came to its end");
    ended
}

#[test]
fn when_parity_is_mended_a_member_may_fail() {
    for name in ARRAYS {
        for seed in 0..6 {
            for resync in ["full", "bitmap"] {
                let whole = survives(name, &with(settings(4), "resync", resync), 0, seed);
                let at = mended(&whole) + 1;
                assert!(at < whole.end.time.as_ns(), "{name} {seed}: the load goes on");
                let settings = with(failing(4, 0, &[(seed, at)]), "resync", resync);
                let seen = survives(name, &settings, 0, seed);
                assert_eq!(reported(&seen.events, "member_failed"), [seed]);
            }
        }
    }
}

#[test]
fn copies_survive_with_one_missing_or_being_filled() {
    for name in ["raid1", "raid10"] {
        for member in [0, 3, 5] {
            for (seed, at) in [0, 300_000, 2_000_000, 9_000_000].into_iter().enumerate() {
                for (resync, spares) in [("full", 0), ("full", 1), ("bitmap", 0), ("bitmap", 1)] {
                    let failures = [(member, at)];
                    let settings = with(failing(4, spares, &failures), "resync", resync);
                    let seed = seed as u64 + member;
                    let seen = survives(name, &settings, spares, seed);
                    assert_eq!(reported(&seen.events, "rebuild_ended_ns").len(), spares, "{name}");
                }
            }
        }
    }
}

/// A power failure may take the data of a stripe without one of its members: an update that was
/// interrupted leaves parity that stands for nothing. The array says so.
#[test]
fn the_write_hole_is_reported_and_never_wrong() {
    for name in ["raid4", "raid5", "raid6", "declustered"] {
        let mut refused = 0;
        for member in [0, 3, 5] {
            for (seed, at) in [0, 300_000, 2_000_000, 9_000_000].into_iter().enumerate() {
                for (resync, spares) in [("full", 0), ("full", 1), ("bitmap", 0), ("bitmap", 1)] {
                    let settings = with(failing(4, spares, &[(member, at)]), "resync", resync);
                    let seen = load(name, &settings, spares, seed as u64 + member)
                        .unwrap_or_else(|error| panic!("{settings:?}: {error}"));
                    let unserved = reported(&seen.events, "unserved_sectors").len();
                    let hole = reported(&seen.events, "write_hole_sectors").len();
                    assert!(unserved <= hole, "{name}: lost by nothing else");
                    refused += hole;
                }
            }
        }
        assert!(refused > 50, "{name}: {refused} refused");
    }
}

/// Runs that verification found out.
fn found_out(name: &str, settings: &Settings) -> usize {
    let wrong = |seed| match load(name, settings, 0, seed) {
        Ok(_) => false,
        Err(error) => {
            assert!(error.contains("wrong data"), "{error}");
            true
        }
    };
    (0..12).filter(|seed| wrong(*seed)).count()
}

#[test]
fn arrays_that_mend_nothing_are_found_out() {
    let none = |failures: &[(u64, u64)]| with(failing(4, 0, failures), "resync", "none");
    for name in ["raid1", "raid10"] {
        let found = found_out(name, &with(none(&[]), "read_choice", "round-robin"));
        assert!(found >= 8, "{name}: {found} of 12 copies that disagree");
        assert_eq!(found_out(name, &with(none(&[]), "read_choice", "primary")), 0, "{name}");
    }
    for name in ["raid4", "raid5", "raid6", "declustered"] {
        assert_eq!(found_out(name, &none(&[])), 0, "{name}: whole: no parity is computed");
        let found = found_out(name, &none(&[(1, 3_000_000)]));
        assert!(found >= 6, "{name}: {found} of 12 times parity that does not match");
        let trusts = with(failing(4, 0, &[(1, 0)]), "unsynced_parity", "trust");
        let found = found_out(name, &trusts);
        assert!(found >= 6, "{name}: {found} of 12 times parity that is believed");
    }
}

#[test]
fn a_bit_is_on_every_member_before_the_write_and_cleared_behind_a_flush() {
    // 800 sectors: the bitmap is the last one. Bits stand for 8 sectors, pages are one sector.
    let bitmap = with(settings(8), "resync", "bitmap");
    let wait = (0..150).map(|at| read(at, 1));
    for (name, first, again) in [("raid1", 3, 0), ("raid5", 3, 0)] {
        let mut requests: Vec<Request> = vec![write(0, 8), write(1, 3)];
        requests.extend(wait.clone());
        requests.push(write(0, 8));
        let seen = run(name, &bitmap, (3, 800), &requests, 1);
        let is_bitmap = |asked: &Asked| asked.1 == Op::Write && asked.2 == 799;
        let at = |is: &dyn Fn(&Asked) -> bool| seen.asked.iter().position(is).expect("asked");
        let data = at(&|asked| asked.1 == Op::Write && asked.2 < 799);
        let before = seen.asked[..data].iter().filter(|asked| is_bitmap(asked)).count();
        assert_eq!(before, first, "{name}: {:?}", &seen.asked[..data]);
        let cleared = at(&|asked| asked.1 == Op::Flush);
        let meanwhile = seen.asked[data..cleared].iter().filter(|asked| is_bitmap(asked)).count();
        assert_eq!(meanwhile, again, "{name}: the bit was set already");
        let rest = seen.asked[cleared..].iter().filter(|asked| is_bitmap(asked)).count();
        assert_eq!(rest, 6, "{name}: cleared, and set again");
        assert_eq!(seen.count(Op::Flush), 3, "{name}");
    }
}

#[test]
fn an_array_without_power_failures_costs_what_it_did() {
    let requests: Vec<Request> = (0..300).map(|at| write(at * 7 % 500, 5)).collect();
    for name in ARRAYS {
        let full = run(name, &settings(8), (6, 800), &requests, 4);
        let none = run(name, &with(settings(8), "resync", "none"), (6, 800), &requests, 4);
        assert_eq!((full.end, full.asked), (none.end, none.asked), "{name}");
    }
}

#[test]
fn regions_that_make_no_bitmap_are_refused() {
    let registry = Registry::default();
    let settings = with(settings(1), "resync", "bitmap").and("bitmap_region", Value::Bytes(512));
    let children = [1 << 40; 3];
    for name in ["raid1", "raid5"] {
        let small = settings.clone().and("rebuild_step", Value::Bytes(512));
        let entry = entry(name);
        let rig =
            Rig { entry, settings: &small, registry: &registry, children: &children, seed: 1 };
        let problem = rig.build().err().expect("too long a bitmap");
        assert!(problem.contains("bitmap_region: makes a bitmap of"), "{problem}");
    }
}

#[test]
fn a_journal_closes_the_write_hole() {
    for name in ["raid4", "raid5", "raid6", "declustered"] {
        let mut replayed = 0;
        for member in [0, 3, 5] {
            for (seed, at) in [0, 300_000, 2_000_000, 9_000_000].into_iter().enumerate() {
                for (resync, spares) in [("full", 0), ("full", 1), ("bitmap", 0), ("none", 0)] {
                    let settings = with(failing(4, spares, &[(member, at)]), "resync", resync);
                    let settings = with(settings, "journal", "j");
                    let seen = survives(name, &settings, spares, seed as u64 + member);
                    replayed += reported(&seen.events, "journal_replayed_ns").len();
                }
            }
        }
        assert!(replayed > 100, "{name}: {replayed}");
    }
}

#[test]
fn a_journal_that_fails_is_done_without() {
    for name in ["raid4", "raid5", "raid6", "declustered"] {
        for seed in 0..8 {
            let failures = [(6, 1 + 700_000 * seed)];
            let settings = with(failing(4, 0, &failures), "journal", "j");
            let seen = survives(name, &settings, 0, seed);
            assert_eq!(reported(&seen.events, "member_failed"), [6]);
            assert!(
                reported(&seen.events, "resync_started").iter().any(|steps| *steps > 0),
                "{name}"
            );
        }
    }
}

#[test]
fn journals_that_make_no_sense_are_refused() {
    let registry = Registry::default();
    let reported = |settings: Settings, journal: u64| {
        let settings = with(settings, "journal", "j");
        let children = [72, 72, 72, journal];
        let entry = entry("raid5");
        Rig { entry, settings: &settings, registry: &registry, children: &children, seed: 1 }
            .build()
            .err()
            .unwrap_or_default()
    };
    assert_eq!(reported(settings(4), 100), "");
    assert!(reported(settings(4), 12).contains("must hold more than the 12 sectors"));
    let pass = with(settings(4), "trim", "pass");
    assert!(
        reported(with(pass, "write_order", "early"), 100)
            .contains("`early` cannot be combined with")
    );
}
