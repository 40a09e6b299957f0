//! The first cut: systems worth simulating, from the trace's profile and its miss-ratio curves.

use crate::prices::{Device, Prices, Role};
use crate::{Bounds, Demand};
use hybridsim_config::diagnostic::{Diagnostics, SourceText};
use hybridsim_config::param::Settings;
use hybridsim_config::params::field;
use hybridsim_config::registry::Registry;
use hybridsim_engine::SECTOR_BYTES;
use hybridsim_mrc::{Curve, Curves};
use hybridsim_report::figures::binary_size;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::{build, presets};
use std::path::{Path, PathBuf};

/// Cache sizes are chosen to leave these shares of the avoidable misses.
const MISSES_LEFT: [f64; 3] = [0.5, 0.2, 0.05];
/// Smaller caches are not worth a device.
const CACHE_BYTES_MIN: u64 = 1 << 20;
/// Another policy than the cache's own is tried if it avoids this share of accesses more misses.
const POLICY_GAIN: f64 = 0.01;
/// The simulated part of a drive is at most so many times as large as what is used of it.
const SPARE_TIMES: u64 = 4;
/// Replacement policy of a cache whose preset names none.
const REPLACEMENT: &str = "lru";
/// Blocks of a plane in a scaled SSD, and the fewest spare ones.
const BLOCKS: u64 = 64;
const SPARE_BLOCKS: f64 = 4.0;
/// Fewest pages of a block in a scaled SSD.
const PAGES_MIN: u64 = 4;

/// A system to be simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Such as `disk + SATA SSD, dm-cache`.
    pub name: String,
    /// Index of the disk and of the flash device in the price table.
    pub disk: Option<usize>,
    pub flash: Option<usize>,
    /// Flash that is used, and the capacity of the device that is simulated.
    pub flash_bytes: u64,
    pub simulated_bytes: u64,
    /// Preset of the cache, and its replacement policy if it is not its own.
    pub cache: Option<String>,
    pub policy: Option<String>,
    /// Miss ratio that the curve of the policy gives for the size, if there is a curve of it.
    pub miss_ratio: Option<f64>,
    /// The scenario, without workload.
    pub scenario: String,
}

/// A system that needs no simulation, with the reason.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Dropped {
    pub name: String,
    pub reason: String,
}

/// The first cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FirstCut {
    pub candidates: Vec<Candidate>,
    pub dropped: Vec<Dropped>,
}

/// The systems of the price table: each disk and flash device alone, and each disk with each flash
/// device as its cache, in several sizes and designs.
///
/// # Errors
/// A preset that is missing, or is no disk, SSD or cache.
pub fn first_cut(
    registry: &Registry,
    prices: &Prices,
    demand: &Demand,
    curves: &Curves,
    caches: &[String],
    bounds: &Bounds,
) -> Result<FirstCut, String> {
    let own = caches.iter().map(|preset| replacement_of(preset)).collect::<Result<Vec<_>, _>>()?;
    let holds = prices.device.iter().map(|device| capacity(registry, device));
    let holds = holds.collect::<Result<Vec<_>, String>>()?;
    let of =
        |role| (0..).zip(&prices.device).filter(move |it: &(usize, &Device)| it.1.role == role);
    let mut all = Vec::new();
    for (disk, device) in of(Role::Disk) {
        all.push(Candidate {
            name: format!("{} alone", device.name),
            disk: Some(disk),
            flash: None,
            flash_bytes: 0,
            simulated_bytes: 0,
            cache: None,
            policy: None,
            miss_ratio: None,
            scenario: format!("system = \"disk\"\n{}", component("disk", device, "")),
        });
    }
    for (flash, device) in of(Role::Flash) {
        let drive = Drive::new(registry, device, demand.data_bytes)?;
        let share = demand.data_bytes as f64 / drive.bytes as f64;
        let filled = format!(
            "{}precondition = \"fill\"\nprecondition_fill = {}\n",
            drive.geometry,
            share.min(1.0)
        );
        all.push(Candidate {
            name: format!("{} alone", device.name),
            disk: None,
            flash: Some(flash),
            flash_bytes: demand.data_bytes,
            simulated_bytes: drive.bytes,
            cache: None,
            policy: None,
            miss_ratio: None,
            scenario: format!("system = \"flash\"\n{}", component("flash", device, &filled)),
        });
        for (disk, under) in of(Role::Disk) {
            let pair = Pair { registry, disk: (disk, under), flash: (flash, device) };
            for (preset, own) in caches.iter().zip(&own) {
                pair.cached(preset, own.as_deref(), curves, &mut all)?;
            }
        }
    }
    let mut cut = FirstCut::default();
    let is_tiny = |it: &Candidate| it.cache.is_some() && it.flash_bytes < CACHE_BYTES_MIN;
    for tiny in all.extract_if(.., |it| is_tiny(it)) {
        let reason = format!("a cache of less than {}", binary_size(CACHE_BYTES_MIN));
        cut.dropped.push(Dropped { name: tiny.label(), reason });
    }
    for candidate in all {
        match bounds.rules_out(&candidate, prices, demand, &holds) {
            Some(reason) => cut.dropped.push(Dropped { name: candidate.label(), reason }),
            None => cut.candidates.push(candidate),
        }
    }
    Ok(cut)
}

