//! The energy of flash operations, for throttles.

use super::drive::EnergyParams;
use hybridsim_flash::ops::{FlashOps, OpKind};

/// Energy of flash operations since the last reading.
pub struct EnergyMeter {
    read: f64,
    program: f64,
    erase: f64,
    search: f64,
    joules: f64,
}

impl EnergyMeter {
    /// A meter of operations that take this energy.
    pub(crate) fn new(energy: &EnergyParams) -> Box<Self> {
        Box::new(Self {
            read: energy.operations.read_energy,
            program: energy.operations.program_energy,
            erase: energy.operations.erase_energy,
            search: energy.search_energy,
            joules: 0.0,
        })
    }

    /// Adds the recorded operations.
    #[inline(never)]
    pub(crate) fn add(&mut self, flash: &FlashOps) {
        for op in flash.list() {
            self.joules += match op.kind {
                OpKind::Read => self.read,
                OpKind::Program => self.program,
                OpKind::Copy => self.read + self.program,
                OpKind::Erase => self.erase,
            };
            // Each retry reads the cells again.
            self.joules += self.read * f64::from(op.retries);
        }
        self.joules += self.search * f64::from(flash.searched_blocks());
    }

    /// The energy since the last call.
    pub(crate) fn take(&mut self) -> f64 {
        std::mem::take(&mut self.joules)
    }
}
