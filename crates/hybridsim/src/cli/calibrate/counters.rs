//! Hidden capacity and garbage collection from a drive's counters: options and output.

use super::{CalibrateArgs, Texts, deliver};
use crate::cli::output::{Exit, Failure};
use hybridsim_calibrate::counters::{
    CounterCalibration, CounterSeries, Errors, calibrate_counters, every_other,
};
use hybridsim_config::registry::Registry;
use std::fmt::Write;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct CounterArgs {
    /// Fit hidden capacity and garbage collection to a drive's own counters: a TOML file that
    /// names the logs (CSV with time_s, host_bytes and, if counted, media_bytes) and their loads
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "files", "disk", "ssd", "device", "page", "erase_time", "capacity", "repetitions"
        ]
    )]
    counters: Option<PathBuf>,
}

impl CounterArgs {
    /// Whether to calibrate by counters.
    pub const fn is_wanted(&self) -> bool {
        self.counters.is_some()
    }
}

/// Reads the logs, fits, writes the preset and prints the result.
pub fn run(registry: &Registry, args: &CalibrateArgs) -> Result<(), Failure> {
    let Some(path) = &args.counters.counters else { return Ok(()) };
    let series = CounterSeries::read(path)?;
    let fits = match args.all {
        true => vec![true; series.series.len()],
        false => every_other(&series.series),
    };
    if !args.all && fits.iter().all(|fits| *fits) {
        let message = "no series is held out: log several, set `fit = false` in one, or add --all";
        return Err(Failure::Message(Exit::Trace, format!("{}: {message}", path.display())));
    }
    let found = calibrate_counters(&series, &fits, registry)?;
    let texts =
        Texts { warnings: found.warnings(), preset: found.preset()?, summary: summary(&found) };
    deliver(args, &found, &texts)
}

fn summary(found: &CounterCalibration<'_>) -> String {
    let mut text = format!("{}, {} series\n\n", found.name, found.series.len());
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let error = format!("error of {}", found.quantity);
    let _ = writeln!(text, "{error:<44} {:>10} {:>10}", "mean", "at worst");
    let rows = [
        ("fitted to", Some(found.fitted)),
        ("held out", found.held_out),
        ("held out: mean of those fitted to", found.trivial),
    ];
    for (name, errors) in rows {
        let Some(Errors { series, mean, worst }) = errors else { continue };
        let name = format!("{series} series {name}");
        let _ = writeln!(text, "{name:<44} {:>10} {:>10}", percent(mean), percent(worst));
    }
    let _ = writeln!(text, "\n{:<40} {:>18}   range", "", "fitted");
    for constant in &found.constants {
        let range = constant.range.as_deref().unwrap_or("not identified by the series: assumed");
        let _ = writeln!(text, "{:<40} {:>18}   {range}", constant.name, constant.value);
    }
    text.push_str(
        "range: the distance (root mean square logarithmic error) increases by at most 0.003, the\n\
         other constants being as fitted, where nothing else is said\n",
    );
    let _ = writeln!(
        text,
        "\n{:<34} {:>9} {:>9} {:>7} {:>10} {:>9} {:>7}",
        "write amplification, host MB/s",
        "measured",
        "simulated",
        "error",
        "measured",
        "simulated",
        "error"
    );
    for series in &found.series {
        let name = format!("{}{}", series.name, if series.fitted { ", fitted" } else { "" });
        let or_none = |words: Option<String>| words.unwrap_or("-".to_owned());
        let [theirs, ours] =
            series.amplification.map(|it| or_none(it.map(|it| format!("{it:.3}"))));
        let [rate, simulated] = series.host_mb_s.map(|it| or_none(it.map(|it| format!("{it:.1}"))));
        let [error, rate_error] = [series.amplification_error(), series.rate_error()]
            .map(|it| or_none(it.map(|it| format!("{:+.1}%", 100.0 * it))));
        let _ = writeln!(
            text,
            "{name:<34} {theirs:>9} {ours:>9} {error:>7} {rate:>10} {simulated:>9} {rate_error:>7}"
        );
    }
    text
}
