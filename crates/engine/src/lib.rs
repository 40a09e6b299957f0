//! The engine: time, the request vocabulary, layers as state machines, and the one machine that
//! moves messages between them.
//!
//! A simulated system is a tree. Its root is the host, inner nodes are controllers, caches and
//! arrays, leaves are devices. Every node is a [`Layer`]: it gets a message and a narrow [`Ctx`],
//! changes itself and writes messages out. It holds no pointer to parent, child or machine.
//!
//! What a layer did is told as [`Fact`]s; nothing in here counts, averages or prints.

pub mod contents;
pub mod event;
pub mod fact;
pub mod fault;
pub mod layer;
pub mod machine;
pub mod power;
pub mod request;
pub mod rng;
pub mod sample;
pub mod schedule;
pub mod shadow;
pub mod sorted;
pub mod source;
pub mod spans;
pub mod state;
pub mod time;

pub use contents::{Contents, DataPool, DataSlice};
pub use fact::{
    Cause, DiskCacheOutcome, Fact, FactSink, FlashAct, FlashUnit, NodeId, Part, Parts, PowerState,
    Stamped,
};
pub use fault::Fault;
pub use layer::{Completion, Lane, Layer, LayerInfo, Node, Outcome};
pub use machine::{Ctx, Keeper, Machine, RunEnd};
pub use power::{Durable, PowerCuts, Undo};
pub use request::{Command, Flags, Lba, Op, Request, RequestId, SECTOR_BYTES};
pub use rng::Stream;
pub use source::{Arrival, Source};
pub use state::{Loader, Saver, StateError};
pub use time::{SimDuration, SimTime};
