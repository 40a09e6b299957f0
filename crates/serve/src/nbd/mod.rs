//! The network block device protocol, as far as a server needs it: bytes in, typed messages out,
//! and replies to bytes. Pure: no input or output takes place here.
//!
//! Source: the protocol document of the NBD project, `doc/proto.md`, which is in the public domain.
//! All numbers are big-endian.

mod command;
mod handshake;

pub use command::{Command, Extent, Header, Reply};
pub use handshake::{
    ClientFlags, InfoRequest, Opt, OptionError, OptionReply, export_name_reply, greeting,
    option_replies, parse_client_flags, parse_option, parse_option_header,
};

/// Bytes of the client's flags.
pub const CLIENT_FLAGS_BYTES: usize = 4;
/// Bytes before the data of an option.
pub const OPTION_BYTES: usize = 16;
/// The longest data of an option that is read; the longest legitimate one names an export (4,096
/// bytes) and some metadata contexts.
pub const OPTION_DATA_BYTES_MAX: u32 = 64 << 10;
/// The longest name or message, by the protocol.
pub const NAME_BYTES_MAX: usize = 4096;

/// Flags for the operations that a client may use on an export.
pub mod transmission {
    pub const HAS_FLAGS: u16 = 1 << 0;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
}

/// Error numbers of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ErrorCode {
    /// The device could not serve the request.
    Io = 5,
    /// The request is wrong.
    Invalid = 22,
    /// A write beyond the end of the device.
    NoSpace = 28,
    /// The read is too long to be sent in one piece.
    Overflow = 75,
}

pub(crate) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    pub fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A string after its length in 32 bits.
    pub fn string(&mut self) -> Option<&'a str> {
        let length = self.u32()? as usize;
        let text = std::str::from_utf8(self.take(length)?).ok()?;
        (length <= NAME_BYTES_MAX && !text.contains('\0')).then_some(text)
    }
}

#[cfg(test)]
mod tests;
