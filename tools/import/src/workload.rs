//! Workloads: the synthetic generator, traces, and parameters of the run.

use crate::components::System;
use crate::model::Model;
use crate::source::{LocatedError, Result, quote};
use crate::syntax::{Block, Item};
use crate::table::Conversion::{Count, Described, Number, OutputOnly, Sectors, Unsupported};
use crate::table::{ImportLog, ParameterTable, TomlTable, convert, number, row, string};
use std::fmt::Write;

/// The parameters of a run.
pub const GLOBAL: ParameterTable = ParameterTable {
    kind: "disksim_global",
    becomes: "`[run]`",
    rows: &[
        row("Init Seed", Described("`seed`")),
        row("Init Seed with time", Described("nothing: a run is repeatable")),
        row("Real Seed", Described("the generator's `drand48_seed`")),
        row("Real Seed with time", Described("nothing: a run is repeatable")),
        row("Statistic warm-up time", Described("`warmup_time`")),
        row("Statistic warm-up IOs", Count("warmup_requests")),
        row("Statistic warm-up period", Described("`warmup_time` or `warmup_requests`")),
        row("Stat definition file", OutputOnly),
        row("Output file for trace of I/O requests simulated", OutputOnly),
        row("Detailed execution trace", OutputOnly),
        row("Checkpoint iorate", OutputOnly),
    ],
};

/// Selects DiskSim's output; results here always contain everything.
pub const STATS: &str = "disksim_stats";

/// The parameters of the processors.
pub const PROCESSES: ParameterTable = ParameterTable {
    kind: "disksim_pf",
    becomes: "the generator's `processors`",
    rows: &[
        row("Number of processors", Described("`processors`")),
        row("Process-Flow Time Scale", Described("multiplies the generator's times")),
    ],
};

/// The parameters of the synthetic workload.
pub const SYNTHIO: ParameterTable = ParameterTable {
    kind: "disksim_synthio",
    becomes: "the generator `processes`",
    rows: &[
        row("Number of I/O requests to generate", Described("`requests`")),
        row("Maximum time of trace generated", Described("`duration`")),
        row(
            "System call/return with each request",
            Unsupported(0.0, "system calls have no overhead"),
        ),
        row("Think time from call to request", Described("see the system call")),
        row("Think time from request to return", Described("see the system call")),
        row("Generators", Described("`processes`")),
    ],
};

/// The parameters of a process.
pub const SYNTHGEN: ParameterTable = ParameterTable {
    kind: "disksim_synthgen",
    becomes: "an entry of `processes`",
    rows: &[
        row("Storage capacity per device", Sectors("span")),
        row("devices", Described("`volumes`")),
        row("Blocking factor", Sectors("blocking")),
        row("Probability of sequential access", Number("sequential")),
        row("Probability of local access", Number("local")),
        row("Probability of read access", Number("read")),
        row("Probability of time-critical request", Number("critical")),
        row("Probability of time-limited request", Number("limited")),
        row("Time-limited think times", Described("`limited_ms`")),
        row("General inter-arrival times", Described("`general_ms`")),
        row("Sequential inter-arrival times", Described("`sequential_ms`")),
        row("Local inter-arrival times", Described("`local_ms`")),
        row("Local distances", Described("`local_distance_sectors`")),
        row("Sizes", Described("`size_sectors`")),
    ],
};

/// The parameters of a replay.
pub const IOSIM: ParameterTable = ParameterTable {
    kind: "disksim_iosim",
    becomes: "`[workload]` of a trace",
    rows: &[
        row("I/O Trace Time Scale", Described("`time_scale`")),
        row("I/O Mappings", Described("volumes in order of appearance; see below")),
    ],
};

/// The parameters of a mapping.
pub const IOMAP: ParameterTable = ParameterTable {
    kind: "disksim_iomap",
    becomes: "the order of volumes",
    rows: &[
        row("tracedev", Described("volumes of a trace go to devices in order of appearance")),
        row("simdev", Described("see `tracedev`")),
        row("locScale", Described("`address_unit`, if all mappings have the same")),
        row("sizeScale", Described("`size_scale`, if all mappings have the same")),
        row("offset", Described("`address_offset`, if all mappings have the same")),
    ],
};

/// A trace to replay instead of generating.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The path in the scenario.
    pub path: String,
    /// The format, if the content is ambiguous.
    pub format: Option<String>,
}

