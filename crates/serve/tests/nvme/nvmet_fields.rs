//! The fields of pages by the NVM Express specifications (Base 2.1, NVM and Zoned Namespace command
//! sets 1.1), and those that differ from those of the kernel's target.

/// A field of a page.
pub struct Field {
    pub name: String,
    pub at: usize,
    pub bytes: usize,
}

type Table = &'static [(&'static str, usize, usize)];

const CONTROLLER: Table = &[
    ("VID", 0, 2),
    ("SSVID", 2, 2),
    ("SN", 4, 20),
    ("MN", 24, 40),
    ("FR", 64, 8),
    ("RAB", 72, 1),
    ("IEEE", 73, 3),
    ("CMIC", 76, 1),
    ("MDTS", 77, 1),
    ("CNTLID", 78, 2),
    ("VER", 80, 4),
    ("RTD3R", 84, 4),
    ("RTD3E", 88, 4),
    ("OAES", 92, 4),
    ("CTRATT", 96, 4),
    ("CNTRLTYPE", 111, 1),
    ("OACS", 256, 2),
    ("ACL", 258, 1),
    ("AERL", 259, 1),
    ("FRMW", 260, 1),
    ("LPA", 261, 1),
    ("ELPE", 262, 1),
    ("NPSS", 263, 1),
    ("WCTEMP", 266, 2),
    ("CCTEMP", 268, 2),
    ("TNVMCAP", 280, 16),
    ("UNVMCAP", 296, 16),
    ("KAS", 320, 2),
    ("ENDGIDMAX", 340, 2),
    ("ANATT", 342, 1),
    ("ANACAP", 343, 1),
    ("ANAGRPMAX", 344, 4),
    ("NANAGRPID", 348, 4),
    ("SQES", 512, 1),
    ("CQES", 513, 1),
    ("MAXCMD", 514, 2),
    ("NN", 516, 4),
    ("ONCS", 520, 2),
    ("FUSES", 522, 2),
    ("FNA", 524, 1),
    ("VWC", 525, 1),
    ("AWUN", 526, 2),
    ("AWUPF", 528, 2),
    ("ICSVSCC", 530, 1),
    ("NWPC", 531, 1),
    ("ACWU", 532, 2),
    ("OCFS", 534, 2),
    ("SGLS", 536, 4),
    ("MNAN", 540, 4),
    ("SUBNQN", 768, 256),
    ("IOCCSZ", 1792, 4),
    ("IORCSZ", 1796, 4),
    ("ICDOFF", 1800, 2),
    ("FCATT", 1802, 1),
    ("MSDBD", 1803, 1),
    ("OFCS", 1804, 2),
    ("PSD0", 2048, 32),
];

const NAMESPACE: Table = &[
    ("NSZE", 0, 8),
    ("NCAP", 8, 8),
    ("NUSE", 16, 8),
    ("NSFEAT", 24, 1),
    ("NLBAF", 25, 1),
    ("FLBAS", 26, 1),
    ("MC", 27, 1),
    ("DPC", 28, 1),
    ("DPS", 29, 1),
    ("NMIC", 30, 1),
    ("RESCAP", 31, 1),
    ("FPI", 32, 1),
    ("DLFEAT", 33, 1),
    ("NAWUN", 34, 2),
    ("NAWUPF", 36, 2),
    ("NACWU", 38, 2),
    ("NVMCAP", 48, 16),
    ("NPWG", 64, 2),
    ("NPWA", 66, 2),
    ("NPDG", 68, 2),
    ("NPDA", 70, 2),
    ("NOWS", 72, 2),
    ("MSSRL", 74, 2),
    ("MCL", 76, 4),
    ("MSRC", 80, 1),
    ("ANAGRPID", 92, 4),
    ("NSATTR", 99, 1),
    ("NVMSETID", 100, 2),
    ("ENDGID", 102, 2),
    ("NGUID", 104, 16),
    ("EUI64", 120, 8),
    ("LBAF0", 128, 4),
];

const DESCRIPTORS: Table = &[
    ("NIDT 0", 0, 1),
    ("NIDL 0", 1, 1),
    ("NID 0", 4, 16),
    ("NIDT 1", 20, 1),
    ("NIDL 1", 21, 1),
    ("CSI", 24, 1),
];

const HEALTH: Table = &[
    ("critical warning", 0, 1),
    ("temperature", 1, 2),
    ("spare", 3, 1),
    ("spare threshold", 4, 1),
    ("percentage used", 5, 1),
    ("endurance group warning", 6, 1),
    ("data units read", 32, 16),
    ("data units written", 48, 16),
    ("host reads", 64, 16),
    ("host writes", 80, 16),
    ("busy time", 96, 16),
    ("power cycles", 112, 16),
    ("power on hours", 128, 16),
    ("unsafe shutdowns", 144, 16),
    ("media errors", 160, 16),
    ("error log entries", 176, 16),
];

