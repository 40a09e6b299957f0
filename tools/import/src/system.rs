//! The system: driver, simple devices and logical organisations.

use crate::components::{RequestTarget, System, bare};
use crate::disk::Link;
use crate::model::Model;
use crate::queue;
use crate::source::{FileSource, LocatedError, Result, SourceLocation, quote};
use crate::syntax::{Block, Item, TopologyNode};
use crate::table::Conversion::{Described, OutputOnly};
use crate::table::{ImportLog, ParameterTable, TomlTable, convert, number, row, string, strings};
use crate::topology::TopologyBuilder;
use std::collections::BTreeMap;

/// The parameters of the device driver.
pub const DRIVER: ParameterTable = ParameterTable {
    kind: "disksim_iodriver",
    becomes: "`[host]`",
    rows: &[
        row("type", Described("nothing: requests are always simulated")),
        row("Constant access time", Described("nothing: see `type`")),
        row("Scheduler", Described("an `io-queue` in front of every device")),
        row("Use queueing in subsystem", Described("`device_queue_depth` of the queues")),
    ],
};

/// The parameters of a logical organisation.
pub const LOGORG: ParameterTable = ParameterTable {
    kind: "disksim_logorg",
    becomes: "a volume over its devices",
    rows: &[
        row("Addressing mode", Described("Array: one volume; Parts: separate devices")),
        row("Distribution scheme", Described("`stripe` or `concat`")),
        row("Redundancy scheme", Described("`raid1`, `raid10`, `raid4`, `raid5`")),
        row("Components", Described("nothing: devices are whole")),
        row("devices", Described("`members`")),
        row("Stripe unit", Described("`chunk`")),
        row("Synch writes for safety", Described("`write_order`: 0 `early`, 1 `together`")),
        row("Number of copies", Described("`copies` of `raid10`")),
        row("Copy choice on read", Described("`read_choice` of `raid1` and `raid10`")),
        row("RMW vs. reconstruct", Described("`break_point`")),
        row("Parity stripe unit", Described("`parity_rows`, in stripe units")),
        row("Parity rotation type", Described("`rotation`")),
        row("Time stamp interval", OutputOnly),
        row("Time stamp start time", OutputOnly),
        row("Time stamp stop time", OutputOnly),
        row("Time stamp file name", OutputOnly),
    ],
};

/// The parameters of a set of drives with synchronised spindles.
pub const SYNCSET: ParameterTable = ParameterTable {
    kind: "disksim_syncset",
    becomes: "the `synchronised` of its drives",
    rows: &[
        row("type", Described("nothing: only drives have spindles")),
        row("devices", Described("`synchronised`; drives of different sets are synchronised, too")),
    ],
};

const ROTATIONS: &[&str] =
    &["left-symmetric", "left-asymmetric", "right-asymmetric", "right-symmetric"];

pub(crate) fn build(
    model: &Model,
    top: &TopologyNode,
    files: &mut dyn FileSource,
    log: &mut ImportLog,
) -> Result<System> {
    let mut system = System::default();
    let mut walk = TopologyBuilder { model, files, system: &mut system };
    walk.visit(top, Link::default(), log)?;
    if system.order.is_empty() {
        return Err(LocatedError::new(top.location, "the topology has no device"));
    }
    synchronise(model, &mut system, log)?;
    queues(model, top, &mut system, log)?;
    organise(model, &mut system, log)?;
    system.top = match system.targets.as_slice() {
        [only] => only.name.clone(),
        several => {
            let mut names: Vec<&str> = several.iter().map(|target| target.name.as_str()).collect();
            names.dedup();
            let mut lines = TomlTable::default();
            lines.comment("Separately addressed devices, concatenated.");
            lines.set("kind", "\"concat\"", "");
            lines.set("members", strings(&names), "");
            system.add("system", lines)
        }
    };
    host(model, top, &mut system, log)?;
    Ok(system)
}

