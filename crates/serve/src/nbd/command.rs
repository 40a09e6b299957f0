//! The transmission phase: commands and replies.

use super::handshake::allocation_id;
use super::{Cursor, ErrorCode};
use bytes::BytesMut;

/// Bytes of a command before its data.
pub const REQUEST_BYTES: usize = 28;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

const FLAG_FUA: u16 = 1 << 0;
const FLAG_NO_HOLE: u16 = 1 << 1;
const FLAG_DF: u16 = 1 << 2;
const FLAG_REQ_ONE: u16 = 1 << 3;

const REPLY_DONE: u16 = 1 << 0;
const CHUNK_NONE: u16 = 0;
const CHUNK_OFFSET_DATA: u16 = 1;
const CHUNK_BLOCK_STATUS: u16 = 5;
const CHUNK_ERROR: u16 = (1 << 15) + 1;

/// A command without its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Read { whole: bool },
    Write { fua: bool },
    Disconnect,
    Flush,
    Trim { fua: bool },
    WriteZeroes { fua: bool },
    BlockStatus { one: bool },
}

/// A command as it arrives; the data of a write follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub command: Result<Command, HeaderError>,
    pub cookie: u64,
    pub offset: u64,
    pub length: u32,
    /// Bytes of data that follow, also for a write that is refused.
    pub data: u32,
}

/// Why a command is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    Unknown,
    /// A flag that does not belong to the command.
    Flag,
}

impl Header {
    /// Reads a command; `None` for anything else, after which nothing can be understood.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let mut cursor = Cursor(bytes);
        if cursor.u32()? != REQUEST_MAGIC {
            return None;
        }
        let (flags, kind) = (cursor.u16()?, cursor.u16()?);
        let (cookie, offset, length) = (cursor.u64()?, cursor.u64()?, cursor.u32()?);
        let has = |flag: u16| flags & flag != 0;
        let fua = has(FLAG_FUA);
        // FUA is accepted everywhere: existing clients set it on other commands, too.
        let (command, allowed) = match kind {
            0 => (Ok(Command::Read { whole: has(FLAG_DF) }), FLAG_FUA | FLAG_DF),
            1 => (Ok(Command::Write { fua }), FLAG_FUA),
            2 => (Ok(Command::Disconnect), u16::MAX),
            3 => (Ok(Command::Flush), FLAG_FUA),
            4 => (Ok(Command::Trim { fua }), FLAG_FUA),
            6 => (Ok(Command::WriteZeroes { fua }), FLAG_FUA | FLAG_NO_HOLE),
            7 => (Ok(Command::BlockStatus { one: has(FLAG_REQ_ONE) }), FLAG_FUA | FLAG_REQ_ONE),
            _ => (Err(HeaderError::Unknown), u16::MAX),
        };
        let command = if flags & !allowed == 0 { command } else { Err(HeaderError::Flag) };
        let data = if kind == 1 { length } else { 0 };
        Some(Self { command, cookie, offset, length, data })
    }
}

/// A range of equal state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub bytes: u32,
    /// Not allocated: it reads as zeros.
    pub hole: bool,
}

/// A reply to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    Done,
    Data { offset: u64, bytes: &'a [u8] },
    Status(&'a [Extent]),
    Error(ErrorCode, &'a str),
}

impl Reply<'_> {
    /// Appends the reply to `out`. Simple replies have no form for block status, which is
    /// sent only after structured replies were negotiated.
    pub fn write(&self, cookie: u64, structured: bool, out: &mut BytesMut) {
        if structured {
            self.write_structured(cookie, out);
            return;
        }
        let error = match self {
            Self::Error(code, _) => *code as u32,
            _ => 0,
        };
        out.extend_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        out.extend_from_slice(&error.to_be_bytes());
        out.extend_from_slice(&cookie.to_be_bytes());
        if let Self::Data { bytes, .. } = self {
            out.extend_from_slice(bytes);
        }
    }

    fn write_structured(&self, cookie: u64, out: &mut BytesMut) {
        let mut chunk = |kind: u16, parts: &[&[u8]]| {
            let length: usize = parts.iter().map(|part| part.len()).sum();
            out.extend_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
            out.extend_from_slice(&REPLY_DONE.to_be_bytes());
            out.extend_from_slice(&kind.to_be_bytes());
            out.extend_from_slice(&cookie.to_be_bytes());
            out.extend_from_slice(&(length as u32).to_be_bytes());
            parts.iter().for_each(|part| out.extend_from_slice(part));
        };
        match *self {
            Self::Done => chunk(CHUNK_NONE, &[]),
            Self::Data { offset, bytes } => {
                chunk(CHUNK_OFFSET_DATA, &[&offset.to_be_bytes(), bytes]);
            }
            Self::Status(extents) => {
                let mut list = Vec::with_capacity(extents.len() * 8);
                for extent in extents {
                    // A hole that reads as zeros: bits 0 and 1.
                    let state = if extent.hole { 3u32 } else { 0 };
                    list.extend_from_slice(&extent.bytes.to_be_bytes());
                    list.extend_from_slice(&state.to_be_bytes());
                }
                chunk(CHUNK_BLOCK_STATUS, &[&allocation_id().to_be_bytes(), &list]);
            }
            Self::Error(code, message) => {
                let (code, length) = ((code as u32).to_be_bytes(), message.len() as u16);
                chunk(CHUNK_ERROR, &[&code, &length.to_be_bytes(), message.as_bytes()]);
            }
        }
    }
}
