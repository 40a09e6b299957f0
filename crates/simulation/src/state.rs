//! Saved states: the file `--save-state` writes, and the cache of preconditioned devices.
//!
//! Both use one container: a magic number, a checksum, the program's version, the resolved
//! scenario of the system, and the compressed state. A state is loaded only into a system whose
//! resolved scenario is identical.

use hybridsim_engine::{Loader, PreparedStates, Saver, StateError};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufReader, BufWriter, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

const MAGIC: &[u8; 16] = b"hybridsim state\n";
const CHECKSUM_BYTES: usize = 32;
/// Raised whenever the container changes.
const FORMAT: u32 = 1;
/// Maximum size of the header besides the text of the system; the text of another system may be
/// longer by as much and still be compared.
const HEAD_BYTES: u64 = 1 << 20;
/// A state depends on the code that saved it: other code may read it wrongly.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " of ", env!("HYBRIDSIM_SOURCES"));
/// A hash of the code this program was built from: between two versions results may change, too.
pub const SOURCES: &str = env!("HYBRIDSIM_SOURCES");
/// Fast, and halves what a map of numbers takes.
const COMPRESSION_LEVEL: i32 = 1;

/// Writes to `to` and computes the checksum.
struct Hashed<W> {
    to: W,
    hasher: blake3::Hasher,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Packs the state of the system that `belongs_to` describes, in `parts`, into the empty `to`.
fn pack_into(to: impl Write + Seek, belongs_to: &str, parts: &[&[u8]]) -> io::Result<()> {
    let mut to = Hashed { to, hasher: blake3::Hasher::new() };
    to.to.write_all(MAGIC)?;
    to.to.write_all(&[0; CHECKSUM_BYTES])?;
    let mut head = Saver::default();
    head.put(&(
        FORMAT,
        VERSION,
        belongs_to,
        parts.iter().map(|part| part.len() as u64).sum::<u64>(),
    ));
    to.write_all(&head.into_bytes())?;
    let mut encoder = hybridsim_codecs::Encoder::new(&mut to, COMPRESSION_LEVEL)?;
    parts.iter().try_for_each(|part| encoder.write_all(part))?;
    encoder.finish()?;
    to.to.seek(SeekFrom::Start(MAGIC.len() as u64))?;
    to.to.write_all(to.hasher.finalize().as_bytes())?;
    to.to.flush()
}

/// Whether the file at `path` begins as a saved state does, or is empty.
pub fn is_state(path: &Path) -> bool {
    let mut start = Vec::new();
    let read =
        fs::File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start));
    read.is_ok() && (start.is_empty() || start == MAGIC)
}

/// Packs `state` of the system that `belongs_to` describes.
pub fn pack(belongs_to: &str, state: &[u8]) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    pack_into(&mut bytes, belongs_to, &[state]).expect("memory can be written");
    bytes.into_inner()
}

/// Unpacks a state of the system that `belongs_to` describes.
///
/// # Errors
/// Fails when `bytes` are something else, damaged, or of another program or system.
pub fn unpack(bytes: &[u8], belongs_to: &str) -> Result<Vec<u8>, StateError> {
    unpack_from(Cursor::new(bytes), belongs_to)
}

