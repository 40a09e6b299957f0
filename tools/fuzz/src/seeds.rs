//! Valid inputs, from which coverage-guided fuzzing starts.

use hybridsim_workload::trace::{ENTRIES, FormatEntry};

/// Traces: the sample of every format, each to be read as what it is.
pub fn traces() -> Vec<Vec<u8>> {
    let sample = |(at, entry): (usize, &FormatEntry)| [&[(at as u8) << 1], entry.sample].concat();
    ENTRIES.iter().enumerate().map(sample).collect()
}

/// Clients of the network block device protocol: each way through the handshake, and each command.
pub fn clients() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (choice, name) in [(0u8, ""), (1, ""), (2, "b"), (3, "a"), (4, ""), (9, "")] {
        let named = [&(name.len() as u32).to_be_bytes()[..], name.as_bytes()].concat();
        let contexts = [&named[..], &1u32.to_be_bytes(), &15u32.to_be_bytes(), b"base:allocation"];
        let (contexts, info) = (contexts.concat(), [&named[..], &[0, 1, 0, 3]].concat());
        let flags = 3u32.to_be_bytes().to_vec();
        let structured = [option(8, &[]), option(9, &contexts), option(10, &contexts)].concat();
        let go = option(7, &info);
        let listed = [option(3, &[]), option(6, &info), option(5, &[])].concat();
        let first = [choice];
        seeds.push([&first[..], &flags, &structured, &go, &commands()].concat());
        seeds.push([&first[..], &flags, &listed, &go, &commands()].concat());
        seeds.push([&first[..], &flags, &option(1, name.as_bytes()), &commands()].concat());
        seeds.push([&first[..], &flags, &listed, &option(2, &[])].concat());
    }
    seeds
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u32;
    [b"IHAVEOPT", &number.to_be_bytes()[..], &length.to_be_bytes(), data].concat()
}

type Command<'a> = (u16, u16, u64, u32, &'a [u8]);

/// Every command, some of them overlapping.
fn commands() -> Vec<u8> {
    const FUA: u16 = 1;
    let data = [0x5a; 1024];
    let list: [Command<'_>; 11] = [
        (0, 1, 0, 1024, &data),
        (0, 0, 0, 4096, &[]),
        (FUA, 1, 512, 512, &data[..512]),
        (0, 6, 4096, 8192, &[]),
        (0, 3, 0, 0, &[]),
        (0, 4, 0, 4096, &[]),
        (0, 7, 0, 1 << 20, &[]),
        (8, 7, 0, 65536, &[]),
        (0, 0, 1 << 40, 512, &[]),
        (0, 0, 100, 512, &[]),
        (0, 2, 0, 0, &[]),
    ];
    let command = |(cookie, &(flags, kind, offset, length, data)): (usize, &Command<'_>)| {
        [
            &0x2560_9513u32.to_be_bytes()[..],
            &flags.to_be_bytes(),
            &kind.to_be_bytes(),
            &(cookie as u64).to_be_bytes(),
            &offset.to_be_bytes(),
            &length.to_be_bytes(),
            data,
        ]
        .concat()
    };
    list.iter().enumerate().flat_map(command).collect()
}
