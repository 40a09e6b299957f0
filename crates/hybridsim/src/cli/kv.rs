//! The commands for key-value caches: the table of policies, sizes and drives, and the generator.

use super::output::{Exit, Failure, apart, print, print_beside, write_file, write_path};
use super::plan::{above_zero, share};
use super::progress::{Progress, When};
use super::run::prepare;
use super::trace::{entry_option, warn};
use hybridsim_config::param::{Kind, Param, Settings};
use hybridsim_config::registry::Registry;
use hybridsim_config::units;
use hybridsim_engine::{SECTOR_BYTES, SimDuration};
use hybridsim_kv::generate::{Fitted, Likeness};
use hybridsim_kv::model::{ModelShape, Precision};
use hybridsim_kv::policy::PolicyName;
use hybridsim_kv::tier::{NoStorage, Tier, TierOptions, WriteMode};
use hybridsim_kv_plan::{
    Cell, Drives, LayoutChoice, Row, Study, StudyOptions, Target, block_bytes, html, terminal,
    write_mode,
};
use hybridsim_report::figures::{binary_size, number};
use hybridsim_report::json::pretty;
use hybridsim_simulation::parallel::{parallel_map, processors};
use hybridsim_simulation::text;
use hybridsim_workload::profile::ServingProfile;
use hybridsim_workload::trace::OpenOptions;
use hybridsim_workload::trace::serving::{ServingTrace, read};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Most requests that are generated, as they are kept in memory.
const REQUESTS_MAX: i64 = 20_000_000;
/// Policies of the table unless others are named.
const POLICIES: &str = "lru,prefix:lru,s3-fifo,w-tinylfu,length-aware";

#[derive(clap::Subcommand)]
pub enum KvCommand {
    /// Tabulate eviction policies, write modes, sizes and drives for a trace of a serving system
    Plan(Box<PlanArgs>),
    /// Write a trace like a given one: arrivals, prefix reuse, session lengths, lifetimes
    Generate(GenerateArgs),
}

#[derive(clap::Args)]
struct TraceArgs {
    /// The trace: of Mooncake, LMCache, vLLM (KV-cache events) or in their form, compressed or not
    trace: PathBuf,
    /// The format, where it is not detected: a name, or { kind = "mooncake", block_tokens = 512 }
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Leave out lines that cannot be read, and report their number
    #[arg(long)]
    skip_bad_lines: bool,
    /// Use only the first requests
    #[arg(long, value_name = "COUNT", value_parser = super::at_least_one)]
    requests: Option<usize>,
}

#[derive(clap::Args)]
pub struct PlanArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// The model: llama-3-8b, llama-3-70b, qwen-2.5-7b, deepseek-v3, ..., or layers, key-value
    /// heads and head size as 32x8x128; default: block sizes of the trace
    #[arg(long, value_name = "MODEL", value_parser = ModelShape::parse)]
    model: Option<ModelShape>,
    /// Bits of a stored number: 4, 8, 16 or 32
    #[arg(long, value_name = "BITS", default_value_t = 16)]
    bits: u32,
    /// Eviction policies of storage: lru, s3-fifo, w-tinylfu, length-aware, ..., also with
    /// `prefix:` before a name; see `hybridsim list replacement`
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', default_value = POLICIES)]
    policies: Vec<String>,
    /// Times at which blocks are written: put, evict, second-hit, lazy:TIME
    #[arg(long, value_name = "MODE,MODE", value_delimiter = ',', default_value = "put")]
    writes: Vec<String>,
    /// Sizes of the cache on the drive
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',', default_value = "1TB,3TB,7TB",
          value_parser = size)]
    sizes: Vec<u64>,
    /// A table of drives, as docs/how-to/kv-cache.md shows; without it, drives with assumed prices
    #[arg(long, value_name = "FILE")]
    drives: Option<PathBuf>,
    /// Use only these drives of the table
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Stripe so many equal drives
    #[arg(long, value_name = "DRIVES", default_value_t = 1, conflicts_with = "system",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    count: u32,
    /// Serve the requests by the system of this scenario instead of drives of the table, as they
    /// are; may be repeated
    #[arg(long, value_name = "SCENARIO", conflicts_with_all = ["drives", "only"])]
    system: Vec<PathBuf>,
    /// GPU memory for blocks
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size)]
    gpu: u64,
    /// Host memory for blocks
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size)]
    host: u64,
    /// Drop blocks not used for this time
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    ttl: Option<SimDuration>,
    /// Layout: slots, slots-trim, or buckets:SIZE:SHARE, compacted at a share of remaining blocks
    #[arg(long, value_name = "LAYOUT", default_value = "slots", value_parser = LayoutChoice::parse)]
    layout: LayoutChoice,
    /// Write without placement handles also where the drive has them
    #[arg(long)]
    no_handles: bool,
    /// Requests that the storage engine has outstanding
    #[arg(long, value_name = "COUNT", default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    depth: u32,
    /// Blocks of a prompt that are loaded together; default: all
    #[arg(long, value_name = "BLOCKS", value_parser = super::at_least_one)]
    batch: Option<usize>,
    /// Largest request to the system of --system
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = request_size,
          requires = "system")]
    request_size: u64,
    /// Prompt tokens that a GPU computes per second
    #[arg(long, value_name = "TOKENS", default_value_t = 10_000.0, value_parser = above_zero)]
    prefill_rate: f64,
    /// Price of a GPU per hour
    #[arg(long, value_name = "AMOUNT", default_value_t = 2.0, value_parser = above_zero)]
    gpu_price: f64,
    /// Share of the year with the load of the trace
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    duty: f64,
    /// Years after which a drive is replaced
    #[arg(long, value_name = "YEARS", default_value_t = 5.0, value_parser = above_zero)]
    years: f64,
    /// Write kv.json and kv.html into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace existing results in the folder
    #[arg(long, requires = "out")]
    force: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Simulations at once; default: the number of processors
    #[arg(long, value_name = "COUNT", value_parser = super::at_least_one)]
    jobs: Option<usize>,
    /// Show a progress bar
    #[arg(long, value_enum, default_value_t = When::Auto)]
    progress: When,
}

