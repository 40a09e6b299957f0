//! Shell completions and manual pages, generated from the definition of the command line.

use super::output::{Failure, note, print};
use super::{Cli, reference};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use hybridsim_config::registry::Registry;
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
    /// Write the manual's reference in Markdown instead: commands, scenarios, entries, presets
    #[arg(long)]
    markdown: bool,
}

pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hybridsim", &mut script);
    print(&String::from_utf8_lossy(&script))
}

pub fn man(registry: &Registry, args: &ManArgs) -> Result<(), Failure> {
    let wrong = |error| Failure::usage(format!("cannot write {}: {error}", args.out.display()));
    std::fs::create_dir_all(&args.out).map_err(wrong)?;
    if args.markdown {
        for (name, text) in reference::pages(registry, Cli::command()) {
            std::fs::write(args.out.join(name), text).map_err(wrong)?;
        }
        note(&format!("reference: {}", args.out.display()));
        return Ok(());
    }
    clap_mangen::generate_to(Cli::command(), &args.out).map_err(wrong)?;
    note(&format!(
        "manual pages: {0}; read them with `man -l {0}/hybridsim.1`",
        args.out.display()
    ));
    Ok(())
}
