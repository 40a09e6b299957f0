//! Files for other tools in the results folder: percentile tables, results in fio's format, a list
//! of all requests, a timeline.

use super::SimulateArgs;
use super::output::{Failure, note, unwritable, write_file};
use hybridsim_config::units;
use hybridsim_engine::{EventRecord, EventSink};
use hybridsim_observe::spans::SpanFold;
use hybridsim_report::timeline;
use hybridsim_simulation::exports::{self, RequestLog};
use hybridsim_simulation::run::RunOutput;
use std::fs;
use std::path::Path;

/// Viewers are slow with longer timelines.
const EVENTS_MAX: usize = 500_000;
const REQUESTS: &str = "requests.csv";
const TIMELINE: &str = "timeline.json";

/// A window of simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    from_ns: u64,
    to_ns: u64,
}

impl Window {
    /// Reads `FROM..TO`, such as `1s..1.5s`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((from, to)) = text.split_once("..") else {
            return Err("write it as FROM..TO, such as 1s..1200ms".to_owned());
        };
        let (from_ns, to_ns) =
            (units::duration(from.trim())?.as_ns(), units::duration(to.trim())?.as_ns());
        match from_ns < to_ns {
            true => Ok(Self { from_ns, to_ns }),
            false => Err("the window ends before it starts".to_owned()),
        }
    }
}

/// Collects the events of a run for the requested files.
pub struct Exports {
    requests: Option<RequestLog>,
    spans: Option<SpanFold>,
}

impl Exports {
    /// Begins the files of a run whose results go into `folder`.
    pub fn begin(args: &SimulateArgs, folder: &Path) -> Result<Self, Failure> {
        let requests = match args.requests {
            true => Some(begin_log(folder)?),
            false => None,
        };
        let fold = |window: Window| SpanFold::new(window.from_ns, window.to_ns, EVENTS_MAX);
        Ok(Self { requests, spans: args.timeline.map(fold) })
    }

    /// True if any export needs events.
    pub fn listens(&self) -> bool {
        self.requests.is_some() || self.spans.is_some()
    }

    /// Writes the files, and removes those of an earlier run.
    pub fn save(self, folder: &Path, done: &RunOutput) -> Result<(), Failure> {
        for name in exports::NAMES.iter().chain(&[REQUESTS, TIMELINE]) {
            drop(fs::remove_file(folder.join(name)));
        }
        for (name, text) in exports::for_tools(done) {
            write_file(folder, name, &text)?;
        }
        if let Some(log) = self.requests {
            let path = folder.join(REQUESTS);
            log.finish().map_err(|error| unwritable(&path, &error))?;
        }
        self.spans.map_or(Ok(()), |fold| save_timeline(folder, done, fold))
    }
}

fn begin_log(folder: &Path) -> Result<RequestLog, Failure> {
    let path = folder.join(REQUESTS);
    let made = fs::create_dir_all(folder).and_then(|()| RequestLog::create(&path));
    made.map_err(|error| unwritable(&path, &error))
}

fn save_timeline(folder: &Path, done: &RunOutput, fold: SpanFold) -> Result<(), Failure> {
    let title = &done.results.label.title;
    let (left_out, window_ns) = (fold.left_out(), fold.window_ns());
    let spans = fold.finish();
    if spans.is_empty() {
        note(&format!("warning: {title}: no activity in the window of the timeline"));
    }
    if left_out > 0 {
        note(&format!(
            "warning: {title}: the timeline has the first {EVENTS_MAX} events and omits \
             {left_out}; choose a shorter window"
        ));
    }
    let mut text = Vec::new();
    let about = timeline::About { title, window_ns, left_out };
    timeline::write(&mut text, about, &done.paths, &spans)?;
    write_file(folder, TIMELINE, &String::from_utf8(text).expect("JSON is UTF-8"))
}

impl EventSink for Exports {
    fn take(&mut self, events: &[EventRecord]) {
        if let Some(log) = &mut self.requests {
            log.take(events);
        }
        if let Some(spans) = &mut self.spans {
            spans.take(events);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_time() {
        let window = |text: &str| Window::parse(text).map(|window| (window.from_ns, window.to_ns));
        assert_eq!(window("1s..1200ms"), Ok((1_000_000_000, 1_200_000_000)));
        assert_eq!(window("0s .. 5us"), Ok((0, 5_000)));
        assert!(window("1s").is_err_and(|error| error.contains("FROM..TO")));
        assert!(window("2s..1s").is_err() && window("1..2").is_err());
    }
}
