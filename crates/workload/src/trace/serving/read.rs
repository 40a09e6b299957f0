//! Reads a serving trace into memory.

use super::block_size::{BlockSize, fits};
use super::names::Numbers;
use super::{
    ENTRIES, FormatFacts, NO_BLOCK, RawServing, ServingEntry, ServingEvent, ServingParser,
    ServingRequest, ServingTrace, sniff,
};
use crate::record::{SourceLocation, TraceResult};
use crate::trace::bytes::TraceFile;
use crate::trace::normalise::WarningLog;
use crate::trace::{OpenOptions, check_settings};
use hybridsim_config::check;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{SimDuration, SimTime};
use std::path::Path;

/// Longest line: a million block numbers.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Reads the trace at `path` if its content is that of a serving trace; `None` if it is not, or if
/// it is no file, whose content could be examined only once.
///
/// # Errors
/// A file that cannot be read, or content that breaks the format.
pub fn open(path: &Path, options: &OpenOptions) -> TraceResult<Option<ServingTrace>> {
    if !std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() > 0) {
        return Ok(None);
    }
    let mut file = TraceFile::open(path)?;
    match sniff(&file.head()?) {
        Some(entry) => read_as(entry, file, options).map(Some),
        None => Ok(None),
    }
}

/// Reads the serving trace at `path`.
///
/// # Errors
/// A file that cannot be read, a format that is not known, or content that breaks it.
pub fn read(path: &Path, options: &OpenOptions) -> TraceResult<ServingTrace> {
    let mut file = TraceFile::open(path)?;
    let names = || {
        let names: Vec<_> = ENTRIES.iter().map(|entry| entry.description.name).collect();
        names.join(", ")
    };
    let entry = match &options.format {
        Some(name) => {
            ENTRIES.iter().find(|entry| entry.description.name == *name).ok_or_else(|| {
                format!("there is no format of serving traces \"{name}\"; they are {}", names())
            })
        }
        None => sniff(&file.head()?).ok_or_else(|| {
            format!("is in no known format of serving traces ({}); name it with --format", names())
        }),
    };
    let entry = entry.map_err(|message| file.error(SourceLocation::File, message))?;
    read_as(entry, file, options)
}

fn read_as(
    entry: &ServingEntry,
    mut file: TraceFile,
    options: &OpenOptions,
) -> TraceResult<ServingTrace> {
    check_settings(&entry.description, &options.settings)
        .map_err(|message| file.error(SourceLocation::File, message))?;
    let mut settings = check::defaults(entry.description.params, &Registry::default());
    for (name, value) in options.settings.iter() {
        settings.set(name, value.clone());
    }
    file.accept_lines(LINE_BYTES_MAX);
    file.skip_byte_order_mark()?;
    let parser = (entry.parser)(&settings);
    let mut reading = Reading {
        facts: parser.facts(),
        warnings: WarningLog::new(options.skip_bad_lines),
        requests: Vec::new(),
        numbers: Numbers::default(),
        references: Vec::new(),
        removed: Vec::new(),
        size: BlockSize::default(),
        block_bytes: None,
    };
    reading.lines(&mut file, parser)?;
    reading.finish(&file, entry)
}

/// A request with its line.
struct Read {
    line: u64,
    time_ns: u64,
    request: ServingRequest,
    parent: u32,
}

/// Bounds of a trace, which needs some 70 bytes of memory for a request and 4 for a reference.
const REQUESTS_MAX: usize = 20_000_000;
const REFERENCES_MAX: usize = 1 << 29;

struct Reading {
    facts: FormatFacts,
    warnings: WarningLog,
    requests: Vec<Read>,
    numbers: Numbers,
    references: Vec<u32>,
    /// Times at which blocks left GPU memory.
    removed: Vec<(u64, u32)>,
    size: BlockSize,
    block_bytes: Option<u64>,
}

