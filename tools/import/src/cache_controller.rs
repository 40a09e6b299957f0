//! Controllers with a queue and a cache.

use crate::components::{RequestTarget, System, bare};
use crate::queue;
use crate::source::{Result, SourceLocation};
use crate::syntax::{Block, Item};
use crate::table::Conversion::{
    Choice, Count, Described, Flag, Sectors, Unsupported, UnsupportedIf,
};
use crate::table::{
    ImportLog, ParameterTable, TomlTable, convert, ms, number, row, string, strings,
};

/// Write schemes of a memory cache; 2 completes writes before they reach the device.
const MEMORY_SCHEMES: &[(i64, &str)] = &[(1, "through"), (2, "early"), (3, "back")];
const ALLOCATIONS: &[(i64, &str)] = &[(0, "strict"), (1, "clean")];
const SCHEMES: &[(i64, &str)] = &[(1, "sync"), (2, "through"), (3, "back")];
const FLUSHES: &[(i64, &str)] = &[(0, "demand"), (1, "periodic")];

/// The parameters of a memory cache.
pub const CACHE_MEMORY: ParameterTable = ParameterTable {
    kind: "disksim_cachemem",
    becomes: "a `memory-cache`",
    rows: &[
        row("Cache size", Sectors("size")),
        row("SLRU segments", Described("`protected_share`, the share of the last one")),
        row("Line size", Sectors("page_size")),
        row("Bit granularity", Unsupported(1.0, "lines are valid sector by sector")),
        row("Lock granularity", Described("nothing: requests lock their lines")),
        row("Shared read locks", Flag("shared_read_locks")),
        row("Max request size", Described("nothing: requests are not split")),
        row("Replacement policy", Described("`replacement`")),
        row("Allocation policy", Choice("allocation", ALLOCATIONS)),
        row("Write scheme", Choice("write_scheme", MEMORY_SCHEMES)),
        row("Flush policy", Choice("flush", FLUSHES)),
        row("Flush period", Described("`flush_period`")),
        row("Flush idle delay", Described("`flush_idle`")),
        row("Flush max line cluster", Count("flush_cluster")),
        row("Read prefetch type", Described("`read_prefetch`")),
        row(
            "Write prefetch type",
            UnsupportedIf(0.0, "writes do not prefetch", ("Bit granularity", 1.0)),
        ),
        row("Line-by-line fetches", Unsupported(0.0, "missing sectors are fetched in one request")),
        row("Max gather", Described("nothing: missing sectors are fetched in one request")),
    ],
};

/// The parameters of a device that caches another.
pub const CACHE_DEVICE: ParameterTable = ParameterTable {
    kind: "disksim_cachedev",
    becomes: "a `cache-device`",
    rows: &[
        row("Cache size", Sectors("size")),
        row("Cache device", Described("one of `devices`")),
        row("Cached device", Described("the other")),
        row("Max request size", Count("flush_sectors_max")),
        row("Write scheme", Choice("write_scheme", SCHEMES)),
        row("Flush policy", Choice("flush", FLUSHES)),
        row("Flush period", Described("`flush_period`")),
        row("Flush idle delay", Described("`flush_idle`")),
    ],
};

/// A controller, and the devices below it, which are components already.
pub(crate) struct CacheController<'a> {
    pub system: &'a mut System,
    pub block: &'a Block,
    pub devices: Vec<String>,
}

