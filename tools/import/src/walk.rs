//! Down the topology: buses, controllers and what is below them.

use crate::disk::{self, Link};
use crate::model::Model;
use crate::smart::Smart;
use crate::source::{Files, Trouble, quote};
use crate::syntax::{Block, Node};
use crate::system::{Part, Shared, System, Target, bare, free_name, simple};
use crate::table::{Carry, Lines, Notes, Table, carry, ms, row, string, strings};

/// The parameters of a bus.
pub const BUS: Table = Table {
    kind: "disksim_bus",
    becomes: "a `bus` that several drives share, or the `host_rate` of the drive below it",
    rows: &[
        row("type", Carry::Part("`type`")),
        row("Arbitration type", Carry::Part("`arbitration`")),
        row("Arbitration time", Carry::Part("`arbitration_time` of a shared bus")),
        row("Read block transfer time", Carry::Part("`read_block_time`, or `host_rate`")),
        row("Write block transfer time", Carry::Part("`write_block_time`, or `host_write_rate`")),
        row("Print stats", Carry::Report),
    ],
};

/// The parameters of a controller.
pub const CONTROLLER: Table = Table {
    kind: "disksim_ctlr",
    becomes: "nothing if it passes requests on; a `queueing-controller` and its cache if not",
    rows: &[
        row("type", Carry::Part("1 passes on, 2 and 3 have a queue for every device")),
        row("Scale for delays", Carry::Lost(0.0, "a controller takes no time of its own")),
        row("Bulk sector transfer time", Carry::Part("`host_rate` of the drives")),
        row("Maximum queue length", Carry::Part("`device_queue_depth` in front of it; 0: any")),
        row("Print stats", Carry::Report),
        row("Scheduler", Carry::Part("an `io-queue` in front of a device, behind the cache")),
        row("Cache", Carry::Part("`memory-cache` or `cache-device`")),
        row("Max per-disk pending count", Carry::Part("`device_queue_depth` of these")),
    ],
};

/// Goes down the topology and makes the parts.
pub(crate) struct Walk<'a> {
    pub model: &'a Model,
    pub files: &'a mut dyn Files,
    pub system: &'a mut System,
}

