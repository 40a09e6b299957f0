//! Weighs the readings of five columns by what the columns would mean.
//!
//! A score counts decades of evidence. The documented unit of a format counts half a decade;
//! rates and sizes outside the usual range cost what they are outside it; alignment and sequential
//! runs distinguish sectors, pages and bytes.

use super::{FiveColumns, OpColumn, Unit};
use crate::trace::bytes::FileHead;
use crate::trace::lines::{Blanks, LineParser, ParsedLine, head_lines};
use hybridsim_engine::SimDuration;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// One way to read the columns.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub format: &'static str,
    /// A `time_unit` other than the format's default.
    pub time_unit: Option<&'static str>,
    pub score: f64,
    /// Size and duration that the trace would have.
    pub effect: String,
    evidence: Vec<&'static str>,
}

impl Reading {
    /// Observations that support or contradict the reading.
    pub fn evidence(&self) -> String {
        match self.evidence.is_empty() {
            true => "nothing contradicts it".to_owned(),
            false => self.evidence.join(", "),
        }
    }

    fn add(&mut self, score: f64, evidence: &'static str) {
        self.score += score;
        self.evidence.push(evidence);
    }
}

/// Format, unit of times, its nanoseconds, unit of sizes. Formats that differ in nothing but their
/// name are represented by the first: `replayer-sectors` by `disksim`, `ssdsim` by `mqsim`.
const READINGS: &[(&str, Option<&str>, f64, Unit)] = &[
    ("disksim", None, 1e6, Unit::Sectors),
    ("flashsim", None, 1e6, Unit::Pages(8)),
    ("replayer-bytes", None, 1e6, Unit::Bytes),
    ("mqsim", None, 1.0, Unit::Sectors),
    ("mqsim", Some("us"), 1e3, Unit::Sectors),
    ("mqsim", Some("ps"), 1e-3, Unit::Sectors),
];

/// Usual mean times between arrivals, and mean sizes.
const GAP_NS: (f64, f64) = (20e3, 1e9);
const SIZE_BYTES: (f64, f64) = (512.0, 512.0 * 1024.0);

/// The readings that accept the lines of `head`, in no order.
pub(crate) fn readings(head: &FileHead<'_>) -> Vec<Reading> {
    let found = HeadStatistics::of(head);
    let accepts = |format: &str| match format {
        "mqsim" => found.plain_ops && found.whole_times,
        "replayer-bytes" => found.plain_ops,
        _ => true,
    };
    let possible = READINGS.iter().filter(|(format, ..)| found.rows > 0 && accepts(format));
    possible
        .map(|&(format, time_unit, ns, unit)| found.weigh(format, time_unit, ns, unit))
        .collect()
}

/// Properties of the first lines that distinguish the formats.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HeadStatistics {
    pub rows: usize,
    pub bad: usize,
    /// All times are whole numbers.
    pub whole_times: bool,
    /// The last column is always 0 or 1.
    pub plain_ops: bool,
    /// All addresses and sizes are multiples of 512.
    byte_like: bool,
    /// Requests that continue an earlier one if sizes are sectors, not if they are pages.
    sector_runs: Runs,
    /// Requests that continue an earlier one if sizes are pages of 4 KiB, not if they are sectors.
    page_runs: Runs,
    /// Times as written times 10^6: first, last, and the greatest common divisor of differences.
    first: u64,
    last: u64,
    tick: u64,
    /// Sum of sizes as written, and how many are multiples of 8.
    size: f64,
    eighths: usize,
    /// Addresses by their remainder of 8.
    remainders: [usize; 8],
    devices: FxHashSet<u64>,
}

/// Streams interleave: a request may continue any of this many before it.
const RUN_WINDOW: usize = 64;
/// Fewer continued requests are chance.
const RUNS_MIN: usize = 4;
/// One in so many requests continues another of the window by chance, at most.
const ROWS_PER_CHANCE: usize = 50;

/// Requests that start where an earlier one on the same device would end.
#[derive(Clone, Debug, Default, PartialEq)]
struct Runs {
    count: usize,
    /// The size of the last continued request, as written.
    size: u64,
    /// Whether continued requests differ in size. A fixed distance between requests of one size
    /// may also be a stride.
    sizes_differ: bool,
}

impl Runs {
    fn add(&mut self, size: u64) {
        self.sizes_differ |= self.count > 0 && size != self.size;
        self.size = size;
        self.count += 1;
    }

