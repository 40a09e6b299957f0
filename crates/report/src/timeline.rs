//! A window of a run in the trace event format that Perfetto (ui.perfetto.dev) and Chrome
//! (about:tracing) show.
//!
//! Every part of the system is a process there; states, cleanings and dies are its threads,
//! requests are drawn one over the other, levels are counters. Times are microseconds with three
//! decimals, so they are exact to the nanosecond.

use hybridsim_observe::spans::{FlashUnit, LevelKind, Span, SpanEvent};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write};

const STATES: u32 = 1;
const CLEANINGS: u32 = 2;
const MARKS: u32 = 3;
const CHANNELS: u32 = 100;
const DIES: u32 = 100_000;

/// The heading of a timeline.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The run's title.
    pub title: &'a str,
    /// The window in ns.
    pub window_ns: (u64, u64),
    /// Events of the window beyond the limit.
    pub left_out: u64,
}

/// Writes `spans` as one JSON document; `paths` names the nodes.
///
/// # Errors
/// Fails when `out` cannot be written.
pub fn write(
    out: &mut impl Write,
    about: About<'_>,
    paths: &[String],
    spans: &[Span],
) -> io::Result<()> {
    let other = json!({
        "run": about.title,
        "window_ns": [about.window_ns.0, about.window_ns.1],
        "events_left_out": about.left_out,
    });
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{other},\"traceEvents\":[")?;
    let mut lines = Lines { out, first: true };
    let mut threads: BTreeSet<(u16, u32)> = BTreeSet::new();
    for (number, span) in spans.iter().enumerate() {
        threads.extend(thread(span.event).map(|thread| (span.node, thread)));
        event(&mut lines, number, span)?;
    }
    let nodes: BTreeSet<u16> = spans.iter().map(|span| span.node).collect();
    for node in nodes {
        let unnamed = || format!("node {node}");
        let path = paths.get(usize::from(node)).cloned().unwrap_or_else(unnamed);
        lines.name(node, None, "process_name", json!({ "name": path }))?;
        lines.name(node, None, "process_sort_index", json!({ "sort_index": node }))?;
    }
    for (node, thread) in threads {
        let name = match thread {
            STATES => "state".to_owned(),
            CLEANINGS => "cleaning".to_owned(),
            MARKS => "events".to_owned(),
            channel @ CHANNELS..DIES => format!("channel {}", channel - CHANNELS),
            die => format!("die {}", die - DIES),
        };
        lines.name(node, Some(thread), "thread_name", json!({ "name": name }))?;
    }
    out.write_all(b"\n]}\n")
}

struct Lines<'w, W> {
    out: &'w mut W,
    first: bool,
}

impl<W: Write> Lines<'_, W> {
    fn put(&mut self, event: Value) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.first) { "" } else { "," };
        write!(self.out, "{comma}\n{event}")
    }

    fn name(&mut self, pid: u16, tid: Option<u32>, what: &str, args: Value) -> io::Result<()> {
        let tid = tid.unwrap_or(0);
        self.put(json!({ "ph": "M", "pid": pid, "tid": tid, "name": what, "args": args }))
    }
}

/// The row an event is drawn in; requests and levels have rows of their own.
fn thread(event: SpanEvent) -> Option<u32> {
    match event {
        SpanEvent::State(_) => Some(STATES),
        SpanEvent::Cleanup { .. } => Some(CLEANINGS),
        SpanEvent::Destaged { .. } | SpanEvent::PowerCut => Some(MARKS),
        SpanEvent::Flash { unit, .. } => Some(row(unit)),
        SpanEvent::Request { .. } | SpanEvent::Level(..) => None,
    }
}

const fn row(unit: FlashUnit) -> u32 {
    match unit {
        FlashUnit::Channel(number) => CHANNELS + number as u32,
        FlashUnit::Die(number) => DIES + number as u32,
    }
}

fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn event<W: Write>(lines: &mut Lines<'_, W>, number: usize, span: &Span) -> io::Result<()> {
    let (start, length) = (micros(span.start_ns), micros(span.end_ns - span.start_ns));
    let pid = span.node;
    let slice = |name: &str, tid: u32, args: Value| {
        json!({ "ph": "X", "pid": pid, "tid": tid, "ts": start, "dur": length, "name": name,
                "args": args })
    };
    let mark = |name: String, tid: u32, args: Value| {
        json!({ "ph": "i", "s": "t", "pid": pid, "tid": tid, "ts": start, "name": name,
                "args": args })
    };
    match span.event {
        SpanEvent::State(state) => lines.put(slice(state.name(), STATES, json!({}))),
        SpanEvent::Cleanup { pages } => {
            lines.put(slice("cleaning", CLEANINGS, json!({ "pages": pages })))
        }
        SpanEvent::Destaged { sectors } => {
            lines.put(mark("destaged".to_owned(), MARKS, json!({ "sectors": sectors })))
        }
        SpanEvent::PowerCut => lines.put(mark("power failure".to_owned(), MARKS, json!({}))),
        // Viewers colour by name, so the name holds operation and cause.
        SpanEvent::Flash { unit, act, cause } => {
            let args = json!({ "cause": cause.name() });
            lines.put(slice(&format!("{} {}", cause.name(), act.name()), row(unit), args))
        }
        SpanEvent::Level(kind, value) => lines.put(level(pid, start, kind, value)),
        SpanEvent::Request { op, lba, sectors, latency_ns, phases_ns } => {
            let breakdown = hybridsim_observe::spans::named(&phases_ns);
            let breakdown: serde_json::Map<String, Value> =
                breakdown.map(|(name, ns)| (format!("{name}_ns"), ns.into())).collect();
            let args = json!({
                "first_sector": lba.0, "sectors": sectors, "latency_ns": latency_ns,
                "phases": breakdown,
            });
            let id = format!("{number:x}");
            let name = op.name();
            lines.put(json!({
                "ph": "b", "cat": "request", "id": id, "pid": pid, "tid": 0, "ts": start,
                "name": name, "args": args,
            }))?;
            lines.put(json!({
                "ph": "e", "cat": "request", "id": id, "pid": pid, "tid": 0,
                "ts": micros(span.end_ns), "name": name,
            }))
        }
    }
}

fn level(pid: u16, start: f64, kind: LevelKind, value: u64) -> Value {
    let name = kind.name();
    let value = match kind {
        LevelKind::Temperature => json!((value as f64 - 273_150.0) / 1e3),
        _ => json!(value),
    };
    json!({ "ph": "C", "pid": pid, "ts": start, "name": name, "args": { name: value } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::{LatencyPhase, Lba, Op, PowerState};
    use hybridsim_flash::{Cause, FlashAct};

    #[test]
    fn what_a_viewer_needs_is_there() {
        let mut phases_ns = [0; LatencyPhase::COUNT];
        phases_ns[LatencyPhase::Seek as usize] = 1_234;
        let (op, lba) = (Op::Read, Lba(8));
        let request = SpanEvent::Request { op, lba, sectors: 1, latency_ns: 1_234, phases_ns };
        let busy = |unit, act| SpanEvent::Flash { unit, act, cause: Cause::Gc };
        let die = busy(FlashUnit::Die(3), FlashAct::Erase);
        let channel = busy(FlashUnit::Channel(1), FlashAct::Copy);
        let span = |node, start_ns, end_ns, event| Span { node, start_ns, end_ns, event };
        let spans = [
            span(0, 1_001, 2_235, request),
            span(1, 1_500, 2_000, SpanEvent::State(PowerState::Seek)),
            span(1, 1_600, 1_900, die),
            span(1, 1_600, 1_610, channel),
            span(0, 1_001, 1_001, SpanEvent::Level(LevelKind::QueueDepth, 5)),
        ];
        let about = About { title: "a \"run\"", window_ns: (1_000, 3_000), left_out: 0 };
        let mut out = Vec::new();
        let paths = ["host".to_owned(), "host/<disk>".to_owned()];
        write(&mut out, about, &paths, &spans).expect("memory can be written");
        let document: Value = serde_json::from_slice(&out).expect("one JSON document");
        let events = document["traceEvents"].as_array().expect("a list");
        let of = |kind: &str| events.iter().filter(|event| event["ph"] == kind).collect::<Vec<_>>();
        let slice = of("X")[0];
        assert_eq!((&slice["ts"], &slice["dur"]), (&json!(1.5), &json!(0.5)));
        assert_eq!(slice["name"], "seek");
        let (begin, end) = (of("b")[0], of("e")[0]);
        assert_eq!(
            (&begin["id"], &begin["ts"], &end["ts"]),
            (&end["id"], &json!(1.001), &json!(2.235))
        );
        assert_eq!(begin["args"]["phases"], json!({ "seek_ns": 1_234 }));
        assert_eq!(of("C")[0]["args"], json!({ "queue depth": 5 }));
        let erase = of("X")[1];
        assert_eq!((&erase["name"], &erase["dur"]), (&json!("gc erase"), &json!(0.3)));
        assert_ne!(erase["tid"], of("X")[2]["tid"]);
        let named: Vec<&str> = of("M").iter().filter_map(|e| e["args"]["name"].as_str()).collect();
        assert_eq!(named, ["host", "host/<disk>", "state", "channel 1", "die 3"]);
        assert_eq!(document["otherData"]["run"], "a \"run\"");
    }
}
