//! Fault injection: the keys of faults, and how scenarios, servers and programs write them.
//!
//! A scenario lists them with their times under `[[run.faults]]`; a server and a program ask for
//! one at a time, as a JSON object with the same keys without `at`.

use hybridsim_config::check::{self, Checker};
use hybridsim_config::diagnostic::{Diagnostic, Diagnostics};
use hybridsim_config::effect::Needs;
use hybridsim_config::ineffective;
use hybridsim_config::param::{Kind, Settings};
use hybridsim_config::params::field;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Injected, SimDuration};
use serde_json::{Map, Value};

hybridsim_config::choices! {
    enum FaultKind { Fail = "fail", Slow = "slow", Wear = "wear", Fill = "fill" }
}

hybridsim_config::params! {
    struct What {
        r#do: FaultKind = Kind::Choice(Injected::NAMES), required,
            "The fault. `fail`: a member of an array fails; a spare is rebuilt. `slow`: a disk, or \
             the cells of flash, take longer. `wear`: the blocks of an SSD come close to the end \
             of their life, at which its writes fail. `fill`: the pages of an SSD that hold no \
             data are written.";
        component: Option<String> = Kind::Text, optional,
            "The component, by name or by path; not needed if only one takes the fault.";
        member: Option<u64> = Kind::Count { min: 0, max: 65_535 }, optional
            needs &[Needs::Is("do", &["fail"])],
            "`fail`: index of the device, from 0 in `members`, continued in `spares`.";
        die: Option<u64> = Kind::Count { min: 0, max: 65_535 }, optional
            needs &[Needs::Is("do", &["slow"])],
            "`slow`: the die of an SSD; without, all of them.";
        factor: Option<f64> = Kind::Number { min: 1.0, max: 1e6 }, optional
            needs &[Needs::Is("do", &["slow"])],
            "`slow`: how many times as long operations take from then on; 1 ends the slowdown.";
        fraction: Option<f64> = Kind::Number { min: 0.0, max: 1.0 }, optional
            needs &[Needs::Is("do", &["wear", "fill"])],
            "`wear`: the share of the endurance that each block has used up, with 1 all but its \
             last erase. `fill`: the share of the SSD's capacity, from its start. By default 1.";
    }
}

hybridsim_config::params! {
    /// A fault in a scenario.
    pub struct Scheduled includes { what: What } {
        at: SimDuration = Kind::Duration, default "\"0ns\"",
            "Time of the fault since the start of the run. It occurs before everything else of \
             that instant.";
    }
}

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
    fn read(settings: &Settings) -> Result<Self, String> {
        let inert = ineffective::without_effect(settings, What::PARAMS, &Registry::default(), "");
        if let Some((key, why)) = inert.first() {
            return Err(format!("`{key}` {why}"));
        }
        let what = What::from_settings(settings);
        let fraction = what.fraction.unwrap_or(1.0);
        let fault = match what.r#do {
            FaultKind::Fail => {
                Injected::Fail { member: what.member.ok_or("`fail` needs `member`")? }
            }
            FaultKind::Slow => {
                let factor = what.factor.ok_or("`slow` needs `factor`")?;
                Injected::Slow { die: what.die, factor }
            }
            FaultKind::Wear => Injected::Wear { fraction },
            FaultKind::Fill => Injected::Fill { fraction },
        };
        Ok(Self { component: what.component, fault })
    }

    /// The fault that a JSON object asks for.
    ///
    /// # Errors
    /// Everything that is wrong with it, in one line.
    pub fn from_json(object: &Map<String, Value>) -> Result<Self, String> {
        let table = toml::Table::try_from(object)
            .map_err(|_| "a value is null, or beyond 64 bits: leave the key out".to_owned())?;
        let text = toml::to_string(&table).map_err(|error| error.to_string())?;
        let settings = check::read(&text, &[What::PARAMS], &Registry::default());
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
    for (number, fault) in
        field::<Option<Vec<Settings>>>(settings, "faults").iter().flatten().enumerate()
    {
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
    Ok((field(settings, "at"), FaultOrder::read(settings)?))
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
            let settings = check::read(&text, &[Scheduled::PARAMS], &Registry::default());
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
            (r#"{"do": "wear", "die": 1}"#, "`die` has an effect only with `do = slow`"),
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
