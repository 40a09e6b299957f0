//! Bundles of fio's results: a tar archive, compressed with gzip.

use crate::ExperimentError;
use flate2::read::MultiGzDecoder;
use hybridsim_calibrate::ssd::{self, MeasuredJob};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A larger bundle is none of these.
const BYTES_MAX: u64 = 256 << 20;
/// The unit of a tar archive.
const BLOCK: usize = 512;

/// The files of the archive `bytes`, by name.
fn members(bytes: &[u8]) -> Result<Vec<(String, &[u8])>, &'static str> {
    let text = |field: &[u8]| {
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        String::from_utf8_lossy(&field[..end]).trim().to_owned()
    };
    let mut found = Vec::new();
    let mut rest = bytes;
    while let Some((header, after)) = rest.split_at_checked(BLOCK) {
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        let size = usize::from_str_radix(&text(&header[124..136]), 8);
        let size = size.map_err(|_| "is no tar archive: a size is no octal number")?;
        let content = after.get(..size).ok_or("is cut off within a file")?;
        if matches!(header[156], 0 | b'0') {
            found.push((text(&header[..100]), content));
        }
        rest = after.get(size.next_multiple_of(BLOCK)..).unwrap_or_default();
    }
    Ok(found)
}

/// The jobs of every result of fio in the bundle at `path`, by the name of its file.
///
/// # Errors
/// When the bundle or a result in it cannot be read.
pub fn read(path: &Path) -> Result<Vec<(String, MeasuredJob)>, ExperimentError> {
    let failed = |error: &dyn std::fmt::Display| {
        ExperimentError::Failed(format!("{}: {error}", path.display()))
    };
    let file = File::open(path).map_err(|error| failed(&error))?;
    let mut bytes = Vec::new();
    let read = MultiGzDecoder::new(file).take(BYTES_MAX + 1).read_to_end(&mut bytes);
    if read.map_err(|error| failed(&error))? as u64 > BYTES_MAX {
        return Err(failed(&format!("is larger than {BYTES_MAX} bytes")));
    }
    let mut jobs = Vec::new();
    for (name, content) in members(&bytes).map_err(|error| failed(&error))? {
        if !name.ends_with(".json") {
            continue;
        }
        let parsed = ssd::parse(&name, &String::from_utf8_lossy(content));
        let parsed = parsed.map_err(|error| failed(&error))?;
        jobs.extend(parsed.into_iter().map(|job| (name.clone(), job)));
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, members};

    /// A header, then the content in blocks.
    fn member(name: &str, content: &str) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        let size = format!("{:011o}", content.len());
        bytes[124..135].copy_from_slice(size.as_bytes());
        bytes[156] = b'0';
        bytes.extend(content.bytes());
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }

    #[test]
    fn files_are_found_and_a_cut_archive_is_reported() {
        let mut bytes = [member("a.json", "one"), member("b.json", &"x".repeat(700))].concat();
        let cut = members(&bytes[..bytes.len() - 2 * BLOCK]);
        assert_eq!(cut, Err("is cut off within a file"));
        bytes.extend(vec![0; 2 * BLOCK]);
        let found = members(&bytes).expect("an archive");
        let sizes: Vec<_> = found.iter().map(|(name, text)| (name.as_str(), text.len())).collect();
        assert_eq!(sizes, [("a.json", 3), ("b.json", 700)]);
        bytes[124] = b'x';
        assert!(members(&bytes).is_err());
    }
}