/// As [`unpack`]; reads `from` twice instead of loading it as a whole.
fn unpack_from(mut from: impl Read + Seek, belongs_to: &str) -> Result<Vec<u8>, StateError> {
    let unreadable = |error: io::Error| StateError(format!("it cannot be read: {error}"));
    let mut magic = Vec::new();
    from.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(unreadable)?;
    if magic != MAGIC {
        return Err(StateError("this is not a saved state".to_owned()));
    }
    let mut checksum = Vec::new();
    from.by_ref().take(CHECKSUM_BYTES as u64).read_to_end(&mut checksum).map_err(unreadable)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(&mut from).map_err(unreadable)?;
    if hasher.finalize().as_bytes()[..] != checksum {
        return Err(StateError("the file is damaged or cut short; save it again".to_owned()));
    }
    from.seek(SeekFrom::Start((MAGIC.len() + CHECKSUM_BYTES) as u64)).map_err(unreadable)?;
    let mut head = Vec::new();
    let head_max = (belongs_to.len() as u64).saturating_add(HEAD_BYTES);
    from.by_ref().take(head_max).read_to_end(&mut head).map_err(unreadable)?;
    let mut loader = Loader::new(&head);
    let (format, version): (u32, String) = loader.take()?;
    if (format, version.as_str()) != (FORMAT, VERSION) {
        let message = format!(
            "it was saved by hybridsim {version}, this is {VERSION}; save it again with this one"
        );
        return Err(StateError(message));
    }
    let owner: String = loader.take()?;
    if owner != belongs_to {
        return Err(StateError(difference(&owner, belongs_to)));
    }
    let length: u64 = loader.take()?;
    unzip(loader.rest().chain(from), length)
}

/// Allocates no more memory than the file contains.
fn unzip(packed: impl Read, length: u64) -> Result<Vec<u8>, StateError> {
    let error = |error| StateError(format!("it cannot be unpacked: {error}"));
    let reader = hybridsim_codecs::zstd_reader(BufReader::new(packed)).map_err(error)?;
    let mut state = Vec::new();
    reader.take(length.saturating_add(1)).read_to_end(&mut state).map_err(error)?;
    if state.len() as u64 != length {
        return Err(StateError("its length differs from the one in its header".to_owned()));
    }
    Ok(state)
}

/// The first difference between two systems.
fn difference(saved: &str, wanted: &str) -> String {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (saved, wanted) = (lines(saved), lines(wanted));
    let at = saved.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
    let place = wanted.iter().take(at + 1).rev().find(|line| line.starts_with('['));
    let place = place.map_or(String::new(), |line| format!(" under {line}"));
    let show =
        |lines: &[String]| lines.get(at).map_or("nothing".into(), |line| format!("`{line}`"));
    format!(
        "it was saved from another system: it has {}, this scenario has {}{place}",
        show(&saved),
        show(&wanted)
    )
}

/// Writes `bytes` so that the file is either whole or as it was.
///
/// # Errors
/// Fails when the folder cannot be written to.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_by(path, |partial| fs::write(partial, bytes))
}

/// As [`write`], for what [`pack`] returns of `parts` taken together, which is not held in memory.
///
/// # Errors
/// Fails when the file cannot be written.
pub fn write_packed(path: &Path, belongs_to: &str, parts: &[&[u8]]) -> io::Result<()> {
    write_by(path, |partial| {
        pack_into(BufWriter::new(fs::File::create(partial)?), belongs_to, parts)
    })
}

/// As [`write`]: `fill` writes the file.
fn write_by(path: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let new = NewFile::at(path);
    fill(new.partial())?;
    new.complete()
}

/// A file that is written under another name until it is complete, so that the file at its path is
/// either whole or as it was. A link stays one, and what is no regular file, such as a pipe or
/// `/dev/stdout`, is written to, not replaced.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    /// The other name; `None` when `path` itself is written to.
    partial: Option<PathBuf>,
}

impl NewFile {
    /// The file that will be at `path`.
    pub fn at(path: &Path) -> Self {
        if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            return Self { path: path.to_owned(), partial: None };
        }
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let partial = path.with_file_name(format!(".{name}.{}.partial", std::process::id()));
        Self { path, partial: Some(partial) }
    }

    /// The path to write to.
    pub fn partial(&self) -> &Path {
        self.partial.as_deref().unwrap_or(&self.path)
    }

    /// Moves the file to its path.
    ///
    /// # Errors
    /// Fails when the folder cannot be written to.
    pub fn complete(mut self) -> io::Result<()> {
        if let Some(partial) = &self.partial {
            fs::rename(partial, &self.path)?;
        }
        self.partial = None;
        Ok(())
    }
}

/// A file that was not completed is removed.
impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // It may not exist.
            drop(fs::remove_file(partial));
        }
    }
}

