use super::*;

fn judged(check: &Check, simulated: f64) -> Outcome {
    check.judge(Ok(Pair { simulated, oracle: 1000.0 }))
}

#[test]
fn every_check_fails_beyond_its_tolerance() {
    for check in CHECKS {
        assert!(judged(check, 1000.0).ok, "{}", check.name);
        let beyond = 1000.0 * (1.0 + check.tolerance) + 1.0;
        for wrong in [beyond, 2000.0 - beyond, f64::NAN, f64::INFINITY] {
            assert!(!judged(check, wrong).ok, "{}: {wrong}", check.name);
        }
        let failed = check.judge(Err("no run\nat all".to_owned()));
        assert!(!failed.ok && table(&[failed]).contains("FAILED"), "{}", check.name);
    }
}

#[test]
fn names_and_groups_select_checks() {
    let names = |words: &[&str]| -> Result<Vec<&str>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Ok(select(&words)?.iter().map(|check| check.name).collect())
    };
    assert_eq!(names(&[]).map(|all| all.len()), Ok(CHECKS.len()));
    assert_eq!(names(&["gc-fifo"]), Ok(vec!["gc-fifo"]));
    assert_eq!(names(&["map-unit"]), Ok(vec!["map-unit", "map-unit-gc"]));
    assert_eq!(names(&["disk", "fi"]), Err("fi".to_owned()));
    let mut unique: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), CHECKS.len());
}

#[test]
fn the_table_ends_with_the_number_of_failures() {
    let outcomes = [judged(&CHECKS[0], 1000.0), judged(&CHECKS[1], 1002.5)];
    let text = table(&outcomes);
    assert!(text.contains("+0.25 %") && text.ends_with("1 of 2 checks failed\n"), "{text}");
    assert!(table(&outcomes[..1]).ends_with("all 1 checks hold\n"));
    assert!(list(&[&CHECKS[0]]).starts_with(CHECKS[0].name));
}

/// Asserts that a check of this name fails with the figure `wrong` where `right` is expected.
pub(crate) fn assert_fails(name: &str, wrong: f64, right: f64) {
    let check = CHECKS.iter().find(|check| check.name == name).expect("a check");
    let judge = |simulated| check.judge(Ok(Pair { simulated, oracle: right })).ok;
    assert!(judge(right) && !judge(wrong), "{name}: {wrong} against {right}");
}
