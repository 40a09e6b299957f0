//! The parameters of the model, and how it is built from them.

use super::ecc::Ecc;
use super::{BitErrors, ErrorRates, RefreshRules, Retries, State};
use crate::geometry::Geometry;
use hybridsim_config::build::BuildInput;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_engine::{SimDuration, Stream};
use std::collections::{BTreeSet, VecDeque};

/// Retries of a read, at most: their number is an event's and an operation's small field.
const RETRIES_MAX: u64 = 64;

const MODELLED: Needs = Needs::Not("bit_errors", &["none"]);

/// A rate of bit errors.
const RATE: Kind = Kind::Number { min: 0.0, max: 1.0 };
const EXPONENT: Kind = Kind::Number { min: 0.0, max: 10.0 };

/// The parameters of bit errors and refresh.
pub(crate) const PARAMS: &[Param] = &[
    Param::with(
        "initial_wear",
        Kind::Number { min: 0.0, max: 1.0 },
        "0.0",
        "Wear of every block before the run, as a fraction of `endurance` (of `slc_endurance` in a \
         static SLC cache): reduces the erases left; `bit_errors` includes these erases in the \
         wear. Erase counts in results begin at 0.",
    ),
    Param::with(
        "bit_errors",
        Kind::Choice(&["none", "power-law"]),
        "\"none\"",
        "Bit errors of pages that are read, read retries and uncorrectable reads. `power-law`: the \
         raw bit error rate (RBER) of a page is rber_base + rber_wear c^wear_exponent + \
         rber_retention c^retention_wear_exponent d^retention_exponent + rber_read \
         c^read_wear_exponent r, with c erases of the block in thousands, d days since it was \
         programmed, r reads of the block since its erase.",
    ),
    Param::with("rber_base", RATE, "0.0", "RBER of new flash.").needs(&[MODELLED]),
    Param::with("rber_wear", RATE, "0.0", "RBER that 1,000 erases of the block add.")
        .needs(&[MODELLED]),
    Param::with("wear_exponent", EXPONENT, "1.0", "Exponent of erases in that term.")
        .needs(&[MODELLED, Needs::above_zero("rber_wear")]),
    Param::with(
        "rber_retention",
        RATE,
        "0.0",
        "RBER that the first day after programming adds, after 1,000 erases of the block.",
    )
    .needs(&[MODELLED]),
    Param::with("retention_exponent", EXPONENT, "1.0", "Exponent of time in that term.")
        .needs(&[MODELLED, Needs::above_zero("rber_retention")]),
    Param::with("retention_wear_exponent", EXPONENT, "0.0", "Exponent of erases in that term.")
        .needs(&[MODELLED, Needs::above_zero("rber_retention")]),
    Param::with(
        "rber_read",
        RATE,
        "0.0",
        "RBER that each read operation of the chip in the block since its erase adds (read \
         disturb), after 1,000 erases of the block.",
    )
    .needs(&[MODELLED]),
    Param::with("read_wear_exponent", EXPONENT, "0.0", "Exponent of erases in that term.")
        .needs(&[MODELLED, Needs::above_zero("rber_read")]),
    Param::optional(
        "rber_types",
        Kind::Numbers,
        "Factors of the RBER by page type (LSB, CSB, MSB, ...), which alternate in a block from \
         one page of the chip (`read_pages`) to the next; by default all pages are alike.",
    )
    .needs(&[MODELLED]),
    Param::with(
        "retention_age",
        Kind::Duration,
        "\"0s\"",
        "Age, at the start of the run, of the data that were written before it (`precondition`). \
         Simulated time adds to it.",
    )
    .needs(&[MODELLED]),
    Param::with(
        "ecc_codeword",
        Kind::Bytes,
        "\"1KiB\"",
        "Data of a codeword of the error correction; a page is a whole number of them. Errors of \
         the parity are not counted.",
    )
    .needs(&[MODELLED]),
    Param::with(
        "ecc_bits",
        Kind::Count { min: 0, max: 1 << 20 },
        "72",
        "Bit errors that are corrected in a codeword (72 in 1 KiB: Park et al., ASPLOS 2021).",
    )
    .needs(&[MODELLED]),
    Param::with(
        "retries_max",
        Kind::Count { min: 0, max: RETRIES_MAX },
        "8",
        "Maximum retries of a page read that cannot be corrected; then the read request fails \
         (assumed; 8 as chips with 8 sets of read voltages have).",
    )
    .needs(&[MODELLED]),
    Param::optional(
        "retry_time",
        Kind::Duration,
        "Time that each retry adds to the read of a page; by default `read_time`.",
    )
    .needs(&[MODELLED, Needs::above_zero("retries_max"), Needs::Not("timing", &["none"])]),
    Param::with(
        "retry_rber_factor",
        RATE,
        "0.5",
        "What each retry, with better read voltages, multiplies the RBER by (assumed).",
    )
    .needs(&[MODELLED, Needs::above_zero("retries_max")]),
    Param::optional(
        "refresh_reads",
        Kind::Count { min: 1, max: u32::MAX as u64 },
        "A block is refreshed, its data moved while the device is idle, after so many read \
         operations of the chip since its erase; default: never.",
    )
    .needs(&[MODELLED, Needs::given("idle_after")]),
    Param::optional(
        "refresh_age",
        Kind::Duration,
        "A block is refreshed when its data are this old; default: never.",
    )
    .needs(&[MODELLED, Needs::given("idle_after")]),
    Param::optional(
        "refresh_retries",
        Kind::Count { min: 1, max: RETRIES_MAX },
        "A block is refreshed after a read that took so many retries; default: never.",
    )
    .needs(&[MODELLED, Needs::given("idle_after")]),
];

