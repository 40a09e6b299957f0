//! What the served device holds: the bytes of every sector.
//!
//! Without power failures the bytes of a write are stored when it arrives, and a read returns what
//! is stored when it completes. With power failures the simulated system decides what a read
//! returns: it reports the write that produced each sector, and [`history`] has the bytes.

mod history;
mod store;

pub use history::{History, Stale};
pub use store::{SECTOR, Store};

use std::io;

/// The bytes of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    Bytes(Vec<u8>),
    Zeros,
}

/// Contents with or without power failures.
pub enum Contents {
    Plain(Store),
    History(Box<History>),
}

impl Contents {
    /// Whether reads need the versions that the simulated system returns.
    pub fn has_history(&self) -> bool {
        matches!(self, Self::History(_))
    }

    /// The bytes that are stored.
    pub fn store(&mut self) -> &mut Store {
        match self {
            Self::Plain(store) => store,
            Self::History(history) => history.store(),
        }
    }

    /// The first `count` allocated and free ranges within `sectors` sectors from `first` on:
    /// lengths in sectors, and whether they are allocated.
    pub fn extents(&self, first: u64, sectors: u64, count: usize) -> Vec<(u64, bool)> {
        let store = match self {
            Self::Plain(store) => store,
            // What unsettled writes will have allocated is not known: not free is always right.
            Self::History(history) if !history.is_settled() => return vec![(sectors, true)],
            Self::History(history) => history.settled_store(),
        };
        let mut list: Vec<(u64, bool)> = Vec::new();
        let mut sector = first;
        while sector < first + sectors {
            let (length, allocated) = store.run(sector);
            let length = length.min(first + sectors - sector);
            let is_full = list.len() == count;
            match list.last_mut() {
                Some((total, same)) if *same == allocated => *total += length,
                _ if is_full => break,
                _ => list.push((length, allocated)),
            }
            sector += length;
        }
        list
    }
}

/// An input or output error with the file's purpose.
pub(crate) fn of_contents(error: io::Error) -> String {
    format!("the contents cannot be read or written: {error}")
}
