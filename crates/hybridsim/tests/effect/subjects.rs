//! Tables of parameters, each in a small system with a load that reaches what it is about.

use crate::common::system_around;
use crate::values::entry;
use hybridsim_config::build::ComponentEntry;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Registry;
use hybridsim_engine::Stream;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// A table of parameters in a scenario.
pub struct Subject {
    /// A component's kind, `category name` of an entry, or a table's name.
    pub name: String,
    /// The kind of component, for its samples.
    pub kind: String,
    /// The scenario.
    pub text: String,
    /// Values that the scenario is given in addition, in order.
    pub base: Vec<String>,
    /// The table's path.
    pub path: String,
    pub params: &'static [Param],
}

impl Subject {
    /// The text of the value that the scenario gives `key`, if it does in a line of the table.
    pub fn value(&self, key: &str) -> Option<String> {
        let set = format!("{}.{key}=", self.path);
        if let Some(value) = self.base.iter().find_map(|it| it.strip_prefix(&set)) {
            return Some(value.to_owned());
        }
        let table = self.text.split(&format!("[{}]\n", self.path)).nth(1)?;
        let lines = table.lines().take_while(|line| !line.starts_with('['));
        let mut values = lines.filter_map(|line| line.split_once(" = "));
        values.find(|(name, _)| *name == key).map(|(_, value)| value.to_owned())
    }
}

/// Values of keys that cannot be derived from their declaration.
pub fn special(subject: &str, key: &str) -> &'static [&'static str] {
    match (subject, key) {
        ("hybrid-disk", "pinned") => &["[{ start = \"0B\", length = \"400KiB\" }]"],
        ("nv-cache-host", "pin") => &["[{ start = \"1MiB\", size = \"64KiB\" }]"],
        ("seek-model constant", "time") => &["\"5ms\"", "\"8ms\""],
        ("seek-model linear" | "seek-model curve", "single") => &["\"1ms\"", "\"2ms\""],
        ("seek-model curve", "average") => &["\"5ms\"", "\"6ms\""],
        ("seek-model linear" | "seek-model curve", "full") => &["\"9ms\"", "\"20ms\""],
        ("seek-model hpl", "values") => {
            &["[100, 1.0, 0.1, 3.0, 0.01, 2.0]", "[100, 1.0, 0.2, 3.0, 0.01, 2.0]"]
        }
        ("seek-model hpl-plus-10", "values") => {
            &["[100, 1.0, 0.1, 3.0, 0.001]", "[100, 1.0, 0.2, 3.0, 0.001]"]
        }
        ("seek-model hpl-plus-10", "first_ten") => &[
            "[1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9]",
            "[1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 2.9]",
        ],
        ("seek-model table", "points") => &[
            "[[1, \"1ms\"], [100, \"4ms\"], [3000, \"9ms\"]]",
            "[[1, \"1ms\"], [100, \"5ms\"], [3000, \"9ms\"]]",
        ],
        _ => &[],
    }
}

/// Writes a trace: reads, writes, trims and flushes of `pages`, with idle time every 50 requests.
fn write_trace(path: &Path, pages: u64, pace_us: u64) {
    let mut stream = Stream::new(7, "effect");
    let (mut text, mut at, mut next) = ("time,op,offset,size\n".to_owned(), 0, 0);
    for number in 0..1_200_u64 {
        let op = match stream.below(40) {
            0 => "T",
            1 => "F",
            2..14 => "R",
            _ => "W",
        };
        // One in four requests continues a sequential stream, and one in three is of a few pages.
        let page = match stream.below(12) {
            0..3 => next % pages,
            3..7 => stream.below(20),
            _ => stream.below(pages - 70),
        };
        let size = match stream.below(16) {
            0 => 64,
            1..5 => 8,
            _ => 1 + stream.below(3),
        };
        let size = size.min(pages - page);
        next = page + size;
        let (offset, bytes) = if op == "F" { (0, 0) } else { (page * 4096, size * 4096) };
        let part = if stream.chance(0.2) && op == "W" { 512 } else { 0 };
        writeln!(text, "{at},{op},{},{}", offset + part, bytes - part).expect("a string");
        at += match number % 50 {
            49 => 40_000 * pace_us,
            _ => stream.below(300) * pace_us,
        };
    }
    fs::write(path, text).expect("one's own folder");
}

/// Writes the traces of the loads to `folder`.
pub fn write_traces(folder: &Path) {
    write_trace(&folder.join("flash.csv"), 900, 1);
    write_trace(&folder.join("disk.csv"), 3_000, 20);
}

