//! A component's state as bytes: written at the end of one run, read at the start of another.
//!
//! A component reads values in the order in which it wrote them. The bytes carry no names and no
//! version: the file or cache that stores them binds them to the program and the system they
//! belong to, and protects them with a checksum.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// Why a state cannot be saved or restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateError(pub String);

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StateError {}

/// Serialises values.
#[derive(Debug, Default)]
pub struct Saver {
    bytes: Vec<u8>,
    /// Whether values are left out: the save is a trial.
    trial: bool,
}

impl Saver {
    /// A saver that keeps nothing, to find out whether there is anything that cannot be saved:
    /// tables of large devices take seconds and as much memory again.
    pub const fn trial() -> Self {
        Self { bytes: Vec::new(), trial: true }
    }

    /// Appends `value`; a tuple of references appends several.
    pub fn put<T: Serialize + ?Sized>(&mut self, value: &T) {
        if self.trial {
            return;
        }
        let bytes = std::mem::take(&mut self.bytes);
        self.bytes = postcard::to_extend(value, bytes).expect("values of known length have bytes");
    }

    /// Appends the bytes of a large table as they are.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        self.put(&bytes.len());
        if !self.trial {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// The bytes written so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads the values a [`Saver`] wrote, in the same order.
#[derive(Debug)]
pub struct Loader<'a>(&'a [u8]);

impl<'a> Loader<'a> {
    /// Reads `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next value.
    ///
    /// # Errors
    /// If the bytes end or hold something else.
    pub fn take<T: DeserializeOwned>(&mut self) -> Result<T, StateError> {
        let (value, rest) = postcard::take_from_bytes(self.0)
            .map_err(|_| StateError("its bytes are not what was expected here".to_owned()))?;
        self.0 = rest;
        Ok(value)
    }

    /// The next bytes that [`Saver::put_bytes`] wrote.
    ///
    /// # Errors
    /// If the bytes end before.
    pub fn take_bytes(&mut self) -> Result<&'a [u8], StateError> {
        let length = self.take()?;
        let (bytes, rest) = self
            .0
            .split_at_checked(length)
            .ok_or_else(|| StateError("its bytes end too early".to_owned()))?;
        self.0 = rest;
        Ok(bytes)
    }

    /// The bytes not read yet, for readers of another kind.
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Checks that all bytes have been read.
    ///
    /// # Errors
    /// If bytes are left.
    pub fn end(&self) -> Result<(), StateError> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(StateError(format!("{left} bytes too many"))),
        }
    }
}

/// Implements `save` and `restore`, as of [`Checkpoint`](crate::Checkpoint): some fields as one
/// tuple, then, after a semicolon, parts that have both methods themselves. Without arguments
/// nothing is saved.
///
/// ```
/// use hybridsim_engine::{Checkpoint, SimTime, saves};
///
/// struct Turn {
///     free_at: SimTime,
///     member: usize,
/// }
///
/// impl Checkpoint for Turn {
///     saves!(free_at, member);
/// }
/// ```
#[macro_export]
macro_rules! saves {
    () => {
        fn save(&self, _to: &mut $crate::Saver) -> Result<(), $crate::StateError> {
            Ok(())
        }

        fn restore(&mut self, _from: &mut $crate::Loader<'_>) -> Result<(), $crate::StateError> {
            Ok(())
        }
    };
    ($($field:ident),+ $(; $($part:ident),+)?) => {
        fn save(&self, to: &mut $crate::Saver) -> Result<(), $crate::StateError> {
            to.put(&($(&self.$field,)+));
            $($(self.$part.save(to)?;)+)?
            Ok(())
        }

        fn restore(&mut self, from: &mut $crate::Loader<'_>) -> Result<(), $crate::StateError> {
            ($(self.$field,)+) = from.take()?;
            $($(self.$part.restore(from)?;)+)?
            Ok(())
        }
    };
}

/// Checks that a table read back is as long as the one it replaces.
///
/// # Errors
/// If it is not: the state belongs to another system.
pub fn same_length(what: &str, found: usize, wanted: usize) -> Result<(), StateError> {
    if found == wanted {
        return Ok(());
    }
    Err(StateError(format!("{what} has {found} entries, this system needs {wanted}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_in_order_and_truncation_is_reported() {
        let mut saver = Saver::default();
        saver.put(&(7u64, &[1u32, u32::MAX][..], "name"));
        saver.put(&crate::SimTime::from_ns(u64::MAX));
        saver.put(&crate::Stream::new(1, "a"));
        let bytes = saver.into_bytes();
        let mut loader = Loader::new(&bytes);
        let first: (u64, Vec<u32>, String) = loader.take().expect("as put");
        assert_eq!(first, (7, vec![1, u32::MAX], "name".to_owned()));
        assert_eq!(loader.take(), Ok(crate::SimTime::from_ns(u64::MAX)));
        let mut stream: crate::Stream = loader.take().expect("as put");
        assert_eq!(stream.bits(), crate::Stream::new(1, "a").bits());
        assert_eq!(loader.end(), Ok(()));
        for length in 0..bytes.len() {
            let mut loader = Loader::new(&bytes[..length]);
            let all = loader
                .take::<(u64, Vec<u32>, String)>()
                .and_then(|_| loader.take::<crate::SimTime>())
                .and_then(|_| loader.take::<crate::Stream>());
            assert!(all.is_err(), "cut at {length}");
        }
    }

    #[test]
    fn a_length_out_of_the_blue_takes_no_memory() {
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert!(Loader::new(&huge).take::<Vec<u64>>().is_err());
        assert!(same_length("the map", 3, 4).is_err() && same_length("it", 4, 4).is_ok());
    }
}
