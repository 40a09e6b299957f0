//! MQSim's configuration of an SSD, and the scenarios of its workload file.
//!
//! A tag is converted where it is looked up; the rest are reported, unless they matter only to
//! MQSim's output. The page on the words of other tools lists all tags.

use crate::source::{FileSource, ImportError, quote};
use crate::table::{TomlTable, number, string};
use crate::{Imported, heading, section};
use roxmltree::{Document, Node};
use std::fmt::Display;
use std::str::FromStr;

/// MQSim begins garbage collection of a plane at this many free blocks or more.
const GC_FREE_BLOCKS_MIN: u64 = 10;
/// Bytes of a mapping entry in the cached mapping table.
const ENTRY_BYTES: u64 = 8;
const SECTOR_BYTES: u64 = 512;
/// Namespaces are whole MiB.
const NAMESPACE_UNIT: u64 = 1 << 20;

/// Tags without an effect on results, but for random numbers.
const NO_EFFECT: &[&str] = &[
    "Enable_ResponseTime_Logging",
    "ResponseTime_Logging_Period_Length",
    "Memory_Type",
    "Flash_Comm_Protocol",
    "Seed",
];

/// Tags without a counterpart: how they begin, the value for which that makes no difference, and
/// what happens instead.
const NO_COUNTERPART: &[(&str, &str, &str)] = &[
    ("Queue_Fetch_Size", "", "the device takes up to `queue_depth` requests of each queue"),
    ("Data_Cache_DRAM_", "", "accesses to the DRAM take no time"),
    ("Data_Cache_Sharing_Mode", "SHARED", "the write buffer is shared"),
    ("CMT_Sharing_Mode", "SHARED", "the cached mapping table is shared"),
    ("Plane_Allocation_Scheme", "CWDP", "writes go to channels, dies and planes in turn"),
    ("GC_Hard_Threshold", "", "incremental collection has one threshold"),
    ("Preferred_suspend_", "", "a read suspends at once, a write never does"),
];

/// Files to import.
#[derive(Clone, Debug, Default)]
pub struct MqsimRequest {
    /// The configuration (`ssdconfig.xml`).
    pub config: String,
    /// The workload file (`workload.xml`); without one the result is a preset.
    pub workload: Option<String>,
    /// The `IO_Scenario` of the workload file, counted from 1.
    pub scenario: usize,
}

/// Imports a configuration of MQSim with one scenario of a workload file, or as a preset.
///
/// # Errors
/// The first error in a file, with its location and what was expected.
pub fn mqsim(request: &MqsimRequest, files: &mut dyn FileSource) -> Result<Imported, ImportError> {
    let mut warnings = Vec::new();
    let read = |files: &mut dyn FileSource, name: &str| {
        files.read(name, "").map_err(|message| ImportError { at: None, message })
    };
    let config = read(files, &request.config)?;
    let document = parsed(&config, "Execution_Parameter_Set")?;
    let mut tags = Tags::new(&config.0, document.root_element());
    let mut flows = Vec::new();
    if let Some(workload) = &request.workload {
        let workload = read(files, workload)?;
        let document = parsed(&workload, "MQSim_IO_Scenarios")?;
        flows = flows_of(&workload.0, &document, request.scenario)?;
    }
    let ssd = Ssd::read(&mut tags, &mut flows, &mut warnings)?;
    let mut queue_depth = tags.take("IO_Queue_Depth");
    tags.rest(&mut warnings);
    if flows.is_empty() {
        let mut text = heading("a configuration of MQSim", &request.config, true, &warnings);
        ssd.lines.render(&mut text);
        return Ok(Imported { text, is_preset: true, warnings });
    }
    let mut host = TomlTable::default();
    let alone = flows.len() == 1;
    let size = ssd.exported / flows.len() as u64 / NAMESPACE_UNIT * NAMESPACE_UNIT;
    let mut sections = Vec::new();
    for (at, mut flow) in flows.into_iter().enumerate() {
        let mut lines = TomlTable::default();
        // One workload has the loop of the host; several have their own.
        let own_loop = if alone { &mut host } else { &mut lines };
        let closed = flow.closed_loop(own_loop)?;
        // The queue of a flow that keeps it full is as long as it is full.
        if let Some(depth) = queue_depth.take_if(|_| !(alone && closed)) {
            host.set("queue_depth", depth.count()?.to_string(), depth.comment());
        }
        let name = if alone {
            "workload".to_owned()
        } else {
            let start = format!("\"{}B\"", size * at as u64);
            lines.set("namespace_start", start, "MQSim divides the SSD among its flows");
            lines.set("namespace_size", format!("\"{size}B\""), "");
            format!("workload.flow-{}", at + 1)
        };
        let space = if alone { ssd.exported } else { size };
        flow.convert(space, closed, &mut lines, &mut warnings)?;
        flow.tags.rest(&mut warnings);
        sections.push((name, lines));
    }
    let mut text = heading("a configuration of MQSim", &request.config, false, &warnings);
    let stem = request.config.rsplit('/').next().unwrap_or(&request.config);
    text += &format!("title = {}\n", string(stem.strip_suffix(".xml").unwrap_or(stem)));
    section(&mut text, "host", &host);
    for (name, lines) in &sections {
        section(&mut text, name, lines);
    }
    section(&mut text, "component.ssd", &ssd.lines);
    Ok(Imported { text, is_preset: false, warnings })
}

