//! A host of NVMe over TCP, as plain as can be, which checks each byte of the transport, and also
//! misbehaves.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";
pub const SUBSYSTEM: &str = "nqn.2026-11.local.hybridsim:drive";
pub const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555";

/// Bytes in the capsule of a command that the server accepts.
const CAPSULE_MAX: usize = 8192;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// A command.
#[derive(Clone, Debug)]
pub struct Command {
    bytes: [u8; 64],
}

impl Command {
    pub fn new(opcode: u8, nsid: u32) -> Self {
        let mut bytes = [0; 64];
        (bytes[0], bytes[1]) = (opcode, 1 << 6);
        bytes[4..8].copy_from_slice(&nsid.to_le_bytes());
        Self { bytes }
    }

    /// Sets command dword `number`.
    #[must_use]
    pub fn dword(mut self, number: usize, value: u32) -> Self {
        self.bytes[number * 4..number * 4 + 4].copy_from_slice(&value.to_le_bytes());
        self
    }

    /// A command on `blocks` blocks from `lba` on.
    pub fn range(opcode: u8, nsid: u32, lba: u64, blocks: u32) -> Self {
        let it = Self::new(opcode, nsid).dword(10, lba as u32).dword(11, (lba >> 32) as u32);
        it.dword(12, blocks - 1)
    }
}

/// The completion of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    pub id: u16,
    /// Type and code, without "do not retry".
    pub status: u16,
    pub result: u64,
    pub data: Vec<u8>,
}

impl Completion {
    /// The data of a command that succeeded.
    pub fn ok(self) -> Vec<u8> {
        assert_eq!(self.status, 0, "{:x}", self.status);
        self.data
    }
}

/// A PDU from the controller.
#[derive(Debug)]
pub struct Pdu {
    pub kind: u8,
    pub header: Vec<u8>,
    pub data: Vec<u8>,
}

/// A connection.
pub struct Queue {
    pub stream: TcpStream,
    header_digest: bool,
    data_digest: bool,
    next: u16,
    /// The number of the queue, once connected.
    id: Option<u16>,
}

impl Queue {
    /// Connects without a word.
    pub fn silent(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        Self { stream, header_digest: false, data_digest: false, next: 0, id: None }
    }

    /// Initializes a connection, with digests if `digests` says so.
    pub fn initialize(address: SocketAddr, digests: u8) -> Self {
        let mut queue = Self::silent(address);
        let mut request = vec![0, 0, 128, 0, 128, 0, 0, 0];
        request.resize(128, 0);
        request[11] = digests;
        queue.stream.write_all(&request).expect("a socket");
        let mut response = [0; 128];
        queue.stream.read_exact(&mut response).expect("a response");
        assert_eq!(response[..8], [1, 0, 128, 0, 128, 0, 0, 0]);
        assert_eq!((u16_at(&response, 8), response[10], response[11]), (0, 0, digests));
        assert!(u32_at(&response, 12) >= 4096);
        (queue.header_digest, queue.data_digest) = (digests & 1 != 0, digests & 2 != 0);
        queue
    }

    /// Connects to a queue of `controller`; returns the status and the number of the controller.
    pub fn connect(
        &mut self,
        subsystem: &str,
        (queue, entries, controller): (u16, u16, u16),
        keep_alive_ms: u32,
    ) -> (u16, u16) {
        let mut data = vec![0; 1024];
        data[..16].fill(7);
        data[16..18].copy_from_slice(&controller.to_le_bytes());
        data[256..256 + subsystem.len()].copy_from_slice(subsystem.as_bytes());
        data[512..512 + HOST.len()].copy_from_slice(HOST.as_bytes());
        let command = Command::new(0x7F, 1).dword(10, u32::from(queue) << 16);
        let command = command.dword(11, entries.into()).dword(12, keep_alive_ms);
        let done = self.call(command, Some(&data), 0);
        if done.status == 0 {
            self.id = Some(queue);
        }
        (done.status, done.result as u16)
    }

