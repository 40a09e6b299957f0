//! The file that lists the points of a sweep with their scenarios, so that each can be run by
//! itself.

use crate::Point;
use hybridsim_config::registry::Registry;
use hybridsim_simulation::scenario::Scenario;
use hybridsim_simulation::scenario::resolve::resolve;
use hybridsim_simulation::state::NewFile;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A valid point of a sweep.
#[derive(Debug, Serialize, Deserialize)]
pub struct Planned {
    /// The point's key in the store.
    pub key: String,
    /// The varied keys with their values, and the seed where the plan sets it.
    pub name: String,
    /// The scenario with every value spelt out.
    pub scenario: String,
}

impl Planned {
    /// The name of the file in the folder of a sweep.
    pub const FILE: &'static str = "scenarios.jsonl";

    /// Writes the valid ones of `points`, whose values are those of `keys`, into `folder`.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub fn write(
        folder: &Path,
        keys: &[&str],
        points: &[Point],
        registry: &Registry,
    ) -> io::Result<()> {
        let new = NewFile::at(&folder.join(Self::FILE));
        let mut file = BufWriter::new(File::create(new.partial())?);
        for point in points {
            let Ok(scenario) = Scenario::check(point.input.clone(), registry) else { continue };
            let values =
                keys.iter().zip(&point.values).map(|(key, value)| format!("{key}={value}"));
            let seed = point.seed.map(|seed| format!("seed {seed}"));
            let name: Vec<String> = values.chain(seed).collect();
            let planned = Self {
                key: point.key.clone(),
                name: name.join(" "),
                scenario: resolve(&scenario, registry),
            };
            serde_json::to_writer(&mut file, &planned)?;
            file.write_all(b"\n")?;
        }
        file.flush()?;
        new.complete()
    }

    /// The points in `folder`.
    ///
    /// # Errors
    /// Fails when the file cannot be read.
    pub fn read(folder: &Path) -> io::Result<Vec<Self>> {
        let text = fs::read_to_string(folder.join(Self::FILE))?;
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }
}
