//! Fault injection: slow dies, worn-out flash, a full drive.

use super::{EndOfLife, FlashBackend, FtlBackend, SsdDevice};
use crate::ftl::{FtlError, Hint};
use crate::geometry::Lpn;
use hybridsim_engine::{Ctx, Inject, Injected, Slowdown};

impl<B: FlashBackend> Inject for SsdDevice<B> {
    fn supported(&self) -> &'static [&'static str] {
        self.backend.faults()
    }

    fn check(&self, fault: &Injected) -> Result<(), String> {
        let writes = matches!(fault, Injected::Wear { .. } | Injected::Fill { .. });
        if writes && self.state.end_of_life == EndOfLife::Reached {
            return Err("the flash is worn out already, and takes no more data".to_owned());
        }
        self.backend.check_fault(fault)
    }

    fn inject(&mut self, ctx: &mut Ctx<'_>, fault: &Injected) {
        if matches!(fault, Injected::Wear { .. }) && self.state.end_of_life == EndOfLife::EndsRun {
            self.state.end_of_life = EndOfLife::FailsWrites;
        }
        let result = self.backend.inject(ctx, fault, self.front.capacity);
        self.ended(ctx, result);
        self.report_free_blocks(ctx);
        if self.state.recovering.is_none() {
            self.set_idle_timer(ctx);
        }
    }
}

impl FtlBackend {
    /// The faults it supports: none of times where it has none, and a raw device is not filled, as
    /// its host has to erase pages before it writes them again.
    pub(super) fn supported_faults(&self) -> &'static [&'static str] {
        match (!self.timing.has_times(), self.properties.is_raw) {
            (false, false) => &["slow", "wear", "fill"],
            (false, true) => &["slow", "wear"],
            (true, false) => &["wear", "fill"],
            (true, true) => &["wear"],
        }
    }

    pub(super) fn check_injected(&self, fault: &Injected) -> Result<(), String> {
        match *fault {
            Injected::Slow { die: Some(die), .. } => {
                let dies = self.flash.array().geometry().dies();
                match die < u64::from(dies) {
                    true => Ok(()),
                    false => Err(format!("die {die} does not exist: dies are 0 to {}", dies - 1)),
                }
            }
            _ => Ok(()),
        }
    }

    pub(super) fn inject_fault(
        &mut self,
        ctx: &Ctx<'_>,
        fault: &Injected,
        sectors: u64,
    ) -> Result<(), FtlError> {
        match *fault {
            Injected::Slow { die, factor } => {
                if let Some((geometry, slow)) = self.timing.slowdowns() {
                    slow.set(geometry.dies(), die.map(|die| die as u32), Slowdown::by(factor));
                }
            }
            Injected::Wear { fraction } => {
                self.flash.wear_out(fraction);
                if let Some(model) = &mut self.bit_errors {
                    let endurance = f64::from(self.flash.array().endurance());
                    model.wear_out(libm::round(endurance * fraction) as u32);
                }
            }
            Injected::Fill { fraction } => {
                let pages = sectors / u64::from(self.sectors_per_page);
                let filled = libm::ceil(pages as f64 * fraction) as u64;
                return self.fill(filled.min(pages) as u32, ctx);
            }
            Injected::Fail { .. } => {}
        }
        Ok(())
    }

    /// Writes those of the first `pages` pages that hold no data, as preconditioning does, in one
    /// event that takes as long as that; they read as zeros, as before.
    fn fill(&mut self, pages: u32, ctx: &Ctx<'_>) -> Result<(), FtlError> {
        let verifying = ctx.verifying();
        // Versions move as the recorded operations do, and ages of blocks follow them.
        self.flash.set_recording(verifying || self.bit_errors.is_some());
        self.page.fill(0);
        let mut filled = Ok(());
        for lpn in (0..pages).map(Lpn) {
            if self.ftl.holds(lpn, &self.flash) {
                continue;
            }
            self.flash.clear();
            filled = self.ftl.write(lpn, Hint { request_pages: 1 }, &mut self.flash);
            if verifying {
                self.move_versions(0);
            }
            if let Some(model) = &mut self.bit_errors {
                model.follow_untimed(ctx.now(), self.flash.list_mut());
            }
            if filled.is_err() {
                break;
            }
        }
        self.flash.set_recording(true);
        self.flash.clear();
        filled
    }
}
