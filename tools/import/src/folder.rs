//! Files for the importer: beside the file that names them, or in folders given for that.

use crate::Files;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// A parameter file that is larger is none.
const BYTES_MAX: u64 = 64 << 20;

/// Reads files from disk; `NAME.gz` stands for `NAME`.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    /// Where to look besides the folder of the file that names another.
    pub include: Vec<PathBuf>,
}

impl Files for Folder {
    fn read(&mut self, name: &str, from: &str) -> Result<(String, String), String> {
        let beside = Path::new(from).parent().unwrap_or(Path::new(""));
        let mut places = vec![beside.join(name)];
        places.extend(self.include.iter().map(|folder| folder.join(name)));
        for place in &places {
            let mut packed = place.clone().into_os_string();
            packed.push(".gz");
            for path in [place.clone(), PathBuf::from(packed)] {
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
        let folders = places.iter().filter_map(|place| place.parent());
        let mut looked: Vec<String> = folders.map(here).collect();
        looked.dedup();
        let looked = looked.join(", ");
        Err(format!("there is no file {name} in {looked}; name its folder with --include"))
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
        return Err(Some("is no regular file".to_owned()));
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
