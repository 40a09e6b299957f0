//! Protocol data units of the TCP transport (NVMe/TCP Transport Specification 1.1, PDU
//! definitions). All numbers are little-endian.

use bytes::{BufMut, BytesMut};

/// Bytes of the header that all PDUs have.
pub const COMMON_BYTES: usize = 8;
/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 4;
/// Bytes of a command.
pub const COMMAND_BYTES: usize = 64;
/// Bytes of a completion.
pub const COMPLETION_BYTES: usize = 16;
/// Data of one PDU from the host.
pub const HOST_DATA_BYTES_MAX: u32 = 256 << 10;

/// Types of PDUs.
pub mod kind {
    pub const INIT_REQUEST: u8 = 0;
    pub const INIT_RESPONSE: u8 = 1;
    pub const HOST_TERMINATE: u8 = 2;
    pub const CONTROLLER_TERMINATE: u8 = 3;
    pub const COMMAND: u8 = 4;
    pub const RESPONSE: u8 = 5;
    pub const HOST_DATA: u8 = 6;
    pub const CONTROLLER_DATA: u8 = 7;
    pub const READY: u8 = 9;
}

const HEADER_DIGEST: u8 = 1;
const DATA_DIGEST: u8 = 2;
const LAST: u8 = 4;

/// Why a connection is terminated (fatal error status).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Fatal {
    Header = 1,
    Sequence = 2,
    HeaderDigest = 3,
    DataRange = 4,
    DataLimit = 5,
    Unsupported = 6,
}

pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// The header that all PDUs have.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    pub kind: u8,
    pub flags: u8,
    pub header: u8,
    pub data_offset: u8,
    pub length: u32,
}

impl Common {
    pub fn parse(bytes: &[u8; COMMON_BYTES]) -> Self {
        let &[kind, flags, header, data_offset, ..] = bytes;
        Self { kind, flags, header, data_offset, length: u32_at(bytes, 4) }
    }

    /// Bytes of the header of PDUs that a host sends after the connection is initialized.
    const fn header_bytes(kind: u8) -> Option<u8> {
        match kind {
            kind::COMMAND => Some((COMMON_BYTES + COMMAND_BYTES) as u8),
            kind::HOST_DATA => Some(24),
            _ => None,
        }
    }

    /// Checks a PDU of an initialized connection. Returns the bytes between header and data, and
    /// those of data, with their digest.
    pub fn check(&self, form: Form) -> Result<(usize, usize), Fatal> {
        let header = Self::header_bytes(self.kind).ok_or(Fatal::Header)?;
        let digests = self.flags & (HEADER_DIGEST | DATA_DIGEST);
        let begin = usize::from(header) + form.header_digest();
        let length = self.length as usize;
        if self.header != header || length < begin || digests & !form.flags(true) != 0 {
            return Err(Fatal::Header);
        }
        if form.header && digests & HEADER_DIGEST == 0 {
            return Err(Fatal::Header);
        }
        if length == begin {
            return Ok((form.header_digest(), 0));
        }
        let offset = usize::from(self.data_offset);
        if offset < begin || offset > length || offset % 4 != 0 {
            return Err(Fatal::Header);
        }
        let has_digest = digests & DATA_DIGEST != 0;
        if has_digest != form.data || (has_digest && length - offset <= DIGEST_BYTES) {
            return Err(Fatal::Header);
        }
        Ok((offset - usize::from(header), length - offset))
    }
}

/// The form of PDUs that a connection has agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Headers, and data, are followed by a digest.
    pub header: bool,
    pub data: bool,
    /// Data to the host begin at multiples of this many dwords, plus one.
    alignment: u8,
}

/// Parses the rest of an initialization request.
pub fn parse_init(bytes: &[u8; 120]) -> Result<Form, Fatal> {
    let (version, alignment, digests) = (u16_at(bytes, 0), bytes[2], bytes[3]);
    if version != 0 || alignment > 31 || digests & !3 != 0 {
        return Err(Fatal::Unsupported);
    }
    Ok(Form { header: digests & 1 != 0, data: digests & 2 != 0, alignment })
}

impl Form {
    fn header_digest(self) -> usize {
        if self.header { DIGEST_BYTES } else { 0 }
    }

    fn flags(self, has_data: bool) -> u8 {
        u8::from(self.header) | if self.data && has_data { DATA_DIGEST } else { 0 }
    }

    fn begin(self, out: &mut BytesMut, kind: u8, flags: u8, rest: &[u8]) {
        let header = COMMON_BYTES + rest.len();
        let length = header + self.header_digest();
        self.header(out, (kind, flags | self.flags(false)), (0, length), rest);
    }

    fn header(
        self,
        out: &mut BytesMut,
        (kind, flags): (u8, u8),
        (data_offset, length): (usize, usize),
        rest: &[u8],
    ) {
        let first = out.len();
        let header = COMMON_BYTES + rest.len();
        out.put_slice(&[kind, flags, header as u8, data_offset as u8]);
        out.put_u32_le(length as u32);
        out.put_slice(rest);
        if self.header {
            let digest = crc32c::crc32c(&out[first..]);
            out.put_u32_le(digest);
        }
    }

