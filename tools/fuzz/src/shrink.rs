//! Removal of everything from a failing scenario that the failure does not need.

use crate::Verdict;
use toml::{Table, Value};

/// Scenarios tried at most.
const TRIED_MAX: usize = 400;

/// One change of a scenario, at the keys that lead to the value.
struct Edit {
    path: Vec<String>,
    /// The value instead; nothing, to remove the key.
    to: Option<Value>,
}

/// A smaller scenario that fails in the same way as `scenario` does for `reason`; `judge` runs one.
pub(crate) fn shrink(
    scenario: &str,
    reason: &str,
    mut judge: impl FnMut(String) -> Verdict,
) -> String {
    let (kind, mut smallest) = (kind(reason), scenario.to_owned());
    let mut tried = 0;
    // Each round begins at the first edit again, until none is left that keeps the failure.
    while let Ok(table) = smallest.parse::<Table>() {
        let smaller = edits(&table).into_iter().find_map(|edit| {
            if tried == TRIED_MAX {
                return None;
            }
            let text = applied(&table, &edit)?.to_string();
            tried += 1;
            match judge(text.clone()) {
                Verdict::Failed { reason, .. } if self::kind(&reason) == kind => Some(text),
                _ => None,
            }
        });
        match smaller {
            Some(text) => smallest = text,
            None => break,
        }
    }
    smallest
}

/// The part of a reason that a smaller scenario shares: its words, without numbers, units, paths
/// and the like.
fn kind(reason: &str) -> String {
    let is_word = |word: &&str| word.len() > 2 && word.chars().all(char::is_alphabetic);
    let first = reason.lines().next().unwrap_or(reason);
    let words = first.split([' ', ':', ',', ';', '`', '\'']).filter(is_word);
    words.take(8).collect::<Vec<_>>().join(" ")
}

/// The edits of `scenario`, the largest ones first.
fn edits(scenario: &Table) -> Vec<Edit> {
    let mut edits = Vec::new();
    let path = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<String>>();
    let requests = ["workload", "generator", "requests"];
    let count = requests
        .iter()
        .try_fold(Value::from(scenario.clone()), |value, key| value.get(key).cloned());
    if let Some(count) = count.and_then(|it| it.as_integer()).filter(|count| *count > 1) {
        edits.push(Edit { path: path(&requests), to: Some((count / 2).into()) });
    }
    let components = scenario.get("component").and_then(Value::as_table);
    for (name, component) in components.into_iter().flatten() {
        edits.push(Edit { path: path(&["component", name]), to: None });
        let simplest = simplest();
        if component.get("kind") != simplest.get("kind") {
            edits.push(Edit { path: path(&["component", name]), to: Some(simplest) });
        }
    }
    if scenario.get("run").is_some_and(|run| run.get("power_cut_every").is_some()) {
        edits.push(Edit { path: path(&["run", "power_cut_every"]), to: None });
    }
    for (key, value) in [("scheduler", Value::from("fcfs")), ("queue_depth", Value::from(1))] {
        if scenario.get("host").and_then(|host| host.get(key)).is_some_and(|now| *now != value) {
            edits.push(Edit { path: path(&["host", key]), to: Some(value) });
        }
    }
    for (name, component) in components.into_iter().flatten() {
        keys(component, &mut path(&["component", name]), &mut edits);
    }
    edits
}

/// Adds the removal of each key of `value`, and of those inside.
fn keys(value: &Value, path: &mut Vec<String>, edits: &mut Vec<Edit>) {
    for (key, inner) in value.as_table().into_iter().flatten() {
        path.push(key.clone());
        if key != "kind" {
            edits.push(Edit { path: path.clone(), to: None });
        }
        keys(inner, path, edits);
        path.pop();
    }
}

fn simplest() -> Value {
    let keys = [("kind", "constant-device"), ("capacity", "16MiB"), ("latency", "10us")];
    Value::Table(keys.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect())
}

/// `scenario` after `edit`.
fn applied(scenario: &Table, edit: &Edit) -> Option<Table> {
    let mut changed = scenario.clone();
    let (last, outer) = edit.path.split_last()?;
    let mut table = &mut changed;
    for key in outer {
        table = table.get_mut(key)?.as_table_mut()?;
    }
    match &edit.to {
        Some(value) => table.insert(last.clone(), value.clone()),
        None => table.remove(last),
    };
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_of_one_kind_whatever_their_numbers() {
        let same = |one: &str, other: &str| kind(one) == kind(other);
        assert!(same(
            "at 12 ns: the phases of a sum to 3 ns",
            "at 9 s: the phases of a sum to 4 s"
        ));
        assert!(same("host/c1/c2: state times sum to 7", "host/c3: state times sum to 9"));
        assert!(!same("at 12 ns: the phases of it", "at 12 ns more requests had completed"));
        assert!(!same("panicked: index out of bounds", "panicked: the slot is free"));
        assert!(!same("3 requests arrived but 2 completed", "host: 3 ns of state times by 2 ns"));
    }

    #[test]
    fn only_what_the_failure_needs_is_left() {
        let scenario = "system = \"top\"\n[run]\nseed = 7\npower_cut_every = 50\n\
                        [host]\nmode = \"open\"\nqueue_depth = 9\nscheduler = \"sptf\"\n\
                        [workload]\ngenerator = { kind = \"fio\", requests = 2000 }\n\
                        [component.top]\nkind = \"concat\"\nmembers = [\"a\", \"b\"]\n\
                        [component.a]\nkind = \"ssd\"\nspare = 3\n\
                        ftl = { kind = \"page\", gc = 1 }\n\
                        [component.b]\nkind = \"disk\"\nheads = 2\n";
        // It fails with collection in an SSD, for whatever number.
        let judge = |text: String| {
            let broken = text.contains("gc = 1") && text.contains("members");
            let requests = text.split("requests = ").nth(1).map_or(0, |it| {
                it.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
            });
            let reason = format!("pages lost: {requests}");
            match broken && requests >= 100 {
                true => Verdict::Failed { scenario: text, reason },
                false => Verdict::Failed { scenario: text, reason: "panicked".to_owned() },
            }
        };
        let shrunk = shrink(scenario, "pages lost: 2000", judge);
        let table: Table = shrunk.parse().expect("TOML");
        assert_eq!(table["workload"]["generator"]["requests"].as_integer(), Some(125));
        let components = table["component"].as_table().expect("a table");
        assert_eq!(components.keys().collect::<Vec<_>>(), ["top", "a"]);
        let ssd = table["component"]["a"].as_table().expect("a table");
        assert_eq!(ssd.keys().collect::<Vec<_>>(), ["kind", "ftl"]);
        assert!(table["run"].get("power_cut_every").is_none());
        assert_eq!(table["host"]["scheduler"].as_str(), Some("fcfs"));
    }
}