/// The replacement policy of a preset of a flash cache; `None` if it has settings of its own, so
/// that no curve is the policy's.
///
/// # Errors
/// A preset that is missing, or of another kind.
pub fn replacement_of(preset: &str) -> Result<Option<String>, String> {
    let table = presets::load(preset, Path::new(""))?.text.parse::<toml::Table>().ok();
    let get = |key: &str| table.as_ref()?.get(key);
    if get("kind").and_then(toml::Value::as_str) != Some("flash-cache") {
        return Err(format!("preset `{preset}` is not a `flash-cache`"));
    }
    let Some(replacement) = get("replacement") else { return Ok(Some(REPLACEMENT.to_owned())) };
    Ok(replacement.as_str().map(str::to_owned))
}

/// The capacity of a device; `None` for flash without a largest size on sale. A disk is simulated
/// as its preset has it, so `size_max` cannot enlarge it.
fn capacity(registry: &Registry, device: &Device) -> Result<Option<u64>, String> {
    if device.role == Role::Flash {
        return Ok(device.largest());
    }
    let scenario = checked(registry, device)?;
    let system = build::system(&scenario, registry)
        .map_err(|problems| format!("device `{}`: {problems}", device.name))?;
    let bytes = system.component.capacity() * SECTOR_BYTES;
    match device.largest().filter(|largest| *largest > bytes) {
        None => Ok(Some(device.largest().unwrap_or(bytes))),
        Some(_) => Err(format!(
            "device `{}`: `size_max` is more than the {} of preset `{}`, which is simulated",
            device.name,
            binary_size(bytes),
            device.preset
        )),
    }
}

fn checked(registry: &Registry, device: &Device) -> Result<Scenario, String> {
    let text = format!("system = \"device\"\n{}", component("device", device, ""));
    let source = SourceText { name: device.preset.clone(), text };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    Scenario::check_system(input, registry)
        .map_err(|problems: Diagnostics| format!("device `{}`: {problems}", device.name))
}

