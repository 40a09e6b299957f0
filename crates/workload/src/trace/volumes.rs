//! Dense volume numbers.

use rustc_hash::FxHashMap;

/// Numbers volumes densely, in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct VolumeNumbers {
    last: Option<(u64, u16)>,
    numbers: FxHashMap<u64, u16>,
    pub labels: Vec<String>,
}

impl VolumeNumbers {
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

    /// `None` when there are more than 65,535.
    pub fn add(&mut self, key: u64, label: String) -> Option<u16> {
        let number = u16::try_from(self.labels.len()).ok().filter(|n| *n < u16::MAX)?;
        self.labels.push(label);
        self.numbers.insert(key, number);
        Some(number)
    }
}
