//! The SSD of a configuration.

use super::SECTOR_BYTES;
use super::flow::Flow;
use super::tags::{Tag, Tags};
use crate::source::ImportError;
use crate::table::{TomlTable, number, string};

/// Blocks of a plane from which on a steady state can be drawn instead of simulated.
const DRAWN_BLOCKS_MIN: u64 = 64;
/// Largest `timing.read_spread`.
const SPREAD_MAX: f64 = 1.9;

/// The SSD of a configuration.
pub struct Ssd {
    pub lines: TomlTable,
    /// Channels, chips of a channel, dies of a chip, planes of a die.
    pub counts: [u64; 4],
    blocks: u64,
    pages: u64,
    /// Bytes of a page.
    pub page: u64,
    /// Exported bytes, in whole pages.
    pub exported: u64,
    pub by_priority: bool,
}

impl Ssd {
    pub fn read(tags: &mut Tags, flows: &mut [Flow]) -> Result<Self, ImportError> {
        let mut ssd = Self::of_geometry(tags)?;
        let (planes, blocks) = (ssd.counts[3], ssd.blocks);
        let lines = &mut ssd.lines;
        ssd.by_priority = times(tags, planes, lines)?;
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
            "Flash_Channel_Count",
            "Chip_No_Per_Channel",
            "Die_No_Per_Chip",
            "Plane_No_Per_Die",
            "Block_No_Per_Plane",
            "Page_No_Per_Block",
        ];
        let (mut counts, mut comments) = ([0; 6], [const { String::new() }; 6]);
        let mut pages = 1u64;
        for (at, name) in names.into_iter().enumerate() {
            let tag = tags.need(name)?;
            (counts[at], comments[at]) = (tag.count()?, tag.comment());
            let more = pages.checked_mul(counts[at]);
            pages = more.ok_or_else(|| tag.is("these are too many pages"))?;
        }
        let [channels, chips, dies, planes, blocks, pages_per_block] = counts;
        let [of_channels, of_chips, of_dies, of_planes, of_blocks, of_pages] = comments;
        for (key, count, comment) in [
            ("channels", channels, of_channels),
            ("dies_per_channel", chips * dies, format!("{of_chips}; {of_dies}")),
            ("planes_per_die", planes, of_planes),
            ("blocks_per_plane", blocks, of_blocks),
            ("pages_per_block", pages_per_block, of_pages),
        ] {
            lines.set(key, count.to_string(), comment);
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
        let counts = [channels, chips, dies, planes];
        Ok(Self { lines, counts, blocks, pages, page, exported, by_priority: false })
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

/// The preconditioning.
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
