//! Bundles of fio's results: a tar archive, compressed with gzip.

use crate::ExperimentError;
use flate2::read::MultiGzDecoder;
use hybridsim_calibrate::ssd::{self, MeasuredJob};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tar::Archive;

/// A larger bundle is none of these.
const BYTES_MAX: u64 = 256 << 20;
/// The jobs of every result of fio in the bundle at `path`, by the name of its file.
///
/// # Errors
/// When the bundle or a result in it cannot be read.
pub fn read(path: &Path) -> Result<Vec<(String, MeasuredJob)>, ExperimentError> {
    let failed = |error: &dyn std::fmt::Display| ExperimentError::of(path.display(), error);
    let file = File::open(path).map_err(|error| failed(&error))?;
    // A bundle that is too large ends early, which is an error of the archive.
    let mut archive = Archive::new(MultiGzDecoder::new(file).take(BYTES_MAX));
    let mut jobs = Vec::new();
    for entry in archive.entries().map_err(|error| failed(&error))? {
        let mut entry = entry.map_err(|error| failed(&error))?;
        let name = entry.path().map_err(|error| failed(&error))?.display().to_string();
        if !name.ends_with(".json") {
            continue;
        }
        let mut text = String::new();
        entry.read_to_string(&mut text).map_err(|error| failed(&format!("{name}: {error}")))?;
        let parsed = ssd::parse(&name, &text).map_err(|error| failed(&error))?;
        jobs.extend(parsed.into_iter().map(|job| (name.clone(), job)));
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::read;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::fs;
    use tar::{Builder, Header};

    #[test]
    fn results_are_read_and_a_cut_archive_is_reported() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("bundle.tar.gz");
        let result = r#"{"jobs":[{"job options":{"rw":"randread","bs":"4k"},
            "read":{"iops":9000,"clat_ns":{"mean":100000}}}]}"#;
        let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, text) in [("a.json", result), ("notes.txt", "no result"), ("b.json", result)] {
            let mut header = Header::new_gnu();
            header.set_size(text.len() as u64);
            archive.append_data(&mut header, name, text.as_bytes()).expect("memory");
        }
        let bytes = archive.into_inner().and_then(GzEncoder::finish).expect("memory");
        fs::write(&path, &bytes).expect("it can be written");
        let jobs = read(&path).expect("a bundle");
        let names: Vec<&str> = jobs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a.json", "b.json"]);
        fs::write(&path, &bytes[..bytes.len() / 2]).expect("it can be written");
        assert!(read(&path).is_err());
    }
}
