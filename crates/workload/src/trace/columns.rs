//! Any CSV or other table of text, described by the user: which column holds what, in which unit.

use super::bytes::HEAD_BYTES;
use super::extents::Extents;
use super::lines::{LineError, LineParser, ParsedLine, head_lines, open_lines};
use super::names::NameTable;
use super::normalise::RawRequest;
use super::number;
use super::{Confidence, FileHead, FormatEntry, FormatInput};
use crate::record::{RecordReader, SourceLocation, TraceResult};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Op, SECTOR_BYTES};

hybridsim_config::choices! {
    pub(super) enum TimeUnit {
        Seconds = "s",
        Milliseconds = "ms",
        Microseconds = "us",
        HundredNanoseconds = "100ns",
        Nanoseconds = "ns",
    }
}

hybridsim_config::choices! {
    /// Separator of columns.
    enum Separator {
        Auto = "auto",
        Comma = "comma",
        Semicolon = "semicolon",
        Tab = "tab",
        Blanks = "blanks",
    }
}

hybridsim_config::choices! {
    /// Meaning of the column of the address.
    enum Objects { Address = "address", Dense = "dense" }
}

hybridsim_config::params! {
    struct Parameters {
        time: String = Kind::Text, default "\"time\"",
            "Column of the arrival time: its number, counted from 1, or its name in the first \
             line. \"\" if there is none.";
        time_unit: TimeUnit = Kind::Choice(TimeUnit::NAMES), default "\"s\""
            needs &[Needs::Not("time", &[""])],
            "Unit of the times: s, ms, us, 100ns or ns.";
        op: String = Kind::Text, default "\"op\"",
            "Column of the operation, which begins with R, W, D or T (discard, trim) or F (flush) \
             unless `read` is given. \"\" if all requests are reads.";
        read: Option<String> = Kind::Text, optional needs &[Needs::Not("op", &[""])],
            "The text in the column of the operation that means a read, such as 1; all others are \
             writes.";
        offset: String = Kind::Text, default "\"offset\"",
            "Column of the address within its volume, decimal or as 0x1f00.";
        size: String = Kind::Text, default "\"size\"",
            "Column of the length, in the unit of addresses. \"\" if there is none: then each \
             request is one `size_unit` long.";
        objects: Objects = Kind::Choice(Objects::NAMES), default "\"address\"",
            "What the column `offset` holds: an address, or (`dense`) an identifier, any number or \
             text; then objects of all volumes are laid out in order of first appearance (memory \
             grows with their number), and `unit` has no effect.";
        volume: Option<String> = Kind::Text, optional,
            "Column of the volume, a number or a name; one volume when absent.";
        unit: u64 = Kind::Bytes, default "\"1B\"", "Unit of the addresses, such as 512B or 4KiB.";
        size_unit: Option<u64> = Kind::Bytes, optional,
            "Unit of the lengths; that of the addresses if absent.";
        separator: Separator = Kind::Choice(Separator::NAMES), default "\"auto\"",
            "What separates columns; `auto` takes tab, comma, semicolon or blanks, whichever comes \
             first in this list, is in the first line, and gives requests.";
    }
}

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "columns",
        summary: "Any table of text whose columns you describe: time, op, offset, size, volume.",
        origin: "docs/reference/traces.md",
        params: Parameters::PARAMS,
    },
    sniff,
    open,
    same_as: &[],
    sample: b"time,op,offset,size\n0.5,R,4096,8192\n0.75,write,1048576,512\n1.5,Read,0,4096\n",
};

/// A table whose first line has the default names.
fn sniff(head: &FileHead<'_>) -> Confidence {
    let first = first_line(head);
    let separator = separator(first);
    let has =
        |name: &str| split(first, separator).any(|text| text.eq_ignore_ascii_case(name.as_bytes()));
    match ["time", "op", "offset", "size"].into_iter().all(has) {
        true => Confidence::Likely,
        false => Confidence::No,
    }
}

/// Names of the columns that are needed, in lower case, as tables at hand have them.
const NAMES: [(&str, &[&str]); 4] = [
    ("time", &["time", "timestamp", "ts", "arrival", "time_s", "time_ms", "time_us", "time_ns"]),
    ("op", &["op", "operation", "type", "rw", "io_type", "opcode", "action", "cmd"]),
    ("offset", &["offset", "lba", "address", "addr", "sector", "start", "block", "off"]),
    ("size", &["size", "length", "len", "bytes", "sectors", "count", "io_size", "nbytes"]),
];

