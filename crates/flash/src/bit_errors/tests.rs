use super::power_law::PowerLaw;
use super::*;
use crate::geometry::{DieId, Shape};
use crate::ops::{After, SlcMode};
use hybridsim_config::check;
use hybridsim_config::registry::Registry;

/// Rates of a power law with these parameters.
fn law(keys: &str) -> PowerLaw {
    let settings = check::read(keys, &[PowerLaw::PARAMS], &Registry::default());
    PowerLaw::from_settings(&settings.unwrap_or_else(|problems| panic!("{problems}")))
}

/// A model of one plane of 4 blocks of 8 pages, all written before the run.
fn model(rates: PowerLaw, refresh: RefreshRules) -> BitErrors {
    let shape = Shape {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 4,
        pages_per_block: 8,
        page_bytes: 4_096,
        spare_bytes: 0,
    };
    let written = Block { before: 8, cycles: 1_000, ..Block::default() };
    BitErrors {
        geometry: Geometry::new(&shape).expect("a valid shape"),
        rates: Box::new(rates),
        muted: false,
        types: Vec::new(),
        type_pages: 1,
        slc_factor: 0.5,
        ecc: Ecc::new(8_192, 72, 4),
        ecc_bits: 72,
        retry_time: None,
        retries: Retries { max: 3, factor: 0.5 },
        refresh,
        retention_age: days(10),
        initial_cycles: 0,
        state: State {
            blocks: vec![written; 4],
            lost: BTreeSet::new(),
            last_read: u32::MAX,
            stream: Stream::new(1, "bit-errors"),
            due: VecDeque::new(),
            deferred: Vec::new(),
            by_age: (0..4).map(|block| (Programmed::Before, BlockId(block))).collect(),
        },
        unread: Vec::new(),
    }
}

fn days(days: u64) -> SimDuration {
    SimDuration::from_ns(days * 86_400_000_000_000)
}

/// After so many days.
fn day(number: u64) -> SimTime {
    SimTime::ZERO + days(number)
}

fn op(kind: OpKind, cause: Cause, page: u32, from: u32) -> FlashOp {
    FlashOp {
        kind,
        cause,
        die: DieId(0),
        from_die: DieId(0),
        retries: 0,
        transfers: 0,
        after: After::NOTHING,
        page,
        slc: SlcMode::default(),
        from,
    }
}

fn read(page: u32) -> FlashOp {
    op(OpKind::Read, Cause::Host, page, 0)
}

fn copy(from: u32, to: u32) -> FlashOp {
    op(OpKind::Copy, Cause::Gc, to, from)
}

/// The number of retries of each operation, and whether the host's data could be read.
fn follow(model: &mut BitErrors, now: SimTime, list: &[FlashOp]) -> (Vec<u8>, bool) {
    let mut list = list.to_vec();
    let failed = model.follow(now, &mut list, |_| {});
    (list.iter().map(|op| op.retries).collect(), !failed)
}

/// Data of before the run cannot be read, and those of the run can.
fn old_data_are_lost() -> PowerLaw {
    law("rber_retention = 0.1\nretention_exponent = 1.0")
}

#[test]
fn the_rate_is_the_sum_of_its_terms() {
    let terms = "rber_base = 1e-5\nrber_wear = 3e-5\nwear_exponent = 2.0\nrber_retention = 1e-4\n\
                 retention_exponent = 0.5\nrber_read = 1e-8\nread_wear_exponent = 1.5\n";
    let by_wear = format!("{terms}retention_wear_exponent = 1.0");
    let mut worn = model(law(&by_wear), RefreshRules::default());
    worn.type_pages = 2;
    let block = Block { reads: 700, cycles: 4_000, ..Block::default() };
    // 1e-5 + 3e-5 * 4^2 + 1e-4 * 4 * sqrt(9) + 1e-8 * 8 * 700.
    let wanted = 1e-5 + 48e-5 + 12e-4 + 5.6e-5;
    let of = |model: &BitErrors, offset, slc| model.rate(&block, days(9), (offset, slc)) / wanted;
    assert!((of(&worn, 0, false) - 1.0).abs() < 1e-12);
    worn.types = vec![0.5, 1.0, 1.5];
    let of_types = [0, 1, 2, 5, 6].map(|offset| of(&worn, offset, false));
    let factors = [0.5, 0.5, 1.0, 1.5, 0.5];
    assert!(of_types.iter().zip(factors).all(|(a, b)| (a - b).abs() < 1e-12), "{of_types:?}");
    let slc = [0, 5].map(|offset| of(&worn, offset, true));
    assert!(
        slc.iter().all(|rate| (rate - 0.5).abs() < 1e-12),
        "no page types in SLC mode: {slc:?}"
    );
    // New flash, just programmed: exponents of zero do not make an error of the power of zero.
    let new = model(law(&format!("{terms}retention_wear_exponent = 0.0")), RefreshRules::default());
    assert_eq!(new.rate(&Block::default(), SimDuration::ZERO, (0, false)), 1e-5);
}