    /// The response to an initialization request.
    pub fn init_response(self, out: &mut BytesMut) {
        let mut rest = [0; 120];
        rest[3] = u8::from(self.header) | u8::from(self.data) << 1;
        rest[4..8].copy_from_slice(&HOST_DATA_BYTES_MAX.to_le_bytes());
        Self::default().begin(out, kind::INIT_RESPONSE, 0, &rest);
    }

    /// The completion of a command.
    pub fn response(self, out: &mut BytesMut, completion: &[u8; COMPLETION_BYTES]) {
        self.begin(out, kind::RESPONSE, 0, completion);
    }

    /// The controller is ready for all data of a command: `length` bytes.
    pub fn ready(self, out: &mut BytesMut, (command, transfer): (u16, u16), length: u32) {
        let mut rest = [0; 16];
        rest[..2].copy_from_slice(&command.to_le_bytes());
        rest[2..4].copy_from_slice(&transfer.to_le_bytes());
        rest[8..12].copy_from_slice(&length.to_le_bytes());
        self.begin(out, kind::READY, 0, &rest);
    }

    /// All data of a command, for the host.
    pub fn data(self, out: &mut BytesMut, command: u16, data: &[u8]) {
        let mut rest = [0; 16];
        rest[..2].copy_from_slice(&command.to_le_bytes());
        rest[8..12].copy_from_slice(&(data.len() as u32).to_le_bytes());
        let header = COMMON_BYTES + rest.len() + self.header_digest();
        let offset = header.next_multiple_of(4 * (usize::from(self.alignment) + 1));
        let digest = if self.data { DIGEST_BYTES } else { 0 };
        let length = offset + data.len() + digest;
        out.reserve(length);
        let flags = LAST | self.flags(true);
        self.header(out, (kind::CONTROLLER_DATA, flags), (offset, length), &rest);
        out.put_bytes(0, offset - header);
        out.put_slice(data);
        if self.data {
            out.put_u32_le(crc32c::crc32c(data));
        }
    }

    /// The connection ends for this reason; `header` is that of the PDU at fault.
    pub fn terminate(out: &mut BytesMut, reason: Fatal, header: &[u8]) {
        let mut rest = vec![0; 16];
        rest[..2].copy_from_slice(&(reason as u16).to_le_bytes());
        let length = COMMON_BYTES + rest.len() + header.len();
        let form = Self::default();
        form.header(out, (kind::CONTROLLER_TERMINATE, 0), (0, length), &rest);
        out.put_slice(header);
    }
}

/// Whether `digest` is the CRC-32C of `bytes`.
pub fn is_intact(bytes: &[u8], digest: &[u8]) -> bool {
    crc32c::crc32c(bytes) == u32_at(digest, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Form = Form { header: false, data: false, alignment: 0 };
    const DIGESTS: Form = Form { header: true, data: true, alignment: 0 };

    fn common(kind: u8, flags: u8, data_offset: u8, length: u32) -> Common {
        let header = Common::header_bytes(kind).unwrap_or(8);
        Common { kind, flags, header, data_offset, length }
    }

    #[test]
    fn lengths_and_offsets_that_cannot_be_are_refused() {
        let checked =
            |form, flags, offset, length| common(kind::COMMAND, flags, offset, length).check(form);
        assert_eq!(checked(PLAIN, 0, 0, 72), Ok((0, 0)));
        assert_eq!(checked(PLAIN, 0, 72, 72 + 512), Ok((0, 512)));
        assert_eq!(checked(PLAIN, 0, 80, 80 + 512), Ok((8, 512)));
        assert_eq!(checked(DIGESTS, 1, 0, 76), Ok((4, 0)));
        assert_eq!(checked(DIGESTS, 3, 76, 76 + 516), Ok((4, 516)));
        for (form, flags, offset, length) in [
            (PLAIN, 0, 0, 71),
            (PLAIN, 0, 68, 600),
            (PLAIN, 0, 73, 600),
            (PLAIN, 0, 200, 100),
            (PLAIN, 1, 0, 76),
            (DIGESTS, 0, 0, 76),
            (DIGESTS, 1, 76, 600),
            (DIGESTS, 3, 76, 80),
        ] {
            assert_eq!(checked(form, flags, offset, length), Err(Fatal::Header), "{length}");
        }
        assert_eq!(common(5, 0, 0, 24).check(PLAIN), Err(Fatal::Header));
    }

    #[test]
    fn data_have_a_digest_and_the_alignment_of_the_host() {
        let mut out = BytesMut::new();
        Form { header: true, data: true, alignment: 31 }.data(&mut out, 7, b"123456789");
        assert_eq!(out.len(), 128 + 9 + 4);
        assert_eq!((out[0], out[1], out[2], out[3]), (7, 7, 24, 128));
        // The check value of CRC-32C.
        assert_eq!(u32_at(&out, 137), 0xE306_9283);
        assert!(is_intact(&out[..24], &out[24..28]));
    }
}
