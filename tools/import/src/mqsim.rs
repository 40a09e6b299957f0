//! MQSim's configuration of an SSD, and the scenarios of its workload file.
//!
//! A tag is converted where it is looked up; the rest are reported, unless they matter only to
//! MQSim's output. The page on the words of other tools lists all tags.

use crate::source::{FileSource, ImportError, quote};
use crate::table::{TomlTable, number, string};
use crate::{Imported, heading, section};
use roxmltree::{Document, Node};
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

const SECTOR_BYTES: u64 = 512;
/// Blocks of a plane from which on a steady state can be drawn instead of simulated.
const DRAWN_BLOCKS_MIN: u64 = 64;
/// Largest `timing.read_spread`.
const SPREAD_MAX: f64 = 1.9;

/// Tags without an effect on results, but for random numbers.
const NO_EFFECT: &[&str] = &[
    "Enable_ResponseTime_Logging",
    "ResponseTime_Logging_Period_Length",
    "Memory_Type",
    "Flash_Comm_Protocol",
    "Caching_Mechanism",
    "Seed",
];

/// Tags without a counterpart: how they begin, the value for which that makes no difference, and
/// what happens instead.
const NO_COUNTERPART: &[(&str, &str, &str)] = &[
    ("Data_Cache_DRAM_", "", "accesses to the DRAM take no time"),
    ("Data_Cache_Sharing_Mode", "SHARED", "the write buffer is shared"),
    ("CMT_Sharing_Mode", "SHARED", "the cached mapping table is shared"),
    ("Plane_Allocation_Scheme", "CWDP", "writes go to channels, dies and planes in turn"),
    ("GC_Hard_Threshold", "", "garbage collection has one threshold"),
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
    /// The folder that paths of traces start from, where the scenario is to have whole ones.
    pub folder: Option<PathBuf>,
}

/// Imports a configuration of MQSim with one scenario of a workload file, or as a preset.
///
/// # Errors
/// The first error in a file, with its location and what was expected.
pub fn mqsim(request: &MqsimRequest, files: &mut dyn FileSource) -> Result<Imported, ImportError> {
    let mut read =
        |name: &str| files.read(name, "").map_err(|message| ImportError { at: None, message });
    let config = read(&request.config)?;
    let document = parsed(&config, "Execution_Parameter_Set")?;
    let mut tags = Tags::new(&config.0, document.root_element());
    let mut flows = Vec::new();
    if let Some(workload) = &request.workload {
        let workload = read(workload)?;
        let document = parsed(&workload, "MQSim_IO_Scenarios")?;
        flows = flows_of(&workload.0, &document, request.scenario)?;
    }
    let is_preset = flows.is_empty();
    let ssd = Ssd::read(&mut tags, &mut flows)?;
    let limits = ["IO_Queue_Depth", "Queue_Fetch_Size"].map(|name| tags.take(name));
    let workloads = workloads(flows, &ssd, limits, request, &mut tags)?;
    tags.rest();
    let what = "a configuration of MQSim";
    let mut text = heading(what, &request.config, is_preset, &tags.warnings);
    if is_preset {
        ssd.lines.render(&mut text);
    } else {
        let stem = request.config.rsplit('/').next().unwrap_or(&request.config);
        text += &format!("title = {}\n", string(stem.strip_suffix(".xml").unwrap_or(stem)));
        for (name, lines) in &workloads {
            section(&mut text, name, lines);
        }
        section(&mut text, "component.ssd", &ssd.lines);
    }
    Ok(Imported { text, is_preset, warnings: tags.warnings })
}