#[test]
fn time_erases_and_reads_count_per_block() {
    let mut model = model(law(""), RefreshRules::default());
    let erase = op(OpKind::Erase, Cause::Gc, 1, 0);
    let program = |page| op(OpKind::Program, Cause::Host, page, FRESH);
    follow(&mut model, day(1), &[read(3), read(8), copy(9, 16), erase, program(8), read(8)]);
    follow(&mut model, day(2), &[program(9)]);
    let [first, second, third, _] = model.state.blocks[..] else { panic!("four blocks") };
    assert_eq!((first.reads, first.programmed(0)), (1, Some(Programmed::Before)));
    assert_eq!((second.reads, second.cycles), (1, 1_001));
    assert_eq!(second.programmed(1), Some(Programmed::At(day(1))), "the first page decides");
    assert_eq!((third.reads, third.programmed(0)), (0, Some(Programmed::Before)));
}

#[test]
fn what_the_run_adds_to_a_block_of_before_is_new() {
    let mut model = model(old_data_are_lost(), RefreshRules::default());
    model.state.blocks[1].before = 5;
    let program = |page| op(OpKind::Program, Cause::Host, page, FRESH);
    follow(&mut model, day(0), &[program(13), program(14)]);
    for (page, readable) in [(12, false), (13, true), (14, true)] {
        assert_eq!(follow(&mut model, day(0), &[read(page)]).1, readable, "page {page}");
    }
}

#[test]
fn a_page_that_could_not_be_read_stays_unreadable() {
    // Half of the first attempts fail, and retries always do.
    let rates = law("rber_base = 8e-3");
    let mut model = model(rates, RefreshRules::default());
    model.retries.factor = 1.0;
    let mut lost = [false; 32];
    let (mut of_usual, mut retried) = (0, 0);
    for page in (0..32).cycle().take(32 * 40) {
        let (retries, served) = follow(&mut model, day(0), &[read(page)]);
        let known = std::mem::replace(&mut lost[page as usize], !served);
        assert!(!known || !served, "page {page} is readable again");
        assert!(!known || retries == [0], "page {page} is tried again");
        of_usual += u32::from(served);
        retried += u32::from(retries[0] > 0);
    }
    assert!(of_usual > 100 && retried > 20, "{of_usual} {retried}");
    assert!(lost.iter().filter(|lost| **lost).count() > 20, "{lost:?}");
}

#[test]
fn pages_read_in_one_operation_disturb_their_block_once() {
    let mut model = model(law(""), RefreshRules::default());
    model.geometry = model.geometry.with_chip_pages(4, 1);
    // Two pages of the chip, the second of which is read from its second page on and again.
    let pages = [0, 1, 2, 3, 5, 6, 7, 5];
    for page in pages {
        follow(&mut model, day(0), &[read(page)]);
    }
    assert_eq!(model.state.blocks[0].reads, 3);
    // Repeated reads in one list stand for reads of pages without data.
    follow(&mut model, day(0), &[read(8), read(8), read(8)]);
    assert_eq!(model.state.blocks[1].reads, 1);
}

#[test]
fn lost_data_stay_lost_wherever_they_are_moved() {
    let mut model = model(old_data_are_lost(), RefreshRules::default());
    let erase = |block| op(OpKind::Erase, Cause::Gc, block, 0);
    follow(&mut model, day(1), &[erase(1), erase(2), erase(3)]);
    // Pages 0 and 1 are moved twice; the block they came from takes new data.
    let (retries, _) = follow(&mut model, day(1), &[copy(0, 8), copy(1, 9), erase(0)]);
    assert_eq!(retries, [3, 3, 0]);
    let (retries, _) = follow(&mut model, day(1), &[copy(8, 16), copy(9, 17), erase(1)]);
    assert_eq!(retries, [0, 0, 0], "a page known as lost is not tried again");
    let fresh = |page| op(OpKind::Program, Cause::Host, page, FRESH);
    follow(&mut model, day(1), &[fresh(0), fresh(8), fresh(18)]);
    for (page, readable) in [(0, true), (8, true), (16, false), (17, false), (18, true)] {
        assert_eq!(follow(&mut model, day(1), &[read(page)]).1, readable, "page {page}");
    }
}

