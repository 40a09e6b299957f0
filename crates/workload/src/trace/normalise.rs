//! Converts raw requests of any format to records: dense volume numbers, whole sectors, and times
//! that never decrease.

use super::bytes::TraceFile;
use super::clock::Clock;
use super::volumes::VolumeNumbers;
use super::window::{Order, Window};
use crate::block_events::BlockEvents;
use crate::record::{Record, RecordReader, SourceLocation, TraceError, TraceResult, Warning};
use hybridsim_engine::{DataSlice, Flags, Lba, Op, Request, SECTOR_BYTES, SimDuration, SimTime};

/// A request as a format parsed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawRequest {
    /// Time of the trace's own clock.
    pub time_ns: u64,
    /// The trace's number of the volume, or a number the format gave it.
    pub volume: u64,
    pub op: Op,
    pub flags: Flags,
    /// First sector.
    pub start: u64,
    /// Requests of 0 sectors are skipped unless they are flushes.
    pub sectors: u64,
    /// Whether the range was extended to whole sectors.
    pub rounded: bool,
    /// Measured response time; [`RawRequest::NO_RESPONSE`] where there is none.
    pub response_ns: u64,
    /// Not a request but the completion of the one with this range.
    pub completion: bool,
}

impl RawRequest {
    pub const NO_RESPONSE: u64 = u64::MAX;

    #[inline]
    pub const fn sectors(time_ns: u64, volume: u64, op: Op, start: u64, sectors: u64) -> Self {
        let flags = Flags::NONE;
        let (rounded, completion, response_ns) = (false, false, Self::NO_RESPONSE);
        Self { time_ns, volume, op, flags, start, sectors, rounded, response_ns, completion }
    }

    /// From a range in bytes, extended to the sectors it touches.
    pub const fn bytes(time_ns: u64, volume: u64, op: Op, offset: u64, length: u64) -> Self {
        let start = offset / SECTOR_BYTES;
        if length == 0 {
            return Self::sectors(time_ns, volume, op, start, 0);
        }
        let last = offset.saturating_add(length - 1) / SECTOR_BYTES;
        let mut raw = Self::sectors(time_ns, volume, op, start, last - start + 1);
        raw.rounded = !(offset | length).is_multiple_of(SECTOR_BYTES);
        raw
    }

    /// Whether a device could serve it.
    #[inline]
    const fn is_in_range(&self) -> bool {
        self.sectors <= u32::MAX as u64 && self.start <= SECTORS_MAX - self.sectors
    }

    pub const fn with_flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }

    pub const fn as_completion(mut self) -> Self {
        self.completion = true;
        self
    }

    pub const fn with_response(mut self, response_ns: u64) -> Self {
        self.response_ns = response_ns;
        self
    }
}

/// Warnings so far, one per kind, and what happens to records that cannot be read.
#[derive(Debug, Default)]
pub(crate) struct WarningLog {
    list: Vec<Warning>,
    /// Whether bad records are left out and counted; otherwise the first ends the trace.
    skip_bad: bool,
    /// Index in `list` of the warning that counts them.
    bad: Option<usize>,
}

impl WarningLog {
    pub const fn new(skip_bad: bool) -> Self {
        Self { list: Vec::new(), skip_bad, bad: None }
    }

    /// One entry per kind.
    pub fn into_list(self) -> Vec<Warning> {
        self.list
    }

    pub fn add(&mut self, location: SourceLocation, message: &str) {
        if let Some(known) = self.list.iter_mut().find(|known| known.message == message) {
            known.count += 1;
        } else {
            self.list.push(Warning { location, count: 1, message: message.to_owned() });
        }
    }

    /// Leaves a bad record out, or returns its error. `read` is whether any record before it could
    /// be read: if not, the format is doubtful.
    #[cold]
    pub fn bad_record(&mut self, mut error: TraceError, read: bool) -> TraceResult<()> {
        if !self.skip_bad {
            error.message += if read {
                "; correct it, or leave such records out with --skip-bad-lines (`skip_bad_lines`)"
            } else {
                "; nothing before it could be read: is this the format? Name another with \
                 --format (`format`), or leave such records out with --skip-bad-lines \
                 (`skip_bad_lines`)"
            };
            return Err(error);
        }
        match self.bad {
            Some(at) => self.list[at].count += 1,
            None => {
                self.bad = Some(self.list.len());
                let message = format!("bad records left out; the first: {}", error.message);
                self.list.push(Warning { location: error.location, count: 1, message });
            }
        }
        Ok(())
    }
}

