//! Text formats: each has a parser for one line, all else is here.

use super::bytes::{FileHead, TraceFile};
use super::normalise::{NormalisedReader, RawRequest, RequestSource, WarningLog};
use super::number::{self, NumberError};
use super::{Confidence, FormatEntry, FormatInput};
use crate::block_events::BlockEvents;
use crate::record::{RecordReader, SourceLocation, TraceResult};
use hybridsim_config::registry::Description;
use hybridsim_engine::Op;

/// A line of a text trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParsedLine {
    Request(RawRequest),
    /// Left out with this warning.
    Skipped(&'static str),
    /// Part of the format, such as a header, but not a request.
    NoRequest,
}

/// Why a line cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineError {
    pub column: &'static str,
    /// A predicate of the column, such as `is missing`.
    pub problem: &'static str,
}

/// Parses one line at a time.
pub(crate) trait LineParser {
    /// Parses `line`, which is neither empty nor a comment.
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError>;
    /// The next of the requests that the last line stands for, after the first.
    #[inline]
    fn repeated(&mut self) -> Option<RawRequest> {
        None
    }
    /// The trace's name of a volume.
    fn label(&self, volume: u64) -> String {
        volume.to_string()
    }
    fn has_times(&self) -> bool {
        true
    }
    /// Numbers of block-layer events so far.
    fn block_events(&self) -> Option<BlockEvents> {
        None
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

    /// Skips `skip` fields and returns the next one.
    pub fn text_at(&mut self, skip: usize) -> &'a [u8] {
        for _ in 0..skip {
            self.text();
        }
        self.text()
    }

    #[inline]
    pub fn whole(&mut self, column: &'static str) -> Result<u64, LineError> {
        number::whole(self.text()).map_err(|error| LineError::number(column, error))
    }

    /// A decimal number times 10^`shift`, rounded.
    #[inline]
    pub fn scaled(&mut self, column: &'static str, shift: usize) -> Result<u64, LineError> {
        number::scaled(self.text(), shift).map_err(|error| LineError::number(column, error))
    }

    /// A field with 1 for read and 0 for write.
    #[inline]
    pub fn one_is_read(&mut self, column: &'static str) -> Result<Op, LineError> {
        match self.text() {
            b"1" => Ok(Op::Read),
            b"0" => Ok(Op::Write),
            _ => Err(LineError::new(column, "is neither 1 (read) nor 0 (write)")),
        }
    }

    /// A field that starts with R or W in either case.
    #[inline]
    pub fn read_or_write(&mut self, column: &'static str) -> Result<Op, LineError> {
        match self.text() {
            b"R" | b"r" | b"Read" | b"read" | b"READ" => Ok(Op::Read),
            b"W" | b"w" | b"Write" | b"write" | b"WRITE" => Ok(Op::Write),
            _ => Err(LineError::new(column, "is neither read nor write")),
        }
    }

    /// All fields that are left.
    pub fn row(mut self) -> Result<Row<'a>, LineError> {
        let mut row = Row { columns: [b""; COLUMNS_MAX], count: 0 };
        while row.count < COLUMNS_MAX {
            if self.rest.is_none_or(|rest| !COMMA && rest.trim_ascii().is_empty()) {
                break;
            }
            row.columns[row.count] = self.text();
            row.count += 1;
        }
        self.end()?;
        Ok(row)
    }

    /// Fails if fields are left.
    #[inline]
    pub fn end(&mut self) -> Result<(), LineError> {
        match self.rest {
            None => Ok(()),
            Some(rest) if !COMMA && rest.trim_ascii().is_empty() => Ok(()),
            Some(_) => Err(LineError::new("the line", "has more columns than this format")),
        }
    }
}

/// The largest number of columns in a [`Row`].
const COLUMNS_MAX: usize = 40;

/// The columns of a line, where they are taken out of order.
pub(crate) struct Row<'a> {
    columns: [&'a [u8]; COLUMNS_MAX],
    count: usize,
}

impl<'a> Row<'a> {
    pub fn columns(&self) -> &[&'a [u8]] {
        &self.columns[..self.count]
    }

    /// The column with this name in a header.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns().iter().position(|column| *column == name.as_bytes())
    }
}

const fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

impl LineError {
    #[cold]
    pub const fn new(column: &'static str, problem: &'static str) -> Self {
        Self { column, problem }
    }

    #[cold]
    pub const fn number(column: &'static str, error: NumberError) -> Self {
        Self { column, problem: error.problem() }
    }
}

/// The requests of a text file.
pub(crate) struct LineSource<P> {
    file: TraceFile,
    parser: P,
    line: u64,
    /// Whether any line was a request.
    read: bool,
}

const HEADER: &str = "the first line is not a request; taken as a header";
const CARRIAGE_RETURN: &str = "a carriage return within the line: lines end with a line feed, or \
                               with both; convert the file (tr '\\r' '\\n')";
const CUT: &str = "the last line is truncated; left out";

impl<P: LineParser> LineSource<P> {
    pub fn new(mut file: TraceFile, parser: P) -> TraceResult<Self> {
        file.skip_byte_order_mark()?;
        Ok(Self { file, parser, line: 0, read: false })
    }
}

#[inline]
fn is_blank_or_comment(line: &[u8]) -> bool {
    match line.first() {
        None | Some(b'#') => true,
        Some(byte) => byte.is_ascii_whitespace() && line.trim_ascii().is_empty(),
    }
}

/// Whether a first line that is not a request may hold column names.
fn may_be_header(line: &[u8]) -> bool {
    line.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'"')
        && line.iter().all(|byte| (b' '..127).contains(byte) || *byte == b'\t')
}