struct Pair<'p> {
    registry: &'p Registry,
    disk: (usize, &'p Device),
    flash: (usize, &'p Device),
}

impl Pair<'_> {
    /// Adds the sizes and policies worth trying with this preset, whose policy is `replacement`.
    /// Sizes are chosen by the curve of that policy, or of LRU if there is none.
    fn cached(
        &self,
        preset: &str,
        replacement: Option<&str>,
        curves: &Curves,
        all: &mut Vec<Candidate>,
    ) -> Result<(), String> {
        let of = |policy: &str| curves.curves.iter().find(|curve| curve.policy == policy);
        let own_curve = replacement.and_then(of);
        let Some(sizing) = own_curve.or_else(|| of("lru")) else { return Ok(()) };
        let mut sizes: Vec<u64> =
            MISSES_LEFT.iter().filter_map(|left| size(sizing, *left)).collect();
        sizes.dedup();
        for wanted in sizes {
            let own = own_curve.and_then(|curve| miss_ratio(curve, wanted));
            let others = curves.curves.iter().filter(|it| replacement != Some(it.policy.as_str()));
            let better = others
                .filter_map(|curve| Some((curve, miss_ratio(curve, wanted)?)))
                .filter(|(_, miss)| own.is_some_and(|own| *miss < own - POLICY_GAIN))
                .min_by(|one, other| one.1.total_cmp(&other.1));
            let policies = std::iter::once((None, own))
                .chain(better.map(|(curve, miss)| (Some(curve.policy.clone()), Some(miss))));
            for (policy, miss_ratio) in policies {
                let candidate = self.candidate(preset, wanted, policy, miss_ratio)?;
                // Small sizes may come out as the same device.
                if !all.iter().any(|other| other.scenario == candidate.scenario) {
                    all.push(candidate);
                }
            }
        }
        Ok(())
    }

    fn candidate(
        &self,
        preset: &str,
        wanted: u64,
        policy: Option<String>,
        miss_ratio: Option<f64>,
    ) -> Result<Candidate, String> {
        let ((disk, under), (flash, device)) = (self.disk, self.flash);
        let drive = Drive::new(self.registry, device, wanted)?;
        let replacement =
            policy.as_ref().map_or(String::new(), |it| format!("replacement = {it:?}\n"));
        let scenario = format!(
            "system = \"cache\"\n[component.cache]\npreset = {preset:?}\nflash = \"flash\"\n\
             disk = \"disk\"\ncaching_space = {}\nover_provisioning = {:?}\n\
             {replacement}{}{}",
            wanted as f64 / drive.bytes as f64 / (1.0 + drive.over_provisioning),
            drive.over_provisioning,
            component("flash", device, &drive.geometry),
            component("disk", under, ""),
        );
        Ok(Candidate {
            name: format!("{} + {}, {preset}", under.name, device.name),
            disk: Some(disk),
            flash: Some(flash),
            flash_bytes: wanted,
            simulated_bytes: drive.bytes,
            cache: Some(preset.to_owned()),
            policy,
            miss_ratio,
            scenario,
        })
    }
}

impl Candidate {
    /// The candidate's name with the policy.
    pub fn title(&self) -> String {
        let policy = self.policy.as_ref().map_or(String::new(), |policy| format!(" with {policy}"));
        self.name.clone() + &policy
    }

    /// The candidate's name with policy and size.
    pub fn label(&self) -> String {
        match self.flash {
            Some(_) => format!("{}, {}", self.title(), binary_size(self.flash_bytes)),
            None => self.title(),
        }
    }

    /// Price of its devices, per year of service.
    pub fn devices_per_year(&self, prices: &Prices, demand: &Demand, flash_years: f64) -> f64 {
        let disk = self.disk.map_or(0.0, |at| prices.device[at].price(demand.data_bytes));
        let flash = self.flash.map_or(0.0, |at| prices.device[at].price(self.flash_bytes));
        disk / prices.years + flash / prices.years.min(flash_years)
    }
}

fn component(name: &str, device: &Device, more: &str) -> String {
    format!("[component.{name}]\npreset = {:?}\n{more}", device.preset)
}

/// The smallest size of the curve that leaves at most the share `left` of the avoidable misses.
fn size(curve: &Curve, left: f64) -> Option<u64> {
    let known: Vec<(u64, f64)> = curve
        .points
        .iter()
        .filter_map(|point| Some((point.cache_bytes, point.miss_ratio?)))
        .collect();
    let (_, floor) = known.last()?;
    let most = floor + left * (1.0 - floor);
    known.iter().find(|(_, miss)| *miss <= most).map(|(bytes, _)| *bytes)
}

fn miss_ratio(curve: &Curve, bytes: u64) -> Option<f64> {
    curve.points.iter().find(|point| point.cache_bytes == bytes)?.miss_ratio
}

