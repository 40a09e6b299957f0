use super::command::{HeaderError, REQUEST_BYTES};
use super::handshake::MetaRequest;
use super::*;
use bytes::BytesMut;
use proptest::prelude::*;

fn request(flags: u16, kind: u16, length: u32) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[..4].copy_from_slice(&0x2560_9513u32.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&7u64.to_be_bytes());
    bytes[16..24].copy_from_slice(&4096u64.to_be_bytes());
    bytes[24..].copy_from_slice(&length.to_be_bytes());
    bytes
}

#[test]
fn commands_have_their_flags() {
    let command = |flags, kind| Header::parse(&request(flags, kind, 512)).map(|it| it.command);
    assert_eq!(command(4, 0), Some(Ok(Command::Read { whole: true })));
    assert_eq!(command(1, 1), Some(Ok(Command::Write { fua: true })));
    assert_eq!(command(2, 6), Some(Ok(Command::WriteZeroes { fua: false })));
    assert_eq!(command(8, 7), Some(Ok(Command::BlockStatus { one: true })));
    assert_eq!(command(8, 0), Some(Err(HeaderError::Flag)));
    assert_eq!(command(0, 99), Some(Err(HeaderError::Unknown)));
    let write = Header::parse(&request(16, 1, u32::MAX)).expect("the magic is right");
    assert_eq!((write.command, write.data), (Err(HeaderError::Flag), u32::MAX));
    let mut other = request(0, 0, 1);
    other[0] ^= 1;
    assert_eq!(Header::parse(&other), None);
}

#[test]
fn replies_have_the_bytes_of_the_document() {
    let mut out = BytesMut::new();
    Reply::Error(ErrorCode::Io, "no").write(7, false, &mut out);
    assert_eq!(out[..], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 7]);
    out.clear();
    Reply::Data { offset: 1, bytes: b"ab" }.write(7, true, &mut out);
    let head = [0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 10];
    assert_eq!(out[..], [&head[..], &[0, 0, 0, 0, 0, 0, 0, 1], b"ab"].concat()[..]);
}

#[test]
fn options_are_read_or_refused() {
    let go = [&3u32.to_be_bytes()[..], b"abc", &1u16.to_be_bytes(), &3u16.to_be_bytes()].concat();
    let info = InfoRequest { export: "abc".to_owned() };
    assert_eq!(parse_option(7, &go), Ok(Opt::Go(info)));
    assert_eq!(parse_option(7, &go[..go.len() - 1]), Err(OptionError::Invalid));
    assert_eq!(parse_option(5, &[]), Err(OptionError::Encryption));
    assert_eq!(parse_option(11, &[]), Err(OptionError::Unsupported));
    assert_eq!(parse_option(3, &[0]), Err(OptionError::Invalid));
    let query = |list: &[&str]| {
        let mut data = [&0u32.to_be_bytes()[..], &(list.len() as u32).to_be_bytes()].concat();
        for text in list {
            data.extend((text.len() as u32).to_be_bytes());
            data.extend(text.bytes());
        }
        data
    };
    let meta = |allocation| MetaRequest { export: String::new(), allocation };
    assert_eq!(parse_option(9, &query(&[])), Ok(Opt::ListMeta(meta(true))));
    assert_eq!(parse_option(10, &query(&[])), Ok(Opt::SetMeta(meta(false))));
    let queries = query(&["qemu:x", "base:allocation"]);
    assert_eq!(parse_option(10, &queries), Ok(Opt::SetMeta(meta(true))));
    // Four billion queries, none of which is there.
    let endless = [0u32.to_be_bytes(), u32::MAX.to_be_bytes()].concat();
    assert_eq!(parse_option(10, &endless), Err(OptionError::Invalid));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn any_option_is_read_or_refused(option in 0u32..13, data in any::<Vec<u8>>()) {
        drop(parse_option(option, &data));
    }

    #[test]
    fn options_cut_or_changed_are_read_or_refused(
        option in prop::sample::select(vec![1u32, 6, 7, 9, 10]),
        cut in 0usize..40,
        changed in 0usize..40,
        bit in 0u8..8,
    ) {
        let name = [&3u32.to_be_bytes()[..], b"abc"].concat();
        let count = 1u32.to_be_bytes();
        let query = [&15u32.to_be_bytes()[..], b"base:allocation"].concat();
        let mut data = [&name[..], &count, &query].concat();
        data.truncate(cut);
        if let Some(byte) = data.get_mut(changed) {
            *byte ^= 1 << bit;
        }
        drop(parse_option(option, &data));
    }

    #[test]
    fn any_header_is_read_or_refused(
        random in any::<[u8; REQUEST_BYTES]>(),
        keeps in any::<bool>(),
    ) {
        let mut bytes = random;
        if keeps {
            bytes[..4].copy_from_slice(&0x2560_9513u32.to_be_bytes());
        }
        let parsed = Header::parse(&bytes);
        prop_assert_eq!(parsed.is_some(), bytes[..4] == 0x2560_9513u32.to_be_bytes());
        let mut option = [0; OPTION_BYTES];
        option.copy_from_slice(&bytes[..OPTION_BYTES]);
        prop_assert!(parse_option_header(&option).is_none_or(|it| it.length <= 64 << 10));
    }
}
