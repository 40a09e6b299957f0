//! Features.

use super::command::Command;
use super::controller::{Controller, QUEUES_MAX};
use super::queue::Queue;
use super::status::{Done, Outcome, Status};
use std::cell::Cell;
use std::time::{Duration, Instant};

mod id {
    pub const ARBITRATION: u8 = 0x01;
    pub const POWER: u8 = 0x02;
    pub const TEMPERATURE: u8 = 0x04;
    pub const ERROR_RECOVERY: u8 = 0x05;
    pub const WRITE_CACHE: u8 = 0x06;
    pub const QUEUES: u8 = 0x07;
    pub const ATOMICITY: u8 = 0x0A;
    pub const EVENTS: u8 = 0x0B;
    pub const TIMESTAMP: u8 = 0x0E;
    pub const KEEP_ALIVE: u8 = 0x0F;
    pub const PLACEMENT: u8 = 0x1D;
    pub const PLACEMENT_EVENTS: u8 = 0x1E;
}

/// The temperature from which on a warning is reported, before the host sets it: 70 °C.
const WARNING_KELVIN: u16 = 343;
/// Bits of the capabilities of a feature.
const CHANGEABLE: u64 = 4;

/// Features that a host can change.
pub struct Features {
    pub warning_kelvin: Cell<u16>,
    /// Asynchronous events that are reported.
    pub events: Cell<u32>,
    arbitration: Cell<u32>,
    error_recovery: Cell<u32>,
    atomicity: Cell<u32>,
    /// Milliseconds that the host set, and when.
    timestamp: Cell<(u64, Instant)>,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            warning_kelvin: Cell::new(WARNING_KELVIN),
            events: Cell::new(0xFF),
            arbitration: Cell::new(0),
            error_recovery: Cell::new(0),
            atomicity: Cell::new(0),
            timestamp: Cell::new((0, Instant::now())),
        }
    }
}

impl Features {
    /// Milliseconds of the timestamp now.
    pub fn milliseconds(&self) -> u64 {
        let (set, at) = self.timestamp.get();
        set + at.elapsed().as_millis() as u64
    }
}

/// The features of discovery controllers.
const OF_DISCOVERY: [u8; 2] = [id::EVENTS, id::KEEP_ALIVE];

impl Queue {
    pub fn get_features(&self, controller: &Controller, command: &Command) -> Outcome {
        let (feature, select) = (command.dword(10) as u8, command.dword(10) >> 8 & 7);
        if controller.is_discovery && !OF_DISCOVERY.contains(&feature) {
            return Err(Status::INVALID_FIELD);
        }
        let fresh = Features::default();
        let features = match select {
            0 => &controller.features,
            1 | 2 => &fresh,
            3 => return self.capabilities(feature),
            _ => return Err(Status::INVALID_FIELD),
        };
        let value = match feature {
            id::ARBITRATION => features.arbitration.get(),
            id::POWER => 0,
            id::TEMPERATURE if is_over_threshold(command) => features.warning_kelvin.get().into(),
            id::TEMPERATURE => return Err(Status::INVALID_FIELD),
            id::ERROR_RECOVERY => features.error_recovery.get(),
            id::WRITE_CACHE => 1,
            id::QUEUES => u32::from(QUEUES_MAX - 1) * 0x1_0001,
            id::ATOMICITY => features.atomicity.get(),
            id::EVENTS => features.events.get(),
            id::TIMESTAMP => {
                let set = features.timestamp.get().0 != 0;
                let mut data = features.milliseconds().to_le_bytes();
                (data[6], data[7]) = (u8::from(set) << 1, 0);
                return Ok(Done::data(data.to_vec()));
            }
            id::KEEP_ALIVE => controller.keep_alive().as_millis() as u32,
            id::PLACEMENT => self.placement().map(|_| 1)?,
            id::PLACEMENT_EVENTS => return self.placement()?.events_enabled(command),
            _ => return Err(Status::INVALID_FIELD),
        };
        Ok(Done::result(value.into()))
    }

    fn capabilities(&self, feature: u8) -> Outcome {
        match feature {
            id::POWER | id::WRITE_CACHE => Ok(Done::result(0)),
            id::PLACEMENT => self.placement().map(|_| Done::result(0)),
            id::PLACEMENT_EVENTS => self.placement().map(|_| Done::result(CHANGEABLE)),
            id::ARBITRATION
            | id::TEMPERATURE
            | id::ERROR_RECOVERY
            | id::QUEUES
            | id::ATOMICITY
            | id::EVENTS
            | id::TIMESTAMP
            | id::KEEP_ALIVE => Ok(Done::result(CHANGEABLE)),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    pub fn set_features(&self, controller: &Controller, command: &Command, data: &[u8]) -> Outcome {
        let (feature, value) = (command.dword(10) as u8, command.dword(11));
        if command.dword(10) >> 31 != 0 {
            return Err(Status::NOT_SAVEABLE);
        }
        if controller.is_discovery && !OF_DISCOVERY.contains(&feature) {
            return Err(Status::INVALID_FIELD);
        }
        let features = &controller.features;
        match feature {
            id::ARBITRATION => features.arbitration.set(value),
            id::TEMPERATURE if is_over_threshold(command) => {
                features.warning_kelvin.set(value as u16);
            }
            // The drive has one power state, and its write cache cannot be disabled.
            id::POWER if value & 0x1F == 0 => {}
            id::WRITE_CACHE if value & 1 == 1 => {}
            id::POWER => return Err(Status::INVALID_FIELD),
            id::WRITE_CACHE => return Err(Status::NOT_CHANGEABLE),
            id::ERROR_RECOVERY => features.error_recovery.set(value),
            id::QUEUES => {
                let granted = |wanted: u32| match wanted & 0xFFFF {
                    0xFFFF => Err(Status::INVALID_FIELD),
                    wanted => Ok(wanted.min(u32::from(QUEUES_MAX - 1))),
                };
                let result = granted(value)? | granted(value >> 16)? << 16;
                return Ok(Done::result(result.into()));
            }
            id::ATOMICITY => features.atomicity.set(value),
            id::EVENTS => features.events.set(value),
            id::TIMESTAMP => {
                let bytes: [u8; 8] = data.try_into().map_err(|_| Status::SGL_LENGTH)?;
                let set = u64::from_le_bytes(bytes) & 0xFFFF_FFFF_FFFF;
                features.timestamp.set((set, Instant::now()));
            }
            id::KEEP_ALIVE => controller.set_keep_alive(Duration::from_millis(value.into())),
            id::PLACEMENT => {
                self.placement()?;
                return Err(Status::NOT_CHANGEABLE);
            }
            id::PLACEMENT_EVENTS => return self.placement()?.enable_events(command, data),
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok(Done::default())
    }
}

/// Whether a command names the threshold for too high composite temperatures.
fn is_over_threshold(command: &Command) -> bool {
    command.dword(11) >> 16 & 0x3F == 0
}