/// Whether the first line names the columns that are needed.
pub(super) fn is_named(head: &FileHead<'_>) -> bool {
    NAMES.iter().all(|(_, names)| named(first_line(head), names).is_some())
}

/// The column of the line that has one of the names, as it is written there.
fn named<'a>(line: &'a [u8], names: &[&str]) -> Option<&'a [u8]> {
    let called = |text: &&[u8]| names.iter().any(|it| text.eq_ignore_ascii_case(it.as_bytes()));
    split(line, separator(line)).find(called)
}

/// A description of the columns that the first line names, or of numbers alone, for the user to
/// complete with units.
pub(super) fn suggestion(head: &FileHead<'_>) -> Option<String> {
    let is_number =
        |(line, _): (&[u8], bool)| number::whole_or_hexadecimal(line.trim_ascii()).is_ok();
    if head_lines(head).next().is_some() && head_lines(head).all(is_number) {
        let numbers = "time = \"\", op = \"\", offset = \"1\", size = \"\", unit = \"4KiB\"";
        return Some(format!("{{ kind = \"columns\", {numbers} }}"));
    }
    let mut out = "{ kind = \"columns\"".to_owned();
    let (mut time_unit, mut unit) = ("s", "1B");
    for (key, names) in NAMES {
        let name = String::from_utf8_lossy(named(first_line(head), names)?);
        out += &format!(", {key} = \"{name}\"");
        match (key, &*name.to_lowercase()) {
            ("time", suffixed) if suffixed.contains('_') => {
                let mut units = ["ms", "us", "ns"].into_iter();
                time_unit = units.find(|it| suffixed.ends_with(it)).unwrap_or("s");
            }
            ("offset", "lba" | "sector") => unit = "512B",
            _ => {}
        }
    }
    Some(format!("{out}, time_unit = \"{time_unit}\", unit = \"{unit}\" }}"))
}

fn first_line<'a>(head: &FileHead<'a>) -> &'a [u8] {
    head.bytes.split(|byte| *byte == b'\n').next().unwrap_or_default()
}

/// The bytes that separate columns, in the order in which they are looked for, with their choices
/// and plurals; a blank stands for runs of blanks.
const SEPARATORS: [(u8, Separator, &str); 4] = [
    (b'\t', Separator::Tab, "tabs"),
    (b',', Separator::Comma, "commas"),
    (b';', Separator::Semicolon, "semicolons"),
    (b' ', Separator::Blanks, "blanks"),
];

/// The first separator that a line contains.
fn separator(line: &[u8]) -> u8 {
    let found = SEPARATORS.into_iter().find(|(byte, ..)| line.contains(byte));
    found.map_or(b' ', |(byte, ..)| byte)
}

/// The columns of a line, without quotation marks and blanks around them.
fn split(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let blanks = separator == b' ';
    line.split(move |byte| *byte == separator || (blanks && *byte == b'\t'))
        .filter(move |text| !(blanks && text.is_empty()))
        .map(|text| {
            let text = text.trim_ascii();
            text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text)
        })
}

/// Columns counted from 0.
struct Columns {
    separator: u8,
    /// Column, decimal places to nanoseconds, and a factor (the ticks of 100 ns).
    time: Option<(usize, usize, u64)>,
    op: Option<usize>,
    read: Option<Vec<u8>>,
    offset: usize,
    /// Without it each request has one unit.
    size: Option<usize>,
    /// Addresses of identifiers.
    objects: Option<Extents<Vec<u8>>>,
    volume: Option<usize>,
    unit: u64,
    size_unit: u64,
    names: NameTable,
    /// Whether the first line has names.
    header: bool,
    /// Begin and end of each column of a line.
    found: Vec<(usize, usize)>,
}

fn open(mut input: FormatInput) -> TraceResult<Box<dyn RecordReader>> {
    let head = input.file.head()?;
    if !head.whole && !head.bytes.contains(&b'\n') {
        // Reports what truncates the first line.
        input.file.peek(HEAD_BYTES, SourceLocation::Line(1))?;
    }
    let parser = Columns::choose(&input.settings, &input.file.head()?);
    let parser = parser.map_err(|message| input.file.error(SourceLocation::Line(1), message))?;
    open_lines(input, parser)
}

/// Lines that show which separator gives requests.
const TRIED_LINES: usize = 100;

