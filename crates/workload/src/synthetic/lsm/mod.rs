//! A key-value store on a log-structured merge tree (LSM), as the device sees it: the write-ahead
//! log, flushes of the memtable, and compactions, which read files, write new ones and delete the
//! old.
//!
//! Keys are exact: every update is in its files until a newer one is merged with it. All entries
//! have one size; deletes and lookups are left out. A compaction ends before the next flush, as
//! at low rates of writes.

mod compaction;
mod space;

pub use compaction::{Compaction, CompactionEntry, ENTRIES as COMPACTIONS, EntrySize, Step};

use super::addresses::{Popularity, Region, RegionParameters, sectors_of};
use super::arrivals::{self, Generator, Limits, build_workload};
use super::{GeneratorEntry, GeneratorInput};
use compaction::{File, Run, entries};
use hybridsim_config::param::{Built, EntryChoice, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Flags, Lba, Op, Request, SECTOR_BYTES, Source, Stream};
use space::Space;
use std::collections::VecDeque;
use std::ops::Range;

/// Placement handles by lifetime: the log, flushes; merged files follow.
const LOG: u8 = 1;
const FLUSHED: u8 = 2;

struct Store {
    start: u64,
    /// Sectors of a request.
    block: u32,
    entry_bytes: u64,
    /// Most entries of a merged file.
    file_entries: usize,
    memtable_entries: usize,
    /// Sectors of a write to the log; 0 without one.
    log_sectors: u32,
    by_lifetime: bool,
    space: Space,
    popularity: Popularity,
    stream: Stream,
    style: Box<dyn Compaction>,
    runs: Vec<Run>,
    memtable: Vec<u32>,
    /// Extents of the log, and its sectors that have been written.
    log: (Vec<u32>, u64),
    pending: VecDeque<Request>,
    /// Sectors of the load that are not written yet.
    loading: u64,
    application_bytes: u64,
    /// Entries in files and memory before the last flush.
    stored: u64,
    full: bool,
}

/// The union of sorted keys.
fn merge(one: &[u32], other: &[u32]) -> Vec<u32> {
    let mut all = Vec::with_capacity(one.len() + other.len());
    let (mut at, mut with) = (0, 0);
    while let (Some(a), Some(b)) = (one.get(at), other.get(with)) {
        all.push(*a.min(b));
        at += usize::from(a <= b);
        with += usize::from(b <= a);
    }
    all.extend_from_slice(&one[at..]);
    all.extend_from_slice(&other[with..]);
    all
}

/// The union of the keys of runs, small ones first.
fn merge_all(mut runs: Vec<Vec<u32>>) -> Vec<u32> {
    runs.sort_by_key(Vec::len);
    runs.into_iter().reduce(|merged, run| merge(&merged, &run)).unwrap_or_default()
}

impl Store {
    fn sectors(&self, entries: usize) -> u64 {
        (entries as u64 * self.entry_bytes).div_ceil(SECTOR_BYTES)
    }

    fn flags(&self, handle: u8) -> Flags {
        if self.by_lifetime { Flags::NONE.with_handle(handle) } else { Flags::NONE }
    }

