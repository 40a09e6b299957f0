//! Zones of a namespace: reports, management, and the order of what writes a zone.
//!
//! The zones themselves are the simulated device's. A write names the sector it goes to, so an
//! append is submitted for the sector that it will be written to: the write pointer after all that
//! is outstanding in its zone. So that this is known, management waits for the writes of its zone
//! and they for it, and only one write is outstanding while it may still have to open the zone.

use super::command::{Command, Page};
use super::queue::Queue;
use super::status::{Done, Outcome, Status};
use super::subsystem::Namespace;
use crate::drive::Kind;
use crate::server::Server;
use hybridsim_engine::{Flags, RandomWriteAreas, ZoneAction, ZoneInfo, ZoneLayout, ZoneState};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use tokio::sync::Notify;

const HEADER_BYTES: usize = 64;
const DESCRIPTOR_BYTES: usize = 64;
/// Zones looked at in one go by a report.
const REPORT_ZONES_MAX: u64 = 1 << 20;

/// Outstanding in a zone.
#[derive(Clone, Copy, Default)]
struct Traffic {
    writes: u32,
    is_managed: bool,
    /// Place of the next write, in sectors from the start of the zone: the write pointer after
    /// those that are outstanding.
    next: u64,
}

/// The zones of a namespace.
pub struct Zones {
    /// Number of the zoned device, and its first zone of the namespace.
    device: usize,
    first: u64,
    pub layout: ZoneLayout,
    traffic: RefCell<FxHashMap<u64, Traffic>>,
    changed: Notify,
}

/// A write under way in a zone; it ends when this is dropped.
pub struct Writing<'a> {
    zones: &'a Zones,
    zone: u64,
    /// Sector of the namespace at which it begins.
    pub sector: u64,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.zones.end(self.zone, |it| it.writes -= 1);
    }
}

struct Managing<'a>(&'a Zones, u64);

impl Drop for Managing<'_> {
    fn drop(&mut self) {
        self.0.end(self.1, |it| it.is_managed = false);
    }
}

const fn is_open(state: ZoneState) -> bool {
    matches!(state, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen)
}

impl Zones {
    pub fn new(device: usize, first: u64, layout: ZoneLayout) -> Self {
        let (traffic, changed) = (RefCell::default(), Notify::new());
        Self { device, first, layout, traffic, changed }
    }

    fn info(&self, server: &Server, zone: u64) -> ZoneInfo {
        let info = server.with_drive(|drive| drive.zone(self.device, self.first + zone));
        info.unwrap_or(ZoneInfo { state: ZoneState::Offline, written: 0, is_random: false })
    }

    fn traffic(&self, zone: u64) -> Traffic {
        self.traffic.borrow().get(&zone).copied().unwrap_or_default()
    }

    fn end(&self, zone: u64, change: impl Fn(&mut Traffic)) {
        let mut traffic = self.traffic.borrow_mut();
        if let Some(it) = traffic.get_mut(&zone) {
            change(it);
            if it.writes == 0 && !it.is_managed {
                traffic.remove(&zone);
            }
        }
        drop(traffic);
        self.changed.notify_waiters();
    }

