//! What error models have in common: error correction, read retries and refresh.

use super::ecc::Ecc;
use super::{BitErrors, ErrorInput, ErrorRates, RefreshRules, Retries, State};
use crate::ftl::SLC_MODE;
use crate::timing::TIMES;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Problem};
use hybridsim_engine::{SimDuration, Stream};
use std::collections::{BTreeSet, VecDeque};

/// Retries of a read, at most: their number is an event's and an operation's small field.
const RETRIES_MAX: u64 = 64;
const RETRIED: Needs = Needs::above_zero("retries_max");
const REFRESHED: Needs = Needs::given("^.idle_after");

hybridsim_config::params! {
    /// Error correction, read retries and refresh of blocks.
    pub struct Correction {
        rber_types: Option<Vec<f64>> = Kind::Numbers, optional,
            "Factors of the RBER by page type (LSB, CSB, MSB, ...), which alternate in a block \
             from one page of the chip (`read_pages`) to the next; by default all pages are alike.";
        slc_rber_factor: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.01"
            needs &[Needs::Provides("^.ftl", SLC_MODE)],
            "Factor of the RBER of blocks in SLC mode, whose pages are all of one type (assumed).";
        ecc_codeword: u64 = Kind::Bytes, default "1KiB",
            "Data of a codeword of the error correction; a page is a whole number of them. Errors \
             of the parity are not counted.";
        ecc_bits: u64 = Kind::Count { min: 0, max: 1 << 20 }, default "72",
            "Bit errors that are corrected in a codeword (72 in 1 KiB: Park et al., ASPLOS 2021).";
        retries_max: u8 = Kind::Count { min: 0, max: RETRIES_MAX }, default "8",
            "Maximum retries of a page read that cannot be corrected; then the read request fails \
             (assumed; 8 as chips with 8 sets of read voltages have).";
        retry_time: Option<SimDuration> = Kind::Duration, optional
            needs &[RETRIED, Needs::Provides("^.timing", TIMES)],
            "Time that each retry adds to the read of a page; by default `read_time`.";
        retry_rber_factor: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.5"
            needs &[RETRIED],
            "Factor of the RBER at each retry, which has better read voltages (assumed).";
        refresh_reads: Option<u32> = Kind::Count { min: 1, max: u32::MAX as u64 }, optional
            needs &[REFRESHED],
            "A block is refreshed, its data moved while the device is idle, after so many read \
             operations of the chip since its erase; default: never.";
        refresh_age: Option<SimDuration> = Kind::Duration, optional needs &[REFRESHED],
            "A block is refreshed when its data are this old; default: never.";
        refresh_retries: Option<u8> = Kind::Count { min: 1, max: RETRIES_MAX }, optional
            needs &[REFRESHED],
            "A block is refreshed after a read that took so many retries; default: never.";
    }
}

impl Correction {
    /// Whether blocks are refreshed.
    pub const fn refreshes(&self) -> bool {
        self.refresh_reads.is_some() || self.refresh_age.is_some() || self.refresh_retries.is_some()
    }

    /// The model with raw bit error rates of `rates`, of data that were `retention_age` old at the
    /// start of the run.
    ///
    /// # Errors
    /// All problems with the parameters.
    pub fn build(
        self,
        input: &ErrorInput<'_>,
        rates: Box<dyn ErrorRates>,
        retention_age: SimDuration,
    ) -> Result<Box<BitErrors>, Vec<Problem>> {
        let problems = self.problems(input);
        if !problems.is_empty() {
            return Err(problems);
        }
        let codewords = u64::from(input.geometry.page_bytes()) / self.ecc_codeword;
        Ok(Box::new(BitErrors {
            geometry: *input.geometry,
            rates,
            muted: false,
            ecc: Ecc::new(self.ecc_codeword * 8, self.ecc_bits, codewords),
            ecc_bits: self.ecc_bits,
            retries: Retries { max: self.retries_max, factor: self.retry_rber_factor },
            retry_time: self.retry_time,
            refresh: RefreshRules {
                reads: self.refresh_reads,
                age: self.refresh_age,
                retries: self.refresh_retries,
            },
            retention_age,
            initial_cycles: input.initial_cycles,
            types: self.rber_types.unwrap_or_default(),
            type_pages: input.geometry.read_pages(),
            slc_factor: self.slc_rber_factor,
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
        }))
    }

    fn problems(&self, input: &ErrorInput<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let (codeword, page) = (self.ecc_codeword, u64::from(input.geometry.page_bytes()));
        let bits = codeword.saturating_mul(8);
        if codeword == 0 || !page.is_multiple_of(codeword) {
            let message = format!(
                "a page of {page} B is not a whole number of codewords of {codeword} B; 512 B to \
                 4 KiB are usual"
            );
            problems.push(Problem::new("errors.ecc_codeword", message));
        } else if self.ecc_bits >= bits {
            let message =
                format!("a codeword has {bits} bits, so fewer than these can be corrected");
            problems.push(Problem::new("errors.ecc_bits", message));
        }
        let most = self.retries_max;
        if let Some(retries) = self.refresh_retries.filter(|retries| *retries > most) {
            let message = format!("no read takes {retries} retries: retries_max is {most}");
            problems.push(Problem::new("errors.refresh_retries", message));
        }
        let mut factors = self.rber_types.iter().flatten();
        if factors.any(|factor| !(0.0..=1e6).contains(factor)) {
            let message = "its factors lie between 0 and 1,000,000";
            problems.push(Problem::new("errors.rber_types", message));
        }
        if self.refresh_age.is_some_and(|age| age.is_zero()) {
            let message = "must be above 0, as every block would be refreshed without end";
            problems.push(Problem::new("errors.refresh_age", message));
        }
        if self.refreshes() && !input.refreshes {
            let name = input.translation;
            let message = format!(
                "the FTL `{name}` cannot refresh blocks: leave it out, or use one that can (`page`)"
            );
            let given = [
                ("errors.refresh_reads", self.refresh_reads.is_some()),
                ("errors.refresh_age", self.refresh_age.is_some()),
                ("errors.refresh_retries", self.refresh_retries.is_some()),
            ];
            let given = given.into_iter().filter(|(_, given)| *given);
            problems.extend(given.map(|(key, _)| Problem::new(key, message.clone())));
        }
        problems
    }
}
