//! Random systems under random workloads with every check on.
//!
//! Systems are drawn from the registry, so a new FTL, policy, scheduler or controller is fuzzed
//! the moment it is registered. Each is small, so that caches overflow and devices fill up within
//! a few thousand requests. In every third the power fails again and again.

use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Fault, Stream};
use hybridsim_simulation::build;
use hybridsim_simulation::run::{self, RunError};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::path::PathBuf;

/// What became of one random system.
#[derive(Debug)]
pub enum Verdict {
    /// It ran, and every check held.
    Passed,
    /// The combination was refused with a clear message, as impossible ones must be.
    Refused,
    /// A check failed: the scenario and what was wrong.
    Failed {
        /// The scenario, to run again.
        scenario: String,
        /// What was wrong.
        reason: String,
    },
}

/// Draws system number `seed` and runs it.
pub fn one(registry: &Registry, seed: u64) -> Verdict {
    let mut draw =
        Draw { registry, stream: Stream::new(seed, "fuzz"), components: String::new(), count: 0 };
    let scenario = draw.scenario(seed);
    let source = SourceText { name: format!("fuzz seed {seed}"), text: scenario.clone() };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    let checked = match Scenario::check(input, registry) {
        Ok(checked) => checked,
        Err(problems) => {
            return Verdict::Failed { scenario, reason: format!("does not check: {problems}") };
        }
    };
    if build::system(&checked, registry).is_err() {
        return Verdict::Refused;
    }
    match run::run(&checked, registry, run::Options::default()) {
        Err(RunError::Scenario(_)) => Verdict::Refused,
        Err(RunError::Trace(reason)) => Verdict::Failed { scenario, reason },
        Ok(done) => {
            // A device that fills up or wears out says so; that is an answer, not a defect.
            if matches!(done.fault, Some(Fault::PowerFailureUnsupported { .. })) {
                return Verdict::Refused;
            }
            let broken = done.fault.filter(|fault| !run::is_device_answer(fault));
            let reason = broken.map(|fault| fault.to_string()).or_else(|| {
                let violations = &done.results.violations;
                (!violations.is_empty()).then(|| violations.join("; "))
            });
            match reason {
                Some(reason) => Verdict::Failed { scenario, reason },
                None => Verdict::Passed,
            }
        }
    }
}

/// Draws from the registry.
struct Draw<'a> {
    registry: &'a Registry,
    stream: Stream,
    components: String,
    count: u32,
}

/// Depth of the deepest system.
const DEPTH_MAX: u32 = 3;

