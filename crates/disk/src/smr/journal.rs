//! Writes to the log of the persistent cache: those that arrive while a group is written make the
//! next one.

use super::{Purpose, SmrDisk, Statistic};
use hybridsim_engine::{Completion, Ctx, Flags, Lba, Op, Request, SECTOR_BYTES};
use std::collections::VecDeque;

/// A group takes no further write when it has this many sectors: 2 MiB. Assumed.
const GROUP_SECTORS: u64 = 4096;

/// The writes on their way to the log, as jobs.
#[derive(Default)]
pub(super) struct Journal {
    /// Those being written.
    group: Vec<usize>,
    queue: VecDeque<usize>,
    /// Those that wait for space; they hold no lock, as cleaning needs it.
    stalled: VecDeque<usize>,
}

impl Journal {
    pub fn has_stalled(&self) -> bool {
        !self.stalled.is_empty()
    }
}

impl SmrDisk {
    pub(super) fn write_to_cache(&mut self, ctx: &mut Ctx<'_>, number: usize) {
        let Some(cache) = &mut self.cache else { return };
        cache.journal.queue.push_back(number);
        self.write_group(ctx);
    }

    /// Writes the next group, if none is being written.
    fn write_group(&mut self, ctx: &mut Ctx<'_>) {
        let Some(cache) = &mut self.cache else { return };
        let journal = &mut cache.journal;
        if !journal.group.is_empty() || journal.queue.is_empty() {
            return;
        }
        // Those that wait already come first.
        let waiting = journal.has_stalled() && cache.cleaning.is_some();
        let (mut count, mut data) = (0, 0);
        for job in journal.queue.iter().filter(|_| !waiting) {
            if data >= GROUP_SECTORS {
                break;
            }
            (count, data) = (count + 1, data + u64::from(self.jobs[*job].sectors));
        }
        let mut begun = None;
        while count > 0 && begun.is_none() {
            begun = cache.map.begin(data, count);
            if begun.is_none() {
                count -= 1;
                data -= u64::from(self.jobs[journal.queue[count]].sectors);
            }
        }
        let Some(place) = begun else { return self.stall(ctx) };
        journal.group.extend(journal.queue.drain(..count));
        let header = cache.parts.header;
        let sectors = (header + data) as u32;
        let slice = ctx.take_data(sectors);
        let mut at = header as u32;
        for job in journal.group.iter().map(|it| &self.jobs[*it]) {
            let Some(host) = job.host else { continue };
            let from = self.hosts[host].request.data.skip(job.skip);
            let versions = ctx.data().versions(from, job.sectors).to_vec();
            ctx.data().versions_mut(slice.skip(at), job.sectors).copy_from_slice(&versions);
            at += job.sectors;
        }
        let request = Request {
            flags: Flags::FUA,
            data: slice,
            ..Request::new(Op::Write, Lba(place), sectors)
        };
        ctx.issue(0, request, Purpose::Log.tag(0));
    }

    /// The cache is full: queued writes wait for a band to be cleaned.
    fn stall(&mut self, ctx: &mut Ctx<'_>) {
        let Some(cache) = &mut self.cache else { return };
        let now = ctx.now();
        let queue = std::mem::take(&mut cache.journal.queue);
        for &number in &queue {
            self.jobs[number].stall(now);
            ctx.emit(Statistic::Stalled.event(1));
        }
        cache.journal.stalled.extend(&queue);
        for number in queue {
            self.release(number);
        }
        self.begin_cleaning(ctx);
    }

    /// A band has been cleaned, or could not be: the writes that waited for it try again, or fail.
    pub(super) fn resume_stalled(&mut self, ctx: &mut Ctx<'_>, failed: bool) {
        let Some(cache) = &mut self.cache else { return };
        for number in std::mem::take(&mut cache.journal.stalled) {
            self.jobs[number].resume(ctx.now());
            if failed {
                self.fail_unlocked(ctx, number, None);
            } else {
                self.start(ctx, number);
            }
        }
    }

    /// The group is on the medium, or failed.
    pub(super) fn logged(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let Some(cache) = &mut self.cache else { return };
        let mut group = std::mem::take(&mut cache.journal.group);
        ctx.data().give_back(done.request.data);
        if done.failed() {
            cache.map.abandon();
        } else {
            let jobs = &self.jobs;
            cache.map.append(group.iter().map(|it| (jobs[*it].lba, u64::from(jobs[*it].sectors))));
            ctx.emit(Statistic::Logged.event(done.request.bytes()));
            ctx.emit(Statistic::Used.event(cache.map.used() * SECTOR_BYTES));
        }
        for number in group.drain(..) {
            if done.failed() {
                self.release(number);
                self.fail_unlocked(ctx, number, Some(done));
            } else {
                let bytes = u64::from(self.jobs[number].sectors) * SECTOR_BYTES;
                ctx.emit(Statistic::Cached.event(bytes));
                self.end_job(ctx, number, Some(done));
            }
        }
        if let Some(cache) = &mut self.cache {
            cache.journal.group = group;
        }
        self.write_group(ctx);
        self.run_granted(ctx);
    }
}
