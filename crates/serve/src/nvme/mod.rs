//! NVMe over TCP: a subsystem whose namespaces are parts of the served device.
//!
//! Sources: NVM Express Base Specification 2.1, NVM Command Set 1.1, Zoned Namespace Command Set
//! 1.2, NVMe/TCP Transport 1.1; OCP Datacenter NVMe SSD Specification 2.0 for log page C0h.
//!
//! [`pdu`], [`command`] and [`status`] are formats. A [`queue`] is a connection: it reads commands,
//! each of which is a task until it completes. [`fabrics`], [`admin`] with [`identify`] and
//! [`logs`], and [`io`] with [`zoned`] execute them; [`subsystem`] and [`controller`] are what they
//! share. Neither TLS nor in-band authentication is supported.

mod admin;
mod command;
mod controller;
mod discovery;
mod fabrics;
mod features;
mod identify;
mod io;
mod logs;
mod pdu;
mod placement;
mod queue;
mod status;
mod subsystem;
mod zoned;

pub use queue::serve;
pub use subsystem::{NQN, Subsystem, qualified_name};
