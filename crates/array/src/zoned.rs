//! Zones of a stripe: zone `i` consists of the zones `i` of all members.
//!
//! Members refuse a write each for itself, which would leave part of it written: the stripe checks
//! it first, so it has states, write pointers and limits of its own. A zone whose write or
//! management failed, or was in flight at a power failure, may be written differently on the
//! members: it accepts no writes until it is finished or reset.

use hybridsim_engine::zone_table::{Zone, ZoneLimits, ZoneStatus, ZoneTable};
use hybridsim_engine::{Flags, Lba, Op, Request, ZoneAction, ZoneLayout};
use serde::{Deserialize, Serialize};

/// The state of the members in a zone.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Marks {
    /// Writes outstanding.
    writes: u32,
    /// The action outstanding is a reset or a finish.
    is_managed: bool,
    /// It may be written differently on the members.
    is_torn: bool,
    /// It was opened explicitly since it was empty, so that no member has an empty zone.
    was_opened: bool,
}

/// The saved state of [`Zones`].
pub type Saved = ((Vec<Zone>, u64), Vec<Marks>);

/// The zones of a stripe.
#[derive(Debug)]
pub struct Zones {
    /// Those of the stripe.
    pub layout: ZoneLayout,
    table: ZoneTable,
    marks: Vec<Marks>,
}

impl Zones {
    pub fn new(layout: ZoneLayout) -> Self {
        let limits = ZoneLimits {
            capacity: layout.capacity as u32,
            open_max: layout.open_max.unwrap_or(u32::MAX),
            active_max: layout.active_max.unwrap_or(u32::MAX),
            random: None,
        };
        let table = ZoneTable::new(layout.zones as u32, limits);
        Self { layout, table, marks: vec![Marks::default(); layout.zones as usize] }
    }

    /// The zone in which a request begins.
    fn at(&self, request: &Request) -> usize {
        (request.lba.0 / self.layout.size) as usize
    }

    /// Admits a write or an append; returns the sector at which it is written.
    pub fn write(&mut self, request: &Request) -> Result<Lba, ZoneStatus> {
        let ZoneLayout { size, page, zones, .. } = self.layout;
        let (at, within) = (self.at(request), request.lba.0 % size);
        let sectors = request.sectors;
        if at as u64 >= zones
            || !within.is_multiple_of(page)
            || !u64::from(sectors).is_multiple_of(page)
        {
            return Err(ZoneStatus::InvalidField);
        }
        let zone = at as u32;
        let is_append = request.flags.contains(Flags::APPEND) && within == 0;
        let first = if is_append { self.table.get(zone).written } else { within as u32 };
        self.table.check_write(zone, first, sectors)?;
        let marks = &mut self.marks[at];
        if marks.is_managed || marks.is_torn {
            return Err(ZoneStatus::InvalidTransition);
        }
        self.table.open(zone, false)?;
        self.table.advance(zone, sectors);
        marks.writes += 1;
        Ok(Lba(at as u64 * size + u64::from(first)))
    }

    /// Admits the management of a zone.
    pub fn manage(&mut self, request: &Request, action: ZoneAction) -> Result<(), ZoneStatus> {
        let at = self.at(request);
        let is_whole = request.lba.0.is_multiple_of(self.layout.size)
            && u64::from(request.sectors) == self.layout.size;
        if at as u64 >= self.layout.zones || !is_whole {
            return Err(ZoneStatus::InvalidField);
        }
        let (zone, marks) = (at as u32, &mut self.marks[at]);
        if marks.is_managed {
            return Err(ZoneStatus::InvalidTransition);
        }
        match action {
            ZoneAction::Open if request.flags.contains(Flags::RANDOM_WRITE_AREA) => {
                return Err(ZoneStatus::InvalidField);
            }
            ZoneAction::Open => {
                self.table.open(zone, true)?;
                marks.was_opened = true;
            }
            ZoneAction::Commit => return Err(ZoneStatus::InvalidOperation),
            ZoneAction::Close => self.table.close(zone)?,
            ZoneAction::Reset => {
                self.table.reset(zone)?;
                marks.was_opened = false;
            }
            ZoneAction::Finish => {
                self.table.finish(zone)?;
            }
        }
        if lasts(action) {
            (marks.is_managed, marks.is_torn) = (true, false);
        }
        Ok(())
    }

    /// Sectors before the write pointer of the zone of a request.
    pub fn written_before(&self, request: &Request) -> u64 {
        u64::from(self.table.get(self.at(request) as u32).written)
    }

    /// Whether an action that was admitted is one for the zone of a member with so many sectors
    /// written, of so many: it is no transition of one that is empty or full already.
    pub fn concerns(&self, request: &Request, (written, capacity): (u64, u64)) -> bool {
        let Marks { is_torn, was_opened, .. } = self.marks[self.at(request)];
        match request.op {
            Op::Zone(ZoneAction::Close) => {
                is_torn || (written < capacity && (written > 0 || was_opened))
            }
            Op::Zone(ZoneAction::Open) => is_torn || written < capacity,
            _ => true,
        }
    }

    /// A write that was admitted has completed.
    pub fn written(&mut self, request: &Request, failed: bool) {
        let at = self.at(request);
        self.marks[at].writes -= 1;
        self.marks[at].is_torn |= failed;
    }

    /// Management that was admitted has completed.
    pub fn managed(&mut self, request: &Request, action: ZoneAction, failed: bool) {
        let at = self.at(request);
        self.marks[at].is_managed &= !lasts(action);
        self.marks[at].is_torn |= failed;
    }

    /// The power failed: members close open zones, and those without data are empty.
    pub fn power_cut(&mut self) {
        self.table.power_lost(|_| {});
        for (zone, marks) in (0..).zip(&mut self.marks) {
            let is_torn = marks.is_torn || marks.writes > 0 || marks.is_managed;
            *marks = Marks { is_torn, ..Marks::default() };
            // Neither its write pointer nor whether it is active is known: it counts as active.
            if is_torn && self.table.reset(zone).is_ok() {
                self.table.fill(zone, 1);
            }
        }
    }

    pub fn state(&self) -> ((&[Zone], u64), &[Marks]) {
        (self.table.state(), &self.marks)
    }

    /// Restores [`Zones::state`].
    ///
    /// # Errors
    /// A message, if it cannot be the state of these zones.
    pub fn restore(&mut self, (zones, marks): Saved) -> Result<(), String> {
        if marks.len() != self.marks.len() {
            return Err("it is the state of other zones".to_owned());
        }
        self.marks = marks;
        self.table.restore(zones)
    }
}

/// Whether a zone accepts no writes until the action has completed.
const fn lasts(action: ZoneAction) -> bool {
    matches!(action, ZoneAction::Reset | ZoneAction::Finish)
}