/// A trace file parsed by its format.
pub(crate) trait RequestSource {
    /// Replaces `request` with the next one; false at the end. (Returned, it would be copied in
    /// pieces through the enumerations around it.)
    fn next_request(
        &mut self,
        request: &mut RawRequest,
        warnings: &mut WarningLog,
    ) -> TraceResult<bool>;
    /// The location of the last request.
    fn location(&self) -> SourceLocation;
    /// The file, for errors and progress.
    fn file(&self) -> &TraceFile;
    /// The trace's name of a volume.
    fn label(&self, volume: u64) -> String {
        volume.to_string()
    }
    fn has_times(&self) -> bool {
        true
    }
    fn progress(&self) -> Option<f64> {
        self.file().progress()
    }
    /// Numbers of block-layer events so far.
    fn block_events(&self) -> Option<BlockEvents> {
        None
    }
}

const DISORDER: &str = "requests out of time order; sorted";
const TOO_LATE: &str =
    "requests out of time order by more than the reorder window; given the time of the one before";
const FAR: &str = "requests with times a year or more from all around them; left out";
const JUMP: &str = "the clock jumps by a year or more; the jump is removed";
const ROUNDED: &str = "offset or length not a multiple of 512 bytes; extended to whole sectors";
const EMPTY: &str = "requests of length zero; left out";

/// Number of last requests among which a completion's request is searched.
const IN_FLIGHT_MAX: usize = 512;

/// Byte offsets must fit in 64 bits.
const SECTORS_MAX: u64 = 1 << 55;

/// So many records in a row far from the previous times mean that the clock was set; fewer are
/// outliers.
const JUMP_RECORDS: usize = 8;

/// Reads the requests of a source as records.
pub(crate) struct NormalisedReader<S> {
    source: S,
    warnings: WarningLog,
    clock: Clock,
    /// Records with times far from the last accepted one.
    far: Vec<Record>,
    volumes: VolumeNumbers,
    /// Times in it are still of the trace's clock.
    window: Window,
    end: Option<TraceResult<()>>,
    first_ns: Option<u64>,
    /// The records that are returned next, from the index `at`.
    ready: Vec<Record>,
    at: usize,
    /// Whether any request was read.
    read: bool,
}

impl<S: RequestSource> NormalisedReader<S> {
    pub fn new(source: S, reorder_records: usize, warnings: WarningLog) -> Self {
        let window_max = if source.has_times() { reorder_records.min(1 << 20) } else { 0 };
        Self {
            source,
            warnings,
            clock: Clock::default(),
            far: Vec::new(),
            volumes: VolumeNumbers::default(),
            window: Window::new(window_max),
            end: None,
            first_ns: None,
            ready: Vec::new(),
            at: 0,
            read: false,
        }
    }

    /// Reads a request into the window, its time still of the trace's clock. Returns whether there
    /// was one.
    #[inline(always)]
    fn read_request(&mut self) -> TraceResult<bool> {
        let mut raw = RawRequest::sectors(0, 0, Op::Flush, 0, 0);
        if !self.source.next_request(&mut raw, &mut self.warnings)? {
            self.drop_far();
            return Ok(false);
        }
        let unusual = raw.completion || raw.sectors == 0 || !raw.is_in_range();
        if unusual && !self.is_kept(raw)? {
            return Ok(true);
        }
        let volume = match self.volumes.number(raw.volume) {
            Some(volume) => volume,
            None => self.add_volume(raw.volume)?,
        };
        if raw.rounded {
            self.warn(ROUNDED);
        }
        self.read = true;
        let at = match self.source.has_times() {
            true => self.clock.follow(raw.time_ns),
            false => Some(0),
        };
        let Some(at) = at else {
            self.hold_far(record(&raw, volume, raw.time_ns));
            return Ok(true);
        };
        self.drop_far();
        if self.window.is_followed_by(SimTime::from_ns(at)) {
            self.window.append(record(&raw, volume, at));
        } else {
            self.push(record(&raw, volume, at));
        }
        Ok(true)
    }

    /// Adds a record to the window, late or not.
    // Not inlined, as most records are appended.
    #[inline(never)]
    fn push(&mut self, record: Record) {
        let order = self.window.push(record);
        if order != Order::Kept {
            self.warn_of_order(order);
        }
    }