    /// An admin queue of a controller that is enabled; returns the controller's number as well.
    pub fn admin(address: SocketAddr, digests: u8) -> (Self, u16) {
        let mut queue = Self::initialize(address, digests);
        let (status, controller) = queue.connect(SUBSYSTEM, (0, 31, 0xFFFF), 0);
        assert_eq!(status, 0);
        queue.enable();
        (queue, controller)
    }

    pub fn enable(&mut self) {
        assert_eq!(self.property(0x1C), 0, "not ready yet");
        let configuration = 0x46_0001 | 6 << 4;
        let set = Command::new(0x7F, 0).dword(11, 0x14).dword(12, configuration);
        assert_eq!(self.call(set, None, 0).status, 0);
        assert_eq!(self.property(0x1C), 1, "ready");
    }

    /// A property; 64 bits for that at 0.
    pub fn property(&mut self, offset: u32) -> u64 {
        let get = Command::new(0x7F, 4).dword(10, u32::from(offset == 0)).dword(11, offset);
        let done = self.call(get, None, 0);
        assert_eq!(done.status, 0);
        done.result
    }

    /// An I/O queue of `controller`.
    pub fn io(address: SocketAddr, (id, controller): (u16, u16), digests: u8) -> Self {
        let mut queue = Self::initialize(address, digests);
        assert_eq!(queue.connect(SUBSYSTEM, (id, 127, controller), 0).0, 0);
        queue
    }

    fn digest(&self, header: &mut Vec<u8>) {
        if self.header_digest {
            header[1] |= 1;
            header.extend_from_slice(&[0; 4]);
        }
    }

