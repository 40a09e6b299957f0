//! What is wrong with a scenario, shown where it is written.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet, renderer::DecorStyle};
use std::fmt;
use std::ops::Range;

/// A text that scenario values come from: a file, a preset, a `--set` option.
#[derive(Clone, Debug)]
pub struct SourceText {
    /// File name, or what else to call it.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A place in one of the texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Number of the text.
    pub file: usize,
    /// Bytes of it.
    pub range: Range<usize>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where, if it is written anywhere.
    pub span: Option<Span>,
    /// The key path, such as `component.disk.rpm`.
    pub key: String,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

/// Everything wrong with a scenario.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    /// The texts that spans point into.
    pub sources: Vec<SourceText>,
    /// The list, in order of discovery.
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// A single problem without a place.
    pub fn single(message: impl Into<String>) -> Self {
        let diagnostic =
            Diagnostic { span: None, key: String::new(), message: message.into(), help: None };
        Self { sources: Vec::new(), list: vec![diagnostic] }
    }

    /// Line and column (in characters) of a span's start, counted from 1.
    pub fn position(&self, span: &Span) -> (usize, usize) {
        let text = &self.sources[span.file].text;
        let before = &text.as_bytes()[..span.range.start.min(text.len())];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let column = 1 + String::from_utf8_lossy(&before[line_start..]).chars().count();
        (1 + before.iter().filter(|&&byte| byte == b'\n').count(), column)
    }

    fn render_one(&self, diagnostic: &Diagnostic) -> String {
        let title = if diagnostic.key.is_empty() {
            diagnostic.message.clone()
        } else {
            format!("{}: {}", diagnostic.key, diagnostic.message)
        };
        let mut group = Level::ERROR
            .primary_title(title.as_str())
            .elements([] as [Snippet<'_, annotate_snippets::Annotation<'_>>; 0]);
        if let Some(span) = &diagnostic.span {
            let source = &self.sources[span.file];
            let end = span.range.end.min(source.text.len());
            let start = span.range.start.min(end);
            group = group.element(
                Snippet::source(source.text.as_str())
                    .path(source.name.as_str())
                    .annotation(AnnotationKind::Primary.span(start..end)),
            );
        }
        if let Some(help) = &diagnostic.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        Renderer::plain().decor_style(DecorStyle::Ascii).render(&[group])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [Diagnostic { span: None, key, .. }] = self.list.as_slice()
            && key.is_empty()
        {
            // Not about what a scenario says, and there is no list to count.
            return f.write_str(&self.render_one(&self.list[0]));
        }
        for diagnostic in &self.list {
            writeln!(f, "{}", self.render_one(diagnostic))?;
        }
        let count = self.list.len();
        write!(f, "{count} problem{} in the scenario", if count == 1 { "" } else { "s" })
    }
}

impl std::error::Error for Diagnostics {}
