//! A calibration as a preset.

use super::{Calibration, Estimate, Line};
use std::fmt::{Display, Write};

/// A preset of a device of `capacity` bytes with these parameters, every value with its source.
pub fn preset(name: &str, calibration: &Calibration, capacity: u64) -> String {
    let known = calibration.known;
    let pages_per_block = 64;
    let block = known.page_bytes * pages_per_block;
    let blocks = capacity.div_ceil(block).max(8);
    let mut text = String::new();
    let out = &mut text;
    let readings = format!("{name}, from {} readings", calibration.readings);
    line(out, "kind", "\"ssd\"", &readings);
    line(out, "timing", "\"serial\"", "L(n) = n R + C (konanki, section 5.2)");
    line(out, "ftl", "\"fmax\"", "assumed: latencies do not identify it");
    line(out, "program_order", "\"any\"", "as that translation layer needs");
    for key in ["channels", "dies_per_channel", "planes_per_die"] {
        line(out, key, "1", "one operation at a time");
    }
    // An eighth more than the capacity, for the translation layer.
    line(out, "blocks_per_plane", blocks + blocks / 8 + 2, "the capacity and an eighth");
    line(out, "pages_per_block", pages_per_block, "assumed");
    line(out, "page_size", format!("\"{} B\"", known.page_bytes), "as given");
    line(out, "over_provisioning", "0.125", "that eighth");
    let (read, read_overhead) = parts(calibration.read.as_ref(), "reads were not measured");
    let (program, write_overhead) = parts(calibration.write.as_ref(), "writes were not measured");
    let or_read = |value: &(String, String), read: &(String, String)| match value.0.is_empty() {
        true => (read.0.clone(), format!("assumed as for the other direction: {}", value.1)),
        false => value.clone(),
    };
    let measured = |out: &mut String, key, own, other| {
        let (value, comment) = or_read(own, other);
        line(out, key, value, &comment);
    };
    measured(out, "read_time", &read, &program);
    measured(out, "program_time", &program, &read);
    let erase = format!("\"{:.0} ns\"", known.erase_ns);
    line(out, "erase_time", erase, "as given: it cannot be measured from outside");
    out.push_str("\n[controller]\n");
    measured(out, "read_overhead", &read_overhead, &write_overhead);
    measured(out, "write_overhead", &write_overhead, &read_overhead);
    for scattered in &calibration.scattered {
        let comment = with_margin(&scattered.erases, " erases", 3);
        let line = calibration.write.as_ref().expect("scattered writes are above its line");
        let overhead = line.overhead_ns.value;
        let corrected = overhead + scattered.erases.value * known.erase_ns;
        let _ = writeln!(
            text,
            "# A scattered write of {} bytes costs {comment};\n\
             # by the formula as konanki prints it, without the overhead, {:.3}.\n\
             # For flash that is simulated empty, and so erases nothing, this includes them:\n\
             # write_overhead = \"{:.0} ns\"",
            scattered.bytes,
            scattered.printed_erases,
            corrected.max(0.0)
        );
    }
    text
}

/// Adds `key = value  # comment`.
fn line(text: &mut String, key: &str, value: impl Display, comment: &str) {
    let setting = format!("{key} = {value}");
    let _ = writeln!(text, "{setting:<32} # {comment}");
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
