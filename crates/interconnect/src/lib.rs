//! The path from the host to the devices: buses and controllers.
//!
//! - [`bus`]: transfers commands, data and messages.
//! - [`pass_through`]: a controller that forwards every request.
//! - [`queueing`]: a queue and scheduler for each device behind it (`queueing-controller`), and the
//!   same for a single device (`io-queue`), as a driver has per device.

pub mod bus;
pub mod pass_through;
pub mod queue;
pub mod queueing;
pub mod targets;

use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Kind, Param, Problem};

/// All buses and controllers.
pub const ENTRIES: &[ComponentEntry] =
    &[bus::ENTRY, pass_through::ENTRY, queueing::CONTROLLER, queueing::IO_QUEUE];

/// Buses below a controller at most (konanki, section 2.3: as in DiskSim).
const BUSES_MAX: usize = 4;

/// The buses to the devices.
pub const BUSES: Param =
    Param::required("buses", Kind::Components, "The buses to the devices, at most 4");

/// Command processing time.
pub const COMMAND_TIME: Param = Param::with(
    "command_time",
    Kind::Duration,
    "\"0us\"",
    "Time from the arrival of a command until it is forwarded or queued",
);

/// Checks the number of buses.
fn check_buses(input: &BuildInput<'_>, problems: &mut Vec<Problem>) {
    let buses = input.settings.texts("buses").len();
    if buses > BUSES_MAX {
        let message = format!("{buses} buses; a controller has at most {BUSES_MAX} to devices");
        problems.push(Problem::new("buses", message));
    }
}
