//! Open CAS iotrace: `iotrace --parse-trace`, as CSV with a header or as lines of JSON.
//!
//! Addresses and lengths are in sectors, times and latencies in nanoseconds (`parsedTrace.proto` of
//! the Open CAS Telemetry Framework, and the case study of the Standalone Linux IO Tracer).

use super::FormatEntry;
use super::lines::{Commas, LineError, LineParser, ParsedLine, text_format};
use super::names::NameTable;
use super::normalise::RawRequest;
use super::number;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Flags, Op};
use rustc_hash::FxHashMap;
use serde_json::Value;

pub(super) const ENTRY: FormatEntry = text_format::<IoTrace>(
    Description {
        name: "iotrace",
        summary: "Open CAS iotrace --parse-trace, CSV or JSON: device, time and latency in ns, \
                  address and length in sectors, Read, Write or Discard.",
        origin: "Open CAS, Standalone Linux IO Tracer",
        params: &[],
    },
    b"device.id,device.name,file.id,file.offset,file.size,header.sid,header.timestamp,io.error,\
        io.flush,io.fua,io.ioClass,io.latency,io.lba,io.len,io.operation,io.qd\n\
        7340033,nvme0n1,,,,4,51000000,false,false,false,1,90000,2048,8,Read,1\n\
        7340033,nvme0n1,88,0,16,9,51250000,false,false,true,11,30000,8192,16,Write,1\n\
        7340034,nvme1n1,,,,12,51300000,false,true,false,1,200000,0,0,Write,1\n",
);

/// What a line says about a request, in CSV and in JSON.
const KEYS: [&str; 9] = [
    "header.timestamp",
    "io.lba",
    "io.len",
    "io.operation",
    "device.name",
    "device.id",
    "io.latency",
    "io.flush",
    "io.fua",
];
/// Number of the keys, the first, that every table has, besides one of the device.
const NEEDED: usize = 4;
/// Most devices that events describe.
const DESCRIBED_MAX: usize = 1 << 16;

#[derive(Default)]
struct IoTrace {
    /// Columns of [`KEYS`] in the table, and their number.
    table: Option<([Option<usize>; KEYS.len()], usize)>,
    devices: NameTable,
    /// Names that events describe by number, where requests have numbers only.
    described: FxHashMap<Vec<u8>, Vec<u8>>,
}

impl IoTrace {
    fn header(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let row = Commas::new(line).row()?;
        let columns = KEYS.map(|key| row.position(key));
        let has_device = columns[4].or(columns[5]).is_some();
        if columns[..NEEDED].contains(&None) || !has_device {
            let problem = "lacks header.timestamp, io.lba, io.len, io.operation or a device";
            return Err(LineError::new("the first line with the names of columns", problem));
        }
        self.table = Some((columns, row.columns().len()));
        Ok(ParsedLine::NoRequest)
    }

    /// The request of a line with these texts for [`KEYS`].
    fn request(&mut self, texts: [&[u8]; KEYS.len()]) -> Result<ParsedLine, LineError> {
        let [time, lba, len, operation, name, id, latency, flush, fua] = texts;
        let number = |column, text| {
            number::whole(text)
                .map_err(|error: number::NumberError| LineError::number(column, error))
        };
        let time_ns = number("the timestamp", time)?;
        let op = match operation {
            b"Read" => Op::Read,
            b"Write" => Op::Write,
            b"Discard" => Op::Trim,
            _ => return Err(LineError::new("the operation", "is not Read, Write or Discard")),
        };
        let (start, sectors) = (number("the lba", lba)?, number("the length", len)?);
        let name = match name {
            b"" => self.described.get(id).map_or(id, Vec::as_slice),
            name => name,
        };
        let volume = self.devices.number("the device", name)?;
        // Latency is 0 where the trace ends before the completion.
        let latency_ns = match latency {
            b"" | b"0" => RawRequest::NO_RESPONSE,
            text => number("the latency", text)?,
        };
        let raw = match flush {
            b"true" if sectors == 0 => RawRequest::sectors(time_ns, volume, Op::Flush, 0, 0),
            _ => RawRequest::sectors(time_ns, volume, op, start, sectors),
        };
        let flags = if fua == b"true" { Flags::FUA } else { Flags::NONE };
        Ok(ParsedLine::Request(raw.with_flags(flags).with_response(latency_ns)))
    }

    fn describe(&mut self, id: Vec<u8>, name: Vec<u8>) -> Result<(), LineError> {
        NameTable::check("the id of the device", &id)?;
        NameTable::check("the name of the device", &name)?;
        if self.described.len() == DESCRIBED_MAX && !self.described.contains_key(&id) {
            return Err(LineError::new("the device", "is one of more than 65,536"));
        }
        self.described.insert(id, name);
        Ok(())
    }

