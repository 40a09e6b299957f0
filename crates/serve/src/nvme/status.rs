//! Statuses of completed commands (base specification, status field).

/// A status: its type in bits 10:8, its code in bits 7:0, and from bit 14 on "do not retry".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status(u16);

/// Do not retry: the same command will fail again.
const DNR: u16 = 1 << 14;

const fn generic(code: u16) -> Status {
    Status(code | DNR)
}

const fn specific(code: u16) -> Status {
    Status(0x100 | code | DNR)
}

impl Status {
    pub const SUCCESS: Self = Self(0);
    pub const INVALID_OPCODE: Self = generic(0x01);
    pub const INVALID_FIELD: Self = generic(0x02);
    pub const INTERNAL_ERROR: Self = generic(0x06);
    pub const ABORT_REQUESTED: Self = generic(0x07);
    pub const INVALID_NAMESPACE: Self = generic(0x0B);
    pub const COMMAND_SEQUENCE: Self = generic(0x0C);
    pub const SGL_LENGTH: Self = generic(0x0F);
    pub const SGL_TYPE: Self = generic(0x11);
    pub const SGL_OFFSET: Self = generic(0x16);
    pub const TRANSIENT_TRANSPORT: Self = Self(0x22);
    pub const LBA_RANGE: Self = generic(0x80);

    pub const INVALID_LOG_PAGE: Self = specific(0x09);
    pub const NOT_SAVEABLE: Self = specific(0x0D);
    pub const NOT_CHANGEABLE: Self = specific(0x0E);
    pub const TOO_MANY_EVENT_REQUESTS: Self = specific(0x05);
    pub const COMMAND_SIZE_LIMIT: Self = specific(0x83);

    pub const CONNECT_INCOMPATIBLE: Self = specific(0x80);
    pub const CONNECT_BUSY: Self = Self(0x181);
    pub const CONNECT_INVALID: Self = specific(0x82);

    pub const ZONE_INVALID_OPERATION: Self = specific(0xB6);
    pub const NO_RANDOM_WRITE_AREA: Self = specific(0xB7);
    pub const ZONE_BOUNDARY: Self = specific(0xB8);
    pub const ZONE_FULL: Self = specific(0xB9);
    pub const ZONE_OFFLINE: Self = specific(0xBB);
    pub const ZONE_INVALID_WRITE: Self = specific(0xBC);
    pub const TOO_MANY_ACTIVE: Self = specific(0xBD);
    pub const TOO_MANY_OPEN: Self = specific(0xBE);
    pub const ZONE_TRANSITION: Self = specific(0xBF);

    pub const WRITE_FAULT: Self = Self(0x280);
    pub const READ_ERROR: Self = Self(0x281);
    pub const COMPARE_FAILURE: Self = Self(0x285 | DNR);

    /// The value of a completion's status field, without the phase tag.
    pub const fn code(self) -> u16 {
        self.0
    }
}

/// The end of a command that has a result.
#[derive(Debug, Default)]
pub struct Done {
    /// Success, unless a command that failed has a result.
    pub status: Status,
    /// Dwords 0 and 1 of the completion.
    pub result: u64,
    /// Data for the host.
    pub data: Vec<u8>,
}

impl Done {
    pub fn result(result: u64) -> Self {
        Self { result, ..Self::default() }
    }

    pub fn data(data: Vec<u8>) -> Self {
        Self { data, ..Self::default() }
    }
}

/// The end of a command.
pub type Outcome = Result<Done, Status>;
