use super::*;
use hybridsim_simulation::registry;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The drive whose counters stand in `example`: 64 GiB, of which a greedy collector would give
/// less, with a counter that adds 5 %.
const TRUE: SaturatedDrive = SaturatedDrive {
    user_gib: 64.0,
    hidden_gib: 1.28 * 64.0,
    block_gib: 0.125,
    program_us: 3.0,
    read_us: 1.5,
    read_pages: 1,
    scale: 1024.0,
    collector: Collector::CostBenefit(0.3),
};
const MEDIA_OVERHEAD: f64 = 1.05;

/// The series of the example: the file, its load in TOML, the load, and the part written.
const LOADS: [(&str, &str, Load, f64); 7] = [
    ("sequential.csv", "{ kind = \"sequential\" }", WHOLE, 1.0),
    ("uniform-60.csv", "{ kind = \"uniform\" }", Load::Uniform, 0.6),
    ("uniform.csv", "{ kind = \"uniform\" }", Load::Uniform, 1.0),
    ("uniform-80.csv", "{ kind = \"uniform\" }", Load::Uniform, 0.8),
    (
        "static-60.csv",
        "{ kind = \"hotcold\", hot_fraction = 0.4, hot_probability = 1.0 }",
        Load::Hot { pages: 0.4, writes: 1.0 },
        1.0,
    ),
    ("zipf.csv", "{ kind = \"zipf\", theta = 0.8 }", Load::Zipf(0.8), 1.0),
    (
        "streams.csv",
        "{ kind = \"streams\", active = 4, region = \"64MiB\" }",
        Load::Streams { active: 4, region_gib: 0.0625, trims: false },
        1.0,
    ),
];
const WHOLE: Load = Load::Streams { active: 1, region_gib: 64.0, trims: false };
/// Number of times a span is written.
const WRITES: f64 = 4.0;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("example")
}

/// The counters of [`TRUE`] under `load` as CSV: NVMe's data units, and bytes programmed.
fn counted(registry: &Registry, load: Load, span: f64) -> String {
    let ran = TRUE.simulate(registry, "example", (load, span, WRITES)).expect("it runs");
    let mut text = "time_s,host_units,media_bytes\n0,1000000,600000000000\n".to_owned();
    let bytes = 4096.0 * TRUE.scale;
    let mut last = 0.0;
    for (host, all) in ran.counted.iter().step_by(8).filter(|counted| counted.0 > 0.0) {
        let copied = all - host;
        let time_s = (all * TRUE.program_us + copied * TRUE.read_us) * TRUE.scale / 1e6;
        let (host, media) = (host * bytes / 512_000.0, all * bytes * MEDIA_OVERHEAD);
        let (host, media) = (1_000_000.0 + host, 600e9 + media);
        if time_s > last {
            let _ = writeln!(text, "{time_s:.1},{host:.0},{media:.0}");
        }
        last = time_s;
    }
    text
}

#[test]
fn the_example_is_what_a_simulated_drive_counts() {
    let registry = registry::standard();
    let bless = std::env::var_os("HYBRIDSIM_BLESS").is_some();
    let mut index = "capacity = \"64GiB\"\n".to_owned();
    for (file, words, load, span) in LOADS {
        let text = counted(&registry, load, span);
        let path = example().join(file);
        if bless {
            fs::create_dir_all(example()).expect("a folder");
            fs::write(&path, &text).expect("it can be written");
        }
        assert_eq!(fs::read_to_string(&path).unwrap_or_default(), text, "{file}");
        let _ = write!(index, "\n[[series]]\nfile = {file:?}\nload = {words}\n");
        if span < 1.0 {
            let _ = writeln!(index, "span = {span}");
        }
    }
    if bless {
        fs::write(example().join("counters.toml"), &index).expect("it can be written");
    }
    assert_eq!(fs::read_to_string(example().join("counters.toml")).unwrap_or_default(), index);
}

