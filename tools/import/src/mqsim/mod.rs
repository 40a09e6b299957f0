//! MQSim's configuration of an SSD, and the scenarios of its workload file.
//!
//! A tag is converted where it is looked up; the rest are reported, unless they matter only to
//! MQSim's output. The page on the words of other tools lists all tags.

mod flow;
mod ssd;
mod tags;

use crate::source::{FileSource, ImportError};
use crate::table::{TomlTable, string};
use crate::{Imported, heading, section};
use flow::{Flow, flows_of};
use ssd::Ssd;
use std::collections::BTreeSet;
use std::path::PathBuf;
use tags::{Tag, Tags, parsed};

const SECTOR_BYTES: u64 = 512;

/// Files to import.
#[derive(Clone, Debug, Default)]
pub struct MqsimRequest {
    /// The configuration (`ssdconfig.xml`).
    pub config: String,
    /// The workload file (`workload.xml`); without one the result is a preset.
    pub workload: Option<String>,
    /// The `IO_Scenario` of the workload file, counted from 1.
    pub scenario: usize,
    /// The folder that paths of traces start from, for absolute paths in the scenario.
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
    let mut classes = BTreeSet::new();
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
        if let Some((depth, tag)) = limit.as_ref().filter(|_| at == 0 && !(alone && closed)) {
            host.set("queue_depth", depth.to_string(), tag.comment());
        }
        classes.extend(flow.priority(ssd.by_priority, &mut lines)?);
        flow.convert(ssd, if alone { ssd.exported } else { share }, closed, request, &mut lines)?;
        flow.tags.rest();
        of_config.warnings.append(&mut flow.tags.warnings);
        tables.push((name, lines));
    }
    if classes.len() > 1 && ssd.by_priority {
        let classes: Vec<&str> = classes.into_iter().collect();
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
