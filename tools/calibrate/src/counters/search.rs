//! The search for hidden capacity, block size and collector.

use super::FittedCounter;
use super::amplification::{golden, line, page_us, residual};
use super::drive::{Collector, GIB, Load, PAGE, SaturatedDrive};
use super::series::{CounterSeries, Quantity, Series};
use crate::CalibrateError;
use hybridsim_config::registry::Registry;
use hybridsim_simulation::parallel::{parallel_map, processors};

/// A constant is not identified if all its values keep the distance within this of the least.
const TOLERANCE: f64 = 0.003;
/// Hidden capacities that are tried, as parts of the exported one.
const HIDDEN: (f64, f64) = (1.03, 1.8);
/// The hidden capacity of the start, which stays where the series do not identify it.
const HIDDEN_START: f64 = 1.2;
/// Least and greatest factor by which counters exceed the pages programmed (metadata and parity).
const OVERHEAD: (f64, f64) = (1.0, 1.15);
/// The time of a page copied where rates alone are known, as a multiple of that of a page written:
/// between the ends of [`COPY_TIMES`].
const COPY_TIME: f64 = 1.3;
/// Times of a page copied between which hidden capacity is reported if it is assumed: copies that
/// need no read, and copies that need one each on the Micron 7450 MAX (0.92 programs).
const COPY_TIMES: [f64; 2] = [1.0, 1.9];
/// Steps of the golden section: the range shrinks to 1 % of the capacity.
const STEPS: u32 = 9;
/// A hidden capacity so close to the ends of [`HIDDEN`] is not between them.
const HIDDEN_NEAR: f64 = 0.015;
/// First step from the fitted hidden capacity to the ends of its range.
const RANGE_STEP: f64 = 0.005;
/// Blocks of the exported capacity that are tried: powers of two.
const BLOCKS: std::ops::RangeInclusive<i32> = 6..=12;
/// Powers of the age that are tried; with 0 the choice is greedy.
const EXPONENTS: [f64; 9] = [0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0];
/// Rounds in which all constants are fitted in turn.
const ROUNDS: u32 = 2;

/// The name of the constant.
pub const COLLECTOR: &str = "collector and its age_exponent";
/// The power of the age that comes closest to that of the Solidigm D7-P5520, which separates.
pub const SEPARATES: f64 = 0.15;
/// A load that shows the collector: 60 % of the data are static, the others written four times.
const STATIC: (Load, f64, f64) = (Load::Hot { pages: 0.4, writes: 1.0 }, 1.0, 4.0);

/// A drive of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterPoint {
    /// Hidden capacity as a part of the exported one.
    pub hidden: f64,
    pub block_gib: f64,
    /// Power of the age; 0 is greedy.
    pub exponent: f64,
}

/// A point, and the write amplification simulated there, series by series.
type TriedPoint = (CounterPoint, Vec<f64>);

/// The series to fit to, and what was simulated of them.
pub struct Search<'a> {
    registry: &'a Registry,
    all: &'a CounterSeries,
    wanted: Vec<&'a Series>,
    scale: f64,
    blocks_gib: Vec<f64>,
    /// The time of a page copied, as a multiple of that of a page written, where rates alone are
    /// known.
    copy_time: f64,
    tried: Vec<TriedPoint>,
}

impl<'a> Search<'a> {
    /// A search on a drive of about so many `pages`.
    pub fn new(
        registry: &'a Registry,
        all: &'a CounterSeries,
        wanted: Vec<&'a Series>,
        pages: f64,
    ) -> Self {
        let scale = (all.user_gib * GIB / PAGE / pages).round().max(1.0);
        let block = |power: i32| libm::exp2(libm::log2(all.user_gib).round() - f64::from(power));
        let blocks_gib = BLOCKS.rev().map(block).collect();
        let copy_time = all.copy_time.unwrap_or(COPY_TIME);
        Self { registry, all, wanted, scale, blocks_gib, copy_time, tried: Vec::new() }
    }

    /// The drive at `point`, with times of pages that do not matter.
    pub fn drive(&self, point: CounterPoint) -> SaturatedDrive {
        let CounterPoint { hidden, block_gib, exponent } = point;
        SaturatedDrive {
            user_gib: self.all.user_gib,
            hidden_gib: hidden * self.all.user_gib,
            block_gib,
            program_us: 3.0,
            read_us: 1.0,
            read_pages: 1,
            scale: self.scale,
            collector: match exponent > 0.0 {
                true => Collector::CostBenefit(exponent),
                false => Collector::Greedy,
            },
        }
    }