#[test]
fn the_counters_of_a_simulated_drive_give_its_constants_back() {
    let registry = registry::standard();
    let series = CounterSeries::read(&example().join("counters.toml")).expect("the example");
    let fits = every_other(&series.series);
    assert_eq!(fits, [true, false, true, false, true, false, true]);
    // Another size of the simulated drive than the example's.
    let found = fitted(&series, &fits, &registry, 12_288.0).expect("a fit");
    let drive = found.drive;
    let words = format!("{:#?}\n{:#?}", found.constants, found.series);
    assert!((drive.hidden_gib / TRUE.hidden_gib - 1.0).abs() < 0.01, "{words}");
    assert!((drive.block_gib - TRUE.block_gib).abs() < 1e-9, "{words}");
    let Collector::CostBenefit(exponent) = drive.collector else { panic!("greedy\n{words}") };
    assert!((0.15..=0.6).contains(&exponent), "{words}");
    assert!((drive.program_us / 3.0 - 1.0).abs() < 0.05, "{words}");
    let copy_us = drive.program_us + drive.read_us;
    assert!((copy_us / 4.5 - 1.0).abs() < 0.05, "{words}");
    assert!(found.constants.iter().all(|constant| constant.range.is_some()), "{words}");
    assert_eq!(found.by_collector, None);
    let (held_out, trivial) = found.held_out.zip(found.trivial).expect("some are held out");
    assert!(held_out.series == 3 && held_out.worst < 0.03, "{words}");
    assert!(trivial.mean > 5.0 * held_out.mean, "{words}");
    assert_eq!(found.warnings(), Vec::<String>::new());
    let preset = found.preset().expect("a preset");
    assert!(preset.contains("ranks_per_block = 1365"), "{preset}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("fitted.toml");
    fs::write(&path, &preset).expect("it can be written");
    let name = path.to_str().expect("a path in UTF-8");
    let again = Start::read(name, &SSD, &registry).unwrap_or_else(|it| panic!("{it}\n{preset}"));
    let blocks = again.component.settings.count("blocks_per_plane");
    assert_eq!(blocks, (drive.hidden_gib / drive.block_gib).round() as u64, "{preset}");
}

#[test]
fn rates_alone_give_hidden_capacity_and_times_back() {
    let registry = registry::standard();
    let mut series = CounterSeries::read(&example().join("counters.toml")).expect("the example");
    let counted: Vec<f64> =
        series.series.iter().filter_map(|one| one.window.amplification).collect();
    for one in &mut series.series {
        one.window.amplification = None;
    }
    series.copy_time = Some(1.5);
    let fits = every_other(&series.series);
    let found = fitted(&series, &fits, &registry, 12_288.0).expect("a fit");
    let drive = found.drive;
    let words = format!("{:#?}\n{:#?}", found.constants, found.series);
    assert_eq!(found.quantity, Quantity::HostRate);
    assert!(found.warnings().iter().any(|it| it.contains("no log has media_bytes")), "{words}");
    assert!((drive.hidden_gib / TRUE.hidden_gib - 1.0).abs() < 0.02, "{words}");
    assert!((drive.program_us / 3.0 - 1.0).abs() < 0.05, "{words}");
    let held_out = found.held_out.expect("some are held out");
    assert!(held_out.series == 3 && held_out.worst < 0.05, "{words}");
    for (one, counted) in found.series.iter().zip(counted) {
        assert_eq!(one.amplification[0], None);
        let ours = one.amplification[1].expect("it is simulated") * MEDIA_OVERHEAD;
        assert!((ours / counted - 1.0).abs() < 0.04, "{ours} of {counted}\n{words}");
    }
    let range = |found: &CounterCalibration<'_>, words: &str| {
        let found = found.constants.iter().find(|one| one.name.contains(words)).cloned();
        found.map(|one| one.range.unwrap_or_default())
    };
    assert_eq!(range(&found, "media_overhead"), None, "{words}");
    assert_eq!(range(&found, "copy_time").as_deref(), Some("as given"));
    assert!(!range(&found, "over_provisioning").expect("it is fitted").contains("if a copy"));
    found.preset().expect("a preset");
    series.copy_time = None;
    let found = fitted(&series, &fits, &registry, 2048.0).expect("a fit");
    assert_eq!(range(&found, "copy_time").as_deref(), Some(""), "it is assumed");
    let spare = range(&found, "over_provisioning").expect("it is fitted");
    assert!(spare.ends_with(", if a copy takes 1 to 1.9 times a write"), "{spare}");
}

#[test]
fn uniform_writes_alone_do_not_identify_the_collector() {
    let registry = registry::standard();
    let mut series = CounterSeries::read(&example().join("counters.toml")).expect("the example");
    series.series.retain(|one| one.load == Load::Uniform);
    series.media_overhead = Some(MEDIA_OVERHEAD);
    let found = fitted(&series, &[true; 3], &registry, f64::from(1 << 14)).expect("a fit");
    let range = |words: &str| {
        let found = found.constants.iter().find(|constant| constant.name.contains(words));
        found.expect("a constant").range.clone()
    };
    assert!(range("over_provisioning").is_some(), "{:#?}", found.constants);
    assert_eq!(range("collector"), None, "{:#?}", found.constants);
    let [greedy, other] = found.by_collector.expect("the prediction of either");
    assert!(other < 0.97 * greedy, "{greedy} {other}");
    let warning = format!("would be {greedy:.2}, but {other:.2}");
    assert!(found.warnings().iter().any(|it| it.contains(&warning)), "{:?}", found.warnings());
    // One series leaves the times of pages open; the drive can be built all the same.
    let found = fitted(&series, &[true, false, false], &registry, 4096.0).expect("a fit");
    let range = |words: &str| {
        let found = found.constants.iter().find(|constant| constant.name.contains(words));
        found.expect("a constant").range.clone()
    };
    assert_eq!(range("page written"), None, "{:#?}", found.constants);
    found.preset().expect("a preset");
    let error = fitted(&series, &[false; 3], &registry, 1e3).expect_err("nothing to fit to");
    assert!(error.to_string().contains("no series to fit to"), "{error}");
}

