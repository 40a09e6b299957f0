//! What all formats have in common: from raw rows to records with dense volumes, whole sectors and
//! times that never go back.

use super::bytes::Input;
use super::clock::Clock;
use super::names::Volumes;
use crate::record::{Place, Record, RecordReader, TraceError, Warning};
use hybridsim_engine::{DataSlice, Flags, Lba, Op, Request, SECTOR_BYTES, SimDuration, SimTime};
use std::collections::VecDeque;

/// A request as a format found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Time by the trace's own clock.
    pub time_ns: u64,
    /// The volume's number or the reader's name for it.
    pub volume: u64,
    pub op: Op,
    pub flags: Flags,
    /// First sector.
    pub start: u64,
    /// Sectors; 0 is skipped unless the row is a flush.
    pub sectors: u64,
    /// Whether the range was widened to whole sectors.
    pub rounded: bool,
    /// Measured response time; [`Row::UNKNOWN`] where there is none.
    pub response_ns: u64,
    /// No request, but the news that the request for this range is done.
    pub done: bool,
}

impl Row {
    pub const UNKNOWN: u64 = u64::MAX;

    pub const fn sectors(time_ns: u64, volume: u64, op: Op, start: u64, sectors: u64) -> Self {
        let flags = Flags::NONE;
        let (rounded, done, response_ns) = (false, false, Self::UNKNOWN);
        Self { time_ns, volume, op, flags, start, sectors, rounded, response_ns, done }
    }

    /// From bytes: widened to the sectors touched.
    pub const fn bytes(time_ns: u64, volume: u64, op: Op, offset: u64, length: u64) -> Self {
        let start = offset / SECTOR_BYTES;
        if length == 0 {
            return Self::sectors(time_ns, volume, op, start, 0);
        }
        let last = offset.saturating_add(length - 1) / SECTOR_BYTES;
        let mut row = Self::sectors(time_ns, volume, op, start, last - start + 1);
        row.rounded = !(offset | length).is_multiple_of(SECTOR_BYTES);
        row
    }

    pub const fn with_flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }

    /// The row as the completion of a request.
    pub const fn completed(mut self) -> Self {
        self.done = true;
        self
    }

    pub const fn with_response(mut self, response_ns: u64) -> Self {
        self.response_ns = response_ns;
        self
    }
}

/// Warnings so far, one per kind.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<Warning>);

impl Notes {
    pub fn note(&mut self, place: Place, message: &str) {
        if let Some(known) = self.0.iter_mut().find(|known| known.message == message) {
            known.count += 1;
        } else {
            self.0.push(Warning { place, count: 1, message: message.to_owned() });
        }
    }
}

/// Where rows come from.
pub(crate) trait RowSource {
    /// The next row.
    fn next_row(&mut self, notes: &mut Notes) -> Result<Option<Row>, TraceError>;
    /// Where the last row was.
    fn place(&self) -> Place;
    /// The file, for errors and progress.
    fn input(&self) -> &Input;
    /// What the trace calls a volume.
    fn label(&self, volume: u64) -> String {
        volume.to_string()
    }
    fn has_times(&self) -> bool {
        true
    }
    fn progress(&self) -> Option<f64> {
        self.input().progress()
    }
}

const DISORDER: &str = "requests not in order of time; put in order";
const TOO_LATE: &str =
    "requests further back in time than the reorder window; given the time of the one before";
const FAR: &str = "times a year or more away from all around them; left out";
const JUMP: &str = "the clock jumps by a year or more; the jump is taken out";
const ROUNDED: &str = "offset or length not a multiple of 512 bytes; widened to whole sectors";
const EMPTY: &str = "requests of length zero; left out";

/// How many requests back the one is looked for that a completion belongs to.
const IN_FLIGHT_MAX: usize = 512;

/// Addresses end where byte offsets would no longer fit 64 bits.
const SECTORS_MAX: u64 = 1 << 55;

/// Records whose times are far from those around them: outliers, until so many follow each other
/// that the clock must have been set.
const JUMP_RECORDS: usize = 8;

