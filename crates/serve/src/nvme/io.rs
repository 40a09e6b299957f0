//! I/O commands.

use super::command::{ALL_NAMESPACES, Command};
use super::controller::Controller;
use super::identify::COPY_RANGES_MAX;
use super::pdu::{u16_at, u32_at, u64_at};
use super::queue::{Queue, TRANSFER_BYTES_MAX};
use super::status::{Done, Outcome, Status};
use super::subsystem::{Namespace, count};
use crate::contents::Data;
use crate::drive::Kind;
use hybridsim_engine::Flags;

pub mod opcode {
    pub const FLUSH: u8 = 0x00;
    pub const WRITE: u8 = 0x01;
    pub const READ: u8 = 0x02;
    pub const COMPARE: u8 = 0x05;
    pub const WRITE_ZEROES: u8 = 0x08;
    pub const DATASET: u8 = 0x09;
    pub const VERIFY: u8 = 0x0C;
    pub const IO_RECEIVE: u8 = 0x12;
    pub const COPY: u8 = 0x19;
    pub const ZONE_SEND: u8 = 0x79;
    pub const ZONE_RECEIVE: u8 = 0x7A;
    pub const APPEND: u8 = 0x7D;
}

/// The commands of the NVM command set that are supported, and whether they change data.
pub const COMMANDS: [(u8, bool); 9] = [
    (opcode::FLUSH, false),
    (opcode::WRITE, true),
    (opcode::READ, false),
    (opcode::COMPARE, false),
    (opcode::WRITE_ZEROES, true),
    (opcode::DATASET, true),
    (opcode::VERIFY, false),
    (opcode::IO_RECEIVE, false),
    (opcode::COPY, true),
];

/// Whether a command is supported with placement only.
pub const fn is_placing(opcode: u8) -> bool {
    opcode == opcode::IO_RECEIVE
}

/// Those that zoned namespaces have besides.
pub const ZONED_COMMANDS: [(u8, bool); 3] =
    [(opcode::ZONE_SEND, true), (opcode::ZONE_RECEIVE, false), (opcode::APPEND, true)];

/// Sectors of one trim to the device: 2 GiB.
const TRIM_SECTORS_MAX: u64 = 1 << 22;
const RANGE_BYTES: usize = 16;
const COPY_DESCRIPTOR_BYTES: usize = 32;

/// Bytes that a command needs besides those of its data.
pub fn own_bytes(command: &Command, length: usize) -> usize {
    match command.opcode {
        opcode::COMPARE => length,
        opcode::VERIFY | opcode::COPY => TRANSFER_BYTES_MAX,
        _ => 0,
    }
}

/// Blocks of a namespace, in sectors of it.
#[derive(Clone, Copy)]
struct Range {
    first: u64,
    sectors: u64,
}

impl Range {
    fn new(namespace: &Namespace, block: u64, blocks: u64) -> Result<Self, Status> {
        let end = block.checked_add(blocks).ok_or(Status::LBA_RANGE)?;
        if end > namespace.blocks() {
            return Err(Status::LBA_RANGE);
        }
        Ok(Self { first: block << namespace.shift, sectors: blocks << namespace.shift })
    }

    /// The range that a command names in dwords 10 to 12.
    fn of(namespace: &Namespace, command: &Command) -> Result<Self, Status> {
        let blocks = u64::from(command.dword(12) & 0xFFFF) + 1;
        Self::new(namespace, command.quad(10), blocks)
    }

    const fn bytes(self) -> usize {
        (self.sectors * hybridsim_engine::SECTOR_BYTES) as usize
    }

    /// Checks that the range has the length of the data.
    fn check(self, length: usize) -> Result<(), Status> {
        match self.bytes() {
            bytes if bytes > TRANSFER_BYTES_MAX => Err(Status::INVALID_FIELD),
            bytes if bytes != length => Err(Status::SGL_LENGTH),
            _ => Ok(()),
        }
    }
}