const ERROR: Table = &[
    ("count", 0, 8),
    ("queue", 8, 2),
    ("command", 10, 2),
    ("status", 12, 2),
    ("location", 14, 2),
    ("LBA", 16, 8),
    ("namespace", 24, 4),
    ("vendor page", 28, 1),
    ("transport", 29, 1),
    ("specific", 32, 8),
    ("transport specific", 40, 2),
];

const RECORD: Table = &[
    ("TRTYPE", 0, 1),
    ("ADRFAM", 1, 1),
    ("SUBTYPE", 2, 1),
    ("TREQ", 3, 1),
    ("PORTID", 4, 2),
    ("CNTLID", 6, 2),
    ("ASQSZ", 8, 2),
    ("EFLAGS", 10, 2),
    ("TRSVCID", 32, 32),
    ("SUBNQN", 256, 256),
    ("TRADDR", 512, 256),
    ("TSAS", 768, 256),
];

const ZONE: Table =
    &[("type", 0, 1), ("state", 1, 1), ("attributes", 2, 2), ("capacity", 8, 8), ("start", 16, 8)];

fn table(fields: &mut Vec<Field>, of: Table, prefix: &str, base: usize) {
    fields.extend(of.iter().map(|(name, at, bytes)| Field {
        name: format!("{prefix}{name}"),
        at: base + at,
        bytes: *bytes,
    }));
}

/// The fields of a page of `length` bytes.
pub fn fields(page: &str, length: usize) -> Vec<Field> {
    let mut fields = Vec::new();
    let all = &mut fields;
    match page {
        "identify 01h" | "discovery identify 01h" => table(all, CONTROLLER, "", 0),
        "identify 00h" | "common namespace" => table(all, NAMESPACE, "", 0),
        "identify 02h" => table(all, &[("NSID 0", 0, 4)], "", 0),
        "identify 03h" => table(all, DESCRIPTORS, "", 0),
        "identify 05h of set 2" => {
            let zoned: Table = &[
                ("ZOC", 0, 2),
                ("OZCS", 2, 2),
                ("MAR", 4, 4),
                ("MOR", 8, 4),
                ("ZSZE 0", 2816, 8),
                ("ZDES 0", 2824, 1),
            ];
            table(all, zoned, "", 0);
        }
        "identify 06h of set 0" => table(all, &[("VSL", 0, 1), ("WZSL", 1, 1)], "", 0),
        "identify 06h of set 2" => table(all, &[("ZASL", 0, 1)], "", 0),
        "log 01h" => (0..length / 64).for_each(|entry| table(all, ERROR, "", entry * 64)),
        "log 02h" => table(all, HEALTH, "", 0),
        "log 03h" => table(all, &[("AFI", 0, 1), ("FRS1", 8, 8)], "", 0),
        "log 05h" => {
            for opcode in 0..256 {
                let opcodes: Table = &[("", 0, 4)];
                table(all, opcodes, &format!("admin {opcode:02X}h"), opcode * 4);
                table(all, opcodes, &format!("I/O {opcode:02X}h"), 1024 + opcode * 4);
            }
        }
        "discovery log 70h" => {
            table(all, &[("GENCTR", 0, 8), ("NUMREC", 8, 8), ("RECFMT", 16, 2)], "", 0);
            (1..length / 1024).for_each(|it| table(all, RECORD, &format!("{it} "), it * 1024));
        }
        "zones" => {
            table(all, &[("count", 0, 8)], "", 0);
            for zone in 1..length / 64 {
                table(all, ZONE, "", zone * 64);
                table(all, &[("write pointer", 24, 8)], "", zone * 64);
            }
        }
        _ => {}
    }
    fields
}

