//! What is wrong with a scenario, for an editor.

use hybridsim_config::diagnostic::{Diagnostic, Diagnostics};
use hybridsim_simulation::run::RunError;
use serde_json::{Value, json};

/// Problems with the lines that they are about: of the scenario, which is the first source.
pub fn problems(diagnostics: &Diagnostics) -> Value {
    let list = diagnostics.list.iter().map(|problem| one(diagnostics, problem));
    json!({ "problems": list.collect::<Vec<_>>(), "text": diagnostics.to_string() })
}

fn one(diagnostics: &Diagnostics, problem: &Diagnostic) -> Value {
    let place = problem.span.as_ref().map(|span| {
        let source = &diagnostics.sources[span.file];
        let (line, column) = diagnostics.position(span);
        let length = source.text.get(span.range.clone()).map_or(0, |text| text.chars().count());
        json!({
            "source": if span.file == 0 { None } else { Some(&source.name) },
            "line": line,
            "column": column,
            "length": length,
        })
    });
    json!({
        "key": problem.key,
        "message": problem.message,
        "help": problem.help,
        "place": place,
    })
}

/// Why a run did not begin.
pub fn refusal(error: &RunError) -> Value {
    match error {
        RunError::Scenario(diagnostics) => problems(diagnostics),
        RunError::Trace(message) => problems(&Diagnostics::single(message.clone())),
    }
}
