//! Buses, controllers, simple devices and logical organisations: what hangs where.

use crate::disk::Link;
use crate::model::Model;
use crate::queue;
use crate::queue::DRIVE_QUEUE;
use crate::source::{Files, Place, Trouble, quote};
use crate::syntax::{Block, Item, Node};
use crate::table::{Carry, Lines, Notes, Table, carry, ms, odd_names, row, string, strings};
use crate::walk::Walk;
use std::collections::BTreeMap;

/// The parameters of the device driver.
pub const DRIVER: Table = Table {
    kind: "disksim_iodriver",
    becomes: "`[host]`",
    rows: &[
        row("type", Carry::Part("nothing: requests are always simulated")),
        row("Constant access time", Carry::Part("nothing: see `type`")),
        row("Scheduler", Carry::Part("an `io-queue` in front of every device")),
        row("Use queueing in subsystem", Carry::Part("`device_queue_depth` of the queues")),
    ],
};

/// The parameters of a simple disk.
pub const SIMPLE: Table = Table {
    kind: "disksim_simpledisk",
    becomes: "a part of kind `constant-device`",
    rows: &[
        row("Block count", Carry::Sectors("capacity")),
        row("Access time", Carry::Part("`latency`")),
        row("Constant access time", Carry::Part("`latency`")),
        row("Command overhead", Carry::Part("added to `latency`")),
        row("Bus transaction latency", Carry::Part("added to `latency`")),
        row("Bulk sector transfer time", Carry::Part("`rate`, unless the bus is slower")),
        row("Never disconnect", Carry::Part("nothing: a device has the bus to itself")),
        row("Print stats", Carry::Report),
        row("Max queue length", Carry::Part("`queue_depth`: one request at a time")),
        row("Scheduler", Carry::Part("nothing: the host schedules")),
    ],
};

/// The parameters of a logical organisation.
pub const LOGORG: Table = Table {
    kind: "disksim_logorg",
    becomes: "a volume over its devices",
    rows: &[
        row("Addressing mode", Carry::Part("Array: one volume; Parts: the devices one by one")),
        row("Distribution scheme", Carry::Part("`stripe` or `concat`")),
        row("Redundancy scheme", Carry::Part("`raid1`, `raid10`, `raid4`, `raid5`")),
        row("Components", Carry::Part("nothing: devices are whole")),
        row("devices", Carry::Part("`members`")),
        row("Stripe unit", Carry::Part("`chunk`")),
        row("Synch writes for safety", Carry::Part("`write_order`: 0 `early`, 1 `together`")),
        row("Number of copies", Carry::Part("`copies` of `raid10`")),
        row("Copy choice on read", Carry::Part("`read_choice` of `raid1` and `raid10`")),
        row("RMW vs. reconstruct", Carry::Part("`break_point`")),
        row("Parity stripe unit", Carry::Part("`parity_rows`, in stripe units")),
        row("Parity rotation type", Carry::Part("`rotation`")),
        row("Time stamp interval", Carry::Report),
        row("Time stamp start time", Carry::Report),
        row("Time stamp stop time", Carry::Report),
        row("Time stamp file name", Carry::Report),
    ],
};

/// The parameters of a set of drives that turn together.
pub const SYNCSET: Table = Table {
    kind: "disksim_syncset",
    becomes: "the `synchronised` of its drives",
    rows: &[
        row("type", Carry::Part("nothing: only drives turn")),
        row("devices", Carry::Part("`synchronised`; drives of two sets turn together, too")),
    ],
};

const ROTATIONS: &[&str] =
    &["left-symmetric", "left-asymmetric", "right-asymmetric", "right-symmetric"];

/// A part of the scenario.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub name: String,
    pub lines: Lines,
}

/// What requests can be addressed to.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub name: String,
    pub sectors: u64,
}

