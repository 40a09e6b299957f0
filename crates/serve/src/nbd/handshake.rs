//! The fixed newstyle handshake: greeting, options, replies to options.

use super::{Cursor, OPTION_DATA_BYTES_MAX};

const GREETING_MAGIC: [u8; 8] = *b"NBDMAGIC";
const OPTION_MAGIC: [u8; 8] = *b"IHAVEOPT";
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

const FIXED_NEWSTYLE: u16 = 1 << 0;
const NO_ZEROES: u16 = 1 << 1;

/// The one metadata context: which sectors are allocated.
pub const EXPORT_ALLOCATION: &str = "base:allocation";
/// The number of [`EXPORT_ALLOCATION`] in replies.
const ALLOCATION_ID: u32 = 1;

/// The server's first message.
pub fn greeting() -> Vec<u8> {
    let flags = (FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes();
    [&GREETING_MAGIC[..], &OPTION_MAGIC, &flags].concat()
}

/// The flags of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientFlags {
    /// The reply to [`Opt::ExportName`] has no padding.
    pub no_zeroes: bool,
}

/// The client's answer to the greeting; `None` for unknown flags, or a client of the former
/// handshake, which cannot negotiate.
pub fn parse_client_flags(bytes: [u8; super::CLIENT_FLAGS_BYTES]) -> Option<ClientFlags> {
    let flags = u32::from_be_bytes(bytes);
    let known = u32::from(FIXED_NEWSTYLE | NO_ZEROES);
    let good = flags & !known == 0 && flags & u32::from(FIXED_NEWSTYLE) != 0;
    good.then_some(ClientFlags { no_zeroes: flags & u32::from(NO_ZEROES) != 0 })
}

/// The start of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHeader {
    pub option: u32,
    /// Bytes of data that follow.
    pub length: u32,
}

/// Reads the start of an option; `None` for anything else, after which nothing can be understood.
pub fn parse_option_header(bytes: &[u8; super::OPTION_BYTES]) -> Option<OptionHeader> {
    let mut cursor = Cursor(bytes);
    let magic = cursor.take(8)?;
    let header = OptionHeader { option: cursor.u32()?, length: cursor.u32()? };
    (magic == OPTION_MAGIC && header.length <= OPTION_DATA_BYTES_MAX).then_some(header)
}

/// A query about one export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InfoRequest {
    pub export: String,
}

/// A choice of metadata contexts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaRequest {
    pub export: String,
    /// [`EXPORT_ALLOCATION`] is requested.
    pub allocation: bool,
}

/// An option of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opt {
    /// Use this export, in the former way: the reply has no form for errors.
    ExportName(String),
    Abort,
    List,
    Info(InfoRequest),
    /// Use an export.
    Go(InfoRequest),
    /// Use structured replies.
    StructuredReply,
    ListMeta(MetaRequest),
    SetMeta(MetaRequest),
}

/// Why an option is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// Encryption is not offered.
    Encryption,
    /// Unknown here.
    Unsupported,
    /// The option's data are wrong.
    Invalid,
}

const EXPORT_NAME: u32 = 1;
const ABORT: u32 = 2;
const LIST: u32 = 3;
const STARTTLS: u32 = 5;
const INFO: u32 = 6;
const GO: u32 = 7;
const STRUCTURED_REPLY: u32 = 8;
const LIST_META_CONTEXT: u32 = 9;
const SET_META_CONTEXT: u32 = 10;

const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_SIZE: u16 = 3;

/// Reads an option.
///
/// # Errors
/// Why it is not served; the handshake continues.
pub fn parse_option(option: u32, data: &[u8]) -> Result<Opt, OptionError> {
    let empty = |opt: Opt| if data.is_empty() { Ok(opt) } else { Err(OptionError::Invalid) };
    match option {
        EXPORT_NAME => {
            let name = std::str::from_utf8(data).map_err(|_| OptionError::Invalid)?;
            Ok(Opt::ExportName(name.to_owned()))
        }
        ABORT => Ok(Opt::Abort),
        LIST => empty(Opt::List),
        STARTTLS => Err(OptionError::Encryption),
        INFO => info(data).map(Opt::Info).ok_or(OptionError::Invalid),
        GO => info(data).map(Opt::Go).ok_or(OptionError::Invalid),
        STRUCTURED_REPLY => empty(Opt::StructuredReply),
        LIST_META_CONTEXT => meta(data, true).map(Opt::ListMeta).ok_or(OptionError::Invalid),
        SET_META_CONTEXT => meta(data, false).map(Opt::SetMeta).ok_or(OptionError::Invalid),
        _ => Err(OptionError::Unsupported),
    }
}

