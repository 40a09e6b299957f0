//! The binary files of blktrace, one per CPU: `x.blktrace.0`, `x.blktrace.1`, ...
//!
//! Given any one of them, all files with the same prefix in its folder are merged by time.

use super::blkparse::{NO_DATA, device_label};
use super::bytes::TraceFile;
use super::normalise::{NormalisedReader, RawRequest, RequestSource, WarningLog};
use super::records::CUT;
use super::{Confidence, FormatEntry};
use crate::block_events::{ArrivalEvent, BlockEvent, BlockEvents, Parameters};
use crate::record::{SourceLocation, TraceResult};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Flags, Op, SECTOR_BYTES};
use std::path::{Path, PathBuf};

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "blktrace",
        summary: "blktrace binary; given one x.blktrace.N, the files of all CPUs are merged.",
        origin: "Linux kernel, include/uapi/linux/blktrace_api.h, version 7",
        params: Parameters::PARAMS,
    },
    sniff: |head| match head.bytes.first_chunk().and_then(ByteOrder::of) {
        Some(_) => Confidence::Certain,
        None => Confidence::No,
    },
    open: |input| {
        let event = Parameters::from_settings(&input.settings).event;
        let source = BlkTrace::new(input.file, event)?;
        Ok(Box::new(NormalisedReader::new(source, input.reorder_records, input.warnings)))
    },
    same_as: &[],
    sample: b"\x07tae\x01\0\0\0\0\x10\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\0\x10\0\0\x07\0\x41\0\
        \x09\0\0\0\x10\0\x80\0\0\0\0\0\0\0\0\0\
        \x07tae\x02\0\0\0\0\x20\0\0\0\0\0\0\x80\0\0\0\0\0\0\0\0\x02\0\0\x07\0\x4a\0\
        \x09\0\0\0\x10\0\x80\0\0\0\0\0\0\0\x04\0abcd\
        \x07tae\x03\0\0\0\0\x30\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\0\x10\0\0\x08\0\x81\0\
        \x09\0\0\0\x10\0\x80\0\0\0\0\0\0\0\0\0",
};

const HEADER_BYTES: usize = 48;
const MAGIC: u32 = 0x6561_7407;

/// The byte order of the machine that was traced.
#[derive(Clone, Copy)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn of(magic: &[u8; 4]) -> Option<Self> {
        match MAGIC {
            _ if u32::from_le_bytes(*magic) == MAGIC => Some(Self::Little),
            _ if u32::from_be_bytes(*magic) == MAGIC => Some(Self::Big),
            _ => None,
        }
    }

    fn number(self, bytes: &[u8]) -> u64 {
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        match self {
            Self::Little => bytes.iter().rev().fold(0, add),
            Self::Big => bytes.iter().fold(0, add),
        }
    }
}

/// The fields of `struct blk_io_trace` in use.
#[derive(Clone, Copy)]
struct IoEvent {
    time_ns: u64,
    sector: u64,
    bytes: u64,
    act: u16,
    category: u16,
    device: u32,
    more_bytes: usize,
}

const QUEUE: u16 = 1;
const INSERT: u16 = 12;
const ISSUE: u16 = 7;
const COMPLETE: u16 = 8;

const WRITE: u16 = 1 << 1;
const FLUSH: u16 = 1 << 2;
const SYNC: u16 = 1 << 3;
const COMMAND: u16 = 1 << 9;
const NOTIFY: u16 = 1 << 10;
const AHEAD: u16 = 1 << 11;
const META: u16 = 1 << 12;
const DISCARD: u16 = 1 << 13;
const FUA: u16 = 1 << 15;

impl IoEvent {
    fn read(header: &[u8]) -> Option<Self> {
        let order = ByteOrder::of(header.first_chunk()?)?;
        let number = |at: usize, bytes: usize| order.number(&header[at..at + bytes]);
        let action = number(28, 4);
        Some(Self {
            time_ns: number(8, 8),
            sector: number(16, 8),
            bytes: number(24, 4),
            act: action as u16,
            category: (action >> 16) as u16,
            device: number(36, 4) as u32,
            more_bytes: number(46, 2) as usize,
        })
    }

    const fn has(&self, category: u16) -> bool {
        self.category & category != 0
    }

    /// The step of a request that it logs.
    const fn step(&self) -> Option<BlockEvent> {
        match self.act {
            _ if self.has(NOTIFY) => None,
            QUEUE => Some(BlockEvent::Queued),
            INSERT => Some(BlockEvent::Inserted),
            ISSUE => Some(BlockEvent::Issued),
            COMPLETE => Some(BlockEvent::Completed),
            _ => None,
        }
    }

    /// The request; `None` for a command without block transfer.
    fn request(&self) -> Option<RawRequest> {
        let volume = u64::from(self.device >> 20) << 32 | u64::from(self.device & 0xf_ffff);
        let op = match () {
            () if self.has(COMMAND) => return None,
            () if self.has(DISCARD) => Op::Trim,
            () if self.has(FLUSH) && self.bytes == 0 => Op::Flush,
            () if self.has(WRITE) => Op::Write,
            () if self.bytes == 0 => return None,
            () => Op::Read,
        };
        let mut flags = Flags::NONE;
        for (category, flag) in [
            (FLUSH | FUA, Flags::FUA),
            (SYNC, Flags::SYNC),
            (META, Flags::META),
            (AHEAD, Flags::AHEAD),
        ] {
            flags = flags.with(if self.has(category) { flag } else { Flags::NONE });
        }
        let sectors = self.bytes.div_ceil(SECTOR_BYTES);
        let raw =
            RawRequest::sectors(self.time_ns, volume, op, self.sector, sectors).with_flags(flags);
        Some(if self.act == COMPLETE { raw.as_completion() } else { raw })
    }
}

