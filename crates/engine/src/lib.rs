//! The engine: time, the request vocabulary, components as state machines, and the one machine that
//! moves messages between them.
//!
//! A simulated system is a tree. Its root is the host, inner nodes are controllers, caches and
//! arrays, leaves are devices. Every node is a [`Component`]: it receives a message and a [`Ctx`],
//! changes its own state and sends messages. It holds no pointer to parent, child or machine.
//!
//! Components report what they do as [`Event`]s; the engine computes no statistics.

#![warn(missing_docs)]

pub mod component;
pub mod contents;
pub mod device;
pub mod event;
pub mod fault;
mod fifo;
pub mod inject;
pub mod latency;
pub mod machine;
mod pages;
pub mod pending;
pub mod permutation;
pub mod power;
pub mod range_locks;
pub mod reference_model;
pub mod request;
pub mod rng;
pub mod sample;
pub mod schedule;
pub mod sorted;
pub mod source;
pub mod state;
pub mod statistics;
pub mod time;
pub mod timer;
pub mod zone_table;

pub use component::{
    Checkpoint, Completion, Component, ComponentInfo, ComponentTree, Lookahead, Outcome,
    PowerFailure, Prepare, Target,
};
pub use contents::{Contents, DataPool, DataSlice};
pub use device::{Health, RandomWriteAreas, ZoneInfo, ZoneLayout, ZoneState, Zoned};
pub use event::{
    CommonEvent, ComponentId, Event, EventKind, EventRecord, EventSink, PowerState,
    RedundancyChange,
};
pub use fault::Fault;
pub use inject::{Inject, Injected, Slowdown};
pub use latency::{LatencyBreakdown, LatencyPhase};
pub use machine::{Ctx, Machine, PreparedStates, RunEnd, prepare};
pub use pending::{LatencyAccount, PendingRequest};
pub use permutation::Permutation;
pub use power::{Durable, InFlightWrites, PowerFailureInjector};
pub use request::{
    Command, Flags, Lba, Op, Placements, Request, RequestId, SECTOR_BYTES, ZoneAction,
};
pub use rng::Stream;
pub use source::{Arrival, Source};
pub use state::{Loader, Saver, StateError};
pub use time::{SimDuration, SimTime};
