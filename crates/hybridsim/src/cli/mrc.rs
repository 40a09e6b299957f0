//! The command for miss-ratio curves.

use super::output::{Exit, Failure, apart, note, print_beside, write_path};
use super::progress::Progress;
use super::trace::{self, OpenArgs};
use hybridsim_cache::replacement::ReplacementEntry;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::{Entry, Registry};
use hybridsim_config::units::{self, write_bytes};
use hybridsim_engine::SECTOR_BYTES;
use hybridsim_mrc::{Ask, Curves, Method, MrcError, Policy, Size};
use hybridsim_report::chart;
use hybridsim_report::figures::{binary_size, number};
use hybridsim_report::json::pretty;
use hybridsim_report::study::{Axis, Curve, Plot};
use hybridsim_simulation::run::peak_rss_bytes;
use hybridsim_workload::trace::{FormatEntry, open_with};
use serde_json::json;
use std::path::PathBuf;

const CACHES_MAX: usize = 1000;
const SAMPLE_MAX: u32 = 1 << 24;

#[derive(clap::Args)]
pub struct MrcArgs {
    #[command(flatten)]
    open: OpenArgs,
    /// Replacement policies, separated by commas, or `all`; may be repeated
    #[arg(long, value_name = "POLICY", default_value = "lru")]
    policy: Vec<String>,
    /// Cache sizes, separated by commas: bytes (64MiB) or shares of the footprint (0.1)
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',', value_parser = size)]
    sizes: Vec<Size>,
    /// Page size
    #[arg(long, value_name = "BYTES", default_value = "4KiB", value_parser = page)]
    page: u64,
    /// Maximum number of sampled pages, chosen by hash; results include the sampled share
    #[arg(long, value_name = "PAGES", default_value_t = 1_048_576,
          value_parser = clap::value_parser!(u32).range(1024..=i64::from(SAMPLE_MAX)))]
    sample: u32,
    /// Method of computing the curves
    #[arg(long, value_enum, default_value_t = MethodArg::Auto)]
    method: MethodArg,
    /// Add the optimum, `belady`: no policy has fewer misses, even with all later accesses known
    #[arg(long)]
    belady: bool,
    /// Draw the curves into this file, as SVG
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum MethodArg {
    /// Stack distances or simulation, whichever is faster
    Auto,
    /// The average eviction time, a model of lru: one pass; the stated error is the sample's
    Aet,
}

fn size(text: &str) -> Result<Size, String> {
    match text.trim().parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(Size::Footprint(share)),
        Ok(_) => Err("a share of the footprint lies between 0 and 1; a size in bytes needs a unit"
            .to_owned()),
        Err(_) => units::bytes(text.trim()).map(Size::Bytes),
    }
}

fn page(text: &str) -> Result<u64, String> {
    let bytes = units::bytes(text)?;
    match bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES) && bytes <= 1 << 30 {
        true => Ok(bytes),
        false => Err("a page is a multiple of 512 bytes, at most 1 GiB".to_owned()),
    }
}

/// The `--policy` option has the syntax of a scenario's `replacement`.
const POLICY: &[Param] = &[Param::optional(
    "policy",
    Kind::Entry(ReplacementEntry::CATEGORY),
    "A replacement policy with its parameters.",
)];

fn policies(registry: &Registry, options: &[String]) -> Result<Vec<Policy>, Failure> {
    let mut names: Vec<String> = Vec::new();
    for option in options {
        let one = option.trim_start().starts_with('{');
        let parts = option.split(if one { '\0' } else { ',' }).map(str::trim);
        names.extend(parts.map(str::to_owned));
    }
    if names.iter().any(|name| name == "all") {
        let all = registry.iter::<ReplacementEntry>();
        // Policies with required parameters have to be named.
        let all = all.filter(|entry| entry.description.params.iter().all(has_default));
        names = all.map(|entry| entry.description.name.to_owned()).collect();
    }
    let mut policies: Vec<Policy> = Vec::with_capacity(names.len());
    for name in names {
        let choice = trace::entry_option(registry, POLICY, &name)?;
        let (entry, settings) = registry.chosen::<ReplacementEntry>(&choice);
        policies.push(Policy { entry, settings: settings.clone() });
    }
    Ok(policies)
}

fn has_default(param: &Param) -> bool {
    param.default.is_some()
}

/// The method, if it suits the policies.
fn method(args: &MrcArgs, policies: &[Policy]) -> Result<Method, Failure> {
    if args.method == MethodArg::Auto {
        return Ok(Method::Automatic);
    }
    match policies.iter().find(|policy| policy.entry.description.name != "lru") {
        None => Ok(Method::Aet),
        Some(other) => Err(Failure::usage(format!(
            "--method aet models lru only, not `{}`; give --policy lru, or leave out --method",
            other.entry.description.name
        ))),
    }
}

impl From<MrcError> for Failure {
    fn from(error: MrcError) -> Self {
        match error {
            MrcError::Trace(error) => error.into(),
            MrcError::Policy(name, problems) => {
                let list: Vec<String> =
                    problems.iter().map(|p| format!("{}: {}", p.param, p.message)).collect();
                Self::usage(format!("policy `{name}`: {}", list.join("; ")))
            }
        }
    }
}

