//! The parameters of kind `log-structured`, and how one is built from them.

use super::map::{BlockMap, Shape};
use super::segments::Segment;
use super::{LogStructured, Logs};
use hybridsim_config::build::{BuildInput, ChildView, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, EntryChoice, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Component, SECTOR_BYTES, SimDuration, ZoneLayout};
use hybridsim_flash::gc::{GcEntry, GcInput};

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "log-structured",
        summary: "A log over any device, zoned or not: host-side map, segments and cleaning",
        origin: "Rosenblum and Ousterhout, TOCS 1992; Lee et al. (F2FS), FAST 2015; Bjørling et \
                 al., FAST 2017 (pblk) and ATC 2021 (ZenFS)",
        params: Parameters::PARAMS,
    },
    build,
)
.with_memory(|settings, bytes_of| {
    let Parameters { device, block_size, over_provisioning, .. } =
        Parameters::from_settings(settings);
    let blocks = u32::try_from(bytes_of(&device) / block_size.max(1)).unwrap_or(u32::MAX);
    BlockMap::bytes(blocks, (f64::from(blocks) / (1.0 + over_provisioning)) as u32)
});

hybridsim_config::choices! {
    /// Choice of the log that a write is appended to.
    enum Separate {
        None = "none",
        Handle = "handle",
        Temperature = "temperature",
        Lifetime = "lifetime",
    }
}

hybridsim_config::choices! {
    /// The log that valid blocks are moved to.
    enum Cleaned { Own = "own", Shared = "shared" }
}

/// Bytes of a segment on a device without zones, as of F2FS.
const SEGMENT_BYTES: u64 = 2 << 20;
/// Bytes in a summary for each block: its logical address.
const SUMMARY_ENTRY_BYTES: u64 = 8;
const SEGMENTS: Kind = Kind::Count { min: 1, max: 1 << 20 };

hybridsim_config::params! {
    /// Parameters of kind `log-structured`.
    pub struct Parameters {
        pub device: String = Kind::Component, required, "The device that holds the log.";
        block_size: u64 = Kind::Bytes, default "\"4KiB\"",
            "Unit of the map. A write of part of a block reads the rest of it.";
        segment_size: Option<u64> = Kind::Bytes, optional,
            "Bytes of a segment on a device without zones; 2 MiB when absent. On a zoned device \
             the segments are its zones.";
        over_provisioning: f64 = Kind::Number { min: 0.0, max: 16.0 }, default "0.1",
            "Over-provisioning as (physical - exported) / exported capacity, summaries not \
             included; 0.1 is 10 % (assumed).";
        separate: Separate = Kind::Choice(Separate::NAMES), default "none",
            "Logs of host writes. none: one log; handle: one for each placement handle below \
             `handles`, and the first for all others; temperature: hot for file-system metadata, \
             cold for background writes, warm for all others, as F2FS has them; lifetime: after \
             ZenFS, handles are lifetimes, 1 the shortest, and data go to the open segment that \
             was opened for the next longer one, or to a new one, or, with `handles` open, to one \
             of the same, or of the longest; handle 0, no lifetime, to its own.";
        handles: u32 = Kind::Count { min: 1, max: 128 }, default "2"
            needs &[Needs::Is("separate", &["handle", "lifetime"])],
            "Logs of `separate = \"handle\"` or `\"lifetime\"`.";
        cleaned: Cleaned = Kind::Choice(Cleaned::NAMES), default "own",
            "Where cleaning moves valid blocks. own: to a log of their own; shared: to the last of \
             the logs of host writes, the cold one of `separate = \"temperature\"`.";
        gc: EntryChoice = Kind::Entry("gc-policy"), default "\"greedy\"",
            "Choice of the segment to clean: a victim policy, to which a segment is a block of \
             flash, and a block of the log a page.";
        free_segments: u32 = SEGMENTS, default "2",
            "Cleaning begins when so many segments are free, and writes wait for it when a single \
             one is (assumed).";
        cleaning_depth: u32 = Kind::Count { min: 1, max: 1024 }, default "8",
            "Requests outstanding while a segment is cleaned, each of up to 32 blocks (assumed).";
        idle_after: Option<SimDuration> = Kind::Duration, optional,
            "Clean also after so much time without a request, until the next one arrives.";
        idle_free_segments: u32 = SEGMENTS, default "8" needs &[Needs::given("idle_after")],
            "Idle cleaning ends when so many segments are free (assumed).";
    }
}

impl Parameters {
    const fn logs(&self) -> Logs {
        match self.separate {
            Separate::None => Logs::One,
            Separate::Handle => Logs::ByHandle(self.handles),
            Separate::Temperature => Logs::ByTemperature,
            Separate::Lifetime => Logs::ByLifetime(self.handles),
        }
    }

    /// The number of logs, that of cleaning included.
    const fn heads(&self) -> u32 {
        self.logs().count() + (matches!(self.cleaned, Cleaned::Own)) as u32
    }

