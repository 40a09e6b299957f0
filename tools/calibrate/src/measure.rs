//! Latencies of a real file or block device, with direct I/O.

use super::{CalibrateError, Kind, Reading};
use hybridsim_engine::Stream;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
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
    if what.buffered { options.open(&what.path) } else { open_direct(options, what) }
}

/// Opens past the page cache; writes return when they are on the medium.
#[cfg(not(any(windows, target_vendor = "apple")))]
fn open_direct(mut options: OpenOptions, what: &Measure) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = OFlags::DIRECT | if what.write { OFlags::DSYNC } else { OFlags::empty() };
    options.custom_flags(flags.bits() as i32).open(&what.path)
}

#[cfg(target_vendor = "apple")]
fn open_direct(mut options: OpenOptions, what: &Measure) -> io::Result<File> {
    use rustix::fs::{OFlags, fcntl_nocache};
    use std::os::unix::fs::OpenOptionsExt;
    let flags = if what.write { OFlags::DSYNC } else { OFlags::empty() };
    let file = options.custom_flags(flags.bits() as i32).open(&what.path)?;
    fcntl_nocache(&file, true)?;
    Ok(file)
}

#[cfg(windows)]
fn open_direct(mut options: OpenOptions, what: &Measure) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    const FILE_FLAG_NO_BUFFERING: u32 = 0x2000_0000;
    const FILE_FLAG_WRITE_THROUGH: u32 = 0x8000_0000;
    let through = if what.write { FILE_FLAG_WRITE_THROUGH } else { 0 };
    options.custom_flags(FILE_FLAG_NO_BUFFERING | through).open(&what.path)
}

fn hint(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidInput => format!(
            "{error}: its file system has no direct I/O; measure a device or a file elsewhere, or \
             add --buffered, which measures the page cache as well"
        ),
        _ => error.to_string(),
    }
}

/// Size of a file or a block device, whose metadata say zero.
fn size(file: &File) -> io::Result<u64> {
    let mut file = file;
    file.seek(SeekFrom::End(0))
}

fn one(mut file: &File, kind: Kind, buffer: &mut [u8], at: u64) -> io::Result<f64> {
    file.seek(SeekFrom::Start(at))?;
    let began = Instant::now();
    match kind {
        Kind::Read => file.read_exact(buffer)?,
        Kind::Write | Kind::ScatteredWrite => file.write_all(buffer)?,
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
