//! Finds the format of a trace by its content, and reports what else it could be.

use super::columns;
use super::five_columns::{self, Reading};
use super::{Confidence, FileHead, FormatEntry};
use hybridsim_config::param::{Settings, Value};

/// Readings whose scores are closer than this cannot be distinguished: the user must choose.
const UNDECIDED: f64 = 0.75;
/// Readings that score lower than the best by this much are ruled out.
const RULED_OUT: f64 = 2.0;
/// No reading with a lower score is taken.
const IMPLAUSIBLE: f64 = -2.0;

/// Detection of the format of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detection {
    /// The reading, as `format` takes it: a name, or a table with parameters.
    pub reading: String,
    /// Evidence; empty if the format was given or has an unmistakable mark.
    pub evidence: String,
    /// Other plausible readings, which give different requests.
    pub others: Vec<OtherReading>,
}

/// A plausible reading that was not chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherReading {
    /// As `format` takes it.
    pub reading: String,
    /// Size and duration that the trace would have.
    pub effect: String,
}

impl Detection {
    /// Whether the format is uncertain.
    pub const fn is_guess(&self) -> bool {
        !self.evidence.is_empty()
    }

    /// The warning about a guess.
    pub fn warning(&self) -> Option<String> {
        let Self { reading, evidence, others } = self;
        if !self.is_guess() {
            return None;
        }
        let also: Vec<String> =
            others.iter().map(|other| format!("{} ({})", other.reading, other.effect)).collect();
        let also = match also.as_slice() {
            [] => String::new(),
            list => format!("; also possible: {}", list.join(", ")),
        };
        Some(format!(
            "the format is a guess: read as {reading} ({evidence}){also}; confirm or correct it \
             with --format (`workload.format`)"
        ))
    }
}

/// A chosen format with the settings that the content suggests.
pub(super) struct Choice<'a> {
    pub entry: &'a FormatEntry,
    pub settings: Settings,
    pub detection: Detection,
    /// Names of all formats that accept the content.
    pub also: Vec<&'static str>,
}

/// The most likely format of `head`.
pub(super) fn choose<'a>(
    entries: &'a [FormatEntry],
    head: &FileHead<'_>,
) -> Result<Choice<'a>, String> {
    let candidates: Vec<_> = entries.iter().map(|entry| ((entry.sniff)(head), entry)).collect();
    let best = candidates.iter().map(|(confidence, _)| *confidence).max().unwrap_or(Confidence::No);
    // Names of columns outweigh lines that might be read as something else.
    if best == Confidence::No || (best < Confidence::Likely && columns::is_named(head)) {
        const NUMBERS: &str =
            "{ kind = \"columns\", time = \"1\", op = \"2\", offset = \"3\", size = \"4\" }";
        let columns = match columns::suggestion(head) {
            Some(named) => format!("its columns, with their units: --format '{named}'"),
            None => format!("its columns: --format '{NUMBERS}'"),
        };
        return Err(format!(
            "the content matches no known trace format; name it with --format (`format`) if it is \
             one of {}, or describe {columns}",
            super::names(entries)
        ));
    }
    let top: Vec<_> =
        candidates.iter().filter(|(c, _)| *c == best).map(|(_, entry)| *entry).collect();
    let of_family = top.iter().all(|entry| five_columns::NAMES.contains(&entry.description.name));
    let (entry, settings, detection) =
        if of_family { weigh(&top, head)? } else { single(&top, best)? };
    let others = candidates
        .iter()
        .filter(|(c, e)| *c > Confidence::No && e.description.name != entry.description.name);
    let also = others.map(|(_, entry)| entry.description.name).collect();
    Ok(Choice { entry, settings, detection, also })
}

type Chosen<'a> = (&'a FormatEntry, Settings, Detection);

/// The only format of `top`.
fn single<'a>(top: &[&'a FormatEntry], confidence: Confidence) -> Result<Chosen<'a>, String> {
    let [entry] = top else {
        let names: Vec<_> = top.iter().map(|entry| entry.description.name).collect();
        return Err(format!(
            "the content matches several formats; name the right one with --format (`format`): {}",
            names.join(", ")
        ));
    };
    let evidence = match confidence {
        Confidence::Certain => "",
        Confidence::Likely => "its first records have plausible values, but nothing marks it",
        _ => "most of its first lines can be read, and as no other format",
    };
    let (reading, evidence) = (entry.description.name.to_owned(), evidence.to_owned());
    let detection = Detection { reading, evidence, others: Vec::new() };
    Ok((entry, Settings::default(), detection))
}

/// The most plausible reading of five columns.
fn weigh<'a>(top: &[&'a FormatEntry], head: &FileHead<'_>) -> Result<Chosen<'a>, String> {
    let mut readings = five_columns::readings(head);
    readings.retain(|reading| top.iter().any(|e| e.description.name == reading.format));
    readings.sort_by(|one, other| other.score.total_cmp(&one.score));
    let Some((best, rest)) = readings.split_first() else {
        return single(top, Confidence::Possible);
    };
    if best.score < IMPLAUSIBLE {
        return Err(format!(
            "the content has the five columns of several formats, but implausible values in each \
             (as {}: {}; {}); describe its columns with --format '{{ kind = \"columns\", ... }}' \
             (`format`), or name a format",
            text(best),
            best.effect,
            best.evidence()
        ));
    }
    let plausible: Vec<&Reading> = rest
        .iter()
        .filter(|other| other.score > best.score - RULED_OUT && other.score > IMPLAUSIBLE)
        .collect();
    if plausible.first().is_some_and(|next| next.score > best.score - UNDECIDED) {
        let list: Vec<String> = std::iter::once(best)
            .chain(plausible)
            .map(|reading| format!("{} ({})", text(reading), reading.effect))
            .collect();
        return Err(format!(
            "the content can be read in several ways with different results, and no reading \
             stands out: {}; name the right one with --format (`format`)",
            list.join(", ")
        ));
    }
    let others: Vec<_> = plausible
        .iter()
        .map(|other| OtherReading { reading: text(other), effect: other.effect.clone() })
        .collect();
    let evidence = match others.is_empty() {
        true => String::new(),
        false => format!("{}; {}", best.effect, best.evidence()),
    };
    let entry = top.iter().copied().find(|entry| entry.description.name == best.format);
    let mut settings = Settings::default();
    if let Some(unit) = best.time_unit {
        settings.set("time_unit", Value::Text(unit.to_owned()));
    }
    let detection = Detection { reading: text(best), evidence, others };
    Ok((entry.expect("readings of other formats were removed"), settings, detection))
}

/// A reading as `format` takes it.
fn text(reading: &Reading) -> String {
    match reading.time_unit {
        None => reading.format.to_owned(),
        Some(unit) => {
            format!("{{ kind = \"{}\", time_unit = \"{unit}\" }}", reading.format)
        }
    }
}