impl Draw<'_> {
    fn scenario(&mut self, seed: u64) -> String {
        let system = self.component(0);
        let depth = 1 + self.stream.below(32);
        let mode = if self.stream.chance(0.5) { "open" } else { "closed" };
        let scheduler = self.one_of("scheduler");
        let generator = self.generator();
        let mut power = String::new();
        if self.stream.chance(1.0 / 3.0) {
            power = format!("power_cut_every = {}\n", 50 << self.stream.below(5));
            // A disk's buffer loses what it acknowledged, and says so.
            self.components = self.components.replace("write_cache = true", "write_cache = false");
        }
        format!(
            "system = \"{system}\"\n[run]\nseed = {seed}\nverify = true\n{power}\
             [host]\nmode = \"{mode}\"\nqueue_depth = {depth}\nscheduler = \"{scheduler}\"\n\
             [workload]\ngenerator = {generator}\n{}",
            self.components
        )
    }

    fn one_of(&mut self, slot: &str) -> &'static str {
        let names: Vec<&str> = self.registry.descriptions(slot).map(|entry| entry.name).collect();
        assert!(!names.is_empty(), "nothing is registered as {slot}");
        names[self.stream.below(names.len() as u64) as usize]
    }

    /// A generator of small requests in a small space, so that they meet.
    fn generator(&mut self) -> String {
        let space_kib = 64 << self.stream.below(4);
        let read = self.stream.below(101);
        let mix = ["randrw", "rw", "randtrimwrite", "randwrite"][self.stream.below(4) as usize];
        let sizes = ["512B", "4KiB", "12KiB", "3KiB"][self.stream.below(4) as usize];
        let rate = [100, 2_000, 50_000][self.stream.below(3) as usize];
        format!(
            "{{ kind = \"fio\", requests = 2000, rw = \"{mix}\", rwmixread = {read}, \
             bs = \"{sizes}\", size = \"{space_kib}KiB\", norandommap = true, \
             rate_iops = {rate}, rate_process = \"poisson\" }}"
        )
    }

    /// Writes a component and its children; returns its name.
    fn component(&mut self, depth: u32) -> String {
        let kinds: Vec<_> = self
            .registry
            .descriptions("component")
            .filter(|entry| depth < DEPTH_MAX || !entry.params.iter().any(takes_children))
            .collect();
        let kind = kinds[self.stream.below(kinds.len() as u64) as usize];
        self.count += 1;
        let name = format!("p{}", self.count);
        let mut keys = String::new();
        for param in kind.params {
            keys += &self.key(kind.name, param, depth);
        }
        let sizes = small(kind.name, &mut self.stream);
        for param in kind.params.iter().filter(|param| param.default.is_none()) {
            // A part this file knows nothing of still gets the counts it cannot do without.
            if let Kind::Count { min, max } = param.kind
                && !sizes.contains(&format!("{} = ", param.name))
            {
                let count = min.saturating_add(self.stream.below(4)).min(max);
                keys += &format!("{} = {count}\n", param.name);
            }
        }
        keys += &sizes;
        self.components += &format!("[component.{name}]\nkind = \"{}\"\n{keys}", kind.name);
        name
    }

    /// How many children a part of kind `kind` gets.
    fn members(&mut self, kind: &str, depth: u32) -> u64 {
        // Other numbers are there to be refused now and then.
        match kind {
            "cache-device" if self.stream.chance(0.9) => 2,
            // Whoever is above mostly takes one device, and a bus gives access to all it has.
            "bus" if self.stream.chance(0.8) => 1,
            // Four suit every array.
            _ if depth > 0 || self.stream.chance(0.6) => 4,
            _ => 2 + self.stream.below(5),
        }
    }

    /// One key of a part of kind `kind`: children always, plugs often, the rest keeps its default.
    fn key(&mut self, kind: &str, param: &Param, depth: u32) -> String {
        match param.kind {
            // A scheduler that sends NV cache commands needs somebody who knows them.
            Kind::Component if param.name == "drive" => {
                let (flash, name) = (self.component(DEPTH_MAX), self.count + 1);
                self.count += 1;
                self.components += &format!(
                    "[component.p{name}]\nkind = \"nv-cache-disk\"\nflash = \"{flash}\"\n\
                     disk = \"p{name}d\"\n[component.p{name}d]\nkind = \"curve-disk\"\n\
                     capacity = \"64MiB\"\n"
                );
                format!("{} = \"p{name}\"\n", param.name)
            }
            // A journal, say.
            Kind::Component if param.default.is_some() && self.stream.chance(0.7) => String::new(),
            Kind::Component => format!("{} = \"{}\"\n", param.name, self.component(depth + 1)),
            // Optional children, such as spares, would make every system large.
            Kind::Components if param.default.is_some() && self.stream.chance(0.8) => String::new(),
            // A controller reaches its devices by a bus.
            Kind::Components if param.name == "buses" => {
                let device = self.component(depth + 1);
                self.count += 1;
                let name = format!("p{}", self.count);
                self.components +=
                    &format!("[component.{name}]\nkind = \"bus\"\ndevices = [\"{device}\"]\n");
                format!("{} = [\"{name}\"]\n", param.name)
            }
            Kind::Components => {
                let members = self.members(kind, depth);
                let names: Vec<String> =
                    (0..members).map(|_| format!("\"{}\"", self.component(depth + 1))).collect();
                format!("{} = [{}]\n", param.name, names.join(", "))
            }
            // The kind of a component decides about the seek model; see `small`.
            Kind::Entry("seek-model") => String::new(),
            Kind::Entry(slot) if param.default.is_some() && self.can_draw(slot) => {
                format!("{} = \"{}\"\n", param.name, self.one_of(slot))
            }
            _ => String::new(),
        }
    }

    /// Whether every entry of `slot` works without further parameters.
    fn can_draw(&mut self, slot: &str) -> bool {
        let mut entries = self.registry.descriptions(slot).peekable();
        entries.peek().is_some()
            && entries.all(|entry| entry.params.iter().all(|param| param.default.is_some()))
            && self.stream.chance(0.7)
    }
}