impl CacheController<'_> {
    pub(crate) fn convert(&mut self, location: SourceLocation, log: &mut ImportLog) -> Result<()> {
        let limit = match self.block.get("Maximum queue length") {
            Some(item) => item.whole_in(0, 65_535)?,
            None => 0,
        };
        // DiskSim allows one more outstanding request than this number.
        let limit = limit + 1;
        let cache = self.block.get("Cache").map(Item::block).transpose()?;
        let shared: Vec<_> = self.system.shared.clone();
        let shared = shared.iter().find(|it| it.devices == self.devices).cloned();
        match (cache, shared) {
            (Some(cache), Some(shared)) if cache.kind == CACHE_DEVICE.kind => {
                let queues = self.queues(&shared.name, &self.devices[0].clone(), true, log)?;
                self.cache_device(cache, &queues, limit, log)
            }
            (cache, None) => {
                for device in self.devices.clone() {
                    self.one(&device, cache, limit, log)?;
                }
                Ok(())
            }
            _ => {
                let message = "the queue and cache of a controller over a shared bus are not \
                               supported";
                log.warn(location, message);
                Ok(())
            }
        }
    }

    /// The controller's queues in front of `below`, as a component.
    fn queues(
        &mut self,
        below: &str,
        name: &str,
        several: bool,
        log: &mut ImportLog,
    ) -> Result<String> {
        let Some(item) = self.block.get("Scheduler") else { return Ok(below.to_owned()) };
        let pending = match self.block.get("Max per-disk pending count") {
            Some(item) => item.whole_in(0, 65_536)?.max(1),
            None => 1,
        };
        let mut lines = TomlTable::default();
        let comment = format!("Scheduler of the controller, {}", log.line(item.location));
        if several {
            lines.set("kind", "\"queueing-controller\"", comment);
            lines.set("buses", strings(&[below]), "");
        } else {
            lines.set("kind", "\"io-queue\"", comment);
            lines.set("device", string(below), "");
        }
        lines.set("device_queue_depth", pending.to_string(), "Max per-disk pending count");
        queue::io_queue(item, &mut lines, log)?;
        Ok(self.system.add(&format!("{}-controller", bare(name)), lines))
    }

    /// Queue and cache in front of one device.
    fn one(
        &mut self,
        device: &str,
        cache: Option<&Block>,
        limit: i64,
        log: &mut ImportLog,
    ) -> Result<()> {
        let Some(target) = self.system.devices.get(device).cloned() else { return Ok(()) };
        let mut name = self.queues(&target.name, device, false, log)?;
        if let Some(cache) = cache {
            if cache.kind != CACHE_MEMORY.kind {
                let message = format!("`Cache = {}` is not supported", cache.kind);
                log.warn(cache.location, message);
            } else {
                if self.devices.len() > 1 {
                    log.warn(cache.location, "every device has its own cache");
                }
                let mut lines = TomlTable::default();
                lines.set("kind", "\"memory-cache\"", log.line(cache.location));
                lines.set("device", string(&name), "");
                memory(cache, &mut lines, log)?;
                name = self.system.add(&format!("{}-cache", target.name), lines);
            }
        }
        self.system.depths.insert(device.to_owned(), limit);
        self.system.devices.insert(device.to_owned(), RequestTarget { name, ..target });
        Ok(())
    }

    fn cache_device(
        &mut self,
        cache: &Block,
        queues: &str,
        limit: i64,
        log: &mut ImportLog,
    ) -> Result<()> {
        let cached = cache.need("Cached device")?.text()?.to_owned();
        let by = cache.need("Cache device")?.text()?.to_owned();
        let mut lines = TomlTable::default();
        lines.set("kind", "\"cache-device\"", log.line(cache.location));
        lines.set(
            "devices",
            strings(&[queues]),
            format!("{} and {}", self.devices[0], self.devices[1]),
        );
        lines.set("cache_first", (self.devices[0] == by).to_string(), "");
        flushes(cache, &mut lines, log)?;
        convert(&CACHE_DEVICE, cache, &mut lines, log)?;
        let system = &mut *self.system;
        let name = system.add(&format!("{}-cached", bare(&cached)), lines);
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

/// The times of flushes of dirty data.
fn flushes(cache: &Block, lines: &mut TomlTable, log: &ImportLog) -> Result<()> {
    if let Some(item) =
        cache.get("Flush period").filter(|item| item.number().is_ok_and(|x| x > 0.0))
    {
        let value = ms(item.number_in(0.0, 1e12)?);
        lines.from("flush_period", value, ("Flush period", item), log);
    }
    let delay = cache.get("Flush idle delay");
    if let Some(item) = delay.filter(|item| item.number().is_ok_and(|x| x > 0.0)) {
        let value = ms(item.number_in(0.0, 1e12)?);
        lines.from("flush_idle", value, ("Flush idle delay", item), log);
    }
    Ok(())
}

fn memory(cache: &Block, lines: &mut TomlTable, log: &mut ImportLog) -> Result<()> {
    let policy = cache.need("Replacement policy")?;
    let shares = match cache.get("SLRU segments") {
        Some(item) => item.list()?.to_vec(),
        None => Vec::new(),
    };
    let word = match policy.whole_in(1, 4)? {
        1 => "fifo",
        // With one segment there is no protected segment.
        2 if shares.len() < 2 => "lru",
        2 => "slru",
        3 => "random",
        _ => "lifo",
    };
    lines.from("replacement", string(word), ("Replacement policy", policy), log);
    if let Some(share) = shares.last().filter(|_| word == "slru") {
        let share = number(share.number_in(0.0, 1.0)?);
        lines.set("protected_share", share, "the share of the last of the SLRU segments");
    }
    if let Some(item) = cache.get("Read prefetch type") {
        let word = ["none", "front-of-line", "rest-of-line", "whole-line"];
        let word = word[item.whole_in(0, 3)? as usize];
        lines.from("read_prefetch", string(word), ("Read prefetch type", item), log);
    }
    lines.set("reads_wait", "true", "DiskSim allocates lines for a read before it fetches them");
    flushes(cache, lines, log)?;
    convert(&CACHE_MEMORY, cache, lines, log)
}