impl Walk<'_> {
    /// `above` is the slowest link so far.
    pub fn visit(&mut self, node: &Node, above: Link, notes: &mut Notes) -> Result<(), Trouble> {
        let Some(block) = self.model.instances.get(&node.name) else {
            let message = format!("{} is not instantiated", quote(&node.name));
            return Err(Trouble::new(node.place, message));
        };
        if block.kind != node.kind {
            let message =
                format!("{} is a {}, not a {}", quote(&node.name), block.kind, quote(&node.kind));
            return Err(Trouble::new(node.place, message));
        }
        match block.kind.as_str() {
            "disksim_iodriver" => self.below(node, above, notes),
            "disksim_bus" => self.bus(node, block, above, notes),
            "disksim_ctlr" => self.controller(node, block, above, notes),
            "disksim_disk" => {
                let lines = disk::lines(block, above, self.files, notes)?;
                let sectors = block.need("Model")?.block()?.need("Block count")?;
                let sectors = sectors.whole_in(1, 1 << 50)? as u64;
                self.device(node, lines, sectors)
            }
            "disksim_simpledisk" => {
                let sectors = block.need("Block count")?.whole_in(1, 1 << 50)? as u64;
                let lines = simple(block, above.slowest_ms(), notes)?;
                self.device(node, lines, sectors)
            }
            other => {
                let message = format!(
                    "expected disksim_bus, disksim_ctlr, disksim_disk or disksim_simpledisk, \
                     found {}; other devices cannot be imported",
                    quote(other)
                );
                Err(Trouble::new(node.place, message))
            }
        }
    }

    fn below(&mut self, node: &Node, above: Link, notes: &mut Notes) -> Result<(), Trouble> {
        node.children.iter().try_for_each(|child| self.visit(child, above, notes))
    }

    fn bus(
        &mut self,
        node: &Node,
        block: &Block,
        above: Link,
        notes: &mut Notes,
    ) -> Result<(), Trouble> {
        carry(&BUS, block, &mut Lines::default(), notes)?;
        let time = |key: &str| block.get(key).map_or(Ok(0.0), |item| item.number_in(0.0, 1e6));
        let own = Link {
            read_ms: time("Read block transfer time")?,
            write_ms: time("Write block transfer time")?,
        };
        let both = above.and(own);
        let arbitration = time("Arbitration time")?;
        let waits = own.slowest_ms() > 0.0 || arbitration > 0.0;
        if node.children.len() < 2 || !waits || !self.can_share(node) {
            if waits && node.children.len() > 1 {
                notes.warn(block.place, "devices on one bus do not wait for each other");
            }
            return self.below(node, both, notes);
        }
        // The bus takes the time of the link, so that the drives have none.
        self.below(node, Link::default(), notes)?;
        let names: Vec<String> = node.children.iter().map(|child| child.name.clone()).collect();
        let parts: Vec<String> =
            names.iter().map(|name| self.system.devices[name].name.clone()).collect();
        let mut lines = Lines::default();
        lines.set("kind", "\"bus\"", notes.line(block.place));
        lines.set("devices", strings(&parts.iter().map(String::as_str).collect::<Vec<_>>()), "");
        for (key, words, ours) in [
            ("type", ["tenured", "interleaved"], "type"),
            ("Arbitration type", ["slot-priority", "fcfs"], "arbitration"),
        ] {
            let item = block.need(key)?;
            let word = words[item.whole_in(1, 2)? as usize - 1];
            lines.from(ours, string(word), (key, item), notes);
        }
        for (key, ours, value) in [
            ("Arbitration time", "arbitration_time", arbitration),
            ("Read block transfer time", "read_block_time", both.read_ms),
            ("Write block transfer time", "write_block_time", both.write_ms),
        ] {
            let Some(item) = block.get(key) else { continue };
            lines.from(ours, ms(value), (key, item), notes);
        }
        let name = free_name(&bare(&node.name), self.system);
        self.system.parts.push(Part { name: name.clone(), lines });
        self.system.shared.push(Shared { name, devices: names });
        Ok(())
    }

    /// Whether the devices below a bus can be reached through it: nothing but drives, all of
    /// them in this order in one organisation, in none, or one of two of them the other's cache.
    fn can_share(&self, node: &Node) -> bool {
        let drives = |child: &Node| child.kind == "disksim_disk";
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

    /// Which controller caches one of two devices on the other: its cache.
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
        node: &Node,
        block: &Block,
        above: Link,
        notes: &mut Notes,
    ) -> Result<(), Trouble> {
        carry(&CONTROLLER, block, &mut Lines::default(), notes)?;
        let own = block.get("Bulk sector transfer time");
        let own = own.map_or(Ok(0.0), |item| item.number_in(0.0, 1e6))?;
        let before = self.system.order.len();
        self.below(node, above.and(Link::both(own)), notes)?;
        let kind = block.need("type")?;
        if kind.whole_in(1, 3)? == 1 {
            return Ok(());
        }
        let devices = self.system.order[before..].to_vec();
        Smart { walk: self, block, devices }.carry(kind.place, notes)
    }

    fn device(&mut self, node: &Node, lines: Lines, sectors: u64) -> Result<(), Trouble> {
        if !node.children.is_empty() {
            return Err(Trouble::new(node.place, "a device has nothing below it"));
        }
        if self.system.devices.contains_key(&node.name) {
            let message = format!("{} is in the topology twice", quote(&node.name));
            return Err(Trouble::new(node.place, message));
        }
        let name = bare(&node.name);
        self.system.parts.push(Part { name: name.clone(), lines });
        self.system.devices.insert(node.name.clone(), Target { name, sectors });
        self.system.order.push(node.name.clone());
        Ok(())
    }
}