/// The parameters that start a refresh.
const REFRESH: [&str; 3] = ["refresh_reads", "refresh_age", "refresh_retries"];

impl BitErrors {
    /// The model, if there is one; `refreshes` says whether translation layer `ftl` can refresh
    /// blocks.
    ///
    /// # Errors
    /// All problems with the parameters.
    pub fn build(
        input: &BuildInput<'_>,
        geometry: &Geometry,
        (ftl, refreshes): (&str, bool),
    ) -> Result<Option<Box<Self>>, Vec<Problem>> {
        let settings = input.settings;
        if settings.text("bit_errors") == "none" {
            return Ok(None);
        }
        let problems = problems(settings, geometry, (ftl, refreshes));
        if !problems.is_empty() {
            return Err(problems);
        }
        let codeword = settings.bytes("ecc_codeword");
        let codewords = u64::from(geometry.page_bytes()) / codeword;
        Ok(Some(Box::new(Self {
            geometry: *geometry,
            rates: rates(settings),
            ecc: Ecc::new(codeword * 8, settings.count("ecc_bits"), codewords),
            retries: Retries {
                max: settings.count("retries_max") as u8,
                factor: settings.number("retry_rber_factor"),
            },
            refresh: RefreshRules {
                reads: settings.count_opt("refresh_reads").map(|reads| reads as u32),
                age: settings.duration_opt("refresh_age"),
                retries: settings.count_opt("refresh_retries").map(|retries| retries as u8),
            },
            retention_age: retention_age(settings),
            initial_cycles: initial_cycles(settings),
            read_pages: match reads_several_pages(settings) {
                true => settings.count("read_pages") as u32,
                false => 1,
            },
            state: State {
                blocks: Vec::new(),
                lost: BTreeSet::new(),
                last_read: u32::MAX,
                stream: Stream::new(input.seed, &format!("{}/bit-errors", input.path)),
                due: VecDeque::new(),
                deferred: Vec::new(),
                by_age: BTreeSet::new(),
            },
            unread: Vec::new(),
        })))
    }
}

/// Erases of every block before the run.
pub(crate) fn initial_cycles(settings: &Settings) -> u32 {
    libm::round(settings.number("initial_wear") * settings.count("endurance") as f64) as u32
}

