//! The SSD without a clock: requests change the flash in their order, and operations are counted
//! instead of timed. The translation layer, its policies and the array are those of a simulated
//! SSD; there are no messages, events or background work.

use super::FrontEnd;
use super::ftl_translation::{FtlTranslation, Ssd};
use super::merge::MergeBuffer;
use super::split::{WriteRun, first_page, split};
use hybridsim_engine::{Arrival, Fault, Op, Request};
use hybridsim_flash::array::Array;
use hybridsim_flash::event::Cause;
use hybridsim_flash::ftl::{EXPECTED_MAX, Ftl, FtlError};
use hybridsim_flash::geometry::Lpn;
use hybridsim_flash::ops::{FlashOps, OpCounts};

/// Requests and pages that an [`Untimed`] SSD served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Sectors written.
    pub write_sectors: u64,
    /// Trim requests.
    pub trims: u64,
    /// Flush requests, which have no effect.
    pub flushes: u64,
    /// Whole pages that were trimmed, whether or not they held data.
    pub trimmed_pages: u64,
    /// Pages read that hold no data, which takes no flash operation.
    pub unwritten_reads: u64,
}

impl Served {
    /// Requests in all.
    pub const fn requests(&self) -> u64 {
        self.reads + self.writes + self.trims + self.flushes
    }

    /// Requests and pages served since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            write_sectors: self.write_sectors - earlier.write_sectors,
            trims: self.trims - earlier.trims,
            flushes: self.flushes - earlier.flushes,
            trimmed_pages: self.trimmed_pages - earlier.trimmed_pages,
            unwritten_reads: self.unwritten_reads - earlier.unwritten_reads,
        }
    }
}

/// An SSD that serves requests without simulated time. Operations are recorded again when it is
/// dropped.
pub struct Untimed<'a> {
    ftl: &'a mut dyn Ftl,
    flash: &'a mut FlashOps,
    merge: &'a mut Option<MergeBuffer>,
    front: &'a FrontEnd,
    path: &'a str,
    before: OpCounts,
    served: Served,
}

impl Ssd {
    /// Serves requests without simulated time from now on, in its present state; `path` names the
    /// device in errors.
    pub fn untimed<'a>(&'a mut self, path: &'a str) -> Untimed<'a> {
        let FtlTranslation { ftl, back_end, merge, .. } = &mut self.translation;
        let (flash, front) = (&mut back_end.flash, &self.front);
        flash.set_recording(false);
        let (before, served) = (*flash.counts(), Served::default());
        Untimed { ftl: &mut **ftl, flash, merge, front, path, before, served }
    }
}

