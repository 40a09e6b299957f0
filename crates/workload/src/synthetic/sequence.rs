//! Sequential passes over ranges, one after the other.

use super::addresses::sectors_of;
use super::arrivals::{self, Generator, Limits, build_workload};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Problem, Settings};
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

    fn end(&self) -> Option<Result<(), String>> {
        (self.passes_left == 0).then_some(Ok(()))
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
    params: &arrivals::Parameters,
    phases: Vec<Phase>,
    passes: u64,
    problems: Vec<Problem>,
) -> Built<dyn Source> {
    let limits = Limits::requests(total(&phases, passes));
    let sequence = (!phases.is_empty()).then(|| Sequence::new(phases, passes));
    build_workload(input, params, sequence, limits, None, problems)
}

const OPS: &[&str] = &["read", "write", "trim"];

fn op_of(word: &str) -> Op {
    *Op::ALL.iter().find(|op| op.name() == word).expect("one of OPS")
}

hybridsim_config::params! {
    /// A sequential pass.
    struct PhaseParameters {
        op: String = Kind::Choice(OPS), default "\"write\"", "The operation.";
        start: u64 = Kind::Bytes, default "\"0B\"", "First byte.";
        length: u64 = Kind::Bytes, required, "Bytes.";
        request: u64 = Kind::Bytes, default "\"128KiB\"", "Bytes of a request.";
    }
}

hybridsim_config::params! {
    struct Parameters includes { arrivals: arrivals::Parameters } {
        phases: Vec<Settings> = Kind::Tables(PhaseParameters::PARAMS),
            default "[{ length = \"64MiB\" }]",
            "The passes, in order.";
        passes: u64 = Kind::Count { min: 1, max: u64::MAX }, default "1",
            "Number of passes over the whole list.";
    }
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let mut phases = Vec::new();
    for table in params.phases.iter().map(PhaseParameters::from_settings) {
        let bytes = [table.start, table.length, table.request];
        let request = u32::try_from(bytes[2] / SECTOR_BYTES).unwrap_or(0);
        if bytes.iter().any(|bytes| !bytes.is_multiple_of(SECTOR_BYTES)) || request == 0 {
            let message = "start, length and request must be multiples of 512 bytes, a request \
                           from 512 bytes to below 2 TiB";
            problems.push(Problem::new("phases", message));
            continue;
        }
        let phase = Phase {
            op: op_of(&table.op),
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
    sequence(input, &params.arrivals, phases, params.passes, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "sequence",
        summary: "Sequential passes over given ranges, one after the other.",
        origin: "common knowledge",
        params: Parameters::PARAMS,
    },
    build,
};

hybridsim_config::params! {
    struct RoundTrip includes { arrivals: arrivals::Parameters } {
        length: u64 = Kind::Bytes, default "\"100MB\"", "Bytes of the file.";
        flash_start: u64 = Kind::Bytes, default "\"0B\"", "Its address on the flash.";
        disk_start: u64 = Kind::Bytes, default "\"100MB\"",
            "Its address on the disk, in the address space of the hybrid device.";
        request: u64 = Kind::Bytes, default "\"128KiB\"", "Bytes of a request.";
    }
}

fn build_round_trip(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = RoundTrip::from_settings(input.settings);
    let mut problems = Vec::new();
    let request = sectors_of("request", params.request, &mut problems);
    let sectors = params.length / SECTOR_BYTES;
    let mut phase = |op, param: &'static str, start: u64| {
        let phase = Phase { op, start: start / SECTOR_BYTES, sectors, request };
        check(input, param, phase, &mut problems);
        phase
    };
    let phases = vec![
        phase(Op::Write, "flash_start", params.flash_start),
        phase(Op::Read, "flash_start", params.flash_start),
        phase(Op::Write, "disk_start", params.disk_start),
    ];
    sequence(input, &params.arrivals, phases, 1, problems)
}

/// Workload recipe W3.
pub const ROUND_TRIP: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "round-trip",
        summary: "A file is written to flash, read back and written to the disk, sequentially.",
        origin: "konanki, Figure 5.6 (workload recipe W3)",
        params: RoundTrip::PARAMS,
    },
    build: build_round_trip,
};

hybridsim_config::choices! {
    /// Figure of the paper.
    enum Variant { Unaligned = "figure-5.7", Aligned = "figure-5.8" }
}

hybridsim_config::params! {
    struct Fill includes { arrivals: arrivals::Parameters } {
        variant: Variant = Kind::Choice(Variant::NAMES), default "\"figure-5.7\""
            needs &[Needs::Any(&[
                Needs::absent("start_sector"),
                Needs::absent("request_sectors"),
                Needs::absent("passes"),
            ])],
            "Figure 5.7: from sector 63, requests of 240 sectors. Figure 5.8: from sector 0, \
             requests of 256 sectors, 15 passes.";
        length: u64 = Kind::Bytes, default "\"85MB\"", "Bytes of the file.";
        start_sector: Option<u64> = Kind::Count { min: 0, max: u64::MAX }, optional,
            "First sector; by default the variant's.";
        request_sectors: Option<u32> = Kind::Count { min: 1, max: u32::MAX as u64 }, optional,
            "Sectors of a request; by default the variant's.";
        passes: Option<u64> = Kind::Count { min: 1, max: u64::MAX }, optional,
            "Passes; by default the variant's.";
    }
}

fn build_fill(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Fill::from_settings(input.settings);
    let mut problems = Vec::new();
    // 240 sectors was the largest request Linux sent to USB storage; the partition starts at 63.
    let (start, request, passes) = match params.variant {
        Variant::Unaligned => (63, 240, 1),
        Variant::Aligned => (0, 256, 15),
    };
    let phase = Phase {
        op: Op::Write,
        start: params.start_sector.unwrap_or(start),
        sectors: params.length / SECTOR_BYTES,
        request: params.request_sectors.unwrap_or(request),
    };
    check(input, "length", phase, &mut problems);
    sequence(input, &params.arrivals, vec![phase], params.passes.unwrap_or(passes), problems)
}

/// Workload recipe W4.
pub const FILL: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "fill",
        summary: "An 85 MB file is written to flash, once unaligned or 15 times aligned.",
        origin: "konanki, Figures 5.7 and 5.8 (workload recipe W4)",
        params: Fill::PARAMS,
    },
    build: build_fill,
};
