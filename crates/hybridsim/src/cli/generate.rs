//! Shell completions and manual pages, generated from the definition of the command line.

use super::Cli;
use super::output::{Failure, note, print};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(Args)]
pub struct ManArgs {
    /// Write the pages into this folder, one for the program and one for each command
    out: PathBuf,
}

pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hybridsim", &mut script);
    print(&String::from_utf8_lossy(&script))
}

pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let wrong = |error| Failure::usage(format!("cannot write {}: {error}", args.out.display()));
    std::fs::create_dir_all(&args.out).map_err(wrong)?;
    clap_mangen::generate_to(Cli::command(), &args.out).map_err(wrong)?;
    note(&format!(
        "manual pages: {0}; read them with `man -l {0}/hybridsim.1`",
        args.out.display()
    ));
    Ok(())
}
