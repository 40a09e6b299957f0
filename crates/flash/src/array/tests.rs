use super::*;
use crate::geometry::Shape;

fn array(order: ProgramOrder, endurance: u32) -> Array {
    let shape = Shape {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 4,
        pages_per_block: 70,
        page_bytes: 512,
        spare_bytes: 0,
    };
    Array::new(Geometry::new(&shape).expect("a valid shape"), order, endurance)
}

#[test]
fn pages_go_from_free_to_valid_to_invalid_to_free() {
    let mut array = array(ProgramOrder::Sequential, 10);
    assert_eq!(array.state(Ppn(0)), PageState::Free);
    assert!(array.program(Ppn(0), Lpn(9)));
    assert_eq!((array.state(Ppn(0)), array.owner(Ppn(0))), (PageState::Valid, Lpn(9)));
    assert_eq!((array.free_blocks(), array.valid_pages()), (3, 1));
    assert!(array.relocate(Ppn(0), Ppn(70)));
    assert_eq!((array.state(Ppn(0)), array.owner(Ppn(70))), (PageState::Invalid, Lpn(9)));
    assert!(array.erase(BlockId(0)));
    assert_eq!((array.state(Ppn(0)), array.erases(BlockId(0))), (PageState::Free, 1));
    assert_eq!((array.next_valid(BlockId(1), 0), array.next_valid(BlockId(1), 1)), (Some(0), None));
    array.audit().expect("consistent metadata");
    assert_eq!(array.violation(), None);
}

#[test]
fn next_valid_crosses_words() {
    let mut array = array(ProgramOrder::Any, 10);
    for page in [3, 63, 64, 69] {
        assert!(array.program(Ppn(page), Lpn(0)));
    }
    let found: Vec<_> =
        [0, 4, 64, 65, 70, 500].map(|from| array.next_valid(BlockId(0), from)).into();
    assert_eq!(found, [Some(3), Some(63), Some(64), Some(69), None, None]);
    let erased: Vec<_> =
        [0, 3, 63, 69, 70, 500].map(|from| array.next_erased(BlockId(0), from)).into();
    assert_eq!(erased, [Some(0), Some(4), Some(65), None, None, None]);
}

#[test]
fn every_rule_is_enforced() {
    type Action = fn(&mut Array);
    let check = |order, act: Action, expected: Violation| {
        let mut array = array(order, 2);
        assert!(array.program(Ppn(0), Lpn(0)));
        act(&mut array);
        assert_eq!(array.violation(), Some(expected));
        array.audit().expect("consistent metadata even then");
    };
    use ProgramOrder::{Any, Ascending, Sequential};
    check(Any, |a| _ = a.program(Ppn(0), Lpn(1)), Violation::Program(Ppn(0)));
    check(Sequential, |a| _ = a.program(Ppn(2), Lpn(1)), Violation::Program(Ppn(2)));
    check(
        Ascending,
        |a| {
            assert!(a.program(Ppn(5), Lpn(1)));
            assert!(!a.program(Ppn(4), Lpn(1)));
        },
        Violation::Program(Ppn(4)),
    );
    check(Any, |a| _ = a.program(Ppn(9_999), Lpn(1)), Violation::Program(Ppn(9_999)));
    check(Any, |a| _ = a.check_read(Ppn(1)), Violation::ReadErased(Ppn(1)));
    check(Any, |a| _ = a.invalidate(Ppn(1)), Violation::NotValid(Ppn(1)));
    check(Any, |a| _ = a.relocate(Ppn(1), Ppn(2)), Violation::ReadErased(Ppn(1)));
    check(Any, |a| _ = a.erase(BlockId(0)), Violation::EraseValid(BlockId(0)));
    check(Any, |a| _ = a.erase(BlockId(77)), Violation::Unusable(BlockId(77)));
}

#[test]
fn grown_bad_blocks_appear_with_the_given_probability() {
    let shape = Shape {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 20_000,
        pages_per_block: 1,
        page_bytes: 512,
        spare_bytes: 0,
    };
    let geometry = Geometry::new(&shape).expect("a valid shape");
    let mut stream = Stream::new(1, "bad");
    let mut array =
        Array::new(geometry, ProgramOrder::Any, 50).with_grown_bad_blocks(0.02, &mut stream);
    // The share 0.98^k of 20,000 blocks survives k erases, with a standard deviation below 71.
    let mut left = 20_000.0;
    for erase in 1..=49 {
        for block in 0..20_000 {
            if !array.is_retired(BlockId(block)) {
                array.erase(BlockId(block));
            }
        }
        left *= 0.98;
        let usable = f64::from(20_000 - array.retired_blocks());
        assert!((usable - left).abs() < 5.0 * 71.0, "{usable} of {left} after {erase}");
    }
    array.audit().expect("consistent metadata");
    assert!((0..20_000).all(|block| array.endurance_of(BlockId(block)) <= 50));
}

#[test]
fn wear_on_demand_leaves_blocks_the_rest_of_their_endurance() {
    let mut array = array(ProgramOrder::Any, 100);
    for _ in 0..97 {
        assert!(array.erase(BlockId(3)));
    }
    array.wear_out(0.98);
    let limits = [0, 1, 2, 3].map(|block| array.endurance_of(BlockId(block)));
    assert_eq!(limits, [2, 2, 2, 99]);
    array.wear_out(0.5);
    assert_eq!(array.endurance_of(BlockId(0)), 2, "wear does not heal");
    array.wear_out(1.0);
    assert!(!array.erase(BlockId(0)), "its last erase");
    array.wear_out(1.0);
    assert!(array.is_retired(BlockId(0)) && array.retired_blocks() == 1);
    array.audit().expect("consistent metadata");
}

#[test]
fn a_worn_out_block_is_retired() {
    let mut array = array(ProgramOrder::Any, 2);
    assert!(array.erase(BlockId(1)));
    assert!(!array.erase(BlockId(1)), "its second and last erase");
    assert!(array.is_retired(BlockId(1)));
    assert_eq!((array.free_blocks(), array.retired_blocks()), (3, 1));
    assert!(!array.program(Ppn(70), Lpn(0)));
    assert_eq!(array.violation(), Some(Violation::Unusable(BlockId(1))));
}
