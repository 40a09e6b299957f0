//! The price table: devices with prices and rated endurance.

use hybridsim_config::units;
use hybridsim_report::figures::number;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// The table unless the user gives one.
const STANDARD: &str = include_str!("prices.toml");

/// Prices of devices and energy.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Currency of all prices.
    pub currency: String,
    /// After so many years a device is replaced, if it has not worn out before.
    pub years: f64,
    /// Price of a kilowatt-hour.
    pub energy: f64,
    pub device: Vec<Device>,
    /// Prices of the table that ships, which are assumed.
    #[serde(skip)]
    pub is_assumed: bool,
}

/// A device on sale.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    pub name: String,
    pub role: Role,
    /// The preset that models it, or a file.
    pub preset: String,
    pub price: Price,
    /// The smallest capacity on sale; a smaller need is bought in this size.
    #[serde(default)]
    pub size_min: Option<String>,
    /// The largest capacity on sale, for a disk at most that of its preset, which is the default.
    #[serde(default)]
    pub size_max: Option<String>,
    /// Rated endurance: capacities written per day of the warranty.
    #[serde(default)]
    pub dwpd: Option<f64>,
    /// Years of warranty, 5 if not given.
    #[serde(default)]
    pub warranty_years: Option<f64>,
}

/// The use of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// To hold all data, or as a cache of disks.
    Flash,
    /// To hold all data.
    Disk,
}

/// Price of a device, or of bytes, such as `0.08/GiB`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Price {
    Device(f64),
    Bytes(String),
}

impl Price {
    /// Per device and per byte.
    fn parts(&self) -> Result<(f64, f64), String> {
        let text = match self {
            Self::Device(price) => return Ok((*price, 0.0)),
            Self::Bytes(text) => text,
        };
        let wrong = || format!("price `{text}`: write it as a number, or with a unit as 0.08/GiB");
        let (amount, unit) = text.split_once('/').ok_or_else(wrong)?;
        let amount: f64 = amount.trim().parse().map_err(|_| wrong())?;
        let bytes = units::bytes(&format!("1{}", unit.trim())).map_err(|_| wrong())?;
        Ok((0.0, amount / bytes as f64))
    }
}

impl Device {
    /// The capacity that is bought where `bytes` are needed. A device with a price of its own has
    /// one size.
    pub fn bought(&self, bytes: u64) -> u64 {
        let only = self.largest().filter(|_| matches!(self.price, Price::Device(_)));
        let least = self.size_min.as_deref().and_then(|text| units::bytes(text).ok());
        bytes.max(only.or(least).unwrap_or(0))
    }

    pub fn warranty_years(&self) -> f64 {
        self.warranty_years.unwrap_or(5.0)
    }

    fn unused_key(&self) -> Option<&'static str> {
        let is_disk = self.role == Role::Disk;
        let has_one_size = matches!(self.price, Price::Device(_)) && self.size_max.is_some();
        let unused = [
            ("dwpd", self.dwpd.is_some() && is_disk),
            ("warranty_years", self.warranty_years.is_some() && (is_disk || self.dwpd.is_none())),
            ("size_min", self.size_min.is_some() && has_one_size),
        ];
        unused.into_iter().find(|(_, is_unused)| *is_unused).map(|(key, _)| key)
    }

    /// The largest capacity on sale.
    pub fn largest(&self) -> Option<u64> {
        units::bytes(self.size_max.as_deref()?).ok()
    }

    /// The price of the capacity bought for `bytes`.
    pub fn price(&self, bytes: u64) -> f64 {
        let (device, per_byte) = self.price.parts().unwrap_or_default();
        device + per_byte * self.bought(bytes) as f64
    }
}

impl Prices {
    /// The table that ships with the program.
    ///
    /// # Panics
    /// Never: a test reads it.
    pub fn standard() -> Self {
        let table = Self::parse(STANDARD, Path::new("")).expect("the table is tested");
        Self { is_assumed: true, ..table }
    }

    /// Reads a table, whose paths of presets start from the folder `base`.
    ///
    /// # Errors
    /// Reports what is wrong with it, in a sentence.
    pub fn parse(text: &str, base: &Path) -> Result<Self, String> {
        let mut prices: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for device in prices.device.iter_mut().filter(|it| it.preset.ends_with(".toml")) {
            device.preset = base.join(&device.preset).to_string_lossy().into_owned();
        }
        let positive = |name: &str, value: f64| match value > 0.0 && value.is_finite() {
            true => Ok(()),
            false => Err(format!("`{name}` is {value}; it must be more than 0")),
        };
        positive("years", prices.years)?;
        if !(prices.energy >= 0.0 && prices.energy.is_finite()) {
            return Err(format!("`energy` is {}; it must be at least 0", prices.energy));
        }
        for (at, device) in prices.device.iter().enumerate() {
            let of = |error: String| format!("device `{}`: {error}", device.name);
            if prices.device[..at].iter().any(|other| other.name == device.name) {
                return Err(of("the name is taken".to_owned()));
            }
            if let Some(key) = device.unused_key() {
                return Err(of(format!("`{key}` has no effect here")));
            }
            let (fixed, per_byte) = device.price.parts().map_err(of)?;
            positive("price", fixed + per_byte).map_err(of)?;
            positive("dwpd", device.dwpd.unwrap_or(1.0)).map_err(of)?;
            positive("warranty_years", device.warranty_years()).map_err(of)?;
            let size = |size: &Option<String>| size.as_deref().map(units::bytes).transpose();
            let (least, most) =
                (size(&device.size_min).map_err(of)?, size(&device.size_max).map_err(of)?);
            if most.is_some_and(|most| most < least.unwrap_or(1)) {
                return Err(of("`size_max` is less than `size_min`, or 0".to_owned()));
            }
            if device.role == Role::Flash && per_byte == 0.0 && most.is_none() {
                let message = "a price of the device needs `size_max`, its capacity";
                return Err(of(message.to_owned()));
            }
        }
        match prices.device.is_empty() {
            true => Err("there is no [[device]]".to_owned()),
            false => Ok(prices),
        }
    }
}