fn parsed<'a>((name, text): &'a (String, String), root: &str) -> Result<Document<'a>, ImportError> {
    let document = Document::parse(text).map_err(|error| {
        let at = error.pos();
        let at = Some(format!("{name}:{}:{}", at.row, at.col));
        ImportError { at, message: format!("not XML: {error}") }
    })?;
    let element = document.root_element();
    let found = element.tag_name().name();
    if found == root {
        return Ok(document);
    }
    let message = format!("expected {}, found {}", quote(root), quote(found));
    Err(ImportError { at: Some(located(name, element)), message })
}

fn located(file: &str, node: Node<'_, '_>) -> String {
    let at = node.document().text_pos_at(node.range().start);
    format!("{file}:{}:{}", at.row, at.col)
}

/// The flows of a scenario.
fn flows_of(file: &str, document: &Document<'_>, number: usize) -> Result<Vec<Flow>, ImportError> {
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

/// A tag with its value.
#[derive(Clone, Debug)]
struct Tag {
    name: String,
    value: String,
    /// `file:line:column`.
    at: String,
}

impl Tag {
    fn error(&self, message: impl Display) -> ImportError {
        let message = format!("{} {message}", quote(&self.name));
        ImportError { at: Some(self.at.clone()), message }
    }

    fn get<T: FromStr>(&self) -> Result<T, ImportError> {
        let unreadable =
            |_| self.error(format_args!("is {}, which is no such number", quote(&self.value)));
        self.value.parse().map_err(unreadable)
    }

    /// A whole number, at least 1.
    fn count(&self) -> Result<u64, ImportError> {
        match self.get()? {
            0 => Err(self.error("is 0")),
            count => Ok(count),
        }
    }

    fn flag(&self) -> Result<bool, ImportError> {
        match self.value.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.error(format_args!("is {}, not true or false", quote(&self.value)))),
        }
    }

    /// The place in `words` of the value.
    fn choice<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, ImportError> {
        let found = words.iter().find(|(word, _)| self.value.eq_ignore_ascii_case(word));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let (value, known) = (quote(&self.value), known.join(", "));
            self.error(format_args!("is {value}, none of {known}"))
        })
    }

    /// A fraction of 1, or of `whole`.
    fn share(&self, whole: f64) -> Result<f64, ImportError> {
        let value: f64 = self.get()?;
        match (0.0..=whole).contains(&value) {
            true => Ok(value / whole),
            false => Err(self.error(format_args!("is {value}, not 0 to {whole}"))),
        }
    }

    fn comment(&self) -> String {
        let line = self.at.rsplit('/').next().unwrap_or(&self.at);
        let line = line.rsplit_once(':').map_or(line, |(line, _)| line);
        format!("{} = {}, {line}", self.name, self.value)
    }
}

