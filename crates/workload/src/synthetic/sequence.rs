//! Sequential passes over ranges, one after the other.

use super::addresses::sectors_of;
use super::arrivals::{Generator, LIMITS_AND_ARRIVALS, Limits, build_workload};
use super::{GeneratorEntry, GeneratorInput, params};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Lba, Op, Request, SECTOR_BYTES, Source};

/// One pass over a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    pub op: Op,
    pub start: u64,
    pub sectors: u64,
    /// Sectors of a request; the last one of the range may be shorter.
    pub request: u32,
}

/// All phases in order, the whole list `passes` times.
#[derive(Clone, Debug)]
pub struct Sequence {
    phases: Vec<Phase>,
    passes_left: u64,
    phase: usize,
    done: u64,
}

impl Sequence {
    /// `phases`, none of them empty, `passes` times.
    pub fn new(phases: Vec<Phase>, passes: u64) -> Self {
        Self { phases, passes_left: passes, phase: 0, done: 0 }
    }
}

impl Generator for Sequence {
    fn draw(&mut self) -> Request {
        let phase = self.phases[self.phase];
        let sectors = (phase.sectors - self.done).min(u64::from(phase.request));
        let request = Request::new(phase.op, Lba(phase.start + self.done), sectors as u32);
        self.done += sectors;
        if self.done == phase.sectors {
            self.done = 0;
            self.phase += 1;
            if self.phase == self.phases.len() {
                self.phase = 0;
                self.passes_left -= 1;
            }
        }
        request
    }

    fn ended(&self) -> bool {
        self.passes_left == 0
    }
}

/// Checks that `phase` lies within the device.
fn check(input: &GeneratorInput<'_>, param: &'static str, phase: Phase, out: &mut Vec<Problem>) {
    let end = phase.start.checked_add(phase.sectors);
    if phase.sectors == 0 {
        out.push(Problem::new(param, "is less than a sector"));
    } else if end.is_none_or(|end| end > input.capacity_sectors) {
        let message = format!(
            "{} sectors from {} are not within the device of {} sectors",
            phase.sectors, phase.start, input.capacity_sectors
        );
        out.push(Problem::new(param, message));
    }
}

/// The number of requests in all passes over `phases`.
fn total(phases: &[Phase], passes: u64) -> u64 {
    let pass = phases.iter().fold(0u64, |sum, phase| {
        sum.saturating_add(phase.sectors.div_ceil(u64::from(phase.request)))
    });
    pass.saturating_mul(passes)
}

fn sequence(
    input: &GeneratorInput<'_>,
    phases: Vec<Phase>,
    passes: u64,
    problems: Vec<Problem>,
) -> Result<Box<dyn Source>, Vec<Problem>> {
    let limits = Limits::requests(total(&phases, passes));
    let sequence = (!phases.is_empty()).then(|| Sequence::new(phases, passes));
    build_workload(input, sequence, limits, None, problems)
}

const OPS: &[&str] = &["read", "write", "trim"];

fn op_of(word: &str) -> Op {
    *Op::ALL.iter().find(|op| op.name() == word).expect("one of OPS")
}

const PHASE: &[Param] = &[
    Param::with("op", Kind::Choice(OPS), "\"write\"", "The operation."),
    Param::with("start", Kind::Bytes, "\"0B\"", "First byte."),
    Param::required("length", Kind::Bytes, "Bytes."),
    Param::with("request", Kind::Bytes, "\"128KiB\"", "Bytes of a request."),
];
const PASSES: Param = Param::with(
    "passes",
    Kind::Count { min: 1, max: u64::MAX },
    "1",
    "Number of passes over the whole list.",
);

