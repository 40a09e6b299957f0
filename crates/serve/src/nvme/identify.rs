//! Identify: what controllers and namespaces are.

use super::command::{ALL_NAMESPACES, Command, Page};
use super::controller::{Controller, ENTRIES_MAX, ERRORS_MAX, EVENT_REQUESTS_MAX};
use super::fabrics::VERSION;
use super::queue::{CAPSULE_BYTES_MAX, Queue, TRANSFER_BYTES_MAX, TRANSFER_SHIFT};
use super::status::{Done, Outcome, Status};
use super::subsystem::Namespace;
use super::{discovery, pdu};
use hybridsim_engine::{RandomWriteAreas, SECTOR_BYTES};

const PAGE_BYTES: usize = 4096;
/// Identifiers of I/O command sets.
const NVM: u8 = 0;
const ZONED: u8 = 2;
/// Ranges of one copy, and of one dataset management command.
pub const COPY_RANGES_MAX: u8 = 128;
/// Limits that a namespace without a limit reports.
const NO_LIMIT: u32 = u32::MAX;

impl Queue {
    pub fn identify(&self, controller: &Controller, command: &Command) -> Outcome {
        let (structure, set) = (command.dword(10) as u8, (command.dword(11) >> 24) as u8);
        let data = match structure {
            0x01 => self.controller_data(controller),
            _ if controller.is_discovery => return Err(Status::INVALID_FIELD),
            0x00 if command.nsid == ALL_NAMESPACES => self.common(),
            0x00 => self.namespace_data(self.of(command)?),
            0x02 => self.list(command, |_| true)?,
            0x03 => self.descriptors(self.of(command)?),
            0x05..=0x07 if set != NVM && set != ZONED => return Err(Status::INVALID_FIELD),
            0x05 => specific(self.of(command)?, set)?,
            0x06 if set == NVM => nvm_limits(),
            // Zone appends are limited as all transfers.
            0x06 => Page::new(PAGE_BYTES),
            0x07 => self.list(command, |it| it.zones.is_some() == (set == ZONED))?,
            0x08 => self.of(command).map(|_| independent())?,
            0x13 => self.controllers(command),
            0x1C => self.command_sets(command)?,
            _ => return Err(Status::INVALID_FIELD),
        };
        Ok(Done::data(data.into_bytes()))
    }

    fn of(&self, command: &Command) -> Result<&Namespace, Status> {
        self.subsystem.namespace(command.nsid).ok_or(Status::INVALID_NAMESPACE)
    }

    /// Namespaces after the one named, in a list.
    fn list(&self, command: &Command, of: impl Fn(&Namespace) -> bool) -> Result<Page, Status> {
        if command.nsid >= ALL_NAMESPACES - 1 {
            return Err(Status::INVALID_NAMESPACE);
        }
        let all = self.subsystem.namespaces.iter();
        let listed = all.filter(|it| it.id > command.nsid && of(it)).take(PAGE_BYTES / 4);
        let mut page = Page::new(PAGE_BYTES);
        for (at, it) in listed.enumerate() {
            page.u32(at * 4, it.id);
        }
        Ok(page)
    }

    /// Controllers from the one named on.
    fn controllers(&self, command: &Command) -> Page {
        let first = (command.dword(10) >> 16) as u16;
        let controllers = self.subsystem.controllers.borrow();
        let is_listed = |id: &&u16| **id >= first && !controllers[*id].is_discovery;
        let mut list: Vec<u16> = controllers.keys().filter(is_listed).copied().collect();
        list.sort_unstable();
        let mut page = Page::new(PAGE_BYTES);
        page.u16(0, list.len() as u16);
        for (at, id) in list.into_iter().enumerate() {
            page.u16(2 + at * 2, id);
        }
        page
    }

    /// The combinations of I/O command sets: one, with all that namespaces have.
    fn command_sets(&self, command: &Command) -> Result<Page, Status> {
        let controller = (command.dword(10) >> 16) as u16;
        let own = self.controller().map(|it| it.id);
        if controller != u16::MAX && Some(controller) != own {
            return Err(Status::INVALID_FIELD);
        }
        let zoned = u64::from(self.subsystem.has_zones()) << ZONED;
        let mut page = Page::new(PAGE_BYTES);
        page.u64(0, 1 << NVM | zoned);
        Ok(page)
    }

