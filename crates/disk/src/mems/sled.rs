//! The sled: a medium on springs under thousands of fixed tips, moved in two directions.
//!
//! Along X the sled seeks and settles; along Y it moves at the speed of access while the active
//! tips read or write in parallel. Both actuators give full force one way and then the other, the
//! springs pull to the middle; the two halves of such a move are arcs of a harmonic motion, whose
//! times are exact.

use hybridsim_config::param::Kind;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{Lba, Request, SimDuration, SimTime};
use serde::{Deserialize, Serialize};

/// Most sectors a sled may have.
const SECTORS_MAX: u64 = 1 << 50;

const BITS: Kind = Kind::Count { min: 1, max: 1 << 20 };

hybridsim_config::params! {
    /// The medium, the tips and the actuators of a sled.
    pub(super) struct SledParameters {
        bits_x: u32 = BITS, default "2500", "Bits each tip covers along X: the cylinders.";
        bits_y: u32 = BITS, default "2500",
            "Bits each tip covers along Y, the direction of access.";
        bit_nm: f64 = Kind::Number { min: 1.0, max: 10_000.0 }, default "40",
            "Distance between bits, in nanometres.";
        tips: u32 = BITS, default "6400", "Probe tips.";
        active_tips: u32 = BITS, default "1280", "Tips that work at a time.";
        tips_per_sector: u32 = BITS, default "64", "Tips over which a sector is striped.";
        tip_sector_bits: u32 = BITS, default "80", "Bits of a sector under one tip.";
        servo_bits: u32 = BITS, default "10", "Servo bits before them.";
        tip_bits_per_s: f64 = Kind::Number { min: 1.0, max: 1e12 }, default "700000",
            "Bits per second each tip reads or writes.";
        acceleration_m_per_s2: f64 = Kind::Number { min: 0.001, max: 1e9 }, default "803.6",
            "Acceleration of the sled by its actuators.";
        spring_factor: f64 = Kind::Number { min: 0.0, max: 0.99 }, default "0.75",
            "Force of the springs at full displacement, as a part of the actuators' force.";
        pub(super) settle: SimDuration = Kind::Duration, default "\"215us\"",
            "Time to settle after moving along X: one time constant of a sled resonant at 739 Hz.";
    }
}

/// The position of the sled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SledPosition {
    /// Bit along X.
    pub x: u32,
    /// Group of tips in use.
    pub track: u32,
    /// Rows of tip sectors passed along Y, from the lower edge.
    pub row: u32,
    /// Whether the sled moves to higher rows.
    pub up: bool,
}

/// Times of reaching and transferring a run of sectors.
#[derive(Clone, Copy, Debug)]
pub struct Motion {
    /// Bits crossed along X to the first sector.
    pub distance: u32,
    /// All movement and settling.
    pub seek: SimDuration,
    /// Rows passing under the tips.
    pub transfer: SimDuration,
    /// Position of the sled afterwards.
    pub last: SledPosition,
}

/// A sled, with what follows from its description.
#[derive(Clone, Debug)]
pub struct Sled {
    spec: SledParameters,
    tracks: u32,
    rows: u32,
    row_sectors: u32,
    capacity: u64,
    /// Speed along Y during access, m/s.
    speed: f64,
    row_time: SimDuration,
}

impl Sled {
    /// A sled with these parameters; `None` if it holds no sector, or more than 2^50.
    pub(super) fn new(spec: SledParameters) -> Option<Self> {
        let row_bits = spec.tip_sector_bits + spec.servo_bits;
        let tracks = spec.tips / spec.active_tips;
        let rows = spec.bits_y / row_bits;
        let row_sectors = spec.active_tips / spec.tips_per_sector;
        let sides = [spec.bits_x, tracks, rows, row_sectors].map(u64::from);
        let capacity = sides.into_iter().try_fold(1, u64::checked_mul)?;
        let row_ns = f64::from(row_bits) / spec.tip_bits_per_s * 1e9;
        let row_time = SimDuration::from_ns_f64(row_ns.max(1.0));
        let speed = spec.tip_bits_per_s * (spec.bit_nm * 1e-9);
        (1..=SECTORS_MAX).contains(&capacity).then_some(Self {
            spec,
            tracks,
            rows,
            row_sectors,
            capacity,
            speed,
            row_time,
        })
    }

    fn bit_m(&self) -> f64 {
        self.spec.bit_nm * 1e-9
    }

    /// Sectors.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes per second of a long run, turning round included not.
    pub fn bytes_per_s(&self) -> f64 {
        f64::from(self.row_sectors) * 512e9 / self.row_time.as_ns() as f64
    }

