//! Checks between a zoned device and what is above it: other components, and generators of zoned
//! loads, which have to know its zones.

use crate::scenario::{Scenario, ScenarioComponent};
use hybridsim_config::diagnostic::Diagnostic;
use hybridsim_config::param::{EntryChoice, Settings};
use hybridsim_config::units::write_bytes;
use hybridsim_engine::zone_table::{ZONE_SECTORS, ZoneStatus};
use hybridsim_engine::{ComponentTree, SECTOR_BYTES, ZoneLayout};
use hybridsim_observe::RunResults;
use hybridsim_observe::results::{Component, CustomResult};
use hybridsim_workload::synthetic::zones::{ZONES, zones_active};
use std::ops::Range;

/// Zones below `component`, built as `tree`, that neither forwards zone commands nor writes zones
/// in order, or that does with zones of different sizes.
pub fn children(
    scenario: &Scenario,
    component: &ScenarioComponent,
    tree: &ComponentTree,
) -> Vec<Diagnostic> {
    if tree.component.accepts_zone_commands() && tree.component.zones().is_none() {
        return Vec::new();
    }
    let writes_zones = tree.component.writes_zones();
    let zoned = component.children.iter().zip(&tree.children).filter_map(|(&child, tree)| {
        if writes_zones && tree.zone_layout().is_some() {
            return None;
        }
        let mut devices = ZonedDevice::below(scenario, child, tree, 0).into_iter();
        // A host-aware disk takes writes anywhere.
        let device = devices.find(|it| it.layout.is_none_or(|zones| zones.in_order_only))?;
        Some((&scenario.components[child], device.component.description.name))
    });
    let diagnostic = |(child, device): (&ScenarioComponent, &str)| {
        let is = match child.description.name {
            kind if kind == device => format!("is a `{kind}`"),
            kind => format!("is a `{kind}` above a `{device}`"),
        };
        let (name, kind) = (&child.name, component.description.name);
        if writes_zones {
            let message = format!("`{name}` {is} beside devices with other zones, or without");
            let help = "combine devices with zones of one size only";
            return component.problem("", message, Some(help));
        }
        let message =
            format!("`{name}` {is}, whose zones a `{kind}` neither writes in order nor resets");
        let help = format!("use it as the whole system: system = \"{name}\"");
        component.problem("", message, Some(&help))
    };
    zoned.map(diagnostic).collect()
}

/// Requests that zoned devices refused, by status, to be added to a warning; empty if none.
pub fn refusals(results: &RunResults) -> String {
    let has_zones = |it: &Component| it.constants.contains_key(ZONE_SECTORS);
    let zoned = results.components.iter().filter(|(_, it)| has_zones(it));
    let refused = |(path, it): (&String, &Component)| {
        let statuses =
            it.custom.iter().filter(|(name, _)| ZoneStatus::NAMES.contains(&name.as_str()));
        let of = |(name, it): (&String, &CustomResult)| {
            format!("{path} refused {} with {name}", it.count)
        };
        statuses.map(of).collect::<Vec<_>>()
    };
    let all: Vec<String> = zoned.flat_map(refused).collect();
    if all.is_empty() {
        let latencies = &results.latency_ns;
        let managed = [&latencies.zone_reset, &latencies.zone_finish, &latencies.zone_commit];
        let said = match results.components.values().any(has_zones) {
            _ if managed.iter().all(|it| it.count == 0) => "",
            false => "; no device has zones, so that zone commands fail",
            true => {
                "; zone commands fail where the system has no zones, as a `stripe` of host-aware \
                 disks has none"
            }
        };
        return said.to_owned();
    }
    format!(
        "; {}: a zone is written from its write pointer on, as the generator `zones` does",
        all.join(", ")
    )
}

/// A zoned device, and its sectors in the address space of the system.
struct ZonedDevice<'a> {
    component: &'a ScenarioComponent,
    /// Sectors of its zones.
    range: Range<u64>,
    /// Its zones; `None` if devices with different ones follow one another.
    layout: Option<ZoneLayout>,
}

