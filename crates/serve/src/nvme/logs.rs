//! Log pages.

use super::admin;
use super::command::{Command, Page};
use super::controller::{Controller, ERRORS_MAX, Event};
use super::discovery;
use super::io;
use super::queue::{Queue, TRANSFER_BYTES_MAX};
use super::status::{Done, Outcome, Status};
use super::subsystem::{SPARE_THRESHOLD, Smart};
use hybridsim_engine::SECTOR_BYTES;
use std::cell::Cell;

mod id {
    pub const SUPPORTED: u8 = 0x00;
    pub const ERRORS: u8 = 0x01;
    pub const HEALTH: u8 = 0x02;
    pub const FIRMWARE: u8 = 0x03;
    pub const CHANGED: u8 = 0x04;
    pub const EFFECTS: u8 = 0x05;
    pub const ENDURANCE: u8 = 0x09;
    pub const PLACEMENT: [u8; 4] = [0x20, 0x21, 0x22, 0x23];
    pub const DISCOVERY: u8 = 0x70;
    pub const OCP: u8 = 0xC0;
}

/// Identifies the format of log page C0h.
const OCP_GUID: [u8; 16] = 0xAFD5_14C9_7C6F_4F9C_A4F2_BFEA_2810_AFC5_u128.to_le_bytes();
/// Data units of the health log: 1,000 sectors.
const UNIT_SECTORS: u64 = 1000;
const NS_PER_HOUR: u64 = 3_600_000_000_000;
const ERROR_BYTES: usize = 64;

impl Queue {
    pub fn log_page(&self, controller: &Controller, command: &Command) -> Outcome {
        let (page, retains) = (command.dword(10) as u8, command.dword(10) >> 15 & 1 != 0);
        let dwords =
            u64::from(command.dword(10) >> 16) | u64::from(command.dword(11) & 0xFFFF) << 16;
        let (length, offset) = ((dwords + 1) * 4, command.quad(12));
        if length > TRANSFER_BYTES_MAX as u64 || offset % 4 != 0 || command.dword(14) >> 23 & 1 != 0
        {
            return Err(Status::INVALID_FIELD);
        }
        let mut data = self.page(page, controller, command)?;
        let offset = usize::try_from(offset).map_err(|_| Status::INVALID_FIELD)?;
        if offset > data.len() {
            return Err(Status::INVALID_FIELD);
        }
        data.drain(..offset);
        data.resize(length as usize, 0);
        if !retains {
            controller.read_log(page);
        }
        Ok(Done::data(data))
    }

    fn page(
        &self,
        page: u8,
        controller: &Controller,
        command: &Command,
    ) -> Result<Vec<u8>, Status> {
        let group = command.dword(11) >> 16;
        let page = match page {
            id::DISCOVERY if controller.is_discovery => {
                let address = self.connection.local_address();
                let nqn = &self.subsystem.nqn;
                let page = address.map(|address| discovery::log_page(nqn, address));
                return page.ok_or(Status::INVALID_LOG_PAGE);
            }
            _ if controller.is_discovery => return Err(Status::INVALID_LOG_PAGE),
            id::SUPPORTED => self.supported(),
            id::ERRORS => errors(controller),
            id::HEALTH => self.health(controller),
            id::FIRMWARE => {
                let mut page = Page::new(512);
                page.u8(0, 1).text(8, 8, env!("CARGO_PKG_VERSION"), b' ');
                page
            }
            // No namespace changes while the server runs.
            id::CHANGED => Page::new(4096),
            id::EFFECTS => self.effects((command.dword(14) >> 24) as u8)?,
            id::ENDURANCE if group == 1 => self.endurance(controller),
            id::OCP => self.ocp(controller),
            0x20..=0x23 if group == 1 => {
                return self.placement()?.log_page(page, command, &self.figures(controller));
            }
            id::ENDURANCE | 0x20..=0x23 => return Err(Status::INVALID_FIELD),
            _ => return Err(Status::INVALID_LOG_PAGE),
        };
        Ok(page.into_bytes())
    }

    fn supported(&self) -> Page {
        let mut page = Page::new(1024);
        let placement: &[u8] =
            if self.subsystem.placement.is_some() { &id::PLACEMENT } else { &[] };
        let always = [
            id::SUPPORTED,
            id::ERRORS,
            id::HEALTH,
            id::FIRMWARE,
            id::CHANGED,
            id::EFFECTS,
            id::ENDURANCE,
            id::OCP,
        ];
        for id in always.iter().chain(placement) {
            page.u32(usize::from(*id) * 4, 1);
        }
        page
    }

    /// The health of the drive now.
    pub fn figures(&self, controller: &Controller) -> Smart {
        let threshold = controller.features.warning_kelvin.get();
        Smart::new(self.server.with_drive(|drive| drive.health()), threshold)
    }

