//! Reproductions: published claims beside simulated values, as a table, an HTML page and JSON.
//! `hybridsim-reproduce` defines and judges the claims.

use crate::document::Document;
use crate::json::pretty;
use crate::terminal::{Style, clean};
use minijinja::{Value, context};
use serde::Serialize;
use std::fmt::{self, Write};

const DOCUMENT: Document<'_> = Document {
    template: include_str!("../assets/study.html"),
    styles: &[include_str!("../assets/study.css")],
    scripts: &[
        include_str!("../assets/figure.js"),
        include_str!("../assets/lines.js"),
        include_str!("../assets/theme.js"),
        include_str!("../assets/study.js"),
    ],
};

/// A reproduced figure or table of a paper, or a set of measured drives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Study {
    /// Name on the command line, such as `flashsim/fig6`.
    pub experiment: String,
    pub title: String,
    /// Method and assumptions.
    pub method: String,
    pub rows: Vec<Row>,
    pub plots: Vec<Plot>,
}

/// A published claim beside the simulated value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Id of the claim, such as `F25`.
    pub id: String,
    /// Figure or table it belongs to.
    pub experiment: String,
    /// The statement of the source.
    pub claim: String,
    /// The published value.
    pub published: Option<Quantity>,
    /// The simulated value.
    pub ours: Option<Quantity>,
    /// Unit of both values.
    pub unit: String,
    /// The difference that counts as agreement.
    pub tolerance: String,
    pub verdict: Verdict,
    /// The source does not say it: it follows from what it says, or is expected of a model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unpublished: bool,
    /// Why it differs or cannot be compared; or a remark.
    pub reason: Option<String>,
    /// The runs at several seeds, where there were several; `ours` has their means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// The simulated value at other settings of what the source leaves open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sensitivity: Vec<Sensitivity>,
}

/// Runs of one claim at several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Runs, each at a seed of its own.
    pub seeds: u32,
    /// Runs whose values agree with the claim.
    pub agree: u32,
    /// Smallest and largest value, where the claim is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((low, high)) = self.range {
            let number = crate::figures::number;
            write!(f, "{} to {}; ", number(low), number(high))?;
        }
        write!(f, "agrees at {} of {} seeds", self.agree, self.seeds)
    }
}

/// A claim at another setting of a parameter that the source leaves open.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sensitivity {
    /// The parameter and its value.
    pub setting: String,
    /// The simulated value there.
    pub ours: Quantity,
    /// Whether the claim holds there.
    pub agrees: bool,
}

impl fmt::Display for Sensitivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agrees = if self.agrees { "agrees" } else { "differs" };
        write!(f, "{}: {} ({agrees})", self.setting, self.ours)
    }
}

/// A number, or words where the claim is not numeric.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Quantity {
    Number(f64),
    Words(String),
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => f.write_str(&crate::figures::number(*value)),
            Self::Words(words) => f.write_str(words),
        }
    }
}

/// Outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within the tolerance.
    Reproduced,
    /// Outside the tolerance.
    Differs,
    /// Runs that differ in their seed alone disagree on the claim.
    Undecided,
    /// The claim could not be tested.
    NotComparable,
    /// Agreement by construction: the source's number is an input, or both sides are the same
    /// calculation.
    Given,
}

impl Verdict {
    /// The name used in tables and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Differs => "differs",
            Self::Undecided => "undecided",
            Self::NotComparable => "not-comparable",
            Self::Given => "given",
        }
    }
}

/// A line chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plot {
    pub title: String,
    pub caption: String,
    pub x: Axis,
    pub y: Axis,
    pub curves: Vec<Curve>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Axis {
    pub label: String,
    pub unit: String,
    /// Points at or below zero are left out of a logarithmic axis.
    pub logarithmic: bool,
}

impl Axis {
    pub fn linear(label: &str, unit: &str) -> Self {
        Self { label: label.to_owned(), unit: unit.to_owned(), logarithmic: false }
    }

    pub fn logarithmic(label: &str, unit: &str) -> Self {
        Self { logarithmic: true, ..Self::linear(label, unit) }
    }
}

/// A line of a chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    pub name: String,
    /// Points by ascending x.
    pub points: Vec<(f64, f64)>,
    /// Whether the curve is published data; drawn dashed.
    pub published: bool,
    /// Whether the curve is a step function, such as a distribution.
    pub stepped: bool,
}

impl Curve {
    /// A line of simulated values.
    pub fn ours(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.to_owned(), points, published: false, stepped: false }
    }

    /// A line of published values.
    pub fn published(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { published: true, ..Self::ours(name, points) }
    }

    /// Makes the line a step function.
    #[must_use]
    pub fn stepped(self) -> Self {
        Self { stepped: true, ..self }
    }
}

