//! Writes the inputs from which fuzzing starts into the folder given: `nbd/0`, `trace/0`, ...

use hybridsim_fuzz::targets::TARGETS;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn write(folder: &Path, seeds: &[Vec<u8>]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    seeds.iter().enumerate().try_for_each(|(at, seed)| fs::write(folder.join(at.to_string()), seed))
}

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).expect("a folder"));
    TARGETS.iter().try_for_each(|it| write(&folder.join(it.name), &(it.seeds)()))
}