    /// Whether `raw` is a request that a device could serve. The others are used or counted here.
    #[inline(never)]
    fn is_kept(&mut self, raw: RawRequest) -> TraceResult<bool> {
        if raw.completion {
            self.complete(&raw);
            return Ok(false);
        }
        if raw.sectors == 0 && raw.op != Op::Flush {
            self.warn(EMPTY);
            return Ok(false);
        }
        if !raw.is_in_range() {
            let error = self.out_of_range(&raw);
            self.warnings.bad_record(error, self.read)?;
            return Ok(false);
        }
        Ok(true)
    }

    #[cold]
    fn warn(&mut self, message: &str) {
        self.warnings.add(self.source.location(), message);
    }

    #[inline]
    fn drop_far(&mut self) {
        if !self.far.is_empty() {
            self.warn_of_far();
        }
    }

    #[cold]
    fn warn_of_far(&mut self) {
        for _ in self.far.drain(..) {
            self.warnings.add(self.source.location(), FAR);
        }
    }

    #[cold]
    fn hold_far(&mut self, record: Record) {
        self.far.push(record);
        if self.far.len() < JUMP_RECORDS {
            return;
        }
        self.warnings.add(self.source.location(), JUMP);
        self.clock.jump_to(self.far[0].at.as_ns());
        let location = self.source.location();
        let mut accepted = Vec::new();
        while !self.far.is_empty() {
            let mut record = self.far.remove(0);
            match self.clock.follow(record.at.as_ns()) {
                Some(time_ns) => {
                    record.at = SimTime::from_ns(time_ns);
                    accepted.push(record);
                }
                None => self.warnings.add(location, FAR),
            }
        }
        accepted.into_iter().for_each(|record| self.push(record));
    }

    /// Sets the response time of the request that `raw` completes, if it is in the window.
    fn complete(&mut self, raw: &RawRequest) {
        let Some(volume) = self.volumes.number(raw.volume) else { return };
        let done = SimTime::from_ns(self.clock.shifted(raw.time_ns));
        let same = |record: &&mut Record| {
            let request = &record.request;
            request.lba.0 == raw.start && request.op == raw.op && request.volume == volume
        };
        if let Some(record) = self.window.newest_first().take(IN_FLIGHT_MAX).find(same)
            && record.at <= done
            && record.response.is_none()
        {
            record.response = Some(done.since(record.at));
        }
    }

    #[cold]
    fn add_volume(&mut self, key: u64) -> TraceResult<u16> {
        let label = self.source.label(key);
        self.volumes.add(key, label).ok_or_else(|| {
            let message = "more than 65,535 volumes; reduce the trace to fewer";
            self.source.file().error(self.source.location(), message)
        })
    }

    /// The error of a request that no device could serve.
    #[cold]
    fn out_of_range(&self, raw: &RawRequest) -> TraceError {
        let (start, sectors) = (raw.start, raw.sectors);
        let message = if sectors > u64::from(u32::MAX) {
            format!(
                "a request of {sectors} sectors (2 TiB or more) is implausible; check the format"
            )
        } else {
            format!("sector {start} is beyond any device (2^55 sectors); check the format")
        };
        self.source.file().error(self.source.location(), message)
    }

    /// Reads until the oldest records can leave the window; records how the trace ended.
    fn fill(&mut self) {
        if self.end.is_some() {
            return;
        }
        while !self.window.is_ready() {
            // No record can make the window ready before the last of these.
            for _ in 0..self.window.room() {
                match self.read_request() {
                    Ok(true) => continue,
                    Ok(false) => self.end = Some(Ok(())),
                    Err(error) => self.end = Some(Err(error)),
                }
                return;
            }
        }
    }

    #[cold]
    fn warn_of_order(&mut self, order: Order) {
        if self.window.records_max() > 0 {
            self.warn(DISORDER);
        }
        if order == Order::TooLate {
            self.warn(TOO_LATE);
        }
    }

    /// Replaces `batch` with the next records; none at the end.
    fn take(&mut self, batch: &mut Vec<Record>) -> TraceResult<()> {
        self.fill();
        self.window.take(batch);
        if let Some(first) = batch.first() {
            let first_ns = *self.first_ns.get_or_insert(first.at.as_ns());
            let since_first = |at: SimTime| SimTime::from_ns(at.as_ns() - first_ns);
            batch.iter_mut().for_each(|record| record.at = since_first(record.at));
            return Ok(());
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
            _ => Ok(()),
        }
    }