/// All drives are synchronised, in a set or not: DiskSim 4 starts with every platter at angle zero,
/// contrary to its manual.
fn synchronise(model: &Model, system: &mut System, log: &mut ImportLog) -> Result<()> {
    let mut together = BTreeMap::new();
    for block in model.of_kind("disksim_syncset") {
        convert(&SYNCSET, block, &mut TomlTable::default(), log)?;
        let devices = block.need("devices")?;
        for (name, location) in devices.words()? {
            let wanted = bare(&name);
            let Some(part) = system.parts.iter().find(|part| part.name == wanted) else {
                return Err(LocatedError::new(
                    location,
                    format!("{} is not in the topology", quote(&name)),
                ));
            };
            together.insert(part.name.clone(), log.line(location));
        }
    }
    for part in system.parts.iter_mut().filter(|part| part.lines.is_of("hard-disk")) {
        let why = "DiskSim 4 starts with every platter at angle zero".to_owned();
        let why = together.get(&part.name).cloned().unwrap_or(why);
        part.lines.set("synchronised", "true", why);
    }
    Ok(())
}

/// Creates the volumes over the devices, and the targets of requests.
fn organise(model: &Model, system: &mut System, log: &mut ImportLog) -> Result<()> {
    for block in model.of_kind("disksim_logorg") {
        convert(&LOGORG, block, &mut TomlTable::default(), log)?;
        let members = block.need("devices")?.words()?;
        let location = block.location;
        let mut devices = Vec::new();
        for (name, at) in &members {
            let Some(device) = system.devices.get(name).cloned() else {
                return Err(LocatedError::new(
                    *at,
                    format!("{} is not in the topology", quote(name)),
                ));
            };
            if system.used.insert(name.clone(), system.targets.len()).is_some() {
                let message = format!("{} belongs to two organisations", quote(name));
                return Err(LocatedError::new(*at, message));
            }
            devices.push(device);
        }
        if devices.is_empty() {
            return Err(LocatedError::new(location, "the organisation has no devices"));
        }
        match block.need("Addressing mode")?.text()? {
            "Parts" => separate_devices(block, &members, devices, system, log)?,
            "Array" => {
                let target = volume(block, &members, &devices, system, log)?;
                system.numbers.insert(block.name.clone(), system.targets.len());
                system.targets.push(target);
            }
            other => {
                let message = format!("expected Array or Parts, found {}", quote(other));
                return Err(LocatedError::new(block.need("Addressing mode")?.location, message));
            }
        }
    }
    unorganised_devices(model, system, log);
    Ok(())
}

/// Devices in no organisation: targets if there are no organisations, else left out.
fn unorganised_devices(model: &Model, system: &mut System, log: &mut ImportLog) {
    let any = !system.targets.is_empty();
    for name in system.order.clone() {
        if system.used.contains_key(&name) {
            continue;
        }
        let device = system.devices[&name].clone();
        if any {
            let own = bare(&name);
            system.parts.retain(|part| part.name != device.name && part.name != own);
            let location = model.topology.as_ref().map(|node| node.location);
            let message = format!("{} is in no organisation; it is left out", quote(&name));
            log.warn(location.unwrap_or(SourceLocation { file: 0, line: 1, column: 1 }), message);
        } else {
            system.numbers.insert(name, system.targets.len());
            system.targets.push(device);
        }
    }
}

/// An organisation of separately addressed devices.
fn separate_devices(
    block: &Block,
    members: &[(String, SourceLocation)],
    devices: Vec<RequestTarget>,
    system: &mut System,
    log: &mut ImportLog,
) -> Result<()> {
    for key in ["Distribution scheme", "Redundancy scheme"] {
        let item = block.need(key)?;
        if !["Asis", "Noredun"].contains(&item.text()?) {
            let message = format!(
                "`{key} = {}` needs `Addressing mode = Array`; \
                the devices are addressed separately",
                item.noun()
            );
            log.warn(item.location, message);
        }
    }
    system.numbers.insert(block.name.clone(), system.targets.len());
    for ((name, _), device) in members.iter().zip(devices) {
        system.numbers.insert(name.clone(), system.targets.len());
        system.targets.push(device);
    }
    Ok(())
}

