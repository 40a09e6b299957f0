//! Valid inputs, from which coverage-guided fuzzing starts.

#[cfg(unix)]
use crate::client::CONNECTION;
use crate::input::NEXT_FILE;
use hybridsim_workload::trace::{ENTRIES, FormatEntry};
use std::fs;
use std::path::Path;

/// The example scenarios.
pub fn scenarios() -> Vec<Vec<u8>> {
    let examples = hybridsim_data::EXAMPLES.entries().iter().filter_map(|entry| entry.as_file());
    examples
        .filter(|file| file.path().extension().is_some_and(|it| it == "toml"))
        .map(|file| file.contents().to_vec())
        .collect()
}

/// Traces: the sample of every format, each to be read as what it is.
pub fn traces() -> Vec<Vec<u8>> {
    let sample = |(at, entry): (usize, &FormatEntry)| [&[(at as u8) << 1], entry.sample].concat();
    ENTRIES.iter().enumerate().map(sample).collect()
}

/// Clients of the network block device protocol: each way through the handshake, and each command.
#[cfg(unix)]
pub fn nbd() -> Vec<Vec<u8>> {
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

/// The file at `path` of another tool, which only the repository has.
fn of_tool(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read(path).unwrap_or_default()
}

/// Parameters of DiskSim, which describe two drives and a system, and of MQSim.
pub fn imports() -> Vec<Vec<u8>> {
    let [config, workload] =
        ["import/tests/mqsim/ssdconfig.xml", "import/tests/mqsim/workload.xml"].map(of_tool);
    vec![
        [vec![0], of_tool("import/tests/specimen.parv")].concat(),
        [vec![0], of_tool("import/tests/solid.parv")].concat(),
        [&[1], &config[..]].concat(),
        [&[1], &config[..], NEXT_FILE.as_bytes(), &workload].concat(),
    ]
}

/// Measurements of every kind.
pub fn measurements() -> Vec<Vec<u8>> {
    const FIO: &str = r#"{"global options":{"bs":"4k","iodepth":"8"},"jobs":[{"jobname":"a",
        "job options":{"rw":"randread","runtime":"10"},"read":{"iops":9000.5,"total_ios":9000,
        "clat_ns":{"mean":880000,"percentile":{"50.000000":800000,"99.000000":2000000}},
        "lat_ns":{"mean":890000}},"write":{"iops":0,"total_ios":0}}]}"#;
    const COUNTERS: &str = "time_s,host_units,media_bytes\n0,1000000,600000000000\n\
        60,1100000,700000000000\n120,1200000,800000000000\n180,1300000,900000000000\n";
    const SMART: &str = "1764460800\nData Units Written: 1,000,000 [512 GB]\n\
        1764460860\nData Units Written: 1,100,000 [563 GB]\n";
    const SERIES: &str = "capacity = \"64GiB\"\nmedia_overhead = 1.03\n[[series]]\n\
        file = \"uniform.csv\"\nload = { kind = \"uniform\" }\nspan = 0.6\n";
    const LATENCIES: &str = "op,bytes,latency_ns\nread,4096,55000\nwrite,4096,600000\n";
    const LOG: &str = "time_ns,op,lba,sectors,response_ns\n0,read,0,8,5000000\n\
        9000000,write,800,8,6000000\n";
    let seeds = [
        (0, LATENCIES),
        (0, FIO),
        (0, "1, 55, 0, 4096, 0\n2, 60, 1, 4096, 4096\n"),
        (1, FIO),
        (2, COUNTERS),
        (2, SMART),
        (3, SERIES),
        (4, LOG),
    ];
    seeds.map(|(kind, text)| [&[kind], text.as_bytes()].concat()).into_iter().collect()
}

/// Tables and options of every kind.
pub fn tables() -> Vec<Vec<u8>> {
    let options = [
        (2, "llama-3-70b"),
        (2, "32x8x128"),
        (3, "buckets:256MiB:0.5"),
        (3, "slots-trim"),
        (4, "lazy:30s"),
        (5, "component.ssd.ftl=page,{kind=\"dftl\", cmt=\"1MiB\"},\"fast\""),
        (5, "host.queue_depth=log:1..64"),
        (6, "latin-hypercube:8"),
        (7, "4.38KiB"),
        (8, "1.5ms"),
        (9, "100MB/s"),
        (9, "7200rpm"),
        (9, "12.5W"),
        (9, "99.9%"),
    ];
    let tables = ["kv-plan/src/drives.toml", "plan/src/prices.toml"].map(of_tool);
    let tables = (0..).zip(tables).map(|(kind, text)| [vec![kind], text].concat());
    tables.chain(options.map(|(kind, text)| [&[kind], text.as_bytes()].concat())).collect()
}

/// Random systems, each with a change of its state.
pub fn states() -> Vec<Vec<u8>> {
    (0..64).map(|number| vec![number, 40 + number, 0, 1, 0]).collect()
}

