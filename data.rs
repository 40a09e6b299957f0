//! The files that the program contains: presets, examples, recorded traces, the published figures
//! it is judged by, and the pages that define its words.

use include_dir::{Dir, include_dir};

/// Scenarios of the manual.
pub static EXAMPLES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/examples");

/// Scenarios and claims of the reproduced papers and measured drives, one folder per source.
pub static PAPERS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/papers");

/// Disks, flash chips and whole devices, one TOML file each.
pub static PRESETS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/presets");

/// Recorded traces, beside the scripts that recorded them.
pub static WORKLOADS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/workloads");

/// The drive that counters of measured drives are compared with.
pub const DRIVE_SCENARIO: &str = include_str!("papers/ssd/drive.toml");

/// DiskSim parameters of the regression whose file was written for this project.
pub const OPEN_REGRESSION: &str = include_str!("papers/disk/synthopen.parv");

/// The page of the keys of results.
pub const RESULTS: &str = include_str!("docs/reference/results.md");

/// The page of the terms of the field.
pub const GLOSSARY: &str = include_str!("docs/reference/glossary.md");

/// The page of what other tools call the same things.
pub const WORDS: &str = include_str!("docs/reference/words.md");

/// The page of the sources.
pub const BIBLIOGRAPHY: &str = include_str!("docs/papers/bibliography.md");
