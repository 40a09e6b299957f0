//! Flexible data placement: the reclaim groups of the simulated SSD, and a reclaim unit handle for
//! each of its placement handles; always enabled.

use super::command::{Command, Page};
use super::status::{Done, Outcome, Status};
use super::subsystem::Smart;
use hybridsim_engine::{Health, Placements, SECTOR_BYTES};
use hybridsim_simulation::session::Handles;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Entries of the log of events.
const EVENTS_MAX: usize = 63;
const EVENT_BYTES: usize = 64;
/// A write named a reclaim group or placement handle that does not exist.
const INVALID_IDENTIFIER: u8 = 0x03;
/// Data placement, as a directive of a write.
const DIRECTIVE: u32 = 2;

#[derive(Clone, Copy)]
struct Event {
    kind: u8,
    identifier: u16,
    milliseconds: u64,
    nsid: u32,
}

pub struct Placement {
    placements: Placements,
    /// Sectors that hosts have written.
    written: Cell<u64>,
    /// Sectors of a reclaim unit.
    unit: u64,
    /// The figures of the flash when serving began.
    before: Health,
    events: RefCell<VecDeque<Event>>,
    reports_invalid: Cell<bool>,
    /// Whether copies stay with their handle.
    is_persistent: bool,
}

impl Placement {
    /// The placement of a drive of this health, with reclaim units of `unit` sectors.
    pub fn new(handles: Handles, before: Health, unit: u64) -> Self {
        let Handles { placements, isolates_copies: is_persistent } = handles;
        Self {
            placements,
            written: Cell::new(0),
            is_persistent,
            unit,
            before,
            events: RefCell::default(),
            reports_invalid: Cell::new(false),
        }
    }

    /// The placement identifier of a write of `sectors`, which is counted, in the 8 bits of
    /// requests. One that does not exist is reported as an event, and is as none.
    pub fn handle(&self, command: &Command, sectors: u64, milliseconds: u64) -> u8 {
        let identifier = (command.dword(13) >> 16) as u16;
        let is_placed = command.dword(12) >> 20 & 0xF == DIRECTIVE;
        let found = self.placements.find(identifier, u16::BITS).filter(|_| is_placed);
        self.written.set(self.written.get() + sectors);
        match found {
            Some(place) => self.placements.identifier(place, u8::BITS) as u8,
            None if is_placed => {
                let event = Event {
                    kind: INVALID_IDENTIFIER,
                    identifier,
                    milliseconds,
                    nsid: command.nsid,
                };
                if self.reports_invalid.get() {
                    let mut events = self.events.borrow_mut();
                    events.push_front(event);
                    events.truncate(EVENTS_MAX);
                }
                0
            }
            None => 0,
        }
    }

    /// Handles of a namespace in each reclaim group, and the sectors `left` of the unit that each
    /// of them writes.
    pub fn status(&self, shift: u32, left: impl Fn(u8) -> u64) -> Vec<u8> {
        let Placements { groups, handles } = self.placements;
        let count = usize::from(handles) * usize::from(groups);
        let mut page = Page::new(16 + 32 * count);
        page.u16(14, count as u16);
        let places = (0..handles).flat_map(|handle| (0..groups).map(move |group| (group, handle)));
        for (index, place) in places.enumerate() {
            let at = 16 + 32 * index;
            let identifier = self.placements.identifier(place, u16::BITS);
            let left = left(self.placements.identifier(place, u8::BITS) as u8);
            page.u16(at, identifier).u16(at + 2, place.1.into()).u64(at + 8, left >> shift);
        }
        page.into_bytes()
    }

    pub fn log_page(&self, page: u8, command: &Command, smart: &Smart) -> Result<Vec<u8>, Status> {
        Ok(match page {
            0x20 => self.configurations(),
            0x21 => self.usage(),
            0x22 => self.statistics(&smart.health),
            _ => self.event_page(command.dword(10) >> 8 & 1 != 0),
        }
        .into_bytes())
    }

    fn configurations(&self) -> Page {
        let Placements { groups, handles } = self.placements;
        let handles = usize::from(handles);
        let descriptor = (64 + 4 * handles).next_multiple_of(8);
        let mut page = Page::new(16 + descriptor);
        // One configuration, version 0.
        page.u32(4, 16 + descriptor as u32);
        let at = 16;
        // Valid, with the bits of identifiers that are the reclaim group.
        let attributes = 1 << 7 | self.placements.group_bits() as u8;
        page.u16(at, descriptor as u16).u8(at + 2, attributes).u32(at + 4, groups.into());
        page.u16(at + 8, handles as u16).u16(at + 10, handles as u16 - 1);
        page.u32(at + 12, u32::MAX).u64(at + 16, self.unit * SECTOR_BYTES);
        for handle in 0..handles {
            // Initially, or persistently isolated.
            page.u8(at + 64 + 4 * handle, if self.is_persistent { 2 } else { 1 });
        }
        page
    }

    fn usage(&self) -> Page {
        let handles = usize::from(self.placements.handles);
        let mut page = Page::new(8 + 8 * handles);
        page.u16(0, handles as u16);
        for handle in 0..handles {
            // Specified by the host.
            page.u8(8 + 8 * handle, 1);
        }
        page
    }

    /// Bytes that hosts wrote, that were programmed, and that were erased, since serving began.
    fn statistics(&self, now: &Health) -> Page {
        let mut page = Page::new(64);
        page.u64(0, self.written.get() * SECTOR_BYTES);
        page.u64(16, now.programmed_bytes.saturating_sub(self.before.programmed_bytes));
        page.u64(32, now.erased_bytes.saturating_sub(self.before.erased_bytes));
        page
    }

    /// Events that a host caused; the drive reports none of its own.
    fn event_page(&self, of_host: bool) -> Page {
        let events = self.events.borrow();
        let count = if of_host { events.len() } else { 0 };
        let mut page = Page::new(EVENT_BYTES * (1 + count));
        page.u32(0, count as u32);
        for (index, event) in events.iter().take(count).enumerate() {
            let at = EVENT_BYTES * (1 + index);
            // Identifier and namespace are valid.
            page.u8(at, event.kind).u8(at + 1, 1 | 1 << 1).u16(at + 2, event.identifier);
            page.u64(at + 4, event.milliseconds).u32(at + 12, event.nsid);
        }
        page
    }

    /// The events that handles report: one is supported.
    pub fn events_enabled(&self, command: &Command) -> Outcome {
        self.check_handle(command)?;
        let enabled = u8::from(self.reports_invalid.get());
        let data = vec![INVALID_IDENTIFIER, enabled];
        Ok(Done { result: 1, ..Done::data(data) })
    }

    /// Enables or disables events, for all handles.
    pub fn enable_events(&self, command: &Command, data: &[u8]) -> Outcome {
        self.check_handle(command)?;
        let count = (command.dword(11) >> 16 & 0xFF) as usize;
        let kinds = data.get(..count).ok_or(Status::SGL_LENGTH)?;
        if kinds.iter().any(|kind| *kind != INVALID_IDENTIFIER) {
            return Err(Status::INVALID_FIELD);
        }
        if count > 0 {
            self.reports_invalid.set(command.dword(12) & 1 != 0);
        }
        Ok(Done::default())
    }

    fn check_handle(&self, command: &Command) -> Result<(), Status> {
        let handle = command.dword(11) as usize & 0xFFFF;
        if handle < usize::from(self.placements.handles) {
            Ok(())
        } else {
            Err(Status::INVALID_FIELD)
        }
    }
}
