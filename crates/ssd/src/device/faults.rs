//! Fault injection: slow dies, worn-out flash, a full drive.

use super::{BackEnd, EndOfLife, SsdDevice, Translation};
use hybridsim_engine::{Ctx, Inject, Injected};

/// The faults of a device that has times or not, and that can be filled or not: the host of a raw
/// device has to erase pages before it writes them again.
pub const fn supported(has_times: bool, fills: bool) -> &'static [&'static str] {
    match (has_times, fills) {
        (true, true) => &["slow", "wear", "fill"],
        (true, false) => &["slow", "wear"],
        (false, true) => &["wear", "fill"],
        (false, false) => &["wear"],
    }
}

impl<T: Translation> Inject for SsdDevice<T> {
    fn supported(&self) -> &'static [&'static str] {
        self.front.faults
    }

    fn check(&self, fault: &Injected) -> Result<(), String> {
        let writes = matches!(fault, Injected::Wear { .. } | Injected::Fill { .. });
        if writes && self.state.end_of_life == EndOfLife::Reached {
            return Err("the flash is worn out already, and takes no more data".to_owned());
        }
        self.check_die(fault)
    }

    fn inject(&mut self, ctx: &mut Ctx<'_>, fault: &Injected) {
        if matches!(fault, Injected::Wear { .. }) && self.state.end_of_life == EndOfLife::EndsRun {
            self.state.end_of_life = EndOfLife::FailsWrites;
        }
        let result = match *fault {
            Injected::Fill { fraction } => {
                let pages = self.front.capacity / u64::from(self.front.sectors_per_page);
                let filled = libm::ceil(pages as f64 * fraction) as u64;
                let pages = filled.min(pages) as u32;
                self.translation.filling().map_or(Ok(()), |it| it.fill(ctx, pages))
            }
            _ => {
                self.translation.back_end().inject(fault);
                Ok(())
            }
        };
        self.ended(ctx, result);
        self.report_free_blocks(ctx);
        if self.state.recovering.is_none() {
            self.set_idle_timer(ctx);
        }
    }
}

impl<T: Translation> SsdDevice<T> {
    fn check_die(&self, fault: &Injected) -> Result<(), String> {
        let Injected::Slow { die: Some(die), .. } = *fault else { return Ok(()) };
        let [array, _] = self.translation.arrays();
        let dies = array.map_or(0, |array| array.geometry().dies());
        match die < u64::from(dies) {
            true => Ok(()),
            false => Err(format!("die {die} does not exist: dies are 0 to {}", dies - 1)),
        }
    }
}
