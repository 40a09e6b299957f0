//! Numbers for the names in a trace, such as hosts and files.

use super::lines::LineError;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Numbers names densely, for formats that name their volumes.
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    numbers: FxHashMap<Rc<[u8]>, u64>,
    names: Vec<Rc<[u8]>>,
}

impl NameTable {
    /// The maximum number of volumes.
    const COUNT_MAX: usize = u16::MAX as usize;
    const BYTES_MAX: usize = 1024;

    /// The number of `name`, new or not.
    #[inline]
    pub fn number(&mut self, column: &'static str, name: &[u8]) -> Result<u64, LineError> {
        match self.numbers.get(name) {
            Some(number) => Ok(*number),
            None => self.add(column, name),
        }
    }

    #[cold]
    fn add(&mut self, column: &'static str, name: &[u8]) -> Result<u64, LineError> {
        Self::check(column, name)?;
        if self.names.len() == Self::COUNT_MAX {
            return Err(LineError::new(column, "is the 65,536th name; reduce the trace to fewer"));
        }
        let number = self.names.len() as u64;
        let name: Rc<[u8]> = name.into();
        self.names.push(Rc::clone(&name));
        self.numbers.insert(name, number);
        Ok(number)
    }

    /// Rejects what is no name.
    pub fn check(column: &'static str, name: &[u8]) -> Result<(), LineError> {
        if name.is_empty() {
            return Err(LineError::new(column, "is missing"));
        }
        if name.contains(&0) {
            return Err(LineError::new(column, "contains a NUL byte"));
        }
        if name.len() > Self::BYTES_MAX {
            return Err(LineError::new(column, "is longer than 1,024 bytes"));
        }
        Ok(())
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
        let mut names = NameTable::default();
        for number in 0..NameTable::COUNT_MAX as u64 {
            assert_eq!(names.number("x", number.to_string().as_bytes()), Ok(number));
        }
        assert_eq!(names.number("x", b"7"), Ok(7));
        assert_eq!(names.name(7), "7");
        assert!(names.number("x", b"new").unwrap_err().problem.contains("65,536th"));
        assert!(names.number("x", b"").unwrap_err().problem.contains("missing"));
        assert!(names.number("x", b"\0/dev/sda").unwrap_err().problem.contains("NUL"));
        let long = [b'x'; NameTable::BYTES_MAX + 1];
        assert!(names.number("x", &long).unwrap_err().problem.contains("longer"));
    }
}