/// Number of claims of the sources by verdict: reproduced, differs, undecided, not comparable,
/// given.
pub fn tally(studies: &[Study]) -> [usize; 5] {
    let rows = || studies.iter().flat_map(|study| &study.rows).filter(|row| !row.unpublished);
    use Verdict::{Differs, Given, NotComparable, Reproduced, Undecided};
    [Reproduced, Differs, Undecided, NotComparable, Given]
        .map(|verdict| rows().filter(|row| row.verdict == verdict).count())
}

/// Summary of the verdicts in one sentence.
pub fn tally_sentence(studies: &[Study]) -> String {
    let [reproduced, differs, undecided, not, given] = tally(studies);
    let all = studies.iter().flat_map(|study| &study.rows);
    let more = match all.filter(|row| row.unpublished).count() {
        0 => String::new(),
        more => format!("; {more} more not of the sources"),
    };
    format!(
        "{reproduced} claims reproduced, {differs} differ, {undecided} undecided, {not} not \
         comparable; {given} given (agreement by construction){more}"
    )
}

/// Rows that agree at each setting of what the source leaves open, as run first: setting, rows
/// that agree, rows that were run there. Rows that cannot fail do not count. Empty where no row was
/// run at other settings.
pub fn by_setting(study: &Study) -> Vec<(String, usize, usize)> {
    let judged = [Verdict::Reproduced, Verdict::Differs, Verdict::Undecided];
    let rows = study.rows.iter();
    let rows = rows.filter(|row| judged.contains(&row.verdict) && !row.unpublished);
    let rows: Vec<&Row> = rows.filter(|row| !row.sensitivity.is_empty()).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let reproduced = rows.iter().filter(|row| row.verdict == Verdict::Reproduced).count();
    let mut settings = vec![("as run".to_owned(), reproduced, rows.len())];
    for other in rows.iter().flat_map(|row| &row.sensitivity) {
        match settings[1..].iter().position(|(name, ..)| *name == other.setting) {
            Some(at) => {
                let (_, agree, of) = &mut settings[at + 1];
                *agree += usize::from(other.agrees);
                *of += 1;
            }
            None => settings.push((other.setting.clone(), usize::from(other.agrees), 1)),
        }
    }
    settings
}

/// All claims as text.
pub fn terminal(studies: &[Study], style: Style) -> String {
    let mut out = String::new();
    for study in studies {
        let head = format!("{}  {}", study.experiment, study.title);
        let _ = writeln!(out, "{}", style.paint("1", &clean(&head)));
        for row in &study.rows {
            terminal_row(&mut out, row, style);
        }
        for (setting, agree, of) in by_setting(study) {
            let _ = writeln!(out, "  {agree:>3} of {of:>3} rows agree: {}", clean(&setting));
        }
        out.push('\n');
    }
    let _ = writeln!(out, "{}", tally_sentence(studies));
    out
}

fn terminal_row(out: &mut String, row: &Row, style: Style) {
    let (mark, colour) = match row.verdict {
        Verdict::Reproduced => ("=", "32"),
        Verdict::Differs => ("x", "31"),
        Verdict::Undecided => ("~", "33"),
        Verdict::NotComparable => ("?", "33"),
        Verdict::Given => (".", "2"),
    };
    let _ = writeln!(
        out,
        "  {} {:<4} {}",
        style.paint(colour, mark),
        clean(&row.id),
        clean(&row.claim)
    );
    let side = |quantity: &Option<Quantity>| match quantity {
        Some(Quantity::Number(_)) if !row.unit.is_empty() => {
            format!(
                "{} {}",
                quantity.as_ref().map(ToString::to_string).unwrap_or_default(),
                row.unit
            )
        }
        Some(other) => other.to_string(),
        None => "–".to_owned(),
    };
    let line = format!(
        "published {}; simulated {}; tolerance {}; {}",
        side(&row.published),
        side(&row.ours),
        row.tolerance,
        row.verdict.word()
    );
    let _ = writeln!(out, "         {}", clean(&line));
    if let Some(spread) = &row.spread {
        let _ = writeln!(out, "         {}", clean(&spread.to_string()));
    }
    for other in &row.sensitivity {
        let _ = writeln!(out, "         with {}", clean(&other.to_string()));
    }
    if let Some(reason) = &row.reason {
        let _ = writeln!(out, "         {}", style.paint("2", &clean(reason)));
    }
}

/// All rows as one JSON document; `docs/papers/reproduce.md` defines its keys.
///
/// # Panics
/// Never: rows hold only plain values.
pub fn json(studies: &[Study]) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        rows: Vec<&'a Row>,
    }
    let rows = studies.iter().flat_map(|study| &study.rows).collect();
    pretty(&Document { rows })
}