/// Turns a source of rows into a reader of records.
pub(crate) struct Records<S> {
    source: S,
    notes: Notes,
    clock: Clock,
    /// Records with times far from the last good one.
    far: Vec<Record>,
    /// Those of them that turned out to be good, last first.
    near_again: Vec<Record>,
    volumes: Volumes,
    /// Held back, in order of time; `at` is still by the trace's clock.
    window: VecDeque<Record>,
    window_max: usize,
    end: Option<Result<(), TraceError>>,
    first_ns: Option<u64>,
    last: SimTime,
}

impl<S: RowSource> Records<S> {
    pub fn new(source: S, reorder_records: usize) -> Self {
        let window_max = if source.has_times() { reorder_records.min(1 << 20) } else { 0 };
        Self {
            source,
            notes: Notes::default(),
            clock: Clock::default(),
            far: Vec::new(),
            near_again: Vec::new(),
            volumes: Volumes::default(),
            window: VecDeque::with_capacity(window_max.min(4096) + 1),
            window_max,
            end: None,
            first_ns: None,
            last: SimTime::ZERO,
        }
    }

    /// The next row as a record, its time still by the trace's clock.
    fn take(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            if let Some(record) = self.near_again.pop() {
                return Ok(Some(record));
            }
            let Some(row) = self.source.next_row(&mut self.notes)? else {
                self.leave_out_far();
                return Ok(None);
            };
            if row.done {
                self.complete(&row);
                continue;
            }
            if row.sectors == 0 && row.op != Op::Flush {
                self.notes.note(self.source.place(), EMPTY);
                continue;
            }
            let mut record = self.record(&row)?;
            if !self.source.has_times() {
                return Ok(Some(record));
            }
            if let Some(time_ns) = self.clock.follow(row.time_ns) {
                self.leave_out_far();
                record.at = SimTime::from_ns(time_ns);
                return Ok(Some(record));
            }
            self.keep_far(record, row.time_ns);
        }
    }

    #[inline]
    fn leave_out_far(&mut self) {
        for _ in self.far.drain(..) {
            self.notes.note(self.source.place(), FAR);
        }
    }

    #[cold]
    fn keep_far(&mut self, mut record: Record, time_ns: u64) {
        record.at = SimTime::from_ns(time_ns);
        self.far.push(record);
        if self.far.len() < JUMP_RECORDS {
            return;
        }
        self.notes.note(self.source.place(), JUMP);
        self.clock.jump_to(self.far[0].at.as_ns());
        let place = self.source.place();
        while !self.far.is_empty() {
            let mut record = self.far.remove(0);
            match self.clock.follow(record.at.as_ns()) {
                Some(time_ns) => {
                    record.at = SimTime::from_ns(time_ns);
                    self.near_again.insert(0, record);
                }
                None => self.notes.note(place, FAR),
            }
        }
    }

    /// Gives the request that `row` completes its response time, if it is still held back.
    fn complete(&mut self, row: &Row) {
        let Some(volume) = self.volumes.number(row.volume) else { return };
        let done = SimTime::from_ns(self.clock.shifted(row.time_ns));
        let asked = |record: &&mut Record| {
            let request = &record.request;
            request.lba.0 == row.start && request.op == row.op && request.volume == volume
        };
        if let Some(record) = self.window.iter_mut().rev().take(IN_FLIGHT_MAX).find(asked)
            && record.at <= done
            && record.response.is_none()
        {
            record.response = Some(done.since(record.at));
        }
    }

    /// The record of `row`, without its time.
    fn record(&mut self, row: &Row) -> Result<Record, TraceError> {
        let volume = match self.volumes.number(row.volume) {
            Some(volume) => volume,
            None => self.add_volume(row.volume)?,
        };
        let fits = row.start.checked_add(row.sectors).is_some_and(|end| end <= SECTORS_MAX);
        let sectors = match u32::try_from(row.sectors) {
            Ok(sectors) if fits => sectors,
            _ => return Err(self.absurd(row)),
        };
        if row.rounded {
            self.notes.note(self.source.place(), ROUNDED);
        }
        let (op, flags, lba) = match row.op {
            Op::Flush => (Op::Flush, Flags::NONE, Lba(0)),
            op => (op, row.flags, Lba(row.start)),
        };
        Ok(Record {
            at: SimTime::ZERO,
            request: Request { op, flags, volume, sectors, lba, data: DataSlice::NONE },
            response: (row.response_ns != Row::UNKNOWN)
                .then(|| SimDuration::from_ns(row.response_ns)),
        })
    }

    #[cold]
    fn add_volume(&mut self, key: u64) -> Result<u16, TraceError> {
        let label = self.source.label(key);
        self.volumes.add(key, label).ok_or_else(|| {
            let message = "more than 65,535 volumes; cut the trace down to fewer of them";
            self.source.input().error(self.source.place(), message)
        })
    }

    #[cold]
    fn absurd(&self, row: &Row) -> TraceError {
        let (start, sectors) = (row.start, row.sectors);
        let message = if sectors > u64::from(u32::MAX) {
            format!(
                "a request of {sectors} sectors (2 TiB and more) is absurd; is this the format?"
            )
        } else {
            format!("sector {start} is beyond any device (2^55 sectors); is this the format?")
        };
        self.source.input().error(self.source.place(), message)
    }

    /// Fills the window; remembers how the trace ended.
    fn fill(&mut self) {
        while self.end.is_none() && self.window.len() <= self.window_max {
            match self.take() {
                Ok(Some(record)) => self.insert(record),
                Ok(None) => self.end = Some(Ok(())),
                Err(error) => self.end = Some(Err(error)),
            }
        }
    }

    fn insert(&mut self, record: Record) {
        if self.window.back().is_none_or(|back| back.at <= record.at) {
            self.window.push_back(record);
            return;
        }
        self.notes.note(self.source.place(), DISORDER);
        let place = self.window.partition_point(|other| other.at <= record.at);
        self.window.insert(place, record);
    }

    /// Counts time from the first record and never back.
    fn settle(&mut self, mut record: Record) -> Record {
        let first_ns = *self.first_ns.get_or_insert(record.at.as_ns());
        let at = record.at.as_ns().checked_sub(first_ns).map(SimTime::from_ns);
        match at {
            Some(at) if at >= self.last => self.last = at,
            _ => self.notes.note(self.source.place(), TOO_LATE),
        }
        record.at = self.last;
        record
    }

    fn nothing_found(&self) -> TraceError {
        let seen = match self.source.place() {
            Place::File => String::new(),
            Place::Line(count) => format!(" in {count} lines"),
            Place::Record(count) => format!(" in {count} records"),
        };
        let mut message = format!("no requests{seen}");
        for warning in &self.notes.0 {
            message += &format!("; {} times: {}", warning.count, warning.message);
        }
        self.source.input().error(Place::File, message)
    }
}