    /// Evidence, in `rows` requests, for this unit of sizes against the `other`.
    fn score(&self, other: &Self, rows: usize) -> f64 {
        let ratio = (self.count + 1) as f64 / (other.count + 1) as f64;
        let most = if self.sizes_differ { 3.0 } else { 2.0 };
        match self.count >= RUNS_MIN.max(rows / ROWS_PER_CHANCE) && ratio > 2.0 {
            true => (2.0 * ratio.log10()).min(most),
            false => 0.0,
        }
    }
}

/// The last requests of a head: device, address and size as written.
#[derive(Default)]
struct RecentRequests(VecDeque<(u64, u64, u64)>);

impl RecentRequests {
    /// The size of the latest request on `device` that ends at `start` if sizes are `unit` sectors.
    fn continued(&self, device: u64, start: u64, unit: u64) -> Option<u64> {
        let ends_here = |&&(other, begin, size): &&(u64, u64, u64)| {
            other == device && size > 0 && begin + size * unit == start
        };
        self.0.iter().rev().find(ends_here).map(|(.., size)| *size)
    }

    fn push(&mut self, device: u64, start: u64, size: u64) {
        if self.0.len() == RUN_WINDOW {
            self.0.pop_front();
        }
        self.0.push_back((device, start.min(1 << 60), size.min(1 << 40)));
    }
}

impl HeadStatistics {
    pub fn of(head: &FileHead<'_>) -> Self {
        let mut found =
            Self { whole_times: true, plain_ops: true, byte_like: true, ..Self::default() };
        let mut columns =
            FiveColumns { shift: Some(6), size: Unit::Sectors, op: OpColumn::HexFlags };
        let mut recent = RecentRequests::default();
        for (line, doubtful) in head_lines(head) {
            let Ok(ParsedLine::Request(row)) = columns.parse(line) else {
                found.bad += usize::from(!doubtful);
                continue;
            };
            let mut fields = Blanks::new(line);
            found.rows += 1;
            found.whole_times &= fields.text().iter().all(u8::is_ascii_digit);
            let last = line.trim_ascii_end();
            found.plain_ops &= last.ends_with(b"\t0")
                || last.ends_with(b"\t1")
                || last.ends_with(b" 0")
                || last.ends_with(b" 1");
            found.byte_like &=
                row.start.is_multiple_of(512) && row.sectors.is_multiple_of(512) && row.sectors > 0;
            found.add_time(row.time_ns);
            found.size += row.sectors as f64;
            found.eighths += usize::from(row.sectors.is_multiple_of(8));
            found.remainders[(row.start % 8) as usize] += 1;
            found.devices.insert(row.volume);
            let by_unit = [1, 8].map(|unit| recent.continued(row.volume, row.start, unit));
            match by_unit {
                [Some(size), None] => found.sector_runs.add(size),
                [None, Some(size)] => found.page_runs.add(size),
                _ => {}
            }
            recent.push(row.volume, row.start, row.sectors);
        }
        found
    }

    fn add_time(&mut self, time: u64) {
        if self.rows == 1 {
            (self.first, self.last) = (time, time);
            return;
        }
        let (mut a, mut b) = (self.tick, time.abs_diff(self.first));
        while b != 0 {
            (a, b) = (b, a % b);
        }
        self.tick = a;
        (self.first, self.last) = (self.first.min(time), self.last.max(time));
    }

    fn weigh(
        &self,
        format: &'static str,
        time_unit: Option<&'static str>,
        unit_ns: f64,
        unit: Unit,
    ) -> Reading {
        let (score, evidence) = (0.0, Vec::new());
        let mut reading = Reading { format, time_unit, score, effect: String::new(), evidence };
        let rows = self.rows as f64;
        let gap_ns = (self.last - self.first) as f64 / 1e6 * unit_ns / (rows - 1.0).max(1.0);
        let bytes = self.size / rows
            * match unit {
                Unit::Bytes => 1.0,
                Unit::Sectors => 512.0,
                Unit::Pages(sectors) => 512.0 * sectors as f64,
            };
        reading.effect = format!(
            "one request every {}, {:.1} KiB on average",
            SimDuration::from_ns_f64(gap_ns.min(1e18)),
            bytes / 1024.0
        );
        if time_unit.is_none() && format != "flashsim" {
            reading.score += 0.5;
        }
        if unit_ns < 1.0 {
            reading.add(-0.5, "picoseconds are rare");
        }
        if self.whole_times && unit_ns == 1e6 {
            reading.add(-0.5, "whole milliseconds");
        }
        if gap_ns > 0.0 {
            reading.score -= outside(gap_ns, GAP_NS);
        }
        let tick_ns = self.tick as f64 / 1e6 * unit_ns;
        if format == "mqsim" && unit_ns == 1.0 && tick_ns >= 1e3 {
            reading.add(1.0, "a clock with ticks of a microsecond or more");
        }
        reading.score -= outside(bytes, SIZE_BYTES);
        if !self.plain_ops && format == "flashsim" {
            reading.add(-0.5, "flags other than 0 and 1");
        }
        if self.devices.len() > 32.max(self.rows / 4) {
            reading.add(-3.0, "too many different numbers in the second column for devices");
        }
        self.weigh_unit(&mut reading, unit);
        reading
    }