    /// The write amplification of the drive at `point` under `series`, in the part that counts.
    pub fn simulate(
        &self,
        point: CounterPoint,
        series: &[&Series],
    ) -> Result<Vec<f64>, CalibrateError> {
        let drive = self.drive(point);
        let one = |series: &Series| {
            let ran = drive.simulate(
                self.registry,
                &series.name,
                (series.load, series.span, series.writes),
            )?;
            Ok(ran.amplification_between(series.window.part))
        };
        let ran = parallel_map(series.to_vec(), processors(), one, |_, _| {});
        ran.into_iter().collect()
    }

    fn simulated(&mut self, point: CounterPoint) -> Result<Vec<f64>, CalibrateError> {
        if let Some((_, known)) = self.tried.iter().find(|(tried, _)| *tried == point) {
            return Ok(known.clone());
        }
        let ran = self.simulate(point, &self.wanted)?;
        self.tried.push((point, ran.clone()));
        Ok(ran)
    }

    /// The time of a page written by the rates of the host, with `ours` as write amplification, and
    /// the root mean square of the logarithmic errors that are left.
    fn program_by_rates(&self, ours: &[f64]) -> (f64, f64) {
        let measured = self.wanted.iter().map(|one| page_us(one.window.host_mb_s));
        let programs = ours.iter().map(|ours| 1.0 + self.copy_time * (ours - 1.0));
        let (measured, programs): (Vec<f64>, Vec<f64>) = measured.zip(programs).unzip();
        residual(&measured, &programs, (0.0, f64::INFINITY))
    }

    /// The factor of the counter, and the distance: the root mean square of the logarithmic errors,
    /// of write amplification or, where it was not counted, of the rate of the host.
    fn judged(&mut self, point: CounterPoint) -> Result<(f64, f64), CalibrateError> {
        if !self.drive(point).has_spare_blocks() {
            return Ok((f64::NAN, f64::INFINITY));
        }
        let ours = self.simulated(point)?;
        if self.all.quantity() == Quantity::HostRate {
            return Ok((1.0, self.program_by_rates(&ours).1));
        }
        let theirs: Vec<f64> =
            self.wanted.iter().filter_map(|one| one.window.amplification).collect();
        Ok(residual(&theirs, &ours, self.all.media_overhead.map_or(OVERHEAD, |it| (it, it))))
    }

    fn distance(&mut self, point: CounterPoint) -> Result<f64, CalibrateError> {
        Ok(self.judged(point)?.1)
    }

    /// The factor by which the counter exceeds the pages programmed, at `point`.
    pub fn counter(&mut self, point: CounterPoint) -> Result<f64, CalibrateError> {
        Ok(self.judged(point)?.0)
    }

    /// The times of a page written and of a page copied that give the rates of the host; `None`
    /// where they do not show.
    pub fn times(&mut self, point: CounterPoint) -> Result<Option<(f64, f64)>, CalibrateError> {
        let ours = self.simulated(point)?;
        if self.all.quantity() == Quantity::HostRate {
            let (program, _) = self.program_by_rates(&ours);
            return Ok(Some((program, self.copy_time * program)));
        }
        let both = self.wanted.iter().zip(ours);
        let points: Vec<(f64, f64)> =
            both.map(|(one, ours)| (ours - 1.0, page_us(one.window.host_mb_s))).collect();
        let (program, copy) = line(&points);
        // A page copied is a page written, and read before, which takes some time.
        Ok((program > 0.0 && copy > program && copy.is_finite()).then_some((program, copy)))
    }

    /// The best of the points `at` some `values`, with the distances at all of them.
    fn scan(
        &mut self,
        values: &[f64],
        at: impl Fn(f64) -> CounterPoint,
    ) -> Result<(CounterPoint, Vec<f64>), CalibrateError> {
        let distances =
            values.iter().map(|value| self.distance(at(*value))).collect::<Result<Vec<_>, _>>()?;
        let least = (0..values.len()).min_by(|a, b| distances[*a].total_cmp(&distances[*b]));
        Ok((at(values[least.unwrap_or(0)]), distances))
    }

