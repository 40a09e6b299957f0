//! Text formats: a parser per line, everything else here.

use super::bytes::{Head, Input};
use super::number::{self, NumberError};
use super::rows::{Notes, Row, RowSource};
use super::{Confidence, Opening};
use crate::record::{Place, RecordReader, TraceError};
use hybridsim_engine::Op;

/// What a line turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A request.
    Row(Row),
    /// Left out with this warning.
    Odd(&'static str),
    /// Belongs to the format but is no request.
    Other,
}

/// Why a line cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadLine {
    /// The column.
    pub column: &'static str,
    /// What about it.
    pub words: &'static str,
}

/// Reads one line at a time.
pub(crate) trait LineParser {
    /// Reads `line`, which is neither empty nor a comment.
    fn parse(&mut self, line: &[u8]) -> Result<Line, BadLine>;
    /// What the trace calls a volume.
    fn label(&self, volume: u64) -> String {
        volume.to_string()
    }
    fn has_times(&self) -> bool {
        true
    }
}

/// The fields of a line: separated by commas, or by runs of blanks.
pub(crate) struct Fields<'a, const COMMA: bool> {
    rest: Option<&'a [u8]>,
}
pub(crate) type Commas<'a> = Fields<'a, true>;
pub(crate) type Blanks<'a> = Fields<'a, false>;

impl<'a, const COMMA: bool> Fields<'a, COMMA> {
    pub const fn new(line: &'a [u8]) -> Self {
        Self { rest: Some(line) }
    }

    /// The next field; empty at the end of the line.
    #[inline]
    pub fn text(&mut self) -> &'a [u8] {
        let Some(rest) = self.rest else { return b"" };
        if COMMA {
            let end = rest.iter().position(|byte| *byte == b',');
            self.rest = end.map(|end| &rest[end + 1..]);
            return rest[..end.unwrap_or(rest.len())].trim_ascii();
        }
        let start = rest.iter().position(|byte| !is_blank(*byte)).unwrap_or(rest.len());
        let rest = &rest[start..];
        let end = rest.iter().position(|byte| is_blank(*byte)).unwrap_or(rest.len());
        self.rest = Some(&rest[end..]);
        &rest[..end]
    }

    /// Passes over `skip` fields and gives the one behind them.
    pub fn text_at(&mut self, skip: usize) -> &'a [u8] {
        for _ in 0..skip {
            self.text();
        }
        self.text()
    }

    #[inline]
    pub fn whole(&mut self, column: &'static str) -> Result<u64, BadLine> {
        number::whole(self.text()).map_err(|error| BadLine::number(column, error))
    }

    /// A decimal number times 10^`shift`, rounded.
    #[inline]
    pub fn scaled(&mut self, column: &'static str, shift: usize) -> Result<u64, BadLine> {
        number::scaled(self.text(), shift).map_err(|error| BadLine::number(column, error))
    }

    /// A field with 1 for read and 0 for write.
    #[inline]
    pub fn one_is_read(&mut self, column: &'static str) -> Result<Op, BadLine> {
        match self.text() {
            b"1" => Ok(Op::Read),
            b"0" => Ok(Op::Write),
            _ => Err(BadLine::new(column, "is neither 1 (read) nor 0 (write)")),
        }
    }

    /// A field that starts with R or W in either case.
    #[inline]
    pub fn read_or_write(&mut self, column: &'static str) -> Result<Op, BadLine> {
        match self.text() {
            b"R" | b"r" | b"Read" | b"read" | b"READ" => Ok(Op::Read),
            b"W" | b"w" | b"Write" | b"write" | b"WRITE" => Ok(Op::Write),
            _ => Err(BadLine::new(column, "is neither read nor write")),
        }
    }

    /// Fails if anything is left.
    #[inline]
    pub fn end(&mut self) -> Result<(), BadLine> {
        match self.rest {
            None => Ok(()),
            Some(rest) if !COMMA && rest.trim_ascii().is_empty() => Ok(()),
            Some(_) => Err(BadLine::new("the line", "has more columns than this format")),
        }
    }
}

const fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

impl BadLine {
    #[cold]
    pub const fn new(column: &'static str, words: &'static str) -> Self {
        Self { column, words }
    }

    #[cold]
    pub const fn number(column: &'static str, error: NumberError) -> Self {
        Self { column, words: error.words() }
    }
}

/// A text file as rows.
pub(crate) struct Lines<P> {
    input: Input,
    parser: P,
    line: u64,
}

const HEADER: &str = "the first line is no request; taken as a header";
const CARRIAGE_RETURN: &str = "a carriage return within the line: lines end with a line feed, or \
                               with both; convert the file (tr '\\r' '\\n')";
const CUT: &str = "the last line is cut off; left out";

impl<P: LineParser> Lines<P> {
    pub fn new(mut input: Input, parser: P) -> Result<Self, TraceError> {
        input.skip_byte_order_mark()?;
        Ok(Self { input, parser, line: 0 })
    }
}

/// A line with nothing to read on it.
#[inline]
fn is_void(line: &[u8]) -> bool {
    match line.first() {
        None | Some(b'#') => true,
        Some(byte) => byte.is_ascii_whitespace() && line.trim_ascii().is_empty(),
    }
}