    fn shape(&self, child: &ChildView, problems: &mut Vec<Problem>) -> Option<Shape> {
        let mut wrong = |key, message: String| {
            problems.push(Problem::new(key, message));
            None
        };
        let block_sectors = self.block_size / SECTOR_BYTES;
        if block_sectors == 0 || !self.block_size.is_multiple_of(SECTOR_BYTES) {
            return wrong("block_size", "must be a multiple of 512 bytes".to_owned());
        }
        let (size, stride, segments) = match (child.zones, self.segment_size) {
            (Some(_), Some(_)) => {
                let message = "has no effect on a zoned device, whose zones are the segments";
                return wrong("segment_size", message.to_owned());
            }
            (Some(ZoneLayout { zones, size, capacity, page, .. }), None) => {
                if !block_sectors.is_multiple_of(page) || !capacity.is_multiple_of(block_sectors) {
                    let message = format!(
                        "{block_sectors} sectors; must be whole pages of `{}`, of {page} sectors, \
                         and divide the {capacity} sectors of its zones",
                        child.name
                    );
                    return wrong("block_size", message);
                }
                (capacity, size, zones)
            }
            (None, size) => {
                let size = size.unwrap_or(SEGMENT_BYTES) / SECTOR_BYTES;
                (size, size, child.capacity.checked_div(size).unwrap_or(0))
            }
        };
        let blocks = size / block_sectors;
        if blocks < 2 {
            let key = if child.zones.is_some() { "block_size" } else { "segment_size" };
            return wrong(key, "a segment needs at least two blocks".to_owned());
        }
        if child.zones.is_none() && !size.is_multiple_of(block_sectors) {
            return wrong("segment_size", "must be a multiple of block_size".to_owned());
        }
        if segments.saturating_mul(blocks) >= u64::from(u32::MAX) {
            let message = format!("{} blocks: at most 2^32 - 2 are mapped", segments * blocks);
            return wrong("block_size", message);
        }
        if u32::try_from(size.max(stride)).is_err() {
            return wrong("segment_size", "must be below 2 TiB".to_owned());
        }
        let summary = (blocks * SUMMARY_ENTRY_BYTES).div_ceil(self.block_size);
        Some(Shape {
            block_sectors: block_sectors as u32,
            blocks: blocks as u32,
            data_blocks: (blocks - summary.min(blocks - 1)) as u32,
            segments: segments as u32,
            start: child.zones.map_or(0, |zones| zones.first),
            stride,
            zoned: child.zones.is_some(),
        })
    }

    /// The number of logical blocks.
    fn logical_blocks(&self, shape: &Shape, problems: &mut Vec<Problem>) -> u32 {
        let all = f64::from(shape.segments) * f64::from(shape.data_blocks);
        let logical = (all / (1.0 + self.over_provisioning)) as u32;
        let kept = shape.segments - logical.div_ceil(shape.data_blocks);
        if logical == 0 {
            let message = "leaves no block; lower it, or use a device with more segments";
            problems.push(Problem::new("over_provisioning", message));
            return 0;
        }
        let mut check = |key: &'static str, free: u32| {
            // One more than the open segments and those to be free, so that one has free blocks.
            let wanted = self.heads().saturating_add(free).saturating_add(1);
            if kept < wanted {
                let message = format!(
                    "{kept} of {} segments are spare; {free} free segments and {} logs need \
                     {wanted}: raise over_provisioning, or use a device with more segments",
                    shape.segments,
                    self.heads()
                );
                problems.push(Problem::new(key, message));
            }
        };
        check("free_segments", self.free_segments);
        if self.idle_after.is_some() {
            check("idle_free_segments", self.idle_free_segments);
        }
        logical
    }

    fn check_limits(&self, child: &ChildView, problems: &mut Vec<Problem>) {
        let limits = child.zones.into_iter().flat_map(|it| [it.open_max, it.active_max]);
        if let Some(most) = limits.flatten().min()
            && most < self.heads()
        {
            let message = format!(
                "{} logs, and `{}` has at most {most} zones open or active",
                self.heads(),
                child.name
            );
            problems.push(Problem::new("separate", message));
        }
    }
}

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    let [child] = input.children else {
        return Err(vec![Problem::new("device", "takes one device")]);
    };
    let mut problems = Vec::new();
    params.check_limits(child, &mut problems);
    let shape = params.shape(child, &mut problems);
    let blocks = shape.map(|it| params.logical_blocks(&it, &mut problems));
    let (Some(shape), Some(blocks), true) = (shape, blocks, problems.is_empty()) else {
        return Err(problems);
    };
    let (entry, settings) = input.registry.chosen::<GcEntry>(&params.gc);
    let policy = (entry.build)(&GcInput {
        settings,
        blocks: shape.segments,
        pages_per_block: shape.data_blocks,
        pools: 1,
        seed: input.seed,
        path: input.path,
    })?;
    Ok(Box::new(LogStructured::new(shape, blocks, params.behaviour(child), policy)))
}

/// The settings of the log.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    pub logs: Logs,
    /// Number of logs, and the one that cleaning appends to.
    pub heads: usize,
    pub cleaning_head: usize,
    pub free_segments: u32,
    pub cleaning_depth: u32,
    pub idle_after: Option<SimDuration>,
    pub idle_free_segments: u32,
    /// The device may lose writes that it has acknowledged.
    pub child_loses_writes: bool,
}

impl Parameters {
    fn behaviour(&self, child: &ChildView) -> Behaviour {
        let heads = self.heads() as usize;
        Behaviour {
            logs: self.logs(),
            heads,
            cleaning_head: heads - 1,
            free_segments: self.free_segments,
            cleaning_depth: self.cleaning_depth,
            idle_after: self.idle_after,
            idle_free_segments: self.idle_free_segments,
            child_loses_writes: child.loses_writes,
        }
    }
}

const _: () = assert!(size_of::<Segment>() <= 64, "a segment takes a cache line");