    fn json(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let event: Value = serde_json::from_slice(line)
            .map_err(|_| LineError::new("the line", "is not an object of JSON"))?;
        if event.get("header").is_none() {
            return Err(LineError::new("the event", "has no `header`"));
        }
        // Numbers of 64 bits are texts in JSON of Protocol Buffers.
        let text = |path: &str| {
            let found = path.split('.').try_fold(&event, |value, key| value.get(key));
            match found {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::String(text)) => text.clone().into_bytes(),
                Some(other) => other.to_string().into_bytes(),
            }
        };
        if event.get("deviceDescription").is_some() {
            self.describe(text("deviceDescription.id"), text("deviceDescription.name"))?;
        }
        if event.get("io").is_none() {
            return Ok(ParsedLine::NoRequest);
        }
        let mut texts = KEYS.map(text);
        if texts[5].is_empty() {
            texts[5] = text("io.deviceId");
        }
        self.request(texts.each_ref().map(Vec::as_slice))
    }
}

impl LineParser for IoTrace {
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        if line.starts_with(b"{") {
            return self.json(line);
        }
        let Some((columns, count)) = self.table else { return self.header(line) };
        let row = Commas::new(line).row()?;
        let row = row.columns();
        if row.len() != count {
            return Err(LineError::new("the line", "has not as many columns as the first line"));
        }
        self.request(columns.map(|at| at.map_or(&b""[..], |at| row[at])))
    }

    fn label(&self, volume: u64) -> String {
        self.devices.name(volume)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines_of_a_table() {
        let mut parser = IoTrace::default();
        let mut check = |line, expect: &str| check_line(&mut parser, line, expect);
        let incomplete = "the first line with the names of columns lacks header.timestamp, io.lba, \
                          io.len, io.operation or a device";
        check("1,sda,5,R", incomplete);
        check("device.name,header.timestamp,io.lba,io.operation", incomplete);
        check("header.timestamp,io.lba,io.len,io.operation", incomplete);
        let long = ["a"; 40].join(",") + ",header.timestamp";
        check(&long, "the line has more columns than this format");
        check(
            "device.name,header.timestamp,io.flush,io.fua,io.latency,io.lba,io.len,io.operation",
            "no request",
        );
        check("sda,5,false,false,70,8,16,Read", "5 ns, volume sda: read 8+16 in 70");
        check("sda,5,true,true,0,8,16,Write", "5 ns, volume sda: write 8+16 flags 8");
        check("sdb,5,true,false,,0,0,Write", "5 ns, volume sdb: flush 0+0");
        check("sdb,5,false,false,,8,16,Discard", "5 ns, volume sdb: trim 8+16");
        check("sdb,5,false,false,,8,16,Walk", "the operation is not Read, Write or Discard");
        check("sdb,5,false,false,,-8,16,Read", "the lba is negative");
        check(",5,false,false,,8,16,Read", "the device is missing");
        check("sdb,5,false,false,,8,16", "the line has not as many columns as the first line");
    }

    #[test]
    fn lines_of_json() {
        let mut parser = IoTrace::default();
        let mut check = |line: &str, expect: &str| check_line(&mut parser, line, expect);
        check(
            r#"{"header":{"sid":"4","timestamp":"5"},"io":{"lba":"8","len":16,"operation":"Read",
            "flush":false,"fua":true,"latency":"70"},"device":{"id":"3","name":"sda"}}"#,
            "5 ns, volume sda: read 8+16 flags 8 in 70",
        );
        let named = r#"{"header":{"timestamp":"1"},"deviceDescription":{"id":"3","name":"sdb"}}"#;
        check(named, "no request");
        let unnamed = r#"{"header":{"timestamp":"1"},"deviceDescription":{"id":"3"}}"#;
        check(unnamed, "the name of the device is missing");
        let raw = |id: u32| {
            format!(
                r#"{{"header":{{"timestamp":"5"}},"io":{{"lba":"8","len":16,"operation":"Write",
                "deviceId":"{id}"}}}}"#
            )
        };
        check(&raw(3), "5 ns, volume sdb: write 8+16");
        check(&raw(9), "5 ns, volume 9: write 8+16");
        check(r#"{"header":{"timestamp":"1"},"filesystemMeta":{"refSid":"4"}}"#, "no request");
        check(r#"{"io":{"lba":"8"}}"#, "the event has no `header`");
        check(
            r#"{"header":{"timestamp":"1"},"io":{"lba":"8"}}"#,
            "the operation is not Read, Write or Discard",
        );
        check(r#"{"header":"#, "the line is not an object of JSON");
        check(r#"{"header":{"timestamp":-1},"io":{}}"#, "the timestamp is negative");
    }
}
