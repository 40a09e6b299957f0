//! Writes the inputs from which fuzzing starts into the folder given: `client/0`, `trace/0`, ...

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn write(folder: &Path, seeds: &[Vec<u8>]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    seeds.iter().enumerate().try_for_each(|(at, seed)| fs::write(folder.join(at.to_string()), seed))
}

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).expect("a folder"));
    write(&folder.join("client"), &hybridsim_fuzz::seeds::clients())?;
    write(&folder.join("trace"), &hybridsim_fuzz::seeds::traces())
}
