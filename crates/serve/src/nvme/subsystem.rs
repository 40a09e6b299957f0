//! The subsystem: its namespaces and controllers, and counts over all of them.

use super::controller::Controller;
use super::placement::Placement;
use super::zoned::Zones;
use crate::drive::Drive;
use crate::exports::{Export, Exports};
use hybridsim_config::units;
use hybridsim_engine::{Health, SECTOR_BYTES, ZoneLayout};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The qualified name of a subsystem that is not given another.
pub const NQN: &str = "nqn.2026-11.local.hybridsim:drive";
const NQN_BYTES_MAX: usize = 223;
/// Controllers at a time.
const CONTROLLERS_MAX: usize = 64;
/// Sectors of a block of 4 KiB, as a power of two.
const SHIFT_4KIB: u32 = 3;

/// `name`, if a subsystem may have it as its NVMe qualified name.
///
/// # Errors
/// The form of such a name, in words.
pub fn qualified_name(name: &str) -> Result<String, String> {
    let is_qualified = name.starts_with("nqn.")
        && name != super::discovery::NQN
        && name.len() <= NQN_BYTES_MAX
        && name.bytes().all(|byte| byte.is_ascii_graphic());
    is_qualified.then(|| name.to_owned()).ok_or_else(|| {
        format!("a qualified name has up to {NQN_BYTES_MAX} characters and no space, such as {NQN}")
    })
}

/// A namespace.
pub struct Namespace {
    /// From 1 on.
    pub id: u32,
    /// First sector on the device.
    pub first: u64,
    pub sectors: u64,
    /// Sectors of a logical block, as a power of two.
    pub shift: u32,
    pub zones: Option<Zones>,
    /// Two halves of the globally unique identifier.
    pub identifier: [u64; 2],
}

impl Namespace {
    pub const fn blocks(&self) -> u64 {
        self.sectors >> self.shift
    }

    /// Bytes of a logical block, as a power of two.
    pub const fn block_shift(&self) -> u32 {
        self.shift + SECTOR_BYTES.trailing_zeros()
    }
}

/// Commands and data since the server started.
#[derive(Default)]
pub struct Counts {
    pub sectors_read: Cell<u64>,
    pub sectors_written: Cell<u64>,
    pub reads: Cell<u64>,
    pub writes: Cell<u64>,
    pub media_errors: Cell<u64>,
    pub errors: Cell<u64>,
}

/// Adds to a count.
pub fn count(cell: &Cell<u64>, more: u64) {
    cell.set(cell.get() + more);
}

pub struct Subsystem {
    pub title: String,
    /// The NVMe qualified name of the subsystem, as [`qualified_name`] takes it.
    pub nqn: String,
    pub namespaces: Vec<Namespace>,
    pub controllers: RefCell<FxHashMap<u16, Rc<Controller>>>,
    pub counts: Counts,
    pub placement: Option<Placement>,
    next: Cell<u16>,
}

impl Subsystem {
    /// Bytes of all namespaces.
    pub fn bytes(&self) -> u64 {
        self.namespaces.iter().map(|it| it.sectors * SECTOR_BYTES).sum()
    }

    /// The subsystem of `drive`: a namespace for each of `exports`, or for each zoned device.
    ///
    /// # Errors
    /// An export that does not consist of whole zones, and zones of several devices.
    pub fn new(drive: &Drive, exports: &Exports, title: &str, nqn: String) -> Result<Self, String> {
        let zoned = drive.zoned();
        if zoned.is_empty() && drive.has_zones() {
            return Err("zones that consist of zones of several devices, as those of a `stripe`, \
                        are not presented; serve a `concat`, or a `log-structured` layer above"
                .to_owned());
        }
        let mut namespaces: Vec<Namespace> = Vec::new();
        let whole = exports.iter().all(|it| it.name.is_empty());
        let parts: Vec<Export> = match zoned.as_slice() {
            [] => exports.iter().cloned().collect(),
            _ if !whole => exports.iter().cloned().collect(),
            all => {
                let part = |(first, layout): &(u64, ZoneLayout)| {
                    let sectors = layout.size * layout.zones;
                    Export { name: String::new(), first: *first, sectors }
                };
                all.iter().map(part).collect()
            }
        };
        for (id, Export { name, first, sectors }) in (1..).zip(parts) {
            let zones = zones_of(&zoned, first, sectors)
                .map_err(|problem| format!("--export {name}: {problem}"))?;
            let shift = match &zones {
                Some(zones) => zones.layout.page.trailing_zeros(),
                None if first.is_multiple_of(8) && sectors.is_multiple_of(8) => SHIFT_4KIB,
                None => 0,
            };
            let identifier = [0, 1].map(|half| hash(&format!("{nqn}/{title}/{id}/{half}")));
            namespaces.push(Namespace { id, first, sectors, shift, zones, identifier });
        }
        let handles = drive.placement_handles();
        let placement = handles.map(|it| {
            let unit = drive.unit(it.placements.groups);
            Placement::new(it, drive.health().unwrap_or_default(), unit)
        });
        Ok(Self {
            title: title.to_owned(),
            nqn,
            namespaces,
            controllers: RefCell::default(),
            counts: Counts::default(),
            placement,
            next: Cell::new(1),
        })
    }

