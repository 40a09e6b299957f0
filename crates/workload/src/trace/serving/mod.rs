//! Traces of serving systems for language models: requests with token counts and, where the format
//! has them, the names of the key-value blocks of their prompts.
//!
//! They have no addresses, so they are no block traces: a cache of key-value blocks makes block
//! requests of them. A trace is held in memory, four bytes per reference to a block, because such a
//! cache is simulated at many sizes.

mod azure;
mod block_size;
mod json;
mod lmcache;
mod mooncake;
mod names;
mod read;
#[cfg(test)]
mod tests;
mod vllm;

pub use read::{open, read};

use super::FileHead;
use crate::record::Warning;
use hybridsim_config::param::Settings;
use hybridsim_config::registry::Description;
use hybridsim_engine::SimTime;

/// A request of a serving system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServingRequest {
    /// Arrival, counted from the first request of the trace.
    pub at: SimTime,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Tokens in a block; the last one may have fewer.
    pub block_tokens: u32,
    /// Position of its first block in [`ServingTrace::references`], and their number.
    pub first: usize,
    pub blocks: u32,
}

impl ServingRequest {
    /// Tokens of the request's block `index`. Tokens beyond the last block belong to none.
    pub fn tokens_of(&self, index: usize) -> u64 {
        let before = index as u64 * u64::from(self.block_tokens);
        self.input_tokens.saturating_sub(before).min(u64::from(self.block_tokens))
    }
}

/// A trace of a serving system in memory. Blocks are numbered densely by first appearance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServingTrace {
    /// The format's name; empty for a generated trace.
    pub format: &'static str,
    pub compression: Option<&'static str>,
    /// In order of arrival.
    pub requests: Vec<ServingRequest>,
    /// Blocks of all requests, one request after the other.
    pub references: Vec<u32>,
    /// The block before each block in the request where it first appears; [`NO_BLOCK`] at the start
    /// of a prompt.
    pub parents: Vec<u32>,
    /// Bytes of a block as the trace states them.
    pub block_bytes: Option<u64>,
    /// Whether output lengths are recorded.
    pub has_output: bool,
    /// Whether requests are prompts from their start; a log of the blocks stored in GPU memory
    /// names only those that were computed.
    pub whole_prompts: bool,
    /// For such a log, the times between storing a block in GPU memory and evicting it.
    pub residence_ns: Vec<u64>,
    pub warnings: Vec<Warning>,
}

/// No block, among block numbers.
pub const NO_BLOCK: u32 = u32::MAX;

impl ServingTrace {
    /// The blocks of a request, from the start of its prompt.
    pub fn blocks(&self, request: &ServingRequest) -> &[u32] {
        &self.references[request.first..request.first + request.blocks as usize]
    }

    /// Number of distinct blocks.
    pub fn distinct(&self) -> usize {
        self.parents.len()
    }

    /// Adds a request with `blocks`, of which new ones have the next numbers.
    pub fn push(&mut self, request: ServingRequest, blocks: &[u32]) {
        let mut parent = NO_BLOCK;
        for &block in blocks {
            if block as usize == self.parents.len() {
                self.parents.push(parent);
            }
            parent = block;
        }
        let (first, count) = (self.references.len(), blocks.len() as u32);
        self.references.extend_from_slice(blocks);
        self.requests.push(ServingRequest { first, blocks: count, ..request });
    }

    /// First to last arrival.
    pub fn span_ns(&self) -> u64 {
        self.requests.last().map_or(0, |last| last.at.since(SimTime::ZERO).as_ns())
    }

