//! Results as a table for terminals.

use crate::column::Numbers;
use crate::figures::{Figure, LIFE, NONE, WRITTEN, figures, number, one};
use hybridsim_observe::RunResults;
use hybridsim_observe::results::Lifetime;
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Longer names of runs are truncated.
const NAME_WIDTH_MAX: usize = 24;
/// The widest table; with longer names of runs it has numbers and a legend above.
const TABLE_WIDTH_MAX: usize = 120;

/// Formatting of terminal output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether to use escape sequences for bold and faint text.
    pub ansi: bool,
}

impl Style {
    pub(crate) fn paint(self, code: &str, text: &str) -> String {
        if self.ansi { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A table of `runs` side by side, one metric per line, and their warnings.
pub fn table(runs: &[&RunResults], style: Style) -> String {
    let names: Vec<String> = runs.iter().map(|run| name(run)).collect();
    let figures = figures(runs);
    let label_width = figures.iter().map(|figure| figure.label.width()).max().unwrap_or(0);
    let unit_width = figures.iter().map(|figure| figure.unit.width()).max().unwrap_or(0);
    let value_widths: Vec<usize> = (0..runs.len())
        .map(|at| figures.iter().map(|figure| figure.values[at].width()).max().unwrap_or(0))
        .collect();
    let wide: usize = names.iter().zip(&value_widths).map(|(n, v)| n.width().max(*v) + 2).sum();
    let mut out = String::new();
    let heads = if label_width + 2 + wide > TABLE_WIDTH_MAX {
        let heads: Vec<String> = (1..=names.len()).map(|number| format!("[{number}]")).collect();
        for (head, run) in heads.iter().zip(runs) {
            let _ = writeln!(out, "{} {}", right(head, label_width + 2), title(run));
        }
        out.push('\n');
        heads
    } else {
        names.clone()
    };
    let widths: Vec<usize> =
        heads.iter().zip(value_widths).map(|(head, width)| head.width().max(width)).collect();
    let mut line = String::new();
    line.push_str(&" ".repeat(label_width + 2));
    for (head, width) in heads.iter().zip(&widths) {
        line.push_str(&right(head, width + 2));
    }
    let _ = writeln!(out, "{}", style.paint("1", &line));
    let mut group = "";
    for figure in &figures {
        if group != figure.group && !group.is_empty() {
            out.push('\n');
        }
        group = figure.group;
        row(&mut out, figure, label_width, &widths, unit_width, style);
    }
    notes(&mut out, runs, &names, style);
    out
}

/// A table of the numbers at `paths` of the results, one path per line.
///
/// # Errors
/// A path that the results do not have.
pub fn columns(runs: &[&RunResults], paths: &[String], style: Style) -> Result<String, String> {
    let numbers: Vec<Numbers> = runs.iter().map(|run| Numbers::new(run)).collect();
    let names: Vec<String> = runs.iter().map(|run| name(run)).collect();
    let label_width = paths.iter().map(|path| path.width()).max().unwrap_or(0);
    let mut lines = vec![(String::new(), names)];
    for path in paths {
        // A component may be in some of the systems only.
        let known = numbers.iter().any(|numbers| numbers.check(path).is_ok());
        if let Some(first) = numbers.first().filter(|_| !known) {
            first.check(path)?;
        }
        let value = |numbers: &Numbers| numbers.get(path).map_or(NONE.to_owned(), number);
        lines.push((path.clone(), numbers.iter().map(value).collect()));
    }
    let width = |at: usize| lines.iter().map(|line| line.1[at].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..runs.len()).map(width).collect();
    let mut out = String::new();
    for (at, (label, values)) in lines.iter().enumerate() {
        let mut line = format!("  {label}{}", " ".repeat(label_width - label.width()));
        for (value, width) in values.iter().zip(&widths) {
            line.push_str(&right(value, width + 2));
        }
        let _ = writeln!(out, "{}", if at == 0 { style.paint("1", &line) } else { line });
    }
    Ok(out)
}

fn row(
    out: &mut String,
    figure: &Figure,
    label_width: usize,
    widths: &[usize],
    unit_width: usize,
    style: Style,
) {
    let _ =
        write!(out, "  {}{}", clean(&figure.label), " ".repeat(label_width - figure.label.width()));
    for (value, width) in figure.values.iter().zip(widths) {
        out.push_str(&right(value, width + 2));
    }
    if unit_width > 0 && !figure.unit.is_empty() {
        let _ = write!(out, "  {}", style.paint("2", figure.unit));
    }
    out.push('\n');
}

/// The life of a flash device in words, and the erases of a block that it is counted in.
fn life((lifetime, endurance): (&Lifetime, f64)) -> Option<String> {
    let (days, bytes) = (lifetime.days_even?, lifetime.host_bytes_left?);
    let (written, time) = (one(WRITTEN, bytes), one(LIFE, days));
    let erases = number(endurance);
    Some(format!(
        "{written} of host writes left to an endurance of {erases} erases, {time} at this rate"
    ))
}

/// Table, components and warnings of one run.
pub fn single(run: &RunResults, style: Style) -> String {
    let mut out = table(&[run], style);
    for (path, component) in &run.components {
        let mut events: Vec<String> = Vec::new();
        if let Some(power) = &component.power {
            let busy = power.busy_fraction.map(|busy| format!("busy {} %", number(busy * 100.0)));
            events.extend(busy);
            events.extend(power.energy_j.map(|joules| format!("{} J", number(joules))));
        }
        if let Some(disk) = &component.disk {
            events.push(format!("{} seeks", number(disk.seeks as f64)));
            let mean = disk.seek_ns_mean.map(|ns| format!("{} ms each", number(ns / 1e6)));
            events.extend(mean);
        }
        if let Some(flash) = &component.flash {
            let programs = number(flash.programs as f64);
            events.push(format!("{programs} programs, {} erases", number(flash.erases as f64)));
            events.extend(flash.write_amplification.map(|wa| {
                let pages = flash.page_write_amplification.map(number);
                let apart = pages.filter(|pages| *pages != number(wa));
                let apart = apart.map_or(String::new(), |pages| format!(" (by pages {pages})"));
                format!("WA {}{apart}", number(wa))
            }));
            let endurance = component.constants.get("endurance").copied();
            events.extend(flash.lifetime.as_ref().zip(endurance).and_then(life));
            events.extend(flash.bit_errors.as_ref().map(|errors| {
                let [retries, lost] =
                    [errors.retries, errors.uncorrectable_reads].map(|it| number(it as f64));
                format!("{retries} read retries, {lost} uncorrectable reads")
            }));
        }
        if let Some(thermal) = &component.thermal {
            let times = &thermal.throttling_ns;
            let all: u64 = times.values().sum();
            let throttled = all - times.get("none").copied().unwrap_or(0);
            let share = throttled as f64 / all.max(1) as f64 * 100.0;
            let most = thermal.temperature_celsius_max;
            events.push(format!("up to {most:.1} °C, throttled {} % of the time", number(share)));
        }
        if let Some(cache) = &component.cache {
            let share = |of: &str, hit: f64| format!("{of} {} %", number(hit * 100.0));
            if let Some(all) = cache.hit_ratio {
                let reads = cache.read_hit_ratio.map(|hit| share("reads", hit));
                let writes = cache.write_hit_ratio.map(|hit| share("writes", hit));
                let apart: Vec<String> = reads.into_iter().chain(writes).collect();
                events.push(format!("{} ({})", share("hit ratio", all), apart.join(", ")));
            }
            events.push(format!("{} bypasses", number(cache.bypasses as f64)));
            events.push(format!("{} destages", number(cache.destages as f64)));
        }
        if let Some(log) = &component.log {
            events.push(format!("{} segments cleaned", number(log.segments_cleaned as f64)));
            events.extend(log.log_write_amplification.map(|wa| {
                let total = log.total_write_amplification.map(number);
                let total = total.map_or(String::new(), |it| format!(" ({it} with the flash)"));
                format!("WA {}{total}", number(wa))
            }));
        }
        if !events.is_empty() {
            let path = style.paint("1", &clean(path));
            let _ = writeln!(out, "\n  {path} ({}): {}", component.kind, events.join(", "));
        }
    }
    let _ = writeln!(out, "\n  fingerprint {}", run.fingerprint);
    out
}

fn notes(out: &mut String, runs: &[&RunResults], names: &[String], style: Style) {
    let of = |(run, name): (&&RunResults, &String)| -> Vec<String> {
        let broken = run.violations.iter().map(|note| format!("VIOLATED INVARIANT: {note}"));
        let notes = broken.chain(run.warnings.iter().cloned());
        let prefix = if runs.len() > 1 { format!("{name}: ") } else { String::new() };
        notes.map(|note| format!("{prefix}{}", clean(&note))).collect()
    };
    let notes: Vec<String> = runs.iter().zip(names).flat_map(of).collect();
    if notes.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", style.paint("1", "Warnings"));
    for (number, note) in (1..).zip(&notes) {
        let _ = writeln!(out, "  {number}. {note}");
    }
}

fn title(run: &RunResults) -> String {
    clean(if run.label.title.is_empty() { &run.label.scenario } else { &run.label.title })
}

fn name(run: &RunResults) -> String {
    let title = title(run);
    if title.width() <= NAME_WIDTH_MAX {
        return title;
    }
    let mut cut = String::new();
    for letter in title.chars() {
        if cut.width() + letter.width().unwrap_or(0) >= NAME_WIDTH_MAX {
            break;
        }
        cut.push(letter);
    }
    cut + "…"
}

/// Replaces control characters, which scenarios and traces may contain.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_in_units_that_it_is_some_of() {
        let words = |days, bytes| {
            let lifetime = Lifetime {
                days_even: Some(days),
                host_bytes_left: Some(bytes),
                ..Lifetime::default()
            };
            life((&lifetime, 3000.0)).expect("both are known")
        };
        let left = "of host writes left to an endurance of 3,000 erases";
        assert_eq!(words(0.5, 5e9), format!("5 GB {left}, 12 h at this rate"));
        assert_eq!(words(30.0, 2.5e12), format!("2.500 TB {left}, 30 days at this rate"));
        assert_eq!(words(730.5, 2.5e12), format!("2.500 TB {left}, 2 years at this rate"));
        assert_eq!(life((&Lifetime::default(), 3000.0)), None);
    }
}
