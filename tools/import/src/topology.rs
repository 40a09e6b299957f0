//! Converts the topology: buses, controllers and devices.

use crate::cache_controller::CacheController;
use crate::components::{RequestTarget, SharedBus, System, bare};
use crate::disk::{self, DISK, Link};
use crate::mems::{self, MEMS};
use crate::model::Model;
use crate::simple::{self, SIMPLE};
use crate::source::{FileSource, LocatedError, Result, quote};
use crate::ssd::{self, SSD};
use crate::syntax::{Block, TopologyNode};
use crate::table::Conversion::{Described, OutputOnly, Unsupported};
use crate::table::{ImportLog, ParameterTable, TomlTable, convert, ms, row, string, strings};

/// The parameters of a bus.
pub const BUS: ParameterTable = ParameterTable {
    kind: "disksim_bus",
    becomes: "a `bus` that several drives share, or the `host_rate` of the drive below it",
    rows: &[
        row("type", Described("`type`")),
        row("Arbitration type", Described("`arbitration`")),
        row("Arbitration time", Described("`arbitration_time` of a shared bus")),
        row("Read block transfer time", Described("`read_block_time`, or `host_rate`")),
        row("Write block transfer time", Described("`write_block_time`, or `host_write_rate`")),
        row("Print stats", OutputOnly),
    ],
};

/// The parameters of a controller.
pub const CONTROLLER: ParameterTable = ParameterTable {
    kind: "disksim_ctlr",
    becomes: "nothing for type 1; else a `queueing-controller` and its cache",
    rows: &[
        row("type", Described("1 forwards requests; 2 and 3 have a queue for every device")),
        row("Scale for delays", Unsupported(0.0, "a controller has no overhead")),
        row("Bulk sector transfer time", Described("`host_rate` of the drives")),
        row("Maximum queue length", Described("`device_queue_depth` in front of it; 0: any")),
        row("Print stats", OutputOnly),
        row("Scheduler", Described("an `io-queue` in front of a device, behind the cache")),
        row("Cache", Described("`memory-cache` or `cache-device`")),
        row("Max per-disk pending count", Described("`device_queue_depth` of these")),
    ],
};

pub(crate) const DEVICES: &[&str] = &[DISK.kind, SIMPLE.kind, MEMS.kind, SSD.kind];

/// The keys of the device `block` describes, and its sectors. `above` is the slowest link above
/// it.
pub(crate) fn device(
    block: &Block,
    above: Link,
    files: &mut dyn FileSource,
    log: &mut ImportLog,
) -> Result<(TomlTable, u64)> {
    let counted = |block: &Block| Ok(block.need("Block count")?.whole_in(1, 1 << 50)? as u64);
    match block.kind.as_str() {
        kind if kind == DISK.kind => {
            let lines = disk::lines(block, above, files, log)?;
            Ok((lines, counted(block.need("Model")?.block()?)?))
        }
        kind if kind == MEMS.kind => Ok((mems::lines(block, above, log)?, mems::sectors(block)?)),
        kind if kind == SSD.kind => Ok((ssd::lines(block, above, log)?, ssd::sectors(block)?)),
        _ => {
            let sectors = counted(block)?;
            Ok((simple::lines(block, above.slowest_ms(), log)?, sectors))
        }
    }
}

pub(crate) struct TopologyBuilder<'a> {
    pub model: &'a Model,
    pub files: &'a mut dyn FileSource,
    pub system: &'a mut System,
}

