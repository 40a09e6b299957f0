//! Statistics of a trace of a serving system, as `trace info` shows them.

use super::Distribution;
use super::quantiles::Quantiles;
use super::rows::{LabelledValue, bytes, percent, spread};
use crate::trace::serving::ServingTrace;
use hybridsim_engine::SimTime;
use serde::Serialize;

/// The profile of a serving trace. Fractions are 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServingProfile {
    pub requests: u64,
    pub span_ns: u64,
    pub interarrival_ns: Option<Distribution>,
    pub input_tokens: u64,
    /// By request.
    pub input_length: Option<Distribution>,
    /// Absent where the trace does not record them.
    pub output_length: Option<Distribution>,
    /// Tokens in a block, where all requests have the same number.
    pub block_tokens: Option<u32>,
    pub block_references: u64,
    pub distinct_blocks: u64,
    pub blocks_used_once: u64,
    /// References to a block that was used before.
    pub reused_fraction: f64,
    /// Share of input tokens in blocks used before, up to the first new block of the prompt: the
    /// hit ratio of a cache without limit.
    pub token_hit_ratio_unlimited: f64,
    /// Time between two uses of a block.
    pub reuse_ns: Option<Distribution>,
    /// Time between the first and the last use of blocks used more than once.
    pub lifetime_ns: Option<Distribution>,
    /// Time in GPU memory, of a log of stored and evicted blocks.
    pub residence_ns: Option<Distribution>,
    /// Bytes of the keys and values of a token, as the trace states them.
    pub bytes_per_token: Option<f64>,
    /// Bytes of all distinct blocks, where the trace states those of a block.
    pub footprint_bytes: Option<u64>,
}

impl ServingProfile {
    /// The profile of `trace`.
    pub fn of(trace: &ServingTrace) -> Self {
        let mut first: Vec<Option<SimTime>> = vec![None; trace.distinct()];
        let mut last = vec![SimTime::ZERO; trace.distinct()];
        let mut uses = vec![0u32; trace.distinct()];
        let [mut gaps, mut input, mut output, mut reuse] = [(); 4].map(|()| Quantiles::default());
        let (mut before, mut tokens, mut hits) = (None, 0, 0);
        for request in &trace.requests {
            if let Some(before) = before.replace(request.at) {
                gaps.add(request.at.since(before).as_ns());
            }
            input.add(request.input_tokens);
            output.add(request.output_tokens);
            tokens += request.input_tokens;
            let mut usable = true;
            for (index, &block) in trace.blocks(request).iter().enumerate() {
                let at = block as usize;
                usable &= uses[at] > 0;
                hits += if usable { request.tokens_of(index) } else { 0 };
                if uses[at] > 0 {
                    reuse.add(request.at.since(last[at]).as_ns());
                }
                first[at].get_or_insert(request.at);
                last[at] = request.at;
                uses[at] += 1;
            }
        }
        let [mut lifetime, mut residence] = [(); 2].map(|()| Quantiles::default());
        for (first, last) in
            first.iter().zip(&last).zip(&uses).filter(|(_, uses)| **uses > 1).map(|it| it.0)
        {
            first.iter().for_each(|first| lifetime.add(last.since(*first).as_ns()));
        }
        trace.residence_ns.iter().for_each(|ns| residence.add(*ns));
        let size = trace.requests.first().map(|request| request.block_tokens);
        let same = |size: &u32| trace.requests.iter().all(|request| request.block_tokens == *size);
        let block_tokens = size.filter(|size| trace.distinct() > 0 && same(size));
        let references = trace.references.len() as u64;
        let distinct = trace.distinct() as u64;
        let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        Self {
            requests: trace.requests.len() as u64,
            span_ns: trace.span_ns(),
            interarrival_ns: gaps.finish(),
            input_tokens: tokens,
            input_length: input.finish(),
            output_length: output.finish().filter(|_| trace.has_output),
            block_tokens,
            block_references: references,
            distinct_blocks: distinct,
            blocks_used_once: uses.iter().filter(|uses| **uses == 1).count() as u64,
            reused_fraction: share(references - distinct, references),
            token_hit_ratio_unlimited: share(hits, tokens),
            reuse_ns: reuse.finish(),
            lifetime_ns: lifetime.finish(),
            residence_ns: residence.finish(),
            bytes_per_token: trace
                .block_bytes
                .zip(block_tokens)
                .map(|(bytes, tokens)| bytes as f64 / f64::from(tokens)),
            footprint_bytes: trace.block_bytes.map(|bytes| bytes.saturating_mul(distinct)),
        }
    }

    /// The profile as (label, value) rows, most important first.
    pub fn rows(&self) -> Vec<LabelledValue> {
        let mut rows = Vec::new();
        let mut row = |label: &str, value: String| rows.push((label.to_owned(), value));
        let seconds = self.span_ns as f64 / 1e9;
        row("requests", format!("{} in {seconds:.1} s", self.requests));
        if let Some(gaps) = &self.interarrival_ns {
            row("interarrival", spread(gaps));
        }
        row("input tokens", self.input_tokens.to_string());
        let lengths = |d: &Distribution| {
            format!(
                "mean {:.1}, p50 {}, p90 {}, p99 {}, max {}",
                d.mean, d.p50, d.p90, d.p99, d.max
            )
        };
        if let Some(input) = &self.input_length {
            row("input length", lengths(input));
        }
        if let Some(output) = &self.output_length {
            row("output length", lengths(output));
        }
        if self.block_references == 0 {
            row("blocks", "none: arrivals and lengths only".to_owned());
            return rows;
        }
        let size = self.block_tokens.map(|size| format!(" of {size} tokens")).unwrap_or_default();
        let (references, distinct) = (self.block_references, self.distinct_blocks);
        row("blocks", format!("{distinct}{size}, {references} references"));
        row("used once", format!("{} blocks", self.blocks_used_once));
        row("reused", format!("{} of references", percent(self.reused_fraction)));
        let hits = percent(self.token_hit_ratio_unlimited);
        row("hit ratio, no limit", format!("{hits} of input tokens"));
        let times = [
            ("reuse after", &self.reuse_ns),
            ("lifetime", &self.lifetime_ns),
            ("in GPU memory", &self.residence_ns),
        ];
        for (label, times) in times {
            if let Some(times) = times {
                row(label, spread(times));
            }
        }
        if let Some(size) = self.bytes_per_token {
            row("bytes per token", format!("{size:.0}"));
        }
        if let Some(footprint) = self.footprint_bytes {
            row("footprint", bytes(footprint));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::serving::ServingRequest;

    #[test]
    fn a_block_used_after_a_new_one_is_no_hit() {
        let mut trace = ServingTrace::default();
        let request = |at: u64, tokens: u64| ServingRequest {
            at: SimTime::from_ns(at),
            input_tokens: tokens,
            output_tokens: 1,
            block_tokens: 10,
            first: 0,
            blocks: 0,
        };
        trace.push(request(0, 29), &[0, 1, 2]);
        trace.push(request(5, 25), &[0, 3, 2]);
        let profile = ServingProfile::of(&trace);
        assert_eq!((profile.distinct_blocks, profile.blocks_used_once), (4, 2));
        assert_eq!(profile.reused_fraction, 2.0 / 6.0);
        assert_eq!(profile.token_hit_ratio_unlimited, 10.0 / 54.0);
        assert_eq!(profile.reuse_ns.map(|it| (it.count, it.max)), Some((2, 5)));
        assert_eq!((profile.bytes_per_token, profile.output_length), (None, None));
    }
}
