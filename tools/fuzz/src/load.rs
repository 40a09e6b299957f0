//! Draws scenarios: a system's workload or tenants, its faults and power failures.

use crate::Draw;
use toml::{Table, Value};

impl Draw<'_> {
    /// The scenario of system number `seed`, whose top component is `system`.
    pub(crate) fn scenario(&mut self, seed: u64, system: &str) -> String {
        let depth = 1 + self.stream.below(32);
        let mut mode = if self.is_simple || self.stream.chance(0.5) { "open" } else { "closed" };
        let mut scheduler = match self.stream.chance(0.25) {
            // Tenants, and what is compared with them, are served in the order of arrival.
            true => "\"fcfs\"".to_owned(),
            false => self.entry("scheduler", 0).to_string(),
        };
        let mut workload = format!("[workload]\ngenerator = {}\n", self.generator());
        let mut run = String::new();
        let mut system = system.to_owned();
        let kind = self.components[&system]["kind"].as_str().unwrap_or_default();
        let has_zones = self.has_zones(kind);
        if has_zones
            && self.stream.chance(0.7)
            && let Some(zones) = self.above_zones(&mut system)
        {
            // It waits for completions, so no power failures.
            mode = "open";
            workload = format!("[workload]\ngenerator = {}\n", self.zones(zones));
        } else if has_zones && self.stream.chance(0.7) {
            system = self.log_above(&system);
        } else {
            if !self.is_simple && self.stream.chance(1.0 / 3.0) {
                (scheduler, workload) = ("\"fcfs\"".to_owned(), self.tenants());
            }
            if self.stream.chance(1.0 / 3.0) {
                run = format!("power_cut_every = {}\n", 50 << self.stream.below(5));
            }
        }
        if !self.is_simple && run.is_empty() && self.stream.chance(0.5) {
            run = self.faults();
        }
        let components =
            Table::from_iter([("component".to_owned(), Value::from(self.components.clone()))]);
        format!(
            "system = \"{system}\"\n[run]\nseed = {seed}\nverify = true\n{run}\
             [host]\nmode = \"{mode}\"\nqueue_depth = {depth}\nscheduler = {scheduler}\n\
             {workload}{components}"
        )
    }

    /// The last key of `[host]`, and two tenants.
    fn tenants(&mut self) -> String {
        let arbitration = self.pick(&["round-robin", "weighted-round-robin"]);
        let mut text = format!("arbitration = \"{arbitration}\"\n");
        for name in ["one", "other"] {
            let generator = self.generator();
            let (mode, weight) = (self.pick(&["open", "closed"]), 1 + self.stream.below(4));
            let depth = 1 + self.stream.below(16);
            let limit = self.pick(&[
                "",
                "priority = \"urgent\"\n",
                "iops_max = 5000\n",
                "bandwidth_max = \"2MB/s\"\n",
            ]);
            text += &format!(
                "[workload.{name}]\nmode = \"{mode}\"\nqueue_depth = {depth}\n\
                 weight = {weight}\n{limit}generator = {generator}\n"
            );
        }
        text
    }

    /// A fault for about half of the components that support one; a new kind of component with
    /// faults needs a line here.
    fn faults(&mut self) -> String {
        let kind = |(name, keys): (&String, &Value)| {
            Some((name.clone(), keys.get("kind")?.as_str()?.to_owned()))
        };
        let components: Vec<_> = self.components.iter().filter_map(kind).collect();
        let mut text = String::new();
        for (name, kind) in components {
            let fault = match &*kind {
                "raid1" | "raid10" | "raid4" | "raid5" | "raid6" | "declustered" => {
                    format!("\"fail\"\nmember = {}\n", self.stream.below(3))
                }
                "hard-disk" | "curve-disk" | "constant-device" => "\"slow\"\nfactor = 10\n".into(),
                "ssd" | "zns-ssd" => self
                    .pick(&[
                        "\"slow\"\nfactor = 10\n",
                        "\"wear\"\nfraction = 0.9\n",
                        "\"fill\"\nfraction = 0.5\n",
                    ])
                    .into(),
                _ => continue,
            };
            if self.stream.chance(0.5) {
                let at = self.pick(&["0us", "1ms", "20ms", "1s"]);
                text +=
                    &format!("[[run.faults]]\nat = \"{at}\"\ncomponent = \"{name}\"\ndo = {fault}");
            }
        }
        text
    }

    /// A generator of small requests in a small address range, so that they overlap, or on all of
    /// the device, so that garbage collection finds valid data.
    fn generator(&mut self) -> String {
        let span = match self.stream.chance(0.5) {
            true => String::new(),
            false => format!(" span = \"{}KiB\",", 64 << self.stream.below(4)),
        };
        let read = self.stream.below(101);
        let mix = self.pick(&["randrw", "rw", "randtrimwrite", "randwrite"]);
        let sizes = self.pick(&["512B", "3KiB", "4KiB", "12KiB", "48KiB"]);
        let rate = self.pick(&[100, 2_000, 50_000]);
        format!(
            "{{ kind = \"fio\", requests = 2000, rw = \"{mix}\", rwmixread = {read}, \
             bs = \"{sizes}\",{span} norandommap = true, \
             rate_iops = {rate}, rate_process = \"poisson\" }}"
        )
    }

    /// A generator that writes zones in order.
    fn zones(&mut self, (zone_kib, capacity_kib): (u64, u64)) -> String {
        let (active, readers) = (1 + self.stream.below(4), self.stream.below(4));
        let write = self.pick(&["write", "append"]);
        let fill = self.pick(&["0.3", "1.0"]);
        let (finish, open) = (self.stream.chance(0.5), self.stream.chance(0.5));
        format!(
            "{{ kind = \"zones\", requests = 2000, zone_size = \"{zone_kib}KiB\", \
             zone_capacity = \"{capacity_kib}KiB\", active = {active}, write = \"{write}\", \
             fill = {fill}, finish = {finish}, open = {open}, readers = {readers} }}"
        )
    }

    /// Puts a component that forwards zone commands above the device `system`, in three of four
    /// systems; returns the size and the capacity of the zones of the whole, where the device gives
    /// them in KiB, as samples do.
    fn above_zones(&mut self, system: &mut String) -> Option<(u64, u64)> {
        let device = self.components[&*system].clone();
        let kib = |key: &str| -> Option<u64> {
            device.get(key)?.as_str()?.trim_end_matches("KiB").parse().ok()
        };
        let zones = (kib("zone_size")?, kib("zone_capacity")?);
        let (keys, zones) = match self.stream.below(4) {
            0 => (format!("kind = \"io-queue\"\ndevice = \"{system}\"\n"), zones),
            1 => (format!("kind = \"concat\"\nmembers = [\"{system}\", \"second\"]\n"), zones),
            2 => {
                let members = format!("members = [\"{system}\", \"second\"]\n");
                let keys = format!("kind = \"stripe\"\nchunk = \"4KiB\"\n{members}");
                (keys, (2 * zones.0, 2 * zones.1))
            }
            _ => return Some(zones),
        };
        if keys.contains("second") {
            self.components.insert("second".to_owned(), device);
        }
        let keys: Table = keys.parse().expect("it is TOML");
        self.components.insert("above".to_owned(), keys.into());
        "above".clone_into(system);
        Some(zones)
    }

    /// Adds a log that runs any load on the zones of `device`; returns its name.
    fn log_above(&mut self, device: &str) -> String {
        let keys = format!(
            "kind = \"log-structured\"\ndevice = \"{device}\"\nover_provisioning = 1.0\n\
             free_segments = 1\ngc = \"{}\"\n",
            self.pick(&["greedy", "cost-benefit", "fifo"])
        );
        let keys: Table = keys.parse().expect("it is TOML");
        self.components.insert("above".to_owned(), keys.into());
        "above".to_owned()
    }
}
