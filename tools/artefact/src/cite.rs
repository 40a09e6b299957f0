//! What a publication that used the program should cite.

use hybridsim_config::registry::Registry;
use hybridsim_simulation::scenario::Scenario;
use hybridsim_simulation::{presets, workload};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A publication, with the fields of its BibTeX entry besides author and title.
struct Publication {
    key: &'static str,
    kind: &'static str,
    authors: &'static [&'static str],
    title: &'static str,
    fields: &'static [(&'static str, &'static str)],
}

/// The program itself; `CITATION.cff` has the same, which a test checks.
const PROGRAM: Publication = Publication {
    key: "hybridsim",
    kind: "misc",
    authors: &["The hybridsim maintainers"],
    title: "hybridsim: a simulator for storage that mixes media",
    fields: &[("note", concat!("Software, version ", env!("CARGO_PKG_VERSION")))],
};

/// The reproduced papers; `CITATION.cff` has the same.
const PAPERS: &[Publication] = &[
    Publication {
        key: "konanki",
        kind: "mastersthesis",
        authors: &["Konanki, P."],
        title: "An Exploration of Hybrid Hard Disk Designs Using an Extensible Simulator",
        fields: &[
            ("school", "Virginia Polytechnic Institute and State University"),
            ("year", "2008"),
        ],
    },
    Publication {
        key: "bisson-fqueue",
        kind: "inproceedings",
        authors: &["Bisson, T.", "Brandt, S. A."],
        title: "Reducing Hybrid Disk Write Latency with Flash-Backed I/O Requests",
        fields: &[("booktitle", "IEEE MASCOTS"), ("year", "2007")],
    },
    Publication {
        key: "flashsim",
        kind: "techreport",
        authors: &["Kim, Y.", "Tauras, B.", "Gupta, A.", "Nistor, D. M.", "Urgaonkar, B."],
        title: "FlashSim: A Simulator for NAND Flash-based Solid-State Drives",
        fields: &[
            ("institution", "The Pennsylvania State University"),
            ("number", "CSE-09-008"),
            ("year", "2009"),
        ],
    },
    Publication {
        key: "op-fcl",
        kind: "inproceedings",
        authors: &["Oh, Y.", "Choi, J.", "Lee, D.", "Noh, S. H."],
        title: "Caching Less for Better Performance: Balancing Cache Size and Update Cost of \
                Flash Memory Cache in Hybrid Storage Systems",
        fields: &[("booktitle", "USENIX FAST"), ("year", "2012")],
    },
    Publication {
        key: "chang-slc-mlc",
        kind: "article",
        authors: &["Chang, L.-P."],
        title: "A Hybrid Approach to NAND-Flash-Based Solid-State Disks",
        fields: &[
            ("journal", "IEEE Transactions on Computers"),
            ("year", "2010"),
            ("doi", "10.1109/TC.2010.14"),
        ],
    },
];

impl Publication {
    fn bibtex(&self) -> String {
        // An organisation is one name.
        let author = |name: &&str| match name.contains(',') {
            true => escaped(name),
            false => format!("{{{}}}", escaped(name)),
        };
        let authors: Vec<String> = self.authors.iter().map(author).collect();
        let mut text = format!("@{}{{{},\n", self.kind, self.key);
        let mut field = |name: &str, value: &str| {
            writeln!(text, "  {name} = {{{value}}},").expect("a string grows");
        };
        field("author", &authors.join(" and "));
        // The inner braces keep the capitals.
        field("title", &format!("{{{}}}", escaped(self.title)));
        self.fields.iter().for_each(|(name, value)| field(name, &escaped(value)));
        text + "}\n"
    }

    fn text(&self) -> String {
        let fields = self.fields.iter().map(|(name, value)| match *name {
            "doi" => format!("doi:{value}"),
            _ => (*value).to_owned(),
        });
        let fields: Vec<String> = fields.collect();
        format!("{}: {}. {}.\n", self.authors.join(", "), self.title, fields.join(", "))
    }
}

/// A value of a BibTeX field, as LaTeX prints it.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => text.extend(['\\', letter]),
            '\\' => text.push_str("\\textbackslash{}"),
            '~' => text.push_str("\\textasciitilde{}"),
            '^' => text.push_str("\\textasciicircum{}"),
            _ => text.push(letter),
        }
    }
    text
}

/// The program, the reproduced papers and the other sources behind some scenarios.
#[derive(Debug, Default)]
pub struct Citations {
    /// Keys of reproduced papers.
    papers: BTreeSet<&'static str>,
    /// Origins of entries: category, name and text.
    origins: BTreeSet<(String, String, String)>,
}

