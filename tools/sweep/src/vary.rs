//! The values of a varied key, and which combinations of them a sweep runs.

use hybridsim_config::diagnostic::Diagnostics;
use hybridsim_engine::Stream;
use toml::{Table, Value};

/// A key and its values, in TOML.
#[derive(Clone, Debug, PartialEq)]
pub struct Vary {
    /// Such as `component.ssd.over_provisioning`.
    pub key: String,
    /// The values to run.
    pub values: Values,
}

/// The values of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// These, in TOML, such as `0.07`.
    List(Vec<String>),
    /// Any in a range.
    Range(Range),
}

/// Numbers of one unit between two ends, both included.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The lower end.
    pub from: f64,
    /// The upper end.
    pub to: f64,
    /// Such as `MiB`; empty for plain numbers.
    unit: String,
    /// Whether values are whole numbers.
    whole: bool,
    /// Whether values are spread evenly by their logarithm.
    pub log: bool,
}

impl Range {
    /// The range between two texts such as `16MiB` and `64MiB`.
    ///
    /// # Errors
    /// Fails when they are no numbers of one unit in ascending order.
    pub fn parse(from: &str, to: &str, log: bool) -> Result<Self, String> {
        let split = |text: &str| -> Option<(f64, String, bool)> {
            let text = text.trim();
            let digits = |c: char| c.is_ascii_digit() || "+-._".contains(c);
            // An exponent is part of the number, the `E` of `EiB` is not.
            let end = text.char_indices().position(|(at, c)| {
                let next = text[at + c.len_utf8()..].chars().next();
                let exponent = matches!(c, 'e' | 'E')
                    && next.is_some_and(|next| next.is_ascii_digit() || "+-".contains(next));
                !digits(c) && !exponent
            });
            let (number, unit) = text.split_at(end.unwrap_or(text.len()));
            let number = number.replace('_', "");
            let whole = number.parse::<i64>().is_ok();
            Some((number.parse().ok()?, unit.trim().to_owned(), whole))
        };
        let ends = split(from).zip(split(to));
        let Some(((low, unit, whole_low), (high, unit_to, whole_high))) = ends else {
            return Err(format!("`{from}..{to}`: the ends of a range are numbers"));
        };
        if unit != unit_to {
            return Err(format!("`{from}..{to}`: give both ends in one unit"));
        }
        if !(low < high && high.is_finite() && low.is_finite()) || (log && low <= 0.0) {
            let positive = if log { " and above 0" } else { "" };
            return Err(format!(
                "`{from}..{to}`: the ends have to be in ascending order{positive}"
            ));
        }
        Ok(Self { from: low, to: high, unit, whole: whole_low && whole_high, log })
    }

    /// The number at `unit`, from 0 to 1 across the range.
    pub fn number(&self, unit: f64) -> f64 {
        if self.whole {
            // Each whole number has the same share, the ends as well.
            let (from, to) = (self.from - 0.5, self.to + 0.5);
            let (from, to) = if self.log { (self.from, self.to + 1.0) } else { (from, to) };
            let number = spread(from, to, unit, self.log);
            let number = if self.log { number.floor() } else { number.round() };
            return number.clamp(self.from, self.to);
        }
        spread(self.from, self.to, unit, self.log)
    }

    /// A number of the range as TOML.
    pub fn text(&self, number: f64) -> String {
        match (self.unit.as_str(), self.whole) {
            ("", true) => format!("{number:.0}"),
            // TOML distinguishes integers and floating-point numbers.
            ("", false) => format!("{number:?}"),
            (unit, true) => format!("\"{number:.0}{unit}\""),
            (unit, false) => format!("\"{number}{unit}\""),
        }
    }

    /// Whether only whole numbers are in it.
    pub fn is_whole(&self) -> bool {
        self.whole
    }
}

fn spread(from: f64, to: f64, unit: f64, log: bool) -> f64 {
    if log {
        libm::exp(libm::log(from) + unit * libm::log(to / from))
    } else {
        from + unit * (to - from)
    }
}

impl Vary {
    /// Reads `key=a,b,c` or `key=from..to`, with `log:` before a range that is spread by its
    /// logarithm; commas inside brackets and quotes do not separate values.
    ///
    /// # Errors
    /// Fails when the syntax is different.
    pub fn parse(option: &str) -> Result<Self, Diagnostics> {
        let Some((key, list)) = option.split_once('=') else {
            let message = format!("`--vary {option}`: write it as key.path=value,value");
            return Err(Diagnostics::single(message));
        };
        let key = key.trim().to_owned();
        let (log, ends) = match list.trim().strip_prefix("log:") {
            Some(ends) => (true, ends),
            None => (false, list),
        };
        if let Some((from, to)) = ends.split_once("..").filter(|_| !list.contains(['"', ','])) {
            let range = Range::parse(from, to, log);
            let range = range.map_err(|error| Diagnostics::single(format!("`{key}`: {error}")))?;
            return Ok(Self { key, values: Values::Range(range) });
        }
        let as_list = format!("v = [{list}]").parse::<Table>().ok();
        let values = match as_list.as_ref().and_then(|table| table["v"].as_array()) {
            Some(values) => values.iter().map(Value::to_string).collect(),
            None => list.split(',').map(|value| value.trim().to_owned()).collect(),
        };
        Self::list(key, values)
    }

