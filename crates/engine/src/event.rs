//! Events: the record of everything a run did, from which statistics, fingerprints and pictures are
//! computed.
//!
//! An event states what happened, never a sum. A component emits it with [`crate::Ctx::emit`]; the
//! engine adds the time and the component and appends the 32-byte [`EventRecord`] to the stream.
//! Each crate declares the events of its own devices with [`crate::events!`]; the engine itself
//! declares only [`CommonEvent`], which any component may emit.

mod times;

pub use times::{Times, TimesWriter};

use crate::latency::LatencyPhase;
use crate::request::{Lba, Op};
use crate::time::{SimDuration, SimTime};

/// A component of the system tree, numbered in the order the tree was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u16);

/// The wire form of an event, four words: what fingerprints hash and what Python receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventRecord {
    /// Time of the event.
    pub time: SimTime,
    /// From the lowest bit up: the component that emitted it (16 bits), the number of the event
    /// (8 bits, [`EventKind::kind`]), [`Slot::A`] (8 bits) and [`Slot::B`] (32 bits).
    pub head: u64,
    /// [`Slot::C`].
    pub c: u64,
    /// [`Slot::D`].
    pub d: u64,
}

impl EventRecord {
    /// Kinds from here on are detail: they are not part of fingerprints.
    pub const FIRST_DETAIL_KIND: u8 = 128;

    /// An event of number `kind` whose fields are all zero.
    #[inline(always)]
    pub const fn of_kind(kind: u8) -> Self {
        Self { time: SimTime::ZERO, head: (kind as u64) << 16, c: 0, d: 0 }
    }

    /// The record of `event`.
    #[inline(always)]
    pub fn new(time: SimTime, component: ComponentId, event: impl Event) -> Self {
        let record = event.encode();
        Self { time, head: record.head | u64::from(component.0), ..record }
    }

    /// The event, if it is one that `E` declares.
    #[inline(always)]
    pub fn event<E: Event>(&self) -> Option<E> {
        E::decode(self)
    }

    /// The component that emitted it.
    #[inline(always)]
    pub const fn component(&self) -> ComponentId {
        ComponentId(self.head as u16)
    }

    /// Which event it is.
    #[inline(always)]
    pub const fn kind(&self) -> u8 {
        (self.head >> 16) as u8
    }

    /// The component and the event's number in one.
    #[inline(always)]
    pub const fn source(&self) -> u32 {
        self.head as u32 & 0xFF_FFFF
    }

    /// A record with these fields and number `kind`.
    #[inline(always)]
    #[must_use]
    pub const fn with_kind(&self, kind: u8) -> Self {
        Self { head: self.head & !(0xff << 16) | (kind as u64) << 16, ..*self }
    }

    /// Whether fingerprints leave the event out.
    #[inline(always)]
    pub const fn is_detail(&self) -> bool {
        self.kind() >= Self::FIRST_DETAIL_KIND
    }

    /// The four words of the wire form.
    #[inline(always)]
    pub const fn words(&self) -> [u64; 4] {
        [self.time.as_ns(), self.head, self.c, self.d]
    }
}

/// A set of events that a crate declares with [`crate::events!`].
pub trait Event: Sized {
    /// Descriptions of all events of the set.
    const KINDS: &'static [EventKind];

    /// The record of the event, with time and component at zero.
    fn encode(self) -> EventRecord;

    /// The event a record holds; `None` where it is not of this set.
    fn decode(record: &EventRecord) -> Option<Self>;
}

/// The number of the event of `E` called `name`, for constants.
///
/// # Panics
/// If `E` has no event of that name.
pub const fn kind_of<E: Event>(name: &str) -> u8 {
    let (mut at, name) = (0, name.as_bytes());
    loop {
        let kind = &E::KINDS[at];
        let candidate = kind.name.as_bytes();
        let mut same = 0;
        while same < name.len() && same < candidate.len() && name[same] == candidate[same] {
            same += 1;
        }
        if same == name.len() && same == candidate.len() {
            return kind.kind;
        }
        at += 1;
    }
}

/// The description of an event, from which tables in documents and in Python are generated.
#[derive(Clone, Copy, Debug)]
pub struct EventKind {
    /// Number in records, unique among all crates; never changes.
    pub kind: u8,
    /// Name, in snake case.
    pub name: &'static str,
    /// The fact that the event states.
    pub doc: &'static str,
    /// The event's fields.
    pub fields: &'static [FieldInfo],
}

/// A field of an event.
#[derive(Clone, Copy, Debug)]
pub struct FieldInfo {
    /// The field's name.
    pub name: &'static str,
    /// Position in the record.
    pub slot: Slot,
    /// Meaning of the number.
    pub values: FieldValues,
}

