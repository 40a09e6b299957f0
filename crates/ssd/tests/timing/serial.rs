//! One operation at a time: a chip that reads several pages at once.

use super::*;
use hybridsim_engine::Slowdown;

/// Time of background operations on a chip that does one operation at a time and reads `pages` at
/// once.
fn serial(reach: CopyBack, pages: u32, ops: impl FnOnce(&mut FlashOps)) -> u64 {
    let (geometry, times) = two_dies(reach);
    timed(&mut Serial::new(geometry.with_chip_pages(pages, 1), times), geometry, ops)
}

#[test]
fn one_operation_at_a_time_reads_a_page_of_the_chip_once() {
    let took = |pages: u32, ops: &dyn Fn(&mut FlashOps)| serial(CopyBack::None, pages, ops);
    // A copy: command, cells, control and data, and in again.
    let copy = 1_000 + 2_000 + 10_000 + 1_000 + 10_000 + 300_000;
    let copies = |flash: &mut FlashOps| {
        for page in 0..3 {
            flash.copy(Ppn(page), Ppn(8 + page), Cause::Gc, After::NOTHING);
        }
    };
    assert_eq!(took(1, &copies), 3 * (copy + 25_000));
    assert_eq!(took(2, &copies), 3 * copy + 2 * 25_000, "pages 0 and 1 at once");
    assert_eq!(took(4, &copies), 3 * copy + 25_000);
    // After an erase other data are in the same pages.
    let again = |flash: &mut FlashOps| {
        copies(flash);
        flash.erase(BlockId(0), Cause::Gc, After::NOTHING);
        flash.program(Ppn(0), Lpn(3), Cause::Gc, After::NOTHING);
        flash.copy(Ppn(0), Ppn(11), Cause::Gc, After::NOTHING);
    };
    let others = (1_000 + 1_500_000) + (1_000 + 10_000 + 300_000);
    assert_eq!(took(4, &again), 4 * copy + 2 * 25_000 + others);
}

#[test]
fn a_program_into_a_page_of_the_chip_is_read_by_the_next_read_of_it() {
    let took = |pages: u32, cause: Cause, written: u32, is_copy: bool| {
        serial(CopyBack::None, pages, |flash| {
            flash.read(Ppn(2), cause, After::NOTHING);
            match is_copy {
                true => flash.copy(Ppn(1), Ppn(written), cause, After::NOTHING),
                false => flash.program(Ppn(written), Lpn(3), cause, After::NOTHING),
            };
            flash.read(Ppn(2), cause, After::NOTHING);
        })
    };
    let read = 1_000 + 2_000 + 10_000;
    // Page 3 lies in the page of the chip that is read, page 4 in the next.
    for cause in [Cause::Mapping, Cause::Gc] {
        let write = 1_000 + 10_000 + 300_000;
        assert_eq!(took(4, cause, 4, false), 2 * read + 25_000 + write, "{cause:?}");
        assert_eq!(took(4, cause, 3, false), 2 * (read + 25_000) + write, "{cause:?}");
        let copy = read + 1_000 + 10_000 + 300_000;
        assert_eq!(took(4, cause, 4, true), 2 * read + 25_000 + copy, "{cause:?}");
        assert_eq!(took(4, cause, 3, true), 2 * (read + 25_000) + copy, "{cause:?}");
    }
}

#[test]
fn copies_within_a_plane_read_a_page_of_the_chip_once() {
    let took = |pages: u32| {
        serial(CopyBack::Plane, pages, |flash| {
            for page in 0..3 {
                flash.copy(Ppn(page), Ppn(8 + page), Cause::Gc, After::NOTHING);
            }
        })
    };
    let copy = 310_000 + 2_000;
    assert_eq!([1, 2, 4].map(took), [3 * copy, 3 * copy - 25_000, 3 * copy - 2 * 25_000]);
}

#[test]
fn a_copy_between_dies_reads_at_the_speed_of_the_die_of_its_source() {
    let (geometry, times) = two_dies(CopyBack::None);
    let took = |slow_die| {
        let mut clock = Serial::new(geometry, times);
        let (_, slow) = clock.slowdowns().expect("it has dies");
        slow.set(geometry.dies(), Some(slow_die), Slowdown::by(2.0));
        // From die 0 to die 1.
        timed(&mut clock, geometry, |flash| {
            flash.copy(Ppn(0), Ppn(4 * 8), Cause::Gc, After::NOTHING);
        })
    };
    let transfers = 1_000 + 2_000 + 10_000 + 1_000 + 10_000;
    assert_eq!([0, 1].map(took), [transfers + 50_000 + 300_000, transfers + 25_000 + 600_000]);
}
