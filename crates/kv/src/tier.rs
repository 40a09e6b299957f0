//! The tier: GPU memory, host memory and storage, and when blocks are written to storage.
//!
//! Memory levels are exclusive: a block evicted from GPU memory moves to host memory. Storage keeps
//! copies of its own. A block is looked up from the top; the level that holds it serves it. Blocks
//! after the first one that no level holds are computed, and so is the rest of the prompt, also
//! where a level holds it.

use crate::level::{Held, Level};
use crate::policy::PolicyName;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{SimDuration, SimTime};
use hybridsim_workload::trace::serving::{ServingRequest, ServingTrace};
use serde::Serialize;
use std::collections::VecDeque;

/// The time at which a block is written to storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// At once, when it is computed.
    Put,
    /// At its eviction from the memory levels.
    Evict,
    /// This long after it was computed, if a memory level still holds it.
    Lazy(SimDuration),
    /// At the second request for it.
    SecondHit,
}

/// Capacities in blocks, and policies.
#[derive(Clone, Debug)]
pub struct TierOptions {
    pub gpu_blocks: u32,
    pub host_blocks: u32,
    pub storage_blocks: u32,
    /// Eviction policy of storage; memory levels evict the least recently used block.
    pub policy: PolicyName,
    /// Storage drops blocks that are not used for longer.
    pub ttl: Option<SimDuration>,
    pub write: WriteMode,
}

/// Levels from the top; the index into arrays of totals.
pub const LEVELS: [&str; 3] = ["gpu", "host", "storage"];
const STORAGE: usize = 2;

/// Receives what happens in storage.
pub trait Storage {
    /// A block is written.
    fn write(&mut self, at: SimTime, held: Held);
    /// A request loads a block. Blocks that it computes may take the place of the block before the
    /// load begins.
    fn load(&mut self, at: SimTime, request: usize, held: Held);
    /// The loads of a request begin: it has no more of them.
    fn begin_loads(&mut self, at: SimTime, request: usize);
    /// A block is no longer needed.
    fn discard(&mut self, at: SimTime, held: Held);
}

/// Storage that only counts.
pub struct NoStorage;

impl Storage for NoStorage {
    fn write(&mut self, _: SimTime, _: Held) {}
    fn load(&mut self, _: SimTime, _: usize, _: Held) {}
    fn begin_loads(&mut self, _: SimTime, _: usize) {}
    fn discard(&mut self, _: SimTime, _: Held) {}
}

/// Totals of a tier. Arrays are by level: GPU memory, host memory, storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    pub requests: u64,
    pub input_tokens: u64,
    pub references: u64,
    /// References to a block that a level holds, usable or not.
    pub hits: u64,
    /// Blocks used, by the level that served them.
    pub used_blocks: [u64; 3],
    pub used_tokens: [u64; 3],
    /// Blocks computed, and those of them that a level held behind a miss.
    pub computed_blocks: u64,
    pub held_but_computed: u64,
    /// Blocks that entered a level, were evicted or expired, moved to another level, and are held
    /// at the end.
    pub inserted: [u64; 3],
    pub evicted: [u64; 3],
    pub expired: [u64; 3],
    pub moved: [u64; 3],
    pub held: [u64; 3],
    /// Blocks evicted from memory that storage did not take: it holds them, or the write mode
    /// excludes them.
    pub not_written: u64,
}

impl Totals {
    /// Share of input tokens that need not be computed.
    pub fn token_hit_ratio(&self) -> f64 {
        self.used_tokens.iter().sum::<u64>() as f64 / self.input_tokens.max(1) as f64
    }

    /// Share of references to a block that a level holds.
    pub fn block_hit_ratio(&self) -> f64 {
        self.hits as f64 / self.references.max(1) as f64
    }
}

/// The tier of a trace.
pub struct Tier<'a> {
    trace: &'a ServingTrace,
    memory: [Option<Level<'a>>; 2],
    storage: Level<'a>,
    write: WriteMode,
    /// By block, whether it was requested before.
    seen: Vec<bool>,
    /// Blocks to be written later, in order of time.
    lazy: VecDeque<(SimTime, u32)>,
    totals: Totals,
    expired: Vec<Held>,
}

impl<'a> Tier<'a> {
    /// An empty tier for the blocks of `trace`.
    ///
    /// # Errors
    /// A policy that cannot be built, storage without blocks, or a lazy mode without memory that
    /// could hold the block until it is written.
    pub fn new(
        trace: &'a ServingTrace,
        options: &TierOptions,
        registry: &Registry,
    ) -> Result<Self, String> {
        let lru = PolicyName::parse("lru", registry)?;
        let memory = |blocks: u32| {
            (blocks > 0)
                .then(|| Level::new(blocks, &lru, None, &trace.parents, registry))
                .transpose()
        };
        let memory = [memory(options.gpu_blocks)?, memory(options.host_blocks)?];
        if matches!(options.write, WriteMode::Lazy(_)) && memory.iter().all(Option::is_none) {
            return Err("lazy writes need GPU or host memory that holds the blocks".to_owned());
        }
        if options.storage_blocks == 0 {
            return Err("storage holds not a single block".to_owned());
        }
        let TierOptions { storage_blocks, policy, ttl, write, .. } = options;
        Ok(Self {
            trace,
            memory,
            storage: Level::new(*storage_blocks, policy, *ttl, &trace.parents, registry)?,
            write: *write,
            seen: vec![false; trace.distinct()],
            lazy: VecDeque::new(),
            totals: Totals::default(),
            expired: Vec::new(),
        })
    }

    /// Serves all requests of the trace; the totals of blocks are complete afterwards.
    pub fn run(&mut self, storage: &mut dyn Storage) -> Totals {
        for number in 0..self.trace.requests.len() {
            self.request(number, storage);
        }
        self.totals()
    }

