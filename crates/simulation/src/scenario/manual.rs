//! Words that the manual defines in tables: result keys, the glossary, what other tools call
//! things, and the keys of the papers.

use hybridsim_data::{BIBLIOGRAPHY, GLOSSARY, RESULTS, WORDS};

/// Each page with what its words are.
const PAGES: [(&str, &str); 4] = [
    ("key of results", RESULTS),
    ("glossary", GLOSSARY),
    ("other tools", WORDS),
    ("source", BIBLIOGRAPHY),
];

/// A row of a table: the words it defines, and where and how.
struct Row<'a> {
    words: Vec<String>,
    shown: String,
    section: &'a str,
    meaning: String,
}

/// The manual's text about `word`, whatever its case; empty if there is none.
pub fn define(word: &str) -> String {
    let word = word.to_lowercase();
    let mut out = String::new();
    for (page, text) in PAGES {
        for row in rows(text).filter(|row| row.words.contains(&word)) {
            let section = match row.section {
                "" => String::new(),
                section => format!("; {section}"),
            };
            out += &format!("{} ({page}{section})\n  {}\n", row.shown, row.meaning);
        }
    }
    out
}

/// All words the manual defines.
pub fn words() -> impl Iterator<Item = String> {
    PAGES.iter().flat_map(|(_, text)| rows(text)).flat_map(|row| row.words)
}

/// The reference of the paper with this key.
pub fn paper(key: &str) -> Option<String> {
    let (_, text) = PAGES[3];
    rows(text).find(|row| row.shown == key).map(|row| row.meaning)
}

/// The rows of all tables whose first column is a word and whose last is its meaning.
fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    let mut section = "";
    let following = text.lines().skip(1).chain([""]);
    text.lines().zip(following).filter_map(move |(line, next)| {
        if line.starts_with('#') {
            section = line.trim_start_matches('#').trim();
        }
        // The head of a table, and the rule below it.
        if next.starts_with("|-") || line.starts_with("|-") {
            return None;
        }
        let cells: Vec<&str> = line.strip_prefix('|')?.trim_end_matches('|').split(" | ").collect();
        let (first, rest) = cells.split_first().filter(|(_, rest)| !rest.is_empty())?;
        let shown = plain(first);
        let meaning: Vec<String> = rest.iter().map(|cell| plain(cell)).collect();
        let meaning: Vec<String> = meaning.into_iter().filter(|cell| !cell.is_empty()).collect();
        Some(Row {
            words: words_of(&shown),
            shown,
            section: at(section),
            meaning: meaning.join(": "),
        })
    })
}

/// Chapters of one word structure a page; sections of results say where a key is.
fn at(section: &str) -> &str {
    if section.contains(' ') { section } else { "" }
}

/// Words of a cell such as `latency (response time)` or `slip, spare`.
fn words_of(cell: &str) -> Vec<String> {
    let parts = cell.split([',', '(', ')']).map(|part| part.trim().to_lowercase());
    parts.filter(|part| !part.is_empty()).collect()
}

/// Text without the marks of Markdown: backticks go, links keep their text.
fn plain(cell: &str) -> String {
    let mut out = String::new();
    let mut rest = cell.trim();
    while let Some((before, link)) = rest.split_once('[') {
        out += before;
        rest = match link
            .split_once("](")
            .and_then(|(text, target)| target.split_once(')').map(|(_, after)| (text, after)))
        {
            Some((text, after)) => {
                out += text;
                after
            }
            None => {
                out.push('[');
                link
            }
        };
    }
    out += rest;
    out.replace(['`', '*'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_every_page() {
        for (word, expected) in [
            ("p99", "99th percentile"),
            ("write amplification", "Bytes programmed divided by"),
            ("response time", "completion"),
            ("WAF", "write_amplification"),
            ("iodepth", "queue_depth"),
            ("queue", "background work"),
            ("repeat", "workload.loops"),
            ("rw=randread", "fio"),
            ("konanki", "Master's thesis"),
        ] {
            let found = define(word);
            assert!(found.contains(expected), "{word}: {found}");
        }
        assert_eq!(define("key"), "");
        assert_eq!(define("---"), "");
    }

    /// All words that the page of other tools' words refers to exist here.
    #[test]
    fn other_words_lead_to_keys_and_entries() {
        let registry = crate::registry::standard();
        let (_, text) = PAGES[2];
        let mut seen = 0;
        for line in text.lines().filter(|line| line.starts_with("| ")) {
            let here = line.rsplit(" | ").next().expect("a last cell");
            for word in here.split('`').skip(1).step_by(2) {
                let is_key = |c: char| c.is_ascii_lowercase() || "_.-".contains(c);
                if word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(is_key) {
                    let found = crate::scenario::explain::explain(&registry, word);
                    assert!(found.is_ok(), "{line}: {found:?}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 40, "only {seen} words were found");
    }

    #[test]
    fn cells_are_plain_text() {
        assert_eq!(plain(" `a` and [b](c.md#d), *e* [f] "), "a and b, e [f]");
    }
}
