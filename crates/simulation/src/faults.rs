//! Fault injection: the keys of faults, and how scenarios, servers and programs write them.
//!
//! A scenario lists them with their times under `[[run.faults]]`; a server and a program ask for
//! one at a time, as a JSON object with the same keys without `at`.

use hybridsim_config::check::{self, Checker};
use hybridsim_config::diagnostic::{Diagnostic, Diagnostics};
use hybridsim_config::param::{Kind, Param, Settings, joined};
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Injected, SimDuration};
use serde_json::{Map, Value};

const AT: &[Param] = &[Param::with(
    "at",
    Kind::Duration,
    "\"0ns\"",
    "Time of the fault since the start of the run. It occurs before everything else of that \
     instant.",
)];

const WHAT: &[Param] = &[
    Param::required(
        "do",
        Kind::Choice(Injected::NAMES),
        "The fault. `fail`: a member of an array fails; a spare is rebuilt. `slow`: a disk, or \
         the cells of flash, take longer. `wear`: the blocks of an SSD come close to the end of \
         their life, at which its writes fail. `fill`: the pages of an SSD that hold no data are \
         written.",
    ),
    Param::optional(
        "component",
        Kind::Text,
        "The component, by name or by path; not needed if only one takes the fault.",
    ),
    Param::optional(
        "member",
        Kind::Count { min: 0, max: 65_535 },
        "`fail`: index of the device, from 0 in `members`, continued in `spares`.",
    ),
    Param::optional(
        "die",
        Kind::Count { min: 0, max: 65_535 },
        "`slow`: the die of an SSD; without, all of them.",
    ),
    Param::optional(
        "factor",
        Kind::Number { min: 1.0, max: 1e6 },
        "`slow`: how many times as long operations take from then on; 1 ends the slowdown.",
    ),
    Param::optional(
        "fraction",
        Kind::Number { min: 0.0, max: 1.0 },
        "`wear`: the share of the endurance that each block has used up, with 1 all but its last \
         erase. `fill`: the share of the SSD's capacity, from its start. By default 1.",
    ),
];

/// The keys of a fault in a scenario.
pub const PARAMS: &[Param] = &joined::<{ AT.len() + WHAT.len() }>(&[AT, WHAT]);

/// A fault and the component it happens to.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultOrder {
    /// The component's name or path, if one is named.
    pub component: Option<String>,
    /// The fault.
    pub fault: Injected,
}

impl FaultOrder {
    /// The fault in checked settings.
    ///
    /// # Errors
    /// A key that is missing, or has no effect on this fault.
    pub fn read(settings: &Settings) -> Result<Self, String> {
        let kind = settings.text("do");
        let takes: &[&str] = match kind {
            "fail" => &["member"],
            "slow" => &["die", "factor"],
            _ => &["fraction"],
        };
        let keys = ["member", "die", "factor", "fraction"];
        if let Some(key) = keys.iter().find(|key| settings.has(key) && !takes.contains(key)) {
            let takes = takes.join("` and `");
            return Err(format!("`{key}` has no effect with `{kind}`, which takes `{takes}`"));
        }
        let missing = |key: &str| format!("`{kind}` needs `{key}`");
        let fraction = settings.number_opt("fraction").unwrap_or(1.0);
        let fault = match kind {
            "fail" => {
                let member = settings.count_opt("member").ok_or_else(|| missing("member"))?;
                Injected::Fail { member }
            }
            "slow" => {
                let factor = settings.number_opt("factor").ok_or_else(|| missing("factor"))?;
                Injected::Slow { die: settings.count_opt("die"), factor }
            }
            "wear" => Injected::Wear { fraction },
            _ => Injected::Fill { fraction },
        };
        Ok(Self { component: settings.text_opt("component").map(str::to_owned), fault })
    }

    /// The fault that a JSON object asks for.
    ///
    /// # Errors
    /// Everything that is wrong with it, in one line.
    pub fn from_json(object: &Map<String, Value>) -> Result<Self, String> {
        let table = toml::Table::try_from(object)
            .map_err(|_| "a value is null, or beyond 64 bits: leave the key out".to_owned())?;
        let text = toml::to_string(&table).map_err(|error| error.to_string())?;
        let settings = check::read(&text, &[WHAT], &Registry::default());
        Self::read(&settings.map_err(|problems| one_line(&problems))?)
    }

