//! The terminal's table, and JSON.

use hybridsim_observe::results::Thermal;
use hybridsim_report::terminal::{Style, columns, single, table};
use hybridsim_report::{Run, html, json};
use unicode_width::UnicodeWidthStr;

#[allow(dead_code)]
#[path = "../examples/sample_report.rs"]
mod sample;

fn runs() -> [Run; 2] {
    let mut broken = sample::run("hybrid", "名前 \u{1b}[31mred\u{7} and much too long to be shown");
    broken.results.violations.push("parts do not add up\u{1b}[2J".to_owned());
    [sample::run("disk", "Disk"), broken]
}

#[test]
fn columns_are_aligned_and_nothing_steers_the_terminal() {
    let runs = runs();
    let text = table(&[&runs[0].results, &runs[1].results], Style::default());
    assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
    let lines: Vec<&str> = text.lines().collect();
    let head = lines[0].width();
    assert!(lines[0].contains("Disk") && lines[0].ends_with('…'), "{}", lines[0]);
    let unit = |line: &&str| line.trim_end().rsplit("  ").next().map(str::to_owned);
    let mean = lines.iter().find(|line| line.starts_with("  Mean")).expect("there is a mean");
    assert_eq!(unit(mean).as_deref(), Some("ms"), "{mean}");
    assert_eq!(mean.width(), head + "  ms".width(), "the values end where the names end");
    let requests = lines.iter().find(|line| line.starts_with("  Requests")).expect("requests");
    assert_eq!(requests.width(), head, "a count has no unit");
    assert!(text.contains("VIOLATED INVARIANT: parts do not add up"), "{text}");
}

#[test]
fn colour_only_on_request() {
    let [run, _] = runs();
    assert!(!single(&run.results, Style { ansi: false }).contains('\u{1b}'));
    assert!(single(&run.results, Style { ansi: true }).contains("\u{1b}[1m"));
    let text = single(&run.results, Style::default());
    assert!(text.contains("system/disk (hard-disk): busy"), "{text}");
    assert!(text.contains(&run.results.fingerprint), "{text}");
}

#[test]
fn a_throttled_component_says_how_warm_it_became_and_for_how_long() {
    let [mut run, _] = runs();
    let disk = run.results.components.get_mut("system/disk").expect("it is in the sample");
    let times = [("none", 250), ("light", 700), ("heavy", 50)];
    disk.thermal = Some(Thermal {
        temperature_celsius_max: 81.26,
        throttling_ns: times.map(|(state, ns)| (state.to_owned(), ns)).into(),
        ..Thermal::default()
    });
    let text = single(&run.results, Style::default());
    assert!(text.contains("up to 81.3 °C, throttled 75 % of the time"), "{text}");
}

#[test]
fn json_is_one_document_that_reads_back() {
    let [run, _] = runs();
    let text = json::pretty(&run.results);
    assert!(text.ends_with("}\n"));
    let back: hybridsim_observe::RunResults = serde_json::from_str(&text).expect("our own JSON");
    assert_eq!(back, run.results);
}

#[test]
fn wide_tables_have_numbers_and_a_legend() {
    let title =
        |number: usize| format!("A system with a name of more than forty letters, {number}");
    let runs: Vec<Run> = (1..=10).map(|number| sample::run("disk", &title(number))).collect();
    let results: Vec<_> = runs.iter().map(|run| &run.results).collect();
    let text = table(&results, Style::default());
    assert!(text.lines().all(|line| line.width() <= 130), "{text}");
    for number in 1..=10 {
        assert!(text.contains(&format!("[{number}] {}\n", title(number))), "{text}");
    }
    let few = table(&results[..2], Style::default());
    assert!(!few.contains("[1]"), "{few}");
}

#[test]
fn a_page_starts_with_runs_that_stopped_early() {
    let [whole, mut broken] = runs();
    broken.results.complete = false;
    broken.results.label.title = "Cut <off>".to_owned();
    let page = html::page("Both", &[whole.clone(), broken]);
    let notice = page.find("<strong>Cut &lt;off&gt;</strong> stopped early");
    assert!(notice.is_some_and(|at| at < page.find("<table").expect("the summary")));
    assert!(!html::page("One", &[whole]).contains("stopped early"));
}

#[test]
fn further_columns_are_shown_by_path_and_unknown_ones_rejected() {
    let runs = runs();
    let both = [&runs[0].results, &runs[1].results];
    let show = |paths: &[&str]| {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        columns(&both, &paths, Style::default())
    };
    let text = show(&["latency_ns.all.count", "components.system/disk.seeks"]).expect("known");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].trim().starts_with("latency_ns.all.count"), "{text}");
    assert!(lines[1].ends_with("36,000"), "{text}");
    assert_eq!(lines[1].width(), lines[2].width(), "{text}");
    let error = show(&["latency_ns.all.p9"]).expect_err("there is no such key");
    assert!(error.contains("p99") && error.contains("latency_ns.all.p9"), "{error}");
}