impl Reading {
    fn lines(
        &mut self,
        file: &mut TraceFile,
        mut parser: Box<dyn ServingParser>,
    ) -> TraceResult<()> {
        let (mut number, mut events) = (0, Vec::new());
        loop {
            number += 1;
            let Some((line, ended)) = file.line(number)? else { return Ok(()) };
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            events.clear();
            let parsed = parser.parse(line, &mut events);
            let location = SourceLocation::Line(number);
            let taken = parsed
                .and_then(|()| events.drain(..).try_for_each(|event| self.take(event, location)));
            match taken {
                Ok(()) => {}
                Err(_) if !ended => {
                    self.warnings.add(location, "the last line is truncated; left out");
                }
                Err(message) => {
                    let shown = String::from_utf8_lossy(&line[..line.len().min(60)]);
                    let shown: String = shown.chars().flat_map(char::escape_default).collect();
                    let error = file.error(location, format!("{message} in \"{shown}...\""));
                    self.warnings.bad_record(error, !self.requests.is_empty())?;
                }
            }
        }
    }

    fn take(&mut self, event: ServingEvent, location: SourceLocation) -> Result<(), String> {
        match event {
            ServingEvent::Request(raw) => self.request(raw, location),
            ServingEvent::Removed { time_ns, blocks } => {
                for name in blocks {
                    match self.numbers.get(name) {
                        Some(block) => self.removed.push((time_ns, block)),
                        None => {
                            self.warnings.add(location, "a block is evicted that was not stored")
                        }
                    }
                }
                Ok(())
            }
            ServingEvent::Skipped(message) => {
                self.warnings.add(location, message);
                Ok(())
            }
        }
    }

    fn request(&mut self, raw: RawServing, location: SourceLocation) -> Result<(), String> {
        let tokens = raw.input_tokens;
        if tokens > 1 << 40 || raw.output_tokens > 1 << 40 {
            return Err("has more than a trillion tokens".to_owned());
        }
        let blocks = raw.blocks.len() as u64;
        if blocks > tokens {
            return Err(format!("has {blocks} blocks for {tokens} input tokens"));
        }
        match raw.block_tokens.or(self.facts.block_tokens) {
            Some(size) if !fits(tokens, blocks, size) && self.facts.has_blocks => {
                return Err(format!(
                    "has {blocks} blocks of {size} tokens for {tokens} input tokens"
                ));
            }
            Some(_) => {}
            None => self.size.narrow(tokens, blocks),
        }
        if let (Some(known), Some(bytes)) = (self.block_bytes, raw.block_bytes)
            && known != bytes
        {
            return Err(format!("has blocks of {bytes} bytes; before they had {known}"));
        }
        self.block_bytes = self.block_bytes.or(raw.block_bytes);
        if self.requests.len() >= REQUESTS_MAX || self.references.len() >= REFERENCES_MAX {
            return Err(format!(
                "is beyond {REQUESTS_MAX} requests or {REFERENCES_MAX} references, which are kept \
                 in memory: cut the trace"
            ));
        }
        let parent = raw.parent.and_then(|name| self.numbers.get(name)).unwrap_or(NO_BLOCK);
        let first = self.references.len();
        for name in raw.blocks {
            self.references.push(self.numbers.number(name)?);
        }
        let request = ServingRequest {
            at: SimTime::ZERO,
            input_tokens: tokens,
            output_tokens: raw.output_tokens,
            block_tokens: raw.block_tokens.or(self.facts.block_tokens).unwrap_or(0),
            first,
            blocks: blocks as u32,
        };
        self.requests.push(Read { line: location.number(), time_ns: raw.time_ns, request, parent });
        Ok(())
    }

    /// Tokens in a block of lines that do not state it.
    fn block_tokens(&self, file: &TraceFile) -> TraceResult<u32> {
        let unstated = |read: &&Read| read.request.block_tokens == 0 && read.request.blocks > 0;
        let Some(read) = self.requests.iter().find(unstated) else { return Ok(1) };
        self.size.size().ok_or_else(|| {
            let message = "the number of tokens in a block does not follow from the lengths of \
                           prompts and their numbers of blocks; give it with --format '{ kind = \
                           \"mooncake\", block_tokens = 512 }'";
            file.error(SourceLocation::Line(read.line), message)
        })
    }

