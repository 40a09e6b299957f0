//! The flows of a scenario, which become workloads.

use super::ssd::Ssd;
use super::tags::{Tags, located};
use super::{MqsimRequest, SECTOR_BYTES};
use crate::source::{ImportError, quote};
use crate::table::{TomlTable, number, string};
use roxmltree::{Document, Node};

/// The flows of a scenario.
pub fn flows_of(
    file: &str,
    document: &Document<'_>,
    number: usize,
) -> Result<Vec<Flow>, ImportError> {
    let root = document.root_element();
    let scenarios: Vec<Node<'_, '_>> =
        root.children().filter(|node| node.has_tag_name("IO_Scenario")).collect();
    let Some(scenario) = number.checked_sub(1).and_then(|at| scenarios.get(at)) else {
        let count = scenarios.len();
        let message = format!("has {count} scenarios (`IO_Scenario`), not {number}");
        return Err(ImportError { at: Some(located(file, root)), message });
    };
    let mut flows = Vec::new();
    for node in scenario.children().filter(Node::is_element) {
        let is_trace = match node.tag_name().name() {
            "IO_Flow_Parameter_Set_Trace_Based" => true,
            "IO_Flow_Parameter_Set_Synthetic" => false,
            other => {
                let message = format!("expected a flow, found {}", quote(other));
                return Err(ImportError { at: Some(located(file, node)), message });
            }
        };
        flows.push(Flow { is_trace, tags: Tags::new(file, node) });
    }
    if flows.is_empty() {
        let message = "the scenario has no flow".to_owned();
        return Err(ImportError { at: Some(located(file, *scenario)), message });
    }
    Ok(flows)
}

/// A flow of a scenario.
pub struct Flow {
    is_trace: bool,
    pub tags: Tags,
}

impl Flow {
    /// Sets the loop of a flow that keeps a number of requests outstanding, of which the device
    /// takes `limit`; returns whether it is one.
    pub fn closed_loop(
        &mut self,
        limit: Option<u64>,
        lines: &mut TomlTable,
    ) -> Result<bool, ImportError> {
        if self.is_trace {
            return Ok(false);
        }
        let kind = self.tags.need("Synthetic_Generator_Type")?;
        let closed = kind.choice(&[("QUEUE_DEPTH", true), ("BANDWIDTH", false)])?;
        if !closed {
            self.tags.take("Average_No_of_Reqs_in_Queue");
            return Ok(false);
        }
        self.tags.take("Bandwidth");
        let tag = self.tags.need("Average_No_of_Reqs_in_Queue")?;
        let (depth, limit) = (tag.count()?, limit.unwrap_or(u64::MAX));
        lines.set("mode", "\"closed\"", kind.comment());
        lines.set("queue_depth", depth.min(limit).to_string(), tag.comment());
        if depth > limit {
            lines.set("outstanding", depth.to_string(), tag.comment());
        }
        Ok(true)
    }

    /// Sets the priority of the class `URGENT`; returns the name of another class.
    pub fn priority(
        &mut self,
        by_priority: bool,
        lines: &mut TomlTable,
    ) -> Result<Option<&'static str>, ImportError> {
        let Some(tag) = self.tags.take("Priority_Class") else { return Ok(None) };
        let classes = ["URGENT", "HIGH", "MEDIUM", "LOW"];
        match tag.choice(&classes.map(|class| (class, class)))? {
            "URGENT" if by_priority => {
                lines.set("priority", "\"urgent\"", tag.comment());
                Ok(None)
            }
            class => Ok(Some(class)),
        }
    }

    /// The keys of the workload, on `space` bytes.
    pub fn convert(
        &mut self,
        ssd: &Ssd,
        space: u64,
        closed: bool,
        request: &MqsimRequest,
        lines: &mut TomlTable,
    ) -> Result<(), ImportError> {
        let tags = &mut self.tags;
        for (name, count) in
            ["Channel_IDs", "Chip_IDs", "Die_IDs", "Plane_IDs"].into_iter().zip(ssd.counts)
        {
            if let Some(tag) = tags.take(name)
                && (tag.value.split(',').count() as u64) < count
            {
                tags.warn(&tag, "is left out: a flow uses all of the SSD");
            }
        }
        match self.is_trace {
            true => trace(tags, request, lines),
            false => synthetic(tags, space, closed, lines),
        }
    }
}

