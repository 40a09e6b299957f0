//! Parses text to statements.
//!
//! Limits for hostile files: nesting, files read, bytes of text and total values.

use crate::source::{FileSource, LocatedError, Result, SourceLocation, quote};
use crate::syntax::{Block, Entry, Item, Statement, TopologyNode, Value};

/// Maximum nesting of blocks, lists, topologies and sourced files.
const DEPTH_MAX: u32 = 48;
const FILES_MAX: usize = 1_000;
const TEXT_BYTES_MAX: usize = 256 << 20;
const VALUES_MAX: usize = 8_000_000;
/// Maximum names of a range such as `disk0 .. disk9`.
const RANGE_MAX: u64 = 10_000;

/// State shared by the parsers of all files.
pub(crate) struct SourceReader<'a> {
    files: &'a mut dyn FileSource,
    /// Names of the files read so far, for locations.
    pub names: Vec<String>,
    bytes: usize,
    values: usize,
}

impl<'a> SourceReader<'a> {
    pub fn new(files: &'a mut dyn FileSource) -> Self {
        Self { files, names: Vec::new(), bytes: 0, values: 0 }
    }

    /// Reads `name`, named in the file at `from`; returns its number and text.
    pub fn open(&mut self, name: &str, from: Option<SourceLocation>) -> Result<(u32, String)> {
        let trouble = |message| LocatedError { at: from, message };
        if self.names.len() >= FILES_MAX {
            let message = format!("more than {FILES_MAX} files are sourced; check for a cycle");
            return Err(trouble(message));
        }
        let parent = from.map_or("", |at| self.names[at.file as usize].as_str()).to_owned();
        let (shown, text) = self.files.read(name, &parent).map_err(trouble)?;
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > TEXT_BYTES_MAX {
            return Err(trouble(format!("the files are larger than {TEXT_BYTES_MAX} bytes")));
        }
        self.names.push(shown);
        Ok((self.names.len() as u32 - 1, text))
    }

    /// The statements of the first file and all it sources.
    pub fn statements(&mut self, name: &str) -> Result<Vec<Statement>> {
        let (file, text) = self.open(name, None)?;
        let mut statements = Vec::new();
        Parser::new(file, &text, self).statements(&mut statements, 0)?;
        Ok(statements)
    }

    /// A value written on the command line.
    pub fn value(&mut self, text: &str, shown: &str) -> Result<Item> {
        self.names.push(shown.to_owned());
        let file = self.names.len() as u32 - 1;
        let mut parser = Parser::new(file, text, self);
        let item = parser.value(0)?;
        parser.blank();
        if parser.at < parser.text.len() {
            return parser.expected("one value");
        }
        Ok(item)
    }
}

struct Parser<'a, 'r, 'f> {
    text: &'a [u8],
    at: usize,
    line: u32,
    line_start: usize,
    file: u32,
    reading: &'r mut SourceReader<'f>,
}

impl<'a, 'r, 'f> Parser<'a, 'r, 'f> {
    fn new(file: u32, text: &'a str, reading: &'r mut SourceReader<'f>) -> Self {
        Self { text: text.as_bytes(), at: 0, line: 1, line_start: 0, file, reading }
    }