    /// The best drive, and its constants with their ranges.
    pub fn run(&mut self) -> Result<(CounterPoint, Vec<FittedCounter>), CalibrateError> {
        let blocks_gib = self.blocks_gib.clone();
        // Without static data another hidden capacity makes up for another collector.
        let is_static = |one: &&Series| matches!(one.load, Load::Hot { .. });
        let exponents = if self.wanted.iter().any(is_static) { &EXPONENTS[..] } else { &[0.0] };
        let start = blocks_gib[blocks_gib.len() / 2];
        let mut point = CounterPoint { hidden: HIDDEN_START, block_gib: start, exponent: 0.0 };
        for _ in 0..ROUNDS {
            point.hidden =
                golden(HIDDEN, STEPS, |hidden| self.distance(CounterPoint { hidden, ..point }))?;
            point = self.scan(&blocks_gib, |block_gib| CounterPoint { block_gib, ..point })?.0;
            point = self.scan(exponents, |exponent| CounterPoint { exponent, ..point })?.0;
        }
        // What is not identified is put back, and no longer moves the others.
        let of_blocks = |point: CounterPoint| move |block_gib| CounterPoint { block_gib, ..point };
        let of_exponents = |point: CounterPoint| move |exponent| CounterPoint { exponent, ..point };
        point = self.scan(&blocks_gib, of_blocks(point))?.0;
        if self.within(&blocks_gib, point.block_gib, of_blocks(point))?.len() == blocks_gib.len() {
            point.block_gib = start;
        }
        point = self.scan(exponents, of_exponents(point))?.0;
        if self.within(exponents, point.exponent, of_exponents(point))?.len() == exponents.len() {
            point.exponent = 0.0;
        }
        point.hidden =
            golden(HIDDEN, STEPS, |hidden| self.distance(CounterPoint { hidden, ..point }))?;
        let hidden = self.hidden_range(point)?;
        let hidden = self.widened_by_copy_time(point, hidden)?;
        if hidden == HIDDEN {
            point.hidden = HIDDEN_START;
        }
        let blocks = self.within(&blocks_gib, point.block_gib, of_blocks(point))?;
        let near = self.within(exponents, point.exponent, of_exponents(point))?;
        let near = if near.len() == exponents.len() { EXPONENTS.to_vec() } else { near };
        let counter = self.counter(point)?;
        Ok((point, self.constants(point, (hidden, &blocks, &near), counter)))
    }

    /// Write amplification with static data of the drive at `point`, which is greedy, and of one
    /// that separates, with the hidden capacity that then comes closest.
    pub fn by_collector(&mut self, point: CounterPoint) -> Result<[f64; 2], CalibrateError> {
        let other = CounterPoint { exponent: SEPARATES, ..point };
        let hidden =
            golden(HIDDEN, STEPS, |hidden| self.distance(CounterPoint { hidden, ..other }))?;
        let under = |point: CounterPoint| {
            let ran = self.drive(point).simulate(self.registry, "static data", STATIC);
            ran.map(|outcome| outcome.amplification)
        };
        Ok([under(point)?, under(CounterPoint { hidden, ..other })?])
    }

    /// The neighbours of `value` among `values` whose distance is within [`TOLERANCE`] of its own.
    fn within(
        &mut self,
        values: &[f64],
        value: f64,
        at: impl Fn(f64) -> CounterPoint,
    ) -> Result<Vec<f64>, CalibrateError> {
        let (_, distances) = self.scan(values, at)?;
        let fitted = values.iter().position(|it| *it == value).unwrap_or(0);
        let is_near = |at: &usize| distances[*at] <= distances[fitted] + TOLERANCE;
        let from = (0..=fitted).rev().take_while(is_near).last().unwrap_or(fitted);
        let to = (fitted..values.len()).take_while(is_near).last().unwrap_or(fitted);
        Ok(values[from..=to].to_vec())
    }