/// The file of one CPU.
struct Cpu {
    file: TraceFile,
    record: u64,
    /// The next arrival or completion.
    next: Option<IoEvent>,
}

impl Cpu {
    /// Reads to the next arrival or completion, counting events.
    fn advance(&mut self, events: &mut BlockEvents, warnings: &mut WarningLog) -> TraceResult<()> {
        self.next = None;
        loop {
            let location = SourceLocation::Record(self.record + 1);
            let header = self.file.peek(HEADER_BYTES, location)?;
            let held = header.len();
            if held < HEADER_BYTES {
                if held > 0 {
                    warnings.add(location, CUT);
                    self.file.consume(held);
                }
                return Ok(());
            }
            let Some(event) = IoEvent::read(header) else {
                let message =
                    "not a blktrace record (version 7): the file is damaged or of another version";
                return Err(self.file.error(location, message));
            };
            self.file.consume(HEADER_BYTES);
            let more = self.file.peek(event.more_bytes, location)?.len();
            self.file.consume(more);
            self.record += 1;
            let Some(step) = event.step() else { continue };
            if !event.has(COMMAND) {
                events.add(step);
            }
            if step == events.arrival || step == BlockEvent::Completed {
                self.next = Some(event);
                return Ok(());
            }
        }
    }
}

/// The merged files of all CPUs.
struct BlkTrace {
    cpus: Vec<Cpu>,
    events: BlockEvents,
    /// The CPU of the last raw.
    last: usize,
    /// The CPUs to advance before the next request: at first all, then the last.
    stale: std::ops::Range<usize>,
}

/// The files of the other CPUs in the folder of `path`, in the order of their numbers.
fn siblings(path: &Path) -> Vec<PathBuf> {
    fn split(name: &str) -> Option<(&str, u32)> {
        let (prefix, rest) = name.rsplit_once(".blktrace.")?;
        let cpu = rest.split_once('.').map_or(rest, |(cpu, compression)| {
            if ["gz", "zst", "xz", "bz2"].contains(&compression) { cpu } else { "" }
        });
        Some((prefix, cpu.parse().ok()?))
    }
    let name = path.file_name().and_then(|name| name.to_str());
    let Some((prefix, own)) = name.and_then(split) else { return Vec::new() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Ok(files) = std::fs::read_dir(folder.unwrap_or(Path::new("."))) else { return Vec::new() };
    let mut found: Vec<_> = files
        .filter_map(|file| {
            let path = file.ok()?.path();
            let (other, cpu) = split(path.file_name()?.to_str()?)?;
            (other == prefix && cpu != own).then_some((cpu, path))
        })
        .collect();
    found.sort();
    // The compressed and uncompressed file of a CPU are the same trace.
    found.dedup_by_key(|(cpu, _)| *cpu);
    found.into_iter().map(|(_, path)| path).collect()
}

impl BlkTrace {
    fn new(file: TraceFile, event: ArrivalEvent) -> TraceResult<Self> {
        let others = siblings(file.path());
        let mut cpus = vec![Cpu { file, record: 0, next: None }];
        for path in others {
            // The file of a CPU without events is empty.
            if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > 0) {
                cpus.push(Cpu { file: TraceFile::open(&path)?, record: 0, next: None });
            }
        }
        let mut found = Vec::new();
        for event in [BlockEvent::Queued, BlockEvent::Inserted, BlockEvent::Issued] {
            if has_event(&mut cpus, event)? {
                found.push(event);
            }
        }
        let events = BlockEvents::new(event, |event| found.contains(&event));
        let stale = 0..cpus.len();
        Ok(Self { cpus, events, last: 0, stale })
    }

    fn earliest(&self) -> Option<usize> {
        let times = self.cpus.iter().enumerate();
        let waiting = times.filter_map(|(at, cpu)| Some((cpu.next?.time_ns, at)));
        waiting.min().map(|(_, at)| at)
    }
}

/// Whether the first 64 KiB of the files have this event.
fn has_event(cpus: &mut [Cpu], event: BlockEvent) -> TraceResult<bool> {
    for cpu in cpus {
        let mut rest = cpu.file.head()?.bytes;
        while let Some(found) = rest.get(..HEADER_BYTES).and_then(IoEvent::read) {
            if found.step() == Some(event) {
                return Ok(true);
            }
            rest = rest.get(HEADER_BYTES + found.more_bytes..).unwrap_or(&[]);
        }
    }
    Ok(false)
}

impl RequestSource for BlkTrace {
    fn next_request(
        &mut self,
        request: &mut RawRequest,
        warnings: &mut WarningLog,
    ) -> TraceResult<bool> {
        loop {
            for cpu in self.stale.clone() {
                self.cpus[cpu].advance(&mut self.events, warnings)?;
            }
            let Some(cpu) = self.earliest() else { return Ok(false) };
            self.last = cpu;
            self.stale = cpu..cpu + 1;
            let event = self.cpus[cpu].next.expect("the earliest has an event");
            match event.request() {
                Some(raw) => {
                    *request = raw;
                    return Ok(true);
                }
                None if event.act == COMPLETE => {}
                None => warnings.add(self.location(), NO_DATA),
            }
        }
    }

    fn location(&self) -> SourceLocation {
        SourceLocation::Record(self.cpus[self.last].record)
    }

    fn file(&self) -> &TraceFile {
        &self.cpus[self.last].file
    }

    fn label(&self, volume: u64) -> String {
        device_label(volume)
    }

    fn block_events(&self) -> Option<BlockEvents> {
        Some(self.events)
    }

    fn progress(&self) -> Option<f64> {
        let sum: f64 = self.cpus.iter().filter_map(|cpu| cpu.file.progress()).sum();
        Some(sum / self.cpus.len() as f64)
    }
}