/// The tags of an element that have not been converted.
#[derive(Debug)]
struct Tags {
    /// `file:line:column` of the element.
    at: String,
    tags: Vec<Tag>,
}

impl Tags {
    fn new(file: &str, element: Node<'_, '_>) -> Self {
        let is_leaf = |node: &Node<'_, '_>| {
            node.is_element() && !node.children().any(|child| child.is_element())
        };
        let tags = element.descendants().filter(is_leaf).map(|node| Tag {
            name: node.tag_name().name().to_owned(),
            value: node.text().unwrap_or_default().trim().to_owned(),
            at: located(file, node),
        });
        Self { at: located(file, element), tags: tags.collect() }
    }

    /// The last tag called `name`, as MQSim reads it.
    fn take(&mut self, name: &str) -> Option<Tag> {
        let at = self.tags.iter().rposition(|tag| tag.name == name)?;
        Some(self.tags.remove(at))
    }

    fn need(&mut self, name: &str) -> Result<Tag, ImportError> {
        self.take(name).ok_or_else(|| {
            let message = format!("{} is missing", quote(name));
            ImportError { at: Some(self.at.clone()), message }
        })
    }

    fn flag(&mut self, name: &str) -> Result<bool, ImportError> {
        self.take(name).map_or(Ok(false), |tag| tag.flag())
    }

    /// Sets `key` to the time of a tag.
    fn time(&mut self, name: &str, key: &str, lines: &mut TomlTable) -> Result<(), ImportError> {
        let tag = self.need(name)?;
        lines.set(key, format!("\"{}ns\"", tag.get::<u64>()?), tag.comment());
        Ok(())
    }

    /// Warns of the tags that are left.
    fn rest(&self, warnings: &mut Vec<String>) {
        for Tag { name, value, at } in &self.tags {
            let known = NO_COUNTERPART.iter().find(|(start, ..)| name.starts_with(start));
            let name = quote(name);
            match known {
                _ if NO_EFFECT.iter().any(|other| name == quote(other)) => {}
                Some((_, neutral, _)) if value == neutral => {}
                Some((.., why)) => warnings.push(format!("{at}: {name} is left out: {why}")),
                None => warnings.push(format!("{at}: {name} is left out: it is not known")),
            }
        }
    }
}

/// The SSD of a configuration.
struct Ssd {
    lines: TomlTable,
    /// Bytes.
    exported: u64,
}

impl Ssd {
    fn read(
        tags: &mut Tags,
        flows: &mut [Flow],
        warnings: &mut Vec<String>,
    ) -> Result<Self, ImportError> {
        let mut lines = TomlTable::default();
        lines.set("kind", "\"ssd\"", "");
        let (exported, blocks) = geometry(tags, &mut lines)?;
        times(tags, &mut lines, warnings)?;
        link(tags, &mut lines)?;
        buffer(tags, flows, &mut lines, warnings)?;
        let is_page = mapping(tags, &mut lines)?;
        collection(tags, blocks, is_page, &mut lines, warnings)?;
        precondition(tags, flows, is_page, &mut lines, warnings)?;
        Ok(Self { lines, exported })
    }
}