impl Untimed<'_> {
    /// The flash.
    pub const fn array(&self) -> &Array {
        self.flash.array()
    }

    /// Sectors offered to the host.
    pub const fn capacity(&self) -> u64 {
        self.front.capacity
    }

    fn host_programs(&self) -> u64 {
        self.flash.counts().programs(Cause::Host)
    }

    /// The flash operations of the requests so far.
    pub fn operations(&self) -> OpCounts {
        self.flash.counts().since(&self.before)
    }

    /// The requests so far.
    pub const fn served(&self) -> &Served {
        &self.served
    }

    /// Serves the requests of `arrivals` in their order, whenever they arrive.
    ///
    /// # Errors
    /// As a simulated SSD: a request beyond the capacity, flash that is worn out or full, or a
    /// violation of a rule of NAND flash. The requests before have been served.
    pub fn serve(&mut self, arrivals: &[Arrival]) -> Result<(), Fault> {
        arrivals.chunks(EXPECTED_MAX).try_for_each(|batch| self.serve_batch(batch))
    }

    fn serve_batch(&mut self, batch: &[Arrival]) -> Result<(), Fault> {
        let FrontEnd { sectors_per_page: per_page, capacity, .. } = *self.front;
        let mut lpns = [Lpn(0); EXPECTED_MAX];
        let lpns = &mut lpns[..batch.len()];
        let mut whole_pages = true;
        for (lpn, Arrival { request, .. }) in lpns.iter_mut().zip(batch) {
            let (page, offset) = first_page(request, per_page);
            // A request beyond the capacity fails later, whatever page is expected.
            *lpn = Lpn(page as u32);
            whole_pages &= request.op == Op::Write
                && (offset, request.sectors, request.flags.handle()) == (0, per_page, 0)
                && request.end().0 <= capacity;
        }
        let Self { ftl, flash, .. } = self;
        if self.front.looks_ahead {
            ftl.expect(lpns, flash);
        }
        let served = if whole_pages && self.merge.is_none() {
            let before = flash.counts().programs(Cause::Host);
            let written = ftl.write_each(lpns, flash);
            let programs = flash.counts().programs(Cause::Host) - before;
            self.served.write_sectors += programs * u64::from(per_page);
            // And the one that failed.
            self.served.writes += programs + u64::from(written.is_err());
            written.map_err(|error| self.device_fault(&error))
        } else {
            batch.iter().try_for_each(|arrival| self.serve_one(&arrival.request))
        };
        match self.flash.violation() {
            Some(violation) => {
                let (path, name) = (self.path, self.front.translation);
                Err(Fault::Invariant(format!("{path}: translation layer `{name}`: {violation}")))
            }
            None => served,
        }
    }

    fn serve_one(&mut self, request: &Request) -> Result<(), Fault> {
        if request.op != Op::Flush && request.end().0 > self.front.capacity {
            return Err(Fault::OutOfRange {
                first: request.lba,
                end: request.end(),
                capacity: self.front.capacity,
                device: self.path.to_owned(),
            });
        }
        if request.is_zone_command() {
            return Err(Fault::Device {
                device: self.path.to_owned(),
                reason: "it has no zones, and the workload contains zone commands".to_owned(),
            });
        }
        let done = match request.op {
            Op::Read => {
                self.served.reads += 1;
                self.read(request);
                Ok(())
            }
            Op::Write => {
                self.served.writes += 1;
                let before = self.host_programs();
                let written = self.write(request);
                let programmed =
                    (self.host_programs() - before) * u64::from(self.front.sectors_per_page);
                let whole = written.is_ok().then_some(u64::from(request.sectors));
                self.served.write_sectors += whole.unwrap_or(programmed);
                written
            }
            Op::Trim => {
                self.served.trims += 1;
                self.trim(request)
            }
            Op::Flush => {
                self.served.flushes += 1;
                Ok(())
            }
            Op::Zone(_) => unreachable!("refused above"),
        };
        done.map_err(|error| self.device_fault(&error))
    }

    fn read(&mut self, request: &Request) {
        let Self { ftl, flash, front, merge, .. } = self;
        for part in split(request, front.sectors_per_page) {
            let waits = merge.as_ref().is_some_and(|merge| merge.get(part.lpn).is_some());
            if merge.as_ref().is_some_and(|merge| merge.holds(&part)) {
                continue;
            }
            let before = flash.counts().reads(Cause::Host);
            ftl.read(part.lpn, flash);
            let unwritten = flash.counts().reads(Cause::Host) == before && !waits;
            self.served.unwritten_reads += u64::from(unwritten);
        }
    }

    fn write(&mut self, request: &Request) -> Result<(), FtlError> {
        let Self { ftl, flash, front, merge, .. } = self;
        let (per_page, handle) = (front.sectors_per_page, request.flags.handle());
        let run = WriteRun::new(request, per_page);
        for part in split(request, per_page) {
            if let Some(merge) = merge.as_mut().filter(|_| part.sectors < per_page) {
                merge.write(&part, handle, &[], |unit| {
                    unit.read_rest(&mut **ftl, flash);
                    unit.write(&mut **ftl, flash)
                })?;
                continue;
            }
            part.read_rest(&mut **ftl, flash, per_page);
            ftl.write(part.lpn, run.hint(part.lpn), flash)?;
            if let Some(merge) = merge {
                merge.take(part.lpn);
            }
        }
        Ok(())
    }

    fn trim(&mut self, request: &Request) -> Result<(), FtlError> {
        let Self { ftl, flash, front, merge, .. } = self;
        let per_page = front.sectors_per_page;
        for part in split(request, per_page).filter(|part| part.sectors == per_page) {
            if let Some(merge) = merge {
                merge.take(part.lpn);
            }
            ftl.trim(part.lpn, flash)?;
            self.served.trimmed_pages += 1;
        }
        Ok(())
    }

    fn device_fault(&self, error: &FtlError) -> Fault {
        Fault::Device { device: self.path.to_owned(), reason: error.to_string() }
    }
}

impl Drop for Untimed<'_> {
    fn drop(&mut self) {
        self.flash.set_recording(true);
    }
}
