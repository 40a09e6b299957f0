//! The plan for reading: a table with its reasons on the terminal, and a page.

use crate::{Plan, System};
use hybridsim_report::figures::{binary_size, number};
use hybridsim_report::sweep::{self, Cell, Column, Key, Row, Sweep};

const GIB: f64 = (1u64 << 30) as f64;

/// Columns of page and table: name, heading on the terminal, value, whether more is better.
type Value = fn(&System) -> Option<f64>;
const COLUMNS: [(&str, &str, Value, bool); 11] = [
    ("flash_gib", "GiB", |it| it.flash_bytes.map(|bytes| bytes as f64 / GIB), false),
    (DRIVE, "drive GiB", |it| it.drive_bytes.map(|bytes| bytes as f64 / GIB), false),
    ("cost_per_year", "cost/year", |it| it.cost_per_year, false),
    ("mean_us", "mean us", |it| it.mean_ns.map(|ns| ns / 1e3), false),
    ("p99_us", "p99 us", |it| it.p99_ns.map(|ns| ns as f64 / 1e3), false),
    ("hit_ratio", "hit ratio", |it| it.hit_ratio, true),
    ("write_amplification", "WA", |it| it.write_amplification, false),
    ("dwpd", "DWPD", |it| it.dwpd, false),
    ("tb_per_year", "TB/year", |it| it.tb_per_year, false),
    ("life_years", "years", |it| it.life_years, true),
    ("watts", "watts", |it| it.watts, false),
];
const WIDTH: usize = 9;
/// Size of the drive that is bought; it has no chart.
const DRIVE: &str = "drive_gib";

/// The title of a column of the page: the words of a run's report, or the heading of the table.
fn column_title(name: &str, heading: &str, currency: &str) -> String {
    match name {
        "cost_per_year" => format!("Cost/year, {currency}"),
        "life_years" => format!("Life, {heading}"),
        "watts" => format!("Power, {heading}"),
        _ if sweep::title(name) == name => heading.to_owned(),
        _ => sweep::title(name),
    }
}

impl Plan {
    /// The plan as a table, with its reasons.
    pub fn terminal(&self) -> String {
        let width = self.systems.iter().map(|system| system.name.len()).max().unwrap_or(0).max(6);
        let mut out = self.notes().join("\n") + "\n\n" + &format!("{:<width$}", "system");
        COLUMNS.iter().for_each(|(_, heading, ..)| out += &format!("  {heading:>WIDTH$}"));
        out += "  bounds\n";
        for system in &self.systems {
            out += &format!("{:<width$}", system.name);
            for (_, _, value, _) in COLUMNS {
                let text = value(system).map_or_else(|| "–".to_owned(), number);
                out += &format!("  {text:>WIDTH$}");
            }
            let unmet = system.unmet.join(", ");
            // The error of a run may have several lines.
            out += &format!("  {}\n", unmet.lines().next().unwrap_or("met"));
        }
        for system in &self.systems {
            for same in &system.same_figures {
                out += &format!("same figures as {}: {same}\n", system.label());
            }
        }
        for dropped in &self.dropped {
            out += &format!("not simulated: {}: {}\n", dropped.name, dropped.reason);
        }
        out
    }

    /// The plan's premises and answer, in sentences.
    pub fn notes(&self) -> Vec<String> {
        let demand = &self.demand;
        let mut notes = vec![format!(
            "The trace needs {} for its data and writes {}{}.",
            binary_size(demand.data_bytes),
            binary_size(demand.written_bytes),
            match demand.span_ns {
                0 => "; it has no times, so a year has the load of the simulated time".to_owned(),
                span => format!(" in {} s", number(span as f64 / 1e9)),
            }
        )];
        if demand.duty < 1.0 {
            notes.push(format!("The load lasts {} % of the year.", number(demand.duty * 100.0)));
        }
        notes.push(self.prices.clone());
        notes.push(
            "SSDs begin with the data and otherwise empty, caches begin empty: on drives in use \
             write amplification is higher, and life shorter."
                .to_owned(),
        );
        notes.push(match self.best() {
            Some(best) => answer(best, &self.currency),
            None => "No system meets all bounds.".to_owned(),
        });
        notes
    }

    /// The plan as one self-contained HTML file.
    pub fn html(&self, title: &str) -> String {
        let (mut names, mut sizes): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let columns = COLUMNS[1..].iter().map(|(name, heading, _, more)| Column {
            name: (*name).to_owned(),
            title: column_title(name, heading, &self.currency),
            is_objective: false,
            is_shown: *name != DRIVE,
            more_is_better: *more,
            bound: self.bounds.of_column(name),
            effects: Vec::new(),
        });
        let row = |system: &System| Row {
            at: vec![place(&mut names, system.name.clone()), place(&mut sizes, gibibytes(system))],
            cells: COLUMNS[1..]
                .iter()
                .map(|(_, _, value, _)| {
                    value(system).map(|mean| Cell { mean, half: None, noise: false })
                })
                .collect(),
            error: system.cost_per_year.is_none().then(|| system.unmet.join(", ")),
            unmet: system.unmet.clone(),
            best: false,
        };
        let rows = self.systems.iter().map(row).collect();
        let mut notes = self.notes();
        for system in &self.systems {
            let same = system.same_figures.iter();
            notes.extend(same.map(|it| format!("Same figures as {}: {it}.", system.label())));
        }
        let not = |it: &crate::Dropped| format!("Not simulated: {}: {}.", it.name, it.reason);
        notes.extend(self.dropped.iter().map(not));
        sweep::page(&Sweep {
            title: title.to_owned(),
            notes,
            data_file: "plan.json".to_owned(),
            seeds: 1,
            keys: vec![
                Key { name: "system".to_owned(), values: names },
                Key { name: "flash, GiB".to_owned(), values: sizes },
            ],
            columns: columns.collect(),
            rows,
        })
    }
}

fn answer(best: &System, currency: &str) -> String {
    let cost = best.cost_per_year.map_or_else(String::new, number);
    let mut text = format!("Cheapest: {}, {cost} {currency} a year", best.label());
    if let Some(years) = best.life_years {
        let why = if best.life_years_rated == best.life_years { "rated" } else { "simulated" };
        text += &format!(
            "; its drive of {} lasts {} years ({why}), written {} times a day",
            best.drive_bytes.map_or_else(String::new, binary_size),
            number(years),
            number(best.dwpd.unwrap_or(0.0))
        );
    }
    if let (Some(curve), Some(hits)) = (best.curve_miss_ratio, best.hit_ratio) {
        text += &format!(
            "; hit ratio {} %, {} % by the miss-ratio curve",
            number(hits * 100.0),
            number((1.0 - curve) * 100.0)
        );
    }
    text + "."
}

fn gibibytes(system: &System) -> String {
    number(system.flash_bytes.unwrap_or(0) as f64 / GIB)
}

/// The position of a value among those of a key, to which a new one is added.
fn place(values: &mut Vec<String>, value: String) -> usize {
    values.iter().position(|known| *known == value).unwrap_or_else(|| {
        values.push(value);
        values.len() - 1
    })
}