/// Read only where it can matter, so that it is reported where it cannot.
fn retention_age(settings: &Settings) -> SimDuration {
    let matters = settings.number("rber_retention") > 0.0 || is_given(settings, "refresh_age");
    match matters && settings.text("precondition") != "none" {
        true => settings.duration("retention_age"),
        false => SimDuration::ZERO,
    }
}

/// Whether the timing model reads `read_pages` pages in one operation.
fn reads_several_pages(settings: &Settings) -> bool {
    matches!(settings.text("timing"), "queued" | "serial")
}

/// How long a read takes for each retry.
pub(crate) fn retry_time(settings: &Settings) -> SimDuration {
    settings.duration_opt("retry_time").unwrap_or_else(|| settings.duration("read_time"))
}

fn rates(settings: &Settings) -> ErrorRates {
    ErrorRates {
        base: settings.number("rber_base"),
        wear: settings.number("rber_wear"),
        wear_exponent: settings.number("wear_exponent"),
        retention: settings.number("rber_retention"),
        retention_exponent: settings.number("retention_exponent"),
        retention_wear_exponent: settings.number("retention_wear_exponent"),
        read: settings.number("rber_read"),
        read_wear_exponent: settings.number("read_wear_exponent"),
        types: settings.numbers_opt("rber_types").unwrap_or_default().to_vec(),
        type_pages: match settings.numbers_opt("rber_types") {
            Some(_) => settings.count("read_pages") as u32,
            None => 1,
        },
    }
}

fn is_given(settings: &Settings, name: &str) -> bool {
    match name {
        "refresh_age" => settings.duration_opt(name).is_some(),
        _ => settings.count_opt(name).is_some(),
    }
}

fn problems(
    settings: &Settings,
    geometry: &Geometry,
    (ftl, refreshes): (&str, bool),
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let (codeword, page) = (settings.bytes("ecc_codeword"), u64::from(geometry.page_bytes()));
    let bits = codeword.saturating_mul(8);
    if codeword == 0 || !page.is_multiple_of(codeword) {
        let message = format!(
            "a page of {page} B is not a whole number of codewords of {codeword} B; 512 B to 4 KiB \
             are usual"
        );
        problems.push(Problem::new("ecc_codeword", message));
    } else if settings.count("ecc_bits") >= bits {
        let message = format!("a codeword has {bits} bits, so fewer than these can be corrected");
        problems.push(Problem::new("ecc_bits", message));
    }
    let rates = ["rber_base", "rber_wear", "rber_retention", "rber_read"];
    let refreshed = REFRESH.into_iter().any(|name| is_given(settings, name));
    if !refreshed && rates.into_iter().all(|name| settings.number(name) == 0.0) {
        let message = format!("there are no bit errors: give {}", rates.join(", "));
        problems.push(Problem::new("bit_errors", message));
    }
    let (most, retries) = (settings.count("retries_max"), settings.count_opt("refresh_retries"));
    if let Some(retries) = retries.filter(|retries| *retries > most) {
        let message = format!("no read takes {retries} retries: retries_max is {most}");
        problems.push(Problem::new("refresh_retries", message));
    }
    if settings
        .numbers_opt("rber_types")
        .unwrap_or_default()
        .iter()
        .any(|factor| !(0.0..=1e6).contains(factor))
    {
        problems.push(Problem::new("rber_types", "its factors lie between 0 and 1,000,000"));
    }
    if settings.duration_opt("refresh_age").is_some_and(|age| age.is_zero()) {
        let message = "must be above 0, as every block would be refreshed without end";
        problems.push(Problem::new("refresh_age", message));
    }
    let given = REFRESH.into_iter().filter(|name| is_given(settings, name));
    for name in given.filter(|_| !refreshes) {
        let message = format!("the FTL `{ftl}` cannot refresh blocks: leave it out, or use `page`");
        problems.push(Problem::new(name, message));
    }
    problems
}
