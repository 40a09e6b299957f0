//! A client of the network block device protocol, as plain as can be, which also misbehaves.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub const FUA: u16 = 1;
pub const DF: u16 = 4;
pub const ONE: u16 = 8;

pub struct Client {
    pub stream: UnixStream,
    structured: bool,
    cookie: u64,
}

/// A reply: an error number, or data.
pub type Reply = Result<Vec<u8>, u32>;

fn numbers<const N: usize>(stream: &mut UnixStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).expect("the server replies");
    bytes
}

impl Client {
    /// Connects and exchanges flags.
    pub fn greet(path: &Path) -> Self {
        let mut stream = UnixStream::connect(path).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        assert_eq!(&numbers::<16>(&mut stream), b"NBDMAGICIHAVEOPT");
        assert_eq!(numbers::<2>(&mut stream), [0, 3]);
        stream.write_all(&3u32.to_be_bytes()).expect("a socket");
        Self { stream, structured: false, cookie: 100 }
    }

    /// Sends an option; returns the replies (kind, data) up to an acknowledgement or an error.
    pub fn option(&mut self, option: u32, data: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let (code, length) = (option.to_be_bytes(), (data.len() as u32).to_be_bytes());
        let all = [b"IHAVEOPT", &code[..], &length, data].concat();
        self.stream.write_all(&all).expect("a socket");
        let mut replies = Vec::new();
        loop {
            let head = numbers::<20>(&mut self.stream);
            assert_eq!(head[..8], 0x0003_e889_0455_65a9u64.to_be_bytes());
            assert_eq!(head[8..12], code);
            let number =
                |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
            let mut data = vec![0; number(16) as usize];
            self.stream.read_exact(&mut data).expect("the server replies");
            replies.push((number(12), data));
            if number(12) == 1 || number(12) >> 31 == 1 {
                return replies;
            }
        }
    }

    /// The data of GO and INFO.
    pub fn info(name: &str) -> Vec<u8> {
        [&(name.len() as u32).to_be_bytes()[..], name.as_bytes(), &[0, 0]].concat()
    }

    /// Uses the export `name`; `structured` with structured replies and block status.
    pub fn open(path: &Path, name: &str, structured: bool) -> Self {
        let mut client = Self::greet(path);
        if structured {
            client.structured = true;
            assert_eq!(client.option(8, &[])[0].0, 1);
            let query = b"base:allocation";
            let export = [&(name.len() as u32).to_be_bytes()[..], name.as_bytes()].concat();
            let count = [1u32.to_be_bytes(), (query.len() as u32).to_be_bytes()].concat();
            let replies = client.option(10, &[&export[..], &count, query].concat());
            assert_eq!(replies.len(), 2, "{replies:?}");
        }
        let replies = client.option(7, &Self::info(name));
        assert_eq!(replies.last().map(|it| it.0), Some(1), "{replies:?}");
        client
    }

    /// Sends a command without waiting for the reply; returns its cookie.
    pub fn send(&mut self, flags: u16, kind: u16, offset: u64, length: u32, data: &[u8]) -> u64 {
        self.cookie += 1;
        let head = [
            &0x2560_9513u32.to_be_bytes()[..],
            &flags.to_be_bytes(),
            &kind.to_be_bytes(),
            &self.cookie.to_be_bytes(),
            &offset.to_be_bytes(),
            &length.to_be_bytes(),
        ];
        self.stream.write_all(&[&head.concat()[..], data].concat()).expect("a socket");
        self.cookie
    }

    /// Receives the next reply; `length` is that of a read, 0 for everything else.
    pub fn receive(&mut self, length: usize) -> (u64, Reply) {
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four bytes"));
        if !self.structured {
            let head = numbers::<16>(&mut self.stream);
            assert_eq!(head[..4], 0x6744_6698u32.to_be_bytes());
            let cookie = u64::from_be_bytes(head[8..].try_into().expect("eight bytes"));
            let error = number(&head[4..8]);
            let mut data = vec![0; if error == 0 { length } else { 0 }];
            self.stream.read_exact(&mut data).expect("the server replies");
            return (cookie, if error == 0 { Ok(data) } else { Err(error) });
        }
        let head = numbers::<20>(&mut self.stream);
        assert_eq!(head[..6], [0x66, 0x8e, 0x33, 0xef, 0, 1]);
        let cookie = u64::from_be_bytes(head[8..16].try_into().expect("eight bytes"));
        let mut data = vec![0; number(&head[16..]) as usize];
        self.stream.read_exact(&mut data).expect("the server replies");
        let reply = match u16::from_be_bytes([head[6], head[7]]) {
            0 => Ok(Vec::new()),
            1 => Ok(data.split_off(8)),
            5 => Ok(data.split_off(4)),
            _ => Err(number(&data[..4])),
        };
        (cookie, reply)
    }

    fn call(&mut self, flags: u16, kind: u16, offset: u64, length: u32, data: &[u8]) -> Reply {
        let cookie = self.send(flags, kind, offset, length, data);
        let (answered, reply) = self.receive(if kind == 0 { length as usize } else { 0 });
        assert_eq!(answered, cookie);
        reply
    }

    pub fn read(&mut self, offset: u64, length: u32) -> Reply {
        self.call(0, 0, offset, length, &[])
    }

    /// A read that is not to be fragmented.
    pub fn read_whole(&mut self, offset: u64, length: u32) -> Reply {
        self.call(DF, 0, offset, length, &[])
    }

    pub fn write(&mut self, flags: u16, offset: u64, data: &[u8]) -> Reply {
        self.call(flags, 1, offset, data.len() as u32, data)
    }

    pub fn flush(&mut self) -> Reply {
        self.call(0, 3, 0, 0, &[])
    }

    pub fn trim(&mut self, offset: u64, length: u32) -> Reply {
        self.call(0, 4, offset, length, &[])
    }

    pub fn zero(&mut self, offset: u64, length: u32) -> Reply {
        self.call(0, 6, offset, length, &[])
    }

    /// Block status as (length, state).
    pub fn status(&mut self, flags: u16, offset: u64, length: u32) -> Vec<(u32, u32)> {
        let data = self.call(flags, 7, offset, length, &[]).expect("it is negotiated");
        let pair = |bytes: &[u8]| {
            let number =
                |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
            (number(0), number(4))
        };
        data.chunks(8).map(pair).collect()
    }

    /// Whether the server has closed the connection.
    pub fn dropped(mut self) -> bool {
        let mut byte = [0; 1];
        matches!(self.stream.read(&mut byte), Ok(0) | Err(_))
    }
}