    /// Alignment and sequential runs.
    fn weigh_unit(&self, reading: &mut Reading, unit: Unit) {
        let rows = self.rows as f64;
        let eighths = self.eighths as f64 / rows;
        let aligned = self.remainders.iter().copied().max().unwrap_or(0) as f64 / rows;
        let page_runs = self.page_runs.score(&self.sector_runs, self.rows);
        let sector_runs = self.sector_runs.score(&self.page_runs, self.rows);
        match unit {
            Unit::Bytes if self.byte_like => {
                reading.add(2.0, "all addresses and sizes are multiples of 512");
            }
            Unit::Bytes => reading.add(-3.0, "addresses or sizes that are not whole sectors"),
            Unit::Sectors | Unit::Pages(_) if self.byte_like => {
                reading.add(-1.0, "all addresses and sizes are multiples of 512");
            }
            Unit::Sectors => {
                if sector_runs > 0.0 {
                    reading.add(sector_runs, "sequential runs if sizes are sectors");
                }
                // Runs of pages contradict it.
                if eighths >= 0.75 && page_runs == 0.0 {
                    let weight = 0.5 * rows.min(3.0);
                    reading.add(weight, "sizes are multiples of 8 sectors");
                } else if aligned < 0.5 && self.rows >= 8 && self.size / rows >= 8.0 {
                    reading.add(1.0, "requests start at any sector");
                }
            }
            Unit::Pages(_) => {
                if page_runs > 0.0 {
                    reading.add(page_runs, "sequential runs if sizes are pages");
                }
                if aligned >= 0.75 && eighths < 0.5 && self.rows >= 4 {
                    reading.add(1.5, "requests start at pages, but sizes are no whole pages");
                }
            }
        }
    }
}