/// Meaning of the number in a field.
#[derive(Clone, Copy, Debug)]
pub enum FieldValues {
    /// A plain number.
    Number,
    /// A length of time in nanoseconds.
    Duration,
    /// A time in nanoseconds since the start of the run.
    Instant,
    /// An index into these names.
    Names(&'static [&'static str]),
}

/// A position in an [`EventRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// 8 bits.
    A,
    /// 32 bits.
    B,
    /// The lower 16 bits of `B`.
    BLow,
    /// The upper 16 bits of `B`.
    BHigh,
    /// The lowest byte of `B`.
    B0,
    /// The second byte of `B`.
    B1,
    /// The third byte of `B`.
    B2,
    /// The highest byte of `B`.
    B3,
    /// 64 bits.
    C,
    /// The lower 32 bits of `C`.
    CLow,
    /// The upper 32 bits of `C`.
    CHigh,
    /// 64 bits.
    D,
    /// The lower 32 bits of `D`.
    DLow,
    /// The upper 32 bits of `D`.
    DHigh,
}

impl Slot {
    /// First byte in the little-endian wire form and its length in bytes.
    pub const fn bytes(self) -> (usize, usize) {
        match self {
            Self::A => (11, 1),
            Self::B => (12, 4),
            Self::BLow => (12, 2),
            Self::BHigh => (14, 2),
            Self::B0 => (12, 1),
            Self::B1 => (13, 1),
            Self::B2 => (14, 1),
            Self::B3 => (15, 1),
            Self::C => (16, 8),
            Self::CLow => (16, 4),
            Self::CHigh => (20, 4),
            Self::D => (24, 8),
            Self::DLow => (24, 4),
            Self::DHigh => (28, 4),
        }
    }

    /// Shift and mask of the slot within the word that holds it.
    const fn place(self) -> (u32, u64) {
        let (first, length) = self.bytes();
        (8 * (first as u32 % 8), u64::MAX >> (64 - 8 * length as u32))
    }

    /// Writes it.
    #[inline(always)]
    pub const fn put(self, record: &mut EventRecord, value: u64) {
        let (shift, mask) = self.place();
        let word = match self.bytes().0 {
            24.. => &mut record.d,
            16.. => &mut record.c,
            _ => &mut record.head,
        };
        *word = *word & !(mask << shift) | (value & mask) << shift;
    }

    /// Reads it.
    #[inline(always)]
    pub const fn get(self, record: &EventRecord) -> u64 {
        let (shift, mask) = self.place();
        let word = match self.bytes().0 {
            24.. => record.d,
            16.. => record.c,
            _ => record.head,
        };
        word >> shift & mask
    }
}

/// A type that fields of events may have.
pub trait Field: Copy {
    /// Meaning of the number.
    const VALUES: FieldValues;

    /// The number in records.
    fn to_word(self) -> u64;

    /// The value a number stands for, if any.
    fn from_word(word: u64) -> Option<Self>;
}

macro_rules! plain_fields {
    ($($type:ty),*) => {$(
        impl Field for $type {
            const VALUES: FieldValues = FieldValues::Number;

            #[inline(always)]
            fn to_word(self) -> u64 {
                self.into()
            }

            #[inline(always)]
            fn from_word(word: u64) -> Option<Self> {
                Some(word as Self)
            }
        }
    )*};
}
plain_fields!(u8, u16, u32, u64);

impl Field for Lba {
    const VALUES: FieldValues = FieldValues::Number;

    #[inline(always)]
    fn to_word(self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn from_word(word: u64) -> Option<Self> {
        Some(Self(word))
    }
}

impl Field for Op {
    const VALUES: FieldValues = FieldValues::Names(&Op::NAMES);

    #[inline(always)]
    fn to_word(self) -> u64 {
        u64::from(self.code())
    }

