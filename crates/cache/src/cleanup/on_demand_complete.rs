//! A write that finds too few free pages destages all pages; all requests wait meanwhile.
//!
//! The default of konanki (section 3.3): cleanups are as rare as possible, the disk may stay in a
//! low-power state between them, and sorting the whole cache gives long writes, at the price of the
//! waiting time. Figure 4.9 cleans up below a threshold of free pages, which the paper does not
//! give: by default a write waits only when its own pages do not fit.

use super::{CacheState, Cleanup, CleanupEntry, Plan};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

hybridsim_config::params! {
    struct Parameters {
        free_min: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.0",
            "Share of the pages that a write has to leave free; below it all pages are destaged \
             first (figure 4.9's threshold).";
    }
}

pub const ENTRY: CleanupEntry = CleanupEntry {
    description: Description {
        name: "on-demand-complete",
        summary: "a write that finds no free page destages all pages; requests wait",
        origin: "konanki, section 3.3",
        params: Parameters::PARAMS,
    },
    build: |settings, pages| {
        let free_min = Parameters::from_settings(settings).free_min;
        Ok(Box::new(OnDemandComplete { free_min: (free_min * f64::from(pages)).ceil() as u32 }))
    },
};

/// Destages all pages exclusively.
#[derive(Debug, Serialize, Deserialize)]
pub struct OnDemandComplete {
    free_min: u32,
}

impl Cleanup for OnDemandComplete {
    fn on_demand(&mut self, _state: CacheState, _needed: u32) -> Plan {
        Plan { pages: Plan::ALL, exclusive: true, yields: false }
    }

    fn free_min(&self) -> u32 {
        self.free_min
    }
}