/// Returns the exported capacity in bytes, and the blocks of a plane.
fn geometry(tags: &mut Tags, lines: &mut TomlTable) -> Result<(u64, u64), ImportError> {
    let mut pages = 1u64;
    let mut count = |tags: &mut Tags, name: &str| {
        let tag = tags.need(name)?;
        let count = tag.count()?;
        pages = pages.checked_mul(count).ok_or_else(|| tag.error("makes too many pages"))?;
        Ok((count, tag.comment()))
    };
    let (channels, comment) = count(tags, "Flash_Channel_Count")?;
    lines.set("channels", channels.to_string(), comment);
    let (chips, chips_comment) = count(tags, "Chip_No_Per_Channel")?;
    let (dies, dies_comment) = count(tags, "Die_No_Per_Chip")?;
    let comment = format!("{chips_comment}; {dies_comment}");
    lines.set("dies_per_channel", (chips * dies).to_string(), comment);
    let (planes, comment) = count(tags, "Plane_No_Per_Die")?;
    lines.set("planes_per_die", planes.to_string(), comment);
    let (blocks, comment) = count(tags, "Block_No_Per_Plane")?;
    lines.set("blocks_per_plane", blocks.to_string(), comment);
    let (in_block, comment) = count(tags, "Page_No_Per_Block")?;
    lines.set("pages_per_block", in_block.to_string(), comment);
    let page = tags.need("Page_Capacity")?;
    lines.set("page_size", format!("\"{}B\"", page.count()?), page.comment());
    if let Some(spare) = tags.take("Page_Metadat_Capacity") {
        lines.set("spare_size", format!("\"{}B\"", spare.get::<u64>()?), spare.comment());
    }
    let spare = tags.need("Overprovisioning_Ratio")?;
    let share = spare.share(1.0)?;
    if share > 0.8 {
        return Err(spare.error("leaves less than a fifth of the flash"));
    }
    // MQSim's ratio is of the physical capacity.
    lines.set("over_provisioning", number(share / (1.0 - share)), spare.comment());
    let bytes =
        pages.checked_mul(page.count()?).ok_or_else(|| page.error("makes too many bytes"))?;
    Ok(((bytes as f64 * (1.0 - share)) as u64, blocks))
}

/// Times of the chips and of the channels.
fn times(
    tags: &mut Tags,
    lines: &mut TomlTable,
    warnings: &mut Vec<String>,
) -> Result<(), ImportError> {
    let technology = tags.need("Flash_Technology")?;
    let bits = technology.choice(&[("SLC", 1), ("MLC", 2), ("TLC", 3)])?;
    let all = ["LSB", "CSB", "MSB"];
    let used: &[&str] = [&all[..1], &["LSB", "MSB"], &all[..]][bits - 1];
    let of_pages = |tags: &mut Tags, what: &str| {
        let mut ns = Vec::new();
        let mut comments = Vec::new();
        for page in all {
            let name = format!("{what}_{page}");
            if used.contains(&page) {
                let tag = tags.need(&name)?;
                ns.push(tag.get::<u64>()? as f64);
                comments.push(tag.comment());
            } else {
                tags.take(&name);
            }
        }
        let mean = ns.iter().sum::<f64>() / ns.len() as f64;
        let most = ns.iter().copied().fold(0.0, f64::max);
        let spread = (most - ns.iter().copied().fold(most, f64::min)) / mean.max(1.0);
        Ok((mean, spread, comments.join("; ")))
    };
    let (read, spread, comment) = of_pages(tags, "Page_Read_Latency")?;
    lines.set("read_time", format!("\"{read}ns\""), comment);
    let (program, uneven, comment) = of_pages(tags, "Page_Program_Latency")?;
    lines.set("program_time", format!("\"{program}ns\""), comment);
    if uneven > 0.0 {
        let at = &technology.at;
        warnings.push(format!("{at}: programs of all pages of a cell take their mean time"));
    }
    tags.time("Block_Erase_Latency", "erase_time", lines)?;
    if let Some(limit) = tags.take("Block_PE_Cycles_Limit") {
        lines.set("endurance", limit.count()?.to_string(), limit.comment());
    }
    let (width, rate) = (tags.need("Flash_Channel_Width")?, tags.need("Channel_Transfer_Rate")?);
    let mb = width.count()? as f64 * rate.count()? as f64;
    let comment = format!("{}; {}", width.comment(), rate.comment());
    lines.set("channel_rate", format!("\"{mb}MB/s\""), comment);
    let policies = [("OUT_OF_ORDER", ()), ("PRIORITY_OUT_OF_ORDER", ())];
    let policy = tags.need("Transaction_Scheduling_Policy")?;
    policy.choice(&policies)?;
    lines.set("timing.kind", "\"queued\"", policy.comment());
    lines.set("timing.multi_plane", "true", "MQSim combines operations on the planes of a die");
    lines.set("timing.page_types", bits.to_string(), technology.comment());
    if spread > 0.0 {
        lines.set("timing.read_spread", number(spread), "of the read latencies");
    }
    let support = tags.take("CMD_Suspension_Support");
    let kinds = [("NONE", (false, false)), ("PROGRAM", (true, false)), ("ERASE", (false, true))];
    let kinds = [kinds[0], kinds[1], kinds[2], ("PROGRAM_ERASE", (true, true))];
    let (program, erase) = support.map_or(Ok((false, false)), |tag| tag.choice(&kinds))?;
    for (is_used, name, key) in [
        (program, "Suspend_Program_Time", "timing.program_suspend_time"),
        (erase, "Suspend_Erase_Time", "timing.erase_suspend_time"),
    ] {
        match is_used {
            true => tags.time(name, key, lines)?,
            false => drop(tags.take(name)),
        }
    }
    if !program && !erase {
        tags.tags.retain(|tag| !tag.name.starts_with("Preferred_suspend_"));
    }
    Ok(())
}

