//! Runs the target of fuzzing on every input of the folder given: `nbd/0`, `trace/0`, ...

use hybridsim_fuzz::targets::{TARGETS, check};
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).expect("a folder"));
    for target in TARGETS {
        for input in fs::read_dir(folder.join(target.name))? {
            check(target.name, &fs::read(input?.path())?);
        }
    }
    Ok(())
}
