//! Volumes by number: dense, whatever the trace calls them.

use super::lines::BadLine;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Numbers volumes densely, in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    last: Option<(u64, u16)>,
    numbers: FxHashMap<u64, u16>,
    pub labels: Vec<String>,
}

impl Volumes {
    #[inline]
    pub fn number(&mut self, key: u64) -> Option<u16> {
        if let Some((last, number)) = self.last
            && last == key
        {
            return Some(number);
        }
        let number = *self.numbers.get(&key)?;
        self.last = Some((key, number));
        Some(number)
    }

    /// `None` when there are too many.
    pub fn add(&mut self, key: u64, label: String) -> Option<u16> {
        let number = u16::try_from(self.labels.len()).ok().filter(|n| *n < u16::MAX)?;
        self.labels.push(label);
        self.numbers.insert(key, number);
        Some(number)
    }
}

/// Gives names numbers, for formats that name their volumes.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: FxHashMap<Rc<[u8]>, u64>,
    names: Vec<Rc<[u8]>>,
}

impl Names {
    /// As many as there may be volumes.
    const COUNT_MAX: usize = u16::MAX as usize;
    const BYTES_MAX: usize = 1024;

    /// The number of `name`, new or not.
    #[inline]
    pub fn number(&mut self, column: &'static str, name: &[u8]) -> Result<u64, BadLine> {
        match self.numbers.get(name) {
            Some(number) => Ok(*number),
            None => self.add(column, name),
        }
    }

    #[cold]
    fn add(&mut self, column: &'static str, name: &[u8]) -> Result<u64, BadLine> {
        if name.is_empty() {
            return Err(BadLine::new(column, "is missing"));
        }
        if name.contains(&0) {
            return Err(BadLine::new(column, "holds a NUL byte"));
        }
        if name.len() > Self::BYTES_MAX {
            return Err(BadLine::new(column, "is longer than 1,024 bytes"));
        }
        if self.names.len() == Self::COUNT_MAX {
            return Err(BadLine::new(column, "is the 65,536th name; cut the trace down to fewer"));
        }
        let number = self.names.len() as u64;
        let name: Rc<[u8]> = name.into();
        self.names.push(Rc::clone(&name));
        self.numbers.insert(name, number);
        Ok(number)
    }

    pub fn name(&self, number: u64) -> String {
        let name = self.names.get(number as usize).map_or(&b""[..], |name| &name[..]);
        String::from_utf8_lossy(name).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_limited() {
        let mut names = Names::default();
        for number in 0..Names::COUNT_MAX as u64 {
            assert_eq!(names.number("x", number.to_string().as_bytes()), Ok(number));
        }
        assert_eq!(names.number("x", b"7"), Ok(7));
        assert_eq!(names.name(7), "7");
        assert!(names.number("x", b"new").unwrap_err().words.contains("65,536th"));
        assert!(names.number("x", b"").unwrap_err().words.contains("missing"));
        assert!(names.number("x", b"\0/dev/sda").unwrap_err().words.contains("NUL"));
        let long = [b'x'; Names::BYTES_MAX + 1];
        assert!(names.number("x", &long).unwrap_err().words.contains("longer"));
    }
}