    /// A number that is the same whenever the same system is served under the same name.
    pub fn identifier(&self) -> u64 {
        hash(&format!("{}/{}", self.nqn, self.title))
    }

    pub fn namespace(&self, id: u32) -> Option<&Namespace> {
        self.namespaces.get((id as usize).checked_sub(1)?)
    }

    /// Whether a namespace has zones.
    pub fn has_zones(&self) -> bool {
        self.namespaces.iter().any(|it| it.zones.is_some())
    }

    /// A number for a further controller; `None` if there are too many.
    pub fn number(&self) -> Option<u16> {
        let controllers = self.controllers.borrow();
        if controllers.len() >= CONTROLLERS_MAX {
            return None;
        }
        loop {
            // FFF0h and greater are reserved.
            let number = self.next.replace(self.next.get() % 0xFFEF + 1);
            if !controllers.contains_key(&number) {
                return Some(number);
            }
        }
    }

    /// Ends a controller, with the connections of its queues.
    pub fn remove(&self, controller: &Controller) {
        self.controllers.borrow_mut().remove(&controller.id);
        controller.close_queues();
    }
}

/// The zones in a part of the device; an error if it does not consist of whole zones.
fn zones_of(
    zoned: &[(u64, ZoneLayout)],
    first: u64,
    sectors: u64,
) -> Result<Option<Zones>, String> {
    for (device, (start, layout)) in zoned.iter().enumerate() {
        let end = start + layout.size * layout.zones;
        if first + sectors <= *start || end <= first {
            continue;
        }
        let whole = first >= *start
            && first + sectors <= end
            && (first - start).is_multiple_of(layout.size)
            && sectors.is_multiple_of(layout.size);
        if !whole {
            let size = units::write_bytes(layout.size * SECTOR_BYTES);
            return Err(format!("it has to consist of whole zones of one device, of {size}"));
        }
        if !layout.page.is_power_of_two() {
            return Err("logical blocks are pages, whose size has to be a power of two".to_owned());
        }
        let first = (first - start) / layout.size;
        let zones = ZoneLayout { zones: sectors / layout.size, ..*layout };
        return Ok(Some(Zones::new(device, first, zones)));
    }
    Ok(None)
}

/// FNV-1a: an identifier that is the same whenever the same system is served.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    })
}

/// The health of the drive in the units of log pages.
pub struct Smart {
    pub critical: u8,
    pub kelvin: u16,
    pub spare: u8,
    pub used: u8,
    pub health: Health,
}

/// Below this share of spare blocks, in percent, a critical warning is reported.
pub const SPARE_THRESHOLD: u8 = 10;
/// Bits of critical warnings.
pub const CRITICAL_SPARE: u8 = 1;
pub const CRITICAL_TEMPERATURE: u8 = 2;
pub const CRITICAL_RELIABILITY: u8 = 4;

impl Smart {
    /// `health` is `None` for systems without flash; `threshold` is the temperature, in kelvins,
    /// from which on a warning is reported.
    pub fn new(health: Option<Health>, threshold: u16) -> Self {
        let intact = Health { spare: 1.0, ..Health::default() };
        let health = health.unwrap_or(intact);
        let kelvin = health.celsius.map_or(0, |it| (it + 273.15).round().max(0.0) as u16);
        let spare = (health.spare * 100.0).clamp(0.0, 100.0) as u8;
        let used = (health.used * 100.0).round().clamp(0.0, 255.0) as u8;
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let critical = bit(spare < SPARE_THRESHOLD, CRITICAL_SPARE)
            | bit(kelvin != 0 && kelvin >= threshold, CRITICAL_TEMPERATURE)
            | bit(used >= 100, CRITICAL_RELIABILITY);
        Self { critical, kelvin, spare, used, health }
    }
}