fn volume(
    block: &Block,
    members: &[(String, SourceLocation)],
    devices: &[RequestTarget],
    system: &mut System,
    log: &mut ImportLog,
) -> Result<RequestTarget> {
    let distribution = block.need("Distribution scheme")?;
    let redundancy = block.need("Redundancy scheme")?;
    let smallest = devices.iter().map(|device| device.sectors).min().unwrap_or(0);
    let count = devices.len() as u64;
    let chunk_item = block.need("Stripe unit")?;
    let mut chunk = chunk_item.whole_in(0, 1 << 50)? as u64;
    if chunk == 0 {
        log.warn(chunk_item.location, "striping by bit or byte becomes chunks of one sector");
        chunk = 1;
    }
    let chunk = chunk.min(smallest);
    let striped = match distribution.text()? {
        "Striped" => true,
        "Asis" => false,
        "Random" | "Ideal" => {
            let message = format!(
                "`Distribution scheme = {}` is not supported: blocks are not moved",
                distribution.noun()
            );
            log.warn(distribution.location, message);
            false
        }
        other => {
            let message =
                format!("expected Asis, Striped, Random or Ideal, found {}", quote(other));
            return Err(LocatedError::new(distribution.location, message));
        }
    };
    let mut lines = TomlTable::default();
    // Devices on one bus are addressed through one component.
    let mut names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    names.dedup();
    let comment = format!("{}, {}", redundancy.noun(), log.line(redundancy.location));
    let (kind, sectors) = match redundancy.text()? {
        "Noredun" if count == 1 => {
            return Ok(devices[0].clone());
        }
        "Noredun" if striped => ("stripe", smallest / chunk * chunk * count),
        "Noredun" => ("concat", devices.iter().map(|device| device.sectors).sum()),
        "Shadowed" => shadowed(block, count, smallest, chunk, redundancy.location)?,
        "Parity_disk" => ("raid4", smallest / chunk * chunk * count.saturating_sub(1)),
        "Parity_rotated" => ("raid5", smallest / chunk * chunk * count.saturating_sub(1)),
        other => {
            let message = format!(
                "expected Noredun, Shadowed, Parity_disk or Parity_rotated, found {}",
                quote(other)
            );
            return Err(LocatedError::new(redundancy.location, message));
        }
    };
    lines.set("kind", string(kind), comment);
    lines.set("members", strings(&names), "");
    if !["concat", "raid1"].contains(&kind) {
        let bytes = format!("\"{}B\"", chunk * 512);
        lines.from("chunk", bytes, ("Stripe unit", chunk_item), log);
    }
    if let Some(item) = block.get("Copy choice on read").filter(|_| kind.starts_with("raid1")) {
        let word = READ_CHOICES[item.whole_in(1, 6)? as usize - 1];
        lines.from("read_choice", string(word), ("Copy choice on read", item), log);
    }
    if kind.starts_with("raid4") || kind.starts_with("raid5") {
        parity(block, kind, devices.len(), &mut lines, log)?;
    }
    let wish = if block.name.is_empty() { "org" } else { &block.name };
    debug_assert_eq!(members.len(), devices.len());
    let name = system.add(&bare(wish), lines);
    Ok(RequestTarget { name, sectors })
}

/// Copy choice on read, by DiskSim's number.
const READ_CHOICES: [&str; 6] = [
    "primary",
    "random",
    "round-robin",
    "shortest-seek",
    "shortest-queue",
    "shortest-queue-then-seek",
];

fn shadowed(
    block: &Block,
    count: u64,
    smallest: u64,
    chunk: u64,
    location: SourceLocation,
) -> Result<(&'static str, u64)> {
    let copies = block.get("Number of copies").map_or(Ok(2), |item| item.whole_in(2, 10))? as u64;
    if copies == count {
        return Ok(("raid1", smallest));
    }
    if copies == 2 && count.is_multiple_of(2) {
        return Ok(("raid10", smallest / chunk * chunk * (count / 2)));
    }
    let message = format!("{copies} copies on {count} devices are not supported");
    Err(LocatedError::new(location, message))
}

fn parity(
    block: &Block,
    kind: &str,
    disks: usize,
    lines: &mut TomlTable,
    log: &mut ImportLog,
) -> Result<()> {
    if let Some(item) = block.get("RMW vs. reconstruct") {
        // DiskSim rounds it down to whole units; half a unit less avoids ties.
        let data = disks.saturating_sub(1).max(1) as f64;
        let point = ((item.number_in(0.0, 1.0)? * data).floor() - 0.5).max(0.0) / data;
        let from = ("RMW vs. reconstruct", item);
        lines.from("small_write", "\"break-point\"", from, log);
        let point = number((point * 1e6).round() / 1e6);
        lines.set("break_point", point, "as a whole number of units");
    }
    if let Some(item) = block.get("Synch writes for safety") {
        let word = if item.flag()? { "together" } else { "early" };
        lines.from("write_order", string(word), ("Synch writes for safety", item), log);
    }
    if let Some(item) = block.get("Parity rotation type").filter(|_| kind == "raid5") {
        let word = ROTATIONS[item.whole_in(1, 4)? as usize - 1];
        lines.from("rotation", string(word), ("Parity rotation type", item), log);
    }
    if let (Some(stripe), Some(unit)) = (block.get("Stripe unit"), block.get("Parity stripe unit"))
        && kind == "raid5"
    {
        let (sectors, parity) = (stripe.whole_in(0, 1 << 50)?.max(1), unit.whole_in(0, 1 << 50)?);
        let rows = (parity / sectors).max(1);
        if rows * sectors != parity {
            log.warn(unit.location, "`Parity stripe unit` is not a multiple of the stripe unit");
        }
        lines.from("parity_rows", rows.to_string(), ("Parity stripe unit", unit), log);
    }
    Ok(())
}