    fn controller_data(&self, controller: &Controller) -> Page {
        let mut page = Page::new(PAGE_BYTES);
        let serial = format!("{:016X}", self.subsystem.identifier());
        page.text(4, 20, &serial, b' ').text(24, 40, "hybridsim simulated drive", b' ');
        page.text(64, 8, env!("CARGO_PKG_VERSION"), b' ');
        let kind = if controller.is_discovery { 2 } else { 1 };
        page.u8(77, TRANSFER_SHIFT).u16(78, controller.id).u32(80, VERSION).u8(111, kind);
        // Host identifiers have 128 bits, and traffic keeps a controller alive.
        let attributes = 1 | 1 << 6;
        page.u8(259, EVENT_REQUESTS_MAX as u8 - 1).u16(320, 10);
        // Any number of entries, SGLs by offset and by transport.
        page.u16(514, ENTRIES_MAX).u32(536, 1 | 1 << 20 | 1 << 21);
        if controller.is_discovery {
            page.u32(96, attributes).u8(261, 1 << 2).text(768, 256, discovery::NQN, 0);
            return page;
        }
        let placement = self.subsystem.placement.is_some();
        let flag = |set: bool, bit: u32| u32::from(set) << bit;
        page.u32(96, attributes | 1 << 4 | flag(placement, 19)).u16(340, 1);
        // Several controllers; directives.
        page.u8(76, 2).u16(256, flag(placement, 5) as u16);
        // Log pages: command effects and extended data.
        page.u8(260, 1 << 1 | 1).u8(261, 1 << 1 | 1 << 2).u8(258, 3).u8(262, ERRORS_MAX as u8 - 1);
        page.u64(280, self.subsystem.bytes());
        page.u8(512, 0x66).u8(513, 0x44).u32(516, self.subsystem.namespaces.len() as u32);
        // Compare, dataset management, write zeroes, timestamp, verify, copy.
        page.u16(520, 1 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8);
        // A volatile write cache, flushed for all namespaces too; copy descriptors of format 0.
        page.u8(525, 7).u16(534, 1);
        page.u32(540, self.subsystem.namespaces.len() as u32);
        page.text(768, 256, &self.subsystem.nqn, 0);
        let capsule = (pdu::COMMAND_BYTES + CAPSULE_BYTES_MAX) as u32 / 16;
        page.u32(1792, capsule).u32(1796, 1).u8(1803, 1);
        page
    }

    fn namespace_data(&self, of: &Namespace) -> Page {
        let mut page = self.common();
        page.u64(0, of.blocks());
        let capacity =
            of.zones.as_ref().map_or(of.sectors, |it| it.layout.capacity * it.layout.zones);
        page.u64(8, capacity >> of.shift).u64(16, capacity >> of.shift);
        // Sizes that are best for performance are given.
        page.u8(24, 1 << 4);
        page.put(48, (u128::from(of.sectors) * u128::from(SECTOR_BYTES)).to_le_bytes());
        let best = (1u16 << (3 - of.shift.min(3))) - 1;
        for at in [64, 66, 68, 70] {
            page.u16(at, best);
        }
        let blocks = (TRANSFER_BYTES_MAX >> of.block_shift()) as u32;
        page.u16(74, blocks.min(u32::from(u16::MAX)) as u16).u32(76, blocks);
        page.u8(80, COPY_RANGES_MAX - 1).u16(102, 1);
        page.put(104, of.identifier[0].to_be_bytes()).put(112, of.identifier[1].to_be_bytes());
        page.u32(128, of.block_shift() << 16);
        page
    }

    /// Fields common to all namespaces.
    fn common(&self) -> Page {
        let mut page = Page::new(PAGE_BYTES);
        // Shared by controllers; deallocated blocks read as zeros.
        page.u8(30, 1).u8(33, 1);
        page
    }

    fn descriptors(&self, of: &Namespace) -> Page {
        let mut page = Page::new(PAGE_BYTES);
        let set = if of.zones.is_some() { ZONED } else { NVM };
        // A globally unique identifier, then the command set.
        page.u8(0, 2).u8(1, 16);
        page.put(4, of.identifier[0].to_be_bytes()).put(12, of.identifier[1].to_be_bytes());
        page.u8(20, 4).u8(21, 1).u8(24, set);
        page
    }
}

/// The part of the description of a namespace that belongs to command set `set`.
fn specific(of: &Namespace, set: u8) -> Result<Page, Status> {
    let mut page = Page::new(PAGE_BYTES);
    if set != ZONED {
        return Ok(page);
    }
    let zones = of.zones.as_ref().ok_or(Status::INVALID_FIELD)?;
    let limit = |most: Option<u32>| most.map_or(NO_LIMIT, |most| most - 1);
    // Reads may cross the boundaries of zones.
    page.u16(2, 1).u32(4, limit(zones.layout.active_max)).u32(8, limit(zones.layout.open_max));
    page.u64(2816, zones.layout.size >> of.shift);
    let blocks = |sectors: u32| u16::try_from(sectors >> of.shift).ok();
    let sizes = |it: RandomWriteAreas| Some((it, blocks(it.granularity)?, blocks(it.size)?));
    // Areas that the fields cannot describe are not reported.
    if let Some((area, granularity, size)) = zones.layout.random.and_then(sizes) {
        // With explicit commits.
        page.u16(2, 0b11).u32(44, area.zones_max.min(zones.layout.zones as u32));
        page.u16(48, granularity).u16(50, size).u8(52, 1);
    }
    Ok(page)
}

/// Limits of the NVM command set.
fn nvm_limits() -> Page {
    let mut page = Page::new(PAGE_BYTES);
    // Verify is limited as transfers are; dataset management has no limit but 256 ranges.
    page.u8(0, TRANSFER_SHIFT);
    page
}

/// The part of the description of a namespace that does not depend on its command set.
fn independent() -> Page {
    let mut page = Page::new(PAGE_BYTES);
    // Shared; of endurance group 1; ready.
    page.u8(1, 1).u16(12, 1).u8(14, 1);
    page
}
