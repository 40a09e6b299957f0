//! Columns of tables by the path of a key in the results, such as
//! `components.hybrid/flash.erases`.

use hybridsim_observe::RunResults;
use serde_json::Value;

/// Keys named in an error.
const KEYS_SHOWN: usize = 12;

/// The numbers of a run by their path.
#[derive(Clone, Debug)]
pub struct Numbers(Value);

impl Numbers {
    /// The numbers of `results`.
    pub fn new(results: &RunResults) -> Self {
        Self(serde_json::to_value(results).expect("results can be written as JSON"))
    }

    /// The number at `path`; `None` where there is none or the result is `null`. A flag is 0 or 1.
    pub fn get(&self, path: &str) -> Option<f64> {
        match find(&self.0, path) {
            Ok(Value::Bool(flag)) => Some(f64::from(u8::from(*flag))),
            Ok(value) => value.as_f64(),
            Err(_) => None,
        }
    }

    /// Checks that the results have a number, a flag or `null` at `path`.
    ///
    /// # Errors
    /// Fails when the path ends instead, and which keys are there.
    pub fn check(&self, path: &str) -> Result<(), String> {
        match find(&self.0, path) {
            Ok(Value::Number(_) | Value::Bool(_) | Value::Null) => Ok(()),
            Ok(Value::Object(keys)) => {
                let keys: Vec<&str> = keys.keys().map(String::as_str).collect();
                Err(format!("`{path}` is a table; add one of its keys: {}", list(&keys)))
            }
            Ok(_) => Err(format!("`{path}` is not a number")),
            Err(keys) if keys.is_empty() => Err(format!("results have no `{path}`")),
            Err(keys) => Err(format!("results have no `{path}`; keys there: {}", list(&keys))),
        }
    }
}

/// The value at `path`, or the keys where the path leaves the results. Keys may contain dots, as
/// paths of components do.
fn find<'v>(value: &'v Value, path: &str) -> Result<&'v Value, Vec<&'v str>> {
    let Value::Object(entries) = value else { return Err(Vec::new()) };
    let mut deepest = None;
    for (key, inner) in entries {
        match path.strip_prefix(key.as_str()) {
            Some("") => return Ok(inner),
            Some(rest) if rest.starts_with('.') => match find(inner, &rest[1..]) {
                Ok(found) => return Ok(found),
                Err(keys) => deepest = Some(keys),
            },
            _ => {}
        }
    }
    Err(deepest.unwrap_or_else(|| entries.keys().map(String::as_str).collect()))
}

fn list(keys: &[&str]) -> String {
    let shown = keys.iter().take(KEYS_SHOWN).copied().collect::<Vec<_>>().join(", ");
    if keys.len() > KEYS_SHOWN { format!("{shown}, ...") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_numbers_and_errors_name_the_keys_there() {
        let results = json!({
            "latency_ns": { "all": { "p99": 7 }, "read": { "p99": null } },
            "components": { "a.b/flash": { "erases": 3 } },
            "complete": true, "title": "x",
        });
        let numbers = Numbers(results);
        assert_eq!(numbers.get("latency_ns.all.p99"), Some(7.0));
        assert_eq!(numbers.get("components.a.b/flash.erases"), Some(3.0));
        assert_eq!((numbers.get("complete"), numbers.get("title")), (Some(1.0), None));
        assert_eq!(numbers.check("latency_ns.read.p99"), Ok(()));
        let wrong = |path: &str| numbers.check(path).expect_err(path);
        assert!(wrong("latency_ns.all.p9").ends_with("keys there: p99"));
        assert!(wrong("latency_ns.all").contains("is a table"));
        assert!(wrong("latency").contains("keys there: complete, components"));
        assert!(wrong("title").contains("not a number"));
    }
}