    /// Requests for the sectors `range` of a file.
    fn requests(&self, op: Op, extents: &[u32], range: Range<u64>, flags: Flags) -> Vec<Request> {
        let extent_sectors = u64::from(self.space.extent_sectors);
        let mut requests: Vec<Request> = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let within = at % extent_sectors;
            let extent = u64::from(extents[(at / extent_sectors) as usize]);
            let lba = self.start + extent * extent_sectors + within;
            let sectors = (range.end - at).min(extent_sectors - within).min(u64::from(self.block));
            at += sectors;
            match requests.last_mut() {
                Some(last)
                    if last.lba.0 + u64::from(last.sectors) == lba
                        && u64::from(last.sectors) + sectors <= u64::from(self.block) =>
                {
                    last.sectors += sectors as u32;
                }
                _ => {
                    let request = Request::new(op, Lba(lba), sectors as u32);
                    requests.push(Request { flags, ..request });
                }
            }
        }
        requests
    }

    /// A new file, and the writes that fill it; `None` where there is no space.
    fn write_file(&mut self, keys: Vec<u32>, handle: u8) -> Option<(File, Vec<Request>)> {
        let sectors = self.sectors(keys.len());
        let extents = self.space.allocate(sectors)?;
        let writes = self.requests(Op::Write, &extents, 0..sectors, self.flags(handle));
        Some((File { keys, extents }, writes))
    }

    /// Frees the space of a file, and trims it.
    fn delete(&mut self, extents: &[u32], sectors: u64) {
        let trims = self.requests(Op::Trim, extents, 0..sectors, Flags::NONE);
        self.pending.extend(trims);
        self.space.release(extents);
    }

    /// Queues the writes of all keys in order, a sorted load.
    fn load(&mut self, keys: u32) -> Option<()> {
        let (mut files, mut from) = (Vec::new(), 0);
        let handle = FLUSHED + if self.runs.is_empty() { 2 } else { self.runs.len() as u8 };
        while from < keys {
            let to = keys.min(from.saturating_add(self.file_entries as u32));
            let (file, writes) = self.write_file((from..to).collect(), handle)?;
            self.loading += self.sectors(file.keys.len());
            self.pending.extend(writes);
            files.push(file);
            from = to;
        }
        match self.runs.last_mut() {
            Some(last) => *last = files,
            None if self.style.splits() => self.runs.push(files),
            None => self.runs.extend(files.into_iter().map(|file| vec![file])),
        }
        Some(())
    }

    /// The application's writes up to the next requests.
    fn advance(&mut self) {
        while self.pending.is_empty() && !self.full {
            self.full = self.put().is_none();
        }
    }

    /// Writes an entry.
    fn put(&mut self) -> Option<()> {
        if self.log_sectors > 0 && self.memtable.is_empty() {
            self.log = (self.space.allocate(self.sectors(self.memtable_entries))?, 0);
        }
        self.memtable.push(self.popularity.draw(&mut self.stream) as u32);
        self.application_bytes += self.entry_bytes;
        let filled = self.memtable.len() == self.memtable_entries;
        self.write_log(filled);
        if filled {
            self.stored = self.runs.iter().map(entries).sum::<u64>() + self.memtable.len() as u64;
            self.flush()?;
            while let Some(step) = self.style.next(&self.runs) {
                self.apply(step)?;
            }
        }
        Some(())
    }

    fn write_log(&mut self, to_end: bool) {
        let (written, now) = (self.log.1, self.sectors(self.memtable.len()));
        let due = now - written >= u64::from(self.log_sectors) || to_end;
        if self.log_sectors > 0 && due {
            self.log.1 = now;
            let flags = self.flags(LOG);
            let writes = self.requests(Op::Write, &self.log.0, written..now, flags);
            self.pending.extend(writes);
        }
    }

    /// Writes the memtable to a new run of one file, and deletes its log.
    fn flush(&mut self) -> Option<()> {
        let mut keys = std::mem::take(&mut self.memtable);
        keys.sort_unstable();
        keys.dedup();
        let (file, writes) = self.write_file(keys, FLUSHED)?;
        self.pending.extend(writes);
        self.runs.insert(0, vec![file]);
        let (log, sectors) = std::mem::take(&mut self.log);
        self.delete(&log, sectors);
        Some(())
    }

    fn apply(&mut self, step: Step) -> Option<()> {
        match step {
            Step::Delete(place) => {
                for file in std::mem::take(&mut self.runs[place]) {
                    self.delete(&file.extents, self.sectors(file.keys.len()));
                }
            }
            Step::Merge { from, to } => {
                let taken = from
                    .into_iter()
                    .map(|(place, files)| self.runs[place].drain(files).collect::<Run>());
                let mut inputs: Vec<Run> = taken.collect();
                inputs.retain(|run| !run.is_empty());
                let merged = match inputs.iter().map(Vec::len).sum::<usize>() {
                    1 => inputs.remove(0),
                    _ => self.compact(inputs, to)?,
                };
                let run = &mut self.runs[to];
                let first = merged.first().and_then(|file| file.keys.first());
                let at = run.partition_point(|file| file.keys.first() < first);
                run.splice(at..at, merged);
            }
        }
        let (mut place, levels) = (0, self.runs.len() - self.style.levels());
        self.runs.retain(|run| {
            place += 1;
            place > levels || !run.is_empty()
        });
        Some(())
    }

    /// Reads runs, writes their union for the run at `to`, and deletes them.
    fn compact(&mut self, inputs: Vec<Run>, to: usize) -> Option<Run> {
        let size = |file: &File| self.sectors(file.keys.len());
        let old: Vec<(Vec<u32>, u64)> =
            inputs.iter().flatten().map(|file| (file.extents.clone(), size(file))).collect();
        let reads = old.iter().flat_map(|(extents, sectors)| {
            self.requests(Op::Read, extents, 0..*sectors, Flags::NONE)
        });
        let reads: Vec<Request> = reads.collect();
        let keys = |run: Run| run.into_iter().flat_map(|file| file.keys).collect();
        let keys = merge_all(inputs.into_iter().map(keys).collect());
        let most = if self.style.splits() { self.file_entries } else { keys.len().max(1) };
        let (handle, mut outputs, mut writes) = (self.handle(to), Run::new(), Vec::new());
        for part in keys.chunks(most) {
            let (file, more) = self.write_file(part.to_vec(), handle)?;
            outputs.push(file);
            writes.extend(more);
        }
        self.alternate(&reads, &writes);
        for (extents, sectors) in old {
            self.delete(&extents, sectors);
        }
        Some(outputs)
    }

    /// Queues reads and writes of a compaction, which follow each other at even intervals.
    fn alternate(&mut self, reads: &[Request], writes: &[Request]) {
        let mut read = 0;
        for (at, write) in writes.iter().enumerate() {
            let due = (at + 1) * reads.len() / writes.len();
            self.pending.extend(&reads[read..due]);
            self.pending.push_back(*write);
            read = due;
        }
    }

    /// The placement handle of merged files in the run at `to`: by level, or by whether they are
    /// the oldest.
    fn handle(&self, to: usize) -> u8 {
        let levels = self.style.levels();
        let level0 = self.runs.len() - levels;
        match (levels > 0, to >= level0) {
            (true, true) => FLUSHED + 1 + (to - level0) as u8,
            (true, false) => FLUSHED,
            (false, _) => FLUSHED + 1 + u8::from(to + 1 == self.runs.len()),
        }
    }
}