    /// Position of the first bit of `lba`. Every other track runs downwards, so that the next one
    /// begins where the last one ended.
    pub fn locate(&self, lba: u64) -> SledPosition {
        let lba = lba.min(self.capacity - 1);
        let per_track = u64::from(self.rows) * u64::from(self.row_sectors);
        let (number, sector) = (lba / per_track, lba % per_track);
        let (x, track) = (number / u64::from(self.tracks), number % u64::from(self.tracks));
        let row = (sector / u64::from(self.row_sectors)) as u32;
        let up = number % 2 == 0;
        // Downwards a row begins at its upper edge.
        let row = if up { row } else { self.rows - row };
        SledPosition { x: x as u32, track: track as u32, row, up }
    }

    /// Time from rest at `from` to rest at `to`, both in metres from the middle.
    fn rest_to_rest(&self, from: f64, to: f64, reach: f64) -> f64 {
        // Moving the other way is the mirror image.
        let (from, to) = if from <= to { (from, to) } else { (-from, -to) };
        let a = self.spec.acceleration_m_per_s2;
        let spring = self.spec.spring_factor * a / reach;
        if to - from <= 0.0 {
            return 0.0;
        }
        if spring * reach < 1e-9 * a {
            return 2.0 * ((to - from) / a).sqrt();
        }
        let omega = spring.sqrt();
        let centre = a / spring;
        // Where the force turns round: what the first half gains in energy the second one takes.
        let turn = (from + to) / 2.0 + spring * (to * to - from * from) / (4.0 * a);
        let arc = |cosine: f64| libm::acos(cosine.clamp(-1.0, 1.0)) / omega;
        arc((turn - centre) / (from - centre)) + arc((turn + centre) / (to + centre))
    }

    /// Metres from the middle of `bits` along a side of `all` bits.
    fn metres(&self, bits: f64, all: u32) -> f64 {
        (bits - f64::from(all) / 2.0) * self.bit_m()
    }

    /// Time to move along X, settling included.
    fn seek_x(&self, from: u32, to: u32) -> SimDuration {
        if from == to {
            return SimDuration::ZERO;
        }
        let all = self.spec.bits_x;
        let reach = f64::from(all) / 2.0 * self.bit_m();
        let [from, to] = [from, to].map(|bit| self.metres(f64::from(bit) + 0.5, all));
        let time = self.rest_to_rest(from, to, reach);
        SimDuration::from_ns_f64(time * 1e9) + self.spec.settle
    }

    /// Time to come to row edge `to.row` along Y at the speed of access in its direction.
    fn seek_y(&self, from: SledPosition, to: SledPosition) -> SimDuration {
        if (from.row, from.up) == (to.row, to.up) {
            return SimDuration::ZERO;
        }
        let all = self.spec.bits_y;
        let reach = f64::from(all) / 2.0 * self.bit_m();
        let row = f64::from(self.spec.tip_sector_bits + self.spec.servo_bits);
        let edge = |position: SledPosition| self.metres(f64::from(position.row) * row, all);
        let direction = |position: SledPosition| if position.up { 1.0 } else { -1.0 };
        // Braking takes the sled a little further, and it starts from a little before; at speeds
        // of access both are a fraction of a micrometre, where the springs pull evenly.
        let pull = |at: f64, way: f64| {
            let share = (self.spec.spring_factor * at / reach * way).clamp(-0.99, 0.99);
            (
                self.spec.acceleration_m_per_s2 * (1.0 + share),
                self.spec.acceleration_m_per_s2 * (1.0 - share),
            )
        };
        let (brake, _) = pull(edge(from), direction(from));
        let (_, start) = pull(edge(to), direction(to));
        let half = self.speed * self.speed / 2.0;
        let rest = edge(from) + direction(from) * half / brake;
        let run_up = edge(to) - direction(to) * half / start;
        let moving = self.rest_to_rest(rest, run_up, reach);
        let time = self.speed / brake + moving + self.speed / start;
        let coast = (edge(to) - edge(from)) * direction(from) / self.speed;
        let coasts = from.up == to.up && coast >= 0.0;
        let time = if coasts { time.min(coast) } else { time };
        SimDuration::from_ns_f64(time * 1e9)
    }

    /// Time until the tips are at `to`, ready to work.
    pub fn seek(&self, from: SledPosition, to: SledPosition) -> SimDuration {
        self.seek_x(from.x, to.x).max(self.seek_y(from, to))
    }