impl Columns {
    /// The parser of a table. With `auto` it takes the first separator that gives requests.
    fn choose(settings: &Settings, head: &FileHead<'_>) -> Result<Self, String> {
        let (first, choice) = (first_line(head), Parameters::from_settings(settings).separator);
        if let Some((byte, ..)) = SEPARATORS.into_iter().find(|(_, named, _)| *named == choice) {
            return Self::new(settings, first, byte);
        }
        let mut found: Option<(u8, &str, Vec<RawRequest>)> = None;
        for (byte, _, name) in SEPARATORS {
            if !first.trim_ascii().contains(&byte) {
                continue;
            }
            let Ok(mut parser) = Self::new(settings, first, byte) else { continue };
            let (mut requests, mut bad) = (Vec::new(), 0);
            for (line, doubtful) in head_lines(head).take(TRIED_LINES) {
                match parser.parse(line) {
                    Ok(ParsedLine::Request(raw)) => requests.push(raw),
                    Ok(_) => {}
                    Err(_) => bad += usize::from(!doubtful),
                }
            }
            match &found {
                _ if requests.len() <= bad => {}
                None => found = Some((byte, name, requests)),
                Some((_, _, same)) if *same == requests => {}
                Some((_, other, _)) => {
                    return Err(format!(
                        "`separator`: {other} and {name} can both separate the columns, with \
                         different requests; name one"
                    ));
                }
            }
        }
        Self::new(settings, first, found.map_or_else(|| separator(first), |(byte, ..)| byte))
    }

    fn new(settings: &Settings, first: &[u8], separator: u8) -> Result<Self, String> {
        let params = Parameters::from_settings(settings);
        let mut header = false;
        let mut column = |name: &str, text: &str| -> Result<Option<usize>, String> {
            if text.is_empty() {
                return Ok(None);
            }
            if let Ok(number) = text.parse::<usize>() {
                return match number.checked_sub(1).filter(|at| *at < 10_000) {
                    Some(at) => Ok(Some(at)),
                    None => Err(format!("`{name}`: columns are counted from 1")),
                };
            }
            header = true;
            let named = |column: &[u8]| column.eq_ignore_ascii_case(text.as_bytes());
            match split(first, separator).position(named) {
                Some(at) => Ok(Some(at)),
                None => Err(format!(
                    "`{name}`: the first line has no column called \"{text}\"; give its name or \
                     number"
                )),
            }
        };
        let (time, op) = (column("time", &params.time)?, column("op", &params.op)?);
        let volume = column("volume", params.volume.as_deref().unwrap_or_default())?;
        let needed = |at: Option<usize>, name| at.ok_or(format!("`{name}` needs a column"));
        let offset = needed(column("offset", &params.offset)?, "offset")?;
        let size = column("size", &params.size)?;
        let (shift, ticks) = match params.time_unit {
            TimeUnit::Seconds => (9, 1),
            TimeUnit::Milliseconds => (6, 1),
            TimeUnit::Microseconds => (3, 1),
            TimeUnit::HundredNanoseconds => (0, 100),
            TimeUnit::Nanoseconds => (0, 1),
        };
        Ok(Self {
            separator,
            time: time.map(|at| (at, shift, ticks)),
            op,
            read: params.read.map(String::into_bytes),
            offset,
            size,
            objects: (params.objects == Objects::Dense).then(Extents::default),
            volume,
            unit: params.unit,
            size_unit: params.size_unit.unwrap_or(params.unit),
            names: NameTable::default(),
            header,
            found: Vec::new(),
        })
    }
}

/// The operation that a word begins with, or that is not the word for reads.
fn op(text: &[u8], read: Option<&[u8]>) -> Result<Op, LineError> {
    let first = text.first().map(u8::to_ascii_uppercase);
    match (read, first) {
        (_, None) => Err(LineError::new("the operation", "is missing")),
        (Some(read), _) if text.eq_ignore_ascii_case(read) => Ok(Op::Read),
        (Some(_), _) | (None, Some(b'W')) => Ok(Op::Write),
        (None, Some(b'R')) => Ok(Op::Read),
        (None, Some(b'D' | b'T')) => Ok(Op::Trim),
        (None, Some(b'F')) => Ok(Op::Flush),
        (None, Some(_)) => Err(LineError::new(
            "the operation",
            "does not begin with R, W, D, T or F: name the text that means a read with `read`",
        )),
    }
}