#[test]
fn files_of_series_that_cannot_be_used_say_why() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("series.toml");
    let log = |times: u64| {
        let rows = (0..20_u64).map(|at| format!("{at},{0},{0}\n", at * times * (1 << 30)));
        format!("time_s,host_bytes,media_bytes\n{}", rows.collect::<String>())
    };
    fs::write(folder.path().join("one.csv"), log(1)).expect("it can be written");
    let problem = |text: &str| {
        fs::write(&path, text).expect("it can be written");
        CounterSeries::read(&path).map(|it| it.series.len()).map_err(|error| error.to_string())
    };
    let one = |load: &str, more: &str| {
        let series = format!("[[series]]\nfile = \"one.csv\"\nload = {{ {load} }}\n{more}");
        format!("capacity = \"16GiB\"\n{series}")
    };
    let uniform = "kind = \"uniform\"";
    assert_eq!(problem(&one(uniform, "")), Ok(1));
    let rates = (0..20_u64).map(|at| format!("{at},{}\n", at * (1 << 30)));
    let rates = format!("time_s,host_bytes\n{}", rates.collect::<String>());
    fs::write(folder.path().join("rates.csv"), rates).expect("it can be written");
    let both = format!(
        "{}{}",
        one(uniform, ""),
        "[[series]]\nfile = \"rates.csv\"\nload = { kind = \"uniform\" }\n"
    );
    for (text, words) in [
        (format!("copy_time = 9\n{}", one(uniform, "")), "copy_time = 9: must be"),
        (
            format!("copy_time = 2\n{}", one(uniform, "")),
            "copy_time is for logs without media_bytes",
        ),
        (
            format!("media_overhead = 1.1\n{}", one(uniform, "").replace("one.csv", "rates.csv")),
            "media_overhead is for logs with media_bytes",
        ),
        (both, "one.csv has media_bytes, rates.csv has none"),
        ("capacity = ".to_owned(), "line 1"),
        ("series = []".to_owned(), "capacity"),
        ("capacity = \"16GiB\"\nseries = []".to_owned(), "has no [[series]]"),
        (one(uniform, "").replace("16GiB", "1KiB"), "from 1 GiB to 1 PiB"),
        (one(uniform, "").replace("one.csv", "none.csv"), "none.csv"),
        (one(uniform, "spam = 1\n"), "spam"),
        (one(uniform, "span = 1.5\n"), "series 1: span = 1.5"),
        (one("kind = \"zipf\", theta = 0", ""), "series 1: load.theta = 0"),
        (one("kind = \"none\"", ""), "none"),
        (one("kind = \"uniform\", span = 0.6", ""), "span"),
        (one("kind = \"sequential\", region = \"1GiB\"", ""), "region"),
        (one("kind = \"streams\", active = 1, region = \"16KiB\"", ""), "at least a 65536th"),
        (one("kind = \"hotcold\", hot_fraction = 2, hot_probability = 1", ""), "hot_fraction = 2"),
        (one("kind = \"streams\", active = 1, region = \"x\"", ""), "load.region"),
        (one("kind = \"streams\", active = 9, region = \"4GiB\"", ""), "load.active = 9"),
        (one(uniform, "").replace("16GiB", "64GiB"), "0.297 times the span"),
        (format!("media_overhead = 9\n{}", one(uniform, "")), "media_overhead = 9"),
    ] {
        let message = problem(&text).expect_err(&text);
        assert!(message.contains(words), "{text}: {message}");
    }
}

#[test]
fn blocks_hold_whole_pages_of_the_chip_and_the_capacity_stays() {
    for read_pages in [2, 4, 16] {
        for hidden_gib in [1.05, 1.21, 1.333].map(|part| part * TRUE.user_gib) {
            let drive = SaturatedDrive { hidden_gib, read_pages, ..TRUE };
            let settings = drive.settings(Load::Uniform, 1.0, 1.0);
            let value = |key: &str| {
                let of = settings.iter().find(|(name, _)| name == &format!("component.ssd.{key}"));
                of.and_then(|(_, value)| value.parse::<f64>().ok()).expect("a number")
            };
            let pages = value("blocks_per_plane") * value("pages_per_block");
            let wanted = hidden_gib * (1_u64 << 30) as f64 / 4096.0 / drive.scale;
            assert!((pages / wanted - 1.0).abs() < 0.002, "{pages} of {wanted}");
            let blocks = drive.hidden_gib / drive.block_gib;
            assert!((value("blocks_per_plane") / blocks - 1.0).abs() < 0.035, "of {blocks} blocks");
            assert!(value("pages_per_block") % value("read_pages") == 0.0);
        }
    }
    let single = TRUE.settings(Load::Uniform, 1.0, 1.0);
    assert!(single.iter().all(|(key, _)| !key.ends_with("read_pages")));
}