impl Generator for Store {
    fn draw(&mut self) -> Request {
        let request = self.pending.pop_front().expect("asked for its end before");
        let loaded = u64::from(request.sectors).min(self.loading);
        self.loading -= loaded;
        self.application_bytes += loaded * SECTOR_BYTES;
        self.advance();
        request
    }

    fn end(&self) -> Option<Result<(), String>> {
        (self.full && self.pending.is_empty()).then(|| {
            Err(format!(
                "the store has {} bytes of entries, and with the new files of a compaction needs \
                 more than its span: give it a larger one (`span`) or fewer `keys`",
                self.stored * self.entry_bytes
            ))
        })
    }

    fn application_bytes(&self) -> Option<u64> {
        Some(self.application_bytes)
    }
}

/// Requests of a load wait in memory.
const BLOCK_SECTORS_MIN: u32 = 8;

hybridsim_config::params! {
    struct Parameters includes {
        arrivals: arrivals::Parameters,
        span: RegionParameters,
    } {
        keys: u64 = Kind::Count { min: 1, max: 1 << 28 }, required,
            "Keys of the store. The simulator needs 4 bytes of memory for each entry of its files.";
        entry: u64 = Kind::Bytes, default "\"1KiB\"", "Bytes of a key with its value in a file.";
        loaded: bool = Kind::Flag, default "true",
            "Whether all keys are written in order first, into the last run.";
        theta: f64 = Kind::Number { min: 0.0, max: 10.0 }, default "0",
            "Exponent of the power law of updates: 0 is uniform.";
        memtable: u64 = Kind::Bytes, default "\"64MiB\"",
            "Bytes of entries in memory that are flushed to a file.";
        file: u64 = Kind::Bytes, default "\"64MiB\"", "Most bytes of a merged file.";
        log: Option<u64> = Kind::Bytes, optional,
            "Bytes of a write to the write-ahead log; without it there is no log.";
        compaction: EntryChoice = Kind::Entry("compaction"), default "\"leveled\"",
            "Which files are merged, and when.";
        extent: u64 = Kind::Bytes, default "\"1MiB\"",
            "Unit of the space of files; the lowest free ones are used first.";
        block: u64 = Kind::Bytes, default "\"1MiB\"", "Most bytes of a request.";
        lifetimes: bool = Kind::Flag, default "false",
            "Whether writes have a placement handle by lifetime: 1 for the log, 2 for flushes, 3 \
             and more for merged files by level; tiered and FIFO: 3, and 4 for the oldest run.";
    }
}

