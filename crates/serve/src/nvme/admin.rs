//! Admin commands.

use super::command::{Command, Page};
use super::controller::Controller;
use super::placement::Placement;
use super::queue::Queue;
use super::status::{Done, Outcome, Status};
use std::rc::Rc;

mod opcode {
    pub const LOG_PAGE: u8 = 0x02;
    pub const IDENTIFY: u8 = 0x06;
    pub const ABORT: u8 = 0x08;
    pub const SET_FEATURES: u8 = 0x09;
    pub const GET_FEATURES: u8 = 0x0A;
    pub const EVENT: u8 = 0x0C;
    pub const KEEP_ALIVE: u8 = 0x18;
    pub const DIRECTIVE_SEND: u8 = 0x19;
    pub const DIRECTIVE_RECEIVE: u8 = 0x1A;
}

/// The admin commands that are supported.
pub const OPCODES: [u8; 9] = [
    opcode::LOG_PAGE,
    opcode::IDENTIFY,
    opcode::ABORT,
    opcode::SET_FEATURES,
    opcode::GET_FEATURES,
    opcode::EVENT,
    opcode::KEEP_ALIVE,
    opcode::DIRECTIVE_SEND,
    opcode::DIRECTIVE_RECEIVE,
];

/// Whether a command is supported with placement only.
pub const fn is_placing(opcode: u8) -> bool {
    matches!(opcode, opcode::DIRECTIVE_SEND | opcode::DIRECTIVE_RECEIVE)
}

impl Queue {
    pub async fn admin(
        self: &Rc<Self>,
        controller: &Controller,
        command: &Command,
        data: &[u8],
    ) -> Outcome {
        match command.opcode {
            opcode::KEEP_ALIVE => Ok(Done::default()),
            opcode::IDENTIFY => self.identify(controller, command),
            opcode::LOG_PAGE => self.log_page(controller, command),
            opcode::GET_FEATURES => self.get_features(controller, command),
            opcode::SET_FEATURES => self.set_features(controller, command, data),
            opcode::EVENT => {
                let event = controller.request_event(command.id)?;
                event.await.unwrap_or(Err(Status::ABORT_REQUESTED))
            }
            opcode::ABORT => {
                let (queue, id) = (command.dword(10) as u16, (command.dword(10) >> 16) as u16);
                // Commands that the drive serves are not aborted.
                let aborted = queue == 0 && controller.abort_event_request(id);
                Ok(Done::result(u64::from(!aborted)))
            }
            opcode::DIRECTIVE_RECEIVE if !controller.is_discovery => self.directives(command),
            // Directives cannot be enabled or disabled.
            opcode::DIRECTIVE_SEND if self.subsystem.placement.is_some() => {
                Err(Status::INVALID_FIELD)
            }
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// Flexible data placement, or why there is none.
    pub fn placement(&self) -> Result<&Placement, Status> {
        self.subsystem.placement.as_ref().ok_or(Status::INVALID_FIELD)
    }

    /// The directives that are supported: identify, and data placement.
    fn directives(&self, command: &Command) -> Outcome {
        self.placement().map_err(|_| Status::INVALID_OPCODE)?;
        let (operation, kind) = (command.dword(11) as u8, (command.dword(11) >> 8) as u8);
        if (operation, kind) != (1, 0) {
            return Err(Status::INVALID_FIELD);
        }
        self.subsystem.namespace(command.nsid).ok_or(Status::INVALID_NAMESPACE)?;
        let length = (command.dword(10) as usize + 1).saturating_mul(4).min(4096);
        let mut page = Page::new(4096);
        // Supported, enabled, and kept across resets.
        page.u8(0, 1 | 1 << 2).u8(32, 1 | 1 << 2).u8(64, 1 << 2);
        let mut data = page.into_bytes();
        data.truncate(length);
        Ok(Done::data(data))
    }
}