    fn nothing_found(&self) -> TraceError {
        let seen = match self.source.location() {
            SourceLocation::File => String::new(),
            SourceLocation::Line(count) => format!(" in {count} lines"),
            SourceLocation::Record(count) => format!(" in {count} records"),
        };
        let mut message = format!("no requests{seen}");
        if let Some(why) = self.source.block_events().and_then(|it| it.why_no_requests()) {
            message += &format!(": {why}");
        }
        for warning in &self.warnings.list {
            message += &format!("; {} times: {}", warning.count, warning.message);
        }
        self.source.file().error(SourceLocation::File, message)
    }
}

/// The record of `raw`, which is in range.
#[inline(always)]
fn record(raw: &RawRequest, volume: u16, time_ns: u64) -> Record {
    let sectors = u32::try_from(raw.sectors).unwrap_or(u32::MAX);
    let (op, flags, lba) = match raw.op {
        Op::Flush => (Op::Flush, Flags::NONE, Lba(0)),
        op => (op, raw.flags, Lba(raw.start)),
    };
    Record {
        at: SimTime::from_ns(time_ns),
        request: Request { op, flags, volume, sectors, lba, data: DataSlice::NONE },
        response: (raw.response_ns != RawRequest::NO_RESPONSE)
            .then(|| SimDuration::from_ns(raw.response_ns)),
    }
}

impl<S: RequestSource> RecordReader for NormalisedReader<S> {
    #[inline]
    fn next(&mut self) -> TraceResult<Option<Record>> {
        if self.at == self.ready.len() {
            self.at = 0;
            let mut ready = std::mem::take(&mut self.ready);
            let taken = self.take(&mut ready);
            self.ready = ready;
            taken?;
        }
        let record = self.ready.get(self.at).copied();
        self.at += usize::from(record.is_some());
        Ok(record)
    }

    fn next_batch(&mut self, batch: &mut Vec<Record>) -> TraceResult<()> {
        if self.at == self.ready.len() {
            return self.take(batch);
        }
        batch.clear();
        batch.extend_from_slice(&self.ready[self.at..]);
        self.at = self.ready.len();
        Ok(())
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings.list
    }

    fn progress(&self) -> Option<f64> {
        self.source.progress()
    }

    fn block_events(&self) -> Option<BlockEvents> {
        self.source.block_events()
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
    fn bytes_are_extended_to_sectors() {
        let check = |offset, length, expect: (u64, u64, bool)| {
            let raw = RawRequest::bytes(0, 0, Op::Read, offset, length);
            assert_eq!((raw.start, raw.sectors, raw.rounded), expect, "{offset}+{length}");
        };
        check(0, 512, (0, 1, false));
        check(512, 1024, (1, 2, false));
        check(511, 2, (0, 2, true));
        check(513, 1, (1, 1, true));
        check(1, 512, (0, 2, true));
        check(1024, 0, (2, 0, false));
        check(u64::MAX, u64::MAX, (u64::MAX / 512, 1, true));
    }

    /// The resulting times, and the warnings.
    fn read_times(times: &[u64], reorder_records: usize) -> (Vec<u64>, Vec<String>) {
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
            read_times(&[5, 7, 6, 5, 9], 4),
            (vec![0, 0, 1, 2, 4], vec![format!("2 {DISORDER}")])
        );
        assert_eq!(read_times(&[5, 7, 3, 9], 1).0, [0, 0, 2, 4], "too late for the window");
        let (times, warnings) = read_times(&[5, 7, 3, 9, 8], 0);
        assert_eq!(times, [0, 2, 2, 4, 4]);
        assert_eq!(warnings, [format!("2 {TOO_LATE}")]);
    }

    #[test]
    fn outliers_and_jumps_of_the_clock() {
        const YEARS: u64 = 40 * Clock::FAR_NS;
        let (times, warnings) = read_times(&[5, YEARS, 7, 8, 9, u64::MAX], 0);
        assert_eq!(times, [0, 2, 3, 4]);
        assert_eq!(warnings, [format!("2 {FAR}")]);
        let jump: Vec<u64> = std::iter::once(YEARS).chain(1..11).collect();
        let (times, warnings) = read_times(&jump, 0);
        assert_eq!(times, [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(warnings, [format!("1 {JUMP}")]);
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
