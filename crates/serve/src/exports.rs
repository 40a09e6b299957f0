//! Exports: the parts of the device that clients see as devices of their own.

use hybridsim_config::units;
use hybridsim_engine::SECTOR_BYTES;

/// A part of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    pub name: String,
    /// First sector on the device.
    pub first: u64,
    pub sectors: u64,
}

/// All exports, in order of address. The first is the default export.
#[derive(Clone, Debug)]
pub struct Exports(Vec<Export>);

impl Exports {
    /// `parts` are texts like `data=4GiB`, laid out one after the other; the last may lack a size
    /// and takes what is left. Without any, the whole device is the one export, without a name.
    ///
    /// # Errors
    /// Fails when they are written wrongly or do not fit into `capacity` sectors.
    pub fn parse(parts: &[String], capacity: u64) -> Result<Self, String> {
        if parts.is_empty() {
            let whole = Export { name: String::new(), first: 0, sectors: capacity };
            return Ok(Self(vec![whole]));
        }
        let mut list: Vec<Export> = Vec::new();
        let mut first = 0;
        for (at, part) in parts.iter().enumerate() {
            let (name, size) =
                part.split_once('=').map_or((&part[..], None), |(n, s)| (n, Some(s)));
            if name.is_empty() || name.len() > crate::nbd::NAME_BYTES_MAX || name.contains('\0') {
                return Err(format!("--export {part}: write NAME=SIZE, such as data=4GiB"));
            }
            if list.iter().any(|it| it.name == name) {
                return Err(format!("--export {part}: the name `{name}` is taken"));
            }
            let left = capacity - first;
            let sectors = match size {
                Some(size) => {
                    let bytes =
                        units::bytes(size).map_err(|error| format!("--export {part}: {error}"))?;
                    if bytes == 0 || !bytes.is_multiple_of(SECTOR_BYTES) {
                        return Err(format!("--export {part}: not a multiple of 512 bytes"));
                    }
                    bytes / SECTOR_BYTES
                }
                None if at + 1 == parts.len() => left,
                None => return Err(format!("--export {part}: only the last may lack a size")),
            };
            if sectors == 0 || sectors > left {
                let left = units::write_bytes(left * SECTOR_BYTES);
                return Err(format!("--export {part}: it does not fit, {left} are left"));
            }
            list.push(Export { name: name.to_owned(), first, sectors });
            first += sectors;
        }
        Ok(Self(list))
    }

    /// The export called `name`; the empty name is the first one.
    pub fn find(&self, name: &str) -> Option<&Export> {
        if name.is_empty() { self.0.first() } else { self.0.iter().find(|it| it.name == name) }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Export> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_follow_each_other() {
        let parse = |parts: &[&str]| {
            let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
            Exports::parse(&parts, 4096)
        };
        let two = parse(&["a=1MiB", "b"]).expect("they fit");
        assert_eq!(two.find("b"), Some(&Export { name: "b".into(), first: 2048, sectors: 2048 }));
        assert_eq!(two.find("").map(|it| &it.name[..]), Some("a"));
        assert_eq!(parse(&[]).expect("it fits").find("").map(|it| it.sectors), Some(4096));
        for wrong in [&["a=3MiB"][..], &["a", "b"], &["a=1MiB", "a"], &["=1MiB"], &["a=x"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