    /// A key with a list of values.
    ///
    /// # Errors
    /// Fails when the list or a value in it is empty.
    pub fn list(key: String, values: Vec<String>) -> Result<Self, Diagnostics> {
        match values.is_empty() || values.iter().any(String::is_empty) {
            true => Err(Diagnostics::single(format!("`{key}`: has a missing value"))),
            false => Ok(Self { key, values: Values::List(values) }),
        }
    }

    /// Reads an entry of a sweep file's `vary`: a list, or `{ from, to, scale }`.
    pub(crate) fn of_file(key: String, value: &Value) -> Result<Self, String> {
        if let Some(values) = value.as_array() {
            let values = values.iter().map(Value::to_string).collect();
            return Self::list(key, values).map_err(|error| error.to_string());
        }
        let wrong = || {
            format!("`vary.{key}` must be a list, or {{ from = ..., to = ..., scale = \"log\" }}")
        };
        let table = value.as_table().ok_or_else(wrong)?;
        let scale = table.get("scale").map_or(Some("linear"), Value::as_str);
        let log = match scale {
            Some("log") => true,
            Some("linear") => false,
            _ => return Err(wrong()),
        };
        let end = |name: &str| Some(crate::format::bare(&table.get(name)?.to_string()));
        let known = table.keys().all(|key| ["from", "to", "scale"].contains(&key.as_str()));
        let (Some(from), Some(to), true) = (end("from"), end("to"), known) else {
            return Err(wrong());
        };
        let range = Range::parse(&from, &to, log).map_err(|error| format!("`vary.{key}`: {error}"));
        Ok(Self { key, values: Values::Range(range?) })
    }

    /// The value at `unit`, from 0 to 1 over the list or the range.
    fn at(&self, unit: f64) -> String {
        match &self.values {
            Values::List(values) => {
                let at = (unit * values.len() as f64) as usize;
                values[at.min(values.len() - 1)].clone()
            }
            Values::Range(range) => range.text(range.number(unit)),
        }
    }
}

/// Which combinations of the values are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    #[default]
    Grid,
    /// This many, each value drawn independently.
    Random(usize),
    /// This many, drawn so that each key's range is cut into as many slices of equal share and
    /// every slice is used once (McKay, Beckman, Conover, Technometrics 21(2), 1979).
    LatinHypercube(usize),
}

impl Sampling {
    /// Reads `grid`, `random:COUNT` or `latin-hypercube:COUNT`.
    ///
    /// # Errors
    /// Fails when the syntax is different.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}`: write grid, random:COUNT or latin-hypercube:COUNT");
        if text == "grid" {
            return Ok(Self::Grid);
        }
        let (name, count) = text.split_once(':').ok_or_else(wrong)?;
        let count = count.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?;
        match name {
            "random" => Ok(Self::Random(count)),
            "latin-hypercube" | "lhs" => Ok(Self::LatinHypercube(count)),
            _ => Err(wrong()),
        }
    }

    /// The combinations of `vary`, each of which is run `times` times, at most `total` runs.
    ///
    /// # Errors
    /// Fails when there are more, or a grid has a range.
    pub(crate) fn combine(
        self,
        vary: &[Vary],
        times: usize,
        total: usize,
    ) -> Result<Vec<Vec<String>>, String> {
        let too_many = || format!("the sweep has more than {total} points; split it");
        if times > total {
            return Err(too_many());
        }
        let most = total / times.max(1);
        match self {
            Self::Grid => grid(vary, most, too_many),
            Self::Random(count) | Self::LatinHypercube(count) if count > most => Err(too_many()),
            Self::Random(count) => {
                let mut drawn: Vec<Stream> = vary.iter().map(stream).collect();
                let mut draw = || {
                    let pairs = vary.iter().zip(&mut drawn);
                    pairs.map(|(vary, stream)| vary.at(stream.unit())).collect()
                };
                Ok((0..count).map(|_| draw()).collect())
            }
            Self::LatinHypercube(count) => {
                let columns: Vec<Vec<String>> =
                    vary.iter().map(|vary| slices(vary, count)).collect();
                let row = |at: usize| columns.iter().map(|column| column[at].clone()).collect();
                Ok((0..count).map(row).collect())
            }
        }
    }
}

/// Each key draws from a stream of its own: a key added later leaves the others' values.
fn stream(vary: &Vary) -> Stream {
    Stream::new(1, &format!("sweep/{}", vary.key))
}

fn slices(vary: &Vary, count: usize) -> Vec<String> {
    let mut stream = stream(vary);
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, stream.below(last as u64 + 1) as usize);
    }
    order.iter().map(|slice| vary.at((*slice as f64 + stream.unit()) / count as f64)).collect()
}