/// By how many decades `value` is outside a range.
fn outside(value: f64, (low, high): (f64, f64)) -> f64 {
    let value = value.max(1e-9);
    (low / value).log10().max((value / high).log10()).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scattered;
    use hybridsim_engine::Stream;

    fn statistics(text: &str) -> HeadStatistics {
        HeadStatistics::of(&FileHead { bytes: text.as_bytes(), whole: true })
    }

    #[test]
    fn first_lines_are_counted() {
        let found = statistics("1.0 0 7 1 1\n2.0 0 15 1 1\n3.5 2 23 2 1\n4.0 2 39 1 0\n");
        assert_eq!((found.rows, found.page_runs.count, found.sector_runs.count), (4, 2, 0));
        assert_eq!((found.first, found.last, found.tick), (1_000_000, 4_000_000, 500_000));
        assert_eq!((found.size, found.eighths, found.remainders[7]), (5.0, 0, 4));
        assert!(!found.byte_like && !found.whole_times && found.plain_ops);
        let found = statistics("1 0 512 4096 1\nx\n2 0 1024 512 1e\n");
        assert!(found.byte_like && found.whole_times && !found.plain_ops);
        assert_eq!((found.rows, found.bad), (2, 1));
        assert_eq!((outside(5.0, (1.0, 10.0)), outside(1000.0, (1.0, 10.0))), (0.0, 2.0));
        assert_eq!(outside(0.01, (1.0, 10.0)), 2.0);
    }

    fn best(text: &str) -> (&'static str, Option<&'static str>, f64) {
        let mut list = readings(&FileHead { bytes: text.as_bytes(), whole: true });
        list.sort_by(|one, other| other.score.total_cmp(&one.score));
        (list[0].format, list[0].time_unit, list[0].score - list[1].score)
    }

    /// `rows` lines of requests `gap` time units apart at multiples of `align` plus `offset`.
    fn lines(rows: u64, gap: u64, align: u64, offset: u64, sizes: &[u64]) -> String {
        let line = |row: u64| {
            let (at, size) = (row * gap + row % 3, sizes[row as usize % sizes.len()]);
            format!("{at} {} {} {size} {}\n", row % 3, scattered(row) * align + offset, row % 2)
        };
        (0..rows).map(line).collect()
    }

    #[test]
    fn units_of_times() {
        // 50 us or 50 ms, 27 us or 27 ms: either is plausible.
        assert!(best(&lines(100, 50, 8, 0, &[8])).2 < 0.75);
        assert!(best(&lines(100, 27_001, 8, 0, &[8])).2 < 0.75);
        let (format, unit, margin) = best(&lines(100, 27_000_001, 8, 0, &[8]));
        assert_eq!((format, unit), ("mqsim", None));
        assert!(margin > 0.75);
    }

    #[test]
    fn units_of_sizes() {
        let fractions = |text: String| text.replace('\n', "\n0.5");
        let best = |text: String| best(fractions(text).trim_end_matches("0.5"));
        let (format, _, margin) = best(lines(100, 9, 8, 0, &[8, 16, 8, 128]));
        assert!(format == "disksim" && margin > 1.0, "{format} {margin}");
        let (format, _, margin) = best(lines(100, 9, 8, 7, &[1, 2, 1, 16]));
        assert!(format == "flashsim" && margin > 0.75, "{format} {margin}");
        let (format, _, margin) = best(lines(100, 9, 512, 0, &[4096, 512, 1536]));
        assert!(format == "replayer-bytes" && margin > 2.0, "{format} {margin}");
        let (format, _, margin) = best("0.5 0 8 8 1\n".to_owned());
        assert!(format == "disksim" && margin > 0.75, "one line: {format} {margin}");
        // Small sizes at any sector: sectors or pages.
        assert!(best(lines(100, 9, 1, 0, &[1, 2, 3])).2 < 0.75);
    }

    /// Lines of three interleaved streams of pages at addresses with any remainder of 8, with
    /// `chance` lines at their front that continue each other in sectors.
    fn streams(rows: u64, chance: u64) -> String {
        let by_chance = (0..chance).map(|row| (700_000 + row, 1));
        let mut next = [1_003, 2_001_006, 4_000_001];
        let of_streams = (0..rows).map(|row| {
            let (at, size) = (&mut next[row as usize % 3], 1 + row % 4);
            let start = *at;
            *at += size * 8;
            (start, size)
        });
        let lines = by_chance.chain(of_streams).enumerate();
        lines.map(|(row, (start, size))| format!("{row}.5 0 {start} {size} 1\n")).collect()
    }

    #[test]
    fn runs_of_interleaved_streams_outweigh_chance() {
        let found = statistics(&streams(60, 4));
        assert_eq!((found.page_runs.count, found.sector_runs.count), (57, 3));
        assert!(found.page_runs.sizes_differ && !found.sector_runs.sizes_differ);
        let (format, _, margin) = best(&streams(60, 4));
        assert!(format == "flashsim" && margin > 1.0, "{format} {margin}");
        let (format, _, margin) = best(&streams(200, 0));
        assert!(format == "flashsim" && margin >= 2.0, "{format} {margin}");
        // Three are chance.
        let none = Runs { count: 3, size: 1, sizes_differ: true }.score(&Runs::default(), 200);
        assert_eq!(none, 0.0);
        // So are four in a thousand.
        let few = Runs { count: 4, size: 1, sizes_differ: true }.score(&Runs::default(), 1_000);
        assert_eq!(few, 0.0);
        // A stride of one size is no proof.
        let stride =
            Runs { count: 500, size: 16, sizes_differ: false }.score(&Runs::default(), 600);
        assert_eq!(stride, 2.0);
    }

    #[test]
    fn random_requests_of_a_page_are_of_sectors() {
        for seed in 1..=100 {
            let mut stream = Stream::new(seed, "requests");
            let line = |row: u64| format!("{row}.5 0 {} 8 1\n", stream.below(40_000) * 8);
            let text: String = (0..2_600).map(line).collect();
            let (format, _, margin) = best(&text);
            assert!(format == "disksim" && margin > 0.75, "seed {seed}: {format} {margin}");
        }
    }

    #[test]
    fn columns_in_another_order_are_implausible() {
        let text: String = (0..200).map(|row| format!("0 {} 8 1 1\n", row * 4099)).collect();
        let list = readings(&FileHead { bytes: text.as_bytes(), whole: true });
        assert!(list.iter().all(|reading| reading.score < -1.9), "{list:?}");
        assert!(list[0].evidence().contains("too many different numbers"));
    }
}