/// The system as parts, and what of it the workload speaks to.
#[derive(Debug, Default)]
pub(crate) struct System {
    pub parts: Vec<Part>,
    /// In the order of their addresses.
    pub targets: Vec<Target>,
    /// Name of a device or organisation to the number of its target.
    pub numbers: BTreeMap<String, usize>,
    pub top: String,
    pub host: Lines,
    pub devices: BTreeMap<String, Target>,
    pub order: Vec<String>,
    /// Devices on a bus they share, with what gives access to all of them: their queues are one
    /// part.
    pub shared: Vec<Shared>,
    /// Devices whose requests go through a controller with a queue of its own, and how many of
    /// them it takes.
    pub depths: BTreeMap<String, i64>,
    used: BTreeMap<String, usize>,
}

/// Devices on a bus they share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// The bus, or what is in front of it.
    pub name: String,
    /// In the order it gives access to them.
    pub devices: Vec<String>,
}

pub(crate) fn build(
    model: &Model,
    top: &Node,
    files: &mut dyn Files,
    notes: &mut Notes,
) -> Result<System, Trouble> {
    let mut system = System::default();
    let mut walk = Walk { model, files, system: &mut system };
    walk.visit(top, Link::default(), notes)?;
    if system.order.is_empty() {
        return Err(Trouble::new(top.place, "the topology has no device"));
    }
    synchronise(model, &mut system, notes)?;
    queues(model, top, &mut system, notes)?;
    organise(model, &mut system, notes)?;
    system.top = match system.targets.as_slice() {
        [only] => only.name.clone(),
        several => {
            let mut names: Vec<&str> = several.iter().map(|target| target.name.as_str()).collect();
            names.dedup();
            let mut lines = Lines::default();
            lines.comment("Devices that requests name one by one, behind each other.");
            lines.set("kind", "\"concat\"", "");
            lines.set("members", strings(&names), "");
            let name = free_name("system", &system);
            system.parts.push(Part { name: name.clone(), lines });
            name
        }
    };
    host(model, top, &mut system, notes)?;
    Ok(system)
}

/// Drives of a set turn together. So do all others: DiskSim 4 begins with every platter at angle
/// zero, whatever its manual says of drives that are in no set.
fn synchronise(model: &Model, system: &mut System, notes: &mut Notes) -> Result<(), Trouble> {
    let mut together = BTreeMap::new();
    for block in model.of_kind("disksim_syncset") {
        carry(&SYNCSET, block, &mut Lines::default(), notes)?;
        let devices = block.need("devices")?;
        for (name, place) in devices.words()? {
            let wanted = bare(&name);
            let Some(part) = system.parts.iter().find(|part| part.name == wanted) else {
                return Err(Trouble::new(
                    place,
                    format!("{} is not in the topology", quote(&name)),
                ));
            };
            together.insert(part.name.clone(), notes.line(place));
        }
    }
    for part in system.parts.iter_mut().filter(|part| part.lines.is_of("hard-disk")) {
        let why = "DiskSim 4 begins with every platter at angle zero".to_owned();
        let why = together.get(&part.name).cloned().unwrap_or(why);
        part.lines.set("synchronised", "true", why);
    }
    Ok(())
}

pub(crate) fn free_name(wish: &str, system: &System) -> String {
    let taken = |name: &str| system.parts.iter().any(|part| part.name == name);
    let mut name = wish.to_owned();
    while taken(&name) {
        name.push('_');
    }
    name
}

/// A name as TOML takes it without quotes.
pub(crate) fn bare(name: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().map(fit).take(100).collect();
    if name.is_empty() { "component".to_owned() } else { name }
}

pub(crate) fn simple(block: &Block, bus_ms: f64, notes: &mut Notes) -> Result<Lines, Trouble> {
    let mut lines = Lines::default();
    lines.set("kind", "\"constant-device\"", "");
    let time = |key: &str| block.get(key).map_or(Ok(0.0), |item| item.number_in(0.0, 1e6));
    let access = match block.get("Access time") {
        Some(item) => item.number_in(0.0, 1e6)?,
        None => time("Constant access time")?,
    };
    let whole = access + time("Command overhead")? + time("Bus transaction latency")?;
    lines.set("latency", ms(whole), "access time, command overhead and bus transaction latency");
    let sector_ms = time("Bulk sector transfer time")?.max(bus_ms);
    if sector_ms > 0.0 {
        let rate = (512.0 / (sector_ms / 1e3)).round().max(1.0);
        lines.set("rate", format!("\"{rate}B/s\""), format!("a sector in {sector_ms} ms"));
    }
    lines.set("queue_depth", "1", "");
    carry(&SIMPLE, block, &mut lines, notes)?;
    if let Some(queue) = block.get("Scheduler") {
        odd_names(&DRIVE_QUEUE, queue.block()?, notes);
    }
    Ok(lines)
}

