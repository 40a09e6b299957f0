//! Bytes of a trace file, decompressed on the fly in constant memory.

use super::in_memory;
use crate::record::{SourceLocation, TraceError, TraceResult};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Bytes of a file that formats examine.
pub(crate) const HEAD_BYTES: usize = 64 * 1024;
/// Maximum length of a line unless a format accepts longer ones; a file with longer ones is not a
/// text trace.
pub(crate) const LINE_BYTES_MAX: usize = 64 * 1024;
/// Written by Windows programs at the start of text files.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const BUFFER_BYTES: usize = 256 * 1024;

/// The start of a file, by which its format is detected.
#[derive(Clone, Copy)]
pub struct FileHead<'a> {
    /// At most 64 KiB, decompressed, without a byte-order mark.
    pub bytes: &'a [u8],
    pub whole: bool,
}

/// An archive of files, which is no trace itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Archive {
    Tar,
    Zip,
    SevenZip,
    Rar,
}

impl Archive {
    /// The archive that begins with `bytes`, if it is one.
    pub const fn of(bytes: &[u8]) -> Option<Self> {
        // A tar archive is known by bytes 257 to 262, of the header of its first file.
        match bytes {
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Self::Zip),
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Some(Self::SevenZip),
            [b'R', b'a', b'r', b'!', 0x1a, 0x07, ..] => Some(Self::Rar),
            _ => match bytes.split_at_checked(257) {
                Some((_, [b'u', b's', b't', b'a', b'r', 0 | b' ', ..])) => Some(Self::Tar),
                _ => None,
            },
        }
    }

    /// The error of a file that is one.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Tar => "is a tar archive: unpack it (tar xf) and name one of its files",
            Self::Zip => "is a zip archive: unpack it (unzip) and name one of its files",
            Self::SevenZip => "is a 7z archive: unpack it (7z x) and name one of its files",
            Self::Rar => "is a rar archive: unpack it (unrar x) and name one of its files",
        }
    }
}

/// A file being read: a window over its decompressed bytes.
pub struct TraceFile {
    path: PathBuf,
    source: Box<dyn Read>,
    compression: Option<&'static str>,
    read_bytes: Rc<Cell<u64>>,
    file_bytes: u64,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    failed: Option<TraceError>,
    line_bytes_max: usize,
}

/// Counts the compressed bytes read.
struct CountingReader {
    file: Box<dyn Read>,
    read_bytes: Rc<Cell<u64>>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read_bytes.set(self.read_bytes.get() + count as u64);
        Ok(count)
    }
}

type CompressedInput = BufReader<CountingReader>;

