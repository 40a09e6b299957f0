//! Locks of the files of a server, so that no second server writes them at the same time.

use rustix::fs::fstat;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Holds a file until it is dropped; the operating system releases it when the program is killed.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Locks the file at `path`, which need not exist, by a file beside it named `PATH.lock`.
    ///
    /// # Errors
    /// If another program has locked it ([`io::ErrorKind::ResourceBusy`]), or the folder cannot
    /// be written.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        loop {
            let file = File::options().write(true).create(true).truncate(false).open(&path)?;
            hold(&file)?;
            // The previous holder may have removed this file after it was opened here.
            let opened = fstat(&file)?.st_ino;
            if fs::metadata(&path).is_ok_and(|about| about.ino() == opened) {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Before the lock is released, so that the next holder finds no file of this name.
        drop(fs::remove_file(&self.path));
    }
}

/// Locks an open file for as long as it is open. File systems without locks are taken as they are.
///
/// # Errors
/// If another program has locked it ([`io::ErrorKind::ResourceBusy`]).
pub fn hold(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => {
            let message = "another hybridsim is using it";
            Err(io::Error::new(io::ErrorKind::ResourceBusy, message))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_locked_until_the_lock_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("drive.state");
        let lock = Lock::of(&path).expect("it is free");
        let second = Lock::of(&path).expect_err("it is locked");
        assert_eq!(second.kind(), io::ErrorKind::ResourceBusy);
        drop(lock);
        drop(Lock::of(&path).expect("it was released"));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}
