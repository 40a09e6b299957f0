//! A submission and a completion queue, for requests that come from outside while the machine
//! runs, instead of from a workload.

use hybridsim_engine::{
    Arrival, Completion, Ctx, Op, Outcome, Request, RequestId, SimTime, Source,
};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// Outcome of a request from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// Served.
    Done,
    /// The device could not serve it.
    Failed,
    /// Lost in a power failure: it never completes.
    Lost,
}

/// The end of a request from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Number of the request: requests are numbered from 0 in order of submission.
    pub number: u64,
    /// Time of the completion, since the start of the run.
    pub at: SimTime,
    pub outcome: Answered,
    /// Data of a read, where data versions are tracked: per sector the number of the write whose
    /// data it holds, plus 1; 0 where nothing was written.
    pub versions: Vec<u64>,
}

#[derive(Default)]
struct Queues {
    submission: VecDeque<Arrival>,
    completion: VecDeque<Answer>,
    /// Requests that have ended.
    ended: u64,
}

/// The two queues, shared between the host and the submitter.
#[derive(Clone, Default)]
pub struct QueuePair(Rc<RefCell<Queues>>);

impl QueuePair {
    /// Adds a request; times must not decrease.
    pub fn submit(&self, arrival: Arrival) {
        self.0.borrow_mut().submission.push_back(arrival);
    }

    /// Removes the oldest answer.
    pub fn pop(&self) -> Option<Answer> {
        self.0.borrow_mut().completion.pop_front()
    }

    /// Number of requests that have ended.
    pub fn ended(&self) -> u64 {
        self.0.borrow().ended
    }

    /// Whether an answer is there.
    pub fn is_answered(&self) -> bool {
        !self.0.borrow().completion.is_empty()
    }
}

impl Source for QueuePair {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        Ok(self.0.borrow_mut().submission.pop_front())
    }

    fn waits(&self) -> bool {
        true
    }
}

/// The host's half of a queue pair.
pub(super) struct Outside {
    pair: QueuePair,
    versions: bool,
    arrived: u64,
    /// Numbers of the requests that have arrived and not ended.
    open: BTreeSet<u64>,
    /// The number of the request at the device, by its identifier there.
    numbers: Vec<u64>,
}

impl Outside {
    pub fn new(pair: QueuePair, versions: bool) -> Self {
        Self { pair, versions, arrived: 0, open: BTreeSet::new(), numbers: Vec::new() }
    }

    /// Whether requests carry data versions that are the submitter's, not the reference model's.
    pub fn has_versions(&self) -> bool {
        self.versions
    }

    /// Numbers a request.
    pub fn arrives(&mut self) -> u64 {
        self.arrived += 1;
        self.open.insert(self.arrived - 1);
        self.arrived - 1
    }

    /// Attaches data versions to a request about to be issued.
    pub fn begin(&self, ctx: &mut Ctx<'_>, number: u64, request: &mut Request) {
        if self.versions && matches!(request.op, Op::Read | Op::Write) {
            request.data = ctx.take_data(request.sectors);
            if request.op == Op::Write {
                ctx.data().versions_mut(request.data, request.sectors).fill(number + 1);
            }
        }
    }

    pub fn issued(&mut self, id: RequestId, number: u64) {
        let at = id.0 as usize;
        if at >= self.numbers.len() {
            self.numbers.resize(at + 1, 0);
        }
        self.numbers[at] = number;
    }

    pub fn completed(&mut self, ctx: &mut Ctx<'_>, done: &Completion, at: SimTime) {
        let number = self.numbers[done.id.0 as usize];
        self.open.remove(&number);
        let outcome = match done.outcome {
            Outcome::Done => Answered::Done,
            Outcome::Failed => Answered::Failed,
        };
        let Request { op, data, sectors, .. } = done.request;
        let mut versions = Vec::new();
        if self.versions {
            if op == Op::Read {
                versions.extend_from_slice(ctx.data().versions(data, sectors));
            }
            ctx.data().give_back(data);
        }
        self.answer(Answer { number, at, outcome, versions });
    }

    /// All requests that have arrived are lost.
    pub fn power_cut(&mut self, at: SimTime) {
        for number in std::mem::take(&mut self.open) {
            self.answer(Answer { number, at, outcome: Answered::Lost, versions: Vec::new() });
        }
    }

    fn answer(&self, answer: Answer) {
        let mut queues = self.pair.0.borrow_mut();
        queues.ended += 1;
        queues.completion.push_back(answer);
    }
}