const PROCESSES_MAX: usize = 1_000;

pub(crate) fn run(model: &Model, lines: &mut TomlTable, log: &mut ImportLog) -> Result<()> {
    for block in model.of_kind("disksim_global") {
        if let Some(item) = block.get("Init Seed") {
            let seed = item.whole_in(0, i64::MAX)?;
            lines.from("seed", seed.to_string(), ("Init Seed", item), log);
        }
        if let Some(item) = block.get("Statistic warm-up time") {
            let seconds = item.number_in(0.0, 1e9)?;
            let from = ("Statistic warm-up time", item);
            lines.from("warmup_time", format!("\"{seconds}s\""), from, log);
        }
        if let Some(item) = block.get("Statistic warm-up period") {
            warm_up(item, lines, log)?;
        }
        convert(&GLOBAL, block, lines, log)?;
    }
    Ok(())
}

/// `1000 I/Os` or `10.0 seconds`.
fn warm_up(item: &Item, lines: &mut TomlTable, log: &ImportLog) -> Result<()> {
    let text = item.text()?;
    let from = ("Statistic warm-up period", item);
    let (amount, unit) = text.split_once(' ').unwrap_or((text, ""));
    match (amount.parse::<f64>(), unit.trim()) {
        (Ok(count), "I/Os") if (0.0..1e15).contains(&count) => {
            lines.from("warmup_requests", format!("{}", count as u64), from, log);
        }
        (Ok(seconds), "seconds") if (0.0..1e9).contains(&seconds) => {
            lines.from("warmup_time", format!("\"{seconds}s\""), from, log);
        }
        _ => {
            let message = format!("expected `N I/Os` or `N seconds`, found {}", quote(text));
            return Err(LocatedError::new(item.location, message));
        }
    }
    Ok(())
}

/// The format of measured logs, which holds the pause after each completion.
const CLOSED_FORMAT: &str = "disksim-validate";

pub(crate) fn replay(
    model: &Model,
    trace: &Trace,
    system: &System,
    log: &mut ImportLog,
) -> Result<TomlTable> {
    let mut lines = TomlTable::default();
    lines.set("trace", string(&trace.path), "");
    if let Some(format) = &trace.format {
        lines.set("format", string(format), "");
    }
    if trace.format.as_deref() == Some(CLOSED_FORMAT) {
        let why = "DiskSim replays this format one request at a time, with the pauses of the log";
        lines.set("times", "\"after-completions\"", why);
    }
    for block in model.of_kind("disksim_iosim") {
        convert(&IOSIM, block, &mut lines, log)?;
        if let Some(item) = block.get("I/O Trace Time Scale") {
            // DiskSim divides times by it: 2 replays twice as fast.
            let scale = 1.0 / item.number_in(1e-9, 1e9)?;
            lines.from("time_scale", number(scale), ("I/O Trace Time Scale", item), log);
        }
        let mut mappings = Vec::new();
        for item in block.get("I/O Mappings").map_or(Ok(&[][..]), Item::list)? {
            mapping(item.block()?, system, log)?;
            mappings.push(item.block()?);
        }
        rescaled(&mappings, &mut lines, log)?;
    }
    let sectors = system.targets.iter().map(|target| target.sectors);
    let stride = sectors.clone().max().unwrap_or(1);
    if system.targets.len() > 1 {
        lines.set("volume_layout", "\"stride\"", "every volume of the trace is a device");
        lines.set("volume_stride", format!("\"{}B\"", stride * 512), "");
        if sectors.min() != Some(stride) {
            let at = model.topology.as_ref().map(|node| node.location);
            if let Some(at) = at {
                log.warn(
                    at,
                    "devices differ in size; the distance of volumes is the size of \
                    the largest",
                );
            }
        }
    }
    Ok(lines)
}

fn mapping(block: &Block, system: &System, log: &mut ImportLog) -> Result<()> {
    convert(&IOMAP, block, &mut TomlTable::default(), log)?;
    let device = block.need("simdev")?;
    if !system.numbers.contains_key(device.text()?) {
        let message = format!("{} is not a device of the system", quote(device.text()?));
        return Err(LocatedError::new(device.location, message));
    }
    Ok(())
}