/// Volumes over the devices, and the targets requests are addressed to.
fn organise(model: &Model, system: &mut System, notes: &mut Notes) -> Result<(), Trouble> {
    for block in model.of_kind("disksim_logorg") {
        carry(&LOGORG, block, &mut Lines::default(), notes)?;
        let members = block.need("devices")?.words()?;
        let place = block.place;
        let mut devices = Vec::new();
        for (name, at) in &members {
            let Some(device) = system.devices.get(name).cloned() else {
                return Err(Trouble::new(*at, format!("{} is not in the topology", quote(name))));
            };
            if system.used.insert(name.clone(), system.targets.len()).is_some() {
                let message = format!("{} belongs to two organisations", quote(name));
                return Err(Trouble::new(*at, message));
            }
            devices.push(device);
        }
        if devices.is_empty() {
            return Err(Trouble::new(place, "the organisation has no devices"));
        }
        match block.need("Addressing mode")?.text()? {
            "Parts" => parts(block, &members, devices, system, notes)?,
            "Array" => {
                let target = volume(block, &members, &devices, system, notes)?;
                system.numbers.insert(block.name.clone(), system.targets.len());
                system.targets.push(target);
            }
            other => {
                let message = format!("expected Array or Parts, found {}", quote(other));
                return Err(Trouble::new(block.need("Addressing mode")?.place, message));
            }
        }
    }
    leftovers(model, system, notes);
    Ok(())
}

/// Devices no organisation names: those that serve as a cache stay out of reach.
fn leftovers(model: &Model, system: &mut System, notes: &mut Notes) {
    let any = !system.targets.is_empty();
    for name in system.order.clone() {
        if system.used.contains_key(&name) {
            continue;
        }
        let device = system.devices[&name].clone();
        if any {
            let own = bare(&name);
            system.parts.retain(|part| part.name != device.name && part.name != own);
            let place = model.topology.as_ref().map(|node| node.place);
            let message = format!("{} belongs to no organisation; it is left out", quote(&name));
            notes.warn(place.unwrap_or(Place { file: 0, line: 1, column: 1 }), message);
        } else {
            system.numbers.insert(name, system.targets.len());
            system.targets.push(device);
        }
    }
}

/// Devices that requests name one by one.
fn parts(
    block: &Block,
    members: &[(String, Place)],
    devices: Vec<Target>,
    system: &mut System,
    notes: &mut Notes,
) -> Result<(), Trouble> {
    for key in ["Distribution scheme", "Redundancy scheme"] {
        let item = block.need(key)?;
        if !["Asis", "Noredun"].contains(&item.text()?) {
            let message = format!(
                "`{key} = {}` needs `Addressing mode = Array`; \
                the devices stay apart",
                item.noun()
            );
            notes.warn(item.place, message);
        }
    }
    system.numbers.insert(block.name.clone(), system.targets.len());
    for ((name, _), device) in members.iter().zip(devices) {
        system.numbers.insert(name.clone(), system.targets.len());
        system.targets.push(device);
    }
    Ok(())
}