impl LineParser for Columns {
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        if std::mem::take(&mut self.header) {
            return Ok(ParsedLine::NoRequest);
        }
        let base = line.as_ptr() as usize;
        self.found.clear();
        self.found.extend(split(line, self.separator).map(|text| {
            let start = text.as_ptr() as usize - base;
            (start, start + text.len())
        }));
        let at = |column: usize| match self.found.get(column) {
            Some(&(start, end)) => &line[start..end],
            None => b"",
        };
        let time_ns = match self.time {
            Some((column, shift, ticks)) => {
                let time = number::scaled(at(column), shift);
                let time = time.map_err(|error| LineError::number("the time", error))?;
                time.checked_mul(ticks).ok_or(LineError::new("the time", "is too large"))?
            }
            None => 0,
        };
        let op = match self.op {
            Some(column) => op(at(column), self.read.as_deref())?,
            None => Op::Read,
        };
        let bytes = |name, text: &[u8], unit: u64| -> Result<u64, LineError> {
            let number = number::whole_or_hexadecimal(text);
            let number = number.map_err(|error| LineError::number(name, error))?;
            number.checked_mul(unit).ok_or(LineError::new(name, "is too large"))
        };
        let volume = match self.volume {
            Some(column) => self.names.number("the volume", at(column))?,
            None => 0,
        };
        if op == Op::Flush {
            return Ok(ParsedLine::Request(RawRequest::sectors(time_ns, volume, op, 0, 0)));
        }
        let in_sectors =
            self.unit.is_multiple_of(SECTOR_BYTES) && self.size_unit.is_multiple_of(SECTOR_BYTES);
        // Addresses in sectors or larger units may be beyond 2^64 bytes.
        let scale = if in_sectors { SECTOR_BYTES } else { 1 };
        let raw = |start, length| match in_sectors {
            true => RawRequest::sectors(time_ns, volume, op, start, length),
            false => RawRequest::bytes(time_ns, volume, op, start, length),
        };
        let offset = at(self.offset);
        let address = match self.objects {
            Some(_) => 0,
            None => bytes("the offset", offset, self.unit / scale)?,
        };
        let length = match self.size {
            Some(column) => bytes("the size", at(column), self.size_unit / scale)?,
            None => self.size_unit / scale,
        };
        let mut raw = raw(address, length);
        if let Some(objects) = &mut self.objects {
            NameTable::check("the offset", offset)?;
            raw.start = objects.locate(offset, raw.sectors);
        }
        Ok(ParsedLine::Request(raw))
    }

    fn label(&self, volume: u64) -> String {
        if self.volume.is_some() { self.names.name(volume) } else { volume.to_string() }
    }

    fn has_times(&self) -> bool {
        self.time.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;
    use hybridsim_config::check::defaults;
    use hybridsim_config::param::Value;
    use hybridsim_config::registry::Registry;

    fn settings(list: &[(&'static str, &str)]) -> Settings {
        let mut settings = defaults(Parameters::PARAMS, &Registry::default());
        for &(name, text) in list {
            let value = match text.parse() {
                Ok(bytes) if name.ends_with("unit") => Value::Bytes(bytes),
                _ => Value::Text(text.to_owned()),
            };
            settings.set(name, value);
        }
        settings
    }

    fn columns(first: &str, list: &[(&'static str, &str)]) -> Result<Columns, String> {
        let first = first.as_bytes();
        Columns::new(&settings(list), first, separator(first))
    }

    #[test]
    fn columns_by_name_and_by_number() {
        let mut named = columns("Size;TIME;\"op\";offset;vm", &[("volume", "vm")]).unwrap();
        check_line(&mut named, "Size;TIME;\"op\";offset;vm", "no request");
        check_line(&mut named, "512;0.5;Read;1024;web", "500000000 ns, volume web: read 2+1");
        check_line(&mut named, "512;0.5;flush;;web", "500000000 ns, volume web: flush 0+0");
        check_line(
            &mut named,
            "512;0.5;x;1024;web",
            "the operation does not begin with R, W, D, T or F: name the text that means a read \
             with `read`",
        );
        check_line(&mut named, "512;0.5;R", "the volume is missing");
        let list = [
            ("time", "2"),
            ("op", "1"),
            ("offset", "4"),
            ("size", "3"),
            ("read", "0"),
            ("unit", "4096"),
            ("size_unit", "512"),
            ("time_unit", "100ns"),
        ];
        let mut numbered = columns("1 7 8 2", &list).unwrap();
        check_line(&mut numbered, "1 7 8   2", "700 ns, volume 0: write 16+8");
        check_line(&mut numbered, "0 7 8 2", "700 ns, volume 0: read 16+8");
        check_line(&mut numbered, "0 -7 8 2", "the time is negative");
        check_line(&mut numbered, "0 7 8", "the offset is missing");
        check_line(&mut numbered, "0 7 0x10 0x2", "700 ns, volume 0: read 16+16");
        check_line(&mut numbered, "0 7 0xg 2", "the size is not a number");
        let large = "0 7 8 18446744073709551615";
        check_line(&mut numbered, large, "the offset is too large");
    }

    /// A table with the separator that `auto` finds.
    fn table(text: &str, list: &[(&'static str, &str)]) -> Result<Columns, String> {
        Columns::choose(&settings(list), &FileHead { bytes: text.as_bytes(), whole: true })
    }

    #[test]
    fn a_comma_within_a_column_does_not_separate() {
        let list = [("time", "1"), ("volume", "2"), ("op", "3"), ("offset", "4"), ("size", "5")];
        let line = "0.5 8,0 R 4096 512";
        let mut blanks = table(&format!("{line}\n"), &list).unwrap();
        check_line(&mut blanks, line, "500000000 ns, volume 8,0: read 8+1");
        let line = "0.5, disk a, R, 4096, 512";
        let mut commas = table(&format!("{line}\n"), &list).unwrap();
        check_line(&mut commas, line, "500000000 ns, volume disk a: read 8+1");
        let list = [("time", ""), ("op", ""), ("offset", "1"), ("size", ""), ("objects", "dense")];
        let error = table("a b,c\na c,d\na b,d\n", &list).err().expect("two readings");
        let expect = "`separator`: commas and blanks can both separate the columns, with different \
                      requests; name one";
        assert_eq!(error, expect);
        let widened = "0 ns, volume 0: read 0+1 widened";
        let named = [&list[..], &[("separator", "comma")]].concat();
        check_line(&mut table("a b,c\n", &named).unwrap(), "a b,c", widened);
    }

    #[test]
    fn a_table_without_sizes() {
        let list = [("time", ""), ("op", ""), ("offset", "1"), ("size", ""), ("unit", "4096")];
        let mut numbers = table("0x10\n17\n", &list).unwrap();
        check_line(&mut numbers, "0x10", "0 ns, volume 0: read 128+8");
        check_line(&mut numbers, "17", "0 ns, volume 0: read 136+8");
        let sized = [&list[..], &[("size_unit", "512")]].concat();
        check_line(&mut table("17\n", &sized).unwrap(), "17", "0 ns, volume 0: read 136+1");
        let head = |text: &'static str| FileHead { bytes: text.as_bytes(), whole: true };
        let expect = "{ kind = \"columns\", time = \"\", op = \"\", offset = \"1\", size = \"\", \
                      unit = \"4KiB\" }";
        assert_eq!(suggestion(&head("0x10\n17\n")).as_deref(), Some(expect));
        assert_eq!(suggestion(&head("0x10\nx\n")), None);
        let expect = "{ kind = \"columns\", time = \"time_s\", op = \"RW\", offset = \"lba\", \
                      size = \"size\", time_unit = \"s\", unit = \"512B\" }";
        let table = head("size,time_s,lba,RW\n8,0.1,64,R\n");
        assert_eq!(suggestion(&table).as_deref(), Some(expect));
        assert_eq!(suggestion(&head("\n")), None);
    }

    #[test]
    fn identifiers_are_laid_out_densely() {
        let list = [("time", "1"), ("op", "2"), ("read", "get"), ("offset", "3"), ("size", "4")];
        let dense = [&list[..], &[("objects", "dense")]].concat();
        let mut keys = table("5,get,photo/7,1000\n", &dense).unwrap();
        let second = "5000000000 ns, volume 0:";
        let mut check = |line, expect: &str| check_line(&mut keys, line, expect);
        check("5,get,photo/7,1000", &format!("{second} read 0+2 widened"));
        check("5,set,3f9a,512", &format!("{second} write 2+1"));
        check("5,get,photo/7,100", &format!("{second} read 0+1 widened"));
        check("5,get,photo/7,1025", &format!("{second} read 3+3 widened"));
        check("5,get,,100", "the offset is missing");
        let long = format!("5,get,{},1", "x".repeat(1025));
        check(&long, "the offset is longer than 1,024 bytes");
    }

    #[test]
    fn descriptions_that_do_not_fit() {
        let check = |list: &[(&'static str, &str)], expect: &str| {
            let error = columns("time,op,offset,length", list).err().expect("an error");
            assert!(error.contains(expect), "{error}");
        };
        check(&[], "`size`: the first line has no column called \"size\"");
        check(&[("size", "0")], "columns are counted from 1");
        check(&[("offset", ""), ("size", "4")], "`offset` needs a column");
        let mut untimed =
            columns("time,op,offset,length", &[("size", "4"), ("time", ""), ("op", "")]).unwrap();
        assert!(!untimed.has_times());
        check_line(&mut untimed, "time,op,offset,length", "no request");
        check_line(&mut untimed, "x,x,512,512", "0 ns, volume 0: read 1+1");
    }
}