    /// Begins a write of `sectors` at `sector` of the namespace, or where the zone is written next
    /// for an append.
    pub async fn write(
        &self,
        server: &Server,
        (sector, sectors): (u64, u64),
        is_append: bool,
    ) -> Result<Writing<'_>, Status> {
        let (zone, within) = (sector / self.layout.size, sector % self.layout.size);
        let (info, before) = loop {
            let (info, traffic) = (self.info(server, zone), self.traffic(zone));
            if !traffic.is_managed && (traffic.writes == 0 || is_open(info.state)) {
                break (info, traffic);
            }
            self.changed.notified().await;
        };
        let next = if before.writes == 0 { info.written } else { before.next };
        match info.state {
            ZoneState::Full => return Err(Status::ZONE_FULL),
            ZoneState::Offline => return Err(Status::ZONE_OFFLINE),
            _ if next == self.layout.capacity => return Err(Status::ZONE_FULL),
            _ => {}
        }
        if is_append && info.is_random {
            return Err(Status::ZONE_INVALID_OPERATION);
        }
        let at = if is_append { next } else { within };
        let (end, capacity) = (at + sectors, self.layout.capacity);
        if end > capacity {
            return Err(Status::ZONE_BOUNDARY);
        }
        let area = self.layout.random.filter(|_| info.is_random);
        if !area.map_or(at == next, |area| area.fits(next, at, end)) {
            return Err(Status::ZONE_INVALID_WRITE);
        }
        let next = area.map_or(end, |area| area.moved_by(next, end, capacity));
        self.check_limits(server, info.state)?;
        let traffic = Traffic { writes: before.writes + 1, is_managed: false, next };
        self.traffic.borrow_mut().insert(zone, traffic);
        Ok(Writing { zones: self, zone, sector: zone * self.layout.size + at })
    }

    /// Whether a zone in `state` can become active. The device closes others where it may.
    fn check_limits(&self, server: &Server, state: ZoneState) -> Result<(), Status> {
        let (_, active) = server.with_drive(|drive| drive.active_zones(self.device));
        let is_full = self.layout.active_max.is_some_and(|most| active >= most);
        if state == ZoneState::Empty && is_full { Err(Status::TOO_MANY_ACTIVE) } else { Ok(()) }
    }

    /// Waits until nothing is outstanding in a zone, and keeps it so.
    async fn manage(&self, zone: u64) -> Managing<'_> {
        loop {
            let Traffic { writes, is_managed, .. } = self.traffic(zone);
            if writes == 0 && !is_managed {
                break;
            }
            self.changed.notified().await;
        }
        self.traffic.borrow_mut().insert(zone, Traffic { is_managed: true, ..Traffic::default() });
        Managing(self, zone)
    }

    /// The status of a write that the device refused although the zone could take it.
    pub fn refused(&self, server: &Server, sector: u64) -> Status {
        let (open, active) = server.with_drive(|drive| drive.active_zones(self.device));
        let reaches = |count: u32, most: Option<u32>| most.is_some_and(|most| count >= most);
        match self.info(server, sector / self.layout.size).state {
            ZoneState::Offline => Status::ZONE_OFFLINE,
            ZoneState::Empty if reaches(active, self.layout.active_max) => Status::TOO_MANY_ACTIVE,
            ZoneState::Empty | ZoneState::Closed if reaches(open, self.layout.open_max) => {
                Status::TOO_MANY_OPEN
            }
            _ => Status::WRITE_FAULT,
        }
    }

    /// Whether fewer zones have a random write area than may.
    fn has_areas(&self, server: &Server, areas: RandomWriteAreas) -> bool {
        let random = (0..self.layout.zones).filter(|zone| self.info(server, *zone).is_random);
        (random.count() as u32) < areas.zones_max
    }

    /// Whether reads of a range meet a zone that is offline.
    pub fn is_offline(&self, server: &Server, sector: u64, sectors: u64) -> bool {
        let zones = sector / self.layout.size..=(sector + sectors - 1) / self.layout.size;
        zones.into_iter().any(|zone| self.info(server, zone).state == ZoneState::Offline)
    }
}

/// Why an action is refused in a state, if it is.
fn refusal(action: ZoneAction, state: ZoneState) -> Option<Status> {
    let refused = matches!(
        (action, state),
        (_, ZoneState::Offline)
            | (ZoneAction::Open, ZoneState::Full)
            | (ZoneAction::Close, ZoneState::Empty | ZoneState::Full)
    );
    refused.then_some(Status::ZONE_TRANSITION)
}

/// Whether an action on all zones applies to those in `state`.
fn is_selected(action: ZoneAction, state: ZoneState) -> bool {
    match action {
        ZoneAction::Close => is_open(state),
        ZoneAction::Finish => is_open(state) || state == ZoneState::Closed,
        ZoneAction::Open => state == ZoneState::Closed,
        ZoneAction::Reset => !matches!(state, ZoneState::Empty | ZoneState::Offline),
        ZoneAction::Commit => false,
    }
}

/// The code of a state in reports.
const fn code(state: ZoneState) -> u8 {
    match state {
        ZoneState::Empty => 1,
        ZoneState::ImplicitlyOpen => 2,
        ZoneState::ExplicitlyOpen => 3,
        ZoneState::Closed => 4,
        ZoneState::Full => 14,
        ZoneState::Offline => 15,
    }
}

/// The state that a filter of a report selects.
fn selected(filter: u8) -> Result<Option<u8>, Status> {
    Ok(Some(match filter {
        0 => return Ok(None),
        1..=4 => filter,
        5 => 14,
        // Read only: there are none.
        6 => 13,
        7 => 15,
        _ => return Err(Status::INVALID_FIELD),
    }))
}

impl Queue {
    /// Zone management send.
    pub async fn zone_send(&self, namespace: &Namespace, command: &Command) -> Outcome {
        let zones = namespace.zones.as_ref().ok_or(Status::INVALID_OPCODE)?;
        let (code, all) = (command.dword(13) as u8, command.dword(13) >> 8 & 1 != 0);
        let has_area = command.dword(13) >> 9 & 1 != 0;
        let action = match code {
            1 => ZoneAction::Close,
            2 => ZoneAction::Finish,
            3 => ZoneAction::Open,
            4 => ZoneAction::Reset,
            0x11 if !all => ZoneAction::Commit,
            _ => return Err(Status::INVALID_FIELD),
        };
        let flags = match (action, has_area) {
            (ZoneAction::Open, true) if all => return Err(Status::INVALID_FIELD),
            (ZoneAction::Open, true) => Flags::RANDOM_WRITE_AREA,
            _ => Flags::NONE,
        };
        if all {
            for zone in 0..zones.layout.zones {
                if is_selected(action, zones.info(&self.server, zone).state) {
                    self.act(namespace, zones, (zone, action, flags), all).await?;
                }
            }
            return Ok(Done::default());
        }
        let block = command.quad(10);
        if block >= namespace.blocks() {
            return Err(Status::LBA_RANGE);
        }
        let sector = block << namespace.shift;
        if action == ZoneAction::Commit {
            // It names the last block before the new write pointer.
            return self.commit(namespace, zones, sector + (1 << namespace.shift)).await;
        }
        if !sector.is_multiple_of(zones.layout.size) {
            return Err(Status::INVALID_FIELD);
        }
        self.act(namespace, zones, (sector / zones.layout.size, action, flags), all).await?;
        Ok(Done::default())
    }

