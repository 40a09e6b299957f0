//! Commands of a submission queue, and completions.

use super::pdu::{COMMAND_BYTES, COMPLETION_BYTES, u16_at, u32_at, u64_at};
use super::status::Status;

/// A command.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    pub opcode: u8,
    pub id: u16,
    pub nsid: u32,
    bytes: [u8; COMMAND_BYTES],
}

/// The place of a command's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the capsule of the command, from this byte on.
    Capsule(usize),
    /// In PDUs of their own.
    Pdus,
}

/// The direction of a command's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    None,
    FromHost,
    ToHost,
}

/// The opcode of commands for fabrics.
pub const FABRICS: u8 = 0x7F;
/// The namespace that stands for all.
pub const ALL_NAMESPACES: u32 = u32::MAX;

impl Command {
    pub fn parse(bytes: [u8; COMMAND_BYTES]) -> Self {
        let (opcode, id, nsid) = (bytes[0], u16_at(&bytes, 2), u32_at(&bytes, 4));
        Self { opcode, id, nsid, bytes }
    }

    /// Command dword `number`.
    pub fn dword(&self, number: usize) -> u32 {
        u32_at(&self.bytes, number * 4)
    }

    /// Command dwords `number` and the next.
    pub fn quad(&self, number: usize) -> u64 {
        u64_at(&self.bytes, number * 4)
    }

    /// The type of a command for fabrics.
    pub const fn fabrics_type(&self) -> u8 {
        self.bytes[4]
    }

    /// Fused operations, and addresses of memory of the host, are not supported.
    pub fn check(&self) -> Result<(), Status> {
        let flags = self.bytes[1];
        if flags & 3 != 0 || flags >> 6 == 0 && self.opcode != FABRICS {
            return Err(Status::INVALID_FIELD);
        }
        Ok(())
    }

    pub fn direction(&self) -> Direction {
        let code = if self.opcode == FABRICS { self.fabrics_type() } else { self.opcode };
        match code & 3 {
            1 => Direction::FromHost,
            2 => Direction::ToHost,
            _ => Direction::None,
        }
    }

    /// Length and place of the data.
    pub fn data(&self) -> Result<(usize, Place), Status> {
        let (offset, length) = (u64_at(&self.bytes, 24), u32_at(&self.bytes, 32) as usize);
        let place = match self.bytes[39] {
            0x01 => Place::Capsule(usize::try_from(offset).map_err(|_| Status::SGL_OFFSET)?),
            0x5A => Place::Pdus,
            // No data: nothing is transferred.
            _ if length == 0 => Place::Pdus,
            _ => return Err(Status::SGL_TYPE),
        };
        Ok((length, place))
    }
}

/// A completion.
pub struct Completion {
    pub result: u64,
    pub head: u16,
    pub queue: u16,
    pub command: u16,
    pub status: Status,
}

impl Completion {
    pub fn to_bytes(&self) -> [u8; COMPLETION_BYTES] {
        let mut bytes = [0; COMPLETION_BYTES];
        bytes[..8].copy_from_slice(&self.result.to_le_bytes());
        bytes[8..10].copy_from_slice(&self.head.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.queue.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.command.to_le_bytes());
        bytes[14..].copy_from_slice(&(self.status.code() << 1).to_le_bytes());
        bytes
    }
}

/// A buffer of a data structure, filled field by field.
pub struct Page(Vec<u8>);

impl Page {
    pub fn new(bytes: usize) -> Self {
        Self(vec![0; bytes])
    }

    pub fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) -> &mut Self {
        self.0[at..at + N].copy_from_slice(&bytes);
        self
    }

    pub fn u8(&mut self, at: usize, value: u8) -> &mut Self {
        self.put(at, [value])
    }

    pub fn u16(&mut self, at: usize, value: u16) -> &mut Self {
        self.put(at, value.to_le_bytes())
    }

    pub fn u32(&mut self, at: usize, value: u32) -> &mut Self {
        self.put(at, value.to_le_bytes())
    }

    pub fn u64(&mut self, at: usize, value: u64) -> &mut Self {
        self.put(at, value.to_le_bytes())
    }

    /// A text in `length` bytes, filled with `fill`.
    pub fn text(&mut self, at: usize, length: usize, text: &str, fill: u8) -> &mut Self {
        let count = text.len().min(length);
        self.0[at..at + length].fill(fill);
        self.0[at..at + count].copy_from_slice(&text.as_bytes()[..count]);
        self
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}