    /// Moves `sectors` sectors from `lba` on, the sled leaving `from`. The run must lie within it.
    pub fn access(&self, from: SledPosition, lba: u64, sectors: u32) -> Motion {
        let first = self.locate(lba);
        let mut motion = Motion {
            distance: from.x.abs_diff(first.x),
            seek: SimDuration::ZERO,
            transfer: SimDuration::ZERO,
            last: from,
        };
        let (mut lba, end) = (lba, lba + u64::from(sectors));
        let per_track = u64::from(self.rows) * u64::from(self.row_sectors);
        while lba < end {
            let position = self.locate(lba);
            let track_end = (lba / per_track + 1) * per_track;
            let until = end.min(track_end);
            let row = u64::from(self.row_sectors);
            let rows = ((until - 1) / row - lba / row + 1) as u32;
            motion.seek += self.seek(motion.last, position);
            motion.transfer += self.row_time * u64::from(rows);
            let row = if position.up { position.row + rows } else { position.row - rows };
            motion.last = SledPosition { row, ..position };
            lba = until;
        }
        motion
    }
}

impl Positioner for Sled {
    fn positioning(&self, _now: SimTime, last: Lba, to: &Request) -> SimDuration {
        let behind = self.locate(last.0.saturating_sub(1));
        let row = if behind.up { behind.row + 1 } else { behind.row - 1 };
        self.seek(SledPosition { row, ..behind }, self.locate(to.lba.0))
    }

    fn cylinder(&self, lba: Lba) -> u32 {
        self.locate(lba.0).x
    }
}

#[cfg(test)]
pub(super) fn first_generation() -> Sled {
    Sled::new(SledParameters {
        bits_x: 2500,
        bits_y: 2500,
        bit_nm: 40.0,
        tips: 6400,
        active_tips: 1280,
        tips_per_sector: 64,
        tip_sector_bits: 80,
        servo_bits: 10,
        tip_bits_per_s: 700e3,
        acceleration_m_per_s2: 803.6,
        spring_factor: 0.75,
        settle: SimDuration::from_us(215),
    })
    .expect("a good sled")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn capacity_and_rate_are_those_published() {
        let sled = first_generation();
        assert_eq!(sled.capacity(), 2500 * 5 * 27 * 20);
        // 1280 tips of 700 kbit/s, 80 of 90 bits no servo, 64 of 80 data: 79.6 MB/s.
        assert!((sled.bytes_per_s() / 79.6e6 - 1.0).abs() < 0.001, "{}", sled.bytes_per_s());
    }

    /// The closed form against the equation of motion, stepped.
    #[test]
    fn a_seek_takes_what_the_equation_of_motion_says() {
        let sled = first_generation();
        let reach = 50e-6;
        for (from, to) in [(-50e-6, 50e-6), (-10e-6, 40e-6), (45e-6, 49e-6), (30e-6, -5e-6)] {
            let expected = sled.rest_to_rest(from, to, reach);
            let (from, to): (f64, f64) = if from < to { (from, to) } else { (-from, -to) };
            let (a, k) = (803.6, 0.75 * 803.6 / reach);
            let turn = (from + to) / 2.0 + k * (to * to - from * from) / (4.0 * a);
            let (mut x, mut v, mut t, step) = (from, 0.0, 0.0, 1e-9);
            loop {
                let force = if x < turn { a } else { -a };
                v += (force - k * x) * step;
                x += v * step;
                t += step;
                if v <= 0.0 {
                    break;
                }
            }
            assert!((x - to).abs() < 2e-8, "ends at {x}, not {to}");
            assert!((t / expected - 1.0).abs() < 2e-3, "{t} {expected}");
        }
    }

    #[test]
    fn without_springs_a_seek_is_two_parabolas() {
        let mut sled = first_generation();
        sled.spec.spring_factor = 0.0;
        let time = sled.rest_to_rest(-20e-6, 20e-6, 50e-6);
        assert!((time - 2.0 * (40e-6f64 / 803.6).sqrt()).abs() < 1e-9);
    }

    proptest! {
        /// Every sector has its own row and group, and a run of sectors is as long as its rows.
        #[test]
        fn a_long_run_takes_its_rows_and_turns(lba in 0u64..6_000_000, sectors in 1u32..5_000) {
            let sled = first_generation();
            let motion = sled.access(sled.locate(lba), lba, sectors);
            let rows = u64::from(sectors).div_ceil(20);
            let time = sled.row_time;
            prop_assert!(motion.transfer >= time * rows && motion.transfer <= time * (rows + 1));
            prop_assert!(motion.last.row <= sled.rows);
            let tracks = (lba % 540 + u64::from(sectors) - 1) / 540;
            prop_assert!(motion.seek <= SimDuration::from_us(900) * tracks);
        }

        #[test]
        fn a_seek_is_at_most_some_milliseconds(a in 0u64..6_750_000, b in 0u64..6_750_000) {
            let sled = first_generation();
            let time = sled.seek(sled.locate(a), sled.locate(b));
            prop_assert!(time < SimDuration::from_ms(3), "{time}");
        }
    }
}