impl Queue {
    pub async fn io(&self, controller: &Controller, command: &Command, data: Vec<u8>) -> Outcome {
        if command.opcode == opcode::FLUSH && command.nsid == ALL_NAMESPACES {
            return self.flush().await;
        }
        let namespace = self.subsystem.namespace(command.nsid).ok_or(Status::INVALID_NAMESPACE)?;
        if namespace.zones.is_some() && !controller.has_all_sets() {
            // Inactive, as the host did not enable its command set.
            return Err(Status::INVALID_FIELD);
        }
        match command.opcode {
            opcode::FLUSH => self.flush().await,
            opcode::READ => self.read(namespace, command).await,
            opcode::WRITE => {
                let range = Range::of(namespace, command)?;
                range.check(data.len())?;
                self.write(controller, namespace, command, (range, Data::Bytes(data))).await
            }
            opcode::APPEND if namespace.zones.is_some() => {
                let range = Range::of(namespace, command)?;
                range.check(data.len())?;
                self.append(controller, namespace, command, (range, data)).await
            }
            opcode::WRITE_ZEROES => {
                let range = Range::of(namespace, command)?;
                self.write(controller, namespace, command, (range, Data::Zeros)).await
            }
            opcode::COMPARE => self.compare(namespace, command, &data).await,
            opcode::VERIFY => {
                let range = Range::of(namespace, command)?;
                if range.bytes() > TRANSFER_BYTES_MAX {
                    return Err(Status::INVALID_FIELD);
                }
                self.load(namespace, range).await.map(|_| Done::default())
            }
            opcode::DATASET => self.dataset(namespace, command, &data).await,
            opcode::COPY => self.copy(controller, namespace, command, &data).await,
            opcode::ZONE_SEND => self.zone_send(namespace, command).await,
            opcode::ZONE_RECEIVE => self.zone_receive(namespace, command),
            opcode::IO_RECEIVE => self.handles(namespace, command),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    async fn flush(&self) -> Outcome {
        let flushed = self.job(Kind::Flush, 0, 0, Flags::NONE).await;
        flushed.map(|_| Done::default()).map_err(|_| self.media_error(Status::WRITE_FAULT))
    }

    fn media_error(&self, status: Status) -> Status {
        count(&self.subsystem.counts.media_errors, 1);
        status
    }

    /// The bytes of a range.
    async fn load(&self, namespace: &Namespace, range: Range) -> Result<Vec<u8>, Status> {
        let Range { first, sectors } = range;
        let zones = namespace.zones.as_ref();
        if zones.is_some_and(|it| it.is_offline(&self.server, first, sectors)) {
            return Err(Status::ZONE_OFFLINE);
        }
        let read = self.job(Kind::Read, namespace.first + first, sectors, Flags::NONE).await;
        read.map_err(|_| self.media_error(Status::READ_ERROR))
    }

    async fn read(&self, namespace: &Namespace, command: &Command) -> Outcome {
        let range = Range::of(namespace, command)?;
        range.check(command.data()?.0)?;
        let bytes = self.load(namespace, range).await?;
        let counts = &self.subsystem.counts;
        count(&counts.reads, 1);
        count(&counts.sectors_read, range.sectors);
        Ok(Done::data(bytes))
    }

    /// Flags of a write, which is counted.
    fn flags(&self, controller: &Controller, command: &Command, sectors: u64) -> Flags {
        let forced = command.dword(12) >> 30 & 1 != 0;
        let flags = if forced { Flags::FUA } else { Flags::NONE };
        let counts = &self.subsystem.counts;
        count(&counts.writes, 1);
        count(&counts.sectors_written, sectors);
        let milliseconds = controller.features.milliseconds();
        let placement = self.subsystem.placement.as_ref();
        let handle = placement.map_or(0, |it| it.handle(command, sectors, milliseconds));
        flags.with_handle(handle)
    }

    async fn write(
        &self,
        controller: &Controller,
        namespace: &Namespace,
        command: &Command,
        (range, data): (Range, Data),
    ) -> Outcome {
        let Range { first, sectors } = range;
        let _writing = match &namespace.zones {
            Some(zones) => Some(zones.write(&self.server, (first, sectors), false).await?),
            None => None,
        };
        let flags = self.flags(controller, command, sectors);
        self.store(namespace, (range, data), flags).await
    }

    async fn store(
        &self,
        namespace: &Namespace,
        (range, data): (Range, Data),
        flags: Flags,
    ) -> Outcome {
        let Range { first, sectors } = range;
        let written = self.job(Kind::Write(data), namespace.first + first, sectors, flags).await;
        let failed = |_| match &namespace.zones {
            Some(zones) => zones.refused(&self.server, first),
            None => self.media_error(Status::WRITE_FAULT),
        };
        written.map(|_| Done::default()).map_err(failed)
    }

    async fn append(
        &self,
        controller: &Controller,
        namespace: &Namespace,
        command: &Command,
        (range, data): (Range, Vec<u8>),
    ) -> Outcome {
        let zones = namespace.zones.as_ref().ok_or(Status::INVALID_OPCODE)?;
        let Range { first, sectors } = range;
        if !first.is_multiple_of(zones.layout.size) {
            return Err(Status::INVALID_FIELD);
        }
        let writing = zones.write(&self.server, (first, sectors), true).await?;
        let range = Range { first: writing.sector, sectors };
        let flags = self.flags(controller, command, sectors).with(Flags::APPEND);
        self.store(namespace, (range, Data::Bytes(data)), flags).await?;
        Ok(Done::result(writing.sector >> namespace.shift))
    }

    async fn compare(&self, namespace: &Namespace, command: &Command, data: &[u8]) -> Outcome {
        let range = Range::of(namespace, command)?;
        range.check(data.len())?;
        let bytes = self.load(namespace, range).await?;
        if bytes == data { Ok(Done::default()) } else { Err(Status::COMPARE_FAILURE) }
    }

    /// Dataset management: deallocates ranges; other attributes are hints without effect.
    async fn dataset(&self, namespace: &Namespace, command: &Command, data: &[u8]) -> Outcome {
        let ranges = (command.dword(10) as usize & 0xFF) + 1;
        let bytes = data.get(..ranges * RANGE_BYTES).ok_or(Status::SGL_LENGTH)?;
        let list = bytes.chunks_exact(RANGE_BYTES);
        let parse = |it: &[u8]| Range::new(namespace, u64_at(it, 8), u32_at(it, 4).into());
        let list = list.map(parse).collect::<Result<Vec<_>, _>>()?;
        // Zones are emptied by a reset alone.
        if command.dword(11) >> 2 & 1 == 0 || namespace.zones.is_some() {
            return Ok(Done::default());
        }
        for Range { first, sectors } in list {
            let mut done = 0;
            while done < sectors {
                let part = TRIM_SECTORS_MAX.min(sectors - done);
                let at = namespace.first + first + done;
                let trimmed = self.job(Kind::Trim, at, part, Flags::NONE).await;
                trimmed.map_err(|_| self.media_error(Status::WRITE_FAULT))?;
                done += part;
            }
        }
        Ok(Done::default())
    }

    /// Copies ranges of the namespace, one after the other.
    async fn copy(
        &self,
        controller: &Controller,
        namespace: &Namespace,
        command: &Command,
        data: &[u8],
    ) -> Outcome {
        let (ranges, format) =
            ((command.dword(12) & 0xFF) as usize + 1, command.dword(12) >> 8 & 15);
        if format != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if ranges > usize::from(COPY_RANGES_MAX) {
            return Err(Status::COMMAND_SIZE_LIMIT);
        }
        let bytes = data.get(..ranges * COPY_DESCRIPTOR_BYTES).ok_or(Status::SGL_LENGTH)?;
        let list = bytes.chunks_exact(COPY_DESCRIPTOR_BYTES);
        let parse = |it: &[u8]| Range::new(namespace, u64_at(it, 8), u64::from(u16_at(it, 16)) + 1);
        let sources = list.map(parse).collect::<Result<Vec<_>, _>>()?;
        let sectors: u64 = sources.iter().map(|it| it.sectors).sum();
        let target = Range::new(namespace, command.quad(10), sectors >> namespace.shift)?;
        if target.bytes() > TRANSFER_BYTES_MAX {
            return Err(Status::COMMAND_SIZE_LIMIT);
        }
        let mut first = target.first;
        for source in sources {
            let bytes = self.load(namespace, source).await?;
            let range = Range { first, sectors: source.sectors };
            self.write(controller, namespace, command, (range, Data::Bytes(bytes))).await?;
            first += source.sectors;
        }
        Ok(Done::default())
    }

    /// I/O management receive: the handles of data placement.
    fn handles(&self, namespace: &Namespace, command: &Command) -> Outcome {
        let placement = self.subsystem.placement.as_ref().ok_or(Status::INVALID_OPCODE)?;
        if command.dword(10) as u8 != 1 {
            return Err(Status::INVALID_FIELD);
        }
        let length = (command.dword(11) as usize + 1).saturating_mul(4);
        let mut page = self.server.with_drive(|drive| {
            placement.status(namespace.shift, |handle| drive.unit_left(handle))
        });
        page.resize(length.min(command.data()?.0), 0);
        Ok(Done::data(page))
    }
}