    /// Moves the write pointer of a zone with a random write area to sector `end` of the namespace.
    async fn commit(&self, namespace: &Namespace, zones: &Zones, end: u64) -> Outcome {
        let ZoneLayout { size, capacity, random, .. } = zones.layout;
        let zone = (end - 1) / size;
        let _managing = zones.manage(zone).await;
        let ZoneInfo { written, is_random, .. } = zones.info(&self.server, zone);
        let area = random.filter(|_| is_random).ok_or(Status::ZONE_INVALID_OPERATION)?;
        let to = end - zone * size;
        if !area.may_commit(written, to, capacity) {
            return Err(Status::INVALID_FIELD);
        }
        let first = namespace.first + zone * size;
        let done = self.job(Kind::Zone(ZoneAction::Commit), first, to, Flags::NONE).await;
        done.map(|_| Done::default()).map_err(|_| Status::INTERNAL_ERROR)
    }

    async fn act(
        &self,
        namespace: &Namespace,
        zones: &Zones,
        (zone, action, flags): (u64, ZoneAction, Flags),
        is_one_of_all: bool,
    ) -> Result<(), Status> {
        let _managing = zones.manage(zone).await;
        let state = zones.info(&self.server, zone).state;
        if is_one_of_all && !is_selected(action, state) {
            return Ok(()); // A write that was outstanding has filled it.
        }
        let area = zones.layout.random;
        let has_area = flags.contains(Flags::RANDOM_WRITE_AREA);
        if has_area && area.is_none() {
            return Err(Status::INVALID_FIELD);
        }
        if has_area && !matches!(state, ZoneState::Empty | ZoneState::Offline) {
            return Err(Status::ZONE_INVALID_OPERATION);
        }
        if let Some(status) = refusal(action, state) {
            return Err(status);
        }
        if action == ZoneAction::Open {
            zones.check_limits(&self.server, state)?;
        }
        let first = namespace.first + zone * zones.layout.size;
        let done = self.job(Kind::Zone(action), first, zones.layout.size, flags).await;
        let failed = |_| match action {
            ZoneAction::Open
                if area.is_some_and(|it| has_area && !zones.has_areas(&self.server, it)) =>
            {
                Status::NO_RANDOM_WRITE_AREA
            }
            ZoneAction::Open => zones.refused(&self.server, zone * zones.layout.size),
            _ => Status::INTERNAL_ERROR,
        };
        done.map(drop).map_err(failed)
    }

    /// Zone management receive: a report of zones.
    pub fn zone_receive(&self, namespace: &Namespace, command: &Command) -> Outcome {
        let zones = namespace.zones.as_ref().ok_or(Status::INVALID_OPCODE)?;
        let options = command.dword(13);
        let (action, filter, is_partial) = (options as u8, (options >> 8) as u8, options >> 16 & 1);
        let block = command.quad(10);
        if block >= namespace.blocks() {
            return Err(Status::LBA_RANGE);
        }
        if action != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let filter = selected(filter)?;
        let length = (u64::from(command.dword(12)) + 1) * 4;
        let (given, _) = command.data()?;
        if length > given as u64 || length < HEADER_BYTES as u64 {
            return Err(Status::INVALID_FIELD);
        }
        let length = length as usize;
        let room = (length - HEADER_BYTES) / DESCRIPTOR_BYTES;
        let mut page = Page::new(length);
        let first = (block << namespace.shift) / zones.layout.size;
        let mut count = 0;
        for zone in (first..zones.layout.zones).take(REPORT_ZONES_MAX as usize) {
            let info = zones.info(&self.server, zone);
            if filter.is_some_and(|it| it != code(info.state)) {
                continue;
            }
            if count < room {
                describe(
                    &mut page,
                    HEADER_BYTES + count * DESCRIPTOR_BYTES,
                    namespace,
                    (zone, info),
                );
            } else if is_partial != 0 {
                break;
            }
            count += 1;
        }
        page.u64(0, count as u64);
        Ok(Done::data(page.into_bytes()))
    }
}

fn describe(page: &mut Page, at: usize, namespace: &Namespace, (zone, info): (u64, ZoneInfo)) {
    let Some(zones) = &namespace.zones else { return };
    let start = zone * zones.layout.size;
    let pointer = match info.state {
        ZoneState::Full | ZoneState::Offline => u64::MAX,
        _ => (start + info.written) >> namespace.shift,
    };
    // Sequential writes are required.
    page.u8(at, 2).u8(at + 1, code(info.state) << 4).u8(at + 2, u8::from(info.is_random) << 3);
    page.u64(at + 8, zones.layout.capacity >> namespace.shift);
    page.u64(at + 16, start >> namespace.shift).u64(at + 24, pointer);
}
