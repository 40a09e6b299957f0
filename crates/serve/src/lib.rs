//! Serves a simulated system as a network block device, or as NVMe namespaces over TCP.
//!
//! One thread does everything: tasks read requests from connections ([`connection`]), hand them to
//! the drive ([`drive`]), which submits them to the simulated system, and write the replies.

#![cfg(unix)]

mod budget;
mod client;
mod clock;
mod connection;
pub mod contents;
mod control;
mod conversation;
mod drive;
mod exports;
mod listen;
mod lock;
mod nbd;
mod nvme;
mod record;
mod server;
mod state;
mod stream;

pub use clock::{Clock, Lateness};
pub use conversation::{Protocol, converse};
pub use drive::{Drive, Ended, Finished, Job, Kind, Served};
pub use exports::{Export, Exports};
pub use listen::{Options, serve};
pub use lock::{Lock, hold};
pub use nvme::{NQN, qualified_name};
pub use record::{TraceFile, faults_beside};
pub use server::Limits;
pub use state::{save, unpack};
pub use stream::Address;
