//! Commands for fabrics: connect, and properties.

use super::command::Command;
use super::controller::{Controller, ENTRIES_MAX, Host, QUEUES_MAX};
use super::discovery;
use super::pdu::u16_at;
use super::queue::Queue;
use super::status::{Done, Outcome, Status};
use super::subsystem::NQN;
use std::rc::Rc;
use std::time::Duration;

/// Version 2.1.
pub const VERSION: u32 = 0x2_0100;
/// Any controller of the subsystem.
const DYNAMIC: u16 = 0xFFFF;
const CONNECT_BYTES: usize = 1024;
/// Entries of an admin queue.
const ADMIN_ENTRIES_MIN: u16 = 2;

mod property {
    pub const CAPABILITIES: u32 = 0x00;
    pub const VERSION: u32 = 0x08;
    pub const CONFIGURATION: u32 = 0x14;
    pub const STATUS: u32 = 0x1C;
}

mod kind {
    pub const PROPERTY_SET: u8 = 0x00;
    pub const CONNECT: u8 = 0x01;
    pub const PROPERTY_GET: u8 = 0x04;
}

/// The property controller capabilities: entries, contiguous queues, a timeout of 5 s, the NVM and
/// all I/O command sets.
const fn capabilities() -> u64 {
    (ENTRIES_MAX as u64 - 1) | 1 << 16 | 10 << 24 | 1 << 37 | 1 << 43
}

/// A name that ends with a zero byte.
fn name(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok().filter(|it| it.len() <= 223)
}

/// Names the field of a connect command, or of its data, that is wrong.
fn invalid(in_data: bool, at: u64) -> (u64, Status) {
    (u64::from(in_data) << 16 | at, Status::CONNECT_INVALID)
}

impl Queue {
    pub fn fabrics(self: &Rc<Self>, command: &Command, data: &[u8]) -> Outcome {
        let controller = self.controller();
        match (command.fabrics_type(), controller) {
            (kind::CONNECT, None) => self.connect(command, data),
            (_, None) | (kind::CONNECT, Some(_)) => Err(Status::COMMAND_SEQUENCE),
            (kind::PROPERTY_GET, Some(it)) if self.id.get() == 0 => get(&it, command),
            (kind::PROPERTY_SET, Some(it)) if self.id.get() == 0 => set(&it, command),
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
        let subsystem = name(&data[256..512]).ok_or(Status::CONNECT_INVALID)?;
        let host = Host { id: host, nqn: name(&data[512..768]).ok_or(Status::CONNECT_INVALID)? };
        let is_discovery = subsystem == discovery::NQN;
        if !is_discovery && subsystem != NQN {
            return Err(invalid(true, 256).1);
        }
        if entries == 0 || entries > ENTRIES_MAX - 1 || (id == 0 && entries + 1 < ADMIN_ENTRIES_MIN)
        {
            return Err(invalid(false, 44).1);
        }
        let controller = match id {
            0 => {
                if wanted != DYNAMIC {
                    return Err(invalid(true, 16).1);
                }
                let keep_alive = Duration::from_millis(command.dword(12).into());
                let number = self.subsystem.number().ok_or(Status::CONNECT_BUSY)?;
                let it = Rc::new(Controller::new(number, is_discovery, host, keep_alive));
                self.subsystem.controllers.borrow_mut().insert(number, Rc::clone(&it));
                it
            }
            id => {
                let controllers = self.subsystem.controllers.borrow();
                let it = controllers.get(&wanted).ok_or(invalid(true, 16).1)?;
                if it.host != host || it.is_discovery || is_discovery {
                    return Err(invalid(true, 0).1);
                }
                if !it.is_ready() {
                    return Err(Status::COMMAND_SEQUENCE);
                }
                if id > QUEUES_MAX || !it.add_queue(id, &self.connection) {
                    return Err(invalid(false, 42).1);
                }
                Rc::clone(it)
            }
        };
        let number = controller.id;
        self.attach(controller, id, entries + 1);
        Ok(Done::result(number.into()))
    }
}

fn get(controller: &Controller, command: &Command) -> Outcome {
    let (is_long, offset) = (command.dword(10) & 7 == 1, command.dword(11));
    let value = match (offset, is_long) {
        (property::CAPABILITIES, true) => capabilities(),
        (property::VERSION, false) => VERSION.into(),
        (property::CONFIGURATION, false) => controller.configuration().into(),
        (property::STATUS, false) => controller.status().into(),
        _ => return Err(Status::INVALID_FIELD),
    };
    Ok(Done::result(value))
}

fn set(controller: &Controller, command: &Command) -> Outcome {
    let (is_long, offset) = (command.dword(10) & 7 == 1, command.dword(11));
    if is_long || offset != property::CONFIGURATION {
        return Err(Status::INVALID_FIELD);
    }
    controller.configure(command.dword(12));
    Ok(Done::default())
}