/// The link between host and SSD.
fn link(tags: &mut Tags, lines: &mut TomlTable) -> Result<(), ImportError> {
    let names = ["PCIe_Lane_Bandwidth", "PCIe_Lane_Count", "SATA_Processing_Delay"];
    let [bandwidth, width, delay] = names.map(|name| tags.take(name));
    let is_sata = match tags.take("HostInterface_Type") {
        Some(tag) => tag.choice(&[("NVME", false), ("SATA", true)])?,
        None => false,
    };
    if let Some(delay) = delay.filter(|_| is_sata) {
        let time = format!("\"{}ns\"", delay.get::<u64>()?);
        lines.set("controller.read_overhead", &time, delay.comment());
        lines.set("controller.write_overhead", &time, delay.comment());
    }
    if let Some((bandwidth, width)) = bandwidth.zip(width).filter(|_| !is_sata) {
        let rate: f64 = bandwidth.get()?;
        if !(rate > 0.0 && rate < 1e6) {
            return Err(bandwidth.error(format_args!("is {rate}, not a rate in GB/s")));
        }
        let rate = rate * width.count()? as f64;
        let comment = format!("{}; {}", bandwidth.comment(), width.comment());
        lines.set("controller.host_rate", format!("\"{}MB/s\"", rate * 1e3), comment);
    }
    Ok(())
}

/// The cache, which buffers writes.
fn buffer(
    tags: &mut Tags,
    flows: &mut [Flow],
    lines: &mut TomlTable,
    warnings: &mut Vec<String>,
) -> Result<(), ImportError> {
    tags.take("Caching_Mechanism");
    let words = [("TURNED_OFF", false), ("READ_CACHE", false), ("WRITE_CACHE", true)];
    let words = [words[0], words[1], words[2], ("WRITE_READ_CACHE", true)];
    let mut buffers = flows.is_empty();
    for (at, flow) in flows.iter_mut().enumerate() {
        let Some(mode) = flow.tags.take("Device_Level_Data_Caching_Mode") else { continue };
        let own = mode.choice(&words)?;
        if mode.value.to_ascii_uppercase().contains("READ") {
            let at = &mode.at;
            warnings.push(format!("{at}: reads are not cached: a `memory-cache` would do it"));
        }
        if at > 0 && own != buffers {
            warnings.push(format!("{}: the write buffer serves all flows", mode.at));
        }
        buffers |= own;
    }
    match tags.take("Data_Cache_Capacity") {
        Some(tag) if buffers => {
            let size = format!("\"{}B\"", tag.get::<u64>()?);
            lines.set("timing.write_buffer", size, tag.comment());
        }
        _ => lines.set("timing.write_buffer", "\"0B\"", "no flow has a cache for writes"),
    }
    Ok(())
}

