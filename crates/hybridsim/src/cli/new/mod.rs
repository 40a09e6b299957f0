//! The `new` command: a commented scenario to start from.

use super::output::{Failure, note};
use clap::{Args, ValueEnum};
use hybridsim_config::registry::Registry;
use hybridsim_simulation::scenario::schema;
use hybridsim_simulation::state;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const WORKLOAD: &str = include_str!("workload.toml");
/// Name of the file that editors read the scenario format from.
const SCHEMA_FILE: &str = "hybridsim.schema.json";

#[derive(Args)]
pub struct NewArgs {
    /// The file to write
    scenario: PathBuf,
    /// The system it describes
    #[arg(long, value_enum, default_value = "ssd")]
    system: System,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum System {
    /// A hard disk
    Disk,
    /// An SSD in steady state
    Ssd,
    /// A hybrid disk: flash as a write cache in front of a disk
    Hybrid,
    /// A flash cache over a disk
    FlashCache,
    /// RAID 5 over five disks
    Raid5,
}

impl System {
    /// Title, name of the root component, and components.
    const fn parts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Disk => ("Hard disk", "disk", include_str!("disk.toml")),
            Self::Ssd => ("SSD", "ssd", include_str!("ssd.toml")),
            Self::Hybrid => ("Hybrid disk", "hybrid", include_str!("hybrid.toml")),
            Self::FlashCache => ("Flash cache", "cache", include_str!("flash-cache.toml")),
            Self::Raid5 => ("RAID 5", "array", include_str!("raid5.toml")),
        }
    }

    fn text(self) -> String {
        let (title, root, components) = self.parts();
        format!(
            "#:schema ./{SCHEMA_FILE}\n\
             # A scenario: a workload, a host, and the components of a storage system.\n\
             # Run it with `hybridsim run FILE`; `hybridsim explain KEY` explains any key.\n\
             title = {title:?}\n\
             system = {root:?}              # the component the host issues requests to\n\n\
             {WORKLOAD}\n{components}"
        )
    }
}

pub fn new(registry: &Registry, args: &NewArgs) -> Result<(), Failure> {
    let path = &args.scenario;
    write(path, &args.system.text(), args.force)?;
    let schema = serde_json::to_string_pretty(&schema::schema(registry)).expect("JSON prints");
    // Generated, and the same for all scenarios of a folder: an older one is replaced.
    write(&path.with_file_name(SCHEMA_FILE), &schema, true)?;
    note(&format!("{}: run it with `hybridsim run {0}`", path.display()));
    Ok(())
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let shown = path.display();
    if !force && let Err(error) = fs::File::create_new(path) {
        return Err(Failure::usage(match error.kind() {
            ErrorKind::AlreadyExists => format!("{shown} exists; add --force to replace it"),
            _ => format!("cannot write {shown}: {error}"),
        }));
    }
    state::write(path, text.as_bytes()).map_err(|error| {
        if !force {
            drop(fs::remove_file(path));
        }
        Failure::usage(format!("cannot write {shown}: {error}"))
    })
}
