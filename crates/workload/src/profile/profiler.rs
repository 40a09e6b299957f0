//! Computes the [`Profile`] of a trace.

use super::footprint::{BlockKey, Footprint, sample_hash};
use super::quantiles::Quantiles;
use super::reuse::{BLOCK_BYTES, Popularity, StackDistances};
use super::{Profile, SizeClass, UpdateClass, Volume};
use crate::record::{Record, RecordReader, TraceResult};
use crate::shape::volumes::{VolumeLayout, VolumeSelection};
use hybridsim_engine::{Op, Request, SECTOR_BYTES, SimTime};
use std::ops::Range;

/// Maximum chunks of 2 MiB of the footprint: exact up to 512 GiB of dense accesses, 150 MB of
/// memory.
const CHUNKS_MAX: usize = 1 << 18;
/// Maximum chunks for each class of write lengths.
const UPDATE_CHUNKS_MAX: usize = 1 << 15;
/// Maximum blocks of 4 KiB with access counts.
const POPULAR_BLOCKS_MAX: usize = 1 << 21;
/// Maximum blocks with stack distances.
const STACK_BLOCKS_MAX: usize = 1 << 15;
/// Maximum blocks of a request that count for reuse and hot spots: 256 MiB of it.
const BLOCKS_PER_REQUEST_MAX: u64 = 1 << 16;
const BLOCK_SECTORS: u64 = BLOCK_BYTES / SECTOR_BYTES;

struct Updates {
    writes: u64,
    sectors: u64,
    distinct: Footprint,
}

#[derive(Clone, Copy, Default)]
struct VolumeCount {
    requests: u64,
    reads: u64,
    sectors: u64,
    extent_sectors: u64,
    end: Option<u64>,
}

/// The blocks of `block_sectors` sectors that `request` accesses; of very long ones the first.
#[inline]
pub fn blocks(request: &Request, block_sectors: u64) -> impl Iterator<Item = BlockKey> {
    let volume = request.volume;
    block_numbers(request, block_sectors).map(move |number| (volume, number))
}

/// The numbers of [`blocks`] in their volume.
#[inline]
pub fn block_numbers(request: &Request, block_sectors: u64) -> Range<u64> {
    if request.sectors == 0 {
        return 0..0;
    }
    let shift = block_sectors.trailing_zeros();
    // A division takes longer than all the rest.
    let block_of = |sector: u64| match block_sectors == 1 << shift {
        true => sector >> shift,
        false => sector / block_sectors,
    };
    let first = block_of(request.lba.0);
    let last = block_of(request.lba.0.saturating_add(u64::from(request.sectors) - 1));
    first..last.min(first.saturating_add(BLOCKS_PER_REQUEST_MAX - 1)).saturating_add(1)
}

/// Accumulates records into a [`Profile`].
pub struct Profiler {
    profile: Profile,
    sectors: [u64; Op::COUNT],
    sequential: u64,
    /// Requests by class and operation.
    sizes: [[u64; Op::COUNT]; 33],
    footprint: Footprint,
    updates: [Option<Updates>; 33],
    popularity: Popularity,
    distances: StackDistances,
    gaps: Quantiles,
    responses: Quantiles,
    volumes: Vec<VolumeCount>,
    first: Option<SimTime>,
    before: Option<SimTime>,
}

/// The class of a length: the number of bits up to the next power of two.
const fn class(sectors: u32) -> usize {
    (32 - sectors.saturating_sub(1).leading_zeros()) as usize
}

impl Profiler {
    /// A profile of a trace with or without times.
    pub fn new(has_times: bool) -> Self {
        Self {
            profile: Profile { has_times, ..Profile::default() },
            sectors: [0; Op::COUNT],
            sequential: 0,
            sizes: [[0; Op::COUNT]; 33],
            footprint: Footprint::new(CHUNKS_MAX),
            updates: [const { None }; 33],
            popularity: Popularity::new(POPULAR_BLOCKS_MAX),
            distances: StackDistances::new(STACK_BLOCKS_MAX),
            gaps: Quantiles::default(),
            responses: Quantiles::default(),
            volumes: Vec::new(),
            first: None,
            before: None,
        }
    }

    /// Adds a record.
    pub fn take(&mut self, record: &Record) {
        let request = &record.request;
        if let Some(response) = record.response {
            self.responses.add(response.as_ns());
        }
        match request.op {
            Op::Flush => {
                self.profile.flushes += 1;
                return;
            }
            Op::Zone(_) => {
                self.profile.zone_commands += 1;
                return;
            }
            Op::Read | Op::Write | Op::Trim => {}
        }
        if let Some(before) = self.before.replace(record.at) {
            self.gaps.add(record.at.since(before).as_ns());
        }
        self.first.get_or_insert(record.at);
        self.sectors[request.op.index()] += u64::from(request.sectors);
        self.sizes[class(request.sectors)][request.op.index()] += 1;
        self.add_volume(request);
        self.footprint.add(request);
        if request.op == Op::Write {
            self.add_write(request);
        }
        if request.op != Op::Trim {
            self.add_blocks(request);
        }
    }