fn decompressed(
    file: CompressedInput,
    magic: &[u8],
) -> io::Result<(Option<&'static str>, Box<dyn Read>)> {
    Ok(match magic {
        [0x1f, 0x8b, ..] => {
            (Some("gzip"), Box::new(flate2::bufread::MultiGzDecoder::new(file)) as Box<dyn Read>)
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => (Some("zstd"), hybridsim_codecs::zstd_reader(file)?),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => (Some("xz"), hybridsim_codecs::xz_reader(file)?),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => {
            (Some("bzip2"), Box::new(bzip2::bufread::MultiBzDecoder::new(file)))
        }
        _ => (None, Box::new(file)),
    })
}

/// The bytes at `path` and their number, which is zero for a pipe.
fn stored(path: &Path) -> Result<(Box<dyn Read>, u64), String> {
    if let Some(bytes) = in_memory::get(path) {
        let length = bytes.len() as u64;
        return Ok((Box::new(Cursor::new(bytes)), length));
    }
    let file = File::open(path).map_err(|cause| {
        format!("cannot be opened: {}; give the path of a trace file", plain(&cause))
    })?;
    let meta = file.metadata().map_err(|cause| plain(&cause))?;
    if meta.is_dir() {
        return Err("is a directory; name one trace file in it".into());
    }
    Ok((Box::new(file), meta.len()))
}

impl TraceFile {
    /// Opens `path`; its first bytes determine the compression.
    ///
    /// # Errors
    /// Missing file, directory, no permission, an empty file.
    pub fn open(path: &Path) -> TraceResult<Self> {
        let error = |message: String| TraceError::new(path, SourceLocation::File, message);
        let (file, file_bytes) = stored(path).map_err(error)?;
        let read_bytes = Rc::new(Cell::new(0));
        let counted = CountingReader { file, read_bytes: Rc::clone(&read_bytes) };
        let mut file = BufReader::with_capacity(128 * 1024, counted);
        let first = file.fill_buf().map_err(|cause| error(plain(&cause)))?;
        if first.is_empty() {
            return Err(error("the file is empty".into()));
        }
        let magic = first[..first.len().min(6)].to_vec();
        let (compression, source) =
            decompressed(file, &magic).map_err(|cause| error(plain(&cause)))?;
        Ok(Self {
            path: path.to_owned(),
            source,
            compression,
            read_bytes,
            file_bytes,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            ended: false,
            failed: None,
            line_bytes_max: LINE_BYTES_MAX,
        })
    }

    /// Accepts lines of up to `bytes` bytes, for formats with lists in a line.
    pub fn accept_lines(&mut self, bytes: usize) {
        self.line_bytes_max = bytes;
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn compression(&self) -> Option<&'static str> {
        self.compression
    }

    /// Fraction of the compressed file that has been read; `None` where it has no size (a pipe).
    pub fn progress(&self) -> Option<f64> {
        (self.file_bytes > 0)
            .then(|| (self.read_bytes.get() as f64 / self.file_bytes as f64).min(1.0))
    }

    /// An error in this file.
    pub fn error(&self, location: SourceLocation, message: impl Into<String>) -> TraceError {
        TraceError::new(&self.path, location, message)
    }

    /// The first bytes, without consuming them.
    ///
    /// # Errors
    /// If not even the first byte can be decompressed. Damage behind it is reported on reading.
    pub fn head(&mut self) -> TraceResult<FileHead<'_>> {
        while self.end - self.start < HEAD_BYTES && !self.ended {
            if let Err(error) = self.fill(SourceLocation::File) {
                if self.end == self.start {
                    return Err(error);
                }
                break;
            }
        }
        let held = (self.end - self.start).min(HEAD_BYTES);
        let whole = self.ended && held == self.end - self.start;
        let bytes = &self.buffer[self.start..self.start + held];
        Ok(FileHead { bytes: bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes), whole })
    }

    /// Reads more into the buffer. Sets `ended` at the end of the file.
    fn fill(&mut self, location: SourceLocation) -> TraceResult<()> {
        if let Some(error) = &self.failed {
            return Err(TraceError { location, ..error.clone() });
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.end, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    self.ended = count == 0;
                    return Ok(());
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => {
                    let error = self.broken(location, &cause);
                    self.failed = Some(error.clone());
                    return Err(error);
                }
            }
        }
    }

    fn broken(&self, location: SourceLocation, cause: &io::Error) -> TraceError {
        let message = match self.compression {
            Some(compression) => format!(
                "the {compression} data are truncated, damaged or followed by other data behind \
                 this location ({}); fetch the file again, or decompress what is intact",
                plain(cause)
            ),
            None => format!("cannot be read any further: {}", plain(cause)),
        };
        self.error(location, message)
    }

    /// The next line without its line feed, and whether it had one. `line` is its number.
    ///
    /// # Errors
    /// A line beyond the longest that is accepted, or damaged compressed data.
    #[inline]
    pub fn line(&mut self, line: u64) -> TraceResult<Option<(&[u8], bool)>> {
        let mut searched = 0;
        loop {
            let held = &self.buffer[self.start + searched..self.end];
            if let Some(found) = memchr::memchr(b'\n', held) {
                let range = self.start..self.start + searched + found;
                self.start = range.end + 1;
                return Ok(Some((without_return(&self.buffer[range]), true)));
            }
            searched = self.end - self.start;
            if self.ended {
                let range = self.start..self.end;
                self.start = self.end;
                let last = without_return(&self.buffer[range]);
                return Ok((searched > 0).then_some((last, false)));
            }
            let most = self.line_bytes_max;
            if searched > most {
                return Err(self.error(
                    SourceLocation::Line(line),
                    format!("a line of more than {most} bytes: not a text trace"),
                ));
            }
            self.fill(SourceLocation::Line(line))?;
        }
    }

    /// The next `count` bytes without consuming them, if that many are buffered.
    #[inline]
    pub fn buffered(&self, count: usize) -> Option<&[u8]> {
        self.buffer[self.start..self.end].get(..count)
    }

    /// The next `count` bytes without consuming them; fewer at the end of the file.
    ///
    /// # Errors
    /// Damaged compressed data.
    #[inline]
    pub fn peek(&mut self, count: usize, location: SourceLocation) -> TraceResult<&[u8]> {
        assert!(count <= HEAD_BYTES, "records are small");
        while self.end - self.start < count && !self.ended {
            self.fill(location)?;
        }
        let held = (self.end - self.start).min(count);
        Ok(&self.buffer[self.start..self.start + held])
    }

    /// Consumes `count` bytes returned by [`TraceFile::peek`].
    #[inline]
    pub fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start, "consume what was peeked at");
        self.start += count;
    }

    pub fn skip_byte_order_mark(&mut self) -> TraceResult<()> {
        if self.peek(BYTE_ORDER_MARK.len(), SourceLocation::Line(1))? == BYTE_ORDER_MARK {
            self.consume(BYTE_ORDER_MARK.len());
        }
        Ok(())
    }
}