    /// Totals so far.
    pub fn totals(&self) -> Totals {
        let held = |level: &Option<Level<'_>>| level.as_ref().map_or(0, |it| it.held().into());
        let [gpu, host] = &self.memory;
        Totals { held: [held(gpu), held(host), self.storage.held().into()], ..self.totals }
    }

    /// Serves the request `number`; returns the tokens that it uses, by level.
    pub fn request(&mut self, number: usize, storage: &mut dyn Storage) -> [u64; 3] {
        let trace = self.trace;
        let request = &trace.requests[number];
        self.pass_time(request.at, storage);
        let before = self.totals.used_tokens;
        let mut usable = true;
        for (index, &block) in trace.blocks(request).iter().enumerate() {
            let level = self.level_of(block);
            usable &= level.is_some();
            self.count(request, index, level, usable);
            if level == Some(STORAGE) && usable {
                let slot = self.storage.slot(block).expect("storage holds it");
                storage.load(request.at, number, Held { block, slot });
            }
            self.place(block, level, request.at, storage);
        }
        self.totals.requests += 1;
        self.totals.input_tokens += request.input_tokens;
        let mut used = self.totals.used_tokens;
        used.iter_mut().zip(before).for_each(|(used, before)| *used -= before);
        if used[STORAGE] > 0 {
            storage.begin_loads(request.at, number);
        }
        used
    }

    fn count(
        &mut self,
        request: &ServingRequest,
        index: usize,
        level: Option<usize>,
        usable: bool,
    ) {
        let totals = &mut self.totals;
        totals.references += 1;
        totals.hits += u64::from(level.is_some());
        match level.filter(|_| usable) {
            Some(level) => {
                totals.used_blocks[level] += 1;
                totals.used_tokens[level] += request.tokens_of(index);
            }
            None => {
                totals.computed_blocks += 1;
                totals.held_but_computed += u64::from(level.is_some());
            }
        }
    }

    fn level_of(&self, block: u32) -> Option<usize> {
        let holds =
            |level: &Option<Level<'_>>| level.as_ref().is_some_and(|it| it.slot(block).is_some());
        let memory = self.memory.iter().position(holds);
        memory.or_else(|| self.storage.slot(block).map(|_| STORAGE))
    }

    /// The time passes to `now`: blocks expire, and those that are due are written.
    fn pass_time(&mut self, now: SimTime, storage: &mut dyn Storage) {
        while let Some(&(due, block)) = self.lazy.front().filter(|(due, _)| *due <= now) {
            self.lazy.pop_front();
            self.expire(due, storage);
            if matches!(self.level_of(block), Some(0 | 1)) {
                self.store(block, due, storage);
            }
        }
        self.expire(now, storage);
    }

    fn expire(&mut self, now: SimTime, storage: &mut dyn Storage) {
        self.expired.clear();
        self.storage.expire(now, &mut self.expired);
        self.totals.expired[STORAGE] += self.expired.len() as u64;
        for held in &self.expired {
            storage.discard(now, *held);
        }
    }

    /// A block was used or computed: it moves to the top, and is written where the mode says so.
    fn place(&mut self, block: u32, level: Option<usize>, at: SimTime, storage: &mut dyn Storage) {
        let seen = std::mem::replace(&mut self.seen[block as usize], true);
        match level {
            Some(STORAGE) => self.storage.touch(block, at),
            Some(level) => {
                if let Some(memory) = &mut self.memory[level] {
                    memory.touch(block, at);
                }
            }
            None => match self.write {
                WriteMode::Put => self.store(block, at, storage),
                WriteMode::SecondHit if seen => self.store(block, at, storage),
                WriteMode::Lazy(delay) => self.lazy.push_back((at + delay, block)),
                WriteMode::SecondHit | WriteMode::Evict => {}
            },
        }
        if self.write == WriteMode::SecondHit && seen && matches!(level, Some(0 | 1)) {
            self.store(block, at, storage);
        }
        let top = self.memory.iter().position(Option::is_some);
        match (level, top) {
            (Some(level), Some(top)) if level == top => {}
            (Some(1), Some(0)) => {
                if let Some(host) = &mut self.memory[1] {
                    host.remove(block);
                    self.totals.moved[1] += 1;
                }
                self.remember(0, block, at, storage);
            }
            (_, top) => self.remember(top.unwrap_or(STORAGE), block, at, storage),
        }
    }

    /// Adds a block to a memory level, whose victim moves down; below memory it is evicted.
    fn remember(&mut self, level: usize, block: u32, at: SimTime, storage: &mut dyn Storage) {
        let Some(level) = (level..STORAGE).find(|level| self.memory[*level].is_some()) else {
            if self.storage.slot(block).is_none() && self.write == WriteMode::Evict {
                self.store(block, at, storage);
            } else if self.memory.iter().any(Option::is_some) {
                self.totals.not_written += 1;
            }
            return;
        };
        let Some(memory) = &mut self.memory[level] else { return };
        let (_, victim) = memory.insert(block, at);
        self.totals.inserted[level] += 1;
        if let Some(victim) = victim {
            self.totals.evicted[level] += 1;
            self.remember(level + 1, victim.block, at, storage);
        }
    }

    /// Writes a block to storage, unless it is there.
    fn store(&mut self, block: u32, at: SimTime, storage: &mut dyn Storage) {
        if self.storage.slot(block).is_some() {
            return;
        }
        let (held, victim) = self.storage.insert(block, at);
        if let Some(victim) = victim {
            self.totals.evicted[STORAGE] += 1;
            storage.discard(at, victim);
        }
        self.totals.inserted[STORAGE] += 1;
        storage.write(at, held);
    }
}
