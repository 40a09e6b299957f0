//! Drives: their flash in reclaim units, rates, rated endurance and price.

use hybridsim_config::units;
use serde::{Deserialize, Serialize};

const STANDARD: &str = include_str!("drives.toml");

/// A table of drives.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drives {
    pub currency: String,
    pub drive: Vec<Drive>,
}

/// A drive on sale.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    pub name: String,
    /// The preset or page whose constants it has.
    #[serde(default)]
    pub like: String,
    capacity: String,
    read_rate: String,
    write_rate: String,
    /// Reclaim units: blocks that are collected as one.
    pub units: u32,
    /// Flash beyond the capacity, as a share of it.
    pub spare: f64,
    /// Placement handles; 0 without flexible data placement.
    #[serde(default)]
    pub handles: u8,
    /// Whether what collection copies goes to units of its own.
    #[serde(default)]
    pub separate_copies: bool,
    /// Rated endurance: capacities written per day of the warranty.
    pub dwpd: f64,
    pub warranty_years: f64,
    /// Program/erase cycles that the flash endures.
    pub cycles: f64,
    price: f64,
    /// Equal drives that are striped.
    #[serde(skip, default = "one")]
    pub count: u32,
}

const fn one() -> u32 {
    1
}

impl Drives {
    /// The table that ships with the program.
    ///
    /// # Panics
    /// Never: a test reads it.
    pub fn standard() -> Self {
        Self::parse(STANDARD).expect("the table is tested")
    }

    /// Reads a table.
    ///
    /// # Errors
    /// A sentence that names the wrong entry.
    pub fn parse(text: &str) -> Result<Self, String> {
        let drives: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for (at, drive) in drives.drive.iter().enumerate() {
            let of = |message: String| format!("drive `{}`: {message}", drive.name);
            if drives.drive[..at].iter().any(|other| other.name == drive.name) {
                return Err(of("the name is taken".to_owned()));
            }
            drive.check().map_err(of)?;
        }
        match drives.drive.is_empty() {
            true => Err("there is no [[drive]]".to_owned()),
            false => Ok(drives),
        }
    }
}

impl Drive {
    fn check(&self) -> Result<(), String> {
        let positive = [
            ("dwpd", self.dwpd),
            ("warranty_years", self.warranty_years),
            ("cycles", self.cycles),
            ("price", self.price),
        ];
        for (key, value) in positive {
            if !(value > 0.0 && value.is_finite()) {
                return Err(format!("`{key}` is {value}; it must be more than 0"));
            }
        }
        if !(0.01..=2.0).contains(&self.spare) {
            return Err(format!("`spare` is {}; it must be 0.01 to 2", self.spare));
        }
        if !(16..=1 << 16).contains(&self.units) {
            return Err(format!("`units` is {}; it must be 16 to 65536", self.units));
        }
        let least = u32::from(self.handles) + 8;
        if f64::from(self.units) * self.spare / (1.0 + self.spare) < f64::from(least) {
            return Err(format!("`spare` leaves fewer than {least} of its `units` free"));
        }
        if units::bytes(&self.capacity)? < 1 << 30 {
            return Err("`capacity` is less than 1 GiB".to_owned());
        }
        for (key, rate) in [("read_rate", &self.read_rate), ("write_rate", &self.write_rate)] {
            if units::rate(rate)? < 1 << 20 {
                return Err(format!("`{key}` is less than 1 MiB/s"));
            }
        }
        Ok(())
    }

    /// So many of these drives, striped.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self { count, ..self }
    }

    /// Bytes offered to the host, of all drives.
    pub fn capacity(&self) -> u64 {
        units::bytes(&self.capacity).unwrap_or(0) * u64::from(self.count)
    }

    /// Sequential rates in bytes per second, of all drives: reads, writes.
    pub fn rates(&self) -> [f64; 2] {
        let rate = |text: &String| units::rate(text).unwrap_or(1) as f64 * f64::from(self.count);
        [&self.read_rate, &self.write_rate].map(rate)
    }

    /// Price of all drives.
    pub fn price(&self) -> f64 {
        self.price * f64::from(self.count)
    }

    /// Bytes of a reclaim unit, of all drives together.
    pub fn unit_bytes(&self) -> f64 {
        self.capacity() as f64 * (1.0 + self.spare) / f64::from(self.units)
    }

    /// Bytes that the host may write by the rating.
    pub fn rated_bytes(&self) -> f64 {
        self.dwpd * 365.25 * self.warranty_years * self.capacity() as f64
    }

    /// Bytes that the flash endures.
    pub fn flash_bytes(&self) -> f64 {
        self.cycles * self.unit_bytes() * f64::from(self.units)
    }

    /// The scenario of the drive, scaled so that a page stands for `page_bytes`: one plane whose
    /// blocks are the reclaim units. Programs and reads take as long as a page takes at the
    /// sequential rate.
    pub fn scenario(&self, page_bytes: f64, handles: u8) -> String {
        let pages = (self.unit_bytes() / page_bytes).round().max(1.0);
        let [read, write] = self.rates().map(|rate| page_bytes / rate * 1e9);
        let placement = match handles {
            0 | 1 => String::new(),
            count => format!(
                "placement = {{ kind = \"handles\", handles = {count}, isolation = \
                 \"persistently\" }}\n"
            ),
        };
        format!(
            "[host]\nqueue_depth = 4096\n\
             [component.ssd]\nkind = \"ssd\"\ntiming = \"serial\"\nchannels = 1\n\
             dies_per_channel = 1\nplanes_per_die = 1\nblocks_per_plane = {}\n\
             pages_per_block = {pages}\npage_size = \"4KiB\"\nover_provisioning = {}\n\
             endurance = 1000000\nread_time = \"{read:.0}ns\"\nprogram_time = \"{write:.0}ns\"\n\
             erase_time = \"1ns\"\nprecondition = \"fill\"\n\
             [component.ssd.ftl]\nkind = \"page\"\ngc = \"greedy\"\ngc_pace = \"blocking\"\n\
             gc_free_blocks = 1\ngc_separate = {}\n{placement}",
            self.units, self.spare, self.separate_copies
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_table_is_read_and_others_are_checked() {
        let standard = Drives::standard();
        assert_eq!(standard.drive.len(), 3);
        let change = |from: &str, to: &str| Drives::parse(&STANDARD.replacen(from, to, 1));
        let cases = [
            ("dwpd = 1 ", "dwpd = 0 ", "more than 0"),
            ("fdp-tlc-7.68tb", "tlc-7.68tb", "taken"),
            ("spare = 0.21 ", "spare = 0.01 ", "free"),
            ("\"7.68TB\"", "\"7.68\"", "7.68"),
            ("units = 541", "unit = 541", "unit"),
        ];
        for (from, to, expect) in cases {
            let error = change(from, to).expect_err(to);
            assert!(error.contains(expect), "{to}: {error}");
        }
    }

    #[test]
    fn endurance_is_in_bytes() {
        let drive = &Drives::standard().drive[0];
        assert!((drive.rated_bytes() / 14.03e15 - 1.0).abs() < 0.01, "{}", drive.rated_bytes());
        let four = Drive { count: 4, ..drive.clone() };
        assert_eq!(four.rated_bytes(), 4.0 * drive.rated_bytes());
        assert_eq!((four.price(), four.rates()[0]), (4.0 * drive.price(), 4.0 * drive.rates()[0]));
    }
}
