//! Buckets: blocks are appended to files of equal size, and files with few remaining blocks are
//! compacted.
//!
//! A full bucket whose share of remaining blocks falls to the threshold T is compacted: the
//! remaining blocks are copied and the bucket is freed. Each frees a share of 1 - T and copies T,
//! so that 1 / (1 - T) blocks are written for each block of the cache.

use super::{Layout, LayoutCounts, block_request};
use crate::level::Held;
use hybridsim_engine::{Op, Request};

/// Buckets on a device.
#[derive(Clone, Copy, Debug)]
pub struct BucketsOptions {
    /// Sectors of a block.
    pub sectors: u32,
    /// Blocks in a bucket.
    pub bucket_blocks: u32,
    /// Buckets on the device.
    pub buckets: u32,
    /// Share of remaining blocks at which a full bucket is compacted.
    pub threshold: f64,
    /// Handles of writes; each has a bucket of its own to fill.
    pub handles: u8,
}

/// No bucket, and no place of a block.
const NONE: u32 = u32::MAX;

/// Blocks in buckets.
pub struct Buckets {
    options: BucketsOptions,
    /// By bucket: the blocks at its places, [`NONE`] after they were dropped.
    blocks: Vec<Vec<u32>>,
    live: Vec<u32>,
    free: Vec<u32>,
    /// By handle: the bucket being filled.
    open: Vec<u32>,
    /// By block: bucket times blocks of a bucket plus place.
    places: Vec<u64>,
    counts: LayoutCounts,
}

impl Buckets {
    /// Empty buckets for blocks numbered below `distinct`, of which at most `held` are held.
    ///
    /// # Errors
    /// A device that has no room for them.
    pub fn new(options: BucketsOptions, distinct: usize, held: u32) -> Result<Self, String> {
        let BucketsOptions { buckets, bucket_blocks, handles, .. } = options;
        // One bucket per handle is being filled, and compaction fills another before it frees one.
        let spare = u64::from(handles) + 2;
        let places = u64::from(buckets).saturating_sub(spare) * u64::from(bucket_blocks);
        if bucket_blocks == 0 || places < u64::from(held) {
            return Err(format!(
                "{held} blocks do not fit in {buckets} buckets of {bucket_blocks} blocks, of which \
                 {spare} are being filled or compacted: give the cache less of the drive"
            ));
        }
        Ok(Self {
            options,
            blocks: vec![Vec::new(); buckets as usize],
            live: vec![0; buckets as usize],
            free: (0..buckets).rev().collect(),
            open: vec![NONE; handles.max(1).into()],
            places: vec![u64::MAX; distinct],
            counts: LayoutCounts::default(),
        })
    }

    /// Share of remaining blocks in full buckets, on average.
    pub fn utilisation(&self) -> Option<f64> {
        let full = |bucket: &usize| self.is_full(*bucket as u32);
        let live: Vec<u32> =
            (0..self.blocks.len()).filter(full).map(|bucket| self.live[bucket]).collect();
        let places = live.len() as f64 * f64::from(self.options.bucket_blocks);
        (!live.is_empty()).then(|| live.iter().map(|live| f64::from(*live)).sum::<f64>() / places)
    }

    fn is_full(&self, bucket: u32) -> bool {
        self.blocks[bucket as usize].len() as u32 == self.options.bucket_blocks
    }

    fn append(&mut self, block: u32, handle: u8, out: &mut Vec<Request>) -> Result<(), String> {
        let handle = usize::from(handle).min(self.open.len() - 1);
        if self.open[handle] == NONE {
            self.open[handle] = self.free.pop().ok_or("no bucket is free: the device is full")?;
        }
        let bucket = self.open[handle];
        let place = self.blocks[bucket as usize].len() as u32;
        self.blocks[bucket as usize].push(block);
        self.live[bucket as usize] += 1;
        let at = u64::from(bucket) * u64::from(self.options.bucket_blocks) + u64::from(place);
        self.places[block as usize] = at;
        out.push(block_request(Op::Write, at, self.options.sectors, handle as u8));
        if self.is_full(bucket) {
            self.open[handle] = NONE;
        }
        Ok(())
    }

    fn compact(&mut self, bucket: u32, out: &mut Vec<Request>) -> Result<(), String> {
        let blocks = std::mem::take(&mut self.blocks[bucket as usize]);
        self.live[bucket as usize] = 0;
        let sectors = self.options.sectors;
        // Blocks that survived are likely to survive longer.
        let handle = self.open.len() as u8 - 1;
        for block in blocks.into_iter().filter(|block| *block != NONE) {
            out.push(block_request(Op::Read, self.places[block as usize], sectors, 0));
            self.append(block, handle, out)?;
            self.counts.copied += 1;
        }
        self.release(bucket, out);
        Ok(())
    }

    /// A bucket without remaining blocks is deleted, and its range trimmed.
    fn release(&mut self, bucket: u32, out: &mut Vec<Request>) {
        self.blocks[bucket as usize].clear();
        let places = u64::from(self.options.bucket_blocks);
        for place in 0..places {
            let at = u64::from(bucket) * places + place;
            out.push(block_request(Op::Trim, at, self.options.sectors, 0));
        }
        self.free.push(bucket);
    }

    /// Frees buckets, emptiest first, until one is free besides those compaction needs.
    fn make_room(&mut self, out: &mut Vec<Request>) -> Result<(), String> {
        while self.free.len() < 2 {
            let full = (0..self.blocks.len() as u32).filter(|bucket| self.is_full(*bucket));
            let emptiest = full.min_by_key(|bucket| self.live[*bucket as usize]);
            let places = self.options.bucket_blocks;
            match emptiest.filter(|bucket| self.live[*bucket as usize] < places) {
                Some(bucket) => {
                    self.counts.forced += 1;
                    self.compact(bucket, out)?;
                }
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

impl Layout for Buckets {
    fn write(&mut self, held: Held, handle: u8, out: &mut Vec<Request>) -> Result<(), String> {
        self.append(held.block, handle, out)?;
        self.make_room(out)
    }

    fn load(&self, held: Held, out: &mut Vec<Request>) {
        let at = self.places[held.block as usize];
        out.push(block_request(Op::Read, at, self.options.sectors, 0));
    }

    fn discard(&mut self, held: Held, out: &mut Vec<Request>) -> Result<(), String> {
        let places = u64::from(self.options.bucket_blocks);
        let at = std::mem::replace(&mut self.places[held.block as usize], u64::MAX);
        let (bucket, place) = ((at / places) as u32, (at % places) as usize);
        self.blocks[bucket as usize][place] = NONE;
        let live = &mut self.live[bucket as usize];
        *live -= 1;
        let (live, full) = (*live, self.is_full(bucket));
        if full && live == 0 {
            self.counts.emptied += 1;
            self.release(bucket, out);
        } else if full && f64::from(live) <= self.options.threshold * places as f64 {
            self.counts.compacted += 1;
            self.compact(bucket, out)?;
        }
        Ok(())
    }

    fn counts(&self) -> LayoutCounts {
        self.counts
    }
}