impl<S: RowSource> RecordReader for Records<S> {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        self.fill();
        if let Some(record) = self.window.pop_front() {
            return Ok(Some(self.settle(record)));
        }
        match self.end.replace(Ok(())) {
            Some(Err(error)) => {
                self.first_ns.get_or_insert(0);
                Err(error)
            }
            _ if self.first_ns.is_none() => {
                self.first_ns = Some(0);
                Err(self.nothing_found())
            }
            _ => Ok(None),
        }
    }

    fn warnings(&self) -> &[Warning] {
        &self.notes.0
    }

    fn progress(&self) -> Option<f64> {
        self.source.progress()
    }

    fn has_times(&self) -> bool {
        self.source.has_times()
    }

    fn volumes(&self) -> &[String] {
        &self.volumes.labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{OpenOptions, open};

    #[test]
    fn bytes_are_widened_to_sectors() {
        let check = |offset, length, expect: (u64, u64, bool)| {
            let row = Row::bytes(0, 0, Op::Read, offset, length);
            assert_eq!((row.start, row.sectors, row.rounded), expect, "{offset}+{length}");
        };
        check(0, 512, (0, 1, false));
        check(512, 1024, (1, 2, false));
        check(511, 2, (0, 2, true));
        check(513, 1, (1, 1, true));
        check(1, 512, (0, 2, true));
        check(1024, 0, (2, 0, false));
        check(u64::MAX, u64::MAX, (u64::MAX / 512, 1, true));
    }

    /// The times that come out, and the warnings.
    fn settled(times: &[u64], reorder_records: usize) -> (Vec<u64>, Vec<String>) {
        let text: String = times.iter().map(|time| format!("{time} 0 7 8 1\n")).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, text).unwrap();
        let options =
            OpenOptions { format: Some("mqsim".into()), reorder_records, ..OpenOptions::default() };
        let mut trace = open(&path, &options).unwrap();
        let records = std::iter::from_fn(|| trace.next().unwrap());
        let times = records.map(|record| record.at.as_ns()).collect();
        let note = |note: &Warning| format!("{} {}", note.count, note.message);
        (times, trace.warnings().iter().map(note).collect())
    }

    #[test]
    fn unsorted_times() {
        assert_eq!(
            settled(&[5, 7, 6, 5, 9], 4),
            (vec![0, 0, 1, 2, 4], vec![format!("2 {DISORDER}")])
        );
        assert_eq!(settled(&[5, 7, 3, 9], 1).0, [0, 0, 2, 4], "late ones wait for nobody");
        let (times, notes) = settled(&[5, 7, 3, 9, 8], 0);
        assert_eq!(times, [0, 2, 2, 4, 4]);
        assert_eq!(notes, [format!("2 {TOO_LATE}")]);
    }

    #[test]
    fn outliers_and_jumps_of_the_clock() {
        const YEARS: u64 = 40 * Clock::FAR_NS;
        let (times, notes) = settled(&[5, YEARS, 7, 8, 9, u64::MAX], 0);
        assert_eq!(times, [0, 2, 3, 4]);
        assert_eq!(notes, [format!("2 {FAR}")]);
        let jump: Vec<u64> = std::iter::once(YEARS).chain(1..11).collect();
        let (times, notes) = settled(&jump, 0);
        assert_eq!(times, [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(notes, [format!("1 {JUMP}")]);
    }

    #[test]
    fn too_many_volumes_and_too_large_requests() {
        let check = |text: String, expect: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x");
            std::fs::write(&path, text).unwrap();
            let mut trace = open(&path, &OpenOptions::default()).unwrap();
            let error = loop {
                match trace.next() {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("no error, but {expect}"),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.contains(expect), "{error}");
            assert_eq!(trace.next(), Ok(None), "an error ends the trace");
        };
        let volumes = |count| (0..count).map(|v| format!("0.5,1,8,0,{}\n", v * 7919)).collect();
        check(volumes(65_536), ":65536: more than 65,535 volumes");
        check(volumes(2) + "1,1,4294967296,0,1", ":3: a request of 4294967296 sectors");
        check(volumes(2) + "1,36028797018963968,1,0,1", ":3: sector 36028797018963968 is beyond");
        check(
            "1,1,0,0,1\n1,1,0,0,1\n".into(),
            "no requests in 2 lines; 2 times: requests of length",
        );
    }

    #[test]
    fn volumes_are_dense_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "1,1,8,0,70000\n1,1,8,0,5\n1,1,8,0,70000\n").unwrap();
        let mut trace = open(&path, &OpenOptions::default()).unwrap();
        let volumes: Vec<_> = std::iter::from_fn(|| trace.next().unwrap())
            .map(|record| record.request.volume)
            .collect();
        assert_eq!(volumes, [0, 1, 0]);
        assert_eq!(trace.volumes(), ["70000", "5"]);
    }

    #[test]
    fn completions_give_response_times() {
        let text = "1 D read 4096 512 1.0 0 False\n1 D write 8192 512 1.5 0 False\n\
                    0 C read 4096 512 1.75 0 False\n0 C write 8192 1024 1.875 0 False\n\
                    0 C read 4096 512 2.0 0 False\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, text).unwrap();
        let mut trace = open(&path, &OpenOptions::default()).unwrap();
        let responses: Vec<_> = std::iter::from_fn(|| trace.next().unwrap())
            .map(|record| record.response.map(SimDuration::as_ns))
            .collect();
        assert_eq!(responses, [Some(750_000_000), Some(375_000_000)]);
    }
}