/// All combinations, the last key varying fastest.
fn grid(
    vary: &[Vary],
    most: usize,
    too_many: impl Fn() -> String,
) -> Result<Vec<Vec<String>>, String> {
    let mut rows: Vec<Vec<String>> = vec![Vec::new()];
    for vary in vary {
        let Values::List(values) = &vary.values else {
            return Err(format!(
                "`{}` is a range: choose how many points are drawn from it, such as \
                 latin-hypercube:50, or list its values",
                vary.key
            ));
        };
        if rows.len().checked_mul(values.len()).is_none_or(|count| count > most) {
            return Err(too_many());
        }
        let with = |row: &Vec<String>, value: &String| {
            row.iter().chain([value]).cloned().collect::<Vec<String>>()
        };
        rows =
            rows.iter().flat_map(|row| values.iter().map(move |value| with(row, value))).collect();
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn vary(option: &str) -> Vary {
        Vary::parse(option).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn options_part_values_at_commas() {
        let list = |option: &str| match vary(option).values {
            Values::List(values) => values,
            Values::Range(range) => panic!("{range:?}"),
        };
        assert_eq!(list("a.b=1,2"), ["1", "2"]);
        assert_eq!(list("a=fifo,lru"), ["fifo", "lru"]);
        assert_eq!(list("a=\"x,y\",\"z\""), ["\"x,y\"", "\"z\""]);
        assert_eq!(list("a=[1,2],[3]"), ["[1, 2]", "[3]"]);
        assert_eq!(list("a=\"../x..y\""), ["\"../x..y\""]);
        assert!(Vary::parse("a").is_err() && Vary::parse("a=").is_err());
        assert!(Vary::parse("a=1,,2").is_err());
    }

    #[test]
    fn ranges_have_numbers_of_one_unit() {
        let value = |option: &str, unit: f64| vary(option).at(unit);
        assert_eq!(value("a=0.07..0.28", 0.0), "0.07");
        assert_eq!(value("a=1..3", 0.0), "1");
        assert_eq!(value("a=1..3", 0.5), "2");
        assert_eq!(value("a=1..3", 0.999), "3");
        assert_eq!(value("a=log:16MiB..64MiB", 0.5), "\"32MiB\"");
        assert_eq!(value("a=1.0..3", 0.5), "2.0", "a number, not a whole one");
        assert_eq!(value("a=1e-3..1e-1", 1.0), "0.1");
        assert_eq!(value("a=lru,2q", 0.6), "2q");
        for wrong in ["a=2..1", "a=1MiB..2GiB", "a=log:0..5", "a=x..y", "a=..", "a=1..inf"] {
            assert!(Vary::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_latin_hypercube_uses_every_slice_of_every_key_once() {
        let keys = [vary("a=1..40"), vary("b=0.0..1.0"), vary("c=x,y")];
        let rows = Sampling::LatinHypercube(40).combine(&keys, 1, 1000).expect("a plan");
        let whole: BTreeSet<&String> = rows.iter().map(|row| &row[0]).collect();
        assert_eq!(whole.len(), 40, "each of the 40 numbers once");
        let tenths: BTreeSet<u64> = rows
            .iter()
            .map(|row| (row[1].parse::<f64>().expect("a number") * 40.0) as u64)
            .collect();
        assert_eq!(tenths.len(), 40);
        assert_eq!(rows.iter().filter(|row| row[2] == "x").count(), 20, "as often as `y`");
        assert_ne!(rows[0], rows[1]);
        let again = Sampling::LatinHypercube(40).combine(&keys, 1, 1000);
        assert_eq!(again.as_ref(), Ok(&rows), "the same at every call");
    }

    #[test]
    fn more_random_points_include_the_fewer() {
        let keys = [vary("a=0.0..1.0"), vary("b=log:1us..1000us")];
        let some = Sampling::Random(5).combine(&keys, 1, 100).expect("a plan");
        let more = Sampling::Random(50).combine(&keys, 1, 100).expect("a plan");
        assert_eq!(some[..], more[..5]);
        let small = more.iter().filter(|row| row[1].len() <= "\"30us\"".len()).count();
        assert!((15..35).contains(&small), "half are below the geometric mean: {small}");
        assert!(Sampling::Random(101).combine(&keys, 1, 100).is_err());
        assert!(Sampling::Random(51).combine(&keys, 2, 100).is_err());
        assert!(Sampling::Grid.combine(&[], 101, 100).is_err(), "seeds count as points");
        let range = Sampling::Grid.combine(&keys, 2000, 100_000).expect_err("a range");
        assert!(range.contains("`a`") && range.contains("latin-hypercube:50,"), "{range}");
        assert!(Sampling::parse("random:0").is_err() && Sampling::parse("sobol:4").is_err());
        assert_eq!(Sampling::parse("lhs:4"), Ok(Sampling::LatinHypercube(4)));
    }
}
