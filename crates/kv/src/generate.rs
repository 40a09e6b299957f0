//! Serving traces like a given one: arrivals, reuse of prefixes, session lengths and lifetimes.
//!
//! Every request of the given trace either continues the prompt of an earlier one or begins anew,
//! with at most the common start that some first blocks have. The generator draws requests of the
//! given trace at random, with how they follow from earlier ones: the time since the request that
//! they continue, how many blocks of it they leave out, how many they add. Times between arrivals
//! are drawn in runs, so that bursts stay bursts.

use hybridsim_engine::{SimDuration, SimTime, rng::Stream};
use hybridsim_workload::trace::serving::{NO_BLOCK, ServingRequest, ServingTrace};
use serde::Serialize;

/// Consecutive times between arrivals that are drawn together.
const RUN: usize = 32;
/// Earlier requests that are compared to find one to continue.
const CANDIDATES: usize = 96;
/// A block that more than one in so many requests use is part of a common start.
const COMMON_SHARE: usize = 20;
/// Draws of a step that fits the time since the start.
const DRAWS: usize = 16;

/// A request by what it takes from earlier ones.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// Time since the request that it continues; `None` for a new prompt.
    since: Option<SimDuration>,
    /// Number of turns of the session before it.
    turn: u32,
    /// Blocks of the prompt that it continues, and how many of them it uses.
    of: u32,
    shared: u32,
    /// Blocks added.
    added: u32,
    /// Tokens from the last block on.
    last_tokens: u64,
    output_tokens: u64,
}

/// A fitted generator.
pub struct Fitted {
    gaps: Vec<SimDuration>,
    steps: Vec<Step>,
    block_tokens: u32,
}

/// Which request used a block last, by block.
struct LastUse(Vec<u32>);

impl LastUse {
    /// Blocks of the prompt that were used before, and the request that used the last of them.
    fn shared(&self, blocks: &[u32]) -> (usize, Option<usize>) {
        let known = |block: &&u32| self.0[**block as usize] != NO_BLOCK;
        let shared = blocks.iter().take_while(known).count();
        let last = shared.checked_sub(1).map(|at| self.0[blocks[at] as usize] as usize);
        (shared, last)
    }

    fn used(&mut self, blocks: &[u32], request: usize) {
        for &block in blocks {
            self.0[block as usize] = request as u32;
        }
    }
}

/// The relation of each request of a trace to earlier ones.
fn steps(trace: &ServingTrace) -> Vec<Step> {
    let mut last = LastUse(vec![NO_BLOCK; trace.distinct()]);
    let mut uses = vec![0; trace.distinct()];
    trace.references.iter().for_each(|block| uses[*block as usize] += 1);
    // A start that many prompts share is a system prompt, not a session.
    let is_common = |block: u32| uses[block as usize] * COMMON_SHARE > trace.requests.len();
    let mut steps: Vec<Step> = Vec::with_capacity(trace.requests.len());
    for (number, request) in trace.requests.iter().enumerate() {
        let blocks = trace.blocks(request);
        let (shared, earlier) = last.shared(blocks);
        let continued = earlier.map(|earlier| (&trace.requests[earlier], &steps[earlier]));
        let is_session = shared > 0 && !is_common(blocks[shared - 1]);
        let before = blocks.len().saturating_sub(1) as u64 * u64::from(request.block_tokens);
        let turn = continued.map_or(0, |(_, step)| if is_session { step.turn + 1 } else { 0 });
        steps.push(Step {
            since: continued.map(|(earlier, _)| request.at.since(earlier.at)),
            turn,
            of: continued.map_or(0, |(earlier, _)| earlier.blocks),
            shared: shared as u32,
            added: (blocks.len() - shared) as u32,
            last_tokens: request.input_tokens.saturating_sub(before),
            output_tokens: request.output_tokens,
        });
        last.used(blocks, number);
    }
    steps
}

impl Fitted {
    /// A generator fitted to `trace`.
    ///
    /// # Errors
    /// A trace that is too short, without blocks, or a log of stored blocks.
    pub fn new(trace: &ServingTrace) -> Result<Self, String> {
        if trace.distinct() == 0 {
            return Err("the trace does not name the blocks of its prompts".to_owned());
        }
        if !trace.whole_prompts {
            return Err("a log of stored blocks has no prompts".to_owned());
        }
        if trace.requests.len() < 2 * RUN {
            return Err(format!("a generator is fitted to at least {} requests", 2 * RUN));
        }
        let block_tokens = trace.requests[0].block_tokens;
        if trace.requests.iter().any(|request| request.block_tokens != block_tokens) {
            return Err("the trace has blocks of several sizes".to_owned());
        }
        let pairs = trace.requests.windows(2);
        let gaps = pairs.map(|pair| pair[1].at.since(pair[0].at)).collect();
        Ok(Self { gaps, steps: steps(trace), block_tokens })
    }

