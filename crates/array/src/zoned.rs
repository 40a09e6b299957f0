//! Zones of a stripe: zone `i` consists of the zones `i` of all members.
//!
//! Members refuse a write each for itself, which would leave part of it written: the stripe checks
//! it first, so it has states, write pointers and limits of its own. A zone whose write or
//! management failed, or was in flight at a power failure, may be written differently on the
//! members: it accepts no writes until it is finished or reset.

use hybridsim_engine::{Flags, Lba, Op, Request, ZoneAction, ZoneLayout};
use serde::{Deserialize, Serialize};

/// Why a request is refused, by the number of the custom event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    BoundaryError,
    ZoneIsFull,
    InvalidWrite,
    TooManyActive,
    TooManyOpen,
    InvalidTransition,
    InvalidField,
}

/// Names of [`Refusal`]s in results.
pub const REFUSALS: &[&str] = &[
    "zone_boundary_error",
    "zone_is_full",
    "zone_invalid_write",
    "too_many_active_zones",
    "too_many_open_zones",
    "invalid_zone_state_transition",
    "invalid_field",
];

/// Members close zones that were opened implicitly when they need to, so closed zones and these are
/// one state here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Empty,
    Active { explicitly: bool },
    Full,
}

/// A zone.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Zone {
    state: State,
    /// Sectors before the write pointer.
    written: u64,
    /// Writes outstanding.
    writes: u32,
    /// The action outstanding is a reset or a finish.
    is_managed: bool,
    /// It may be written differently on the members.
    is_torn: bool,
    /// It was opened explicitly since it was empty, so that no member has an empty zone.
    was_opened: bool,
}

const EMPTY: Zone = Zone {
    state: State::Empty,
    written: 0,
    writes: 0,
    is_managed: false,
    is_torn: false,
    was_opened: false,
};

/// The zones of a stripe.
#[derive(Debug)]
pub struct Zones {
    /// Those of the stripe.
    pub layout: ZoneLayout,
    all: Vec<Zone>,
    active: u32,
    /// Explicitly open.
    open: u32,
}

impl Zones {
    pub fn new(layout: ZoneLayout) -> Self {
        Self { layout, all: vec![EMPTY; layout.zones as usize], active: 0, open: 0 }
    }

    /// The zone in which a request begins.
    fn at(&self, request: &Request) -> usize {
        (request.lba.0 / self.layout.size) as usize
    }

    fn set(&mut self, at: usize, state: State) {
        let count = |state| match state {
            State::Active { explicitly } => (1, u32::from(explicitly)),
            State::Empty | State::Full => (0, 0),
        };
        let (before, after) = (count(self.all[at].state), count(state));
        self.active = self.active + after.0 - before.0;
        self.open = self.open + after.1 - before.1;
        self.all[at].state = state;
    }

    /// Whether a zone can be opened, or written.
    fn check_open(&self, at: usize) -> Result<(), Refusal> {
        let is_max = |max: Option<u32>, count: u32| max.is_some_and(|max| count >= max);
        match self.all[at].state {
            State::Full => Err(Refusal::InvalidTransition),
            State::Active { explicitly: true } => Ok(()),
            State::Empty if is_max(self.layout.active_max, self.active) => {
                Err(Refusal::TooManyActive)
            }
            _ if is_max(self.layout.open_max, self.open) => Err(Refusal::TooManyOpen),
            _ => Ok(()),
        }
    }

    /// Admits a write or an append; returns the sector at which it is written.
    pub fn write(&mut self, request: &Request) -> Result<Lba, Refusal> {
        let ZoneLayout { size, capacity, page, zones, .. } = self.layout;
        let (at, within) = (self.at(request), request.lba.0 % size);
        let sectors = u64::from(request.sectors);
        if at as u64 >= zones || !within.is_multiple_of(page) || !sectors.is_multiple_of(page) {
            return Err(Refusal::InvalidField);
        }
        let Zone { state, written, is_managed, is_torn, .. } = self.all[at];
        let is_append = request.flags.contains(Flags::APPEND);
        let first = if is_append && within == 0 { written } else { within };
        if state == State::Full {
            return Err(Refusal::ZoneIsFull);
        }
        if first + sectors > capacity {
            return Err(Refusal::BoundaryError);
        }
        if first != written {
            return Err(Refusal::InvalidWrite);
        }
        if is_managed || is_torn {
            return Err(Refusal::InvalidTransition);
        }
        self.check_open(at)?;
        if state == State::Empty {
            self.set(at, State::Active { explicitly: false });
        }
        let zone = &mut self.all[at];
        zone.written += sectors;
        zone.writes += 1;
        if zone.written == capacity {
            self.set(at, State::Full);
        }
        Ok(Lba(at as u64 * size + first))
    }