fn host(model: &Model, top: &TopologyNode, system: &mut System, log: &mut ImportLog) -> Result<()> {
    let block = &model.instances[&top.name];
    if block.kind != "disksim_iodriver" {
        let message = format!("the topology starts with a {}, not the driver", quote(&block.kind));
        return Err(LocatedError::new(top.location, message));
    }
    let mut lines = TomlTable::default();
    convert(&DRIVER, block, &mut lines, log)?;
    lines.set("queue_depth", "65536", "requests queue in front of the devices");
    system.host = lines;
    Ok(())
}

/// Whether a device belongs to an organisation with parity.
fn has_parity(model: &Model, device: &str) -> Result<bool> {
    for block in model.of_kind("disksim_logorg") {
        let scheme = block.need("Redundancy scheme")?.text()?;
        if scheme.starts_with("Parity")
            && block.need("devices")?.words()?.iter().any(|(name, _)| name == device)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Creates the driver's queue for every device.
fn queues(
    model: &Model,
    top: &TopologyNode,
    system: &mut System,
    log: &mut ImportLog,
) -> Result<()> {
    let Some(block) = model.instances.get(&top.name) else { return Ok(()) };
    let Some(item) = block.get("Scheduler") else { return Ok(()) };
    let mut queue = TomlTable::default();
    queue::io_queue(item, &mut queue, log)?;
    let in_subsystem = block.get("Use queueing in subsystem").map_or(Ok(false), Item::flag)?;
    for shared in system.shared.clone() {
        let first = shared.devices[0].clone();
        let depth = depth_of(model, system, &first, in_subsystem)?;
        let mut lines = TomlTable::default();
        let comment = format!("Scheduler, {}", log.line(item.location));
        lines.set("kind", "\"queueing-controller\"", comment);
        lines.set("buses", strings(&[&shared.name]), "");
        queue_lines(model, &first, depth, &queue, &mut lines)?;
        let name = system.add(&format!("{}-queues", shared.name), lines);
        for device in &shared.devices {
            if let Some(target) = system.devices.get_mut(device) {
                target.name.clone_from(&name);
            }
        }
    }
    for device in system.order.clone() {
        if system.shared.iter().any(|shared| shared.devices.contains(&device)) {
            continue;
        }
        let depth = depth_of(model, system, &device, in_subsystem)?;
        let Some(target) = system.devices.get(&device).cloned() else { continue };
        let mut lines = TomlTable::default();
        lines.set("kind", "\"io-queue\"", format!("Scheduler, {}", log.line(item.location)));
        lines.set("device", string(&target.name), "");
        queue_lines(model, &device, depth, &queue, &mut lines)?;
        let name = system.add(&format!("{}-queue", target.name), lines);
        system.devices.insert(device, RequestTarget { name, ..target });
    }
    Ok(())
}

/// Maximum requests outstanding at a device from the driver's queue.
fn depth_of(model: &Model, system: &System, device: &str, all: bool) -> Result<i64> {
    if let Some(depth) = system.depths.get(device).filter(|_| all) {
        return Ok(*depth);
    }
    match model.instances[device].get("Max queue length") {
        Some(item) if all => Ok(item.whole_in(0, 65_536)?.max(1)),
        _ => Ok(1),
    }
}

fn queue_lines(
    model: &Model,
    device: &str,
    depth: i64,
    queue: &TomlTable,
    lines: &mut TomlTable,
) -> Result<()> {
    lines.set("device_queue_depth", depth.to_string(), "");
    if has_parity(model, device)? {
        let why = "DiskSim's driver processes its array's writes before the next request";
        lines.set("next", "\"after-completion\"", why);
    }
    lines.append(queue.clone());
    Ok(())
}