impl<P: LineParser> RequestSource for LineSource<P> {
    #[inline]
    fn next_request(
        &mut self,
        request: &mut RawRequest,
        warnings: &mut WarningLog,
    ) -> TraceResult<bool> {
        if let Some(raw) = self.parser.repeated() {
            *request = raw;
            return Ok(true);
        }
        loop {
            let Some((line, ended)) = self.file.line(self.line + 1)? else { return Ok(false) };
            self.line += 1;
            if is_blank_or_comment(line) {
                continue;
            }
            let location = SourceLocation::Line(self.line);
            match self.parser.parse(line) {
                Ok(ParsedLine::Request(raw)) => {
                    self.read = true;
                    *request = raw;
                    return Ok(true);
                }
                Ok(ParsedLine::NoRequest) => {}
                Ok(ParsedLine::Skipped(message)) => warnings.add(location, message),
                Err(_) if self.line == 1 && may_be_header(line) => warnings.add(location, HEADER),
                Err(_) if memchr::memchr(b'\r', line).is_some() => {
                    return Err(self.file.error(location, CARRIAGE_RETURN.to_owned()));
                }
                Err(_) if !ended => warnings.add(location, CUT),
                Err(bad) => {
                    let shown = excerpt(line);
                    let message = format!("{} {} in \"{shown}\"", bad.column, bad.problem);
                    warnings.bad_record(self.file.error(location, message), self.read)?;
                }
            }
        }
    }

    fn location(&self) -> SourceLocation {
        SourceLocation::Line(self.line)
    }

    fn file(&self) -> &TraceFile {
        &self.file
    }

    fn label(&self, volume: u64) -> String {
        self.parser.label(volume)
    }

    fn has_times(&self) -> bool {
        self.parser.has_times()
    }

    fn block_events(&self) -> Option<BlockEvents> {
        self.parser.block_events()
    }
}

/// The start of a line, escaped for messages.
fn excerpt(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(100)]);
    let mut shown: String = text.chars().take(72).flat_map(char::escape_default).take(90).collect();
    if shown.len() < line.len() {
        shown += "...";
    }
    shown
}

pub(crate) fn open_lines<P: LineParser + 'static>(
    input: FormatInput,
    parser: P,
) -> TraceResult<Box<dyn RecordReader>> {
    let FormatInput { file, reorder_records, warnings, .. } = input;
    let source = LineSource::new(file, parser)?;
    Ok(Box::new(NormalisedReader::new(source, reorder_records, warnings)))
}

/// A format whose parser accepts no lines of other formats and has no parameters.
pub(crate) const fn text_format<P: LineParser + Default + 'static>(
    description: Description,
    sample: &'static [u8],
) -> FormatEntry {
    FormatEntry {
        description,
        sniff: |head| sniff_lines(head, &mut P::default(), Confidence::Certain),
        open: |input| open_lines(input, P::default()),
        same_as: &[],
        sample,
    }
}

/// The complete lines of a head that are neither empty nor comments, and whether each is doubtful:
/// a possible header, or a last line without a line feed.
pub(crate) fn head_lines<'a>(head: &FileHead<'a>) -> impl Iterator<Item = (&'a [u8], bool)> {
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
        .filter(|(line, _)| !is_blank_or_comment(line))
}

/// Counts (requests, lines with errors) of a head.
pub(crate) fn try_lines<P: LineParser>(head: &FileHead<'_>, parser: &mut P) -> (usize, usize) {
    let (mut requests, mut bad) = (0, 0);
    for (line, doubtful) in head_lines(head) {
        match parser.parse(line) {
            Ok(ParsedLine::Request(raw)) => requests += usize::from(!raw.completion),
            Ok(_) => {}
            Err(_) if doubtful => {}
            Err(_) => bad += 1,
        }
    }
    (requests, bad)
}

/// One bad line in so many leaves a format likely.
pub(crate) const FEW_BAD: usize = 10;

/// `best` when the parser accepts all lines of the head, less when it accepts most.
pub(crate) fn sniff_lines<P: LineParser>(
    head: &FileHead<'_>,
    parser: &mut P,
    best: Confidence,
) -> Confidence {
    match try_lines(head, parser) {
        (0, _) => Confidence::No,
        (_, 0) => best,
        (requests, bad) if bad * FEW_BAD <= requests => best.min(Confidence::Likely),
        (requests, bad) if requests > bad => Confidence::Possible,
        _ => Confidence::No,
    }
}

/// Compares a parsed line with its description in words.
#[cfg(test)]
pub(crate) fn check_line<P: LineParser>(parser: &mut P, line: &str, expect: &str) {
    let got = match parser.parse(line.as_bytes()) {
        Ok(ParsedLine::Request(raw)) => {
            let (time, volume) = (raw.time_ns, parser.label(raw.volume));
            let (op, start, sectors) = (raw.op.name(), raw.start, raw.sectors);
            let mut words = format!("{time} ns, volume {volume}: {op} {start}+{sectors}");
            if raw.rounded {
                words += " widened";
            }
            if raw.completion {
                words += " done";
            }
            if raw.flags != hybridsim_engine::Flags::NONE {
                words += &format!(" flags {}", raw.flags.0);
            }
            if raw.response_ns != RawRequest::NO_RESPONSE {
                words += &format!(" in {}", raw.response_ns);
            }
            words
        }
        Ok(ParsedLine::Skipped(message)) => format!("skipped: {message}"),
        Ok(ParsedLine::NoRequest) => "no request".to_owned(),
        Err(bad) => format!("{} {}", bad.column, bad.problem),
    };
    assert_eq!(got, expect, "{line}");
}