    fn add_volume(&mut self, request: &Request) {
        let number = usize::from(request.volume);
        if number >= self.volumes.len() {
            self.volumes.resize(number + 1, VolumeCount::default());
        }
        let volume = &mut self.volumes[number];
        volume.requests += 1;
        volume.reads += u64::from(request.op == Op::Read);
        volume.sectors += u64::from(request.sectors);
        volume.extent_sectors = volume.extent_sectors.max(request.end().0);
        self.sequential += u64::from(volume.end == Some(request.lba.0));
        volume.end = Some(request.end().0);
    }

    fn add_write(&mut self, request: &Request) {
        let updates = self.updates[class(request.sectors)].get_or_insert_with(|| Updates {
            writes: 0,
            sectors: 0,
            distinct: Footprint::new(UPDATE_CHUNKS_MAX),
        });
        updates.writes += 1;
        updates.sectors += u64::from(request.sectors);
        updates.distinct.add(request);
    }

    fn add_blocks(&mut self, request: &Request) {
        for block in blocks(request, BLOCK_SECTORS) {
            let hash = sample_hash(block);
            self.popularity.access(block, hash);
            self.distances.access(block, hash);
        }
    }

    /// The profile. `names` are the reader's names of volumes.
    pub fn finish(self, names: &[String]) -> Profile {
        let mut profile = self.profile;
        let total = |op: Op| self.sizes.iter().map(|class| class[op.index()]).sum::<u64>();
        let bytes = |op: Op| self.sectors[op.index()].saturating_mul(SECTOR_BYTES);
        (profile.reads, profile.writes, profile.trims) =
            (total(Op::Read), total(Op::Write), total(Op::Trim));
        profile.requests = profile.reads + profile.writes + profile.trims;
        let requests = profile.requests.max(1) as f64;
        profile.read_fraction = profile.reads as f64 / requests;
        (profile.read_bytes, profile.written_bytes) = (bytes(Op::Read), bytes(Op::Write));
        profile.bytes = Op::ALL.iter().fold(0, |sum: u64, op| sum.saturating_add(bytes(*op)));
        profile.request_bytes_mean = profile.bytes as f64 / requests;
        let classes = (0u32..).zip(&self.sizes).filter(|(_, class)| class.iter().any(|&n| n > 0));
        profile.sizes.extend(classes.map(|(index, class)| SizeClass {
            up_to_bytes: SECTOR_BYTES << index,
            reads: class[Op::Read.index()],
            writes: class[Op::Write.index()],
            trims: class[Op::Trim.index()],
        }));
        (profile.footprint_bytes, profile.footprint_sampled_fraction) = self.footprint.bytes();
        profile.sequential_fraction = self.sequential as f64 / requests;
        if let (true, Some(first), Some(last)) = (profile.has_times, self.first, self.before) {
            profile.span_ns = last.since(first).as_ns();
            profile.interarrival_ns = self.gaps.finish();
        }
        profile.response_ns = self.responses.finish();
        let updates = (0u32..).zip(&self.updates);
        profile.updates.extend(updates.filter_map(|(index, class)| {
            let class = class.as_ref()?;
            Some(update_class(SECTOR_BYTES << index, class))
        }));
        profile.hot_spots = self.popularity.finish();
        profile.reuse = self.distances.finish();
        let ends: Vec<u64> = self.volumes.iter().map(|volume| volume.extent_sectors).collect();
        let end = VolumeLayout::Starts(Vec::new()).set_volume_ends(&ends, &VolumeSelection::all());
        profile.device_bytes = end.saturating_mul(SECTOR_BYTES);
        profile.volumes = volumes(&self.volumes, names);
        profile
    }
}

fn update_class(up_to_bytes: u64, class: &Updates) -> UpdateClass {
    let (distinct_bytes, sampled_fraction) = class.distinct.bytes();
    let written_bytes = class.sectors.saturating_mul(SECTOR_BYTES);
    UpdateClass {
        up_to_bytes,
        writes: class.writes,
        written_bytes,
        distinct_bytes,
        update_ratio: written_bytes as f64 / distinct_bytes.max(1) as f64,
        sampled_fraction,
    }
}

fn volumes(counts: &[VolumeCount], names: &[String]) -> Vec<Volume> {
    let used = counts.iter().enumerate().filter(|(_, volume)| volume.requests > 0);
    used.map(|(number, volume)| Volume {
        number: number as u16,
        name: names.get(number).cloned().unwrap_or_default(),
        requests: volume.requests,
        reads: volume.reads,
        bytes: volume.sectors.saturating_mul(SECTOR_BYTES),
        extent_bytes: volume.extent_sectors.saturating_mul(SECTOR_BYTES),
    })
    .collect()
}

/// Reads a trace to its end and profiles it. Calls `on_progress` about every 65,536 records.
///
/// # Errors
/// The reader's.
pub fn profile(
    reader: &mut dyn RecordReader,
    on_progress: &mut dyn FnMut(Option<f64>),
) -> TraceResult<Profile> {
    let mut profiler = Profiler::new(reader.has_times());
    let (mut batch, mut unreported) = (Vec::new(), 0);
    loop {
        reader.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        batch.iter().for_each(|record| profiler.take(record));
        unreported += batch.len();
        if unreported >= 1 << 16 {
            unreported = 0;
            on_progress(reader.progress());
        }
    }
    Ok(Profile { block_events: reader.block_events(), ..profiler.finish(reader.volumes()) })
}
