//! The table of a study for reading: on the terminal, and as a page with charts.

use crate::study::{Row, StudyOptions};
use hybridsim_report::figures::{binary_size, number};
use hybridsim_report::sweep::{self, Column, Key, Sweep};

type Value = fn(&Row) -> Option<f64>;
type Name = (&'static str, fn(&Row) -> String);

/// Name in the page, heading on the terminal, value, whether more is better.
const COLUMNS: [(&str, &str, Value, bool); 15] = [
    ("token_hits_percent", "hits %", |it| Some(100.0 * it.token_hit_ratio), true),
    ("drive_hits_percent", "drive %", |it| Some(100.0 * it.storage_token_hit_ratio), true),
    ("gpus_saved", "GPUs saved", |it| Some(it.gpus_saved), true),
    ("ttft_change_s", "TTFT s", |it| Some(it.ttft_change_mean_s), false),
    ("load_mean_s", "load s", |it| it.load_mean_s, false),
    ("load_p99_s", "p99 s", |it| it.load_p99_s, false),
    ("saved_mean_s", "saves s", |it| it.prefill_saved_mean_s, true),
    ("read_tb", "read TB", |it| Some(it.device_read_bytes as f64 / 1e12), false),
    ("written_tb", "write TB", |it| Some(it.device_written_bytes as f64 / 1e12), false),
    ("write_amplification", "WA", |it| it.write_amplification, false),
    ("dwpd", "DWPD", |it| it.dwpd, false),
    ("life_years_rated", "yr rated", |it| it.life_years_rated, true),
    ("life_years_flash", "yr flash", |it| it.life_years_flash, true),
    ("cost_per_year", "cost/yr", |it| it.cost_per_year, false),
    ("cost_per_gpu_hour", "cost/GPUh", |it| it.cost_per_gpu_second.map(|it| it * 3600.0), false),
];

/// The premises of a study, in sentences.
fn notes(options: &StudyOptions, trace: &str, currency: &str) -> Vec<String> {
    let ttl = options.ttl.map_or_else(String::new, |ttl| format!(", time to live {ttl}"));
    vec![
        trace.to_owned(),
        format!(
            "Blocks of {}; GPU memory {}, host memory {}{ttl}; a GPU computes {} prompt tokens a \
             second and costs {} {currency} an hour; the load lasts {} % of the year.",
            binary_size(options.block_bytes),
            binary_size(options.gpu_bytes),
            binary_size(options.host_bytes),
            number(options.prefill_rate),
            number(options.gpu_price),
            number(100.0 * options.duty)
        ),
        "hits: share of prompt tokens not computed, and by the drive alone. TTFT: mean change of \
         the time to first token, loads less the computing that they save. cost/GPUh: cost of the \
         drive per hour of GPU time that its hits save."
            .to_owned(),
    ]
}

/// The row that saves the most for its cost: GPU hours at their price, less the drive.
fn best<'a>(rows: &'a [Row], options: &StudyOptions) -> Option<(&'a Row, f64)> {
    let gain = |row: &&'a Row| {
        let gain = row.gpus_saved * options.duty * 8766.0 * options.gpu_price - row.cost_per_year?;
        (!row.overloaded && row.ttft_change_mean_s < 0.0).then_some(gain)
    };
    let gains = rows.iter().filter_map(|row| Some((row, gain(&row)?)));
    gains.max_by(|(_, one), (_, other)| one.total_cmp(other))
}

fn answer(rows: &[Row], options: &StudyOptions, currency: &str) -> String {
    match best(rows, options) {
        Some((row, gain)) => format!(
            "Most saved: {}, {}, {} of {}: {} {currency} a year more than the drive costs.",
            row.policy,
            row.write,
            binary_size(row.storage_bytes),
            row.drive,
            number(gain)
        ),
        None => "No drive of the table keeps up and brings the first token earlier.".to_owned(),
    }
}

/// The table with its premises. Systems without a rating have no cost, and no answer is given.
pub fn terminal(rows: &[Row], options: &StudyOptions, trace: &str, currency: &str) -> String {
    let mut out = notes(options, trace, currency).join("\n") + "\n";
    if rows.iter().any(|row| row.cost_per_year.is_some()) {
        out += &(answer(rows, options, currency) + "\n");
    }
    let widths = [
        rows.iter().map(|row| row.policy.len()).max().unwrap_or(0).max(6),
        rows.iter().map(|row| row.write.len()).max().unwrap_or(0).max(5),
        rows.iter().map(|row| row.drive.len()).max().unwrap_or(0).max(5),
    ];
    let [policy, write, drive] = widths;
    out += &format!(
        "\n{:<policy$}  {:<write$}  {:>8}  {:<drive$}",
        "policy", "write", "size", "drive"
    );
    COLUMNS.iter().for_each(|(_, heading, ..)| out += &format!("  {heading:>9}"));
    out.push('\n');
    for row in rows {
        let size = binary_size(row.storage_bytes);
        out += &format!(
            "{:<policy$}  {:<write$}  {size:>8}  {:<drive$}",
            row.policy, row.write, row.drive
        );
        if let Some(error) = &row.error {
            out += &format!("  {}\n", error.lines().next().unwrap_or("failed"));
            continue;
        }
        for (_, _, value, _) in COLUMNS {
            let text = value(row).map_or_else(|| "–".to_owned(), number);
            out += &format!("  {text:>9}");
        }
        out += if row.overloaded { "  overloaded\n" } else { "\n" };
    }
    out
}

/// The table as one self-contained HTML file, with charts of every column.
pub fn html(rows: &[Row], options: &StudyOptions, trace: &str, currency: &str) -> String {
    let mut notes = notes(options, trace, currency);
    if rows.iter().any(|row| row.cost_per_year.is_some()) {
        notes.push(answer(rows, options, currency));
    }
    let names: [Name; 4] = [
        ("storage_gib", |row| number(row.storage_bytes as f64 / (1u64 << 30) as f64)),
        ("policy", |row| row.policy.clone()),
        ("write", |row| row.write.clone()),
        ("drive", |row| row.drive.clone()),
    ];
    let mut keys: Vec<Key> = Vec::new();
    for (name, value) in names {
        let mut values: Vec<String> = Vec::new();
        for value in rows.iter().map(value) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        keys.push(Key { name: name.to_owned(), values });
    }
    let place = |key: usize, row: &Row| {
        let value = names[key].1(row);
        keys[key].values.iter().position(|known| *known == value).unwrap_or(0)
    };
    let cells = |row: &Row| {
        let cell = |mean: f64| sweep::Cell { mean, half: None, noise: false };
        COLUMNS.iter().map(|(_, _, value, _)| value(row).map(cell)).collect()
    };
    let shown = rows
        .iter()
        .map(|row| sweep::Row {
            at: (0..names.len()).map(|key| place(key, row)).collect(),
            cells: if row.error.is_some() { vec![None; COLUMNS.len()] } else { cells(row) },
            error: row.error.clone(),
            unmet: Vec::new(),
            best: false,
        })
        .collect();
    let columns = COLUMNS.iter().map(|(name, heading, _, more)| Column {
        name: (*name).to_owned(),
        title: (*heading).to_owned(),
        is_objective: false,
        is_shown: true,
        more_is_better: *more,
        bound: None,
        effects: Vec::new(),
    });
    sweep::page(&Sweep {
        title: "Key-value cache on flash".to_owned(),
        notes,
        data_file: "kv.json".to_owned(),
        seeds: 1,
        columns: columns.collect(),
        rows: shown,
        keys,
    })
}