    /// The fault as an entry of `run.faults`, at `at`.
    pub fn to_toml(&self, at: SimDuration) -> String {
        let mut table = toml::Table::new();
        table.insert("at".to_owned(), format!("{}ns", at.as_ns()).into());
        table.insert("do".to_owned(), self.fault.name().into());
        if let Some(component) = &self.component {
            table.insert("component".to_owned(), component.clone().into());
        }
        let mut number = |key: &str, value: toml::Value| table.insert(key.to_owned(), value);
        match self.fault {
            Injected::Fail { member } => drop(number("member", (member as i64).into())),
            Injected::Slow { die, factor } => {
                die.map(|die| number("die", (die as i64).into()));
                number("factor", factor.into());
            }
            Injected::Wear { fraction } | Injected::Fill { fraction } => {
                number("fraction", fraction.into());
            }
        }
        toml::to_string(&table).expect("a table of plain values is TOML")
    }
}

/// Problems without the places, which are not of the user's text.
fn one_line(problems: &Diagnostics) -> String {
    let line = |it: &Diagnostic| {
        let help = it.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
        format!("`{}` {}{help}", it.key, it.message)
    };
    problems.list.iter().map(line).collect::<Vec<_>>().join("; ")
}

/// Checks the faults of `[run]`, which are in `settings`.
pub(crate) fn check(checker: &mut Checker<'_>, settings: &Settings) {
    for (number, fault) in settings.tables_opt("faults").unwrap_or(&[]).iter().enumerate() {
        // Otherwise it has a problem that has been reported.
        if fault.has("do")
            && fault.has("at")
            && let Err(message) = entry(fault)
        {
            checker.problem(None, &format!("run.faults[{number}]"), message, None);
        }
    }
}

/// The faults of a checked scenario, with their times.
pub(crate) fn scheduled(list: &[Settings]) -> Vec<(SimDuration, FaultOrder)> {
    list.iter().filter_map(|settings| entry(settings).ok()).collect()
}

/// A fault of a scenario, with its time.
fn entry(settings: &Settings) -> Result<(SimDuration, FaultOrder), String> {
    Ok((settings.duration("at"), FaultOrder::read(settings)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<FaultOrder, String> {
        let object = serde_json::from_str(json).expect("an object");
        FaultOrder::from_json(&object)
    }

    #[test]
    fn an_object_becomes_a_fault_and_an_entry_of_a_scenario() {
        let order = parse(r#"{"do": "slow", "component": "a/b", "die": 3, "factor": 2.5}"#);
        let order = order.expect("valid");
        assert_eq!(order.component.as_deref(), Some("a/b"));
        assert_eq!(order.fault, Injected::Slow { die: Some(3), factor: 2.5 });
        for json in [
            r#"{"do": "fail", "member": 1}"#,
            r#"{"do": "slow", "factor": 100}"#,
            r#"{"do": "wear", "fraction": 0.75, "component": "with \"quotes\""}"#,
            r#"{"do": "fill"}"#,
        ] {
            let order = parse(json).expect("valid");
            let text = order.to_toml(SimDuration::from_ns(17));
            let settings = check::read(&text, &[PARAMS], &Registry::default());
            let settings = settings.expect("what it writes it reads");
            assert_eq!(scheduled(&[settings]), [(SimDuration::from_ns(17), order)]);
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (json, wanted) in [
            (r#"{}"#, "`do` is missing"),
            (r#"{"do": "melt"}"#, "fail"),
            (r#"{"do": "fail"}"#, "needs `member`"),
            (r#"{"do": "fail", "member": -1}"#, "`member`"),
            (r#"{"do": "fail", "member": 1.5}"#, "`member`"),
            (r#"{"do": "slow"}"#, "needs `factor`"),
            (r#"{"do": "slow", "factor": 0.5}"#, "`factor`"),
            (r#"{"do": "slow", "factor": 1e300}"#, "`factor`"),
            (r#"{"do": "slow", "factor": "fast"}"#, "`factor`"),
            (r#"{"do": "wear", "die": 1}"#, "`die` has no effect with `wear`"),
            (r#"{"do": "wear", "fraction": 1.01}"#, "`fraction`"),
            (r#"{"do": "fill", "fraction": null}"#, "null"),
            (r#"{"do": "fill", "fraktion": 1}"#, "`fraktion`"),
            (r#"{"do": "fill", "at": "1s"}"#, "`at`"),
            (r#"{"do": ["fill"], "component": {"a": 1}}"#, "`component`"),
        ] {
            let error = parse(json).expect_err(json);
            assert!(error.contains(wanted) && !error.contains('\n'), "{json}: {error}");
        }
    }
}