    #[inline(always)]
    fn from_word(word: u64) -> Option<Self> {
        Self::from_code(word)
    }
}

macro_rules! time_fields {
    ($($type:ty: $values:ident),*) => {$(
        impl Field for $type {
            const VALUES: FieldValues = FieldValues::$values;

            #[inline(always)]
            fn to_word(self) -> u64 {
                self.as_ns()
            }

            #[inline(always)]
            fn from_word(word: u64) -> Option<Self> {
                Some(Self::from_ns(word))
            }
        }
    )*};
}
time_fields!(SimTime: Instant, SimDuration: Duration);

/// Declares an enumeration whose numbers and names appear in event records and in results:
/// `Variant = number "name"`. It may be a field of an event.
#[macro_export]
macro_rules! coded {
    (
        $(#[$meta:meta])*
        $vis:vis enum $type:ident {
            $( $(#[$doc:meta])* $variant:ident = $code:literal $name:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        $vis enum $type {
            $( $(#[$doc])* $variant = $code, )*
        }

        impl $type {
            /// All values, in the order of their numbers.
            pub const ALL: [Self; [$($code),*].len()] = [$(Self::$variant),*];
            /// Number of values.
            pub const COUNT: usize = Self::ALL.len();

            /// The lower-case name used in results.
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $name, )*
                }
            }
        }

        impl $crate::event::Field for $type {
            const VALUES: $crate::event::FieldValues =
                $crate::event::FieldValues::Names(&[$($name),*]);

            #[inline(always)]
            fn to_word(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn from_word(word: u64) -> Option<Self> {
                match word {
                    $( $code => Some(Self::$variant), )*
                    _ => None,
                }
            }
        }
    };
}

/// Declares a set of events: `Variant = number "name" { field: Type => Slot, .. }`.
///
/// It generates the enumeration and its [`Event`] implementation: the encoding, the decoding and
/// the descriptions. Numbers are unique among all crates and never change.
#[macro_export]
macro_rules! events {
    (
        $(#[$meta:meta])*
        $vis:vis enum $type:ident {
            $(
                $(#[doc = $doc:literal])*
                $variant:ident = $kind:literal $name:literal
                $({
                    $( $(#[$field_meta:meta])* $field:ident: $field_type:ty => $slot:ident ),+
                    $(,)?
                })?,
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $type {
            $(
                $(#[doc = $doc])*
                $variant $({ $( $(#[$field_meta])* $field: $field_type ),+ })?,
            )*
        }

        impl $crate::event::Event for $type {
            const KINDS: &'static [$crate::event::EventKind] = &[$(
                $crate::event::EventKind {
                    kind: $kind,
                    name: $name,
                    doc: concat!($($doc),*),
                    fields: &[$($(
                        $crate::event::FieldInfo {
                            name: stringify!($field),
                            slot: $crate::event::Slot::$slot,
                            values: <$field_type as $crate::event::Field>::VALUES,
                        }
                    ),+)?],
                }
            ),*];

            #[inline(always)]
            fn encode(self) -> $crate::event::EventRecord {
                match self {
                    $(
                        Self::$variant $({ $($field),+ })? => {
                            #[allow(unused_mut)]
                            let mut record = $crate::event::EventRecord::of_kind($kind);
                            $($(
                                let word = $crate::event::Field::to_word($field);
                                $crate::event::Slot::$slot.put(&mut record, word);
                            )+)?
                            record
                        }
                    )*
                }
            }

            #[inline(always)]
            fn decode(record: &$crate::event::EventRecord) -> Option<Self> {
                match record.kind() {
                    $(
                        $kind => Some(Self::$variant $({ $(
                            $field: <$field_type as $crate::event::Field>::from_word(
                                $crate::event::Slot::$slot.get(record)
                            )?
                        ),+ })?),
                    )*
                    _ => None,
                }
            }
        }
    };
}

coded! {
    /// A power state of a device.
    #[derive(serde::Serialize, serde::Deserialize)]
    pub enum PowerState {
        /// Ready, no request in service.
        Idle = 0 "idle",
        /// Moving the arm.
        Seek = 1 "seek",
        /// Reading from the medium.
        Read = 2 "read",
        /// Writing to the medium.
        Write = 3 "write",
        /// Erasing.
        Erase = 4 "erase",
        /// Low power, not ready.
        Standby = 5 "standby",
        /// On the way from standby to ready.
        SpinUp = 6 "spin_up",
        /// On the way to standby.
        SpinDown = 7 "spin_down",
        /// Active without a finer distinction (rotational latency, data transfer).
        Active = 8 "active",
    }
}

coded! {
    /// A change of the redundancy of an array.
    pub enum RedundancyChange {
        /// A member failed.
        MemberFailed = 0 "member_failed",
        /// The rebuild of a column on a spare started.
        RebuildStarted = 1 "rebuild_started",
        /// A rebuild ended.
        RebuildEnded = 2 "rebuild_ended",
        /// A rebuild was aborted.
        RebuildAborted = 3 "rebuild_aborted",
        /// More columns are degraded than the redundancy covers.
        DataLost = 4 "data_lost",
        /// The array is degraded at the start of a run from a saved state.
        Resumed = 5 "degraded_at_start",
    }
}

events! {
    /// Events any component may emit, and those of the host.
    pub enum CommonEvent {
        /// A request arrived from the workload (host only).
        Arrived = 0 "arrived" {
            /// Operation.
            op: Op => A,
            /// Length in sectors.
            sectors: u32 => B,
            /// First sector.
            lba: Lba => C,
        },
        /// A request of the workload completed (host only); its `phase_time` and `phase_times`
        /// events come before.
        Completed = 1 "completed" {
            /// Operation.
            op: Op => A,
            /// Length in sectors.
            sectors: u32 => B,
            /// First sector.
            lba: Lba => C,
            /// Arrival to completion.
            latency: SimDuration => D,
        },
        /// A phase of the latency of the request whose `completed` follows (host only): the only
        /// one left, or one of a latency of 2^32 ns or more.
        PhaseTime = 2 "phase_time" {
            /// Operation of the request.
            op: Op => A,
            /// The phase.
            phase: LatencyPhase => B,
            /// Time the request spent in it.
            duration: SimDuration => C,
        },
        /// The number of queued requests changed.
        QueueDepth = 3 "queue_depth" {
            /// Requests queued.
            depth: u32 => B,
        },
        /// A device was in a power state until now: the only one left, or one of 2^32 ns or more
        /// since the last report. Per device these and `state_times` sum to the run time.
        StateTime = 8 "state_time" {
            /// The state.
            state: PowerState => B,
            /// Time in it since the last such event.
            duration: SimDuration => C,
        },
        /// Two to four phases of the latency of the request whose `completed` follows (host only);
        /// a time of zero stands for no phase.
        PhaseTimes = 32 "phase_times" {
            /// Operation of the request.
            op: Op => A,
            /// The first phase.
            phase_1: LatencyPhase => B0,
            /// The second phase.
            phase_2: LatencyPhase => B1,
            /// The third phase.
            phase_3: LatencyPhase => B2,
            /// The fourth phase.
            phase_4: LatencyPhase => B3,
            /// Time the request spent in the first phase.
            duration_1: SimDuration => CLow,
            /// Time the request spent in the second phase.
            duration_2: SimDuration => CHigh,
            /// Time the request spent in the third phase.
            duration_3: SimDuration => DLow,
            /// Time the request spent in the fourth phase.
            duration_4: SimDuration => DHigh,
        },
        /// A device was in two to four power states, one after another, until now; a time of zero
        /// stands for no state.
        StateTimes = 33 "state_times" {
            /// The first state.
            state_1: PowerState => B0,
            /// The second state.
            state_2: PowerState => B1,
            /// The third state.
            state_3: PowerState => B2,
            /// The fourth state.
            state_4: PowerState => B3,
            /// Time in the first state.
            duration_1: SimDuration => CLow,
            /// Time in the second state.
            duration_2: SimDuration => CHigh,
            /// Time in the third state.
            duration_3: SimDuration => DLow,
            /// Time in the fourth state.
            duration_4: SimDuration => DHigh,
        },
        /// A number of a component's own, named in its `ComponentInfo::custom`.
        Custom = 20 "custom" {
            /// Index into the names.
            name: u8 => A,
            /// The value.
            value: u64 => C,
        },
        /// The power failed (host only).
        PowerCut = 22 "power_cut" {
            /// Requests of the workload in flight, which never complete.
            lost: u32 => B,
        },
        /// A component is ready again after a power failure.
        Recovered = 23 "recovered" {
            /// Time since the power came back.
            took: SimDuration => C,
        },
        /// The request that completed last could not be served (host only).
        Failed = 131 "failed" {
            /// Operation.
            op: Op => A,
            /// Length in sectors.
            sectors: u32 => B,
        },
        /// The request that completes next is of this tenant, where several workloads share the
        /// host (host only).
        TenantCompleted = 133 "tenant_completed" {
            /// Operation.
            op: Op => A,
            /// Length in sectors.
            sectors: u32 => B,
            /// The tenant, numbered from zero in the order of the scenario.
            tenant: u16 => C,
            /// Arrival to completion.
            latency: SimDuration => D,
        },
        /// The redundancy of an array changed.
        Redundancy = 132 "redundancy" {
            /// The change.
            change: RedundancyChange => A,
            /// Columns degraded from now on.
            degraded: u32 => B,
            /// Time a rebuild that ended took; otherwise zero.
            took: SimDuration => C,
        },
    }
}

/// Consumes the stream of events, in order, in batches.
pub trait EventSink {
    /// The next events.
    fn take(&mut self, events: &[EventRecord]);
}

/// Discards them.
impl EventSink for () {
    fn take(&mut self, _events: &[EventRecord]) {}
}

/// Stores every event; for tests.
impl EventSink for Vec<EventRecord> {
    fn take(&mut self, events: &[EventRecord]) {
        self.extend_from_slice(events);
    }
}
