//! Zone semantics of every part that has zones or presents those of others.

use hybridsim_array::{concat, stripe};
use hybridsim_config::build::BuildInput;
use hybridsim_config::param::{Settings, Value};
use hybridsim_conformance::over;
use hybridsim_conformance::zones::ZoneRig;
use hybridsim_engine::{
    ComponentTree, Flags, Lba, Op, Request, SimDuration, ZoneAction, ZoneState,
};
use hybridsim_flash::defaults;
use hybridsim_ssd::zns::{ZnsParams, build_zns};
use proptest::prelude::*;

/// Sectors of a page.
const PAGE: u64 = 4;

/// A device of 12 zones of 28 pages, 32 pages apart, with these limits. One zone fewer than may be
/// open may have a random write area, of 6 pages.
fn device(path: &str, [open_max, active_max]: [u64; 2]) -> ComponentTree {
    let time = |us| Value::Duration(SimDuration::from_us(us));
    let registry = hybridsim_ssd::registry();
    let mut settings = defaults::settings(ZnsParams::PARAMS, &registry);
    let counts = [
        ("channels", 2),
        ("dies_per_channel", 2),
        ("planes_per_die", 1),
        ("blocks_per_plane", 14),
        ("pages_per_block", 8),
        ("zones", 12),
        ("max_open_zones", open_max),
        ("max_active_zones", active_max),
    ];
    for (name, count) in counts {
        settings.set(name, Value::Count(count));
    }
    for (name, sectors) in [("page_size", 1), ("zone_capacity", 28), ("zone_size", 32)] {
        settings.set(name, Value::Bytes(sectors * PAGE * 512));
    }
    for (name, us) in [("read_time", 25), ("program_time", 300), ("erase_time", 2_000)] {
        settings.set(name, time(us));
    }
    settings.set("reset_time", time(50));
    if open_max > 1 {
        settings.set("zrwa_size", Value::Bytes(6 * PAGE * 512));
        settings.set("zrwa_granularity", Value::Bytes(2 * PAGE * 512));
        settings.set("zrwa_zones", Value::Count(open_max - 1));
    }
    let input =
        BuildInput { settings: &settings, registry: &registry, seed: 1, path, children: &[] };
    let built = build_zns(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
    ComponentTree::leaf(path, built)
}

const KINDS: [&str; 4] = ["zns-ssd", "concat", "stripe", "stripe of concats"];

/// A system with zones, whose devices have these limits.
fn system(kind: &str, limits: [u64; 2]) -> ComponentTree {
    let members = |count: usize| -> Vec<ComponentTree> {
        (0..count).map(|at| device(&format!("host/it/{at}"), limits)).collect()
    };
    let names = Settings::default().and("members", Value::Texts(Vec::new()));
    let chunk = |pages: u64| names.clone().and("chunk", Value::Bytes(pages * PAGE * 512));
    match kind {
        "zns-ssd" => device("host/it", limits),
        "concat" => over(&concat::ENTRY, &names, &hybridsim_ssd::registry(), members(2)),
        "stripe" => over(&stripe::ENTRY, &chunk(2), &hybridsim_ssd::registry(), members(3)),
        "stripe of concats" => {
            let pairs = (0..2)
                .map(|_| over(&concat::ENTRY, &names, &hybridsim_ssd::registry(), members(2)));
            over(&stripe::ENTRY, &chunk(4), &hybridsim_ssd::registry(), pairs.collect())
        }
        other => panic!("no system `{other}`"),
    }
}

fn rig(kind: &str, limits: [u64; 2], verifies: bool) -> ZoneRig {
    ZoneRig::new(system(kind, limits), verifies).unwrap_or_else(|error| panic!("{kind}: {error}"))
}

#[test]
fn every_action_in_every_state_leads_where_the_specification_says() {
    use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen};
    for kind in KINDS {
        for state in [Empty, ImplicitlyOpen, ExplicitlyOpen, Closed, Full] {
            for action in ZoneAction::ALL.map(Some).into_iter().chain([None]) {
                let checked = rig(kind, [3, 5], true).check_transition(state, action);
                checked.unwrap_or_else(|error| panic!("{kind}: {error}"));
            }
        }
    }
}

#[test]
fn limits_hold_and_the_least_recently_used_zone_is_closed() {
    for kind in KINDS {
        let mut rig = rig(kind, [2, 4], true);
        let size = rig.layout().size;
        let page = rig.layout().page as u32;
        let manage =
            |action, zone: u64| Request::new(Op::Zone(action), Lba(zone * size), size as u32);
        let write = |zone: u64, pages: u64| {
            Request::new(Op::Write, Lba(zone * size + pages * u64::from(page)), page)
        };
        let requests = [
            // The third open zone closes the second, which was used before the first.
            write(0, 0),
            write(1, 0),
            write(0, 1),
            write(2, 0),
            // An explicitly open zone is not closed for a write.
            manage(ZoneAction::Open, 0),
            write(1, 1),
            manage(ZoneAction::Open, 1),
            write(2, 1),
            // The fifth active zone is refused, until one is full or empty.
            write(3, 0),
            manage(ZoneAction::Close, 1),
            write(3, 0),
            write(4, 0),
            manage(ZoneAction::Finish, 2),
            write(4, 0),
            write(5, 0),
            manage(ZoneAction::Reset, 0),
            write(5, 0),
            Request { flags: Flags::APPEND, ..write(5, 1) },
        ];
        for request in requests {
            rig.serve(&[request]).unwrap_or_else(|error| panic!("{kind}: {error}"));
        }
        rig.cut_power().unwrap_or_else(|error| panic!("{kind}: {error}"));
        rig.read_back().unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}

#[test]
fn a_zone_written_in_part_at_a_power_failure_takes_no_writes_until_it_is_reset() {
    let mut rig = rig("stripe", [3, 5], true);
    let write = Request::new(Op::Write, Lba(0), 6 * PAGE as u32);
    let cut = rig.cut_power_during(&[write], SimDuration::from_us(100));
    cut.and_then(|()| rig.serve(&[write])).unwrap_or_else(|error| panic!("{error}"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Random requests in any order agree with the reference model.
    #[test]
    fn random_orders_agree_with_the_model(
        kind in 0..KINDS.len(),
        limits in (1u64..6, 0u64..5),
        verifies in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let limits = [limits.0, limits.0 + limits.1];
        let checked = rig(KINDS[kind], limits, verifies).check_random(seed, 600);
        prop_assert!(checked.is_ok(), "{}: {}", KINDS[kind], checked.unwrap_err());
    }
}
