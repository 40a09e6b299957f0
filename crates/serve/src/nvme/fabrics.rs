//! Commands for fabrics: connect, and properties.

use super::command::Command;
use super::controller::{Controller, ENTRIES_MAX, Host, QUEUES_MAX};
use super::discovery;
use super::pdu::u16_at;
use super::queue::Queue;
use super::status::{Done, Outcome, Status};
use crate::drive::Kind;
use hybridsim_engine::Flags;
use std::rc::Rc;
use std::time::Duration;

/// Version 2.1.
pub const VERSION: u32 = 0x2_0100;
/// Any controller of the subsystem.
const DYNAMIC: u16 = 0xFFFF;
const CONNECT_BYTES: usize = 1024;

mod property {
    pub const CAPABILITIES: u32 = 0x00;
    pub const VERSION: u32 = 0x08;
    pub const CONFIGURATION: u32 = 0x14;
    pub const STATUS: u32 = 0x1C;
    pub const READY_TIMEOUTS: u32 = 0x68;
}

mod kind {
    pub const PROPERTY_SET: u8 = 0x00;
    pub const CONNECT: u8 = 0x01;
    pub const PROPERTY_GET: u8 = 0x04;
}

/// The time until a controller is ready, in units of 500 ms.
const READY_HALF_SECONDS: u64 = 10;

/// The property controller capabilities: entries, contiguous queues, a timeout, the NVM and all I/O
/// command sets, and that a controller is ready when its media are.
const fn capabilities() -> u64 {
    (ENTRIES_MAX as u64 - 1) | 1 << 16 | READY_HALF_SECONDS << 24 | 1 << 37 | 1 << 43 | 1 << 59
}

/// A name that ends with a zero byte.
fn name(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok().filter(|it| it.len() <= 223)
}

/// Names the field of a connect command, or of its data, that is wrong.
fn invalid(in_data: bool, at: u64) -> Outcome {
    let result = u64::from(in_data) << 16 | at;
    Ok(Done { status: Status::CONNECT_INVALID, ..Done::result(result) })
}

impl Queue {
    pub async fn fabrics(self: &Rc<Self>, command: &Command, data: &[u8]) -> Outcome {
        let controller = self.controller();
        match (command.fabrics_type(), controller) {
            (kind::CONNECT, None) => self.connect(command, data),
            (_, None) | (kind::CONNECT, Some(_)) => Err(Status::COMMAND_SEQUENCE),
            (kind::PROPERTY_GET, Some(it)) if self.id.get() == 0 => get(&it, command),
            (kind::PROPERTY_SET, Some(it)) if self.id.get() == 0 => self.set(&it, command).await,
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    fn connect(self: &Rc<Self>, command: &Command, data: &[u8]) -> Outcome {
        let (format, id) = (command.dword(10) & 0xFFFF, (command.dword(10) >> 16) as u16);
        let entries = (command.dword(11) & 0xFFFF) as u16;
        if format != 0 {
            return Err(Status::CONNECT_INCOMPATIBLE);
        }
        if data.len() < CONNECT_BYTES {
            return Err(Status::SGL_LENGTH);
        }
        let mut host = [0; 16];
        host.copy_from_slice(&data[..16]);
        let wanted = u16_at(data, 16);
        let Some(nqn) = name(&data[512..768]) else { return invalid(true, 512) };
        let host = Host { id: host, nqn };
        let subsystem = name(&data[256..512]).unwrap_or_default();
        let is_discovery = subsystem == discovery::NQN;
        if !is_discovery && subsystem != self.subsystem.nqn {
            return invalid(true, 256);
        }
        if entries == 0 || entries > ENTRIES_MAX - 1 {
            return invalid(false, 44);
        }
        let controller = match id {
            0 => {
                if wanted != DYNAMIC {
                    return invalid(true, 16);
                }
                let keep_alive = Duration::from_millis(command.dword(12).into());
                let number = self.subsystem.number().ok_or(Status::CONNECT_BUSY)?;
                let it = Rc::new(Controller::new(number, is_discovery, host, keep_alive));
                self.subsystem.controllers.borrow_mut().insert(number, Rc::clone(&it));
                it
            }
            id => {
                let controllers = self.subsystem.controllers.borrow();
                let Some(it) = controllers.get(&wanted) else { return invalid(true, 16) };
                if it.host != host || it.is_discovery || is_discovery {
                    return invalid(true, 0);
                }
                if !it.is_ready() {
                    return Err(Status::COMMAND_SEQUENCE);
                }
                if id > QUEUES_MAX || !it.add_queue(id, &self.connection) {
                    return invalid(false, 42);
                }
                Rc::clone(it)
            }
        };
        let number = controller.id;
        self.attach(controller, id, entries + 1);
        Ok(Done::result(number.into()))
    }

    /// Sets a property. The host may lose power once the shutdown that it asks for is complete.
    async fn set(&self, controller: &Controller, command: &Command) -> Outcome {
        let (is_long, offset) = (command.dword(10) & 7 == 1, command.dword(11));
        if is_long || offset != property::CONFIGURATION {
            return Err(Status::INVALID_FIELD);
        }
        let value = command.dword(12);
        if controller.begins_shutdown(value) && !controller.is_discovery {
            let flushed = self.job(Kind::Flush, 0, 0, Flags::NONE).await;
            flushed.map_err(|_| Status::INTERNAL_ERROR)?;
        }
        controller.configure(value);
        Ok(Done::default())
    }
}

fn get(controller: &Controller, command: &Command) -> Outcome {
    let (is_long, offset) = (command.dword(10) & 7 == 1, command.dword(11));
    let value = match (offset, is_long) {
        (property::CAPABILITIES, true) => capabilities(),
        (property::VERSION, false) => VERSION.into(),
        (property::CONFIGURATION, false) => controller.configuration().into(),
        (property::STATUS, false) => controller.status().into(),
        (property::READY_TIMEOUTS, false) => READY_HALF_SECONDS,
        _ => return Err(Status::INVALID_FIELD),
    };
    Ok(Done::result(value))
}
