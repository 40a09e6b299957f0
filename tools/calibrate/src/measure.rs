//! Latencies of a real file or block device, with direct I/O.

use super::{CalibrateError, Kind, Reading};
use hybridsim_engine::Stream;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Instant;

/// A device or file to measure.
#[derive(Clone, Debug)]
pub struct Measure {
    /// A file or block device.
    pub path: PathBuf,
    /// Whether to write to it; what it holds is lost then.
    pub write: bool,
    /// Through the page cache, where direct I/O is not possible.
    pub buffered: bool,
    /// Requests at each length.
    pub repetitions: u32,
    /// Lengths in bytes, multiples of 4 KiB.
    pub lengths: Vec<u64>,
}

/// Direct I/O wants addresses, lengths and memory in multiples of the device's block.
const ALIGNMENT: usize = 4096;

/// Measures reads in order from random places, and, if asked to, writes in order and scattered.
///
/// # Errors
/// When it cannot be opened, is too short, or an operation fails.
pub fn measure(what: &Measure) -> Result<(u64, Vec<Reading>), CalibrateError> {
    let place = what.path.display();
    let problem = |message: String| CalibrateError::Device(format!("{place}: {message}"));
    let longest = what.lengths.iter().copied().max().unwrap_or(0);
    let file = open(what).map_err(|error| problem(hint(&error)))?;
    let size = size(&file).map_err(|error| problem(error.to_string()))?;
    let needed = longest * u64::from(what.repetitions);
    if size < needed {
        let message = format!("holds {size} bytes, {needed} are needed to read each place once");
        return Err(problem(message));
    }
    let mut memory = vec![0x5a; longest as usize + ALIGNMENT];
    let skip = memory.as_ptr().align_offset(ALIGNMENT);
    let buffer = &mut memory[skip..skip + longest as usize];
    let mut stream = Stream::new(1, "calibrate");
    let mut readings = Vec::new();
    let mut kinds = vec![Kind::Read];
    if what.write {
        kinds.extend([Kind::Write, Kind::ScatteredWrite]);
    }
    for kind in kinds {
        if kind != Kind::Read {
            buffer.fill(0x5a);
        }
        for &bytes in &what.lengths {
            let slots = size / bytes;
            let first = stream.below(slots - u64::from(what.repetitions) + 1);
            for turn in 0..u64::from(what.repetitions) {
                let slot =
                    if kind == Kind::ScatteredWrite { stream.below(slots) } else { first + turn };
                let ns = one(&file, kind, &mut buffer[..bytes as usize], slot * bytes).map_err(
                    |error| problem(format!("{} of {bytes} bytes: {error}", kind.word())),
                )?;
                readings.push(Reading { kind, bytes, ns });
            }
        }
    }
    Ok((size, readings))
}

fn open(what: &Measure) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(what.write);
    if !what.buffered {
        options.custom_flags(libc::O_DIRECT | if what.write { libc::O_DSYNC } else { 0 });
    }
    options.open(&what.path)
}

fn hint(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EINVAL) => format!(
            "{error}: its file system has no direct I/O; measure a device or a file elsewhere, or \
             add --buffered, which measures the page cache as well"
        ),
        _ => error.to_string(),
    }
}

/// Size of a file or a block device, whose metadata say zero.
fn size(file: &File) -> io::Result<u64> {
    use std::io::{Seek, SeekFrom};
    let mut file = file;
    file.seek(SeekFrom::End(0))
}

fn one(file: &File, kind: Kind, buffer: &mut [u8], at: u64) -> io::Result<f64> {
    let began = Instant::now();
    match kind {
        Kind::Read => file.read_exact_at(buffer, at)?,
        Kind::Write | Kind::ScatteredWrite => file.write_all_at(buffer, at)?,
    }
    Ok(began.elapsed().as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: usize) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("device");
        std::fs::write(&path, vec![1; bytes]).expect("it can be written");
        (folder, path)
    }

    fn job(path: PathBuf, write: bool) -> Measure {
        Measure { path, write, buffered: true, repetitions: 4, lengths: vec![4096, 8192] }
    }

    #[test]
    fn a_real_file_is_measured_and_only_read() {
        let (_folder, path) = file(1 << 20);
        let (size, readings) = measure(&job(path.clone(), false)).expect("it can be read");
        assert_eq!((size, readings.len()), (1 << 20, 8));
        assert!(readings.iter().all(|reading| reading.kind == Kind::Read && reading.ns > 0.0));
        assert!(std::fs::read(&path).expect("it is there").iter().all(|byte| *byte == 1));
    }

    #[test]
    fn writing_has_to_be_asked_for() {
        let (_folder, path) = file(1 << 20);
        let (_, readings) = measure(&job(path.clone(), true)).expect("it can be written");
        assert_eq!(readings.len(), 24);
        assert!(std::fs::read(&path).expect("it is there").contains(&0x5a));
    }

    #[test]
    fn what_is_too_short_or_absent_says_so() {
        let (folder, path) = file(4096);
        let short = measure(&job(path, false)).expect_err("too short").to_string();
        assert!(short.contains("needed"), "{short}");
        let absent = measure(&job(folder.path().join("no"), false)).expect_err("absent");
        assert!(absent.to_string().contains("No such file"), "{absent}");
    }
}