/// Returns whether all mapping entries are in memory.
fn mapping(tags: &mut Tags, lines: &mut TomlTable) -> Result<bool, ImportError> {
    if let Some(tag) = tags.take("Address_Mapping") {
        tag.choice(&[("PAGE_LEVEL", ())])?;
    }
    let ideal = tags.flag("Ideal_Mapping_Table")?;
    let capacity = tags.take("CMT_Capacity");
    if ideal {
        lines.set("ftl.kind", "\"page\"", "Ideal_Mapping_Table");
    } else {
        lines.set("ftl.kind", "\"dftl\"", "no Ideal_Mapping_Table");
        if let Some(tag) = capacity {
            let entries = tag.get::<u64>()? / ENTRY_BYTES;
            lines.set("ftl.cache_entries", entries.max(1).to_string(), tag.comment());
        }
    }
    Ok(ideal)
}

/// Garbage collection and wear levelling.
fn collection(
    tags: &mut Tags,
    blocks: u64,
    is_page: bool,
    lines: &mut TomlTable,
    warnings: &mut Vec<String>,
) -> Result<(), ImportError> {
    let threshold = ["GC_Exec_Threshold", "GC_Exect_Threshold"];
    if let Some(tag) = threshold.into_iter().find_map(|name| tags.take(name)) {
        let free = ((tag.share(1.0)? * blocks as f64) as u64).max(GC_FREE_BLOCKS_MIN);
        lines.set("ftl.gc_free_blocks", free.to_string(), tag.comment());
    }
    if let Some(tag) = tags.take("GC_Block_Selection_Policy") {
        let choices = blocks.max(2).ilog2();
        let rga = format!("{{ kind = \"d-choices\", choices = {choices} }}");
        let random = "\"random\"";
        let words = [("GREEDY", "\"greedy\""), ("RGA", &rga), ("FIFO", "\"fifo\"")];
        let random = ["RANDOM", "RANDOM_P", "RANDOM_PP"].map(|name| (name, random));
        lines.set("ftl.gc", tag.choice(&[&words[..], &random].concat())?, tag.comment());
        if tag.value.to_ascii_uppercase().starts_with("RANDOM_") {
            let why = "victims are drawn from all blocks, whatever is valid there";
            warnings.push(format!("{}: {} becomes random: {why}", tag.at, quote(&tag.value)));
        }
    }
    let copy_back = tags.flag("Use_Copyback_for_GC")?;
    if copy_back {
        lines.set("copy_back.within", "\"plane\"", "Use_Copyback_for_GC");
    }
    let preemptible = tags.flag("Preemptible_GC_Enabled")?;
    if !preemptible {
        tags.take("GC_Hard_Threshold");
    }
    let dynamic = tags.flag("Dynamic_Wearleveling_Enabled")?;
    let is_static = tags.flag("Static_Wearleveling_Enabled")?;
    let threshold = tags.take("Static_Wearleveling_Threshold");
    if !is_page {
        return Ok(());
    }
    let pace = if preemptible { "incremental" } else { "blocking" };
    lines.set("ftl.gc_pace", string(pace), format!("Preemptible_GC_Enabled = {preemptible}"));
    match threshold.filter(|_| is_static) {
        Some(tag) => {
            let wear = format!("{{ kind = \"static\", threshold = {} }}", tag.count()?);
            lines.set("ftl.wear", wear, tag.comment());
        }
        None if dynamic => lines.set("ftl.wear", "\"implicit\"", "Dynamic_Wearleveling_Enabled"),
        None => {}
    }
    Ok(())
}

