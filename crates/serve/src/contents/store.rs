//! Bytes by sector, sparse: in memory, or in a sparse file.

use rustc_hash::FxHashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of a sector.
pub const SECTOR: usize = hybridsim_engine::SECTOR_BYTES as usize;
/// Sectors of a chunk: one word of the allocation map.
const CHUNK_SECTORS: u64 = 64;
const CHUNK_BYTES: usize = CHUNK_SECTORS as usize * SECTOR;

type Chunk = Box<[u8; CHUNK_BYTES]>;

/// The bytes of every sector; zeros where nothing was written.
pub struct Store {
    /// Allocated sectors, one bit each, by chunk.
    allocated: FxHashMap<u64, u64>,
    medium: Medium,
}

enum Medium {
    Memory(FxHashMap<u64, Chunk>),
    File(File),
}

/// The parts of chunks that a range covers: chunk, first sector within it, sectors, and the offset
/// in the range in bytes.
fn parts(first: u64, sectors: u64) -> impl Iterator<Item = (u64, u64, u64, usize)> {
    let end = first + sectors;
    let mut at = first;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let (chunk, within) = (at / CHUNK_SECTORS, at % CHUNK_SECTORS);
            let length = (CHUNK_SECTORS - within).min(end - at);
            let offset = (at - first) as usize * SECTOR;
            at += length;
            (chunk, within, length, offset)
        })
    })
}

fn mask(within: u64, length: u64) -> u64 {
    (u64::MAX >> (CHUNK_SECTORS - length)) << within
}

#[cfg(target_os = "linux")]
fn punch(file: &File, at: u64, length: u64) -> io::Result<()> {
    use rustix::fs::FallocateFlags as Flags;
    Ok(rustix::fs::fallocate(file, Flags::PUNCH_HOLE | Flags::KEEP_SIZE, at, length)?)
}

#[cfg(not(target_os = "linux"))]
fn punch(file: &File, at: u64, length: u64) -> io::Result<()> {
    let zeros = vec![0; CHUNK_BYTES];
    let mut done = 0;
    while done < length {
        let count = (length - done).min(CHUNK_BYTES as u64);
        file.write_all_at(&zeros[..count as usize], at + done)?;
        done += count;
    }
    Ok(())
}

impl Store {
    /// In memory.
    pub fn memory() -> Self {
        Self { allocated: FxHashMap::default(), medium: Medium::Memory(FxHashMap::default()) }
    }