/// Whether a first line that is no request may be column names.
fn may_be_header(line: &[u8]) -> bool {
    line.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'"')
        && line.iter().all(|byte| (b' '..127).contains(byte) || *byte == b'\t')
}

impl<P: LineParser> RowSource for Lines<P> {
    #[inline]
    fn next_row(&mut self, notes: &mut Notes) -> Result<Option<Row>, TraceError> {
        loop {
            let Some((line, ended)) = self.input.line(self.line + 1)? else { return Ok(None) };
            self.line += 1;
            if is_void(line) {
                continue;
            }
            let place = Place::Line(self.line);
            match self.parser.parse(line) {
                Ok(Line::Row(row)) => return Ok(Some(row)),
                Ok(Line::Other) => {}
                Ok(Line::Odd(message)) => notes.note(place, message),
                Err(_) if self.line == 1 && may_be_header(line) => notes.note(place, HEADER),
                Err(_) if memchr::memchr(b'\r', line).is_some() => {
                    return Err(self.input.error(place, CARRIAGE_RETURN.to_owned()));
                }
                Err(_) if !ended => notes.note(place, CUT),
                Err(bad) => {
                    let shown = excerpt(line);
                    let message = format!("{} {} in \"{shown}\"", bad.column, bad.words);
                    return Err(self.input.error(place, message));
                }
            }
        }
    }

    fn place(&self) -> Place {
        Place::Line(self.line)
    }

    fn input(&self) -> &Input {
        &self.input
    }

    fn label(&self, volume: u64) -> String {
        self.parser.label(volume)
    }

    fn has_times(&self) -> bool {
        self.parser.has_times()
    }
}

/// The start of a line, fit to be shown.
fn excerpt(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(100)]);
    let mut shown: String = text.chars().take(72).flat_map(char::escape_default).take(90).collect();
    if shown.len() < line.len() {
        shown += "...";
    }
    shown
}

/// Opens a text format.
pub(crate) fn open_lines<P: LineParser + 'static>(
    opening: Opening,
    parser: P,
) -> Result<Box<dyn RecordReader>, TraceError> {
    let Opening { input, reorder_records, .. } = opening;
    Ok(Box::new(super::rows::Records::new(Lines::new(input, parser)?, reorder_records)))
}

/// The whole lines of a head that are neither empty nor comments, and whether each is the first of
/// the file or the last without an end.
pub(crate) fn head_lines<'a>(head: &Head<'a>) -> impl Iterator<Item = (&'a [u8], bool)> {
    let bytes = head.bytes;
    let end = match memchr::memrchr(b'\n', bytes) {
        _ if head.whole => bytes.len(),
        Some(end) => end + 1,
        None => 0,
    };
    let doubtful = if bytes.ends_with(b"\n") { None } else { Some(end) };
    bytes[..end]
        .split(|byte| *byte == b'\n')
        .scan(0, move |at, line| {
            let first = *at == 0;
            *at += line.len() + 1;
            let last = doubtful.is_some_and(|end| *at > end);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            Some((line, last || (first && may_be_header(line))))
        })
        .filter(|(line, _)| !is_void(line))
}

/// How well a parser reads a head: (requests, lines it cannot read).
pub(crate) fn try_lines<P: LineParser>(head: &Head<'_>, parser: &mut P) -> (usize, usize) {
    let (mut rows, mut bad) = (0, 0);
    for (line, doubtful) in head_lines(head) {
        match parser.parse(line) {
            Ok(Line::Row(row)) => rows += usize::from(!row.done),
            Ok(_) => {}
            Err(_) if doubtful => {}
            Err(_) => bad += 1,
        }
    }
    (rows, bad)
}

/// `best` when the parser reads all lines of the head, less when it reads most.
pub(crate) fn sniff_lines<P: LineParser>(
    head: &Head<'_>,
    parser: &mut P,
    best: Confidence,
) -> Confidence {
    match try_lines(head, parser) {
        (0, _) => Confidence::No,
        (_, 0) => best,
        (rows, bad) if rows > bad => Confidence::Possible,
        _ => Confidence::No,
    }
}

/// Checks what a parser makes of a line, in words.
#[cfg(test)]
pub(crate) fn check_line<P: LineParser>(parser: &mut P, line: &str, expect: &str) {
    let got = match parser.parse(line.as_bytes()) {
        Ok(Line::Row(row)) => {
            let (time, volume) = (row.time_ns, parser.label(row.volume));
            let (op, start, sectors) = (row.op.name(), row.start, row.sectors);
            let mut words = format!("{time} ns, volume {volume}: {op} {start}+{sectors}");
            if row.rounded {
                words += " widened";
            }
            if row.done {
                words += " done";
            }
            if row.flags != hybridsim_engine::Flags::NONE {
                words += &format!(" flags {}", row.flags.0);
            }
            if row.response_ns != Row::UNKNOWN {
                words += &format!(" in {}", row.response_ns);
            }
            words
        }
        Ok(Line::Odd(message)) => format!("odd: {message}"),
        Ok(Line::Other) => "no request".to_owned(),
        Err(bad) => format!("{} {}", bad.column, bad.words),
    };
    assert_eq!(got, expect, "{line}");
}