/// A cache of the states of preconditioned devices on disk. An unreadable entry is a miss and a
/// failed write is ignored: the cache never makes a run fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreconditionCache {
    /// The folder; created with the first entry.
    pub folder: PathBuf,
    /// Maximum total size of the files; the least recently used are deleted first.
    pub bytes_max: u64,
    /// Shortest preparation whose state is kept.
    pub keep_from: Duration,
}

/// Whether a file of this name is of the cache: states that the user saved are not.
fn is_of_cache(name: &str) -> bool {
    let name = name.strip_prefix('.').unwrap_or(name);
    let Some((hash, ending)) = name.split_once('.') else { return false };
    let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash && (ending == "state" || ending.ends_with(".partial"))
}

/// Size of a [`PreconditionCache`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheUsage {
    /// Number of states.
    pub states: usize,
    /// Total size of their files.
    pub bytes: u64,
}

impl PreconditionCache {
    /// The user's cache: `hybridsim` in the platform's cache folder, or `$HYBRIDSIM_CACHE`, where
    /// every state is kept.
    pub fn standard() -> Option<Self> {
        let named = std::env::var_os("HYBRIDSIM_CACHE").filter(|name| !name.is_empty());
        let (folder, keep_from) = match named {
            Some(folder) => (PathBuf::from(folder), Duration::ZERO),
            None => (dirs::cache_dir()?.join("hybridsim"), Duration::from_millis(300)),
        };
        Some(Self { folder, bytes_max: 2 << 30, keep_from })
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{}.state", blake3::hash(key.as_bytes()).to_hex()))
    }

    fn load(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.path(key);
        let state = unpack_from(fs::File::open(&path).ok()?, key).ok()?;
        if let Ok(file) = fs::File::options().write(true).open(&path) {
            // The time of the last use.
            drop(file.set_modified(SystemTime::now()));
        }
        Some(state)
    }

    fn store(&self, key: &str, state: &[u8]) {
        if fs::create_dir_all(&self.folder).is_err() {
            return;
        }
        let fill = |partial: &Path| {
            let mut file = BufWriter::new(fs::File::create(partial)?);
            pack_into(&mut file, key, &[state])?;
            let length = file.get_ref().metadata()?.len();
            if length > self.bytes_max {
                return Err(io::Error::other("larger than the cache"));
            }
            // The files include the one being written, which is the newest.
            self.shrink_to(self.bytes_max);
            Ok(())
        };
        drop(write_by(&self.path(key), fill));
    }

    /// The cached files with time of last use and length, the least recently used first.
    fn files(&self) -> Vec<(SystemTime, u64, PathBuf)> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let ours = is_of_cache(&entry.file_name().to_string_lossy());
                let meta = entry.metadata().ok().filter(|meta| ours && meta.is_file())?;
                Some((meta.modified().ok()?, meta.len(), entry.path()))
            })
            .collect();
        files.sort();
        files
    }

    /// Number and size of the cached states.
    pub fn usage(&self) -> CacheUsage {
        let files = self.files();
        let bytes = files.iter().map(|(_, bytes, _)| bytes).sum();
        CacheUsage { states: files.len(), bytes }
    }

    /// Deletes all cached states; returns what was deleted.
    ///
    /// # Errors
    /// Fails when a file cannot be deleted.
    pub fn clear(&self) -> io::Result<CacheUsage> {
        let usage = self.usage();
        self.files().into_iter().try_for_each(|(_, _, path)| fs::remove_file(path))?;
        Ok(usage)
    }

    fn shrink_to(&self, bytes_max: u64) {
        let files = self.files();
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, length, path) in files {
            if bytes <= bytes_max {
                break;
            }
            if fs::remove_file(path).is_ok() {
                bytes -= length;
            }
        }
    }
}

