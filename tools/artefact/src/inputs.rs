//! The files that scenarios read: traces, and saved states of devices.

use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A file that scenarios read.
pub struct InputFile {
    /// Present path of the file.
    pub source: PathBuf,
    /// Checksum and size of the file.
    pub sum: Sum,
    /// Whether the archive has it.
    pub is_kept: bool,
}

/// The SHA-256 of a file in hexadecimal digits, and its size in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sum {
    /// The SHA-256.
    pub hash: String,
    /// The size.
    pub bytes: u64,
}

impl Sum {
    /// Reads `from` to its end.
    ///
    /// # Errors
    /// Fails when it cannot be read.
    pub fn of(mut from: impl Read) -> io::Result<Self> {
        let (mut hasher, mut bytes) = (Sha256::new(), 0);
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = from.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            hasher.update(&buffer[..count]);
            bytes += count as u64;
        }
        let hash = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { hash, bytes })
    }
}

/// Names that are in use.
#[derive(Default)]
pub struct Names(HashSet<String>);

impl Names {
    /// The last name of `path`, with a number before it where that is taken.
    pub fn free(&mut self, path: &Path) -> String {
        let name = plain(&path.file_name().unwrap_or_default().to_string_lossy());
        let numbered = (2..).map(|number| format!("{number}-{name}"));
        let mut all = [name.clone()].into_iter().chain(numbered);
        let free = all.find(|name| !self.0.contains(name)).expect("there are enough numbers");
        self.0.insert(free.clone());
        free
    }
}

/// A file name that needs no quotes in a shell.
pub fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    // A dash would begin an option.
    if plain.is_empty() || plain.starts_with(['-', '.']) { format!("_{plain}") } else { plain }
}

/// The files that the scenarios of a study read, by their paths in the archive.
#[derive(Default)]
pub struct Inputs {
    /// The files.
    pub files: BTreeMap<String, InputFile>,
    known: HashMap<PathBuf, String>,
    /// Contents that are in the archive already.
    same: HashMap<Sum, String>,
    names: Names,
}

impl Inputs {
    /// The path in the archive of the trace at `path`, which is kept if it has at most `bytes_max`
    /// bytes.
    ///
    /// # Errors
    /// Fails when it is absent, or is not one file.
    pub fn trace(&mut self, path: &Path, bytes_max: u64) -> Result<String, String> {
        if let Some(sibling) = sibling(path) {
            return Err(format!(
                "the trace {} has a file for each processor, such as {}: make it one file with \
                 `hybridsim trace convert`",
                path.display(),
                sibling.display()
            ));
        }
        self.add("traces", path, |bytes| bytes_max > 0 && bytes <= bytes_max)
    }

    /// The path in the archive of the saved state at `path`.
    ///
    /// # Errors
    /// Fails when it is absent.
    pub fn state(&mut self, path: &Path) -> Result<String, String> {
        self.add("states", path, |_| true)
    }

    fn add(
        &mut self,
        folder: &str,
        path: &Path,
        keeps: impl Fn(u64) -> bool,
    ) -> Result<String, String> {
        if let Some(known) = self.known.get(path) {
            return Ok(known.clone());
        }
        let wrong = |why: &str| format!("cannot read {}: {why}", path.display());
        // Neither a folder nor a pipe can be read twice.
        if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            return Err(wrong("it is no regular file"));
        }
        let sum = File::open(path).and_then(Sum::of).map_err(|it| wrong(&it.to_string()))?;
        let at = match self.same.get(&sum) {
            Some(same) => same.clone(),
            None => format!("{folder}/{}", self.names.free(path)),
        };
        self.same.insert(sum.clone(), at.clone());
        self.known.insert(path.to_owned(), at.clone());
        let is_kept = keeps(sum.bytes);
        let file = InputFile { source: path.to_owned(), sum, is_kept };
        self.files.entry(at.clone()).or_insert(file);
        Ok(at)
    }
}

/// Another file of the trace at `path`, where it is one of `blktrace`, which has one for each
/// processor and is read as a whole.
fn sibling(path: &Path) -> Option<PathBuf> {
    let (prefix, _) = path.file_name()?.to_str()?.rsplit_once(".blktrace.")?;
    let prefix = format!("{prefix}.blktrace.");
    let other = |other: &PathBuf| {
        let name = other.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&prefix) && other.file_name() != path.file_name()
    };
    fs::read_dir(path.parent()?).ok()?.flatten().map(|entry| entry.path()).find(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_free_and_plain() {
        let mut names = Names::default();
        let free: Vec<String> =
            ["a/x y.csv", "b/x\ty.csv", "/", "-rf"].map(|it| names.free(Path::new(it))).into();
        assert_eq!(free, ["x_y.csv", "2-x_y.csv", "_", "_-rf"]);
    }

    #[test]
    fn the_sum_is_a_sha_256() {
        let sum = Sum::of(&b"abc"[..]).expect("memory can be read");
        assert!(sum.hash.starts_with("ba7816bf") && sum.hash.ends_with("f20015ad"), "{sum:?}");
        assert_eq!(sum.bytes, 3);
    }
}
