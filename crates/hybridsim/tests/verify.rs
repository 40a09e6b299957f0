//! The command that checks the installed program.

#[path = "common/command.rs"]
mod command;

use command::{call, document, fails, text};

#[test]
fn all_checks_hold() {
    let outcomes = document(&["verify", "--json"]);
    let outcomes = outcomes.as_array().expect("a list");
    for group in ["page-map", "gc", "map-unit", "disk", "raid", "cache", "repeat"] {
        let is_in = |name: &str| name.starts_with(group);
        let name = |it: &serde_json::Value| it["check"].as_str().is_some_and(is_in);
        assert!(outcomes.iter().any(name), "no check of {group}");
    }
    for outcome in outcomes {
        assert_eq!(outcome["ok"], true, "{outcome:#}");
        let figure = |key: &str| outcome[key].as_f64().expect("a number");
        let difference = figure("simulated") / figure("oracle") - 1.0;
        assert!(difference.abs() <= figure("tolerance"), "{outcome:#}");
    }
}

#[test]
fn names_select_checks_and_a_list_runs_none() {
    let one = text(&call(&["verify", "map-unit"]).stdout);
    assert_eq!(one.lines().count(), 4, "{one}");
    assert!(one.contains("map-unit-gc") && one.ends_with("all 2 checks hold\n"), "{one}");
    let list = text(&call(&["verify", "--list", "gc", "repeat"]).stdout);
    assert!(list.contains("Desnoyers 2012") && !list.contains("disk"), "{list}");
    let message = fails(2, &["verify", "gc-fivo"]);
    assert!(message.contains("did you mean `gc-fifo`?"), "{message}");
}