#[derive(clap::Args)]
pub struct GenerateArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// The file to write, in the format of Mooncake
    #[arg(required_unless_present = "judge")]
    out: Option<PathBuf>,
    /// Requests to generate; default: as many as the trace has
    #[arg(long, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=REQUESTS_MAX))]
    count: Option<u32>,
    /// Seed of the generator
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Fit to the first half of the trace and compare with the second, instead of writing a trace
    #[arg(long, conflicts_with_all = ["out", "count"])]
    judge: bool,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

fn request_size(text: &str) -> Result<u64, String> {
    let bytes = units::bytes(text)?;
    if bytes >= SECTOR_BYTES { Ok(bytes) } else { Err("must be at least 512 bytes".to_owned()) }
}

fn size(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { units::bytes(text) }
}

const FORMAT: &[Param] = &[Param::optional(
    "format",
    Kind::Entry("serving-format"),
    "The format of a serving trace, with its options.",
)];

/// Options for reading a serving trace; `None` for a format that is none of serving traces.
pub(super) fn serving_options(
    registry: &Registry,
    format: Option<&str>,
    skip_bad_lines: bool,
) -> Result<OpenOptions, Failure> {
    let (format, settings) = match format {
        None => (None, Settings::default()),
        Some(format) => {
            let choice = entry_option(registry, FORMAT, format)?;
            (Some(choice.name), choice.settings)
        }
    };
    Ok(OpenOptions { format, settings, skip_bad_lines, ..OpenOptions::default() })
}

/// Prints what describes a serving trace.
pub(super) fn info(path: &Path, trace: &ServingTrace, as_json: bool) -> Result<(), Failure> {
    warn(path, &trace.warnings);
    let profile = ServingProfile::of(trace);
    if as_json {
        return print(&pretty(&json!({
            "file": path.display().to_string(),
            "format": trace.format,
            "packing": trace.compression,
            "serving_profile": profile,
        })));
    }
    let packed = trace.compression.map_or_else(String::new, |packing| format!(", {packing}"));
    let mut out = format!("{:<20} {}{packed}\n", "format", trace.format);
    for (label, value) in profile.rows() {
        out += &format!("{label:<20} {value}\n");
    }
    print(&out)
}

fn open(registry: &Registry, args: &TraceArgs) -> Result<ServingTrace, Failure> {
    let options = serving_options(registry, args.format.as_deref(), args.skip_bad_lines)?;
    let trace = read(&args.trace, &options)?;
    warn(&args.trace, &trace.warnings);
    match args.requests.filter(|count| *count < trace.requests.len()) {
        Some(count) => Ok(trace.slice(0, count)),
        None => Ok(trace),
    }
}