fn build(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut phases = Vec::new();
    for table in input.settings.tables("phases") {
        let bytes = ["start", "length", "request"].map(|name| table.bytes(name));
        let request = u32::try_from(bytes[2] / SECTOR_BYTES).unwrap_or(0);
        if bytes.iter().any(|bytes| !bytes.is_multiple_of(SECTOR_BYTES)) || request == 0 {
            let message = "start, length and request must be multiples of 512 bytes, a request \
                           from 512 bytes to below 2 TiB";
            problems.push(Problem::new("phases", message));
            continue;
        }
        let phase = Phase {
            op: op_of(table.text("op")),
            start: bytes[0] / SECTOR_BYTES,
            sectors: bytes[1] / SECTOR_BYTES,
            request,
        };
        check(input, "phases", phase, &mut problems);
        phases.push(phase);
    }
    if phases.is_empty() && problems.is_empty() {
        problems.push(Problem::new("phases", "give at least one phase"));
    }
    sequence(input, phases, input.settings.count("passes"), problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "sequence",
        summary: "Sequential passes over given ranges, one after the other.",
        origin: "common knowledge",
        params: params![
            LIMITS_AND_ARRIVALS,
            &[
                Param::with(
                    "phases",
                    Kind::Tables(PHASE),
                    "[{ length = \"64MiB\" }]",
                    "The passes, in order.",
                ),
                PASSES,
            ]
        ],
    },
    build,
};

const MB_100: &str = "\"100MB\"";

fn build_round_trip(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let mut problems = Vec::new();
    let request = sectors_of(input, "request", &mut problems);
    let sectors = input.settings.bytes("length") / SECTOR_BYTES;
    let mut phase = |op, param: &'static str| {
        let start = input.settings.bytes(param) / SECTOR_BYTES;
        let phase = Phase { op, start, sectors, request };
        check(input, param, phase, &mut problems);
        phase
    };
    let phases = vec![
        phase(Op::Write, "flash_start"),
        phase(Op::Read, "flash_start"),
        phase(Op::Write, "disk_start"),
    ];
    sequence(input, phases, 1, problems)
}

/// Workload recipe W3.
pub const ROUND_TRIP: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "round-trip",
        summary: "A file is written to flash, read back and written to the disk, sequentially.",
        origin: "konanki, Figure 5.6 (workload recipe W3)",
        params: params![
            LIMITS_AND_ARRIVALS,
            &[
                Param::with("length", Kind::Bytes, MB_100, "Bytes of the file."),
                Param::with("flash_start", Kind::Bytes, "\"0B\"", "Its address on the flash."),
                Param::with(
                    "disk_start",
                    Kind::Bytes,
                    MB_100,
                    "Its address on the disk, in the address space of the hybrid device.",
                ),
                Param::with("request", Kind::Bytes, "\"128KiB\"", "Bytes of a request."),
            ]
        ],
    },
    build: build_round_trip,
};

fn build_fill(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let settings = input.settings;
    let mut problems = Vec::new();
    let wear = settings.text("variant") == "figure-5.8";
    // 240 sectors was the largest request Linux sent to USB storage; the partition starts at 63.
    let (start, request, passes) = if wear { (0, 256, 15) } else { (63, 240, 1) };
    let phase = Phase {
        op: Op::Write,
        start: settings.count_opt("start_sector").unwrap_or(start),
        sectors: settings.bytes("length") / SECTOR_BYTES,
        request: settings.count_opt("request_sectors").unwrap_or(request) as u32,
    };
    check(input, "length", phase, &mut problems);
    sequence(input, vec![phase], settings.count_opt("passes").unwrap_or(passes), problems)
}

/// Workload recipe W4.
pub const FILL: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "fill",
        summary: "An 85 MB file is written to flash, once unaligned or 15 times aligned.",
        origin: "konanki, Figures 5.7 and 5.8 (workload recipe W4)",
        params: params![
            LIMITS_AND_ARRIVALS,
            &[
                Param::with(
                    "variant",
                    Kind::Choice(&["figure-5.7", "figure-5.8"]),
                    "\"figure-5.7\"",
                    "Figure 5.7: from sector 63, requests of 240 sectors. Figure 5.8: from sector \
                     0, requests of 256 sectors, 15 passes.",
                ),
                Param::with("length", Kind::Bytes, "\"85MB\"", "Bytes of the file."),
                Param::optional(
                    "start_sector",
                    Kind::Count { min: 0, max: u64::MAX },
                    "First sector; by default the variant's.",
                ),
                Param::optional(
                    "request_sectors",
                    Kind::Count { min: 1, max: u32::MAX as u64 },
                    "Sectors of a request; by default the variant's.",
                ),
                Param::optional(
                    "passes",
                    Kind::Count { min: 1, max: u64::MAX },
                    "Passes; by default the variant's.",
                ),
            ]
        ],
    },
    build: build_fill,
};