    fn health(&self, controller: &Controller) -> Page {
        let smart = self.figures(controller);
        let counts = &self.subsystem.counts;
        let (hours, cuts) = self
            .server
            .with_drive(|drive| (drive.now().as_ns() / NS_PER_HOUR, drive.served.power_cuts));
        let units = |sectors: &Cell<u64>| sectors.get().div_ceil(UNIT_SECTORS);
        let mut page = Page::new(512);
        page.u8(0, smart.critical).u16(1, smart.kelvin).u8(3, smart.spare);
        page.u8(4, SPARE_THRESHOLD).u8(5, smart.used);
        page.u64(32, units(&counts.sectors_read)).u64(48, units(&counts.sectors_written));
        page.u64(64, counts.reads.get()).u64(80, counts.writes.get());
        page.u64(112, 1 + cuts).u64(128, hours).u64(144, cuts);
        page.u64(160, counts.media_errors.get()).u64(176, counts.errors.get());
        page
    }

    /// The commands that are supported, and whether they change data.
    fn effects(&self, set: u8) -> Result<Page, Status> {
        let zoned: &[(u8, bool)] = match set {
            0 => &[],
            2 => &io::ZONED_COMMANDS,
            _ => return Err(Status::INVALID_FIELD),
        };
        let is_placing = self.subsystem.placement.is_some();
        let mut page = Page::new(4096);
        for opcode in admin::OPCODES.iter().filter(|it| is_placing || !admin::is_placing(**it)) {
            page.u32(usize::from(*opcode) * 4, 1);
        }
        let io = io::COMMANDS.iter().filter(|(it, _)| is_placing || !io::is_placing(*it));
        for (opcode, changes) in zoned.iter().chain(io) {
            page.u32(1024 + usize::from(*opcode) * 4, 1 | u32::from(*changes) << 1);
        }
        Ok(page)
    }

    fn endurance(&self, controller: &Controller) -> Page {
        let smart = self.figures(controller);
        let counts = &self.subsystem.counts;
        let billions = |bytes: u64| bytes.div_ceil(1_000_000_000);
        let of = |sectors: &Cell<u64>| billions(sectors.get() * SECTOR_BYTES);
        let mut page = Page::new(512);
        // The bit of the temperature is not one of endurance groups.
        page.u8(0, smart.critical & !2).u8(3, smart.spare).u8(4, SPARE_THRESHOLD).u8(5, smart.used);
        page.u64(48, of(&counts.sectors_read)).u64(64, of(&counts.sectors_written));
        page.u64(80, billions(smart.health.programmed_bytes));
        page.u64(96, counts.reads.get()).u64(112, counts.writes.get());
        page.u64(128, counts.media_errors.get())
            .u64(144, counts.errors.get())
            .u64(160, self.subsystem.bytes());
        page
    }

    /// The extended health page of the OCP Datacenter NVMe SSD Specification.
    fn ocp(&self, controller: &Controller) -> Page {
        let Smart { spare, health, .. } = self.figures(controller);
        let counts = &self.subsystem.counts;
        let mut page = Page::new(512);
        // Reads are those of hosts: the simulated flash counts no others.
        page.u64(0, health.programmed_bytes).u64(16, counts.sectors_read.get() * SECTOR_BYTES);
        // Worn-out blocks: how many, and the share of spare ones that is left.
        page.put(32, health.retired_blocks.to_le_bytes()).u16(38, u16::from(spare));
        page.u16(46, 100).u64(56, counts.media_errors.get());
        page.u32(88, health.erases[1]).u32(92, health.erases[0]);
        let cuts = self.server.with_drive(|drive| drive.served.power_cuts);
        page.u16(101, 0).u8(103, 2).u32(112, cuts as u32);
        page.u8(120, (health.free * 100.0) as u8);
        page.u64(152, self.subsystem.bytes()).u16(494, 3).put(496, OCP_GUID);
        page
    }

    /// Reports critical warnings that are new.
    pub fn check_health(&self, controller: &Controller) {
        if controller.is_discovery || !controller.is_ready() {
            return;
        }
        let now = self.figures(controller).critical & controller.features.events.get() as u8;
        let new = now & !controller.warned.replace(now);
        // The information of the event, for each of the bits.
        for (bit, information) in [(4, 0), (2, 1), (1, 2)] {
            if new & bit != 0 {
                controller.raise(Event(1, information, id::HEALTH));
            }
        }
    }
}

fn errors(controller: &Controller) -> Page {
    let mut page = Page::new(ERRORS_MAX * ERROR_BYTES);
    for (index, failed) in controller.errors.borrow().iter().enumerate() {
        let at = index * ERROR_BYTES;
        page.u64(at, failed.count).u16(at + 8, failed.queue).u16(at + 10, failed.command);
        page.u16(at + 12, failed.status.code() << 1).u16(at + 14, u16::MAX);
        // TCP.
        page.u64(at + 16, failed.lba).u32(at + 24, failed.nsid).u8(at + 29, 3);
    }
    page
}