/// Scaling of addresses and sizes in mappings; warns if mappings differ.
fn rescaled(mappings: &[&Block], lines: &mut TomlTable, log: &mut ImportLog) -> Result<()> {
    const KEYS: [(&str, &str, i64, i64); 3] = [
        ("locScale", "address_unit", 512, 1 << 30),
        ("sizeScale", "size_scale", 1, 1 << 20),
        ("offset", "address_offset", 0, 1 << 50),
    ];
    for (theirs, ours, neutral, max) in KEYS {
        let mut values = Vec::new();
        for block in mappings {
            let item = block.get(theirs);
            let value = item.map_or(Ok(neutral), |item| item.whole_in(neutral.min(1), max))?;
            if theirs == "locScale" && value % 512 != 0 && 512 % value != 0 {
                let location = item.map_or(block.location, |item| item.location);
                let message = format!("expected a multiple or a divisor of 512, found {value}");
                return Err(LocatedError::new(location, message));
            }
            values.push((value, item));
        }
        let Some(&(first, _)) = values.first() else { return Ok(()) };
        if values.iter().any(|(value, _)| *value != first) {
            for (value, item) in values {
                let Some(item) = item.filter(|_| value != neutral) else { continue };
                let message =
                    format!("`{theirs} = {value}` is not supported: mappings differ in it");
                log.warn(item.location, message);
            }
        } else if let (Some(item), true) = (values[0].1, first != neutral) {
            let text = match theirs {
                "sizeScale" => first.to_string(),
                "offset" => format!("\"{}B\"", first * 512),
                _ => format!("\"{first}B\""),
            };
            lines.from(ours, text, (theirs, item), log);
        }
    }
    Ok(())
}

pub(crate) fn synthetic(
    model: &Model,
    system: &System,
    log: &mut ImportLog,
) -> Result<Option<TomlTable>> {
    let Some(block) = model.of_kind("disksim_synthio").pop() else { return Ok(None) };
    let mut lines = TomlTable::default();
    convert(&SYNTHIO, block, &mut lines, log)?;
    let requests = block.need("Number of I/O requests to generate")?.whole_in(1, i64::MAX)?;
    let seconds = block.need("Maximum time of trace generated")?.number_in(1e-6, 1e15)?;
    // Decades are not a limit.
    let duration = match seconds < 1e9 {
        true => format!("    duration = \"{seconds}s\",\n"),
        false => String::new(),
    };
    let (processors, scale) = processors(model, log)?;
    let mut value = format!(
        "{{\n    kind = \"processes\",\n    requests = {requests},\n\
         {duration}    processors = {processors},\n    \
         # DiskSim never reuses an idle processor other than the first.\n    \
         idle_processors = \"lost\",\n"
    );
    if let Some(seed) = model.of_kind("disksim_global").iter().find_map(|it| it.get("Real Seed")) {
        let number = seed.whole_in(0, i64::MAX)?;
        writeln!(value, "    # Real Seed = {number}, {}.", log.line(seed.location))
            .expect("text grows");
        writeln!(value, "    drand48_seed = {number},").expect("text grows");
    }
    let mut next = 0u64;
    let starts: Vec<String> = system
        .targets
        .iter()
        .map(|target| {
            let start = next.to_string();
            next = next.saturating_add(target.sectors);
            start
        })
        .collect();
    writeln!(value, "    volume_starts = [{}],", starts.join(", ")).expect("text grows");
    value += "    processes = [\n";
    let generators = block.need("Generators")?;
    let list = generators.list()?;
    if list.is_empty() || list.len() > PROCESSES_MAX {
        let message = format!("expected 1 to {PROCESSES_MAX} generators, found {}", list.len());
        return Err(LocatedError::new(generators.location, message));
    }
    let mut last: Option<(String, u32)> = None;
    for item in list {
        let text = process(item.block()?, scale, system, log)?;
        last = match last {
            Some((before, count)) if before == text => Some((before, count + 1)),
            Some((before, count)) => {
                value += &entry(&before, count);
                Some((text, 1))
            }
            None => Some((text, 1)),
        };
    }
    let (text, count) = last.expect("there is a generator");
    value += &entry(&text, count);
    value += "    ],\n}";
    lines.set("generator", value, "");
    Ok(Some(lines))
}

fn entry(text: &str, count: u32) -> String {
    format!("        {{ count = {count}, {text} }},\n")
}