fn targets(args: &PlanArgs) -> Result<(Vec<Target>, String), Failure> {
    if !args.system.is_empty() {
        return Ok((args.system.iter().cloned().map(Target::System).collect(), String::new()));
    }
    let drives = match &args.drives {
        None => Drives::standard(),
        Some(path) => {
            let of = |error: String| Failure::usage(format!("{}: {error}", path.display()));
            let text = text::read(path, text::SCENARIO_BYTES_MAX);
            let text = text.map_err(|error| of(error.to_string()))?;
            Drives::parse(&text).map_err(of)?
        }
    };
    let known = |name: &String| drives.drive.iter().any(|drive| drive.name == *name);
    if let Some(name) = args.only.iter().find(|name| !known(name)) {
        let names: Vec<_> = drives.drive.iter().map(|drive| &drive.name[..]).collect();
        let message = format!("there is no drive `{name}`: the table has {}", names.join(", "));
        return Err(Failure::usage(message));
    }
    let used = drives.drive.into_iter();
    let used = used.filter(|drive| args.only.is_empty() || args.only.contains(&drive.name));
    let striped = used.map(|drive| Target::Drive(drive.times(args.count)));
    Ok((striped.collect(), drives.currency))
}

fn cells(registry: &Registry, args: &PlanArgs, targets: &[Target]) -> Result<Vec<Cell>, Failure> {
    let policies: Result<Vec<_>, _> =
        args.policies.iter().map(|name| PolicyName::parse(name, registry)).collect();
    let writes: Result<Vec<_>, _> = args.writes.iter().map(|name| write_mode(name)).collect();
    let (policies, writes) = (policies.map_err(Failure::usage)?, writes.map_err(Failure::usage)?);
    let mut cells = Vec::new();
    for target in targets {
        for &storage_bytes in &args.sizes {
            for (write, write_name) in writes.iter().zip(&args.writes) {
                cells.extend(policies.iter().map(|policy| Cell {
                    policy: policy.clone(),
                    write: *write,
                    write_name: write_name.clone(),
                    storage_bytes,
                    target: target.clone(),
                }));
            }
        }
    }
    Ok(cells)
}

/// Tabulates a study.
pub fn plan(registry: &Registry, args: &PlanArgs) -> Result<(), Failure> {
    let precision = Precision::new(args.bits).map_err(Failure::usage)?;
    let _folder = args.out.as_ref().map(|out| prepare(out, args.force)).transpose()?;
    let (targets, currency) = targets(args)?;
    let cells = cells(registry, args, &targets)?;
    let trace = open(registry, &args.trace)?;
    let model = args.model.map(|model| (model, precision));
    let of_trace = |message: String| {
        Failure::Message(Exit::Trace, format!("{}: {message}", args.trace.trace.display()))
    };
    let options = StudyOptions {
        block_bytes: block_bytes(&trace, model).map_err(of_trace)?,
        gpu_bytes: args.gpu,
        host_bytes: args.host,
        ttl: args.ttl,
        layout: args.layout,
        handles: !args.no_handles,
        depth: args.depth,
        batch: args.batch.unwrap_or(usize::MAX),
        request_bytes: args.request_size,
        prefill_rate: args.prefill_rate,
        gpu_price: args.gpu_price,
        duty: args.duty,
        service_years: args.years,
    };
    let study = Study { trace: &trace, options, registry };
    let progress = Progress::new(args.progress, "simulating");
    let (count, mut done) = (cells.len(), 0);
    let jobs = args.jobs.unwrap_or_else(processors);
    let rows = parallel_map(
        cells,
        jobs,
        |cell| study.run(&cell),
        |_, _| {
            done += 1;
            progress.reading(Some(done as f64 / count as f64));
        },
    );
    progress.finish();
    show(args, &study, &rows, &currency)?;
    match rows.iter().filter(|row| row.error.is_some()).count() {
        0 => Ok(()),
        failed => {
            let message = format!("{failed} of {count} cells have no figures");
            Err(Failure::AfterResults(Exit::Points, message))
        }
    }
}

/// The trace and its footprint in a sentence.
fn sentence(args: &PlanArgs, study: &Study<'_>) -> String {
    let trace = study.trace;
    let footprint = study.options.block_bytes.saturating_mul(trace.distinct() as u64);
    format!(
        "{}: {} requests in {} s, {} blocks of {}, {} references.",
        args.trace.trace.display(),
        trace.requests.len(),
        number(trace.span_ns() as f64 / 1e9),
        trace.distinct(),
        binary_size(footprint),
        trace.references.len()
    )
}

