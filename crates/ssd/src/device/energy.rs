//! Energy of flash operations and power by state, and the meter that throttles read.

use hybridsim_config::effect::Needs;
use hybridsim_config::param::Kind;
use hybridsim_engine::PowerState;
use hybridsim_flash::event::joules::{ERASES, PROGRAMS, READS};
use hybridsim_flash::gc::SEARCH;
use hybridsim_flash::ops::{FlashOps, OpKind};

hybridsim_config::params! {
    /// Energy and power of a device.
    pub struct EnergyParams {
        pub read_energy: f64 = Kind::Energy, default "0uJ",
            "Energy per page of the map read (see `read_pages`).";
        pub program_energy: f64 = Kind::Energy, default "0uJ", "Energy per page programmed.";
        pub erase_energy: f64 = Kind::Energy, default "0uJ", "Energy per block erased.";
        pub search_energy: f64 = Kind::Energy, default "0uJ"
            needs &[Needs::Provides("^.ftl.gc", SEARCH)],
            "Energy per block examined by garbage collection policies that search.";
        pub ram_power: f64 = Kind::Power, default "0W",
            "Power per MiB of the RAM that holds the mapping, drawn at all times.";
        pub idle_power: f64 = Kind::Power, default "0W", "Power while idle.";
        pub active_power: f64 = Kind::Power, default "0W",
            "Power from a request's arrival until the last of its flash operations ends.";
        pub standby_power: Option<f64> = Kind::Power, optional,
            "Power in standby; reported only.";
    }
}

impl EnergyParams {
    /// Power by state.
    pub fn watts(&self) -> [f64; PowerState::COUNT] {
        let mut watts = [0.0; PowerState::COUNT];
        watts[PowerState::Idle as usize] = self.idle_power;
        watts[PowerState::Active as usize] = self.active_power;
        watts[PowerState::Standby as usize] = self.standby_power.unwrap_or(0.0);
        watts
    }

    /// Energies of operations by name.
    pub fn joules(&self) -> Vec<(&'static str, f64)> {
        vec![
            (READS, self.read_energy),
            (PROGRAMS, self.program_energy),
            (ERASES, self.erase_energy),
        ]
    }
}

/// A meter of the energy of flash operations.
pub(super) struct EnergyMeter {
    read: f64,
    program: f64,
    erase: f64,
    search: f64,
    /// Energy of the operations since it was last set to zero.
    pub joules: f64,
}

impl EnergyMeter {
    /// A meter of operations that take this energy.
    pub(super) fn new(energy: &EnergyParams) -> Box<Self> {
        Box::new(Self {
            read: energy.read_energy,
            program: energy.program_energy,
            erase: energy.erase_energy,
            search: energy.search_energy,
            joules: 0.0,
        })
    }

    /// Adds the recorded operations.
    #[inline(never)]
    pub(super) fn add(&mut self, flash: &FlashOps) {
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
}