fn processors(model: &Model, log: &mut ImportLog) -> Result<(i64, f64)> {
    let Some(block) = model.of_kind("disksim_pf").pop() else { return Ok((1, 1.0)) };
    convert(&PROCESSES, block, &mut TomlTable::default(), log)?;
    let count = block.need("Number of processors")?.whole_in(1, 10_000)?;
    let scale = block.get("Process-Flow Time Scale");
    Ok((count, scale.map_or(Ok(1.0), |item| item.number_in(0.0, 1e9))?))
}

/// One generator as the keys of a process.
fn process(block: &Block, scale: f64, system: &System, log: &mut ImportLog) -> Result<String> {
    convert(&SYNTHGEN, block, &mut TomlTable::default(), log)?;
    let whole = |key: &str| block.need(key)?.whole_in(1, 1 << 50);
    let share = |key: &str| block.need(key)?.number_in(0.0, 1.0).map(number);
    let drawn = |key: &str, times: f64| distribution(block.need(key)?, times);
    let size = block.need("Storage capacity per device")?;
    let mut sectors = whole("Storage capacity per device")? as u64;
    let mut volumes = Vec::new();
    for (name, at) in block.need("devices")?.words()? {
        let Some(target) = target(&name, system) else {
            return Err(LocatedError::new(
                at,
                format!("{} is not a device of the system", quote(&name)),
            ));
        };
        let room = system.targets[target].sectors;
        if sectors > room {
            log.warn(size.location, format!("a device has {room} sectors, not {sectors}"));
            sectors = room;
        }
        volumes.push(target.to_string());
    }
    Ok(format!(
        "volumes = [{}], span = \"{}B\", blocking = \"{}B\",\n          \
         sequential = {}, local = {}, read = {}, critical = {}, limited = {},\n          \
         general_ms = {},\n          sequential_ms = {},\n          \
         local_ms = {},\n          limited_ms = {},\n          \
         local_distance_sectors = {},\n          size_sectors = {}",
        volumes.join(", "),
        sectors * 512,
        whole("Blocking factor")?.min(1 << 30) * 512,
        share("Probability of sequential access")?,
        share("Probability of local access")?,
        share("Probability of read access")?,
        share("Probability of time-critical request")?,
        share("Probability of time-limited request")?,
        drawn("General inter-arrival times", scale)?,
        drawn("Sequential inter-arrival times", scale)?,
        drawn("Local inter-arrival times", scale)?,
        drawn("Time-limited think times", scale)?,
        drawn("Local distances", 1.0)?,
        drawn("Sizes", 1.0)?,
    ))
}

/// The target of a generator's device. A device inside an array denotes the organisation of the
/// same number: DiskSim addresses both by number.
fn target(name: &str, system: &System) -> Option<usize> {
    if let Some(&number) = system.numbers.get(name) {
        return Some(number);
    }
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.parse().ok().filter(|number| *number < system.targets.len())
}

/// `[ exponential, 0.0, 8.0 ]` as a distribution whose values are multiplied by `times`.
fn distribution(item: &Item, times: f64) -> Result<String> {
    let list = item.list()?;
    let wrong = || {
        let message = "expected [ uniform, min, max ], [ normal, mean, deviation ], \
                       [ exponential, base, mean ], [ poisson, base, mean ] or \
                       [ twovalue, usual, other, probability ]";
        LocatedError::new(item.location, message)
    };
    let kind = list.first().ok_or_else(wrong)?.text()?;
    let value = |at: usize| -> Result<f64> {
        let value = list.get(at).ok_or_else(wrong)?;
        Ok(value.number_in(-1e12, 1e12)? * times)
    };
    let text = match kind {
        "uniform" => format!("min = {}, max = {}", value(1)?, value(2)?),
        // DiskSim calls the second number variance, but uses it as the standard deviation.
        "normal" => format!("mean = {}, stddev = {}", value(1)?, value(2)?),
        "exponential" => format!("base = {}, mean = {}", value(1)?, value(2)?),
        "poisson" => format!("base = {}, mean = {}", value(1)?, value(2)?),
        "twovalue" => {
            let probability = list.get(3).ok_or_else(wrong)?.number_in(0.0, 1.0)?;
            let (usual, other) = (value(1)?, value(2)?);
            let text = format!("default = {usual}, second = {other}, probability = {probability}");
            return Ok(format!("{{ kind = \"two-valued\", {text} }}"));
        }
        _ => return Err(wrong()),
    };
    if list.len() != 3 {
        return Err(wrong());
    }
    Ok(format!("{{ kind = \"{kind}\", {text} }}"))
}
