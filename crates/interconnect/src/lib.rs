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

use hybridsim_config::build::ComponentEntry;
use hybridsim_config::param::{Kind, Problem};
use hybridsim_engine::SimDuration;

/// All buses and controllers.
pub const ENTRIES: &[ComponentEntry] =
    &[bus::ENTRY, pass_through::ENTRY, queueing::CONTROLLER, queueing::IO_QUEUE];

/// Buses below a controller at most (konanki, section 2.3: as in DiskSim).
const BUSES_MAX: usize = 4;

hybridsim_config::params! {
    /// Parameters of every controller.
    pub struct Controller {
        buses: Vec<String> = Kind::Components, required, "The buses to the devices, at most 4";
        command_time: SimDuration = Kind::Duration, default "\"0us\"",
            "Time from the arrival of a command until it is forwarded or queued";
    }
}

impl Controller {
    fn check(&self, problems: &mut Vec<Problem>) {
        let buses = self.buses.len();
        if buses > BUSES_MAX {
            let message = format!("{buses} buses; a controller has at most {BUSES_MAX} to devices");
            problems.push(Problem::new("buses", message));
        }
    }
}