#[test]
fn data_that_pass_through_the_controller_are_lost_as_well() {
    let mut model = model(old_data_are_lost(), RefreshRules::default());
    let erase = op(OpKind::Erase, Cause::Merge, 1, 0);
    let merge = |kind, page, from| op(kind, Cause::Merge, page, from);
    // Read, erased and written back, as the FTL `in-place` does; and the rest of a page that is
    // written in part.
    let (read_first, back) = (merge(OpKind::Read, 8, 0), merge(OpKind::Program, 8, 8));
    follow(&mut model, day(1), &[read_first, erase, back]);
    assert!(!follow(&mut model, day(1), &[read(8)]).1);
    let rest = op(OpKind::Read, Cause::Partial, 16, 0);
    let host = op(OpKind::Program, Cause::Host, 9, FRESH);
    let (_, served) = follow(&mut model, day(1), &[rest, host]);
    assert!(served, "the write itself is served");
    assert!(!follow(&mut model, day(1), &[read(9)]).1);
}

#[test]
fn blocks_are_refreshed_for_reads_age_and_retries() {
    let none = RefreshRules::default();
    let mut by_reads = model(law(""), RefreshRules { reads: Some(3), ..none });
    follow(&mut by_reads, day(0), &[read(0), read(1), read(8)]);
    assert_eq!(by_reads.next_refresh(day(0)), None);
    follow(&mut by_reads, day(0), &[read(0), read(0)]);
    assert_eq!(by_reads.next_refresh(day(0)), Some(BlockId(0)));
    assert_eq!(by_reads.next_refresh(day(0)), None, "it is returned once");
    by_reads.defer(BlockId(0));
    assert_eq!(by_reads.next_refresh(day(0)), None, "nothing has changed");
    let program = |page| op(OpKind::Program, Cause::Host, page, FRESH);
    follow(&mut by_reads, day(0), &[program(30)]);
    assert_eq!(by_reads.next_refresh(day(0)), None, "no block is full yet");
    follow(&mut by_reads, day(0), &[program(31)]);
    assert_eq!(by_reads.next_refresh(day(0)), Some(BlockId(0)));

    // Data of before the run are 10 days old when it begins.
    let mut by_age = model(law(""), RefreshRules { age: Some(days(12)), ..none });
    let erase = |block| op(OpKind::Erase, Cause::Gc, block, 0);
    follow(&mut by_age, day(1), &[erase(2), program(16), erase(0)]);
    assert_eq!(by_age.next_refresh(day(1)), None);
    assert_eq!(by_age.next_too_old(), Some(day(2)));
    let due: Vec<_> = std::iter::from_fn(|| by_age.next_refresh(day(2))).collect();
    assert_eq!(due, [BlockId(1), BlockId(3)]);
    assert_eq!(by_age.next_too_old(), Some(day(13)));
    assert_eq!(by_age.next_refresh(day(12)), None);
    assert_eq!(by_age.next_refresh(day(13)), Some(BlockId(2)));

    let mut by_retries = model(old_data_are_lost(), RefreshRules { retries: Some(2), ..none });
    follow(&mut by_retries, day(0), &[read(9)]);
    assert_eq!(by_retries.next_refresh(day(0)), Some(BlockId(1)));
}

#[test]
fn a_saved_state_draws_the_same_numbers() {
    let rates = || law("rber_base = 8.5e-3");
    let list: Vec<FlashOp> = (0..400).map(|number| read(number % 32)).collect();
    let mut whole = model(rates(), RefreshRules::default());
    follow(&mut whole, day(0), &list);
    let mut saver = Saver::default();
    whole.save(&mut saver);
    let bytes = saver.into_bytes();
    let mut resumed = model(rates(), RefreshRules::default());
    resumed.restore(&mut Loader::new(&bytes)).expect("its own state");
    let next = follow(&mut whole, day(0), &list);
    assert!(next.0.iter().any(|retries| *retries > 0) && next.0.contains(&0));
    assert_eq!(next, follow(&mut resumed, day(0), &list));
    resumed.state.blocks.pop();
    let mut saver = Saver::default();
    resumed.save(&mut saver);
    let error = whole.restore(&mut Loader::new(&saver.into_bytes())).expect_err("too short");
    assert!(error.0.contains("3 entries"), "{error}");
}
