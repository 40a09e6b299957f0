//! Seek models: seek time as a function of the distance in cylinders. One file each.
//!
//! A model is a curve. The drive evaluates it once per distance when it is built and stores the
//! times in a table, so a seek costs one load however elaborate the model is.

mod constant;
mod curve;
mod hpl;
mod hpl_plus_10;
mod linear;
mod table;

use hybridsim_config::param::{Built, Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::SimDuration;

/// A seek curve. Head switch and write settling are added by the drive.
pub trait SeekModel {
    /// Nanoseconds to move over `distance` cylinders, at least 1, before a read.
    fn read_ns(&self, distance: u32) -> f64;

    /// Seek time before a write in nanoseconds; the drive's write settle time comes on top.
    fn write_ns(&self, distance: u32) -> f64 {
        self.read_ns(distance)
    }

    /// Whether writes have a curve of their own.
    fn has_write_curve(&self) -> bool {
        false
    }
}

/// A registered seek model.
#[derive(Clone, Copy)]
pub struct SeekEntry {
    pub description: Description,
    /// Builds one from its own parameters, for a drive with so many cylinders.
    pub build: fn(&Settings, u32) -> BuiltModel,
}

/// A seek model, or the problems of its parameters.
pub type BuiltModel = Built<dyn SeekModel>;

hybridsim_config::entry!(SeekEntry, "seek-model");

/// The built-in seek models.
pub const ENTRIES: &[SeekEntry] =
    &[constant::ENTRY, linear::ENTRY, curve::ENTRY, hpl::ENTRY, hpl_plus_10::ENTRY, table::ENTRY];

/// The longest seek a model may give, in nanoseconds: what fits the table.
const SEEK_NS_MAX: f64 = u32::MAX as f64;

/// Every seek time of a drive, by distance.
#[derive(Clone, Debug)]
pub struct SeekTable {
    read: Vec<u32>,
    /// Empty when writes seek as reads do.
    write: Vec<u32>,
}

impl SeekTable {
    /// Asks `model` for every distance on a drive with `cylinders`.
    ///
    /// # Errors
    /// If the model gives a time that is negative, not a number, or beyond four seconds.
    pub fn new(model: &dyn SeekModel, cylinders: u32) -> Result<Self, Vec<Problem>> {
        let read = tabulate("read", cylinders, |distance| model.read_ns(distance))?;
        let write = if model.has_write_curve() {
            tabulate("write", cylinders, |distance| model.write_ns(distance))?
        } else {
            Vec::new()
        };
        Ok(Self { read, write })
    }

    /// The shortest movement over at least each distance, in ns; `change` turns a seek into the
    /// movement before a read (`false`) or a write (`true`). Over no distance it is zero.
    pub fn shortest(&self, change: impl Fn(SimDuration, bool) -> SimDuration) -> Vec<u32> {
        let movement = |distance: usize| {
            let time = |write| change(self.time(distance as u32, write), write).as_ns();
            u32::try_from(time(false).min(time(true))).unwrap_or(u32::MAX)
        };
        let mut shortest: Vec<u32> = (0..self.read.len()).map(movement).collect();
        for at in (1..shortest.len()).rev() {
            shortest[at - 1] = shortest[at - 1].min(shortest[at]);
        }
        shortest[0] = 0;
        shortest
    }

    /// The time over `distance` cylinders, which the drive has.
    #[inline]
    pub fn time(&self, distance: u32, write: bool) -> SimDuration {
        let table = if write && !self.write.is_empty() { &self.write } else { &self.read };
        SimDuration::from_ns(u64::from(table[distance as usize]))
    }
}

fn tabulate(
    what: &str,
    cylinders: u32,
    seek_ns: impl Fn(u32) -> f64,
) -> Result<Vec<u32>, Vec<Problem>> {
    let mut table = Vec::with_capacity(cylinders as usize);
    table.push(0);
    for distance in 1..cylinders {
        let ns = seek_ns(distance).round();
        if !(0.0..=SEEK_NS_MAX).contains(&ns) {
            let message = format!(
                "a {what} seek over {distance} cylinders would take {:.6} ms; the model must give \
                 0 to {:.0} ms at every distance up to {}",
                ns / 1e6,
                SEEK_NS_MAX / 1e6,
                cylinders - 1
            );
            return Err(vec![Problem::new("", message)]);
        }
        table.push(ns as u32);
    }
    Ok(table)
}

/// A read curve and perhaps another for writes: what most models are.
struct Pair<C> {
    read: C,
    write: Option<C>,
}

/// One curve in nanoseconds.
trait Curve {
    fn ns(&self, distance: u32) -> f64;
}

impl<C: Curve> SeekModel for Pair<C> {
    fn read_ns(&self, distance: u32) -> f64 {
        self.read.ns(distance)
    }

    fn write_ns(&self, distance: u32) -> f64 {
        self.write.as_ref().unwrap_or(&self.read).ns(distance)
    }

    fn has_write_curve(&self) -> bool {
        self.write.is_some()
    }
}

#[cfg(test)]
pub(crate) fn times(entry: SeekEntry, settings: &Settings, cylinders: u32) -> SeekTable {
    let model = (entry.build)(settings, cylinders).unwrap_or_else(|_| panic!("a good model"));
    SeekTable::new(&*model, cylinders).expect("good times")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_config::param::Value;

    #[test]
    fn impossible_times_are_refused_with_the_distance() {
        // An average near the full stroke bends the curve below zero at short distances.
        let ms = |ms| Value::Duration(SimDuration::from_ms(ms));
        let settings =
            Settings::default().and("single", ms(10)).and("average", ms(1)).and("full", ms(11));
        let model = (curve::ENTRY.build)(&settings, 1000).unwrap_or_else(|_| panic!());
        let problems = SeekTable::new(&*model, 1000).unwrap_err();
        assert!(problems[0].message.contains("cylinders would take -"), "{}", problems[0]);
    }
}