    /// A trace of `requests` requests.
    ///
    /// # Errors
    /// More blocks than have numbers.
    pub fn generate(&self, requests: usize, seed: u64) -> Result<ServingTrace, String> {
        let mut stream = Stream::new(seed, "kv-requests");
        let mut made = Made {
            trace: ServingTrace { has_output: true, whole_prompts: true, ..Default::default() },
            turns: Vec::with_capacity(requests),
            continued: Vec::with_capacity(requests),
        };
        let (mut at, mut gap, mut blocks) = (SimTime::ZERO, 0, Vec::new());
        for number in 0..requests {
            if number % RUN == 0 {
                gap = stream.below(self.gaps.len() as u64) as usize;
            }
            if number > 0 {
                at += self.gaps[gap % self.gaps.len()];
            }
            gap += 1;
            let step = self.step(at, &mut stream);
            blocks.clear();
            if let Some(earlier) = step.since.and_then(|since| made.earlier(at, since, &step)) {
                made.share(earlier, &step, &mut blocks);
            }
            let next = made.trace.distinct() as u32;
            let end = next.checked_add(step.added).filter(|end| *end < NO_BLOCK);
            blocks.extend(next..end.ok_or("the trace would have more than 2^32 blocks")?);
            let full = blocks.len().saturating_sub(1) as u64 * u64::from(self.block_tokens);
            let request = ServingRequest {
                at,
                input_tokens: full + step.last_tokens,
                output_tokens: step.output_tokens,
                block_tokens: self.block_tokens,
                first: 0,
                blocks: 0,
            };
            made.turns.push(step.turn);
            made.continued.push(0);
            made.trace.push(request, &blocks);
        }
        Ok(made.trace)
    }

    /// A step whose earlier request is not before the start.
    fn step(&self, at: SimTime, stream: &mut Stream) -> Step {
        let mut draw = || self.steps[stream.below(self.steps.len() as u64) as usize];
        let fits = |step: &Step| step.since.is_none_or(|since| since.as_ns() <= at.as_ns());
        let step = (0..DRAWS).map(|_| draw()).find(fits);
        step.unwrap_or_else(|| Step { since: None, ..draw() })
    }
}

/// A trace in the making.
struct Made {
    trace: ServingTrace,
    turns: Vec<u32>,
    /// By request, how many continue it.
    continued: Vec<u32>,
}

impl Made {
    /// The request that a request at `at` continues: about `since` earlier, the one that the fewest
    /// continue, of these the one whose length and turn are most like those of the step.
    fn earlier(&self, at: SimTime, since: SimDuration, step: &Step) -> Option<usize> {
        let requests = &self.trace.requests;
        let last = requests.len().checked_sub(1)?;
        let time = SimTime::from_ns(at.as_ns().saturating_sub(since.as_ns()));
        let middle = requests.partition_point(|request| request.at < time).min(last);
        let from = middle.saturating_sub(CANDIDATES / 2);
        let to = (middle + CANDIDATES / 2).min(last);
        let turn = step.turn.saturating_sub(1);
        (from..=to).min_by_key(|&number| {
            let blocks = requests[number].blocks.abs_diff(step.of);
            let turns = self.turns[number].abs_diff(turn);
            (self.continued[number], blocks, turns, number.abs_diff(middle))
        })
    }

    /// Appends the blocks that a step takes from an earlier request.
    fn share(&mut self, earlier: usize, step: &Step, blocks: &mut Vec<u32>) {
        let request = self.trace.requests[earlier];
        let left_out = step.of.saturating_sub(step.shared);
        // A common start has the length it has; the prompt of a session that of the request.
        let shared = match step.turn {
            0 => step.shared,
            _ => request.blocks.saturating_sub(left_out),
        };
        let shared = shared.min(request.blocks) as usize;
        blocks.extend_from_slice(&self.trace.blocks(&request)[..shared]);
        self.continued[earlier] += u32::from(step.turn > 0);
    }
}

/// Properties of a trace that a generated one should have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Likeness {
    pub requests_per_s: f64,
    pub input_tokens_mean: f64,
    /// Share of references to blocks that were used before.
    pub reused: f64,
    /// Mean number of requests of a session.
    pub session_requests_mean: f64,
    /// Median and mean time between the first and the last use of blocks used more than once.
    pub lifetime_median_s: f64,
    pub lifetime_mean_s: f64,
}

impl Likeness {
    /// The properties of `trace`.
    pub fn of(trace: &ServingTrace) -> Self {
        let steps = steps(trace);
        let requests = trace.requests.len() as f64;
        let sessions = steps.iter().filter(|step| step.turn == 0).count();
        let (mut first, mut last) =
            (vec![None; trace.distinct()], vec![SimTime::ZERO; trace.distinct()]);
        let mut uses = vec![0u32; trace.distinct()];
        for request in &trace.requests {
            for &block in trace.blocks(request) {
                let block = block as usize;
                first[block].get_or_insert(request.at);
                last[block] = request.at;
                uses[block] += 1;
            }
        }
        let lifetime = |block: usize| Some(last[block].since(first[block]?).as_ns());
        let mut lifetimes: Vec<u64> =
            (0..uses.len()).filter(|block| uses[*block] > 1).filter_map(lifetime).collect();
        lifetimes.sort_unstable();
        let seconds = |ns: u64| ns as f64 / 1e9;
        let sum: f64 = lifetimes.iter().map(|ns| seconds(*ns)).sum();
        let references = trace.references.len().max(1) as f64;
        Self {
            requests_per_s: requests / seconds(trace.span_ns()).max(1e-9),
            input_tokens_mean: trace.requests.iter().map(|it| it.input_tokens as f64).sum::<f64>()
                / requests,
            reused: 1.0 - trace.distinct() as f64 / references,
            session_requests_mean: requests / sessions.max(1) as f64,
            lifetime_median_s: lifetimes.get(lifetimes.len() / 2).map_or(0.0, |ns| seconds(*ns)),
            lifetime_mean_s: sum / lifetimes.len().max(1) as f64,
        }
    }
}
