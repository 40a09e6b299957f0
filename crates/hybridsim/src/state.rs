//! Saved states: the file `--save-state` writes, and the cache of preconditioned devices.
//!
//! Both are one container: a magic word, a checksum, the program's version, a text that says what
//! the state belongs to, and the compressed state. A state is used only when its text is, letter
//! by letter, that of the system at hand.

use hybridsim_engine::{Keeper, Loader, Saver, StateError};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

const MAGIC: &[u8; 16] = b"hybridsim state\n";
const CHECKSUM_BYTES: usize = 32;
/// Raised whenever the container changes.
const FORMAT: u32 = 1;
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Fast, and halves what a map of numbers takes.
const COMPRESSION_LEVEL: i32 = 1;

/// Packs `state` of the system that `belongs_to` describes.
pub fn pack(belongs_to: &str, state: &[u8]) -> Vec<u8> {
    let packed = zstd::bulk::compress(state, COMPRESSION_LEVEL).expect("memory can be written");
    let mut body = Saver::default();
    body.put(&(FORMAT, VERSION, belongs_to, state.len() as u64));
    let mut body = body.into_bytes();
    body.extend(packed);
    [&MAGIC[..], blake3::hash(&body).as_bytes(), &body].concat()
}

/// Unpacks a state of the system that `belongs_to` describes.
///
/// # Errors
/// When `bytes` are something else, damaged, or of another program or system.
pub fn unpack(bytes: &[u8], belongs_to: &str) -> Result<Vec<u8>, StateError> {
    let error = |message: &str| StateError(message.to_owned());
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| error("this is not a saved state"))?;
    let damaged = || error("the file is damaged or cut short; save it again");
    let (checksum, body) = rest.split_at_checked(CHECKSUM_BYTES).ok_or_else(damaged)?;
    if blake3::hash(body).as_bytes() != checksum {
        return Err(damaged());
    }
    let mut loader = Loader::new(body);
    let (format, version): (u32, String) = loader.take()?;
    if (format, version.as_str()) != (FORMAT, VERSION) {
        let message = format!(
            "it was saved by hybridsim {version}, this is {VERSION}; run what led to it again"
        );
        return Err(StateError(message));
    }
    let owner: String = loader.take()?;
    if owner != belongs_to {
        return Err(StateError(difference(&owner, belongs_to)));
    }
    let length: u64 = loader.take()?;
    unzip(loader.rest(), length)
}

/// Never takes more memory than the file says and delivers.
fn unzip(packed: &[u8], length: u64) -> Result<Vec<u8>, StateError> {
    let error = |error| StateError(format!("it cannot be unpacked: {error}"));
    let reader = zstd::Decoder::with_buffer(packed).map_err(error)?;
    let mut state = Vec::new();
    reader.take(length.saturating_add(1)).read_to_end(&mut state).map_err(error)?;
    if state.len() as u64 != length {
        return Err(StateError("it has another length than it says".to_owned()));
    }
    Ok(state)
}

/// Says in what two systems differ first.
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
/// When the folder cannot be written to.
pub fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.{}.partial", std::process::id()));
    let done = fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, path));
    if done.is_err() {
        // It may not even exist; the first error is the one to tell.
        drop(fs::remove_file(&partial));
    }
    done
}

/// Where preconditioned devices are kept between runs. What cannot be read is made anew, what
/// cannot be written is not kept: the cache never makes a run fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The folder; made when something is kept.
    pub folder: PathBuf,
    /// The files together take at most so many bytes; those unused for longest go first.
    pub bytes_max: u64,
    /// Only what took at least so long is kept.
    pub worth: Duration,
}

impl Cache {
    /// The user's cache: `hybridsim` in the platform's folder for caches, or `$HYBRIDSIM_CACHE`,
    /// where everything is kept, however little it took.
    pub fn standard() -> Option<Self> {
        let named = std::env::var_os("HYBRIDSIM_CACHE").filter(|name| !name.is_empty());
        let (folder, worth) = match named {
            Some(folder) => (PathBuf::from(folder), Duration::ZERO),
            None => (dirs::cache_dir()?.join("hybridsim"), Duration::from_millis(300)),
        };
        Some(Self { folder, bytes_max: 2 << 30, worth })
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{}.state", blake3::hash(key.as_bytes()).to_hex()))
    }

