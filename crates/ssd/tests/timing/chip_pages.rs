//! Chips whose page holds several pages of the map.

use super::common::{Host, answers, build, chosen, page_ftl, pausing, queued, run, text};
use super::{timed, two_dies};
use hybridsim_config::param::Value;
use hybridsim_engine::{Lba, Op, Request, SimTime};
use hybridsim_flash::Cause;
use hybridsim_flash::geometry::{BlockId, Ppn};
use hybridsim_flash::ops::{After, FlashOps};
use hybridsim_flash::timing::{CopyBack, Interleaved};

#[test]
fn pages_of_one_chip_page_are_read_at_once() {
    use Op::Read;
    // Transfers of 10 us. Filled in order, four pages of the chip's two lie next to each other.
    let single = queued(8).and("channel_rate", Value::Rate(204_800_000));
    let asked = [(0, Read, 0, 4), (200, Read, 5, 1)];
    assert_eq!(answers(&single, &asked), [4 * (25 + 10), 235]);
    // One operation at a time: two reads of the chip, four transfers.
    let serial =
        single.clone().and("timing", chosen("timing", "serial")).and("read_pages", Value::Count(2));
    assert_eq!(answers(&serial, &asked), [2 * 25 + 4 * 10, 235]);
    assert_eq!(answers(&serial, &[(0, Read, 0, 1), (0, Read, 1, 1)]), [35, 70]);
    // The register of the one die is free after each transfer: the same.
    let interleaved = single.clone().and("timing", chosen("timing", "interleaved"));
    assert_eq!(answers(&interleaved, &asked), [4 * (25 + 10), 235]);
    let interleaved = interleaved.and("read_pages", Value::Count(2));
    assert_eq!(answers(&interleaved, &asked), [2 * 25 + 4 * 10, 235]);
    assert_eq!(answers(&interleaved, &[(0, Read, 0, 1), (0, Read, 1, 1)]), [35, 70]);
    let pairs = single.clone().and("read_pages", Value::Count(2));
    assert_eq!(answers(&pairs, &asked), [2 * (25 + 10 + 10), 235]);
    // The second request has to read the chip's page again.
    assert_eq!(answers(&pairs, &[(0, Read, 0, 1), (0, Read, 1, 1)]), [35, 70]);
    // Types alternate by the chip's page: 20, 25, 30 and 20 us.
    let types = pairs.and("timing.read_spread", Value::Number(0.4));
    let [lsb, csb, msb, again] = [0, 2, 4, 6].map(|page| answers(&types, &[(0, Read, page, 1)])[0]);
    assert_eq!([lsb, csb, msb, again], [30, 35, 40, 30]);
}

#[test]
fn a_write_that_waited_reads_the_page_of_the_chip_again() {
    let ftl = page_ftl(&[("stripe_pages", Value::Count(2))]);
    let settings = queued(2)
        .and("dies_per_channel", Value::Count(2))
        .and("read_pages", Value::Count(2))
        .and("ftl", ftl);
    // Two programs of die 0, the second from 1,000 to 1,300. Then half of two pages of a chip's
    // page of it, which have to be read: the first takes the last entry, and is read from 1,300 to
    // 1,325; the second waits until 1,300.
    let at = |us: u64| SimTime::from_ns(us * 1_000);
    let write = |lba, sectors| Request::new(Op::Write, Lba(lba), sectors);
    let listed = vec![(at(0), write(32, 4)), (at(1_000), write(36, 4)), (at(1_010), write(2, 4))];
    let (done, _, end) = run(build(&settings).expect("valid settings"), Host::new(listed));
    end.expect("a run without a fault");
    let last = done.iter().map(|done| done.completed.as_ns() / 1_000).max();
    assert_eq!(last, Some(1_300));
}

#[test]
fn pages_of_one_program_are_programmed_at_once() {
    use Op::{Flush, Read, Write};
    let several =
        queued(16).and("precondition", text("none")).and("program_pages", Value::Count(4));
    // Eight pages are two programs of 300 us.
    assert_eq!(answers(&several, &[(0, Write, 0, 8), (1, Flush, 0, 0)]), [0, 600]);
    // A page that comes later belongs to the first program, and the fifth to another.
    let later = [(0, Write, 0, 3), (400, Write, 3, 1), (401, Flush, 0, 0)];
    assert_eq!(answers(&several, &later), [0, 400, 401]);
    let fifth = [(0, Write, 0, 5), (10, Flush, 0, 0)];
    assert_eq!(answers(&several, &fifth), [0, 600]);
    // A read suspends the program that all four pages are waiting for.
    let read = [(0, Write, 0, 2), (100, Read, 0, 1), (101, Write, 2, 2), (102, Flush, 0, 0)];
    assert_eq!(answers(&pausing(several), &read), [0, 135, 101, 340]);
}

/// The time in nanoseconds that interleaved background operations take on two dies, whose chips
/// read two pages at once, with copy-back within a die, where pages 0, 1 and 2 hold data.
fn paired(ops: impl FnOnce(&mut FlashOps)) -> u64 {
    let (geometry, times) = two_dies(CopyBack::Die);
    let geometry = geometry.with_chip_pages(2, 1);
    timed(&mut Interleaved::new(geometry, times), geometry, ops)
}

#[test]
fn copies_of_one_chip_page_read_it_once() {
    let copies = |pages: &[u32]| {
        paired(|flash| {
            for (number, &page) in pages.iter().enumerate() {
                flash.copy(Ppn(page), Ppn(8 + number as u32), Cause::Gc, After::NOTHING);
            }
        })
    };
    // Two commands of 1 us and 310 us, of which 25 us for reading.
    assert_eq!(copies(&[0]), 312_000);
    assert_eq!(copies(&[0, 1]), 312_000 + 287_000);
    assert_eq!(copies(&[0, 2]), 2 * 312_000);
    assert_eq!(copies(&[0, 2, 1]), 3 * 312_000);
    let erased_between = paired(|flash| {
        flash.copy(Ppn(0), Ppn(8), Cause::Gc, After::NOTHING);
        flash.erase(BlockId(2), Cause::Gc, After::NOTHING);
        flash.copy(Ppn(1), Ppn(9), Cause::Gc, After::NOTHING);
    });
    assert_eq!(erased_between, 2 * 312_000 + 1_501_000);
}