    /// In `file`, extended to `bytes`. Its holes are free.
    ///
    /// # Errors
    /// Fails when the file cannot be used.
    pub fn file(file: File, bytes: u64) -> io::Result<Self> {
        if file.metadata()?.len() < bytes {
            file.set_len(bytes)?;
        }
        let mut allocated: FxHashMap<u64, u64> = FxHashMap::default();
        let mut at = 0;
        while at < bytes {
            let Ok(data) = rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(at)) else { break };
            let hole = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(data))?;
            let (first, end) = (data / SECTOR as u64, hole.min(bytes).div_ceil(SECTOR as u64));
            for (chunk, within, length, _) in parts(first, end.saturating_sub(first)) {
                *allocated.entry(chunk).or_default() |= mask(within, length);
            }
            at = hole;
        }
        Ok(Self { allocated, medium: Medium::File(file) })
    }

    pub fn is_allocated(&self, sector: u64) -> bool {
        let bits = self.allocated.get(&(sector / CHUNK_SECTORS)).copied().unwrap_or(0);
        bits >> (sector % CHUNK_SECTORS) & 1 == 1
    }

    /// The run of allocated or of free sectors that begins at `sector`, within its chunk: its
    /// length, and whether it is allocated.
    pub fn run(&self, sector: u64) -> (u64, bool) {
        let within = sector % CHUNK_SECTORS;
        let chunk = self.allocated.get(&(sector / CHUNK_SECTORS));
        let bits = chunk.copied().unwrap_or(0) >> within;
        let allocated = bits & 1 == 1;
        let length = if allocated { bits.trailing_ones() } else { bits.trailing_zeros() };
        (u64::from(length).min(CHUNK_SECTORS - within), allocated)
    }

    /// Fills `bytes` from sector `first` on.
    ///
    /// # Errors
    /// Fails when the file cannot be read.
    pub fn read(&self, first: u64, bytes: &mut [u8]) -> io::Result<()> {
        match &self.medium {
            Medium::File(file) => file.read_exact_at(bytes, first * SECTOR as u64),
            Medium::Memory(chunks) => {
                let sectors = (bytes.len() / SECTOR) as u64;
                for (chunk, within, length, offset) in parts(first, sectors) {
                    let to = &mut bytes[offset..offset + length as usize * SECTOR];
                    match chunks.get(&chunk) {
                        Some(from) => {
                            let start = within as usize * SECTOR;
                            to.copy_from_slice(&from[start..start + to.len()]);
                        }
                        None => to.fill(0),
                    }
                }
                Ok(())
            }
        }
    }

    /// Stores `bytes` from sector `first` on.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub fn write(&mut self, first: u64, bytes: &[u8]) -> io::Result<()> {
        let sectors = (bytes.len() / SECTOR) as u64;
        for (chunk, within, length, offset) in parts(first, sectors) {
            *self.allocated.entry(chunk).or_default() |= mask(within, length);
            if let Medium::Memory(chunks) = &mut self.medium {
                let from = &bytes[offset..offset + length as usize * SECTOR];
                let to = chunks.entry(chunk).or_insert_with(|| Box::new([0; CHUNK_BYTES]));
                let start = within as usize * SECTOR;
                to[start..start + from.len()].copy_from_slice(from);
            }
        }
        match &self.medium {
            Medium::File(file) => file.write_all_at(bytes, first * SECTOR as u64),
            Medium::Memory(_) => Ok(()),
        }
    }

    /// Frees `sectors` sectors from `first` on: they read as zeros.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub fn free(&mut self, first: u64, sectors: u64) -> io::Result<()> {
        if let Medium::File(file) = &self.medium {
            let (at, length) = (first * SECTOR as u64, sectors * SECTOR as u64);
            punch(file, at, length)?;
        }
        for (chunk, within, length, _) in parts(first, sectors) {
            let Some(bits) = self.allocated.get_mut(&chunk) else { continue };
            *bits &= !mask(within, length);
            let is_free = *bits == 0;
            if is_free {
                self.allocated.remove(&chunk);
            }
            if let Medium::Memory(chunks) = &mut self.medium {
                if is_free {
                    chunks.remove(&chunk);
                } else if let Some(bytes) = chunks.get_mut(&chunk) {
                    let start = within as usize * SECTOR;
                    bytes[start..start + length as usize * SECTOR].fill(0);
                }
            }
        }
        Ok(())
    }

    /// Everything that is allocated, as chunk number, map and bytes, in ascending order; for saved
    /// states.
    ///
    /// # Errors
    /// Fails when the file cannot be read.
    pub fn save(&self) -> io::Result<Vec<u8>> {
        let mut chunks: Vec<(u64, u64)> =
            self.allocated.iter().map(|(chunk, bits)| (*chunk, *bits)).collect();
        chunks.sort_unstable();
        let mut out = Vec::new();
        let mut bytes = vec![0; CHUNK_BYTES];
        for (chunk, bits) in chunks {
            out.extend_from_slice(&chunk.to_le_bytes());
            out.extend_from_slice(&bits.to_le_bytes());
            for sector in (0..CHUNK_SECTORS).filter(|sector| bits >> sector & 1 == 1) {
                let bytes = &mut bytes[..SECTOR];
                self.read(chunk * CHUNK_SECTORS + sector, bytes)?;
                out.extend_from_slice(bytes);
            }
        }
        Ok(out)
    }

    /// Takes back what [`Store::save`] returned, into an empty store of `sectors` sectors; `None`
    /// when it is something else.
    pub fn restore(&mut self, mut saved: &[u8], sectors: u64) -> Option<()> {
        let mut take = |count: usize| {
            let (head, rest) = saved.split_at_checked(count)?;
            saved = rest;
            Some(head)
        };
        while let Some(chunk) = take(8) {
            let chunk = u64::from_le_bytes(chunk.try_into().ok()?);
            let bits = u64::from_le_bytes(take(8)?.try_into().ok()?);
            for within in (0..CHUNK_SECTORS).filter(|sector| bits >> sector & 1 == 1) {
                let sector = chunk.checked_mul(CHUNK_SECTORS)?.checked_add(within)?;
                if sector >= sectors {
                    return None;
                }
                self.write(sector, take(SECTOR)?).ok()?;
            }
        }
        saved.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exercise(mut store: Store) {
        let bytes: Vec<u8> = (0..200 * SECTOR).map(|at| (at / 7) as u8).collect();
        store.write(30, &bytes).expect("it is writable");
        let mut read = vec![9; 240 * SECTOR];
        store.read(10, &mut read).expect("it is readable");
        assert!(read[..20 * SECTOR].iter().all(|byte| *byte == 0));
        assert_eq!(read[20 * SECTOR..220 * SECTOR], bytes[..]);
        store.free(64, 64).expect("it is writable");
        store.free(130, 3).expect("it is writable");
        assert_eq!(
            [63, 64, 127, 128, 130, 133].map(|sector| store.is_allocated(sector)),
            [true, false, false, true, false, true]
        );
        assert_eq!(
            [0, 30, 63, 64, 100, 128, 130, 133, 230, 256].map(|sector| store.run(sector)),
            [
                (30, false),
                (34, true),
                (1, true),
                (64, false),
                (28, false),
                (2, true),
                (3, false),
                (59, true),
                (26, false),
                (64, false),
            ]
        );
        store.read(120, &mut read[..16 * SECTOR]).expect("it is readable");
        let kept = |sector: usize| &bytes[(sector - 30) * SECTOR..(sector - 29) * SECTOR];
        assert!(read[..8 * SECTOR].iter().all(|byte| *byte == 0));
        assert_eq!(&read[8 * SECTOR..9 * SECTOR], kept(128));
        assert!(read[10 * SECTOR..13 * SECTOR].iter().all(|byte| *byte == 0));
        let saved = store.save().expect("it is readable");
        let mut other = Store::memory();
        assert_eq!(other.restore(&saved, 10_000), Some(()));
        assert_eq!(other.save().expect("memory"), saved);
        assert_eq!(Store::memory().restore(&saved, 100), None, "beyond the device");
        assert_eq!(Store::memory().restore(&saved[..saved.len() - 1], 10_000), None);
    }

    #[test]
    fn memory_is_sparse() {
        exercise(Store::memory());
    }

    #[test]
    fn a_file_is_sparse_and_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("contents");
        let open = || {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            let file = options.open(&path).expect("one's own folder");
            Store::file(file, 1 << 30).expect("a sparse file")
        };
        exercise(open());
        let again = open();
        assert!(again.is_allocated(32) && !again.is_allocated(1_000_000));
    }
}