    fn location(&self) -> SourceLocation {
        let column = (self.at - self.line_start).min(u32::MAX as usize - 1) as u32 + 1;
        SourceLocation { file: self.file, line: self.line, column }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn step(&mut self) {
        if self.peek() == Some(b'\n') {
            self.line = self.line.saturating_add(1);
            self.line_start = self.at + 1;
        }
        self.at += 1;
    }

    fn blank(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'#' => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                byte if byte.is_ascii_whitespace() => self.step(),
                _ => return,
            }
        }
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        let found = match self.peek() {
            None => "the end of the file".to_owned(),
            Some(_) => {
                let rest = &self.text[self.at..];
                let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                quote(&String::from_utf8_lossy(&rest[..end.min(80)]))
            }
        };
        Err(LocatedError::new(self.location(), format!("expected {what}, found {found}")))
    }

    /// The text up to one of `stops` on this line, trimmed.
    fn until(&mut self, stops: &[u8]) -> String {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte != b'\n' && !stops.contains(&byte)) {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.text[start..self.at]).trim().to_owned()
    }

    fn take(&mut self, byte: u8, what: &str) -> Result<()> {
        self.blank();
        if self.peek() != Some(byte) {
            return self.expected(what);
        }
        self.at += 1;
        Ok(())
    }

    fn deeper(&self, depth: u32) -> Result<u32> {
        if depth >= DEPTH_MAX {
            let message = format!("nested more than {DEPTH_MAX} deep");
            return Err(LocatedError::new(self.location(), message));
        }
        Ok(depth + 1)
    }

    fn count_value(&mut self) -> Result<()> {
        self.reading.values += 1;
        if self.reading.values > VALUES_MAX {
            return Err(LocatedError::new(
                self.location(),
                format!("more than {VALUES_MAX} values"),
            ));
        }
        Ok(())
    }

    fn statements(&mut self, out: &mut Vec<Statement>, depth: u32) -> Result<()> {
        let depth = self.deeper(depth)?;
        loop {
            self.blank();
            if self.peek().is_none() {
                return Ok(());
            }
            let location = self.location();
            let words = self.until(b"{}[],=#");
            let first = words.split_whitespace().next().unwrap_or("");
            match first {
                "source" => {
                    let name = words["source".len()..].trim();
                    let (file, text) = self.reading.open(name, Some(location))?;
                    Parser::new(file, &text, self.reading).statements(out, depth)?;
                }
                "instantiate" => out.push(self.instantiate(location, depth)?),
                "topology" => {
                    let rest = words["topology".len()..].trim().to_owned();
                    out.push(Statement::Topology(self.node(location, &rest, depth)?));
                }
                "" => {
                    return self.expected("a block, `source`, `instantiate` or `topology`");
                }
                _ => {
                    self.blank();
                    if self.peek() != Some(b'{') {
                        return self.expected("`{` after the kind and name of a block");
                    }
                    self.count_value()?;
                    out.push(Statement::Block(self.block(location, &words, depth)?));
                }
            }
        }
    }

    fn instantiate(&mut self, location: SourceLocation, depth: u32) -> Result<Statement> {
        self.blank();
        if self.peek() != Some(b'[') {
            return self.expected("`[` and the names of what to instantiate");
        }
        let names = self.value(depth)?.words()?;
        self.blank();
        let at = self.location();
        let rest = self.until(b"{}[],=#");
        match rest.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["as", spec] => {
                Ok(Statement::Instantiate { location, names, spec: (*spec).to_owned() })
            }
            _ => {
                let message = format!("expected `as NAME`, found {}", quote(&rest));
                Err(LocatedError::new(at, message))
            }
        }
    }

    /// `kind name [ children ]`, after `words` has been read.
    fn node(&mut self, location: SourceLocation, words: &str, depth: u32) -> Result<TopologyNode> {
        let depth = self.deeper(depth)?;
        self.count_value()?;
        let words: Vec<&str> = words.split_whitespace().collect();
        let &[kind, name] = words.as_slice() else {
            let message = format!("expected a kind and a name, found {}", quote(&words.join(" ")));
            return Err(LocatedError::new(location, message));
        };
        let mut children = Vec::new();
        self.take(b'[', "`[` after the name of a component")?;
        loop {
            self.blank();
            match self.peek() {
                Some(b']') => break,
                Some(b',') if !children.is_empty() => self.at += 1,
                _ if children.is_empty() => {}
                _ => return self.expected("`,` or `]`"),
            }
            self.blank();
            let location = self.location();
            let words = self.until(b"{}[],=#");
            children.push(self.node(location, &words, depth)?);
        }
        self.at += 1;
        Ok(TopologyNode { location, kind: kind.to_owned(), name: name.to_owned(), children })
    }

    /// `kind name : parent { ... }`, after `words` has been read up to the brace.
    fn block(&mut self, location: SourceLocation, words: &str, depth: u32) -> Result<Block> {
        let depth = self.deeper(depth)?;
        let (own, parent) = match words.split_once(" : ") {
            Some((own, parent)) => (own, Some(parent.trim().to_owned())),
            None => (words, None),
        };
        let (kind, name) = own.split_once(char::is_whitespace).unwrap_or((own, ""));
        let (kind, name) = (kind.to_owned(), name.trim().to_owned());
        self.take(b'{', "`{`")?;
        let mut entries = Vec::new();
        loop {
            self.blank();
            if self.peek() == Some(b'}') {
                break;
            }
            let location = self.location();
            let key = self.until(b"{}[],=#");
            if key.is_empty() {
                return self.expected("`name = value` or `}`");
            }
            if self.peek() != Some(b'=') {
                return self.expected(&format!("`=` after {}", quote(&key)));
            }
            self.at += 1;
            let item = self.value(depth)?;
            entries.push(Entry { key, location, item });
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {}
                _ => return self.expected("`,` or `}`"),
            }
        }
        self.at += 1;
        Ok(Block { location, kind, name, parent, entries })
    }

    fn value(&mut self, depth: u32) -> Result<Item> {
        self.blank();
        let location = self.location();
        self.count_value()?;
        if self.peek() == Some(b'[') {
            return self.list(location, depth);
        }
        let words = self.until(b"{}[],#");
        if words.is_empty() {
            return self.expected("a value");
        }
        if let Some(name) = words.strip_prefix("source").filter(|s| s.starts_with([' ', '\t'])) {
            let depth = self.deeper(depth)?;
            let (file, text) = self.reading.open(name.trim(), Some(location))?;
            return Parser::new(file, &text, self.reading).value(depth);
        }
        self.blank();
        let value = match self.peek() {
            Some(b'{') => Value::Block(Box::new(self.block(location, &words, depth)?)),
            _ => scalar(&words),
        };
        Ok(Item { location, value })
    }

    fn list(&mut self, location: SourceLocation, depth: u32) -> Result<Item> {
        let depth = self.deeper(depth)?;
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.blank();
            match self.peek() {
                Some(b']') => break,
                None => return self.expected("`]`"),
                _ => {}
            }
            let item = self.value(depth)?;
            match range(&item)? {
                Some(names) => {
                    for name in names {
                        self.count_value()?;
                        let value = Value::Text(name.into());
                        items.push(Item { location: item.location, value });
                    }
                }
                None => items.push(item),
            }
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {}
                _ => return self.expected("`,` or `]`"),
            }
        }
        self.at += 1;
        Ok(Item { location, value: Value::List(items) })
    }
}