/// The part of an SSD that is simulated: the preset's channels, dies and times with smaller blocks,
/// since a trace uses a small part of a drive on sale.
struct Drive {
    bytes: u64,
    over_provisioning: f64,
    /// The keys of the geometry, in lines.
    geometry: String,
}

impl Drive {
    /// A drive of which `used` bytes are used.
    fn new(registry: &Registry, device: &Device, used: u64) -> Result<Self, String> {
        let scenario = checked(registry, device)?;
        let component = &scenario.components[scenario.system];
        let over = match component.description.name {
            "ssd" => field::<f64>(&component.settings, "over_provisioning"),
            _ => 0.0,
        };
        if over <= 0.0 {
            return Err(format!(
                "device `{}`: preset `{}` must be an `ssd` with `over_provisioning` above 0",
                device.name, device.preset
            ));
        }
        let bytes = device.bought(used).min(SPARE_TIMES.saturating_mul(used));
        Ok(Self::scaled(&component.settings, over, bytes))
    }

    /// A drive of at least `bytes`.
    fn scaled(settings: &Settings, over: f64, bytes: u64) -> Self {
        let counts = ["channels", "dies_per_channel", "planes_per_die"];
        let planes: u64 = counts.iter().map(|name| field::<u64>(settings, name)).product();
        let page: u64 = field(settings, "page_size");
        let most: u64 = field(settings, "pages_per_block");
        let blocks_min = (SPARE_BLOCKS * (1.0 + over) / over).ceil() as u64;
        let pages = (bytes as f64 * (1.0 + over) / page as f64).ceil() as u64;
        let per_block = pages.div_ceil(planes * BLOCKS.max(blocks_min));
        let per_block = per_block.clamp(PAGES_MIN.min(most), most);
        let blocks = pages.div_ceil(planes * per_block).max(blocks_min);
        let capacity = (planes * blocks * per_block * page) as f64 / (1.0 + over);
        let geometry = format!("blocks_per_plane = {blocks}\npages_per_block = {per_block}\n");
        Self { bytes: capacity as u64, over_provisioning: over, geometry }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_mrc::Point;
    use hybridsim_simulation::registry::standard;

    fn first_cut(
        prices: &Prices,
        demand: &Demand,
        curves: &Curves,
        caches: &[String],
        bounds: &Bounds,
    ) -> Result<FirstCut, String> {
        super::first_cut(&standard(), prices, demand, curves, caches, bounds)
    }

    fn curve(policy: &str, misses: &[f64]) -> Curve {
        let points = (1..).zip(misses).map(|(at, miss)| Point {
            cache_bytes: at << 28,
            miss_ratio: Some(*miss),
            error: None,
        });
        Curve {
            policy: policy.to_owned(),
            method: "simulation",
            sampled_fraction: 1.0,
            points: points.collect(),
        }
    }

    fn curves(all: Vec<Curve>) -> Curves {
        Curves {
            page_bytes: 4096,
            accesses: 1,
            pages: 1,
            footprint_bytes: 4096,
            footprint_sampled_fraction: 1.0,
            curves: all,
            warnings: Vec::new(),
        }
    }

    fn demand() -> Demand {
        Demand {
            data_bytes: 4 << 30,
            written_bytes: 1 << 30,
            span_ns: 1_000_000_000_000,
            duty: 1.0,
        }
    }

    #[test]
    fn sizes_are_where_misses_are_avoided() {
        let lru = curve("lru", &[0.9, 0.6, 0.4, 0.25, 0.2]);
        assert_eq!(size(&lru, 0.5), Some(2 << 28), "half of 0.8 is left at 0.6");
        assert_eq!(size(&lru, 0.2), Some(4 << 28));
        assert_eq!(size(&lru, 0.05), Some(5 << 28));
    }

    #[test]
    fn devices_alone_and_as_caches_are_tried() {
        let lru = curve("lru", &[0.9, 0.6, 0.4, 0.25, 0.2]);
        let arc = curve("arc", &[0.9, 0.5, 0.395, 0.25, 0.2]);
        let (prices, caches) = (Prices::standard(), vec!["open-cas".to_owned()]);
        let curves = curves(vec![lru, arc]);
        let cut = first_cut(&prices, &demand(), &curves, &caches, &Bounds::default());
        let names: Vec<String> =
            cut.expect("presets").candidates.iter().map(Candidate::label).collect();
        let has = |part: &str| names.iter().filter(|name| name.contains(part)).count();
        assert_eq!((has("disk alone"), has("SSD alone")), (1, 2), "{names:?}");
        assert_eq!(has("SATA SSD, open-cas"), 4, "three sizes, one of them also with ARC");
        assert_eq!(has("SATA SSD, open-cas with arc"), 1);
    }

    #[test]
    fn tiny_caches_are_not_offered() {
        let points = [(100_000, 0.5), (1 << 20, 0.3), (1 << 28, 0.1)];
        let points = points.map(|(cache_bytes, miss)| Point {
            cache_bytes,
            miss_ratio: Some(miss),
            error: None,
        });
        let lru = Curve {
            policy: "lru".to_owned(),
            method: "simulation",
            sampled_fraction: 1.0,
            points: points.to_vec(),
        };
        let (prices, caches) = (Prices::standard(), ["dm-cache".to_owned()]);
        let cut =
            first_cut(&prices, &demand(), &curves(vec![lru]), &caches, &Bounds::default()).unwrap();
        let caches = cut.candidates.iter().filter(|it| it.cache.is_some());
        let sizes: Vec<u64> = caches.map(|it| it.flash_bytes).collect();
        assert_eq!(sizes, [1 << 28; 2], "one for each SSD");
        let small = cut.dropped.iter().filter(|it| it.reason.contains("less than 1 MiB"));
        assert_eq!(small.count(), 2, "{:?}", cut.dropped);
    }

    #[test]
    fn the_miss_ratio_is_that_of_the_policy_of_the_cache() {
        let lru = curve("lru", &[0.9, 0.6, 0.4, 0.25, 0.2]);
        let lfu = curve("w-tinylfu", &[0.8, 0.5, 0.4, 0.25, 0.1]);
        let caches = ["dm-cache", "zfs-l2arc"].map(str::to_owned);
        let (prices, bounds) = (Prices::standard(), Bounds::default());
        let cut = first_cut(&prices, &demand(), &curves(vec![lru, lfu]), &caches, &bounds);
        let ratios: Vec<(String, Option<f64>)> = cut
            .expect("presets")
            .candidates
            .into_iter()
            .filter(|it| it.name.contains("SATA SSD, "))
            .map(|it| (it.cache.expect("a cache"), it.miss_ratio))
            .collect();
        let of = |preset: &str| ratios.iter().filter(|it| it.0 == preset).map(|it| it.1).collect();
        let [dm, l2arc]: [Vec<Option<f64>>; 2] = ["dm-cache", "zfs-l2arc"].map(of);
        assert_eq!(dm, [Some(0.5), Some(0.25), Some(0.1)]);
        assert_eq!(l2arc, [None; 3], "there is no curve of FIFO; its sizes are LRU's");
    }

    #[test]
    fn data_that_a_device_does_not_hold_rule_it_out() {
        let mut prices = Prices::standard();
        prices.device[1].size_max = Some("2TB".to_owned());
        let lru = curves(vec![curve("lru", &[0.9, 0.6, 0.4, 0.25, 0.2])]);
        let demand = Demand { data_bytes: 100 << 40, ..demand() };
        let caches = ["open-cas".to_owned()];
        let cut = first_cut(&prices, &demand, &lru, &caches, &Bounds::default()).expect("presets");
        let names: Vec<&str> = cut.candidates.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["NVMe SSD alone"], "any size of it is on sale");
        let reasons: Vec<&str> = cut.dropped.iter().map(|it| it.reason.as_str()).collect();
        assert_eq!(reasons[0], "disk holds 232.9 GiB, the data need 100 TiB");
        assert!(
            reasons.contains(&"SATA SSD holds 1.819 TiB, the data need 100 TiB"),
            "{reasons:?}"
        );
        prices.device[0].size_max = Some("200TiB".to_owned());
        let error = first_cut(&prices, &demand, &lru, &caches, &Bounds::default());
        let error = error.expect_err("the preset has 250 GB");
        assert!(error.contains("device `disk`: `size_max` is more than the 232.9 GiB"), "{error}");
        prices.device[0].size_max = Some("100GB".to_owned());
        prices.device[1].size_max = Some("100MiB".to_owned());
        let demand = Demand { data_bytes: 4 << 30, ..demand };
        let cut = first_cut(&prices, &demand, &lru, &caches, &Bounds::default()).expect("presets");
        let reasons: Vec<&str> = cut.dropped.iter().map(|it| it.reason.as_str()).collect();
        assert!(reasons[1].contains("holds 100 MiB, the cache needs 512 MiB"), "{reasons:?}");
        let demand = Demand { data_bytes: 120_000_000_000, ..demand };
        let cut = first_cut(&prices, &demand, &lru, &caches, &Bounds::default()).expect("presets");
        assert_eq!(cut.dropped[0].reason, "disk holds 93.13 GiB, the data need 111.8 GiB");
    }