    /// Constants at the ends of the values tried.
    pub fn limits(&mut self, point: CounterPoint) -> Result<Vec<&'static str>, CalibrateError> {
        let counter = self.counter(point)?;
        let is_near = |value: f64, range: (f64, f64), near: f64| {
            value <= range.0 + near || value >= range.1 - near
        };
        let hidden = is_near(point.hidden, HIDDEN, HIDDEN_NEAR).then_some("hidden capacity");
        let is_fitted =
            self.all.media_overhead.is_none() && self.all.quantity() != Quantity::HostRate;
        let overhead = is_fitted && is_near(counter, OVERHEAD, 0.0);
        Ok(hidden.into_iter().chain(overhead.then_some("media_overhead")).collect())
    }

    /// The hidden capacities around that of `point` within [`TOLERANCE`] of its distance.
    fn hidden_range(&mut self, point: CounterPoint) -> Result<(f64, f64), CalibrateError> {
        let most = self.distance(point)? + TOLERANCE;
        let mut ends = [point.hidden; 2];
        for (end, sign) in ends.iter_mut().zip([-1.0, 1.0]) {
            let mut step = RANGE_STEP;
            loop {
                let hidden = (point.hidden + sign * step).clamp(HIDDEN.0, HIDDEN.1);
                if self.distance(CounterPoint { hidden, ..point })? > most {
                    break;
                }
                *end = hidden;
                if hidden == HIDDEN.0 || hidden == HIDDEN.1 {
                    break;
                }
                step *= 1.5;
            }
        }
        Ok((ends[0], ends[1]))
    }

    /// `range` with those of other times of a page copied, if its time is assumed.
    fn widened_by_copy_time(
        &mut self,
        point: CounterPoint,
        range: (f64, f64),
    ) -> Result<(f64, f64), CalibrateError> {
        if !self.assumes_copy_time() || range == HIDDEN {
            return Ok(range);
        }
        let (mut low, mut high) = range;
        let assumed = self.copy_time;
        for copy_time in COPY_TIMES {
            self.copy_time = copy_time;
            let hidden =
                golden(HIDDEN, STEPS, |hidden| self.distance(CounterPoint { hidden, ..point }))?;
            let of_time = self.hidden_range(CounterPoint { hidden, ..point })?;
            (low, high) = (low.min(of_time.0), high.max(of_time.1));
        }
        self.copy_time = assumed;
        Ok((low, high))
    }

    fn assumes_copy_time(&self) -> bool {
        self.all.quantity() == Quantity::HostRate && self.all.copy_time.is_none()
    }

    fn constants(
        &self,
        point: CounterPoint,
        (hidden, blocks, exponents): ((f64, f64), &[f64], &[f64]),
        counter: f64,
    ) -> Vec<FittedCounter> {
        let collector = |exponent: f64| match exponent > 0.0 {
            true => format!("cost-benefit {exponent:.2}"),
            false => "greedy".to_owned(),
        };
        let between = |values: &[f64], words: &dyn Fn(f64) -> String| match values {
            [only] => format!("{}, of the values tried", words(*only)),
            [first, .., last] => format!("{} to {}", words(*first), words(*last)),
            [] => String::new(),
        };
        let gib = |gib: f64| format!("{gib} GiB");
        let spare = |hidden: f64| format!("{:.3}", hidden - 1.0);
        let whole = |hidden: f64| format!("{:.0}", hidden * self.all.user_gib);
        let copies = match self.assumes_copy_time() {
            true => {
                format!(", if a copy takes {} to {} times a write", COPY_TIMES[0], COPY_TIMES[1])
            }
            false => String::new(),
        };
        let hidden_range = |words: &dyn Fn(f64) -> String| match hidden {
            HIDDEN => None,
            (low, high) if low == HIDDEN.0 => Some(format!("at most {}{copies}", words(high))),
            (low, high) if high == HIDDEN.1 => Some(format!("at least {}{copies}", words(low))),
            (low, high) => Some(format!("{} to {}{copies}", words(low), words(high))),
        };
        let one_load = self.wanted.len() < 2 && self.all.media_overhead.is_none();
        let mut constants = vec![
            FittedCounter {
                name: "hidden capacity, GiB",
                value: whole(point.hidden),
                range: hidden_range(&whole),
            },
            FittedCounter {
                name: "over_provisioning",
                value: spare(point.hidden),
                range: hidden_range(&spare),
            },
            FittedCounter {
                name: "size of blocks collected as one",
                value: gib(point.block_gib),
                range: (blocks.len() < self.blocks_gib.len()).then(|| between(blocks, &gib)),
            },
            FittedCounter {
                name: COLLECTOR,
                value: collector(point.exponent),
                range: (exponents.len() < EXPONENTS.len()).then(|| between(exponents, &collector)),
            },
        ];
        if self.all.quantity() == Quantity::HostRate {
            constants.push(FittedCounter {
                name: "copy_time, relative to a page written",
                value: self.copy_time.to_string(),
                range: self.all.copy_time.map(|_| "as given".to_owned()),
            });
        } else {
            constants.push(FittedCounter {
                name: "media_overhead of the counter",
                value: format!("{counter:.3}"),
                range: match self.all.media_overhead {
                    Some(_) => Some("as given".to_owned()),
                    None if one_load => {
                        Some("what one series leaves: give media_overhead".to_owned())
                    }
                    None => Some("the mean of the series fitted to".to_owned()),
                },
            });
        }
        constants
    }
}