/// The host and the workloads, with the names of their tables.
fn workloads(
    flows: Vec<Flow>,
    ssd: &Ssd,
    limits: [Option<Tag>; 2],
    request: &MqsimRequest,
    of_config: &mut Tags,
) -> Result<Vec<(String, TomlTable)>, ImportError> {
    let mut limit: Option<(u64, Tag)> = None;
    for tag in limits.into_iter().flatten() {
        let depth = tag.count()?;
        if limit.as_ref().is_none_or(|(other, _)| depth < *other) {
            limit = Some((depth, tag));
        }
    }
    let alone = flows.len() == 1;
    let share = ssd.exported / flows.len().max(1) as u64 / ssd.page * ssd.page;
    let mut host = TomlTable::default();
    let mut tables = Vec::new();
    let mut classes: Vec<String> = Vec::new();
    for (at, mut flow) in flows.into_iter().enumerate() {
        let mut lines = TomlTable::default();
        let mut name = "workload".to_owned();
        if !alone {
            if share == 0 {
                let message = "the SSD has less than a page for each flow".to_owned();
                return Err(ImportError { at: Some(flow.tags.at), message });
            }
            name = format!("workload.flow-{}", at + 1);
            let start = format!("\"{}B\"", share * at as u64);
            lines.set("namespace_start", start, "MQSim divides the SSD among its flows");
            lines.set("namespace_size", format!("\"{share}B\""), "");
        }
        // One workload has the loop of the host; several have their own.
        let own_loop = if alone { &mut host } else { &mut lines };
        let closed = flow.closed_loop(limit.as_ref().map(|(depth, _)| *depth), own_loop)?;
        if let Some((depth, tag)) = limit.take_if(|_| at == 0 && !(alone && closed)) {
            host.set("queue_depth", depth.to_string(), tag.comment());
            limit = Some((depth, tag));
        }
        classes.extend(flow.priority(ssd.obeys_priority, &mut lines)?);
        flow.convert(ssd, if alone { ssd.exported } else { share }, closed, request, &mut lines)?;
        flow.tags.rest();
        of_config.warnings.append(&mut flow.tags.warnings);
        tables.push((name, lines));
    }
    classes.dedup();
    if classes.len() > 1 && ssd.obeys_priority {
        let classes = classes.join(", ");
        of_config.warnings.push(format!(
            "{}: classes {classes} are served alike: give flows a `weight` with \
             `host.arbitration = \"weighted-round-robin\"`",
            of_config.at
        ));
    }
    tables.insert(0, ("host".to_owned(), host));
    Ok(tables)
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

    fn is(&self, found: impl Display) -> ImportError {
        self.error(format_args!("is {}; {found}", quote(&self.value)))
    }

    /// A whole number.
    fn whole(&self) -> Result<u64, ImportError> {
        self.value.parse().map_err(|_| self.is("expected a whole number"))
    }

    /// A whole number, at least 1.
    fn count(&self) -> Result<u64, ImportError> {
        match self.whole()? {
            0 => Err(self.is("expected at least 1")),
            count => Ok(count),
        }
    }

    /// A finite number.
    fn number(&self) -> Result<f64, ImportError> {
        let number = f64::from_str(&self.value).ok().filter(|number| number.is_finite());
        number.ok_or_else(|| self.is("expected a number"))
    }

    fn flag(&self) -> Result<bool, ImportError> {
        self.choice(&[("true", true), ("false", false)])
    }

    /// The value that `words` gives.
    fn choice<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, ImportError> {
        let found = words.iter().find(|(word, _)| self.value.eq_ignore_ascii_case(word));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.is(format_args!("expected {}", known.join(", ")))
        })
    }

    /// A fraction of 1, from one of `whole`.
    fn share(&self, whole: f64) -> Result<f64, ImportError> {
        match self.number()? {
            value if (0.0..=whole).contains(&value) => Ok(value / whole),
            _ => Err(self.is(format_args!("expected 0 to {whole}"))),
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
    taken: Vec<String>,
    warnings: Vec<String>,
}

impl Tags {
    fn new(file: &str, element: Node<'_, '_>) -> Self {
        let is_leaf = |node: &Node<'_, '_>| {
            node.is_element() && !node.children().any(|child| child.is_element())
        };
        let text = |node: Node<'_, '_>| -> String {
            node.children().filter_map(|child| child.text().filter(|_| child.is_text())).collect()
        };
        let tags = element.descendants().filter(is_leaf).map(|node| Tag {
            name: node.tag_name().name().to_owned(),
            value: text(node).trim().to_owned(),
            at: located(file, node),
        });
        let at = located(file, element);
        Self { at, tags: tags.collect(), taken: Vec::new(), warnings: Vec::new() }
    }

    /// The last tag called `name`, as MQSim reads it.
    fn take(&mut self, name: &str) -> Option<Tag> {
        let at = self.tags.iter().rposition(|tag| tag.name == name)?;
        self.taken.push(name.to_owned());
        Some(self.tags.remove(at))
    }

    fn need(&mut self, name: &str) -> Result<Tag, ImportError> {
        self.take(name).ok_or_else(|| {
            let message = format!("{} is missing", quote(name));
            ImportError { at: Some(self.at.clone()), message }
        })
    }

    /// A switch, which is on unless it is given.
    fn flag(&mut self, name: &str) -> Result<bool, ImportError> {
        self.take(name).map_or(Ok(true), |tag| tag.flag())
    }

    /// Sets `key` to a tag's whole number, with its unit.
    fn set(
        &mut self,
        name: &str,
        key: &str,
        unit: &str,
        lines: &mut TomlTable,
    ) -> Result<(), ImportError> {
        let tag = self.need(name)?;
        lines.set(key, format!("\"{}{unit}\"", tag.whole()?), tag.comment());
        Ok(())
    }

    fn warn(&mut self, tag: &Tag, why: impl Display) {
        self.warnings.push(format!("{}: {} {why}", tag.at, quote(&tag.name)));
    }

    /// Warns of the tags that are left.
    fn rest(&mut self) {
        for tag in std::mem::take(&mut self.tags) {
            let known = NO_COUNTERPART.iter().find(|(start, ..)| tag.name.starts_with(start));
            match known {
                _ if self.taken.contains(&tag.name) => {
                    self.warn(&tag, "is given again; the last value is used");
                }
                _ if NO_EFFECT.contains(&&*tag.name) => {}
                Some((_, neutral, _)) if tag.value.eq_ignore_ascii_case(neutral) => {}
                Some((.., why)) => self.warn(&tag, format_args!("is left out: {why}")),
                None => self.warn(&tag, "is left out: it is not known"),
            }
        }
    }
}

/// The SSD of a configuration.
struct Ssd {
    lines: TomlTable,
    /// Channels, chips of a channel, dies of a chip, planes of a die.
    counts: [u64; 4],
    blocks: u64,
    pages: u64,
    /// Bytes of a page.
    page: u64,
    /// Exported bytes, in whole pages.
    exported: u64,
    obeys_priority: bool,
}

impl Ssd {
    fn read(tags: &mut Tags, flows: &mut [Flow]) -> Result<Self, ImportError> {
        let mut ssd = Self::of_geometry(tags)?;
        let (planes, blocks) = (ssd.counts[3], ssd.blocks);
        let lines = &mut ssd.lines;
        ssd.obeys_priority = times(tags, planes, lines)?;
        link(tags, lines)?;
        buffer(tags, flows, lines)?;
        // An entry has two addresses of pages and a bit for each sector of the page.
        let bits = 2.0 * (ssd.pages as f64).log2() + (ssd.page / SECTOR_BYTES) as f64;
        let is_page = mapping(tags, ((bits / 8.0).ceil() as u64).max(1), lines)?;
        collection(tags, blocks, is_page, lines)?;
        precondition(tags, flows, is_page && blocks >= DRAWN_BLOCKS_MIN, lines)?;
        Ok(ssd)
    }

    fn of_geometry(tags: &mut Tags) -> Result<Self, ImportError> {
        let mut lines = TomlTable::default();
        lines.set("kind", "\"ssd\"", "");
        let names = [
            ("Flash_Channel_Count", "channels"),
            ("Chip_No_Per_Channel", ""),
            ("Die_No_Per_Chip", "dies_per_channel"),
            ("Plane_No_Per_Die", "planes_per_die"),
            ("Block_No_Per_Plane", "blocks_per_plane"),
            ("Page_No_Per_Block", "pages_per_block"),
        ];
        let (mut counts, mut pages, mut chips) = ([0; 6], 1u64, (1, String::new()));
        for (count, (name, key)) in counts.iter_mut().zip(names) {
            let tag = tags.need(name)?;
            *count = tag.count()?;
            pages = pages.checked_mul(*count).ok_or_else(|| tag.is("these are too many pages"))?;
            match key {
                "" => chips = (*count, format!("{}; ", tag.comment())),
                "dies_per_channel" => {
                    let (chips, comment) = std::mem::take(&mut chips);
                    let dies = (chips * *count).to_string();
                    lines.set(key, dies, comment + &tag.comment());
                }
                _ => lines.set(key, count.to_string(), tag.comment()),
            }
        }
        let tag = tags.need("Page_Capacity")?;
        let page = tag.count()?;
        if !page.is_multiple_of(SECTOR_BYTES) {
            return Err(tag.is("expected a multiple of 512"));
        }
        lines.set("page_size", format!("\"{page}B\""), tag.comment());
        if pages.checked_mul(page).is_none() {
            return Err(tag.is("these are too many bytes"));
        }
        if tags.tags.iter().any(|tag| tag.name == "Page_Metadat_Capacity") {
            tags.set("Page_Metadat_Capacity", "spare_size", "B", &mut lines)?;
        }
        let spare = tags.need("Overprovisioning_Ratio")?;
        let share = spare.share(1.0)?;
        if share >= 0.8 {
            return Err(spare.is("expected less than 0.8"));
        }
        // MQSim's ratio is of the physical capacity.
        lines.set("over_provisioning", number(share / (1.0 - share)), spare.comment());
        let exported = (pages as f64 * (1.0 - share)) as u64 * page;
        let [channels, chips, dies, planes, blocks, _] = counts;
        let counts = [channels, chips, dies, planes];
        Ok(Self { lines, counts, blocks, pages, page, exported, obeys_priority: false })
    }
}

/// Times of the chips and of the channels; returns whether transactions are scheduled by priority.
fn times(tags: &mut Tags, planes: u64, lines: &mut TomlTable) -> Result<bool, ImportError> {
    let technology = tags.need("Flash_Technology")?;
    let bits = technology.choice(&[("SLC", 1), ("MLC", 2), ("TLC", 3)])?;
    let all = ["LSB", "CSB", "MSB"];
    let used: &[&str] = [&all[..1], &["LSB", "MSB"], &all[..]][bits - 1];
    // The mean of the pages of a cell, and the range as a part of it.
    let of_pages = |tags: &mut Tags, what: &str| {
        let (mut ns, mut comments) = (Vec::new(), Vec::new());
        for page in all {
            let name = format!("{what}_{page}");
            if used.contains(&page) {
                let tag = tags.need(&name)?;
                ns.push(tag.whole()? as f64);
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
        tags.warn(&technology, "has programs of several times: all take the mean");
    }
    tags.set("Block_Erase_Latency", "erase_time", "ns", lines)?;
    if let Some(limit) = tags.take("Block_PE_Cycles_Limit") {
        lines.set("endurance", limit.count()?.to_string(), limit.comment());
    }
    let (width, rate) = (tags.need("Flash_Channel_Width")?, tags.need("Channel_Transfer_Rate")?);
    let mb = width.count()? as f64 * rate.count()? as f64;
    let comment = format!("{}; {}", width.comment(), rate.comment());
    lines.set("channel_rate", format!("\"{mb}MB/s\""), comment);
    let policy = tags.need("Transaction_Scheduling_Policy")?;
    let by_priority = policy.choice(&[("OUT_OF_ORDER", false), ("PRIORITY_OUT_OF_ORDER", true)])?;
    lines.set("timing.kind", "\"queued\"", policy.comment());
    if planes > 1 {
        lines.set("timing.multi_plane", "true", "MQSim combines operations on planes of a die");
    }
    if spread > SPREAD_MAX {
        return Err(technology.error("has read latencies that are too far apart"));
    }
    if spread > 0.0 {
        lines.set("timing.page_types", bits.to_string(), technology.comment());
        lines.set("timing.read_spread", number(spread), "of the read latencies");
    }
    let support = tags.take("CMD_Suspension_Support");
    let [program, erase] = support.map_or(Ok([false; 2]), |tag| {
        tag.choice(&[
            ("NONE", [false, false]),
            ("PROGRAM", [true, false]),
            ("ERASE", [false, true]),
            ("PROGRAM_ERASE", [true, true]),
        ])
    })?;
    for (is_used, name, key) in [
        (program, "Suspend_Program_Time", "timing.program_suspend_time"),
        (erase, "Suspend_Erase_Time", "timing.erase_suspend_time"),
    ] {
        match is_used {
            true => tags.set(name, key, "ns", lines)?,
            false => drop(tags.take(name)),
        }
    }
    if !program && !erase {
        tags.tags.retain(|tag| !tag.name.starts_with("Preferred_suspend_"));
    }
    Ok(by_priority)
}

/// The link between host and SSD; that of SATA is a PCIe link as well.
fn link(tags: &mut Tags, lines: &mut TomlTable) -> Result<(), ImportError> {
    let interface = tags.take("HostInterface_Type");
    let is_sata =
        interface.map_or(Ok(false), |it| it.choice(&[("NVME", false), ("SATA", true)]))?;
    if let Some(delay) = tags.take("SATA_Processing_Delay").filter(|_| is_sata) {
        // At submission, and again at completion.
        let time = format!("\"{}ns\"", delay.whole()?.saturating_mul(2));
        lines.set("controller.read_overhead", &time, delay.comment());
        lines.set("controller.write_overhead", &time, delay.comment());
    }
    let (bandwidth, width) = (tags.take("PCIe_Lane_Bandwidth"), tags.take("PCIe_Lane_Count"));
    if let Some((bandwidth, width)) = bandwidth.zip(width) {
        let rate = bandwidth.number()?;
        if !(rate > 0.0 && rate < 1e6) {
            return Err(bandwidth.is("expected a rate in GB/s"));
        }
        let rate = rate * width.count()? as f64;
        let comment = format!("{}; {}", bandwidth.comment(), width.comment());
        lines.set("controller.host_rate", format!("\"{}MB/s\"", rate * 1e3), comment);
    }
    Ok(())
}

/// The cache, which buffers writes.
fn buffer(tags: &mut Tags, flows: &mut [Flow], lines: &mut TomlTable) -> Result<(), ImportError> {
    let mut buffers = Vec::new();
    for flow in flows {
        let Some(mode) = flow.tags.take("Device_Level_Data_Caching_Mode") else {
            buffers.push(true);
            continue;
        };
        let [reads, writes] = mode.choice(&[
            ("TURNED_OFF", [false, false]),
            ("READ_CACHE", [true, false]),
            ("WRITE_CACHE", [false, true]),
            ("WRITE_READ_CACHE", [true, true]),
        ])?;
        buffers.push(writes);
        if reads {
            flow.tags.warn(&mode, "caches no reads: put a `memory-cache` above the SSD");
        }
        if writes != buffers[0] {
            flow.tags.warn(&mode, "differs: the write buffer serves all flows");
        }
    }
    let capacity = tags.take("Data_Cache_Capacity");
    if !buffers.is_empty() && !buffers.contains(&true) {
        lines.set("timing.write_buffer", "\"0B\"", "no flow has a cache for writes");
    } else {
        let missing = || tags.need("Data_Cache_Capacity");
        let capacity = capacity.map_or_else(missing, Ok)?;
        lines.set("timing.write_buffer", format!("\"{}B\"", capacity.whole()?), capacity.comment());
    }
    Ok(())
}

/// The FTL; returns whether all mapping entries are in memory.
fn mapping(tags: &mut Tags, entry_bytes: u64, lines: &mut TomlTable) -> Result<bool, ImportError> {
    if let Some(tag) = tags.take("Address_Mapping") {
        tag.choice(&[("PAGE_LEVEL", ())])?;
    }
    let ideal = tags.take("Ideal_Mapping_Table").map_or(Ok(false), |tag| tag.flag())?;
    let capacity = tags.take("CMT_Capacity");
    if ideal {
        lines.set("ftl.kind", "\"page\"", "Ideal_Mapping_Table");
        return Ok(true);
    }
    lines.set("ftl.kind", "\"dftl\"", "no Ideal_Mapping_Table");
    if let Some(tag) = capacity {
        let entries = (tag.whole()? / entry_bytes).max(1);
        let comment = format!("{}; entries of {entry_bytes} bytes", tag.comment());
        lines.set("ftl.cache_entries", entries.to_string(), comment);
    }
    Ok(false)
}

/// Garbage collection and wear levelling.
fn collection(
    tags: &mut Tags,
    blocks: u64,
    is_page: bool,
    lines: &mut TomlTable,
) -> Result<(), ImportError> {
    let threshold = ["GC_Exec_Threshold", "GC_Exect_Threshold"];
    if let Some(tag) = threshold.into_iter().find_map(|name| tags.take(name)) {
        // MQSim collects below the threshold.
        let free = (tag.share(1.0)? * blocks as f64) as u64;
        lines.set("ftl.gc_free_blocks", free.saturating_sub(1).max(1).to_string(), tag.comment());
    }
    if let Some(tag) = tags.take("GC_Block_Selection_Policy") {
        let rga = format!("{{ kind = \"d-choices\", choices = {} }}", blocks.max(2).ilog2());
        let (policy, is_near) = tag.choice(&[
            ("GREEDY", ("\"greedy\"", true)),
            ("RGA", (&*rga, true)),
            ("FIFO", ("\"fifo\"", true)),
            ("RANDOM", ("\"random\"", true)),
            ("RANDOM_P", ("\"random\"", false)),
            ("RANDOM_PP", ("\"random\"", false)),
        ])?;
        lines.set("ftl.gc", policy, tag.comment());
        if !is_near {
            tags.warn(&tag, "becomes random: victims are drawn whatever is valid in them");
        }
    }
    if tags.take("Use_Copyback_for_GC").map_or(Ok(false), |tag| tag.flag())? {
        lines.set("copy_back.within", "\"plane\"", "Use_Copyback_for_GC");
    }
    let preemptible = tags.flag("Preemptible_GC_Enabled")?;
    if !preemptible || !is_page {
        tags.take("GC_Hard_Threshold");
    }
    let dynamic = tags.flag("Dynamic_Wearleveling_Enabled")?;
    let is_static = tags.flag("Static_Wearleveling_Enabled")?;
    let threshold = tags.take("Static_Wearleveling_Threshold");
    if !is_page {
        if preemptible || dynamic || is_static {
            tags.warnings.push(format!(
                "{}: `dftl` collects whole blocks and does not level wear, unlike the FTL of an \
                 ideal mapping table",
                tags.at
            ));
        }
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
    can_be_drawn: bool,
    lines: &mut TomlTable,
) -> Result<(), ImportError> {
    let mut most: Option<(f64, Tag)> = None;
    for flow in flows {
        let Some(tag) = flow.tags.take("Initial_Occupancy_Percentage") else { continue };
        let share = tag.share(100.0)?;
        if most.as_ref().is_some_and(|(other, _)| *other != share) {
            flow.tags.warn(&tag, "differs between flows: the largest is used");
        }
        if most.as_ref().is_none_or(|(other, _)| share > *other) {
            most = Some((share, tag));
        }
    }
    if tags.flag("Enabled_Preconditioning")? {
        let state = if can_be_drawn { "steady-drawn" } else { "steady" };
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
    /// Sets the loop of a flow that keeps a number of requests outstanding, of which the device
    /// takes `limit`; returns whether it is one.
    fn closed_loop(
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

    /// The priority class; `urgent` has a counterpart, of the others the name is returned.
    fn priority(
        &mut self,
        is_obeyed: bool,
        lines: &mut TomlTable,
    ) -> Result<Option<String>, ImportError> {
        let Some(tag) = self.tags.take("Priority_Class") else { return Ok(None) };
        let classes = ["URGENT", "HIGH", "MEDIUM", "LOW"];
        match tag.choice(&classes.map(|class| (class, class)))? {
            "URGENT" if is_obeyed => {
                lines.set("priority", "\"urgent\"", tag.comment());
                Ok(None)
            }
            class => Ok(Some(class.to_owned())),
        }
    }

    /// The keys of the workload, on `space` bytes.
    fn convert(
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
        lines.set("generator.hot_probability", number(1.0 - hot), "of the rest of requests");
    }
    if let Some(part) = tags.take("Working_Set_Percentage") {
        // Without a sense, the whole space.
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
    tags.take("Intensity");
    let (stop, total) = (tags.need("Stop_Time")?, tags.take("Total_Requests_To_Generate"));
    match (stop.whole()?, total) {
        (0, Some(total)) => {
            lines.set("generator.requests", total.count()?.to_string(), total.comment());
        }
        (0, None) => return Err(stop.is("expected a time, or `Total_Requests_To_Generate`")),
        (ns, _) => lines.set("generator.duration", format!("\"{ns}ns\""), stop.comment()),
    }
    let aligned = tags.flag("Generated_Aligned_Addresses")?;
    let unit = tags.take("Address_Alignment_Unit");
    if let Some(unit) = unit
        && (!aligned || unit.whole()? != bytes / SECTOR_BYTES)
    {
        tags.warn(&unit, "is left out: requests are aligned to their size");
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