    /// The requests from position `from` up to `to`, with times from the first of them and blocks
    /// numbered anew.
    #[must_use]
    pub fn slice(&self, from: usize, to: usize) -> Self {
        let mut part = Self {
            format: self.format,
            block_bytes: self.block_bytes,
            has_output: self.has_output,
            whole_prompts: self.whole_prompts,
            ..Self::default()
        };
        let mut numbers = vec![NO_BLOCK; self.distinct()];
        let (mut next, mut blocks, mut new) = (0, Vec::new(), Vec::new());
        let start = self.requests.get(from).map_or(SimTime::ZERO, |first| first.at);
        for request in &self.requests[from..to] {
            blocks.clear();
            new.clear();
            for &block in self.blocks(request) {
                let number = &mut numbers[block as usize];
                if *number == NO_BLOCK {
                    *number = next;
                    next += 1;
                    new.push(block);
                }
                blocks.push(*number);
            }
            let at = SimTime::ZERO + request.at.since(start);
            part.push(ServingRequest { at, ..*request }, &blocks);
            // A log of events states the parents of blocks outside the group.
            for &block in &new {
                let parent = numbers.get(self.parents[block as usize] as usize);
                let number = numbers[block as usize] as usize;
                part.parents[number] = parent.copied().unwrap_or(NO_BLOCK);
            }
        }
        part
    }
}

/// A registered format of serving traces.
#[derive(Clone, Copy)]
pub struct ServingEntry {
    pub description: Description,
    /// Examines the first bytes of a file.
    sniff: fn(&FileHead<'_>) -> bool,
    parser: fn(&Settings) -> Box<dyn ServingParser>,
    /// A few lines in this format.
    pub sample: &'static [u8],
}

hybridsim_config::entry!(ServingEntry, "serving-format");

/// The built-in formats.
pub const ENTRIES: &[ServingEntry] =
    &[azure::ENTRY, lmcache::ENTRY, mooncake::ENTRY, mooncake::BAILIAN, vllm::ENTRY];

/// The format of a file that begins with `head`.
pub(super) fn sniff(head: &FileHead<'_>) -> Option<&'static ServingEntry> {
    ENTRIES.iter().find(|entry| (entry.sniff)(head))
}

/// The error of a serving trace given as a block trace.
pub(super) fn no_block_trace(format: &str) -> String {
    format!(
        "is a trace of a serving system for language models ({format}), which has no addresses: \
         `hybridsim kv` simulates a cache of its key-value blocks, `hybridsim trace info` \
         describes it"
    )
}

/// An entry of a serving trace, as a format parsed it.
#[derive(Clone, Debug, PartialEq)]
enum ServingEvent {
    Request(RawServing),
    /// Blocks evicted from GPU memory.
    Removed {
        time_ns: u64,
        blocks: Vec<names::BlockName>,
    },
    /// Left out with this warning.
    Skipped(&'static str),
}

/// A request as a format parsed it.
#[derive(Clone, Debug, Default, PartialEq)]
struct RawServing {
    /// Time of the trace's own clock.
    time_ns: u64,
    input_tokens: u64,
    output_tokens: u64,
    blocks: Vec<names::BlockName>,
    /// The block before the first.
    parent: Option<names::BlockName>,
    /// Tokens in a block, where the line states them.
    block_tokens: Option<u32>,
    /// Bytes of a block, where the line states them.
    block_bytes: Option<u64>,
}

/// Constants of a format.
#[derive(Clone, Copy, Debug)]
struct FormatFacts {
    /// Tokens in a block, where the format or the user states them.
    block_tokens: Option<u32>,
    has_output: bool,
    has_blocks: bool,
    whole_prompts: bool,
}

/// Parses one line at a time.
trait ServingParser {
    fn facts(&self) -> FormatFacts;
    /// Appends the events of `line`, which is not empty. The error names the field.
    fn parse(&mut self, line: &[u8], events: &mut Vec<ServingEvent>) -> Result<(), String>;
}

/// The first line that is not empty, perhaps cut at the end of the head.
fn first_line<'a>(head: &FileHead<'a>) -> &'a [u8] {
    let mut lines = head.bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}

/// Whether the first line is a JSON object with all of `keys`, as far as it is in the head.
fn has_keys(head: &FileHead<'_>, keys: &[&str]) -> bool {
    let line = first_line(head);
    let named = |key: &&str| memchr::memmem::find(line, format!("\"{key}\"").as_bytes()).is_some();
    line.starts_with(b"{") && keys.iter().all(named)
}