    /// Admits the management of a zone.
    pub fn manage(&mut self, request: &Request, action: ZoneAction) -> Result<(), Refusal> {
        let at = self.at(request);
        let is_whole = request.lba.0.is_multiple_of(self.layout.size)
            && u64::from(request.sectors) == self.layout.size;
        if at as u64 >= self.layout.zones || !is_whole {
            return Err(Refusal::InvalidField);
        }
        if self.all[at].is_managed {
            return Err(Refusal::InvalidTransition);
        }
        match action {
            ZoneAction::Open => {
                self.check_open(at)?;
                self.set(at, State::Active { explicitly: true });
                self.all[at].was_opened = true;
            }
            ZoneAction::Close => match self.all[at].state {
                State::Active { .. } => self.set(at, State::Active { explicitly: false }),
                State::Empty | State::Full => return Err(Refusal::InvalidTransition),
            },
            ZoneAction::Reset => {
                self.set(at, State::Empty);
                (self.all[at].written, self.all[at].was_opened) = (0, false);
            }
            ZoneAction::Finish => self.set(at, State::Full),
        }
        let lasts = matches!(action, ZoneAction::Reset | ZoneAction::Finish);
        self.all[at].is_managed = lasts;
        if lasts {
            self.all[at].is_torn = false;
        }
        Ok(())
    }

    /// Sectors before the write pointer of the zone of a request.
    pub fn written_before(&self, request: &Request) -> u64 {
        self.all[self.at(request)].written
    }

    /// Whether an action that was admitted is one for the zone of a member with so many sectors
    /// written, of so many: it is no transition of one that is empty or full already.
    pub fn concerns(&self, request: &Request, (written, capacity): (u64, u64)) -> bool {
        let Zone { is_torn, was_opened, .. } = self.all[self.at(request)];
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
        self.all[at].writes -= 1;
        self.all[at].is_torn |= failed;
    }

    /// Management that was admitted has completed.
    pub fn managed(&mut self, request: &Request, failed: bool) {
        let at = self.at(request);
        self.all[at].is_managed = false;
        self.all[at].is_torn |= failed;
    }

    /// The power failed: members close open zones, and those without data are empty.
    pub fn power_cut(&mut self) {
        for at in 0..self.all.len() {
            let Zone { state, written, writes, is_managed, is_torn, .. } = self.all[at];
            let is_torn = is_torn || writes > 0 || is_managed;
            let state = match state {
                // How much of it is written is not known, nor whether it is active.
                _ if is_torn => State::Active { explicitly: false },
                State::Active { .. } if written == 0 => State::Empty,
                State::Active { .. } => State::Active { explicitly: false },
                other => other,
            };
            self.set(at, state);
            self.all[at] = Zone { state, written, is_torn, ..EMPTY };
        }
    }

    pub fn state(&self) -> &[Zone] {
        &self.all
    }

    /// Restores [`Zones::state`].
    ///
    /// # Errors
    /// A message, if it cannot be the state of these zones.
    pub fn restore(&mut self, all: Vec<Zone>) -> Result<(), String> {
        let fits = all.len() == self.all.len()
            && all.iter().all(|zone| zone.written <= self.layout.capacity);
        if !fits {
            return Err("it is the state of other zones".to_owned());
        }
        for (at, zone) in all.into_iter().enumerate() {
            self.set(at, zone.state);
            self.all[at] = zone;
        }
        Ok(())
    }
}