/// One volume over `devices`.
fn volume(
    block: &Block,
    members: &[(String, Place)],
    devices: &[Target],
    system: &mut System,
    notes: &mut Notes,
) -> Result<Target, Trouble> {
    let distribution = block.need("Distribution scheme")?;
    let redundancy = block.need("Redundancy scheme")?;
    let smallest = devices.iter().map(|device| device.sectors).min().unwrap_or(0);
    let count = devices.len() as u64;
    let chunk_item = block.need("Stripe unit")?;
    let mut chunk = chunk_item.whole_in(0, 1 << 50)? as u64;
    if chunk == 0 {
        notes.warn(chunk_item.place, "striping by bit or byte becomes chunks of one sector");
        chunk = 1;
    }
    let chunk = chunk.min(smallest);
    let striped = match distribution.text()? {
        "Striped" => true,
        "Asis" => false,
        "Random" | "Ideal" => {
            let message = format!(
                "`Distribution scheme = {}` is not carried over: blocks stay where they are",
                distribution.noun()
            );
            notes.warn(distribution.place, message);
            false
        }
        other => {
            let message =
                format!("expected Asis, Striped, Random or Ideal, found {}", quote(other));
            return Err(Trouble::new(distribution.place, message));
        }
    };
    let mut lines = Lines::default();
    // Devices on one bus are reached through one part, which stands for all of them.
    let mut names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    names.dedup();
    let comment = format!("{}, {}", redundancy.noun(), notes.line(redundancy.place));
    let (kind, sectors) = match redundancy.text()? {
        "Noredun" if count == 1 => {
            return Ok(devices[0].clone());
        }
        "Noredun" if striped => ("stripe", smallest / chunk * chunk * count),
        "Noredun" => ("concat", devices.iter().map(|device| device.sectors).sum()),
        "Shadowed" => shadowed(block, count, smallest, chunk, redundancy.place)?,
        "Parity_disk" => ("raid4", smallest / chunk * chunk * count.saturating_sub(1)),
        "Parity_rotated" => ("raid5", smallest / chunk * chunk * count.saturating_sub(1)),
        other => {
            let message = format!(
                "expected Noredun, Shadowed, Parity_disk or Parity_rotated, found {}",
                quote(other)
            );
            return Err(Trouble::new(redundancy.place, message));
        }
    };
    lines.set("kind", string(kind), comment);
    lines.set("members", strings(&names), "");
    if !["concat", "raid1"].contains(&kind) {
        let bytes = format!("\"{}B\"", chunk * 512);
        lines.from("chunk", bytes, ("Stripe unit", chunk_item), notes);
    }
    if let Some(item) = block.get("Copy choice on read").filter(|_| kind.starts_with("raid1")) {
        let word = READ_CHOICES[item.whole_in(1, 6)? as usize - 1];
        lines.from("read_choice", string(word), ("Copy choice on read", item), notes);
    }
    if kind.starts_with("raid4") || kind.starts_with("raid5") {
        parity(block, kind, devices.len(), &mut lines, notes)?;
    }
    let wish = if block.name.is_empty() { "org" } else { &block.name };
    let name = free_name(&bare(wish), system);
    debug_assert_eq!(members.len(), devices.len());
    system.parts.push(Part { name: name.clone(), lines });
    Ok(Target { name, sectors })
}

/// Which copy is read, by DiskSim's number.
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
    place: Place,
) -> Result<(&'static str, u64), Trouble> {
    let copies = block.get("Number of copies").map_or(Ok(2), |item| item.whole_in(2, 10))? as u64;
    if copies == count {
        return Ok(("raid1", smallest));
    }
    if copies == 2 && count.is_multiple_of(2) {
        return Ok(("raid10", smallest / chunk * chunk * (count / 2)));
    }
    let message = format!("{copies} copies on {count} devices are no volume known here");
    Err(Trouble::new(place, message))
}

