//! Controllers with a queue and a cache.

use crate::queue;
use crate::source::{Place, Trouble};
use crate::syntax::{Block, Item};
use crate::system::{Part, Target, free_name};
use crate::table::{Carry, Lines, Notes, Table, carry, ms, number, row, string, strings};
use crate::walk::Walk;

/// A memory cache keeps what it writes synchronously, and tells early what it writes at once.
const MEMORY_SCHEMES: &[(i64, &str)] = &[(1, "through"), (2, "early"), (3, "back")];
const ALLOCATIONS: &[(i64, &str)] = &[(0, "strict"), (1, "clean")];
const SCHEMES: &[(i64, &str)] = &[(1, "sync"), (2, "through"), (3, "back")];
const FLUSHES: &[(i64, &str)] = &[(0, "demand"), (1, "periodic")];

/// The parameters of a memory cache.
pub const CACHE_MEMORY: Table = Table {
    kind: "disksim_cachemem",
    becomes: "a `memory-cache`",
    rows: &[
        row("Cache size", Carry::Sectors("size")),
        row("SLRU segments", Carry::Part("`protected_share`, the share of the last one")),
        row("Line size", Carry::Sectors("page_size")),
        row("Bit granularity", Carry::Lost(1.0, "every sector of a line is held or not")),
        row("Lock granularity", Carry::Part("nothing: requests lock their lines")),
        row("Shared read locks", Carry::Flag("shared_read_locks")),
        row("Max request size", Carry::Part("nothing: requests are not split")),
        row("Replacement policy", Carry::Part("`replacement`")),
        row("Allocation policy", Carry::Choice("allocation", ALLOCATIONS)),
        row("Write scheme", Carry::Choice("write_scheme", MEMORY_SCHEMES)),
        row("Flush policy", Carry::Choice("flush", FLUSHES)),
        row("Flush period", Carry::Part("`flush_period`")),
        row("Flush idle delay", Carry::Part("`flush_idle`")),
        row("Flush max line cluster", Carry::Count("flush_cluster")),
        row("Read prefetch type", Carry::Part("`read_prefetch`")),
        row(
            "Write prefetch type",
            Carry::Beyond(0.0, "writes fetch nothing", ("Bit granularity", 1.0)),
        ),
        row("Line-by-line fetches", Carry::Lost(0.0, "what is missing is fetched as one")),
        row("Max gather", Carry::Part("nothing: what is missing is fetched as one")),
    ],
};

/// The parameters of a device that caches another.
pub const CACHE_DEVICE: Table = Table {
    kind: "disksim_cachedev",
    becomes: "a `cache-device`",
    rows: &[
        row("Cache size", Carry::Sectors("size")),
        row("Cache device", Carry::Part("one of `devices`")),
        row("Cached device", Carry::Part("the other")),
        row("Max request size", Carry::Count("flush_sectors_max")),
        row("Write scheme", Carry::Choice("write_scheme", SCHEMES)),
        row("Flush policy", Carry::Choice("flush", FLUSHES)),
        row("Flush period", Carry::Part("`flush_period`")),
        row("Flush idle delay", Carry::Part("`flush_idle`")),
    ],
};

/// A controller and the devices below it, which are parts already.
pub(crate) struct Smart<'a, 'b> {
    pub walk: &'a mut Walk<'b>,
    pub block: &'a Block,
    pub devices: Vec<String>,
}

impl Smart<'_, '_> {
    pub(crate) fn carry(&mut self, place: Place, notes: &mut Notes) -> Result<(), Trouble> {
        let limit = match self.block.get("Maximum queue length") {
            Some(item) => item.whole_in(0, 65_535)?,
            None => 0,
        };
        // DiskSim lets one more be outstanding than the number says.
        let limit = limit + 1;
        let cache = self.block.get("Cache").map(Item::block).transpose()?;
        let shared: Vec<_> = self.walk.system.shared.clone();
        let shared = shared.iter().find(|it| it.devices == self.devices).cloned();
        match (cache, shared) {
            (Some(cache), Some(shared)) if cache.kind == CACHE_DEVICE.kind => {
                let queues = self.queues(&shared.name, &self.devices[0].clone(), true, notes)?;
                self.cache_device(cache, &queues, limit, notes)
            }
            (cache, None) => {
                for device in self.devices.clone() {
                    self.one(&device, cache, limit, notes)?;
                }
                Ok(())
            }
            _ => {
                let message = "the queue and cache of a controller over a shared bus are not \
                               carried over";
                notes.warn(place, message);
                Ok(())
            }
        }
    }