/// The part of a [`PreconditionCache`] that belongs to the components of one scenario.
pub struct CachedStates<'a> {
    cache: &'a PreconditionCache,
    /// By path, the values that the state of a component depends on.
    keys: BTreeMap<String, String>,
    /// The time at which the last state was asked for, and its preparation began.
    asked: Instant,
}

impl<'a> CachedStates<'a> {
    /// `keys` are, by path, the values that the state of a component depends on besides the
    /// program's code.
    pub fn new(cache: &'a PreconditionCache, keys: BTreeMap<String, String>) -> Self {
        let key = |(path, key)| (path, format!("program = {SOURCES}\n{key}"));
        Self { cache, keys: keys.into_iter().map(key).collect(), asked: Instant::now() }
    }
}

impl PreparedStates for CachedStates<'_> {
    fn load(&mut self, path: &str) -> Option<Vec<u8>> {
        let state = self.keys.get(path).and_then(|key| self.cache.load(key));
        self.asked = Instant::now();
        state
    }

    fn store(&mut self, path: &str, state: Vec<u8>) {
        if let Some(key) =
            self.keys.get(path).filter(|_| self.asked.elapsed() >= self.cache.keep_from)
        {
            self.cache.store(key, &state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = "system = \"a\"\n[component.a]\nkind = \"ssd\"\nblocks = 3\n";

    #[test]
    fn a_state_comes_back_only_whole_and_to_its_own_system() {
        let state: Vec<u8> = (0..100_000u32).map(|n| (n / 7) as u8).collect();
        let packed = pack(SYSTEM, &state);
        assert!(packed.len() < state.len() / 4, "{} bytes", packed.len());
        assert_eq!(unpack(&packed, SYSTEM).as_ref(), Ok(&state));
        let wrong = unpack(&packed, &SYSTEM.replace('3', "4")).expect_err("another system").0;
        assert!(
            wrong.contains("`blocks = 3`") && wrong.contains("`blocks = 4` under [component.a]")
        );
        for length in 0..packed.len() {
            assert!(unpack(&packed[..length], SYSTEM).is_err(), "cut at {length}");
        }
        for at in 0..packed.len() {
            let mut packed = packed.clone();
            packed[at] ^= 0x10;
            assert!(unpack(&packed, SYSTEM).is_err(), "changed at {at}");
        }
    }

    #[test]
    fn a_wrong_length_is_rejected() {
        let packed = zstd::bulk::compress(&[7; 1 << 20], 1).expect("memory can be written");
        for length in [0, 5, (1 << 20) - 1, (1 << 20) + 1, u64::MAX] {
            assert!(unzip(&packed[..], length).is_err(), "{length}");
        }
        assert_eq!(unzip(&packed[..], 1 << 20).map(|state| state.len()), Ok(1 << 20));
    }

    #[test]
    fn the_cache_deletes_the_least_recently_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let noise = |seed| {
            let mut stream = hybridsim_engine::Stream::new(seed, "noise");
            (0..1000).map(|_| stream.bits() as u8).collect::<Vec<u8>>()
        };
        let folder = folder.path().join("deep").join("down");
        let cache = PreconditionCache { folder, bytes_max: 2_500, keep_from: Duration::ZERO };
        assert_eq!(cache.load("a"), None);
        for (seed, key) in [(1, "a"), (2, "b")] {
            cache.store(key, &noise(seed));
            assert_eq!(cache.load(key), Some(noise(seed)));
        }
        let old = SystemTime::now() - Duration::from_secs(1000);
        let file = fs::File::options().write(true).open(cache.path("a")).expect("it is kept");
        file.set_modified(old).expect("one's own file");
        cache.store("c", &noise(3));
        assert_eq!([cache.load("a"), cache.load("b")], [None, Some(noise(2))]);
        cache.store("too large", &[noise(4), noise(5), noise(6)].concat());
        assert_eq!([cache.load("too large"), cache.load("c")], [None, Some(noise(3))]);
        fs::write(cache.path("c"), b"hybridsim state\nnonsense").expect("one's own file");
        assert_eq!(cache.load("c"), None, "a damaged entry is a miss");
    }
}