fn show(args: &PlanArgs, study: &Study<'_>, rows: &[Row], currency: &str) -> Result<(), Failure> {
    let sentence = sentence(args, study);
    let document = || {
        let options = &study.options;
        pretty(&json!({
            "trace": sentence,
            "block_bytes": options.block_bytes,
            "prefill_tokens_per_s": options.prefill_rate,
            "currency": currency,
            "rows": rows,
        }))
    };
    let write = |folder| {
        write_file(folder, "kv.json", &document())?;
        write_file(folder, "kv.html", &html(rows, &study.options, &sentence, currency))
    };
    let saved = args.out.as_deref().map_or(Ok(()), write);
    let text = match args.json {
        true => document(),
        false => terminal(rows, &study.options, &sentence, currency),
    };
    print_beside(saved, &text)
}

/// Writes a generated trace, or judges the generator.
pub fn generate(registry: &Registry, args: &GenerateArgs) -> Result<(), Failure> {
    let trace = open(registry, &args.trace)?;
    let of_trace = |message: String| {
        Failure::Message(Exit::Trace, format!("{}: {message}", args.trace.trace.display()))
    };
    let Some(out) = &args.out else { return judge(registry, args, &trace).map_err(of_trace)? };
    if out.exists() && !args.force {
        let message = format!("{} exists; add --force to replace it", out.display());
        return Err(Failure::usage(message));
    }
    apart([&args.trace.trace], Some(out))?;
    let fitted = Fitted::new(&trace).map_err(of_trace)?;
    let count = args.count.map_or(trace.requests.len(), |count| count as usize);
    let made = fitted.generate(count, args.seed).map_err(Failure::usage)?;
    write_path(out, &mooncake(&made))
}

/// A trace in the format of Mooncake.
fn mooncake(trace: &ServingTrace) -> String {
    let mut text = String::new();
    for request in &trace.requests {
        text += &format!(
            "{{\"timestamp\": {}, \"input_length\": {}, \"output_length\": {}, \"hash_ids\": {:?}, \
             \"block_size\": {}}}\n",
            request.at.as_ns() as f64 / 1e6,
            request.input_tokens,
            request.output_tokens,
            trace.blocks(request),
            request.block_tokens
        );
    }
    text
}

/// Compares a trace generated after the first half of `trace` with the second.
fn judge(
    registry: &Registry,
    args: &GenerateArgs,
    trace: &ServingTrace,
) -> Result<Result<(), Failure>, String> {
    let count = trace.requests.len();
    let (first, second) = (trace.slice(0, count / 2), trace.slice(count / 2, count));
    let made = Fitted::new(&first)?.generate(second.requests.len(), args.seed)?;
    let [fitted, real, made_likeness] = [&first, &second, &made].map(Likeness::of);
    let mut out =
        format!("{:<34} {:>12} {:>12} {:>12}\n", "", "first half", "second half", "generated");
    let mut row = |label: &str, values: [f64; 3]| {
        let [first, second, made] = values.map(number);
        out += &format!("{label:<34} {first:>12} {second:>12} {made:>12}\n");
    };
    type Property = fn(&Likeness) -> f64;
    let rows: [(&str, Property); 6] = [
        ("requests per second", |it| it.requests_per_s),
        ("input tokens, mean", |it| it.input_tokens_mean),
        ("references to used blocks, %", |it| 100.0 * it.reused),
        ("requests of a session, mean", |it| it.session_requests_mean),
        ("lifetime, median s", |it| it.lifetime_median_s),
        ("lifetime, mean s", |it| it.lifetime_mean_s),
    ];
    for (label, value) in rows {
        row(label, [&fitted, &real, &made_likeness].map(value));
    }
    for share in [32, 16, 8, 4, 2, 1] {
        let blocks = (second.distinct() / share).max(1) as u32;
        let mut ratios = [0.0; 3];
        for (ratio, trace) in ratios.iter_mut().zip([&first, &second, &made]) {
            *ratio = 100.0 * lru_ratio(registry, trace, blocks)?;
        }
        row(&format!("LRU hits, {blocks} blocks, % of tokens"), ratios);
    }
    Ok(print(&out))
}

fn lru_ratio(registry: &Registry, trace: &ServingTrace, blocks: u32) -> Result<f64, String> {
    let options = TierOptions {
        gpu_blocks: 0,
        host_blocks: 0,
        storage_blocks: blocks,
        policy: PolicyName::parse("lru", registry)?,
        ttl: None,
        write: WriteMode::Put,
    };
    let totals = Tier::new(trace, &options, registry)?.run(&mut NoStorage);
    Ok(totals.token_hit_ratio())
}