/// The workload of a system around a component of `kind`.
fn load(kind: &str) -> String {
    let trace = match kind {
        "zns-ssd" => {
            return "[workload]\ngenerator = { kind = \"zones\", requests = 2000, \
                    zone_size = \"1MiB\", zone_capacity = \"1000KiB\", active = 4, \
                    block = \"16KiB\", write = \"append\", depth = 2, fill = 0.7, finish = true, \
                    readers = 2 }\n"
                .to_owned();
        }
        "ssd" | "slc-mlc-ssd" | "constant-device" => "flash",
        _ => "disk",
    };
    let format = "{ kind = \"columns\", time_unit = \"us\" }";
    format!("[workload]\ntrace = \"{trace}.csv\"\nformat = {format}\n")
}

/// Keys of the component of `kind` with which little load is enough; several of kinds that have
/// modes which exclude each other.
fn keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "flash-cache" => &["period_pages = 1000\n", "period_pages = 1000\nscheme = \"fp\"\n"],
        "memory-cache" => &["page_size = \"8KiB\"\nflush_period = \"100ms\"\n"],
        "cache-device" => &["flush_period = \"100ms\"\n"],
        _ => &[""],
    }
}

/// A system around a component of `kind`, with `keys`.
fn system(kind: &str, keys: &str) -> String {
    let text =
        system_around(kind).replacen("[component.it]\n", &format!("[component.it]\n{keys}"), 1);
    match kind {
        "nv-cache-disk" => format!(
            "system = \"top\"\n[component.top]\nkind = \"nv-cache-host\"\ndrive = \"it\"\n\
             pin = [{{ start = \"0B\", size = \"256KiB\" }}]\npower_mode = true\n\
             spinning_min = \"0s\"\nunpin_after = \"2s\"\nquery_every = \"500ms\"\n\
             flush_every = \"3s\"\n{text}"
        ),
        _ => format!("system = \"it\"\n{text}"),
    }
}

/// Keys without which entry `name` is rejected.
fn beside(name: &str) -> &'static [&'static str] {
    match name {
        "power-law" => &["component.it.errors.rber_base=1e-3"],
        "drive-managed" => &[
            "component.it.management.cache_size=\"4MiB\"",
            "component.it.management.cache_records=100",
            "component.it.management.band_size=\"1MiB\"",
            "component.it.management.clean_after=\"20ms\"",
        ],
        "host-aware" => &[
            "component.it.management.cache_size=\"4MiB\"",
            "component.it.management.cache_records=100",
            "component.it.management.zone_size=\"1MiB\"",
            "component.it.management.clean_after=\"20ms\"",
        ],
        "host-managed" => &["component.it.management.zone_size=\"1MiB\""],
        "thermal" => &["component.it.energy.active_power=\"2W\""],
        _ => &[],
    }
}

/// The tables of every kind of component and of the entries that they choose.
pub fn all(registry: &Registry) -> Vec<Subject> {
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    for found in registry.iter::<ComponentEntry>() {
        let (name, params) = (found.description.name, found.description.params);
        for keys in keys(name) {
            let system = system(name, keys);
            let (top, components) = system.split_once('\n').expect("it names the top");
            let subject = Subject {
                name: name.to_owned(),
                kind: name.to_owned(),
                text: format!("{top}\n{}[host]\n[run]\n{components}", load(name)),
                base: Vec::new(),
                path: "component.it".to_owned(),
                params,
            };
            entries(registry, &subject, &mut seen, &mut all);
            all.push(subject);
        }
    }
    all
}

/// The tables of the entries that the keys of `subject` choose, unless `seen` has them.
fn entries(
    registry: &Registry,
    subject: &Subject,
    seen: &mut BTreeSet<String>,
    all: &mut Vec<Subject>,
) {
    for param in subject.params {
        let Kind::Entry(category) = param.kind else { continue };
        for found in registry.descriptions(category) {
            let name = format!("{category} {}", found.name);
            if found.params.is_empty() || !seen.insert(name.clone()) {
                continue;
            }
            let path = format!("{}.{}", subject.path, param.name);
            let mut base = subject.base.clone();
            base.push(format!("{path}={}", entry(registry, category, found.name)));
            base.extend(beside(found.name).iter().map(|key| (*key).to_owned()));
            let inner = Subject {
                name,
                kind: subject.kind.clone(),
                text: subject.text.clone(),
                base,
                path,
                params: found.params,
            };
            if subject.path.split('.').count() == 2 {
                entries(registry, &inner, seen, all);
            }
            all.push(inner);
        }
    }
}
