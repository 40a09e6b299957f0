//! The profile as rows of text.

use super::{Distribution, Profile};
use hybridsim_engine::SimDuration;

/// A label, and a value with unit.
pub type LabelledValue = (String, String);

pub(super) fn bytes(count: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(shift, _)| count >> shift > 0) {
        Some((shift, unit)) => format!("{:.2} {unit}", count as f64 / (1u64 << shift) as f64),
        None => format!("{count} B"),
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A remark for figures estimated from a sample.
fn sample(fraction: f64) -> String {
    if fraction < 1.0 { format!(" (sampled, 1 of {:.0})", 1.0 / fraction) } else { String::new() }
}

fn time(ns: f64) -> String {
    SimDuration::from_ns_f64(ns).to_string()
}

pub(super) fn spread(d: &Distribution) -> String {
    let [p50, p90, p99, max] = [d.p50, d.p90, d.p99, d.max].map(|ns| time(ns as f64));
    let (mean, stddev) = (time(d.mean), time(d.stddev));
    format!("mean {mean}, sd {stddev}, p50 {p50}, p90 {p90}, p99 {p99}, max {max}")
}

impl Profile {
    /// The profile as (label, value) rows, most important first.
    pub fn rows(&self) -> Vec<LabelledValue> {
        let mut rows = Vec::new();
        let mut row = |label: &str, value: String| rows.push((label.to_owned(), value));
        let others = [(self.flushes, "flushes"), (self.zone_commands, "zone commands")];
        let others = others.iter().filter(|(count, _)| *count > 0);
        let others: String = others.map(|(count, name)| format!(" and {count} {name}")).collect();
        row("requests", format!("{}{others}", self.requests));
        if let Some(events) = &self.block_events {
            row("events", events.to_string());
        }
        row("reads", percent(self.read_fraction));
        if self.trims > 0 {
            row("trims", percent(self.trims as f64 / self.requests as f64));
        }
        row("bytes", bytes(self.bytes));
        row("mean request", format!("{:.2} KiB", self.request_bytes_mean / 1024.0));
        let sampled = sample(self.footprint_sampled_fraction);
        row("footprint", format!("{}{sampled}", bytes(self.footprint_bytes)));
        let device = bytes(self.device_bytes);
        row("device needed", format!("{device} (less with --fit: the footprint)"));
        row("sequential", percent(self.sequential_fraction));
        match &self.interarrival_ns {
            Some(gaps) => {
                row("span", time(self.span_ns as f64));
                row("inter-arrival", spread(gaps));
            }
            None if self.has_times => row("span", time(self.span_ns as f64)),
            None => row("times", "none: closed-loop replay only".to_owned()),
        }
        if let Some(response) = &self.response_ns {
            row("measured response", spread(response));
        }
        let spots = &self.hot_spots;
        let label = "most accessed 1 % of 4 KiB blocks";
        let sampled = sample(spots.sampled_fraction);
        row(label, format!("{} of accesses{sampled}", percent(spots.top_percent_fraction)));
        self.size_rows(&mut rows);
        self.reuse_rows(&mut rows);
        self.volume_rows(&mut rows);
        rows
    }

    fn size_rows(&self, rows: &mut Vec<LabelledValue>) {
        for class in &self.sizes {
            let count = class.reads + class.writes + class.trims;
            let share = percent(count as f64 / self.requests.max(1) as f64);
            let mut value = format!("{share}: {} reads, {} writes", class.reads, class.writes);
            let updates = self.updates.iter().find(|other| other.up_to_bytes == class.up_to_bytes);
            if let Some(updates) = updates {
                let sampled = sample(updates.sampled_fraction);
                value += &format!(", update ratio {:.2}{sampled}", updates.update_ratio);
            }
            rows.push((format!("size up to {}", bytes(class.up_to_bytes)), value));
        }
    }

    fn reuse_rows(&self, rows: &mut Vec<LabelledValue>) {
        let sampled = sample(self.reuse.sampled_fraction);
        let cold = percent(self.reuse.cold_fraction);
        rows.push(("first accesses to a 4 KiB block".to_owned(), format!("{cold}{sampled}")));
        for point in self.reuse.lru.iter().filter(|point| point.cache_bytes >= 1 << 20) {
            let label = format!("LRU hit ratio with {}", bytes(point.cache_bytes));
            rows.push((label, format!("{}{sampled}", percent(point.hit_ratio))));
        }
    }

    fn volume_rows(&self, rows: &mut Vec<LabelledValue>) {
        for volume in &self.volumes {
            let name =
                if volume.name.is_empty() { String::new() } else { format!(" ({})", volume.name) };
            let reads = percent(volume.reads as f64 / volume.requests.max(1) as f64);
            let value = format!(
                "{} requests, {reads} reads, {}, up to {}",
                volume.requests,
                bytes(volume.bytes),
                bytes(volume.extent_bytes)
            );
            rows.push((format!("volume {}{name}", volume.number), value));
        }
    }
}
