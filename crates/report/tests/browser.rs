//! Opens reports in headless Chromium: every chart is drawn, without console messages or network
//! requests.
//!
//! Without Chromium the tests are skipped; `HYBRIDSIM_CHROMIUM` may name the program.

use hybridsim_engine::{ComponentInfo, SimTime};
use hybridsim_observe::{Cost, Detail, EndedBy, Ending, Label, Recorder, Warmup};
use hybridsim_report::{Run, html};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[allow(dead_code)]
#[path = "../examples/sample_report.rs"]
mod sample;

const PATIENCE: Duration = Duration::from_secs(180);

/// The browser's record of a page.
struct Visit {
    dom: String,
    console: Vec<String>,
    foreign: Vec<String>,
}

/// A temporary folder.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hybridsim-report-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("the temporary folder can be written to");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn chromium() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("HYBRIDSIM_CHROMIUM") {
        return Some(PathBuf::from(named));
    }
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let folders = std::env::split_paths(&std::env::var_os("PATH")?).collect::<Vec<_>>();
    let found = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let found = found.into_iter().find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: no Chromium found; set HYBRIDSIM_CHROMIUM to its path");
    }
    found
}

fn visit(browser: &Path, page: &str, fragment: &str, width: u32) -> Visit {
    let folder = Folder::new();
    let (file, log) = (folder.0.join("report.html"), folder.0.join("net.json"));
    std::fs::write(&file, page).expect("the temporary folder can be written to");
    let (dom, stderr) = (folder.0.join("dom.html"), folder.0.join("stderr.txt"));
    let create = |path: &Path| std::fs::File::create(path).expect("the folder can be written to");
    let child = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update"])
        .args(["--disable-sync", "--disable-extensions", "--disable-default-apps"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0"])
        .arg(format!("--user-data-dir={}", folder.0.join("profile").display()))
        .arg(format!("--log-net-log={}", log.display()))
        .arg(format!("--window-size={width},2000"))
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("file://{}#{fragment}", file.display()))
        .stdout(create(&dom))
        .stderr(create(&stderr))
        .spawn()
        .expect("the browser starts");
    wait(child);
    let read = |path: &Path| {
        let bytes = std::fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let stderr = read(&stderr);
    let console = stderr.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned);
    Visit { dom: read(&dom), console: console.collect(), foreign: requests(&read(&log)) }
}

/// Waits for the browser; a page in an endless loop is a failure.
fn wait(mut child: Child) {
    let start = Instant::now();
    while child.try_wait().expect("the browser is our child").is_none() {
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the page was not done after {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Addresses a page requested, from the browser's log, without the browser's own services.
fn requests(network: &str) -> Vec<String> {
    let asked = network.split("\"url\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let own = ["google.com", "googleapis.com", "gvt1.com", "chrome:", "chrome-", "file:", "data:"];
    let foreign = asked.filter(|url| !own.iter().any(|own| url.contains(own)));
    foreign.map(str::to_owned).collect()
}

/// Problems of the page.
fn problems(visit: &Visit, charts_min: usize) -> Vec<String> {
    let mut problems = visit.console.clone();
    problems.extend(visit.foreign.iter().map(|url| format!("requested {url}")));
    let status = attribute(&visit.dom, "data-charts").unwrap_or_default();
    let counts: Vec<usize> = status.split(" of ").filter_map(|text| text.parse().ok()).collect();
    match counts[..] {
        [drawn, all] if drawn == all && all >= charts_min => {}
        _ => problems.push(format!("charts drawn: {status:?}, wanted {charts_min}")),
    }
    if let Some(error) = attribute(&visit.dom, "data-error") {
        problems.push(error);
    }
    if visit.dom.contains("data-drawn=\"no\"") {
        problems.push("a chart is empty".to_owned());
    }
    problems
}

fn attribute(dom: &str, name: &str) -> Option<String> {
    let rest = dom.split(&format!("{name}=\"")).nth(1)?;
    rest.split('"').next().map(str::to_owned)
}

#[test]
fn every_chart_is_drawn_without_network_requests() {
    let Some(browser) = chromium() else { return };
    let runs = [
        sample::run("disk", "Hard disk"),
        sample::run("ssd", "SSD"),
        sample::run("hybrid", "Hybrid"),
    ];
    let page = html::page("Three runs", &runs);
    let none: [&str; 0] = [];
    for (fragment, width) in [("theme=light", 1280), ("theme=dark", 1280), ("theme=light", 400)] {
        let visit = visit(&browser, &page, fragment, width);
        assert_eq!(problems(&visit, 20), none, "three runs, {fragment}, {width}");
    }
    for (run, charts) in runs.into_iter().zip([9, 15, 19]) {
        let visit = visit(&browser, &html::page("One run", &[run]), "theme=dark", 800);
        assert_eq!(problems(&visit, charts), none, "one run");
    }
}

/// Browsers clamp the coordinates of a drawing at 2^25, which is 34 ms in nanoseconds.
#[test]
fn activity_over_a_long_window_lies_where_it_happened() {
    let Some(browser) = chromium() else { return };
    let mut run = sample::run("ssd", "SSD");
    let pictures = run.pictures.as_mut().expect("a full run has pictures");
    let activity = pictures.activity.as_mut().expect("an SSD has channels and dies");
    let scale = 1_000_000_000 / (activity.to_ns - activity.from_ns) + 1;
    activity.to_ns = activity.from_ns + (activity.to_ns - activity.from_ns) * scale;
    for (begin, length, _) in activity.rows.iter_mut().flat_map(|row| &mut row.pieces) {
        (*begin, *length) = (*begin * scale, *length * scale);
    }
    let page = html::page("A slow request", &[run]);
    let none: [&str; 0] = [];
    assert_eq!(problems(&visit(&browser, &page, "", 1280), 10), none);
    // In nanoseconds the page finds the drawing wrong.
    let nanoseconds = page.replace("const STRIP_WIDTH = 1000;", "const STRIP_WIDTH = 1e9;");
    assert_ne!(page, nanoseconds);
    let open = nanoseconds.replace("http-equiv=\"Content-Security-Policy\"", "name=\"none\"");
    let found = problems(&visit(&browser, &open, "", 1280), 10);
    assert!(found.iter().any(|text| text.contains("a chart is empty")), "{found:?}");
}

/// The checks can fail: a foreign script is blocked, and that is reported.
#[test]
fn a_tampered_page_is_reported() {
    let Some(browser) = chromium() else { return };
    let page = html::page("Tampered", &[sample::run("ssd", "SSD")]);
    let tampered = page.replace("start();\n", "start(); fetch('http://example.invalid/');\n");
    assert_ne!(page, tampered);
    let found = problems(&visit(&browser, &tampered, "", 800), 1);
    assert!(found.iter().any(|text| text.contains("Content Security Policy")), "{found:?}");
    assert!(found.iter().any(|text| text.contains("charts drawn")), "{found:?}");
    // Without the policy the network request itself is reported.
    let open = tampered.replace("http-equiv=\"Content-Security-Policy\"", "name=\"none\"");
    let found = problems(&visit(&browser, &open, "", 800), 1);
    assert!(found.iter().any(|text| text.contains("example.invalid")), "{found:?}");
}

const HOSTILE: &str = "</script></pre></title>\
    <img src=x onerror=\"document.documentElement.dataset.hacked='yes'\">\
    <!--<script>document.documentElement.dataset.hacked='yes'</script>\u{2028}\"'`${1}{{ 7 * 7 }}";

fn hostile() -> Run {
    let mut run = sample::run("hybrid", HOSTILE);
    let label = &mut run.results.label;
    (label.scenario, label.trace) = (HOSTILE.to_owned(), HOSTILE.to_owned());
    label.versions.insert(HOSTILE.to_owned(), HOSTILE.to_owned());
    run.results.warnings.push(HOSTILE.to_owned());
    run.results.violations.push(HOSTILE.to_owned());
    run.scenario_text = HOSTILE.to_owned();
    let components = std::mem::take(&mut run.results.components);
    run.results.components =
        components.into_iter().map(|(path, part)| (path + HOSTILE, part)).collect();
    if let Some(pictures) = &mut run.pictures {
        let energy = std::mem::take(&mut pictures.energy_j);
        pictures.energy_j = energy.into_iter().map(|(path, j)| (path + HOSTILE, j)).collect();
        let wear = std::mem::take(&mut pictures.wear);
        pictures.wear = wear.into_iter().map(|(path, rows)| (path + HOSTILE, rows)).collect();
        pictures.series.queue_depth[0].path.push_str(HOSTILE);
    }
    run
}

#[test]
fn strings_from_traces_and_scenarios_are_escaped() {
    let page = html::page(HOSTILE, &[hostile(), hostile()]);
    assert!(!page.contains("<img"), "an element got through");
    assert_eq!(page.matches("<script").count(), 2, "ours only");
    assert_eq!(page.matches("</script").count(), 2, "ours only");
    assert!(page.contains("{{ 7 * 7 }}"), "a template expression was worked out");
    let Some(browser) = chromium() else { return };
    let visit = visit(&browser, &page, "", 1000);
    assert_eq!(problems(&visit, 10), [""; 0]);
    assert!(!visit.dom.contains("data-hacked"), "a script ran");
}

#[test]
fn a_run_without_chart_data_has_a_page() {
    let nodes = vec![("host".to_owned(), ComponentInfo::default())];
    let ending = Ending { time: SimTime::ZERO, events: 0, by: EndedBy::Completion };
    let recorder = |detail| Recorder::new(nodes.clone(), detail, Warmup::None);
    let empty = |detail| {
        let label = Label::default();
        let done = recorder(detail).finish(ending, label, Cost::default(), Vec::new());
        Run { results: done.results, pictures: done.pictures, scenario_text: String::new() }
    };
    let pages = [
        html::page("", &[empty(Detail::Full)]),
        html::page("", &[empty(Detail::Bare)]),
        html::page("", &[empty(Detail::Bare), empty(Detail::Full), sample::run("disk", "Disk")]),
    ];
    let Some(browser) = chromium() else { return };
    for page in &pages {
        let visit = visit(&browser, page, "", 800);
        assert!(visit.console.is_empty(), "{:?}", visit.console);
        assert!(attribute(&visit.dom, "data-charts").is_some(), "the script came to its end");
        assert_eq!(attribute(&visit.dom, "data-error"), None);
    }
}

#[test]
fn the_page_is_self_contained() {
    let page = html::page("One run", &[sample::run("disk", "Disk")]);
    for call in ["src=\"", "href=\"http", "url(", "@import", "fetch(", "XMLHttp", "WebSocket"] {
        assert!(!page.contains(call), "the page has {call}");
    }
    for call in ["sendBeacon", "import(", "EventSource", "<link", "<iframe", "<object"] {
        assert!(!page.contains(call), "the page has {call}");
    }
}

#[test]
fn the_page_of_a_reproduction_is_drawn() {
    use hybridsim_report::study::{self, Axis, Curve, Plot, Study};
    let Some(browser) = chromium() else { return };
    let plot = |x: Axis, y: Axis| Plot {
        title: "</script><b>".to_owned(),
        caption: "Shares".to_owned(),
        x,
        y,
        curves: vec![
            Curve::ours("ours", vec![(1e3, 0.1), (1e6, 0.9), (1e7, 1.0)]).stepped(),
            Curve::published("theirs", vec![(1e4, 0.2), (1e7, 0.95)]),
        ],
    };
    let study = Study {
        experiment: "konanki/fig0".to_owned(),
        title: "A figure".to_owned(),
        method: "Made up.".to_owned(),
        rows: Vec::new(),
        plots: vec![
            plot(Axis::logarithmic("Response", "ns"), Axis::linear("Requests", "share")),
            plot(Axis::linear("Size", "bytes"), Axis::logarithmic("Erases", "")),
        ],
    };
    let page = study::page("Reproduction", &[study.clone(), study]);
    for (fragment, width) in [("theme=light", 1280), ("theme=dark", 400)] {
        let none: [&str; 0] = [];
        assert_eq!(problems(&visit(&browser, &page, fragment, width), 4), none);
    }
}

#[test]
fn the_page_of_a_sweep_is_drawn() {
    use hybridsim_report::sweep::{Cell, Column, Effect, Key, Level, Row, Sweep, page};
    let key = |name: &str, values: &[&str]| {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        Key { name: name.to_owned(), values }
    };
    let column = |name: &str, title: &str, more_is_better| Column {
        name: name.to_owned(),
        title: title.to_owned(),
        is_objective: name == "mean_us",
        is_shown: true,
        more_is_better,
        bound: None,
        effects: vec![Effect {
            key: 0,
            least: Level { value: 0, mean: 2.0 },
            most: Level { value: 2, mean: 8.0 },
            share: 1.2,
            noise: true,
        }],
    };
    let mut rows: Vec<Row> = (0..12)
        .map(|at| {
            let (size, kind, depth) = (at % 3, at / 3 % 2, at / 6);
            let mean = (size * 3 + kind + depth) as f64 + 1.0;
            let cell = |mean| Some(Cell { mean, half: Some(0.3), noise: at == 3 });
            // As close together as throughputs of a closed loop.
            let cells = vec![cell(mean), cell(15.8 - mean * 1e-7)];
            Row {
                at: vec![size, kind, depth],
                cells,
                error: None,
                unmet: Vec::new(),
                best: at == 4,
            }
        })
        .collect();
    rows[5] = Row { cells: vec![None, None], error: Some(HOSTILE.to_owned()), ..rows[5].clone() };
    let sweep = Sweep {
        title: HOSTILE.to_owned(),
        notes: vec![HOSTILE.to_owned()],
        data_file: HOSTILE.to_owned(),
        seeds: 3,
        keys: vec![
            key("component.ssd.size", &["1", "10", "100"]),
            key("host.scheduler", &["\"first come, first served\"", HOSTILE]),
            key("host.queue_depth", &["1", "8"]),
        ],
        columns: vec![
            column("mean_us", "Mean latency", false),
            column(&format!("iops{HOSTILE}"), &format!("Throughput{HOSTILE}"), true),
        ],
        rows,
    };
    let page = page(&sweep);
    assert_eq!((page.matches("<script").count(), page.contains("<img")), (2, false));
    let Some(browser) = chromium() else { return };
    for (fragment, width) in [("theme=light", 1280), ("theme=dark", 390)] {
        let visit = visit(&browser, &page, fragment, width);
        // Sensitivities, the front, and two panels for each statistic.
        assert_eq!(problems(&visit, 6), [""; 0]);
        assert!(!visit.dom.contains("data-hacked"), "a script ran");
        let sizes = attribute(&visit.dom, "data-width").expect("the width of the page");
        let (page, window) = sizes.split_once(" of ").expect("two widths");
        assert_eq!(page, window, "the page is wider than the window of {width}");
        let front = visit.dom.matches("<circle class=\"front\"").count();
        assert_eq!(front, 1, "the smallest mean has the most throughput");
        let best = ["<tr class=\"best\">", "<circle class=\"best\""];
        let marked = best.map(|part| visit.dom.matches(part).count());
        assert_eq!(marked, [1, 1], "the best trial is marked in the table and on the front");
        assert!(visit.dom.contains("Mean latency (objective)"), "the objective is named");
        let texts = front_texts(&visit.dom);
        let distinct: BTreeSet<&str> = texts.iter().copied().collect();
        assert!(texts.len() > 4 && distinct.len() == texts.len(), "ticks differ: {texts:?}");
    }
}

/// Ticks and titles of the axes of the Pareto front.
fn front_texts(dom: &str) -> Vec<&str> {
    let drawing = dom.split("class=\"pareto\"").nth(1).and_then(|rest| rest.split("</svg>").next());
    let texts = drawing.expect("the front is drawn").split("<text ").skip(1);
    texts.filter_map(|rest| rest.split(['<', '>']).nth(1)).collect()
}

/// A sweep whose points are at `places` of the values of `keys`; their means are 1, 2 and so on.
fn mean_of(keys: &[(&str, &[&str])], places: &[Vec<usize>]) -> hybridsim_report::sweep::Sweep {
    use hybridsim_report::sweep::{Cell, Column, Key, Row, Sweep};
    let key = |(name, values): &(&str, &[&str])| Key {
        name: (*name).to_owned(),
        values: values.iter().map(|&value| value.to_owned()).collect(),
    };
    let row = |(number, at): (usize, &Vec<usize>)| {
        let cell = Cell { mean: number as f64 + 1.0, half: None, noise: false };
        Row { at: at.clone(), cells: vec![Some(cell)], error: None, unmet: Vec::new(), best: false }
    };
    Sweep {
        title: "Sweep".to_owned(),
        notes: Vec::new(),
        data_file: String::new(),
        seeds: 1,
        keys: keys.iter().map(key).collect(),
        columns: vec![Column {
            name: "mean_us".to_owned(),
            title: "Mean latency".to_owned(),
            is_objective: false,
            is_shown: true,
            more_is_better: false,
            bound: None,
            effects: Vec::new(),
        }],
        rows: places.iter().enumerate().map(row).collect(),
    }
}

#[test]
fn names_of_a_sweep_are_not_joined_by_lines() {
    use hybridsim_report::sweep::page;
    /// Looks for the colour of the line between the first two values.
    const PROBE: &str = "setTimeout(report, 60);\nsetTimeout(() => {
        const over = document.querySelector('#multiple0-0 .u-over'), scale = devicePixelRatio;
        const left = (over.offsetLeft + over.offsetWidth * .3) * scale;
        const [top, height] = [over.offsetTop * scale, over.offsetHeight * scale];
        const canvas = document.querySelector('#multiple0-0 canvas');
        const joined = inked(canvas, { left, top, width: 4, height }, [runColour(0)]);
        document.documentElement.dataset.joined = joined;
    }, 60);";
    let Some(browser) = chromium() else { return };
    let joined = |values: [&str; 3]| {
        let page = page(&mean_of(&[("component.d.key", &values)], &[0, 1, 2].map(|at| vec![at])));
        let probed = page.replace("setTimeout(report, 60);", PROBE);
        assert_ne!(page, probed);
        let open = probed.replace("http-equiv=\"Content-Security-Policy\"", "name=\"none\"");
        let visit = visit(&browser, &open, "theme=light", 1280);
        // The canvas is read twice, which the browser remarks on.
        let problems = problems(&visit, 1);
        assert!(problems.iter().all(|it| it.contains("willReadFrequently")), "{problems:?}");
        let joined = attribute(&visit.dom, "data-joined").expect("the chart was looked at");
        assert_eq!(
            visit.dom.contains("line-key point-key\" viewBox"),
            joined == "false",
            "so is the legend"
        );
        joined
    };
    assert_eq!(joined(["1", "2", "3"]), "true");
    assert_eq!(joined(["4KiB", "8KiB", "1MiB"]), "true", "sizes have an order");
    assert_eq!(joined(["fifo", "2q", "s3-fifo"]), "false");
}

#[test]
fn many_lines_share_a_legend_and_a_bound_is_drawn() {
    use hybridsim_report::sweep::page;
    /// Looks for the colour of bounds in the first chart, and for the entries of its legend.
    const PROBE: &str = "setTimeout(report, 60);\nsetTimeout(() => {
        const canvas = document.querySelector('#multiple0-0 canvas');
        const box = { left: 0, top: 0, width: canvas.width, height: canvas.height };
        const page = document.documentElement.dataset;
        page.bound = inked(canvas, box, [css('--broken')]);
        const rows = [...document.querySelectorAll('#multiple0-0 .u-legend .u-series')];
        page.entries = rows.filter(row => row.offsetWidth > 0).length - 1;
        page.shared = document.querySelectorAll('#legend .keys li').length;
    }, 60);";
    let Some(browser) = chromium() else { return };
    let names: Vec<String> = (0..9).map(|number| format!("system {number}")).collect();
    let drawn = |systems: usize, bound: Option<f64>| {
        let names: Vec<&str> = names[..systems].iter().map(String::as_str).collect();
        let sizes = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let places: Vec<Vec<usize>> = (0..systems).map(|at| vec![at, at]).collect();
        let mut sweep = mean_of(&[("system", &names), ("flash, GiB", &sizes)], &places);
        sweep.columns[0].bound = bound;
        let page = page(&sweep);
        let probed = page.replace("setTimeout(report, 60);", PROBE);
        assert_ne!(page, probed);
        let open = probed.replace("http-equiv=\"Content-Security-Policy\"", "name=\"none\"");
        let visit = visit(&browser, &open, "theme=light", 800);
        let problems = problems(&visit, 1);
        assert!(problems.iter().all(|it| it.contains("willReadFrequently")), "{problems:?}");
        let words = visit.dom.contains("The line across is the bound: at most 20 µs.");
        assert_eq!(words, bound.is_some());
        ["bound", "entries", "shared"].map(|name| {
            attribute(&visit.dom, &format!("data-{name}")).expect("the chart was looked at")
        })
    };
    assert_eq!(drawn(9, Some(20.0)), ["true", "0", "9"]);
    assert_eq!(drawn(8, None), ["false", "8", "0"]);
}