fn parity(
    block: &Block,
    kind: &str,
    disks: usize,
    lines: &mut Lines,
    notes: &mut Notes,
) -> Result<(), Trouble> {
    if let Some(item) = block.get("RMW vs. reconstruct") {
        // DiskSim keeps it as a whole number of units; half a unit less divides as surely.
        let data = disks.saturating_sub(1).max(1) as f64;
        let point = ((item.number_in(0.0, 1.0)? * data).floor() - 0.5).max(0.0) / data;
        let from = ("RMW vs. reconstruct", item);
        lines.from("small_write", "\"break-point\"", from, notes);
        let point = crate::table::number((point * 1e6).round() / 1e6);
        lines.set("break_point", point, "as a whole number of units");
    }
    if let Some(item) = block.get("Synch writes for safety") {
        let word = if item.flag()? { "together" } else { "early" };
        lines.from("write_order", string(word), ("Synch writes for safety", item), notes);
    }
    if let Some(item) = block.get("Parity rotation type").filter(|_| kind == "raid5") {
        let word = ROTATIONS[item.whole_in(1, 4)? as usize - 1];
        lines.from("rotation", string(word), ("Parity rotation type", item), notes);
    }
    if let (Some(stripe), Some(unit)) = (block.get("Stripe unit"), block.get("Parity stripe unit"))
        && kind == "raid5"
    {
        let (sectors, parity) = (stripe.whole_in(0, 1 << 50)?.max(1), unit.whole_in(0, 1 << 50)?);
        let rows = (parity / sectors).max(1);
        if rows * sectors != parity {
            notes.warn(unit.place, "`Parity stripe unit` is no multiple of the stripe unit");
        }
        lines.from("parity_rows", rows.to_string(), ("Parity stripe unit", unit), notes);
    }
    Ok(())
}

/// The driver is the host.
fn host(model: &Model, top: &Node, system: &mut System, notes: &mut Notes) -> Result<(), Trouble> {
    let block = &model.instances[&top.name];
    if block.kind != "disksim_iodriver" {
        let message = format!("the topology begins with a {}, not the driver", quote(&block.kind));
        return Err(Trouble::new(top.place, message));
    }
    let mut lines = Lines::default();
    carry(&DRIVER, block, &mut lines, notes)?;
    lines.set("queue_depth", "65536", "requests wait in the queues in front of the devices");
    system.host = lines;
    Ok(())
}

/// Whether a device belongs to an organisation with parity.
fn parity_has(model: &Model, device: &str) -> Result<bool, Trouble> {
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

/// The driver keeps a queue for every device.
fn queues(
    model: &Model,
    top: &Node,
    system: &mut System,
    notes: &mut Notes,
) -> Result<(), Trouble> {
    let Some(block) = model.instances.get(&top.name) else { return Ok(()) };
    let Some(item) = block.get("Scheduler") else { return Ok(()) };
    let mut queue = Lines::default();
    queue::whole(item, &mut queue, notes)?;
    let in_subsystem = block.get("Use queueing in subsystem").map_or(Ok(false), Item::flag)?;
    for shared in system.shared.clone() {
        let first = shared.devices[0].clone();
        let depth = depth_of(model, system, &first, in_subsystem)?;
        let name = free_name(&format!("{}-queues", shared.name), system);
        let mut lines = Lines::default();
        let comment = format!("Scheduler, {}", notes.line(item.place));
        lines.set("kind", "\"queueing-controller\"", comment);
        lines.set("buses", strings(&[&shared.name]), "");
        queue_lines(model, &first, depth, &queue, &mut lines)?;
        system.parts.push(Part { name: name.clone(), lines });
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
        let name = free_name(&format!("{}-queue", target.name), system);
        let mut lines = Lines::default();
        lines.set("kind", "\"io-queue\"", format!("Scheduler, {}", notes.line(item.place)));
        lines.set("device", string(&target.name), "");
        queue_lines(model, &device, depth, &queue, &mut lines)?;
        system.parts.push(Part { name: name.clone(), lines });
        system.devices.insert(device, Target { name, ..target });
    }
    Ok(())
}

/// Requests a device takes at a time from the driver's queue.
fn depth_of(model: &Model, system: &System, device: &str, all: bool) -> Result<i64, Trouble> {
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
    queue: &Lines,
    lines: &mut Lines,
) -> Result<(), Trouble> {
    lines.set("device_queue_depth", depth.to_string(), "");
    if parity_has(model, device)? {
        let why = "DiskSim's driver looks at what its array wants to write before it goes on";
        lines.set("next", "\"after-completion\"", why);
    }
    lines.append(queue.clone());
    Ok(())
}