impl ZonedDevice<'_> {
    /// The devices below component number `at`, built as `tree`, that begins at sector `start`:
    /// the address spaces below what forwards zone commands follow one another.
    fn below<'a>(
        scenario: &'a Scenario,
        at: usize,
        tree: &ComponentTree,
        mut start: u64,
    ) -> Vec<ZonedDevice<'a>> {
        let component = &scenario.components[at];
        if !tree.has_zones() {
            return Vec::new();
        }
        if tree.component.zones().is_some() || tree.combines_zones() {
            let layout = tree.zone_layout();
            let range = start + layout.map_or(0, |it| it.first)..start + tree.component.capacity();
            return vec![ZonedDevice { component, range, layout }];
        }
        let mut found = Vec::new();
        for (&child, tree) in component.children.iter().zip(&tree.children) {
            found.extend(Self::below(scenario, child, tree, start));
            start += tree.component.capacity();
        }
        found
    }
}

/// A generator of zoned loads, with its key and the bytes of the system that it addresses.
struct ZonedLoad<'a> {
    key: String,
    settings: &'a Settings,
    region: Range<u64>,
}

impl<'a> ZonedLoad<'a> {
    /// The load of `choice` in a namespace of `size` bytes from `first` on.
    fn new(key: &str, choice: &'a EntryChoice, (first, size): (u64, Option<u64>)) -> Self {
        let start = first.saturating_add(choice.settings.bytes("start"));
        let end =
            |from: u64, size: Option<u64>| size.map_or(u64::MAX, |it| from.saturating_add(it));
        let end = end(start, choice.settings.bytes_opt("span")).min(end(first, size));
        Self { key: format!("{key}.generator"), settings: &choice.settings, region: start..end }
    }

    fn all(scenario: &'a Scenario) -> Vec<Self> {
        let is_zoned = |choice: &&EntryChoice| choice.name == ZONES;
        let alone = scenario.source.generator.as_ref().filter(is_zoned);
        let tenants = scenario.tenants.iter().filter_map(|tenant| {
            let choice = tenant.source.generator.as_ref().filter(is_zoned)?;
            let of = |key| tenant.settings.bytes_opt(key);
            let namespace = (of("namespace_start").unwrap_or(0), of("namespace_size"));
            Some(Self::new(&format!("workload.{}", tenant.name), choice, namespace))
        });
        alone.map(|it| Self::new("workload", it, (0, None))).into_iter().chain(tenants).collect()
    }

    /// The number of its bytes that are on `device`.
    fn bytes_on(&self, device: &ZonedDevice<'_>) -> u64 {
        let Range { start, end } = device.range;
        let (start, end) = (start.saturating_mul(SECTOR_BYTES), end.saturating_mul(SECTOR_BYTES));
        self.region.end.min(end).saturating_sub(self.region.start.max(start))
    }
}

/// Generators of zoned loads over the zoned devices of `system`: their zones have to be those of
/// the devices, and within their limits.
pub fn load(scenario: &Scenario, system: &ComponentTree) -> Vec<Diagnostic> {
    let all = ZonedLoad::all(scenario);
    let mut problems: Vec<Diagnostic> = Vec::new();
    for device in ZonedDevice::below(scenario, scenario.system, system, 0) {
        let loads: Vec<&ZonedLoad<'_>> = all.iter().filter(|it| it.bytes_on(&device) > 0).collect();
        let Some(layout) = device.layout else { continue };
        let each = |load: &&ZonedLoad<'_>| {
            sizes(load, &layout).into_iter().chain(random_area(load, &layout))
        };
        let found = loads.iter().flat_map(each).chain(limits(&loads, &device, &layout));
        let found: Vec<Diagnostic> = found.collect();
        // Devices of one kind have the same problems.
        for it in found {
            if !problems.iter().any(|known| (&known.key, &known.message) == (&it.key, &it.message))
            {
                problems.push(it);
            }
        }
    }
    problems
}

/// Sizes of zones that are not the device's.
fn sizes(load: &ZonedLoad<'_>, layout: &ZoneLayout) -> Vec<Diagnostic> {
    let ZonedLoad { key, settings: load, .. } = load;
    let [size, capacity] = [layout.size, layout.capacity].map(|sectors| sectors * SECTOR_BYTES);
    let ours = load.bytes("zone_size");
    let of_load = [ours, load.bytes_opt("zone_capacity").unwrap_or(ours)];
    let differs = |(name, (ours, theirs)): (&str, (u64, u64))| Diagnostic {
        span: None,
        key: format!("{key}.{name}"),
        message: format!(
            "{} is not the {} of the device's zones",
            write_bytes(ours),
            write_bytes(theirs)
        ),
        help: Some(format!("set {name} = \"{}\"", write_bytes(theirs))),
    };
    let pairs = of_load.into_iter().zip([size, capacity]);
    let both = ["zone_size", "zone_capacity"].into_iter().zip(pairs);
    both.filter(|(_, (ours, theirs))| ours != theirs).map(differs).collect()
}

