//! Generators side by side, as the jobs of a fio job file or the parts of a store: each draws its
//! own requests, and they share the bytes.

use super::arrivals::{self, Generator, Limits, build_workload};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::param::{Built, EntryChoice, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Request, Source};

struct Job {
    source: Box<dyn Source>,
    share: f64,
    /// Bytes so far, divided by its share.
    progress: f64,
    /// The request that it draws next; `None` at the end of the job.
    next: Result<Option<Request>, String>,
}

impl Job {
    fn advance(&mut self) {
        self.next = self.source.next().map(|next| next.map(|arrival| arrival.request));
    }
}

struct Jobs {
    jobs: Vec<Job>,
}

impl Jobs {
    /// The job that is furthest behind its share, and its request.
    fn next(&mut self) -> Option<(&mut Job, Request)> {
        let jobs = self.jobs.iter_mut().filter_map(|job| {
            let request = job.next.as_ref().ok().copied().flatten()?;
            Some((job, request))
        });
        jobs.min_by(|(one, _), (other, _)| one.progress.total_cmp(&other.progress))
    }
}

impl Generator for Jobs {
    fn draw(&mut self) -> Request {
        let (job, request) = self.next().expect("asked for its end before");
        // A flush takes its turn as a sector does.
        job.progress += f64::from(request.sectors.max(1)) / job.share;
        job.advance();
        request
    }

    fn end(&self) -> Option<Result<(), String>> {
        let failed = self.jobs.iter().find_map(|job| job.next.as_ref().err().cloned());
        let ended = self.jobs.iter().all(|job| matches!(job.next, Ok(None)));
        failed.map(Err).or_else(|| ended.then_some(Ok(())))
    }

    fn application_bytes(&self) -> Option<u64> {
        // Beside a store, other jobs would count as its writes.
        self.jobs.iter().map(|job| job.source.application_bytes()).sum()
    }
}

hybridsim_config::params! {
    struct Parameters includes { arrivals: arrivals::Parameters } {
        jobs: Vec<EntryChoice> = Kind::Entries("generator"), required,
            "Generators that draw the requests of a job each, without arrival times. A job may be \
             endless; one that ends leaves its share to the others.";
        shares: Option<Vec<f64>> = Kind::Numbers, optional,
            "Shares of the jobs in the bytes, in any unit; equal if absent.";
    }
}

fn build_job(
    input: &GeneratorInput<'_>,
    (number, job): (usize, &EntryChoice),
) -> Result<Box<dyn Source>, Vec<Problem>> {
    let (entry, settings) = input.registry.chosen::<GeneratorEntry>(job);
    let of_job = |message: String| Problem::new("jobs", format!("job {}: {message}", number + 1));
    let path = format!("{}/job{number}", input.path);
    let input = GeneratorInput { settings, path: &path, may_be_endless: true, ..*input };
    let source = (entry.build)(&input).map_err(|problems| {
        let each = problems.into_iter();
        each.map(|it| of_job(format!("{}: {}", it.param, it.message))).collect::<Vec<_>>()
    })?;
    if source.has_times() || !source.reads_ahead() {
        let message = "a job has no arrival times and no `duration`, and waits for no completion";
        return Err(vec![of_job(message.to_owned())]);
    }
    Ok(source)
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let Parameters { arrivals, jobs: choices, shares } = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let shares = shares.unwrap_or_else(|| vec![1.0; choices.len()]);
    if shares.len() != choices.len() || shares.iter().any(|it| it.is_nan() || *it <= 0.0) {
        let message = format!("needs a number above 0 for each of {} jobs", choices.len());
        problems.push(Problem::new("shares", message));
    }
    if choices.is_empty() {
        problems.push(Problem::new("jobs", "needs a job"));
    }
    let mut jobs = Vec::new();
    for (number, (choice, share)) in choices.iter().zip(shares).enumerate() {
        match build_job(input, (number, choice)) {
            Ok(source) => {
                let mut job = Job { source, share, progress: 0.0, next: Ok(None) };
                job.advance();
                jobs.push(job);
            }
            Err(more) => problems.extend(more),
        }
    }
    build_workload(input, &arrivals, Some(Jobs { jobs }), Limits::NONE, None, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "jobs",
        summary: "Several generators side by side, which share the bytes.",
        origin: "the jobs of a fio job file",
        params: Parameters::PARAMS,
    },
    build,
};
