//! Cleanup starts when free pages fall below a low watermark and continues to a high one, while
//! requests are served (konanki, section 3.3, names the scheme).

use super::{CacheState, Cleanup, CleanupEntry, Plan};
use hybridsim_config::param::{Kind, Problem};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

hybridsim_config::params! {
    struct Parameters {
        low: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.1",
            "Share of free pages below which cleanup starts.";
        high: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.2",
            "Share of free pages at which it ends.";
    }
}

pub const ENTRY: CleanupEntry = CleanupEntry {
    description: Description {
        name: "low-watermark",
        summary: "destages pages in the background when few are free",
        origin: "konanki, section 3.3 (named as an alternative)",
        params: Parameters::PARAMS,
    },
    build: |settings, pages| {
        let Parameters { low, high } = Parameters::from_settings(settings);
        if high < low {
            return Err(vec![Problem::new("high", "must not be less than `low`")]);
        }
        let free = |share: f64| (share * f64::from(pages)).ceil() as u32;
        Ok(Box::new(LowWatermark { low: free(low), high: free(high) }))
    },
};

/// The watermarks, in free pages.
#[derive(Debug, Serialize, Deserialize)]
pub struct LowWatermark {
    low: u32,
    high: u32,
}

impl Cleanup for LowWatermark {
    fn on_demand(&mut self, state: CacheState, needed: u32) -> Plan {
        let pages = needed.max(self.high).saturating_sub(state.free).max(1);
        Plan { pages, exclusive: false, yields: false }
    }

    fn background(&mut self, state: CacheState) -> Option<Plan> {
        let pages = self.high.saturating_sub(state.free);
        let due = state.free < self.low && pages > 0;
        due.then_some(Plan { pages, exclusive: false, yields: false })
    }
}