fn info(data: &[u8]) -> Option<InfoRequest> {
    let mut cursor = Cursor(data);
    let export = cursor.string()?.to_owned();
    // Block sizes are sent also unasked; other information is not offered.
    for _ in 0..cursor.u16()? {
        cursor.u16()?;
    }
    cursor.0.is_empty().then_some(InfoRequest { export })
}

/// Without a query, a list has all contexts and a choice none. A query may end in a colon to ask
/// for a whole namespace.
fn meta(data: &[u8], lists: bool) -> Option<MetaRequest> {
    let mut cursor = Cursor(data);
    let export = cursor.string()?.to_owned();
    let count = cursor.u32()?;
    let mut allocation = lists && count == 0;
    for _ in 0..count {
        let query = cursor.string()?;
        allocation |= query == EXPORT_ALLOCATION || (lists && query == "base:");
    }
    cursor.0.is_empty().then_some(MetaRequest { export, allocation })
}

/// A reply to an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionReply<'a> {
    /// Accepted; also ends a list.
    Ack,
    /// An export of the list.
    Server { name: &'a str, description: &'a str },
    /// Size and capabilities of an export.
    Export { bytes: u64, flags: u16 },
    /// Minimum, preferred and maximum length of a request.
    BlockSizes([u32; 3]),
    /// The allocation context; numbered when it is chosen.
    Allocation { chosen: bool },
    /// No export of this name.
    UnknownExport(&'a str),
    /// Not served.
    Error(OptionError, &'a str),
}

const REP_ACK: u32 = 1;
const REP_SERVER: u32 = 2;
const REP_INFO: u32 = 3;
const REP_META_CONTEXT: u32 = 4;
const REP_ERROR: u32 = 1 << 31;
const REP_ERR_UNSUPPORTED: u32 = REP_ERROR + 1;
const REP_ERR_POLICY: u32 = REP_ERROR + 2;
const REP_ERR_INVALID: u32 = REP_ERROR + 3;
const REP_ERR_UNKNOWN: u32 = REP_ERROR + 6;

/// The bytes of the replies to `option`.
pub fn option_replies(option: u32, replies: &[OptionReply<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for reply in replies {
        let (kind, data) = reply_data(reply);
        out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
        for number in [option, kind, data.len() as u32] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(&data);
    }
    out
}

fn reply_data(reply: &OptionReply<'_>) -> (u32, Vec<u8>) {
    match *reply {
        OptionReply::Ack => (REP_ACK, Vec::new()),
        OptionReply::Server { name, description } => {
            let length = (name.len() as u32).to_be_bytes();
            (REP_SERVER, [&length[..], name.as_bytes(), description.as_bytes()].concat())
        }
        OptionReply::Export { bytes, flags } => {
            let (kind, bytes, flags) =
                (INFO_EXPORT.to_be_bytes(), bytes.to_be_bytes(), flags.to_be_bytes());
            (REP_INFO, [&kind[..], &bytes, &flags].concat())
        }
        OptionReply::BlockSizes(sizes) => {
            let sizes = sizes.map(u32::to_be_bytes).concat();
            (REP_INFO, [&INFO_BLOCK_SIZE.to_be_bytes()[..], &sizes].concat())
        }
        OptionReply::Allocation { chosen } => {
            let id = if chosen { ALLOCATION_ID } else { 0 };
            (REP_META_CONTEXT, [&id.to_be_bytes()[..], EXPORT_ALLOCATION.as_bytes()].concat())
        }
        OptionReply::UnknownExport(message) => (REP_ERR_UNKNOWN, message.into()),
        OptionReply::Error(error, message) => {
            let kind = match error {
                OptionError::Encryption => REP_ERR_POLICY,
                OptionError::Unsupported => REP_ERR_UNSUPPORTED,
                OptionError::Invalid => REP_ERR_INVALID,
            };
            (kind, message.into())
        }
    }
}

/// The reply to [`Opt::ExportName`].
pub fn export_name_reply(bytes: u64, flags: u16, client: ClientFlags) -> Vec<u8> {
    let padding = if client.no_zeroes { 0 } else { 124 };
    [&bytes.to_be_bytes()[..], &flags.to_be_bytes(), &vec![0; padding]].concat()
}

/// The number of the allocation context in block status replies.
pub(super) const fn allocation_id() -> u32 {
    ALLOCATION_ID
}