fn trace(
    tags: &mut Tags,
    request: &MqsimRequest,
    lines: &mut TomlTable,
) -> Result<(), ImportError> {
    let path = tags.need("File_Path")?;
    let file = path.value.replace('\\', "/");
    let file = match &request.folder {
        Some(folder) => folder.join(file).to_string_lossy().into_owned(),
        None => file,
    };
    lines.set("trace", string(&file), path.comment());
    lines.set("address", "\"wrap\"", "MQSim takes addresses modulo the capacity");
    if let Some(unit) = tags.take("Time_Unit") {
        let units = [("PICOSECOND", "ps"), ("NANOSECOND", "ns"), ("MICROSECOND", "us")];
        let format = format!("{{ kind = \"mqsim\", time_unit = \"{}\" }}", unit.choice(&units)?);
        lines.set("format", format, unit.comment());
    }
    let loops = tags.take("Relay_Count");
    if let Some(loops) = &loops {
        lines.set("loops", loops.count()?.to_string(), loops.comment());
    }
    // MQSim executes a part only of a trace that is not repeated.
    let once = loops.is_none_or(|it| it.value == "1");
    if let Some(part) = tags.take("Percentage_To_Be_Executed")
        && part.share(100.0)? < 1.0
        && once
    {
        tags.warn(&part, "is left out: set `workload.count` to the number of requests");
    }
    Ok(())
}

fn synthetic(
    tags: &mut Tags,
    space: u64,
    closed: bool,
    lines: &mut TomlTable,
) -> Result<(), ImportError> {
    let size = tags.need("Average_Request_Size")?;
    let bytes = size.count()?.checked_mul(SECTOR_BYTES).filter(|bytes| *bytes <= space);
    let bytes = bytes.ok_or_else(|| size.is("these are more sectors than the flow has"))?;
    let reads = tags.need("Read_Percentage")?;
    let read = reads.share(100.0)?;
    let pattern = tags.need("Address_Distribution")?;
    let hot = tags.take("Percentage_of_Hot_Region");
    let generator = pattern.choice(&[
        ("STREAMING", "fio"),
        ("RANDOM_UNIFORM", "uniform"),
        ("UNIFORM_RANDOM", "uniform"),
        ("RANDOM_HOTCOLD", "hotcold"),
    ])?;
    lines.set("generator.kind", string(generator), pattern.comment());
    let size_key = if generator == "fio" { "generator.bs" } else { "generator.block" };
    lines.set(size_key, format!("\"{bytes}B\""), size.comment());
    if generator == "fio" {
        let rw = if read == 1.0 {
            "read"
        } else if read == 0.0 {
            "write"
        } else {
            "rw"
        };
        lines.set("generator.rw", string(rw), reads.comment());
        if rw == "rw" {
            lines.set("generator.rwmixread", number(100.0 * read), reads.comment());
        }
    } else {
        lines.set("generator.read", number(read), reads.comment());
    }
    if generator == "hotcold" {
        let tag = hot.map_or_else(|| tags.need("Percentage_of_Hot_Region"), Ok)?;
        let hot = tag.share(100.0)?;
        lines.set("generator.hot_fraction", number(hot), tag.comment());
        lines.set(
            "generator.hot_probability",
            number(1.0 - hot),
            "the other requests are to the cold region",
        );
    }
    if let Some(part) = tags.take("Working_Set_Percentage") {
        // MQSim takes any other percentage for 100.
        let share = part.number()?;
        if (1.0..100.0).contains(&share) {
            let span = ((share / 100.0 * space as f64) as u64 / bytes).max(1) * bytes;
            lines.set("generator.span", format!("\"{span}B\""), part.comment());
        }
    }
    if !closed {
        let bandwidth = tags.need("Bandwidth")?;
        let mean_ms = bytes as f64 * 1e3 / bandwidth.count()? as f64;
        let times = format!("{{ kind = \"exponential\", mean = {mean_ms} }}");
        lines.set("generator.interarrival_ms", times, bandwidth.comment());
    }
    let (stop, total) = (tags.need("Stop_Time")?, tags.take("Total_Requests_To_Generate"));
    match (stop.whole()?, total) {
        (0, Some(total)) => {
            lines.set("generator.requests", total.count()?.to_string(), total.comment());
        }
        (0, None) => return Err(stop.is("expected a time, or `Total_Requests_To_Generate`")),
        (ns, _) => lines.set("generator.duration", format!("\"{ns}ns\""), stop.comment()),
    }
    let why = "is left out: requests are aligned to their size";
    let aligned = tags.take("Generated_Aligned_Addresses");
    let unit = tags.take("Address_Alignment_Unit");
    if let Some(aligned) = aligned.filter(|tag| !tag.value.eq_ignore_ascii_case("true")) {
        aligned.flag()?;
        tags.warn(&aligned, why);
    } else if let Some(unit) = unit
        && unit.whole()? != bytes / SECTOR_BYTES
    {
        tags.warn(&unit, why);
    }
    let sizes = tags.take("Request_Size_Distribution");
    let variance = tags.take("Variance_Request_Size").map_or(Ok(0.0), |tag| tag.number())?;
    if let Some(sizes) = sizes
        && sizes.choice(&[("FIXED", false), ("NORMAL", variance > 0.0)])?
    {
        tags.warn(&sizes, "is left out: all requests have the average size");
    }
    Ok(())
}
