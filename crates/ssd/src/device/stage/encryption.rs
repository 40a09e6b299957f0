//! Encryption of data at rest by an engine of the controller, as self-encrypting drives have it.

use super::{Stage, StageEntry, StageInput};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::SimDuration;
use hybridsim_flash::event::Cause;

pub const ENTRY: StageEntry = StageEntry {
    description: Description {
        name: "encryption",
        summary: "An engine that encrypts and decrypts the host's data between host and flash.",
        origin: "self-encrypting drives (TCG Opal); times assumed",
        params: Parameters::PARAMS,
    },
    build: |settings| {
        let Parameters { rate, latency } = Parameters::from_settings(settings);
        Ok(Box::new(Encryption { rate, latency }))
    },
};

hybridsim_config::params! {
    struct Parameters {
        rate: u64 = Kind::Rate, default "0MB/s",
            "Rate of the engine; 0 where it keeps up with the host link.";
        latency: SimDuration = Kind::Duration, default "1us",
            "Time from the first byte of a page to its first encrypted byte (assumed).";
    }
}

struct Encryption {
    rate: u64,
    latency: SimDuration,
}

impl Stage for Encryption {
    fn time(&mut self, page: &StageInput<'_>) -> SimDuration {
        // Data that the controller only moves stay encrypted, and what is not stored is not
        // decrypted.
        if !page.operations.iter().any(|op| op.cause == Cause::Host) {
            return SimDuration::ZERO;
        }
        self.latency + SimDuration::transfer(page.bytes, self.rate)
    }
}