/// Random write areas that the device does not have, or that do not hold what is outstanding.
fn random_area(load: &ZonedLoad<'_>, layout: &ZoneLayout) -> Option<Diagnostic> {
    let ZonedLoad { key, settings: load, .. } = load;
    if load.text("write") != "zrwa" {
        return None;
    }
    let problem = |name: &str, message: String, help: &str| {
        let (key, help) = (format!("{key}.{name}"), Some(help.to_owned()));
        Some(Diagnostic { span: None, key, message, help })
    };
    let Some(area) = layout.random else {
        let message = "the zones of the device have no random write areas".to_owned();
        return problem("write", message, "set zrwa_size on the device");
    };
    let bytes = u64::from(area.size - area.granularity.min(area.size)) * SECTOR_BYTES;
    // What is written again is one block behind.
    let blocks = load.count("depth") + 2 * u64::from(load.number("again") > 0.0);
    let needed = load.bytes("block").saturating_mul(blocks);
    // A single write may move the area by its size.
    let is_alone = blocks == 1 && needed <= 2 * u64::from(area.size) * SECTOR_BYTES;
    if needed <= bytes || is_alone {
        return None;
    }
    let message = format!(
        "{} are outstanding or written again at a time, and a random write area less a step of its \
         write pointer has {}",
        write_bytes(needed),
        write_bytes(bytes)
    );
    problem("depth", message, "lower `depth` or `block`, or enlarge `zrwa_size` of the device")
}

/// Whether zones are left after a part of them has been written.
fn leaves_partly_written(load: &Settings) -> bool {
    let fill = load.number("fill");
    fill > 0.0 && fill < 1.0 && !load.flag("finish")
}

/// More zones than the device has active, or explicitly open, at a time.
fn limits(
    loads: &[&ZonedLoad<'_>],
    device: &ZonedDevice<'_>,
    layout: &ZoneLayout,
) -> Vec<Diagnostic> {
    let Some(ZonedLoad { key, settings: first, .. }) = loads.first() else { return Vec::new() };
    let is_random = |it: &&&ZonedLoad<'_>| it.settings.text("write") == "zrwa";
    let all = |only_open: bool| -> u64 {
        let counted =
            loads.iter().filter(|it| !only_open || it.settings.flag("open") || is_random(it));
        counted
            .map(|it| match only_open {
                // A zone that is left while it is partly written stays explicitly open.
                true if leaves_partly_written(it.settings) => {
                    zones_active(it.settings, it.bytes_on(device))
                }
                true => it.settings.count("active"),
                false => zones_active(it.settings, it.bytes_on(device)),
            })
            .sum()
    };
    let with_area = loads.iter().filter(is_random).map(|it| it.settings.count("active")).sum();
    let partly = first.number("fill") < 1.0 && !first.flag("finish");
    let checks = [
        (
            ("max_active_zones", layout.active_max),
            (all(false), "active", "finish zones, or lower `active`"),
        ),
        (
            ("max_open_zones", layout.open_max),
            (all(true), "explicitly open", "lower `active`, or do without `open`"),
        ),
        (
            ("zrwa_zones", layout.random.map(|area| area.zones_max)),
            (with_area, "written in random write areas", "lower `active`"),
        ),
    ];
    type Check<'a> = ((&'a str, Option<u32>), (u64, &'a str, &'a str));
    let beyond = |((limit, max), (count, what, help)): Check<'_>| {
        let max = max.filter(|max| count > u64::from(*max))?;
        let why = if partly { "; zones left with `fill` below 1 stay active" } else { "" };
        Some(Diagnostic {
            span: None,
            key: format!("{key}.active"),
            message: format!(
                "up to {count} zones are {what} at a time, and `{limit}` of the device is \
                 {max}{why}"
            ),
            help: Some(help.to_owned()),
        })
    };
    checks.into_iter().filter_map(beyond).collect()
}