pub fn run(registry: &Registry, args: &MrcArgs) -> Result<(), Failure> {
    apart([&args.open.file], args.out.as_ref())?;
    let policies = policies(registry, &args.policy)?;
    let method = method(args, &policies)?;
    let sizes = args.sizes.len().max(1);
    if policies.len() * sizes > CACHES_MAX {
        return Err(Failure::usage(format!("at most {CACHES_MAX} caches; choose fewer sizes")));
    }
    let ask = Ask {
        page_bytes: args.page,
        policies,
        sizes: args.sizes.clone(),
        pages_max: args.sample as usize,
        method,
        belady: args.belady,
    };
    if args.belady && args.open.file.exists() && !args.open.file.is_file() {
        return Err(Failure::usage(format!(
            "--belady reads the trace more than once: {} has to be a file",
            args.open.file.display()
        )));
    }
    let options = args.open.options(registry)?;
    let formats: Vec<FormatEntry> = registry.iter::<FormatEntry>().collect();
    let progress = Progress::new(args.open.progress, "reading");
    let found = hybridsim_mrc::curves(
        || open_with(&formats, &args.open.file, &options),
        &ask,
        &mut |fraction| {
            progress.reading(fraction);
        },
    );
    progress.finish();
    let found = found?;
    if let Some(message) = registry.take_plugin_error() {
        return Err(Failure::Message(Exit::Run, message));
    }
    trace::warn(&args.open.file, &found.warnings);
    let draw = |out: &PathBuf| {
        write_path(out, &chart::svg(&plot(args, &found)))?;
        note(&format!("picture: {}", out.display()));
        Ok(())
    };
    let saved = args.out.as_ref().map_or(Ok(()), draw);
    let text = match args.json {
        true => {
            let file = args.open.file.display().to_string();
            pretty(&json!({ "file": file, "mrc": found }))
        }
        false => table(&found),
    };
    print_beside(saved, &text)
}

fn plot(args: &MrcArgs, found: &Curves) -> Plot {
    let name = args.open.file.file_name().map_or_else(String::new, |n| n.to_string_lossy().into());
    let curve = |curve: &hybridsim_mrc::Curve| {
        let known = curve.points.iter().filter_map(|p| Some((p.cache_bytes as f64, p.miss_ratio?)));
        Curve::ours(&curve.policy, known.collect())
    };
    Plot {
        title: format!("Miss ratio by cache size: {name}"),
        caption: String::new(),
        x: Axis::logarithmic("Cache size", "bytes"),
        y: Axis::linear("Miss ratio", "share"),
        curves: found.curves.iter().map(curve).collect(),
    }
}

/// How the curves were computed: once if all the same way.
fn how(curves: &[hybridsim_mrc::Curve]) -> String {
    let of = |curve: &hybridsim_mrc::Curve| {
        let is_sampled = curve.sampled_fraction < 1.0;
        let sample =
            is_sampled.then(|| format!("a sample of 1 page in {}", 1.0 / curve.sampled_fraction));
        let model = (curve.method == "aet").then(|| "by average eviction time".to_owned());
        let words: Vec<String> = sample.into_iter().chain(model).collect();
        if words.is_empty() { "exact".to_owned() } else { words.join(" ") }
    };
    let first = curves.first().map(of).unwrap_or_default();
    if curves.iter().all(|curve| of(curve) == first) {
        return first;
    }
    let each = curves.iter().map(|curve| format!("{}: {}", curve.policy, of(curve)));
    each.collect::<Vec<_>>().join("; ")
}

/// One row per size, one column per policy, miss ratios in percent.
fn table(found: &Curves) -> String {
    let sampled = found.curves.iter().any(|curve| curve.sampled_fraction < 1.0);
    let modelled = found.curves.iter().any(|curve| curve.method == "aet");
    let how = how(&found.curves);
    let about = if found.footprint_sampled_fraction < 1.0 { "about " } else { "" };
    let mut out = format!(
        "{} accesses to {about}{} pages of {}, footprint {about}{}, {how}\n\n\
         miss ratio in %\n{:>12}",
        number(found.accesses as f64),
        number(found.pages as f64),
        write_bytes(found.page_bytes),
        binary_size(found.footprint_bytes),
        "cache",
    );
    let least = if sampled { 10 } else { 7 };
    let width = |curve: &hybridsim_mrc::Curve| curve.policy.len().max(least);
    let widths: Vec<usize> = found.curves.iter().map(width).collect();
    for (curve, width) in found.curves.iter().zip(&widths) {
        out += &format!("  {:>width$}", curve.policy);
    }
    out.push('\n');
    let sizes = found.curves.first().map_or(0, |curve| curve.points.len());
    for row in 0..sizes {
        out += &format!("{:>12}", binary_size(found.curves[0].points[row].cache_bytes));
        for (curve, width) in found.curves.iter().zip(&widths) {
            out += &format!("  {:>width$}", cell(&curve.points[row]));
        }
        out.push('\n');
    }
    if sampled {
        let enough = (found.pages + found.pages / 16).next_power_of_two();
        if let Some(bytes) = peak_rss_bytes() {
            out += &format!("\npeak memory {}", binary_size(bytes));
        }
        out += "\n± is the error, estimated from the variation between parts of the sample";
        if modelled {
            out += "; that of the model comes on top";
        }
        if enough <= u64::from(SAMPLE_MAX) {
            out += &format!("; --sample {enough} includes every page");
        }
        out.push('\n');
    }
    out
}

fn cell(point: &hybridsim_mrc::Point) -> String {
    match (point.miss_ratio, point.error) {
        (Some(miss), Some(error)) => format!("{:.1} ±{:.1}", miss * 100.0, error * 100.0),
        (Some(miss), None) => format!("{:.2}", miss * 100.0),
        (None, _) => "-".to_owned(),
    }
}
