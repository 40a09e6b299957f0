//! A calibration as a preset.

use super::{Calibration, Estimate, Line};
use std::fmt::Write;

/// A preset of a device of `capacity` bytes with these parameters, every value with its source.
pub fn preset(name: &str, calibration: &Calibration, capacity: u64) -> String {
    let known = calibration.known;
    let pages_per_block = 64;
    let block = known.page_bytes * pages_per_block;
    let blocks = capacity.div_ceil(block).max(8);
    let mut text = String::new();
    let mut line = |key: &str, value: String, comment: &str| {
        let setting = format!("{key} = {value}");
        let _ = writeln!(text, "{setting:<32} # {comment}");
    };
    line("kind", "\"ssd\"".to_owned(), &format!("{name}, from {} readings", calibration.readings));
    line("timing", "\"serial\"".to_owned(), "L(n) = n R + C (konanki, section 5.2)");
    line("ftl", "\"fmax\"".to_owned(), "assumed: latencies do not identify it");
    line("program_order", "\"any\"".to_owned(), "as that translation layer needs");
    for key in ["channels", "dies_per_channel", "planes_per_die"] {
        line(key, "1".to_owned(), "one operation at a time");
    }
    // An eighth more than the capacity, for the translation layer.
    line("blocks_per_plane", (blocks + blocks / 8 + 2).to_string(), "the capacity and an eighth");
    line("pages_per_block", pages_per_block.to_string(), "assumed");
    line("page_size", format!("\"{} B\"", known.page_bytes), "as given");
    line("over_provisioning", "0.125".to_owned(), "that eighth");
    let (read, read_overhead) = parts(calibration.read.as_ref(), "reads were not measured");
    let (program, write_overhead) = parts(calibration.write.as_ref(), "writes were not measured");
    let or_read = |value: &(String, String), read: &(String, String)| match value.0.is_empty() {
        true => (read.0.clone(), format!("assumed as for the other direction: {}", value.1)),
        false => value.clone(),
    };
    for (key, own, other) in [
        ("read_time", &read, &program),
        ("program_time", &program, &read),
        ("read_overhead", &read_overhead, &write_overhead),
        ("write_overhead", &write_overhead, &read_overhead),
    ] {
        let (value, comment) = or_read(own, other);
        line(key, value, &comment);
    }
    let erase = format!("\"{:.0} ns\"", known.erase_ns);
    line("erase_time", erase, "as given: it cannot be measured from outside");
    for scattered in &calibration.scattered {
        let comment = with_margin(&scattered.erases, " erases", 3);
        let _ = writeln!(
            text,
            "# A scattered write of {} bytes costs {comment};\n\
             # by the formula as konanki prints it, without the overhead, {:.3}.",
            scattered.bytes, scattered.printed_erases
        );
    }
    text
}

/// Time per page and overhead as (value, comment), empty values where nothing was measured.
fn parts(line: Option<&Line>, missing: &str) -> ((String, String), (String, String)) {
    let Some(line) = line else {
        let nothing = (String::new(), missing.to_owned());
        return (nothing.clone(), nothing);
    };
    let value = |estimate: &Estimate| {
        let ns = estimate.value.max(0.0);
        (format!("\"{ns:.0} ns\""), format!("measured: {}", with_margin(estimate, " ns", 0)))
    };
    (value(&line.page_ns), value(&line.overhead_ns))
}

/// The value with its confidence interval.
fn with_margin(estimate: &Estimate, unit: &str, digits: usize) -> String {
    match estimate.margin {
        Some(margin) => format!("{:.digits$} +- {margin:.digits$}{unit} (95 %)", estimate.value),
        None => format!("{:.digits$}{unit}, too few readings for a margin", estimate.value),
    }
}