/// An I/O error without the system's error number.
fn plain(cause: &io::Error) -> String {
    let text = cause.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

#[inline]
fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn compressed(compression: &str, bytes: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::new(6);
        match compression {
            "gzip" => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            "zstd" => zstd::encode_all(bytes, 3).unwrap(),
            "xz" => {
                let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 3);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            "bzip2" => {
                let level = bzip2::Compression::new(6);
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            _ => bytes.to_vec(),
        }
    }

    fn lines(bytes: &[u8]) -> (Vec<(String, bool)>, Option<String>, Option<&'static str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, bytes).unwrap();
        let mut input = match TraceFile::open(&path) {
            Ok(input) => input,
            Err(error) => return (Vec::new(), Some(error.message), None),
        };
        let (mut lines, mut number) = (Vec::new(), 0);
        loop {
            number += 1;
            match input.line(number) {
                Ok(Some((line, ended))) => {
                    lines.push((String::from_utf8_lossy(line).into_owned(), ended));
                }
                Ok(None) => return (lines, None, input.compression()),
                Err(error) => {
                    return (lines, Some(format!("{}: {}", error.location, error.message)), None);
                }
            }
        }
    }

    #[test]
    fn every_compression_gives_the_same_lines() {
        let text: String = (0..50_000).map(|i| format!("{i} some line\r\n")).collect();
        let (expected, _, _) = lines(text.as_bytes());
        assert_eq!(expected.len(), 50_000);
        assert_eq!(expected[7], ("7 some line".to_owned(), true));
        for compression in ["gzip", "zstd", "xz", "bzip2"] {
            let bytes = compressed(compression, text.as_bytes());
            let (got, error, found) = lines(&bytes);
            assert_eq!((error, found), (None, Some(compression)));
            assert!(got == expected, "{compression}");
            let twice = [&bytes[..], &bytes[..]].concat();
            assert_eq!(lines(&twice).0.len(), 100_000, "{compression} members one after the other");
        }
    }

    #[test]
    fn truncated_compression_is_a_located_error() {
        let text: String = (0..50_000).map(|i| format!("{} line\n", i * 7919)).collect();
        for compression in ["gzip", "zstd", "xz", "bzip2"] {
            let bytes = compressed(compression, text.as_bytes());
            let (got, error, _) = lines(&bytes[..bytes.len() - bytes.len() / 10]);
            let error = error.expect("an error");
            assert!(error.contains(compression) && error.starts_with(':'), "{error}");
            assert!(
                compression == "bzip2" || !got.is_empty(),
                "{compression} delivers what is intact"
            );
        }
    }

    #[test]
    fn lines_without_end_and_without_limit() {
        assert_eq!(lines(b"a\n\nb").0.len(), 3);
        assert_eq!(lines(b"a\n\nb").0[2], ("b".to_owned(), false));
        assert!(lines(b"").1.unwrap().contains("empty"));
        let long = vec![b'x'; 10 << 20];
        assert!(lines(&long).1.unwrap().contains("a line of more than 65536 bytes"));
        assert!(lines(&compressed("gzip", &long)).1.unwrap().contains("a line of more than"));
    }
}
