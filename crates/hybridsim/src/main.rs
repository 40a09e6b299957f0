//! The `hybridsim` program: the standard registry and the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(hybridsim::cli(&hybridsim::registry::standard(), std::env::args_os()))
}