    /// Sends a PDU whose header, without digest, is `header`; lengths and digests are added.
    pub fn pdu(&mut self, mut header: Vec<u8>, data: &[u8]) {
        let bare = header.len();
        self.digest(&mut header);
        let offset = header.len();
        let mut length = offset + data.len();
        if !data.is_empty() {
            header[3] = offset as u8;
            if self.data_digest {
                header[1] |= 2;
                length += 4;
            }
        }
        header[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        if self.header_digest {
            let digest = crc32c::crc32c(&header[..bare]);
            header[bare..].copy_from_slice(&digest.to_le_bytes());
        }
        header.extend_from_slice(data);
        if self.data_digest && !data.is_empty() {
            header.extend_from_slice(&crc32c::crc32c(data).to_le_bytes());
        }
        // A server that has closed the connection shows when it should reply.
        drop(self.stream.write_all(&header));
    }

    /// Sends a command without waiting. Data up to 8 KiB go into the capsule. `expected` is the
    /// length of data from the controller. Returns the identifier.
    pub fn send(&mut self, mut command: Command, data: Option<&[u8]>, expected: usize) -> u16 {
        self.next = (self.next + 1) % 0x7FFF;
        command.bytes[2..4].copy_from_slice(&self.next.to_le_bytes());
        let length = data.map_or(expected, <[u8]>::len);
        command.bytes[32..36].copy_from_slice(&(length as u32).to_le_bytes());
        let capsule = data.filter(|it| it.len() <= CAPSULE_MAX).unwrap_or(&[]);
        command.bytes[39] = if capsule.is_empty() { 0x5A } else { 0x01 };
        let mut header = vec![4, 0, 72, 0, 0, 0, 0, 0];
        header.extend_from_slice(&command.bytes);
        self.pdu(header, capsule);
        self.next
    }

    /// Receives a PDU, whose form is checked.
    pub fn receive(&mut self) -> Option<Pdu> {
        let mut header = vec![0; 8];
        self.stream.read_exact(&mut header).ok()?;
        let (kind, flags, bytes) = (header[0], header[1], usize::from(header[2]));
        let (offset, length) = (usize::from(header[3]), u32_at(&header, 4) as usize);
        header.resize(bytes, 0);
        self.stream.read_exact(&mut header[8..]).ok()?;
        let mut at = bytes;
        if kind != 3 {
            assert_eq!(bytes, 24, "kind {kind}");
            assert_eq!(flags & 1 != 0, self.header_digest);
            if self.header_digest {
                let mut digest = [0; 4];
                self.stream.read_exact(&mut digest).ok()?;
                assert_eq!(u32::from_le_bytes(digest), crc32c::crc32c(&header));
                at += 4;
            }
        }
        let mut data = vec![0; length - at];
        self.stream.read_exact(&mut data).ok()?;
        if kind == 7 {
            assert_eq!((offset, flags & 2 != 0), (at, self.data_digest));
            if self.data_digest {
                let digest = data.split_off(data.len() - 4);
                assert_eq!(u32_at(&digest, 0), crc32c::crc32c(&data));
            }
            assert_eq!((u32_at(&header, 12), u32_at(&header, 16)), (0, data.len() as u32));
        } else if kind != 3 {
            assert!(data.is_empty() && offset == 0);
        }
        Some(Pdu { kind, header, data })
    }

    /// Receives PDUs up to a completion; `data` are sent when the controller is ready for them.
    pub fn completion(&mut self, data: Option<&[u8]>) -> Option<Completion> {
        let mut received = Vec::new();
        loop {
            let Pdu { kind, header, data: bytes } = self.receive()?;
            match kind {
                5 => {
                    let status = u16_at(&header, 22);
                    assert_eq!(status & 1, 0);
                    let queue = u16_at(&header, 18);
                    assert_eq!(queue, self.id.unwrap_or(queue));
                    return Some(Completion {
                        id: u16_at(&header, 20),
                        status: status >> 1 & 0x7FF,
                        result: u64_at(&header, 8),
                        data: received,
                    });
                }
                7 => received = bytes,
                9 => {
                    let all = data.expect("it has data");
                    assert_eq!((u32_at(&header, 12), u32_at(&header, 16)), (0, all.len() as u32));
                    // In parts that are not equal.
                    let mut at = 0;
                    while at < all.len() {
                        let part = (64 << 10).min(all.len() - at);
                        self.host_data(&header[8..12], at, &all[at..at + part]);
                        at += part;
                    }
                }
                _ => panic!("a PDU of kind {kind}: {header:?}"),
            }
        }
    }

    /// Sends data of a command; `tags` are those of the request for them.
    pub fn host_data(&mut self, tags: &[u8], offset: usize, data: &[u8]) {
        let mut header = vec![6, 4, 24, 0, 0, 0, 0, 0];
        header.extend_from_slice(tags);
        header.extend_from_slice(&(offset as u32).to_le_bytes());
        header.extend_from_slice(&(data.len() as u32).to_le_bytes());
        header.extend_from_slice(&[0; 4]);
        self.pdu(header, data);
    }

    /// Executes a command.
    pub fn call(&mut self, command: Command, data: Option<&[u8]>, expected: usize) -> Completion {
        let id = self.send(command, data, expected);
        let done = self.completion(data).expect("the connection lasts");
        assert_eq!(done.id, id);
        done
    }

    pub fn read(&mut self, nsid: u32, lba: u64, blocks: u32) -> Completion {
        self.call(Command::range(2, nsid, lba, blocks), None, blocks as usize * 4096)
    }

    pub fn write(&mut self, nsid: u32, lba: u64, data: &[u8]) -> u16 {
        let blocks = (data.len() / 4096) as u32;
        self.call(Command::range(1, nsid, lba, blocks), Some(data), 0).status
    }

    pub fn identify(&mut self, structure: u32, nsid: u32, set: u32) -> Completion {
        let command = Command::new(6, nsid).dword(10, structure).dword(11, set << 24);
        self.call(command, None, 4096)
    }

    /// A log page from its beginning; `specific` is the log specific identifier.
    pub fn log(&mut self, page: u32, specific: u32, bytes: usize) -> Completion {
        let dwords = bytes as u32 / 4 - 1;
        let command = Command::new(2, u32::MAX).dword(10, page | dwords << 16);
        self.call(command.dword(11, specific << 16), None, bytes)
    }

    /// Whether the server has closed the connection; it may say why before.
    pub fn is_closed(&mut self) -> bool {
        loop {
            match self.receive() {
                None => return true,
                Some(Pdu { kind: 3, .. }) => {}
                Some(_) => return false,
            }
        }
    }
}