impl Parameters {
    /// The store, without its style; adds problems.
    fn store(&self, input: &GeneratorInput<'_>, problems: &mut Vec<Problem>) -> Option<Store> {
        let block = sectors_of("block", self.block, problems);
        if block < BLOCK_SECTORS_MIN {
            problems.push(Problem::new("block", "must be at least 4 KiB"));
        }
        let log = self.log.map_or(0, |bytes| sectors_of("log", bytes, problems));
        let extent_sectors = sectors_of("extent", self.extent, problems);
        let span = Region::new(input, &self.span, u64::from(extent_sectors), problems);
        let entry_bytes = self.entry;
        for (name, bytes) in [("memtable", self.memtable), ("file", self.file)] {
            if entry_bytes == 0 || bytes / entry_bytes == 0 || bytes / entry_bytes > 1 << 28 {
                let message = format!("{bytes} bytes hold no entry of {entry_bytes} or over 2^28");
                problems.push(Problem::new(name, message));
            }
        }
        let style = input.registry.chosen::<CompactionEntry>(&self.compaction);
        let style = (style.0.build)(style.1, EntrySize(entry_bytes.max(1)));
        let style = style.map_err(|more| problems.extend(more)).ok()?;
        let extents = span.sectors / u64::from(extent_sectors);
        problems.is_empty().then(|| Store {
            start: span.start,
            block,
            entry_bytes,
            file_entries: (self.file / entry_bytes) as usize,
            memtable_entries: (self.memtable / entry_bytes) as usize,
            log_sectors: log,
            by_lifetime: self.lifetimes,
            space: Space::new(extent_sectors, extents.min(u64::from(u32::MAX)) as u32),
            popularity: match self.theta {
                0.0 => Popularity::Uniform(self.keys),
                theta => Popularity::zipf(self.keys, theta),
            },
            stream: input.stream("keys"),
            runs: (0..style.levels()).map(|_| Run::new()).collect(),
            style,
            memtable: Vec::new(),
            log: (Vec::new(), 0),
            pending: VecDeque::new(),
            loading: 0,
            application_bytes: 0,
            stored: 0,
            full: false,
        })
    }
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let mut store = params.store(input, &mut problems);
    if let Some(store) = &mut store {
        if params.loaded && store.load(params.keys as u32).is_none() {
            let message = "the loaded store is larger than its span";
            problems.push(Problem::new("keys", message));
        }
        store.advance();
    }
    build_workload(input, &params.arrivals, store, Limits::NONE, None, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "lsm",
        summary: "The requests of a key-value store on a log-structured merge tree.",
        origin: "O'Neil et al. 1996; LevelDB, RocksDB",
        params: Parameters::PARAMS,
    },
    build,
};

#[cfg(test)]
mod tests;
