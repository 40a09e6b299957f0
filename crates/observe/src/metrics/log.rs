//! What log-structured translation layers did.

use super::level::ratio;
use hybridsim_engine::SECTOR_BYTES;
use hybridsim_layer::LayerEvent;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogFold {
    requested: u64,
    written: u64,
    moved: u64,
    summaries: u64,
    cleaned: u64,
    freed: u64,
}

impl LogFold {
    #[inline(never)]
    pub(crate) fn add(&mut self, event: LayerEvent) {
        match event {
            LayerEvent::LogWrite { requested, written } => {
                self.requested += u64::from(requested);
                self.written += written;
            }
            LayerEvent::LogSummary { sectors } => self.summaries += u64::from(sectors),
            LayerEvent::BlocksMoved { sectors } => self.moved += u64::from(sectors),
            LayerEvent::SegmentCleaned => self.cleaned += 1,
            LayerEvent::SegmentFreed { .. } => self.freed += 1,
        }
    }

    /// `None` for a component that is no log.
    pub(crate) fn results(&self) -> Option<Log> {
        let Self { requested, written, moved, summaries, cleaned, freed } = *self;
        if written + summaries + cleaned + freed == 0 {
            return None;
        }
        let bytes = |sectors: u64| sectors.saturating_mul(SECTOR_BYTES);
        let all = written.saturating_add(moved).saturating_add(summaries);
        Some(Log {
            log_host_bytes: bytes(requested),
            log_bytes: bytes(all),
            moved_bytes: bytes(moved),
            summary_bytes: bytes(summaries),
            segments_cleaned: cleaned,
            segments_freed: freed,
            log_write_amplification: ratio(all as f64, requested as f64),
            total_write_amplification: None,
        })
    }
}

/// Writes of a log-structured translation layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Log {
    /// Bytes of the writes that the layer received.
    pub log_host_bytes: u64,
    /// Bytes that it appended to its log in all: the whole blocks of these writes, moved blocks and
    /// summaries.
    pub log_bytes: u64,
    /// Bytes of valid blocks that cleaning moved.
    pub moved_bytes: u64,
    /// Bytes of segment summaries.
    pub summary_bytes: u64,
    /// Segments cleaned.
    pub segments_cleaned: u64,
    /// Segments freed: zones reset, or segments discarded.
    pub segments_freed: u64,
    /// `log_bytes` divided by `log_host_bytes`.
    pub log_write_amplification: Option<f64>,
    /// Bytes programmed in the flash devices below the layer, divided by `log_host_bytes`: the
    /// product of the write amplification of the layer, of all between, and of the devices. `null`
    /// without flash below it.
    pub total_write_amplification: Option<f64>,
}