impl TopologyBuilder<'_> {
    /// `above` is the slowest link so far.
    pub fn visit(&mut self, node: &TopologyNode, above: Link, log: &mut ImportLog) -> Result<()> {
        let Some(block) = self.model.instances.get(&node.name) else {
            let message = format!("{} is not instantiated", quote(&node.name));
            return Err(LocatedError::new(node.location, message));
        };
        if block.kind != node.kind {
            let message =
                format!("{} is a {}, not a {}", quote(&node.name), block.kind, quote(&node.kind));
            return Err(LocatedError::new(node.location, message));
        }
        match block.kind.as_str() {
            "disksim_iodriver" => self.below(node, above, log),
            "disksim_bus" => self.bus(node, block, above, log),
            "disksim_ctlr" => self.controller(node, block, above, log),
            kind if DEVICES.contains(&kind) => {
                let (lines, sectors) = device(block, above, self.files, log)?;
                self.add(node, lines, sectors)
            }
            other => {
                let message = format!(
                    "expected disksim_bus, disksim_ctlr or one of {}, found {}",
                    DEVICES.join(", "),
                    quote(other)
                );
                Err(LocatedError::new(node.location, message))
            }
        }
    }

    fn below(&mut self, node: &TopologyNode, above: Link, log: &mut ImportLog) -> Result<()> {
        node.children.iter().try_for_each(|child| self.visit(child, above, log))
    }

    fn bus(
        &mut self,
        node: &TopologyNode,
        block: &Block,
        above: Link,
        log: &mut ImportLog,
    ) -> Result<()> {
        convert(&BUS, block, &mut TomlTable::default(), log)?;
        let time = |key: &str| block.get(key).map_or(Ok(0.0), |item| item.number_in(0.0, 1e6));
        let own = Link {
            read_ms: time("Read block transfer time")?,
            write_ms: time("Write block transfer time")?,
        };
        let both = above.and(own);
        let arbitration = time("Arbitration time")?;
        let waits = own.slowest_ms() > 0.0 || arbitration > 0.0;
        if node.children.len() < 2 || !waits || !self.can_share(node) {
            if let Some(item) = block.get("Arbitration time").filter(|_| arbitration > 0.0) {
                log.warn(item.location, "arbitration takes no time on a bus that is not shared");
            }
            if waits && node.children.len() > 1 {
                log.warn(block.location, "devices on this bus are simulated without contention");
            }
            return self.below(node, both, log);
        }
        // The bus has the transfer times, so the drives have none.
        self.below(node, Link::default(), log)?;
        let names: Vec<String> = node.children.iter().map(|child| child.name.clone()).collect();
        let parts: Vec<String> =
            names.iter().map(|name| self.system.devices[name].name.clone()).collect();
        let mut lines = TomlTable::default();
        lines.set("kind", "\"bus\"", log.line(block.location));
        lines.set("devices", strings(&parts.iter().map(String::as_str).collect::<Vec<_>>()), "");
        for (key, words, ours) in [
            ("type", ["tenured", "interleaved"], "type"),
            ("Arbitration type", ["slot-priority", "fcfs"], "arbitration"),
        ] {
            let item = block.need(key)?;
            let word = words[item.whole_in(1, 2)? as usize - 1];
            lines.from(ours, string(word), (key, item), log);
        }
        for (key, ours, value) in [
            ("Arbitration time", "arbitration_time", arbitration),
            ("Read block transfer time", "read_block_time", both.read_ms),
            ("Write block transfer time", "write_block_time", both.write_ms),
        ] {
            let Some(item) = block.get(key) else { continue };
            lines.from(ours, ms(value), (key, item), log);
        }
        let name = self.system.add(&bare(&node.name), lines);
        self.system.shared.push(SharedBus { name, devices: names });
        Ok(())
    }

    /// Whether a shared bus is supported: all children are drives, and they are in this order in
    /// one organisation, in no organisation, or one of two is the cache of the other.
    fn can_share(&self, node: &TopologyNode) -> bool {
        let drives = |child: &TopologyNode| child.kind == "disksim_disk";
        let names: Vec<&str> = node.children.iter().map(|child| child.name.as_str()).collect();
        let organised = |block: &&Block| -> Option<Vec<String>> {
            let words = block.get("devices")?.words().ok()?;
            Some(words.into_iter().map(|(name, _)| name).collect())
        };
        let organisations: Vec<Vec<String>> =
            self.model.of_kind("disksim_logorg").iter().filter_map(organised).collect();
        let mixed = organisations.iter().any(|devices| {
            let some = devices.iter().any(|device| names.contains(&device.as_str()));
            some && !devices.windows(names.len()).any(|window| window == names.as_slice())
        });
        node.children.iter().all(drives) && (!mixed || self.caches(&names).is_some())
    }

    /// The cache of a controller that caches one of the two devices on the other.
    fn caches(&self, names: &[&str]) -> Option<&Block> {
        let caches = |block: &&Block| {
            let device = |key: &str| block.get(key).and_then(|item| item.text().ok());
            let both = [device("Cached device"), device("Cache device")];
            names.len() == 2 && both.iter().all(|it| it.is_some_and(|it| names.contains(&it)))
        };
        let mut controllers = self.model.instances.values();
        controllers.find_map(|block| {
            let cache = block.get("Cache").and_then(|item| item.block().ok());
            cache.filter(|_| block.kind == CONTROLLER.kind).filter(caches)
        })
    }

    fn controller(
        &mut self,
        node: &TopologyNode,
        block: &Block,
        above: Link,
        log: &mut ImportLog,
    ) -> Result<()> {
        convert(&CONTROLLER, block, &mut TomlTable::default(), log)?;
        let own = block.get("Bulk sector transfer time");
        let own = own.map_or(Ok(0.0), |item| item.number_in(0.0, 1e6))?;
        let before = self.system.order.len();
        self.below(node, above.and(Link::both(own)), log)?;
        let kind = block.need("type")?;
        if kind.whole_in(1, 3)? == 1 {
            return Ok(());
        }
        let devices = self.system.order[before..].to_vec();
        CacheController { system: self.system, block, devices }.convert(kind.location, log)
    }

    fn add(&mut self, node: &TopologyNode, lines: TomlTable, sectors: u64) -> Result<()> {
        if !node.children.is_empty() {
            return Err(LocatedError::new(node.location, "a device cannot have children"));
        }
        if self.system.devices.contains_key(&node.name) {
            let message = format!("{} is in the topology twice", quote(&node.name));
            return Err(LocatedError::new(node.location, message));
        }
        let name = self.system.add(&bare(&node.name), lines);
        self.system.devices.insert(node.name.clone(), RequestTarget { name, sectors });
        self.system.order.push(node.name.clone());
        Ok(())
    }
}
