//! Weaknesses of a fit, in sentences.

use super::{JobResult, MeasuredJob, SsdCalibration};

/// The mean error of the jobs fitted to from which a warning is given.
const MISFIT: f64 = 0.1;

/// A job held out is beyond the fit if it has more than so many times the requests outstanding of
/// every job of its kind that was fitted to.
const NEAR: u64 = 4;

/// Latencies that fall by less than this share, and rates that rise by less, are the same.
const SAME: f64 = 0.05;

impl SsdCalibration<'_> {
    /// Weaknesses of the fit.
    pub fn warnings(&self) -> Vec<String> {
        let all = [
            self.waits_in_the_host(),
            self.no_better_than_start(),
            self.no_better_than_trivial(),
            self.misses_its_own_jobs(),
            self.latency_falls(),
            self.extrapolates(),
        ];
        all.into_iter().flatten().collect()
    }

    /// START admits fewer requests to the drive than a job has outstanding.
    fn waits_in_the_host(&self) -> Option<String> {
        let most = self.commands_max?;
        let deeper = self.jobs.iter().map(|job| job.measured.depth).filter(|depth| *depth > most);
        let (count, deepest) = (deeper.clone().count(), deeper.max()?);
        Some(format!(
            "queue_depth = {most} of [host] in {} limits {count} of {} jobs, which have up to \
             {deepest} requests outstanding: the others wait in the host; keep it if the drive \
             takes no more commands at a time (NCQ: 32), otherwise raise or remove it",
            self.start,
            self.jobs.len()
        ))
    }

    fn no_better_than_start(&self) -> Option<String> {
        let [before, after] = &self.held_out;
        let ((words, after_mean), (_, before_mean)) = (after.headline(), before.headline());
        (after.jobs > 0 && after_mean >= before_mean).then(|| {
            format!(
                "the fitted constants are no better than those of {} on the jobs held out: {:.1} % \
                 mean error of {words}, before {:.1} %",
                self.start,
                100.0 * after_mean,
                100.0 * before_mean
            )
        })
    }

    fn no_better_than_trivial(&self) -> Option<String> {
        let after = &self.held_out[1];
        (after.jobs > 0 && after.rate_mean >= self.trivial).then(|| {
            format!(
                "latency at depth 1 and the highest rate alone predict the jobs held out as well \
                 ({:.1} %): these jobs do not show what is inside the drive",
                100.0 * self.trivial
            )
        })
    }

    fn misses_its_own_jobs(&self) -> Option<String> {
        let (words, error) = self.fitted[1].headline();
        (error >= MISFIT).then(|| {
            format!(
                "{words} of the jobs that were fitted to are {:.1} % off themselves on average: no \
                 drive that was tried comes closer; try another START, or fit to fewer kinds of \
                 jobs",
                100.0 * error
            )
        })
    }

    /// At a higher load each request waits longer, except for a drive that wakes up or is in
    /// another state.
    fn latency_falls(&self) -> Option<String> {
        let next = |job: &MeasuredJob| {
            let higher = self.jobs.iter().map(|it| &it.measured);
            let higher = higher.filter(|it| it.is_of_row(job) && it.load() > job.load());
            higher.min_by_key(|it| it.load()).cloned()
        };
        let falls = |job: &MeasuredJob| {
            let higher = next(job)?;
            let (one, other) = (job.delivered.first()?.mean_us, higher.delivered.first()?.mean_us);
            (other < one * (1.0 - SAME)).then(|| (job.label(), one, higher.label(), other))
        };
        let all: Vec<_> = self.jobs.iter().filter_map(|job| falls(&job.measured)).collect();
        let (job, one, higher, other) = all.first()?;
        Some(format!(
            "latency falls at a higher load in {} of {} jobs, such as from {one:.0} us ({job}) to \
             {other:.0} us ({higher}): the drive slept, or was in another state; measure those \
             again",
            all.len(),
            self.jobs.len(),
        ))
    }

    /// Jobs that go faster than any of their row that was fitted to, with far more outstanding.
    fn extrapolates(&self) -> Option<String> {
        let rate = |job: &JobResult| job.measured.delivered.iter().map(|it| it.iops).sum::<f64>();
        let is_beyond = |job: &&JobResult| {
            let row = self.jobs.iter().filter(|it| it.measured.is_of_row(&job.measured));
            let below = |it: &JobResult| {
                let is_far = it.measured.depth * NEAR < job.measured.depth;
                is_far && rate(it) * (1.0 + SAME) < rate(job)
            };
            let mut fitted = row.filter(|it| it.fitted).peekable();
            !job.fitted && fitted.peek().is_some() && fitted.all(below)
        };
        let count = self.jobs.iter().filter(is_beyond).count();
        (count > 0).then(|| {
            format!(
                "{count} of the jobs held out go faster than any of their kind that was fitted to: \
                 they are beyond the fit, and so are predictions for as many requests outstanding"
            )
        })
    }
}