    fn load(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.path(key);
        let state = unpack(&fs::read(&path).ok()?, key).ok()?;
        if let Ok(file) = fs::File::options().write(true).open(&path) {
            // Only for choosing what to forget.
            drop(file.set_modified(SystemTime::now()));
        }
        Some(state)
    }

    fn store(&self, key: &str, state: &[u8]) {
        let bytes = pack(key, state);
        if bytes.len() as u64 > self.bytes_max || fs::create_dir_all(&self.folder).is_err() {
            return;
        }
        self.forget_down_to(self.bytes_max - bytes.len() as u64);
        drop(write(&self.path(key), &bytes));
    }

    fn forget_down_to(&self, bytes_max: u64) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let ours = entry.path().extension().is_some_and(|e| e == "state" || e == "partial");
                let meta = entry.metadata().ok().filter(|meta| ours && meta.is_file())?;
                Some((meta.modified().ok()?, meta.len(), entry.path()))
            })
            .collect();
        files.sort();
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

/// A [`Cache`] for the parts of one scenario.
pub struct Kept<'a> {
    cache: &'a Cache,
    /// What the state of the part at a path depends on.
    keys: BTreeMap<String, String>,
    asked: Instant,
}

impl<'a> Kept<'a> {
    /// `keys` say by path what the state of a part depends on; `None` when the program cannot
    /// tell itself from an older one that would have prepared devices differently.
    pub fn new(cache: &'a Cache, keys: BTreeMap<String, String>) -> Option<Self> {
        let program = fs::metadata(std::env::current_exe().ok()?).ok()?;
        let built = program.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let program = format!("program = {} {}\n", program.len(), built.as_nanos());
        let keys = keys.into_iter().map(|(path, key)| (path, program.clone() + &key)).collect();
        Some(Self { cache, keys, asked: Instant::now() })
    }
}

impl Keeper for Kept<'_> {
    fn load(&mut self, path: &str) -> Option<Vec<u8>> {
        let state = self.keys.get(path).and_then(|key| self.cache.load(key));
        self.asked = Instant::now();
        state
    }

    fn store(&mut self, path: &str, state: Vec<u8>) {
        if let Some(key) = self.keys.get(path).filter(|_| self.asked.elapsed() >= self.cache.worth)
        {
            self.cache.store(key, &state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = "system = \"a\"\n[part.a]\nkind = \"ssd\"\nblocks = 3\n";

    #[test]
    fn a_state_comes_back_only_whole_and_to_its_own_system() {
        let state: Vec<u8> = (0..100_000u32).map(|n| (n / 7) as u8).collect();
        let packed = pack(SYSTEM, &state);
        assert!(packed.len() < state.len() / 4, "{} bytes", packed.len());
        assert_eq!(unpack(&packed, SYSTEM).as_ref(), Ok(&state));
        let wrong = unpack(&packed, &SYSTEM.replace('3', "4")).expect_err("another system").0;
        assert!(wrong.contains("`blocks = 3`") && wrong.contains("`blocks = 4` under [part.a]"));
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
    fn a_length_that_lies_is_told() {
        let packed = zstd::bulk::compress(&[7; 1 << 20], 1).expect("memory can be written");
        for length in [0, 5, (1 << 20) - 1, (1 << 20) + 1, u64::MAX] {
            assert!(unzip(&packed, length).is_err(), "{length}");
        }
        assert_eq!(unzip(&packed, 1 << 20).map(|state| state.len()), Ok(1 << 20));
    }

    #[test]
    fn the_cache_keeps_what_fits_and_forgets_the_oldest() {
        let folder = tempfile::tempdir().expect("a folder");
        let noise = |seed| {
            let mut stream = hybridsim_engine::Stream::new(seed, "noise");
            (0..1000).map(|_| stream.bits() as u8).collect::<Vec<u8>>()
        };
        let folder = folder.path().join("deep").join("down");
        let cache = Cache { folder, bytes_max: 2_500, worth: Duration::ZERO };
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
        assert_eq!(cache.load("c"), None, "what is damaged is made anew");
    }
}
