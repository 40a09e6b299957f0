//! Files on disk: relative to the file that names them, or in include folders.

use crate::FileSource;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

const BYTES_MAX: u64 = 64 << 20;

/// Reads files from disk; `NAME.gz` is read where `NAME` does not exist.
#[derive(Clone, Debug, Default)]
pub struct SearchPath {
    /// Folders to search after that of the file that names another.
    pub include: Vec<PathBuf>,
}

impl FileSource for SearchPath {
    fn read(&mut self, name: &str, from: &str) -> Result<(String, String), String> {
        let parent = Path::new(from).parent().unwrap_or(Path::new(""));
        let mut candidates = vec![parent.join(name)];
        candidates.extend(self.include.iter().map(|folder| folder.join(name)));
        for candidate in &candidates {
            let mut compressed = candidate.clone().into_os_string();
            compressed.push(".gz");
            for path in [candidate.clone(), PathBuf::from(compressed)] {
                match text(&path) {
                    Ok(text) => return Ok((path.to_string_lossy().into_owned(), text)),
                    Err(None) => {}
                    Err(Some(reason)) => return Err(format!("{}: {reason}", path.display())),
                }
            }
        }
        let here = |folder: &Path| match folder.as_os_str().is_empty() {
            true => "the current folder".to_owned(),
            false => folder.display().to_string(),
        };
        let folders = candidates.iter().filter_map(|candidate| candidate.parent());
        let mut searched: Vec<String> = folders.map(here).collect();
        searched.dedup();
        let searched = searched.join(", ");
        let hint = if from.is_empty() { "" } else { "; name its folder with --include" };
        Err(format!("there is no file {name} in {searched}{hint}"))
    }
}

/// The text of a file; `None` where there is none.
fn text(path: &Path) -> Result<String, Option<String>> {
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => None,
        _ => Some(error.to_string()),
    })?;
    let whole = file.metadata().map_err(|error| Some(error.to_string()))?;
    if !whole.is_file() {
        return Err(Some("is not a regular file".to_owned()));
    }
    let mut reader: Box<dyn Read> = match path.extension().is_some_and(|end| end == "gz") {
        true => Box::new(MultiGzDecoder::new(file)),
        false => Box::new(file),
    };
    let mut bytes = Vec::new();
    let read = reader.by_ref().take(BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Some(error.to_string()))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Some(format!("is larger than {BYTES_MAX} bytes")));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