    #[test]
    fn what_cannot_meet_a_bound_is_not_simulated() {
        let (prices, curves) = (Prices::standard(), curves(Vec::new()));
        let cut = |bounds: Bounds| {
            let cut = first_cut(&prices, &demand(), &curves, &[], &bounds).expect("presets");
            (cut.candidates.len(), cut.dropped)
        };
        assert_eq!(cut(Bounds::default()).0, 3);
        let (left, dropped) = cut(Bounds { budget: Some(5.0), ..Bounds::default() });
        assert_eq!(left, 1, "{dropped:?}");
        assert!(dropped[0].reason.contains("8 USD a year"), "{dropped:?}");
        // 1 GiB each 1,000 s is 34 TB a year; 240 GB at 0.3 a day for five years are 131 TB.
        let (left, dropped) = cut(Bounds { life_years: Some(5.0), ..Bounds::default() });
        assert_eq!(left, 2, "{dropped:?}");
        assert!(dropped[0].reason.contains("rated"), "{dropped:?}");
    }

    #[test]
    fn a_scaled_drive_has_the_capacity_wanted() {
        let registry = standard();
        for device in Prices::standard().device.iter().filter(|it| it.role == Role::Flash) {
            for gib in [1, 8, 40] {
                let drive = Drive::new(&registry, device, gib << 30).expect("a preset of an SSD");
                let (least, bytes) = ((SPARE_TIMES * gib) << 30, drive.bytes);
                assert!(bytes >= least && bytes < least * 3 / 2, "{bytes} {gib}");
            }
            let full =
                Drive::new(&registry, device, 600 << 30).expect("larger than the smallest on sale");
            assert!((600 << 30..700 << 30).contains(&full.bytes), "{}", full.bytes);
        }
        let mut odd = Prices::standard().device[0].clone();
        assert!(Drive::new(&registry, &odd, 1).err().expect("a disk").contains("must be an `ssd`"));
        assert!(replacement_of("sata-ssd").expect_err("an SSD").contains("is not a"));
        odd.preset = "no-such".to_owned();
        assert!(Drive::new(&registry, &odd, 1).err().expect("none").contains("there is no preset"));
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("mine.toml");
        odd.preset = file.display().to_string();
        const SSD: &str = "kind = \"ssd\"\nblocks_per_plane = 64\nread_time = \"25us\"\n\
                           program_time = \"200us\"\nerase_time = \"2ms\"\n";
        let drive = |text: &str| {
            std::fs::write(&file, format!("{SSD}{text}")).expect("a file");
            Drive::new(&registry, &odd, 1 << 30).map(|drive| drive.bytes)
        };
        let two = drive("over_provisioning = 1\nplanes_per_die = 2").expect("an SSD");
        assert_eq!(drive("over_provisioning = 1").expect("two planes by default"), two);
        let error = drive("channels = 0").expect_err("no channels");
        assert!(error.contains("channels"), "{error}");
        drive("channels = -1").expect_err("fewer than none");
        drive("over_provisioning = 0").expect_err("nothing to collect with");
    }
}