/// What is on the flash before the run.
fn precondition(
    tags: &mut Tags,
    flows: &mut [Flow],
    is_page: bool,
    lines: &mut TomlTable,
    warnings: &mut Vec<String>,
) -> Result<(), ImportError> {
    let mut most: Option<(f64, Tag)> = None;
    for tag in flows.iter_mut().filter_map(|it| it.tags.take("Initial_Occupancy_Percentage")) {
        let share = tag.share(100.0)?;
        if most.as_ref().is_some_and(|(other, _)| *other != share) {
            let (at, name) = (&tag.at, quote(&tag.name));
            warnings.push(format!("{at}: flows differ in {name}: the largest is used"));
        }
        if most.as_ref().is_none_or(|(other, _)| share > *other) {
            most = Some((share, tag));
        }
    }
    if tags.flag("Enabled_Preconditioning")? {
        let state = if is_page { "steady-drawn" } else { "steady" };
        lines.set("precondition", string(state), "Enabled_Preconditioning");
        if let Some((share, tag)) = most.filter(|(share, _)| *share < 1.0) {
            lines.set("precondition_fill", number(share), tag.comment());
        }
    }
    Ok(())
}

/// A flow of a scenario.
struct Flow {
    is_trace: bool,
    tags: Tags,
}

impl Flow {
    /// Sets the loop of a flow that keeps so many requests outstanding; returns whether it is one.
    fn closed_loop(&mut self, lines: &mut TomlTable) -> Result<bool, ImportError> {
        let depth = self.tags.take("Average_No_of_Reqs_in_Queue");
        let kind = self.tags.take("Synthetic_Generator_Type");
        let words = [("QUEUE_DEPTH", true), ("BANDWIDTH", false)];
        let closed = !self.is_trace && kind.map_or(Ok(true), |tag| tag.choice(&words))?;
        if closed {
            let missing = || self.tags.need("Average_No_of_Reqs_in_Queue");
            let depth = depth.map_or_else(missing, Ok)?;
            lines.set("mode", "\"closed\"", "Synthetic_Generator_Type = QUEUE_DEPTH");
            lines.set("queue_depth", depth.count()?.to_string(), depth.comment());
        }
        Ok(closed)
    }

    /// The keys of the workload, on `space` bytes.
    fn convert(
        &mut self,
        space: u64,
        closed: bool,
        lines: &mut TomlTable,
        warnings: &mut Vec<String>,
    ) -> Result<(), ImportError> {
        let tags = &mut self.tags;
        if let Some(tag) = tags.take("Priority_Class") {
            let others = ["HIGH", "MEDIUM", "LOW"].map(|word| (word, false));
            if tag.choice(&[&[("URGENT", true)][..], &others].concat())? {
                lines.set("priority", "\"urgent\"", tag.comment());
            }
        }
        // Lists of all resources in the files that MQSim comes with.
        for name in ["Channel_IDs", "Chip_IDs", "Die_IDs", "Plane_IDs"] {
            if let Some(tag) = tags.take(name) {
                let at = &tag.at;
                let all =
                    tag.value.split(',').enumerate().all(|(at, id)| id.trim() == at.to_string());
                if !all {
                    let name = quote(name);
                    warnings.push(format!("{at}: {name} is left out: a flow uses all of the SSD"));
                }
            }
        }
        match self.is_trace {
            true => trace(tags, lines, warnings),
            false => synthetic(tags, space, closed, lines, warnings),
        }
    }
}

fn trace(
    tags: &mut Tags,
    lines: &mut TomlTable,
    warnings: &mut Vec<String>,
) -> Result<(), ImportError> {
    let path = tags.need("File_Path")?;
    lines.set("trace", string(&path.value.replace('\\', "/")), path.comment());
    if let Some(unit) = tags.take("Time_Unit") {
        let units = [("PICOSECOND", "ps"), ("NANOSECOND", "ns"), ("MICROSECOND", "us")];
        let format = format!("{{ kind = \"mqsim\", time_unit = \"{}\" }}", unit.choice(&units)?);
        lines.set("format", format, unit.comment());
    }
    if let Some(loops) = tags.take("Relay_Count") {
        lines.set("loops", loops.count()?.to_string(), loops.comment());
    }
    if let Some(part) = tags.take("Percentage_To_Be_Executed")
        && part.share(100.0)? < 1.0
    {
        let name = quote(&part.name);
        warnings.push(format!("{}: {name} is left out: set `count` to requests", part.at));
    }
    Ok(())
}