fn takes_children(param: &Param) -> bool {
    matches!(param.kind, Kind::Component | Kind::Components)
}

/// Keys that make a device small, and those it cannot be built without.
fn small(kind: &str, stream: &mut Stream) -> String {
    let mut pick = |choices: &[u64]| choices[stream.below(choices.len() as u64) as usize];
    match kind {
        "ssd" => format!(
            "channels = {}\ndies_per_channel = {}\nplanes_per_die = {}\nblocks_per_plane = {}\n\
             pages_per_block = {}\nover_provisioning = \"{}%\"\nprogram_order = \"{}\"\n\
             read_time = \"25us\"\nprogram_time = \"200us\"\nerase_time = \"1.5ms\"\n",
            pick(&[1, 2, 3]),
            pick(&[1, 2]),
            pick(&[1, 2]),
            pick(&[16, 33, 64]),
            pick(&[4, 8, 17]),
            pick(&[30, 60, 100]),
            ["sequential", "ascending", "any"][pick(&[0, 1, 2]) as usize],
        ),
        "slc-mlc-ssd" => format!(
            "capacity = \"{}KiB\"\nmlc_size = \"{}KiB\"\nmlc_page_size = \"{}KiB\"\n\
             mlc_pages_per_block = {}\nslc_size = \"{}KiB\"\nslc_pages_per_block = {}\n\
             nvram = \"{}KiB\"\nthreshold_every = 50\nprobes = {}\n",
            pick(&[256, 1024, 2000]),
            pick(&[2200, 3000]),
            pick(&[1, 2, 4]),
            pick(&[4, 8, 17]),
            pick(&[0, 64, 256]),
            pick(&[2, 4]),
            pick(&[0, 0, 32]),
            pick(&[1, 8]),
        ),
        "hard-disk" => format!(
            "rpm = \"7200rpm\"\nheads = {}\ncylinders = {}\nouter_sectors_per_track = 100\n\
             inner_sectors_per_track = 60\nwrite_cache = {}\n\
             seek = {{ kind = \"linear\", single = \"1ms\", full = \"9ms\" }}\n",
            pick(&[1, 2, 3]),
            pick(&[16, 50, 200]),
            pick(&[0, 1]) == 1,
        ),
        "raid1" | "raid10" | "raid4" | "raid5" | "raid6" | "declustered" => format!(
            "resync = \"{}\"\nbitmap_region = \"{}KiB\"\nbitmap_clear_after = \"{}ms\"\n",
            ["full", "bitmap"][pick(&[0, 1]) as usize],
            pick(&[16, 64, 1024]),
            pick(&[1, 20, 5000]),
        ),
        "memory-cache" => format!(
            "size = \"{}KiB\"\nline_size = \"{}KiB\"\n",
            pick(&[8, 64, 512]),
            pick(&[1, 2, 4, 8]),
        ),
        "constant-device" => format!(
            "capacity = \"{}KiB\"\nlatency = \"100us\"\njitter = \"{}us\"\n",
            pick(&[256, 1000, 4096]),
            pick(&[0, 50, 5000]),
        ),
        _ => String::new(),
    }
}