/// Pages, their fields that differ from those of the kernel's target, and why they do. A status
/// that differs is that of the kernel's target and then ours.
pub const DIFFERENCES: &[(&str, &str, &str)] = &[
    ("identify 01h", "SN, MN, FR, SUBNQN", "names of the drive"),
    ("identify 01h", "VER", "the kernel's target follows version 1.3"),
    ("identify 01h", "CMIC, ANATT, ANACAP, ANAGRPMAX, NANAGRPID", "there is one port, without ANA"),
    (
        "identify 01h",
        "MDTS",
        "transfers have at most 1 MiB, which the kernel's target does not say",
    ),
    ("identify 01h", "OAES", "no namespace changes while the server runs"),
    ("identify 01h", "CTRATT, ENDGIDMAX", "there is an endurance group"),
    ("identify 01h", "LPA", "health is that of the drive, not of namespaces"),
    ("identify 01h", "ELPE", "64 entries instead of 128"),
    ("identify 01h", "TNVMCAP", "the kernel's target does not report the capacity"),
    ("identify 01h", "MAXCMD", "128 entries instead of 1024"),
    ("identify 01h", "NN, MNAN", "as many namespaces as there are, which are not added to"),
    ("identify 01h", "ONCS, OCFS", "more optional commands, such as compare, verify and copy"),
    ("identify 01h", "VWC", "a flush of all namespaces is supported"),
    ("identify 01h", "SGLS", "transport SGL data blocks, which the kernel's target accepts too"),
    ("identify 01h", "IOCCSZ", "8 KiB of data in a capsule instead of 16 KiB"),
    ("identify 01h", "PSD0", "the power of the drive is not reported"),
    ("identify 01h", "RAB", "there is no arbitration between queues"),
    ("identify 01h", "NWPC", "namespaces cannot be write protected"),
    ("identify 00h", "NCAP, NUSE", "of a zoned namespace, what its zones can hold"),
    ("identify 00h", "NVMCAP", "the kernel's target does not report it"),
    ("identify 00h", "NGUID", "the kernel's target names a UUID, and only in the descriptors"),
    ("identify 00h", "NSFEAT", "no atomicity of the namespace's own"),
    ("identify 00h", "DLFEAT", "deallocated blocks read as zeros"),
    ("identify 00h", "MSSRL, MCL, MSRC", "limits of the copy command"),
    ("identify 00h", "ANAGRPID", "without ANA"),
    ("identify 00h", "ENDGID", "there is an endurance group"),
    ("common namespace", "status 00B 000", "what namespaces have in common is reported"),
    ("identify 03h", "NIDT 0, NID 0", "an NGUID instead of a UUID"),
    ("identify 05h of set 0", "status 002 000", "empty: there is no protection information"),
    ("identify 05h of set 2", "OZCS", "reads may cross the boundaries of zones"),
    ("identify 06h of set 0", "VSL", "the verify command has a limit"),
    ("identify 06h of set 2", "ZASL", "zone appends are limited as all transfers, by MDTS"),
    ("identify 07h of set 0", "status 002 000", SINCE_2),
    ("identify 07h of set 2", "status 002 000", SINCE_2),
    ("identify 08h", "status 002 000", SINCE_2),
    ("identify 13h", "status 002 000", "the controllers are listed"),
    ("identify 1Ch", "status 002 000", SINCE_2),
    ("log 00h", "status 002 000", SINCE_2),
    ("log 01h", "count, command", "other commands came before"),
    ("log 01h", "location", "the field that was wrong is not named"),
    ("log 01h", "namespace, transport", "of the command, and TCP"),
    ("log 02h", "error log entries, host reads", "other commands came before"),
    ("log 02h", "spare, spare threshold, power cycles", "the kernel's target has no flash"),
    ("log 03h", "AFI, FRS1", "the version is in slot 1"),
    ("log 05h", "I/O 01h, I/O 08h, I/O 09h, I/O 79h, I/O 7Dh", "writes are said to change data"),
    ("log 05h", "I/O 05h, I/O 0Ch, I/O 19h", "compare, verify and copy"),
    ("log 0Ch", "status 000 109", "without ANA"),
    ("other log pages", "status 002 109", "the status is that for an invalid log page"),
    ("zones", "write pointer", "that of full zones is not valid, and all ones"),
    ("discovery identify 01h", "SN, MN, FR", "names of the drive"),
    ("discovery identify 01h", "VER", "the kernel's target follows version 1.3"),
    ("discovery identify 01h", "OAES, AERL", "the discovery log page does not change"),
    ("discovery identify 01h", "CTRATT, KAS", "there is a keep-alive timer, restarted by traffic"),
    ("discovery identify 01h", "MAXCMD", "128 entries instead of 1024"),
    ("discovery identify 01h", "MDTS", "transfers have at most 1 MiB"),
    ("discovery identify 01h", "SGLS", "transport SGL data blocks"),
    ("discovery log 70h", "GENCTR, NUMREC", "the discovery subsystem itself is not listed"),
    ("discovery log 70h", "1 SUBNQN, 1 TRSVCID", "names and ports of the subsystems"),
    ("discovery log 70h", "1 TRADDR", "padded with spaces"),
    ("discovery log 70h", "1 ASQSZ", "128 entries instead of 32"),
    ("discovery log 70h", "1 TREQ", "that no secure channel is required is said"),
];

const SINCE_2: &str = "a page of version 2.0";