    /// The controller's queues in front of `below`, as a part.
    fn queues(
        &mut self,
        below: &str,
        name: &str,
        several: bool,
        notes: &mut Notes,
    ) -> Result<String, Trouble> {
        let Some(item) = self.block.get("Scheduler") else { return Ok(below.to_owned()) };
        let pending = match self.block.get("Max per-disk pending count") {
            Some(item) => item.whole_in(0, 65_536)?.max(1),
            None => 1,
        };
        let mut lines = Lines::default();
        let comment = format!("Scheduler of the controller, {}", notes.line(item.place));
        if several {
            lines.set("kind", "\"queueing-controller\"", comment);
            lines.set("buses", strings(&[below]), "");
        } else {
            lines.set("kind", "\"io-queue\"", comment);
            lines.set("device", string(below), "");
        }
        lines.set("device_queue_depth", pending.to_string(), "Max per-disk pending count");
        queue::whole(item, &mut lines, notes)?;
        let name =
            free_name(&format!("{}-controller", crate::system::bare(name)), self.walk.system);
        self.walk.system.parts.push(Part { name: name.clone(), lines });
        Ok(name)
    }

    /// Queue and cache in front of one device.
    fn one(
        &mut self,
        device: &str,
        cache: Option<&Block>,
        limit: i64,
        notes: &mut Notes,
    ) -> Result<(), Trouble> {
        let Some(target) = self.walk.system.devices.get(device).cloned() else { return Ok(()) };
        let mut name = self.queues(&target.name, device, false, notes)?;
        if let Some(cache) = cache {
            if cache.kind != CACHE_MEMORY.kind {
                let message = format!("`Cache = {}` is not carried over", cache.kind);
                notes.warn(cache.place, message);
            } else {
                if self.devices.len() > 1 {
                    notes.warn(cache.place, "every device gets a cache of its own");
                }
                let mut lines = Lines::default();
                lines.set("kind", "\"memory-cache\"", notes.line(cache.place));
                lines.set("device", string(&name), "");
                memory(cache, &mut lines, notes)?;
                name = free_name(&format!("{}-cache", target.name), self.walk.system);
                self.walk.system.parts.push(Part { name: name.clone(), lines });
            }
        }
        self.walk.system.depths.insert(device.to_owned(), limit);
        self.walk.system.devices.insert(device.to_owned(), Target { name, ..target });
        Ok(())
    }

    fn cache_device(
        &mut self,
        cache: &Block,
        queues: &str,
        limit: i64,
        notes: &mut Notes,
    ) -> Result<(), Trouble> {
        let cached = cache.need("Cached device")?.text()?.to_owned();
        let by = cache.need("Cache device")?.text()?.to_owned();
        let mut lines = Lines::default();
        lines.set("kind", "\"cache-device\"", notes.line(cache.place));
        lines.set(
            "devices",
            strings(&[queues]),
            format!("{} and {}", self.devices[0], self.devices[1]),
        );
        lines.set("cache_first", (self.devices[0] == by).to_string(), "");
        flushes(cache, &mut lines, notes)?;
        carry(&CACHE_DEVICE, cache, &mut lines, notes)?;
        let system = &mut *self.walk.system;
        let name = free_name(&format!("{}-cached", crate::system::bare(&cached)), system);
        system.parts.push(Part { name: name.clone(), lines });
        system.shared.retain(|shared| shared.devices != self.devices);
        system.order.retain(|device| *device != by);
        system.devices.remove(&by);
        system.depths.insert(cached.clone(), limit);
        if let Some(target) = system.devices.get_mut(&cached) {
            target.name = name;
        }
        Ok(())
    }
}

/// When what is dirty is written back.
fn flushes(cache: &Block, lines: &mut Lines, notes: &Notes) -> Result<(), Trouble> {
    if let Some(item) =
        cache.get("Flush period").filter(|item| item.number().is_ok_and(|x| x > 0.0))
    {
        let value = ms(item.number_in(0.0, 1e12)?);
        lines.from("flush_period", value, ("Flush period", item), notes);
    }
    let delay = cache.get("Flush idle delay");
    if let Some(item) = delay.filter(|item| item.number().is_ok_and(|x| x > 0.0)) {
        let value = ms(item.number_in(0.0, 1e12)?);
        lines.from("flush_idle", value, ("Flush idle delay", item), notes);
    }
    Ok(())
}

fn memory(cache: &Block, lines: &mut Lines, notes: &mut Notes) -> Result<(), Trouble> {
    let policy = cache.need("Replacement policy")?;
    let shares = match cache.get("SLRU segments") {
        Some(item) => item.list()?.to_vec(),
        None => Vec::new(),
    };
    let word = match policy.whole_in(1, 4)? {
        1 => "fifo",
        // With one segment nothing is protected.
        2 if shares.len() < 2 => "lru",
        2 => "slru",
        3 => "random",
        _ => "lifo",
    };
    lines.from("replacement", string(word), ("Replacement policy", policy), notes);
    if let Some(share) = shares.last().filter(|_| word == "slru") {
        let share = number(share.number_in(0.0, 1.0)?);
        lines.set("protected_share", share, "the share of the last of the SLRU segments");
    }
    if let Some(item) = cache.get("Read prefetch type") {
        let word = ["none", "front-of-line", "rest-of-line", "whole-line"];
        let word = word[item.whole_in(0, 3)? as usize];
        lines.from("read_prefetch", string(word), ("Read prefetch type", item), notes);
    }
    lines.set("reads_wait", "true", "DiskSim finds lines for a read before it fetches them");
    flushes(cache, lines, notes)?;
    carry(&CACHE_MEMORY, cache, lines, notes)
}