/// Hosts of NVMe over TCP: a controller that is enabled and asked for everything, and its queue.
#[cfg(unix)]
pub fn nvme() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for choice in [0u8, 1, 2, 3] {
        let admin = [
            [initialize(), connect(0, 0xFFFF)].concat(),
            // Capabilities, then enable with queue entries of 64 and 16 bytes.
            capsule(0x7F, 4, &[(10, 1)], &[]),
            capsule(0x7F, 0, &[(11, 0x14), (12, 0x46_0061)], &[]),
            capsule(0x7F, 4, &[(11, 0x1C)], &[]),
            // The controller, the namespaces and the list of them.
            [0, 1, 2, 3].map(|structure| capsule(6, 1, &[(10, structure)], &[])).concat(),
            [1, 2, 3, 5, 0xC0, 0x70, 0x20]
                .map(|page| capsule(2, u32::MAX, &[(10, page | 1023 << 16)], &[]))
                .concat(),
            [1, 2, 4, 7, 0xB, 0xF].map(|feature| capsule(0xA, 1, &[(10, feature)], &[])).concat(),
            [1, 2, 4, 7, 0xB, 0xF].map(|feature| capsule(9, 1, &[(10, feature)], &[])).concat(),
        ];
        let io = [
            [initialize(), connect(1, 1)].concat(),
            capsule(1, 1, &[], &[0x5A; 4096]),
            capsule(2, 1, &[], &[]),
            capsule(0, 1, &[], &[]),
            // Trim and zeroes, a comparison, and a write whose data are asked for.
            capsule(9, 1, &[(11, 4)], &[0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            capsule(8, 1, &[(10, 8), (12, 7)], &[]),
            capsule(5, 1, &[], &[0x5A; 4096]),
            capsule(1, 1, &[(10, 64)], &[]),
        ];
        let turn = |connection: u16, bytes: &Vec<u8>| {
            [&(bytes.len() as u16 | connection).to_le_bytes()[..], bytes].concat()
        };
        let admin: Vec<_> = admin.iter().map(|bytes| turn(0, bytes)).collect();
        let io: Vec<_> = io.iter().map(|bytes| turn(CONNECTION, bytes)).collect();
        seeds.push([&[choice][..], &admin.concat(), &io.concat()].concat());
        seeds.push([&[choice][..], &admin.concat()].concat());
    }
    seeds
}

/// The request that opens a connection, without digests.
#[cfg(unix)]
fn initialize() -> Vec<u8> {
    let mut bytes = vec![0, 0, 128, 0, 128, 0, 0, 0];
    bytes.resize(128, 0);
    bytes
}

/// The command that makes a connection queue `id` of `controller`.
#[cfg(unix)]
fn connect(id: u32, controller: u16) -> Vec<u8> {
    const NQN: &[u8] = hybridsim_serve::NQN.as_bytes();
    const HOST: &[u8] = b"nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555";
    let mut data = [0; 1024];
    data[..16].fill(7);
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    data[256..256 + NQN.len()].copy_from_slice(NQN);
    data[512..512 + HOST.len()].copy_from_slice(HOST);
    capsule(0x7F, 1, &[(10, id << 16), (11, 31)], &data)
}

/// A command to namespace `nsid`, with some of its dwords and the data that it brings; without
/// data 4 KiB are moved.
#[cfg(unix)]
fn capsule(opcode: u8, nsid: u32, dwords: &[(usize, u32)], data: &[u8]) -> Vec<u8> {
    let mut command = [0; 64];
    (command[0], command[1]) = (opcode, 1 << 6);
    command[4..8].copy_from_slice(&nsid.to_le_bytes());
    let length = if data.is_empty() { 4096 } else { data.len() as u32 };
    command[32..36].copy_from_slice(&length.to_le_bytes());
    command[39] = if data.is_empty() { 0x5A } else { 1 };
    for (number, value) in dwords {
        command[4 * number..4 * number + 4].copy_from_slice(&value.to_le_bytes());
    }
    let offset = if data.is_empty() { 0 } else { 72 };
    let bytes = (72 + data.len()) as u32;
    [&[4, 0, 72, offset], &bytes.to_le_bytes()[..], &command, data].concat()
}

#[cfg(unix)]
pub(crate) fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u32;
    [b"IHAVEOPT", &number.to_be_bytes()[..], &length.to_be_bytes(), data].concat()
}

/// Every command, some of them overlapping.
#[cfg(unix)]
fn commands() -> Vec<u8> {
    const FUA: u16 = 1;
    let data = [0x5a; 1024];
    let list: [(u16, u16, u64, u32, &[u8]); 11] = [
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
    let numbered = (0..).zip(list);
    numbered
        .flat_map(|(cookie, (flags, kind, offset, length, data))| {
            command([flags, kind], cookie, offset, length, data)
        })
        .collect()
}

/// A command of the network block device protocol: its flags and kind, and what follows.
#[cfg(unix)]
pub(crate) fn command(
    [flags, kind]: [u16; 2],
    cookie: u64,
    offset: u64,
    length: u32,
    data: &[u8],
) -> Vec<u8> {
    [
        &0x2560_9513u32.to_be_bytes()[..],
        &flags.to_be_bytes(),
        &kind.to_be_bytes(),
        &cookie.to_be_bytes(),
        &offset.to_be_bytes(),
        &length.to_be_bytes(),
        data,
    ]
    .concat()
}