/// The studies as one self-contained HTML document.
///
/// # Panics
/// Never for any content: the template is fixed and tested.
pub fn page(title: &str, studies: &[Study]) -> String {
    let shown: Vec<Value> = studies.iter().map(shown).collect();
    let content = context! { tally => tally_sentence(studies), studies => shown };
    DOCUMENT.render(title, content, &studies)
}

/// A study with formatted numbers.
fn shown(study: &Study) -> Value {
    let text = |quantity: &Option<Quantity>| {
        quantity.as_ref().map_or_else(|| "–".to_owned(), ToString::to_string)
    };
    let rows: Vec<Value> = study
        .rows
        .iter()
        .map(|row| {
            context! {
                id => &row.id, claim => &row.claim, unit => &row.unit, tolerance => &row.tolerance,
                published => text(&row.published), ours => text(&row.ours),
                verdict => row.verdict.word(), reason => &row.reason,
                spread => row.spread.as_ref().map(ToString::to_string),
                sensitivity => row.sensitivity.iter().map(settings).collect::<Vec<_>>(),
            }
        })
        .collect();
    let by_setting: Vec<Value> = by_setting(study)
        .into_iter()
        .map(|(setting, agree, of)| context! { setting, agree, of })
        .collect();
    context! {
        experiment => &study.experiment, title => &study.title, method => &study.method,
            rows => rows, by_setting => by_setting,
    }
}

fn settings(other: &Sensitivity) -> Value {
    let verdict = if other.agrees { Verdict::Reproduced } else { Verdict::Differs };
    let (word, ours) = (verdict.word(), other.ours.to_string());
    context! { setting => &other.setting, ours => ours, class => word, agrees => other.agrees }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study() -> Study {
        let row = |id: &str, verdict, reason: Option<&str>| Row {
            id: id.to_owned(),
            experiment: "009/fig1".to_owned(),
            claim: "a < b".to_owned(),
            published: Some(Quantity::Number(1.5)),
            ours: Some(Quantity::Words("a\u{1b}[31m 1 < b 2".to_owned())),
            unit: "ms".to_owned(),
            tolerance: "± 10 %".to_owned(),
            verdict,
            unpublished: false,
            reason: reason.map(str::to_owned),
            spread: (verdict == Verdict::Undecided).then_some(Spread {
                seeds: 5,
                agree: 3,
                range: Some((1.0, 2.0)),
            }),
            sensitivity: vec![Sensitivity {
                setting: "burst 4".to_owned(),
                ours: Quantity::Number(0.25),
                agrees: false,
            }],
        };
        Study {
            experiment: "009/fig1".to_owned(),
            title: "<script>alert(1)</script>".to_owned(),
            method: "none".to_owned(),
            rows: vec![
                row("X1", Verdict::Reproduced, None),
                row("X2", Verdict::Differs, Some("because")),
                row("X3", Verdict::NotComparable, Some("no data")),
                row("X4", Verdict::Given, None),
                row("X5", Verdict::Undecided, None),
                Row { unpublished: true, ..row("X6", Verdict::Reproduced, None) },
            ],
            plots: vec![],
        }
    }

    #[test]
    fn every_row_is_printed_and_counted() {
        let studies = [study()];
        assert_eq!(tally(&studies), [1, 1, 1, 1, 1]);
        let text = terminal(&studies, Style::default());
        assert!(
            text.contains("published 1.500 ms; simulated a\u{fffd}[31m 1 < b 2; tolerance ± 10 %")
        );
        assert!(text.contains("1 more not of the sources"), "{text}");
        assert!(text.contains("because") && !text.contains('\u{1b}'));
        let json: serde_json::Value = serde_json::from_str(&json(&studies)).expect("valid JSON");
        assert_eq!(json["rows"][0]["published"], 1.5);
        assert_eq!(json["rows"][2]["verdict"], "not-comparable");
        assert_eq!(json["rows"][1]["reason"], "because");
        assert_eq!(json["rows"][3]["verdict"], "given");
        assert!(text.contains("  . X4"), "{text}");
        assert!(text.contains("1 to 2; agrees at 3 of 5 seeds"), "{text}");
        assert!(text.contains("with burst 4: 0.2500 (differs)"), "{text}");
        // Given and not comparable rows do not count, nor those that the source does not have.
        assert!(text.contains("    1 of   3 rows agree: as run"), "{text}");
        assert!(text.contains("    0 of   3 rows agree: burst 4"), "{text}");
        assert_eq!(json["rows"][4]["spread"]["agree"], 3);
        assert!(json["rows"][0].get("spread").is_none());
        assert_eq!(json["rows"][0]["sensitivity"][0]["setting"], "burst 4");
    }

    #[test]
    fn pages_escape_text() {
        let page = page("<b>", &[study()]);
        assert!(!page.contains("<script>alert"));
        assert!(page.contains("&lt;script&gt;alert"));
    }
}