    fn finish(mut self, file: &TraceFile, entry: &ServingEntry) -> TraceResult<ServingTrace> {
        if self.requests.is_empty() {
            return Err(file.error(SourceLocation::File, "has no requests"));
        }
        let block_tokens = self.block_tokens(file)?;
        let sorted = self.requests.is_sorted_by_key(|read| read.time_ns);
        if !sorted {
            let message = "requests are not in order of time; sorted";
            self.warnings.add(SourceLocation::File, message);
            self.requests.sort_by_key(|read| read.time_ns);
        }
        let mut trace = ServingTrace {
            format: entry.description.name,
            compression: file.compression(),
            block_bytes: self.block_bytes,
            has_output: self.facts.has_output,
            whole_prompts: self.facts.whole_prompts,
            ..ServingTrace::default()
        };
        let start = self.requests[0].time_ns;
        let mut order = Order::new(&self);
        for read in &self.requests {
            let mut request = read.request;
            if request.block_tokens == 0 {
                request.block_tokens = block_tokens;
            }
            request.at = SimTime::ZERO + SimDuration::from_ns(read.time_ns - start);
            let blocks = &self.references[request.first..request.first + request.blocks as usize];
            order.add(&mut trace, request, blocks, read.parent);
        }
        if order.other_parents > 0 {
            let message = format!(
                "{} of {} references are to a block that had another block before it elsewhere: \
                 names of blocks are not those of their prefixes, and hits may be too many",
                order.other_parents,
                self.references.len()
            );
            self.warnings.add(SourceLocation::File, &message);
        }
        trace.residence_ns = self.residences(start);
        trace.warnings = self.warnings.into_list();
        Ok(trace)
    }

    /// Times from storing a block to evicting it, of a log of events.
    fn residences(&self, start: u64) -> Vec<u64> {
        let mut stored =
            vec![None; if self.removed.is_empty() { 0 } else { self.references.len() }];
        let mut removed = self.removed.clone();
        removed.sort_unstable();
        let (mut at, mut times) = (0, Vec::with_capacity(removed.len()));
        for (time_ns, block) in removed {
            while let Some(read) = self.requests.get(at).filter(|read| read.time_ns <= time_ns) {
                let request = &read.request;
                for &block in
                    &self.references[request.first..request.first + request.blocks as usize]
                {
                    stored[block as usize] = Some(read.time_ns);
                }
                at += 1;
            }
            times.extend(stored[block as usize].take().map(|stored| time_ns - stored.max(start)));
        }
        times
    }
}

/// Numbers blocks in order of time, and finds names that do not stand for a prefix.
struct Order {
    numbers: Vec<u32>,
    other_parents: u64,
    blocks: Vec<u32>,
}

impl Order {
    fn new(reading: &Reading) -> Self {
        let most = reading.references.iter().max().map_or(0, |most| *most as usize + 1);
        Self { numbers: vec![NO_BLOCK; most], other_parents: 0, blocks: Vec::new() }
    }

    fn add(
        &mut self,
        trace: &mut ServingTrace,
        request: ServingRequest,
        blocks: &[u32],
        parent: u32,
    ) {
        let known = |numbers: &[u32], block: u32| match block {
            NO_BLOCK => NO_BLOCK,
            block => numbers[block as usize],
        };
        let mut before = known(&self.numbers, parent);
        let given = before != NO_BLOCK;
        let mut next = trace.distinct() as u32;
        self.blocks.clear();
        let mut parents = Vec::new();
        for &block in blocks {
            let number = &mut self.numbers[block as usize];
            if *number == NO_BLOCK {
                *number = next;
                next += 1;
                parents.push(before);
            } else if trace.parents.get(*number as usize).is_some_and(|known| *known != before) {
                self.other_parents += 1;
            }
            before = *number;
            self.blocks.push(*number);
        }
        let first_new = trace.distinct();
        trace.push(request, &self.blocks);
        if given {
            trace.parents[first_new..].copy_from_slice(&parents);
        }
    }
}
