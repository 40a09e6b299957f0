//! The drive at the start of a calibration, and the preset at its end.

use super::constants::{CONSTANTS, Constant};
use super::seeks::SeekCorrection;
use crate::CalibrateError;
use crate::start::{CalibratedKind, Start};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::param::{EntryChoice, Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_disk::seek::{SeekEntry, SeekModel};
use hybridsim_engine::{Component, SimDuration};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const HARD_DISK: CalibratedKind = CalibratedKind {
    kind: "hard-disk",
    words: "hard disk",
    remedy: "name a preset of `hybridsim list preset` that is one, or a file of `hybridsim import \
             disksim`; for a flash device omit --disk",
};

/// A `hard-disk` with values for all its parameters.
#[derive(Clone, Debug)]
pub struct DiskDrive<'r> {
    /// The name it was requested by.
    pub name: String,
    start: Start<'r>,
    /// Set to end a calibration.
    interrupted: Option<&'r AtomicBool>,
}

impl<'r> DiskDrive<'r> {
    /// The drive `name` stands for: a preset, or a file ending in `.toml` that is one or is a
    /// scenario with a single hard disk, such as the importer writes.
    ///
    /// # Errors
    /// When it is none of these, or is wrong.
    pub fn read(name: &str, registry: &'r Registry) -> Result<Self, CalibrateError> {
        let start = Start::read(name, &HARD_DISK, registry)?;
        Ok(Self { name: name.to_owned(), start, interrupted: None })
    }

    /// The only hard disk of the scenario `source` with paths that start from `base`, to be called
    /// `name`.
    ///
    /// # Errors
    /// As [`DiskDrive::read`].
    pub fn of_scenario(
        name: &str,
        source: SourceText,
        base: &Path,
        registry: &'r Registry,
    ) -> Result<Self, CalibrateError> {
        let start = Start::of_scenario(name, &HARD_DISK, source, base, registry)?;
        Ok(Self { name: name.to_owned(), start, interrupted: None })
    }

    /// The drive, whose calibration ends with an error when `interrupted` is set.
    #[must_use]
    pub fn until(self, interrupted: &'r AtomicBool) -> Self {
        Self { interrupted: Some(interrupted), ..self }
    }

    /// Whether the calibration was interrupted.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted.is_some_and(|it| it.load(Ordering::Relaxed))
    }

    /// `found`, unless the calibration was interrupted meanwhile.
    pub(super) fn unless_interrupted<T>(&self, found: T) -> Result<T, CalibrateError> {
        if self.is_interrupted() { Err(CalibrateError::Interrupted) } else { Ok(found) }
    }

    /// The built drive.
    ///
    /// # Errors
    /// When its parameters do not fit together.
    pub fn build(&self) -> Result<Box<dyn Component>, String> {
        self.start.build("disk")
    }

    /// Values of the constants; `None` where the drive has none.
    pub(super) fn constants(&self) -> Vec<Option<f64>> {
        CONSTANTS.iter().map(|constant| constant.read(&self.start.component.settings)).collect()
    }

    /// Whether response times identify a constant. With a write cache they do not include the
    /// settle time of writes: requests arrive one at a time, so the cache always has space.
    pub(super) fn shows(&self, constant: &Constant) -> bool {
        constant.name != "write_settle" || !self.hides_writes()
    }

    /// The drive with other values of some constants.
    #[must_use]
    pub(super) fn with(&self, values: impl Iterator<Item = (Constant, f64)>) -> Self {
        let mut other = self.clone();
        for (constant, value) in values {
            constant.write(&mut other.start.component.settings, value);
        }
        other
    }

    /// Whether a write cache hides the seeks of writes.
    pub(super) fn hides_writes(&self) -> bool {
        self.start.component.settings.flag("write_cache")
    }

    #[cfg(test)]
    pub(super) fn with_write_cache(&self, cached: bool) -> Self {
        let mut other = self.clone();
        other.start.component.settings.set("write_cache", Value::Flag(cached));
        other
    }

    /// The drive with its seek curve corrected, as a table.
    pub(super) fn with_seeks(&self, correction: &SeekCorrection) -> Self {
        let (cylinders, model) = self.seek_model();
        let table = |write: bool| {
            let point = |distance: u32| {
                let own = if write { model.write_ns(distance) } else { model.read_ns(distance) };
                let share = f64::from(distance) / f64::from(cylinders - 1).max(1.0);
                let ns = own + correction.at(share, write) * 1e6;
                (f64::from(distance), SimDuration::from_ns_f64(ns.max(0.0).round()))
            };
            Value::Curve(distances(cylinders).into_iter().map(point).collect())
        };
        let mut settings = Settings::default().and("points", table(false));
        if model.has_write_curve() || !correction.write_ms.is_empty() {
            settings.set("write_points", table(true));
        }
        let mut other = self.clone();
        let seek = Value::Entry(EntryChoice { name: "table".to_owned(), settings });
        other.start.component.settings.set("seek", seek);
        other
    }

    /// The cylinders and the seek model.
    fn seek_model(&self) -> (u32, Box<dyn SeekModel>) {
        let disk = self.build().expect("the start was built");
        let cylinders = disk.positioner().map_or(1, |it| it.cylinders().max(1));
        let choice = self.start.component.settings.entry("seek");
        let (entry, settings) = self.start.registry.chosen::<SeekEntry>(choice);
        let Ok(model) = (entry.build)(settings, cylinders) else {
            unreachable!("the start was built")
        };
        (cylinders, model)
    }

    /// A turn of its platters.
    pub(super) fn turn(&self) -> SimDuration {
        SimDuration::from_ns_f64(60e9 / self.start.component.settings.number("rpm"))
    }

    /// Whether parameter `key` is written where the drive comes from.
    pub(super) fn writes(&self, key: &str) -> bool {
        self.start.writes(key)
    }

    /// The drive as a preset below the comment `head`; `source` says where a parameter's value
    /// comes from, for those that are not as in the drive's own source.
    pub(super) fn preset(&self, head: &str, source: impl Fn(&str) -> Option<String>) -> String {
        let is_fitted = |key: &str| CONSTANTS.iter().any(|it| it.name == key);
        self.start.preset(head, is_fitted, source)
    }
}

/// Distances of a table that straight lines between them change by less than a log shows.
fn distances(cylinders: u32) -> Vec<u32> {
    const RATIO: f64 = 1.06;
    let last = cylinders.saturating_sub(1).max(1);
    let next = |distance: &u32| {
        let next = (f64::from(*distance) * RATIO).ceil().max(f64::from(*distance) + 1.0) as u32;
        (*distance < last).then_some(next.min(last))
    };
    std::iter::successors(Some(1), next).collect()
}