/// The prices in a sentence.
impl fmt::Display for Prices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let currency = &self.currency;
        let kind = if self.is_assumed { "Assumed prices (yours: --prices)" } else { "Prices" };
        write!(f, "{kind}: ")?;
        for device in &self.device {
            match &device.price {
                Price::Device(price) => write!(f, "{} {} {currency}", device.name, number(*price))?,
                Price::Bytes(price) => match price.split_once('/') {
                    Some((amount, unit)) => {
                        write!(f, "{} {} {currency}/{}", device.name, amount.trim(), unit.trim())?;
                    }
                    None => write!(f, "{} {price} {currency}", device.name)?,
                },
            }
            if let Some(least) = &device.size_min {
                write!(f, " from {least}")?;
            }
            write!(f, "; ")?;
        }
        let (years, energy) = (number(self.years), number(self.energy));
        write!(f, "energy {energy} {currency}/kWh; devices serve {years} years.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_stated_and_said_to_be_assumed() {
        let text = Prices::standard().to_string();
        assert!(text.starts_with("Assumed prices (yours: --prices): disk 40"), "{text}");
        assert!(text.contains("SATA SSD 0.09 USD/GiB from 240GB; "), "{text}");
        assert!(text.contains("USD/kWh; devices serve 5"), "{text}");
        let own = Prices::parse(STANDARD, Path::new("")).expect("a table").to_string();
        assert!(own.starts_with("Prices: disk 40"), "{own}");
    }

    fn refused(change: (&str, &str), part: &str) {
        let text = STANDARD.replacen(change.0, change.1, 1);
        let error = Prices::parse(&text, Path::new("")).expect_err(part);
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn the_table_that_ships_is_read_and_wrong_ones_are_refused() {
        let prices = Prices::standard();
        assert_eq!(prices.device.len(), 3);
        refused(("0.09/GiB", "9 per GiB"), "device `SATA SSD`: price `9 per GiB`: write it");
        refused(("0.09/GiB", "0.09/acre"), "write it as a number");
        refused(("price = 40", "price = -1"), "device `disk`: `price` is -1");
        refused(("years = 5", "years = 0"), "`years` is 0");
        refused(("role = \"disk\"", "role = \"tape\""), "tape");
        refused(("dwpd = 1", "dwp = 1"), "dwp");
        refused(
            ("\"0.09/GiB\"", "90"),
            "device `SATA SSD`: a price of the device needs `size_max`",
        );
        let size = "size_min = \"240GB\"";
        refused((size, "size_min = \"240GB\"\nsize_max = \"1GB\""), "`size_max` is less than");
        refused((size, "size_max = \"much\""), "device `SATA SSD`: ");
        refused(("name = \"NVMe SSD\"", "name = \"disk\""), "`disk`: the name is taken");
        refused(("price = 40", "price = 40\ndwpd = 1"), "`disk`: `dwpd` has no effect");
        refused(("price = 40", "price = 40\nwarranty_years = 1"), "`warranty_years` has no effect");
        refused(("\"0.09/GiB\"", "90\nsize_max = \"1TB\""), "`size_min` has no effect");
        let own = STANDARD.replace("\"sata-ssd\"", "\"mine.toml\"");
        let own = Prices::parse(&own, Path::new("tables")).expect("a file");
        assert_eq!(own.device[1].preset, "tables/mine.toml");
        assert!(Prices::parse("currency = \"EUR\"", Path::new("")).is_err());
    }

    #[test]
    fn capacities_are_bought_in_sizes_on_sale() {
        let mut device = Prices::standard().device[1].clone();
        device.size_min = None;
        assert!((device.price(100 << 30) - 9.0).abs() < 1e-9);
        device.size_min = Some("200GiB".to_owned());
        assert_eq!(device.bought(1), 200 << 30);
        assert!((device.price(1) - 18.0).abs() < 1e-9);
        device.price = Price::Device(40.0);
        assert_eq!(device.price(1 << 40), 40.0);
        device.size_max = Some("1TiB".to_owned());
        assert_eq!((device.price(1), device.bought(1)), (40.0, 1 << 40));
    }
}
