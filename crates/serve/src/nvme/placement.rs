//! Flexible data placement: one reclaim group, a reclaim unit handle for each placement handle of
//! the simulated SSD, always enabled.

use super::command::{Command, Page};
use super::status::{Done, Outcome, Status};
use super::subsystem::Smart;
use hybridsim_engine::{Health, SECTOR_BYTES};
use hybridsim_simulation::session::Handles;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Entries of the log of events.
const EVENTS_MAX: usize = 63;
const EVENT_BYTES: usize = 64;
/// A write named a placement handle that does not exist.
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
    handles: u8,
    /// Sectors that hosts have written.
    written: Cell<u64>,
    /// Sectors of a reclaim unit.
    unit: u64,
    /// The figures of the flash when serving began.
    before: Health,
    events: RefCell<VecDeque<Event>>,
    reports_invalid: Cell<bool>,
    /// Whether copies by garbage collection stay with their handle.
    is_persistent: bool,
}

impl Placement {
    pub fn new(handles: Handles, before: Health) -> Self {
        Self {
            handles: handles.count,
            written: Cell::new(0),
            is_persistent: handles.isolates_copies,
            unit: (before.unit_bytes / SECTOR_BYTES).max(1),
            before,
            events: RefCell::default(),
            reports_invalid: Cell::new(false),
        }
    }

    /// The handle of a write of `sectors`, which is counted. One that does not exist is reported as
    /// an event, and the write goes where one without a handle does.
    pub fn handle(&self, command: &Command, sectors: u64, milliseconds: u64) -> u8 {
        let identifier = (command.dword(13) >> 16) as u16;
        let handle = match command.dword(12) >> 20 & 0xF {
            DIRECTIVE if identifier < u16::from(self.handles) => identifier as u8,
            DIRECTIVE => {
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
            _ => 0,
        };
        self.written.set(self.written.get() + sectors);
        handle
    }

    /// Handles of a namespace, and the sectors `left` of the unit that each of them writes.
    pub fn status(&self, shift: u32, left: impl Fn(u8) -> u64) -> Vec<u8> {
        let mut page = Page::new(16 + 32 * usize::from(self.handles));
        page.u16(14, self.handles.into());
        for handle in 0..self.handles {
            let at = 16 + 32 * usize::from(handle);
            let number = u16::from(handle);
            page.u16(at, number).u16(at + 2, number).u64(at + 8, left(handle) >> shift);
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
        let handles = usize::from(self.handles);
        let descriptor = (64 + 4 * handles).next_multiple_of(8);
        let mut page = Page::new(16 + descriptor);
        // One configuration, version 0.
        page.u32(4, 16 + descriptor as u32);
        let at = 16;
        // Valid; one reclaim group.
        page.u16(at, descriptor as u16).u8(at + 2, 1 << 7).u32(at + 4, 1);
        page.u16(at + 8, handles as u16).u16(at + 10, handles as u16 - 1);
        page.u32(at + 12, u32::MAX).u64(at + 16, self.unit * SECTOR_BYTES);
        for handle in 0..handles {
            // Initially, or persistently isolated.
            page.u8(at + 64 + 4 * handle, if self.is_persistent { 2 } else { 1 });
        }
        page
    }

    fn usage(&self) -> Page {
        let handles = usize::from(self.handles);
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
        if handle < usize::from(self.handles) { Ok(()) } else { Err(Status::INVALID_FIELD) }
    }
}