fn synthetic(
    tags: &mut Tags,
    space: u64,
    closed: bool,
    lines: &mut TomlTable,
    warnings: &mut Vec<String>,
) -> Result<(), ImportError> {
    let size = tags.need("Average_Request_Size")?;
    let bytes = size.count()?.checked_mul(SECTOR_BYTES).ok_or_else(|| size.error("is too long"))?;
    let reads = tags.need("Read_Percentage")?;
    let read = reads.share(100.0)?;
    let pattern = tags.need("Address_Distribution")?;
    let hot = tags.take("Percentage_of_Hot_Region");
    let kinds = ["STREAMING", "RANDOM_UNIFORM", "UNIFORM_RANDOM", "RANDOM_HOTCOLD"];
    let kind = pattern.choice(&[(kinds[0], 0), (kinds[1], 1), (kinds[2], 1), (kinds[3], 2)])?;
    match kind {
        0 => {
            lines.set("generator.kind", "\"fio\"", pattern.comment());
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
            lines.set("generator.bs", format!("\"{bytes}B\""), size.comment());
        }
        _ => {
            let name = if kind == 1 { "uniform" } else { "hotcold" };
            lines.set("generator.kind", string(name), pattern.comment());
            lines.set("generator.read", number(read), reads.comment());
            lines.set("generator.block", format!("\"{bytes}B\""), size.comment());
        }
    }
    if kind == 2 {
        let tag = hot.map_or_else(|| tags.need("Percentage_of_Hot_Region"), Ok)?;
        let hot = tag.share(100.0)?;
        lines.set("generator.hot_fraction", number(hot), tag.comment());
        lines.set(
            "generator.hot_probability",
            number(1.0 - hot),
            "the others go to the cold region",
        );
    }
    if let Some(part) = tags.take("Working_Set_Percentage") {
        let span = (part.share(100.0)? * space as f64) as u64 / bytes * bytes;
        lines.set("generator.span", format!("\"{span}B\""), part.comment());
    }
    let bandwidth = tags.take("Bandwidth");
    if !closed {
        let bandwidth = bandwidth.map_or_else(|| tags.need("Bandwidth"), Ok)?;
        let mean_ms = bytes as f64 * 1e3 / bandwidth.count()? as f64;
        let times = format!("{{ kind = \"exponential\", mean = {mean_ms} }}");
        lines.set("generator.interarrival_ms", times, bandwidth.comment());
    }
    tags.take("Intensity");
    let (stop, total) = (tags.need("Stop_Time")?, tags.take("Total_Requests_To_Generate"));
    match (stop.get::<u64>()?, total) {
        (0, Some(total)) => {
            lines.set("generator.requests", total.count()?.to_string(), total.comment());
        }
        (ns, _) => lines.set("generator.duration", format!("\"{ns}ns\""), stop.comment()),
    }
    let aligned = tags.take("Generated_Aligned_Addresses");
    let unit = tags.take("Address_Alignment_Unit");
    let differs =
        |unit: &Tag| unit.get::<u64>().is_ok_and(|sectors| sectors * SECTOR_BYTES != bytes);
    let unaligned = aligned.as_ref().filter(|tag| !tag.flag().unwrap_or(true));
    if let Some(tag) = unaligned.or(unit.as_ref().filter(|unit| differs(unit))) {
        let (at, name) = (&tag.at, quote(&tag.name));
        warnings.push(format!("{at}: {name} is left out: requests are aligned to their size"));
    }
    let sizes = tags.take("Request_Size_Distribution");
    let variance = tags.take("Variance_Request_Size");
    let varies = variance.is_some_and(|tag| tag.get::<f64>().is_ok_and(|it| it > 0.0));
    if let Some(tag) = sizes.filter(|tag| varies && tag.value.eq_ignore_ascii_case("NORMAL")) {
        warnings.push(format!("{}: all requests have the average size", tag.at));
    }
    Ok(())
}