fn scalar(words: &str) -> Value {
    let hex = words.strip_prefix("0x").or_else(|| words.strip_prefix("0X"));
    if let Some(n) = hex.and_then(|digits| i64::from_str_radix(digits, 16).ok()) {
        return Value::Whole(n);
    }
    if let Ok(n) = words.parse() {
        return Value::Whole(n);
    }
    let numeric = words.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    match words.parse::<f64>() {
        Ok(x) if numeric && x.is_finite() => Value::Number(x),
        _ => Value::Text(words.trim_matches('"').into()),
    }
}

fn range(item: &Item) -> Result<Option<Vec<String>>> {
    let Value::Text(text) = &item.value else { return Ok(None) };
    let Some((first, last)) = text.split_once("..").filter(|_| !text.contains('/')) else {
        return Ok(None);
    };
    names_between(first.trim(), last.trim())
        .map(Some)
        .map_err(|message| LocatedError::new(item.location, message))
}

/// `disk3`, `disk4`, `disk5` for `disk3` and `disk5`.
pub(crate) fn names_between(first: &str, last: &str) -> Result<Vec<String>, String> {
    let split = |name: &str| {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        name[stem.len()..].parse::<u64>().ok().map(|number| (stem, number))
    };
    let unclear = || {
        format!(
            "a range needs one name with two numbers, such as disk0 .. disk9, not {} .. {}",
            quote(first),
            quote(last)
        )
    };
    let ((stem, low), (other, high)) = split(first).zip(split(last)).ok_or_else(unclear)?;
    if stem != other || high < low {
        return Err(unclear());
    }
    if high - low >= RANGE_MAX {
        return Err(format!("a range of more than {RANGE_MAX} names"));
    }
    Ok((low..=high).map(|number| format!("{stem}{number}")).collect())
}