impl Citations {
    /// Adds what `scenario` uses. The formats of traces that are absent stay unknown.
    pub fn add(&mut self, scenario: &Scenario, registry: &Registry) {
        let formats = workload::trace_formats(scenario, registry);
        let formats = formats.into_iter().map(|format| ("trace-format", format));
        for (category, entry) in scenario.entries(registry).into_iter().chain(formats) {
            if is_published(entry.origin) {
                self.papers.extend(papers_in(entry.origin));
                let words = [category, entry.name, entry.origin].map(str::to_owned);
                self.origins.insert(words.into());
            }
        }
        for name in scenario.components.iter().filter_map(|it| it.preset.as_ref()) {
            let preset =
                presets::load(name, &scenario.base).map_or_else(|_| String::new(), |it| it.text);
            let papers: Vec<_> = papers_in(&preset).collect();
            if !papers.is_empty() {
                self.papers.extend(papers);
                let summary =
                    preset.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
                self.origins.insert(("preset".to_owned(), name.clone(), summary.to_owned()));
            }
        }
    }

    /// As a BibTeX file: what is no entry is a comment.
    pub fn bibtex(&self) -> String {
        let mut text: Vec<String> = self.publications().map(Publication::bibtex).collect();
        // An `@` would begin an entry.
        text.push(
            self.origins().map(|line| format!("% {}\n", line.replace('@', " at "))).collect(),
        );
        text.retain(|part| !part.is_empty());
        text.join("\n")
    }

    /// As text, one source in each line.
    pub fn text(&self) -> String {
        let origins = self.origins().map(|line| line + "\n");
        self.publications().map(Publication::text).chain(origins).collect()
    }

    fn publications(&self) -> impl Iterator<Item = &'static Publication> {
        let used = PAPERS.iter().filter(|paper| self.papers.contains(paper.key));
        [&PROGRAM].into_iter().chain(used)
    }

    fn origins(&self) -> impl Iterator<Item = String> {
        self.origins.iter().map(|(category, name, origin)| format!("{category} {name}: {origin}"))
    }
}

fn papers_in(text: &str) -> impl Iterator<Item = &'static str> {
    PAPERS.iter().map(|paper| paper.key).filter(move |key| text.contains(key))
}

/// Whether an origin names a publication, a standard or a program: by the key of a paper, a year,
/// or a name at its beginning. Others are remarks, such as "common knowledge".
fn is_published(origin: &str) -> bool {
    let mut numbers = origin.split(|letter: char| !letter.is_ascii_digit());
    let has_year =
        numbers.any(|it| it.len() == 4 && (it.starts_with("19") || it.starts_with("20")));
    let is_name = origin.starts_with(char::is_uppercase) && !origin.starts_with("Python class");
    papers_in(origin).next().is_some() || has_year || is_name
}

#[cfg(test)]
mod tests {
    use super::*;

    const CITATION: &str = include_str!("../../../CITATION.cff");

    #[test]
    fn the_citation_file_has_the_same_publications() {
        let (program, references) = CITATION.split_once("\nreferences:\n").expect("references");
        assert!(program.contains(&format!("title: \"{}\"", PROGRAM.title)));
        assert!(program.contains(&format!("- name: {}\n", PROGRAM.authors[0])));
        let references: Vec<&str> = references.split("\n  - type: ").collect();
        assert_eq!(references.len(), PAPERS.len());
        for paper in PAPERS {
            let is_it = |text: &&&str| text.contains(&format!("Key `{}`", paper.key));
            let text = *references.iter().find(is_it).unwrap_or_else(|| panic!("{}", paper.key));
            let author = |name: &&str| {
                let (family, given) = name.split_once(", ").expect("a family and given names");
                format!("family-names: {family}, given-names: {given}}}")
            };
            assert_eq!(text.matches("family-names").count(), paper.authors.len(), "{text}");
            let fields = paper.fields.iter().map(|(_, value)| (*value).to_owned());
            let facts = paper.authors.iter().map(author).chain(fields);
            for fact in facts.chain([paper.title.to_owned()]) {
                assert!(text.contains(&fact), "{fact} is not in\n{text}");
            }
        }
    }

    #[test]
    fn remarks_are_no_publications() {
        let published = [
            "Zhang et al., NSDI 2024 (SIEVE)",
            "konanki, section 3.3",
            "DiskSim 4.0, disksim_ioqueue",
            "common practice; analysed by Desnoyers, SYSTOR 2012",
        ];
        let remarks = [
            "common knowledge",
            "the baseline of the papers",
            "your own",
            "docs/reference/traces.md",
            "Python class policies:Mine",
            "a lower bound for comparison; no real device",
            "",
        ];
        assert!(published.iter().all(|origin| is_published(origin)));
        assert!(!remarks.iter().any(|origin| is_published(origin)));
    }

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(
            escaped(r"R&D: 50% of {a_b} \ ~ ^"),
            r"R\&D: 50\% of \{a\_b\} \textbackslash{} \textasciitilde{} \textasciicircum{}"
        );
    }
}
