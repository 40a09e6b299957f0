//! A published claim, our result, and the verdict, which is always computed.

use crate::published::{self, PublishedClaim, PublishedValue};
use hybridsim_report::figures::number;
use hybridsim_report::study::{Plot, Quantity, Row, Sensitivity, Spread, Verdict};
use serde::Deserialize;

/// A bound as printed: a whole number, or four significant digits.
fn short(value: f64) -> String {
    match value == value.trunc() {
        true => value.to_string(),
        false => format!("{value:.3e}").parse().unwrap_or(value).to_string(),
    }
}

/// What an experiment found: judged claims and plots.
#[derive(Debug, Default)]
pub struct Findings {
    pub(super) rows: Vec<Claim>,
    pub(super) plots: Vec<Plot>,
}

impl Findings {
    /// Adds a claim.
    pub fn row(&mut self, claim: Claim) {
        self.rows.push(claim);
    }

    /// Adds a picture.
    pub fn plot(&mut self, plot: Plot) {
        self.plots.push(plot);
    }
}

/// How named values have to follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Each greater than the next.
    Falling,
    /// Each at least the next.
    NotRising,
    /// Each smaller than the next.
    Rising,
    /// Each at most the next.
    NotFalling,
}

impl Order {
    fn holds(self, one: f64, next: f64) -> bool {
        match self {
            Self::Falling => one > next,
            Self::NotRising => one >= next,
            Self::Rising => one < next,
            Self::NotFalling => one <= next,
        }
    }

    fn agrees(self, values: &[f64]) -> bool {
        values.windows(2).all(|pair| self.holds(pair[0], pair[1]))
    }

    const fn sign(self) -> &'static str {
        match self {
            Self::Falling => ">",
            Self::NotRising => "≥",
            Self::Rising => "<",
            Self::NotFalling => "≤",
        }
    }
}

/// One claim of a source. Built up by its methods; without a result it is not comparable.
#[derive(Clone, Debug)]
pub struct Claim {
    row: String,
    claim: String,
    published: Option<Quantity>,
    ours: Option<Quantity>,
    unit: String,
    tolerance: String,
    /// Agreement is from here to there.
    bounds: (f64, f64),
    /// How ranked values have to follow one another.
    order: Option<Order>,
    verdict: Option<Verdict>,
    /// Whether the source's number went into what was run.
    given: bool,
    /// The source does not say it.
    unpublished: bool,
    /// Why it is not comparable.
    reason: Option<String>,
    /// Why it differs, if it does.
    differs_because: Option<String>,
    /// Printed with any verdict.
    remark: Option<String>,
    /// Runs at different seeds that the claim asks for.
    seeds: u32,
    spread: Option<Spread>,
    /// Parameters the source leaves open that the result depends on.
    free: Vec<String>,
    sensitivity: Vec<Sensitivity>,
}

impl Claim {
    /// The published claim `id`, such as `flashsim/erases-fast-over-dftl`, from
    /// `papers/flashsim/claims.toml`.
    pub fn of(id: &str) -> Self {
        let published = published::claim(id);
        let claim = Self::new(&published.row, &published.claim).judged_by(published);
        let unit = published.unit.clone();
        let given = published.given;
        let remark = published.remark.clone();
        let differs_because = published.if_it_differs.clone();
        let (seeds, free) = (published.seeds, published.free.clone());
        let unpublished = published.unpublished;
        let claim = Self { unit, given, unpublished, remark, differs_because, ..claim };
        let claim = Self { seeds, free, ..claim };
        match &published.not_comparable {
            Some(reason) => claim.not_comparable(reason),
            None => claim,
        }
    }

    /// This claim with what `published` says about agreement.
    fn judged_by(self, published: &PublishedClaim) -> Self {
        let (number, words) = match &published.published {
            Some(PublishedValue::Number(value)) => (*value, ""),
            Some(PublishedValue::Words(words)) => (f64::NAN, words.as_str()),
            None => (f64::NAN, ""),
        };
        let claim = match published {
            PublishedClaim { exactly: Some(value), .. } => self.exactly(*value),
            PublishedClaim { within: Some(delta), .. } => self.within(number, *delta),
            PublishedClaim { within_share: Some(share), .. } => self.within_share(number, *share),
            PublishedClaim { between: Some((low, high)), .. } => self.between(words, *low, *high),
            PublishedClaim { at_least: Some(low), .. } => self.at_least(words, *low),
            PublishedClaim { at_most: Some(high), .. } if words.is_empty() => {
                Self { ..self.at_most("", *high) }
            }
            PublishedClaim { at_most: Some(high), .. } => self.at_most(words, *high),
            _ => self,
        };
        let claim = Self { order: published.order, ..claim };
        match &published.published {
            Some(PublishedValue::Number(value)) => {
                Self { published: Some(Quantity::Number(*value)), ..claim }
            }
            _ => claim,
        }
    }

    /// Fills `value` in where the claim says `{name}`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.claim = self.claim.replace(&format!("{{{name}}}"), &value.to_string());
        self
    }

    /// Row `row` of the checklist claims `claim`, which follows from what is computed.
    pub fn new(row: &str, claim: impl Into<String>) -> Self {
        Self {
            row: row.to_owned(),
            claim: claim.into(),
            published: None,
            ours: None,
            unit: String::new(),
            tolerance: "–".to_owned(),
            bounds: (f64::NEG_INFINITY, f64::INFINITY),
            order: None,
            verdict: None,
            given: false,
            unpublished: false,
            reason: None,
            differs_because: None,
            remark: None,
            seeds: 1,
            spread: None,
            free: Vec::new(),
            sensitivity: Vec::new(),
        }
    }

    /// The source's number went into what was run, or is worked out by the formula that is
    /// checked: agreement counts as `given`, not as reproduced.
    #[must_use]
    pub fn given(self) -> Self {
        Self { given: true, ..self }
    }

    /// Unit of all its numbers.
    #[must_use]
    pub fn unit(self, unit: &str) -> Self {
        Self { unit: unit.to_owned(), ..self }
    }

    /// The source gives `value`, exactly.
    #[must_use]
    pub fn exactly(self, value: f64) -> Self {
        let published = Some(Quantity::Number(value));
        Self { published, tolerance: "exact".to_owned(), bounds: (value, value), ..self }
    }

    /// The source gives `value`; agreement is within `delta` of it.
    #[must_use]
    pub fn within(self, value: f64, delta: f64) -> Self {
        let tolerance = format!("± {}", short(delta));
        let published = Some(Quantity::Number(value));
        Self { published, tolerance, bounds: (value - delta, value + delta), ..self }
    }

    /// The source gives `value`; agreement is within this share of it, such as 0.1.
    #[must_use]
    pub fn within_share(self, value: f64, share: f64) -> Self {
        let delta = (value * share).abs();
        let percent = share * 100.0;
        Self { tolerance: format!("± {} %", short(percent)), ..self.within(value, delta) }
    }

    /// The source says something that means from `low` to `high`.
    #[must_use]
    pub fn between(self, words: &str, low: f64, high: f64) -> Self {
        let published = Some(Quantity::Words(words.to_owned()));
        let tolerance = match low == high {
            true => format!("exactly {}", short(low)),
            false => format!("{} to {}", short(low), short(high)),
        };
        Self { published, tolerance, bounds: (low, high), ..self }
    }

    /// The source says something that means `low` or more.
    #[must_use]
    pub fn at_least(self, words: &str, low: f64) -> Self {
        let tolerance = format!("≥ {}", short(low));
        Self { tolerance, ..self.between(words, low, f64::INFINITY) }
    }

    /// The source says something that means `high` or less.
    #[must_use]
    pub fn at_most(self, words: &str, high: f64) -> Self {
        let tolerance = format!("≤ {}", short(high));
        Self { tolerance, ..self.between(words, f64::NEG_INFINITY, high) }
    }

    /// The source gives `value`; less is better.
    #[must_use]
    pub fn no_more_than(self, value: f64) -> Self {
        let published = Some(Quantity::Number(value));
        Self { published, ..self.at_most("", value) }
    }

    /// What came out here. NaN is no result.
    #[must_use]
    pub fn ours(self, value: f64) -> Self {
        self.ours_at_seeds(&[value])
    }

    /// What came out at each seed. The verdict is the one on which all seeds agree.
    #[must_use]
    pub fn ours_at_seeds(self, values: &[f64]) -> Self {
        if values.is_empty() || values.iter().any(|value| value.is_nan()) {
            return self.not_comparable("nothing was measured");
        }
        let agree = values.iter().filter(|value| self.agrees(**value)).count();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let ours = Some(Quantity::Number(mean(values)));
        Self { ours, ..self.decided(agree, values.len(), Some((low, high))) }
    }

    fn agrees(&self, value: f64) -> bool {
        value >= self.bounds.0 && value <= self.bounds.1
    }

    /// With the verdict of `runs` runs at different seeds, of which `agree` agree.
    fn decided(self, agree: usize, runs: usize, range: Option<(f64, f64)>) -> Self {
        if (runs as u32) < self.seeds {
            let missing = format!("{} seeds are wanted, {runs} were run", self.seeds);
            return self.not_comparable(&missing);
        }
        let verdict = match agree {
            0 => Verdict::Differs,
            all if all == runs => Verdict::Reproduced,
            _ => Verdict::Undecided,
        };
        let spread = Spread { seeds: runs as u32, agree: agree as u32, range };
        Self { verdict: Some(verdict), spread: (runs > 1).then_some(spread), ..self }
    }

    /// The source says that values follow one another in this order.
    #[must_use]
    pub fn ordered(self, order: Order) -> Self {
        Self { order: Some(order), ..self }
    }

    /// The source ranks; `ours` are the values in its order. NaN among them is no result.
    #[must_use]
    ///
    /// # Panics
    /// When the claim names no order.
    pub fn ranked(self, ours: &[(&str, f64)]) -> Self {
        let values: Vec<(&str, Vec<f64>)> =
            ours.iter().map(|(name, value)| (*name, vec![*value])).collect();
        self.ranked_at_seeds(&values)
    }

    /// As [`Claim::ranked`], with a value for each seed. Values of the same seed are compared; the
    /// verdict is the one on which all seeds agree.
    ///
    /// # Panics
    /// When the claim names no order.
    #[must_use]
    pub fn ranked_at_seeds(self, ours: &[(&str, Vec<f64>)]) -> Self {
        let runs = ours.iter().map(|(_, values)| values.len()).min().unwrap_or(0);
        if runs == 0 || ours.iter().any(|(_, values)| values.iter().any(|value| value.is_nan())) {
            return self.not_comparable("nothing was measured");
        }
        let order = self.order.expect("a ranking names its order");
        let at = |seed: usize| ours.iter().map(|(_, values)| values[seed]).collect::<Vec<_>>();
        let agree = (0..runs).filter(|seed| order.agrees(&at(*seed))).count();
        let values: Vec<String> =
            ours.iter().map(|(name, values)| format!("{name} {}", range(values))).collect();
        let names: Vec<&str> = ours.iter().map(|(name, _)| *name).collect();
        let claim = Self {
            published: Some(Quantity::Words(names.join(&format!(" {} ", order.sign())))),
            ours: Some(Quantity::Words(values.join(", "))),
            tolerance: "order".to_owned(),
            ..self
        };
        claim.decided(agree, runs, None)
    }

    /// What comes out at another setting of a parameter that the source leaves open.
    #[must_use]
    pub fn sensitive(mut self, setting: impl Into<String>, value: f64) -> Self {
        let ours = Quantity::Number(value);
        let agrees = self.agrees(value);
        self.sensitivity.push(Sensitivity { setting: setting.into(), ours, agrees });
        self
    }

    /// As [`Claim::sensitive`], for a ranking.
    ///
    /// # Panics
    /// When the claim names no order.
    #[must_use]
    pub fn sensitive_ranked(mut self, setting: impl Into<String>, ours: &[(&str, f64)]) -> Self {
        let order = self.order.expect("a ranking names its order");
        let values: Vec<f64> = ours.iter().map(|(_, value)| *value).collect();
        let words: Vec<String> =
            ours.iter().map(|(name, value)| format!("{name} {}", number(*value))).collect();
        let (ours, agrees) = (Quantity::Words(words.join(", ")), order.agrees(&values));
        self.sensitivity.push(Sensitivity { setting: setting.into(), ours, agrees });
        self
    }

    /// It cannot be put to the test.
    #[must_use]
    pub fn not_comparable(self, reason: &str) -> Self {
        let (verdict, reason) = (Some(Verdict::NotComparable), Some(reason.to_owned()));
        Self { ours: None, verdict, reason, ..self }
    }

    /// Why it differs; printed only if it does.
    #[must_use]
    pub fn if_it_differs(self, reason: &str) -> Self {
        Self { differs_because: Some(reason.to_owned()), ..self }
    }

    /// A remark printed with any verdict. It is not a reason: a row that differs still needs one.
    #[must_use]
    pub fn remark(self, remark: &str) -> Self {
        Self { remark: Some(remark.to_owned()), ..self }
    }

    /// The row with its verdict.
    pub(super) fn judged(self, experiment: &str) -> Row {
        let claim = match self.verdict {
            None => self.not_comparable("nothing was measured"),
            Some(_) => self,
        };
        let unknown = || "the cause has not been found".to_owned();
        let reason = match claim.verdict {
            Some(Verdict::Differs) => Some(claim.differs_because.unwrap_or_else(unknown)),
            Some(Verdict::Undecided) => claim.differs_because,
            _ => claim.reason,
        };
        let untried = !claim.free.is_empty() && claim.sensitivity.is_empty();
        let untried =
            untried.then(|| format!("other values of {} were not run", claim.free.join(", ")));
        let notes: Vec<String> = [reason, claim.remark, untried].into_iter().flatten().collect();
        Row {
            id: claim.row,
            experiment: experiment.to_owned(),
            claim: claim.claim,
            published: claim.published.filter(|_| !claim.unpublished),
            ours: claim.ours,
            unit: claim.unit,
            tolerance: claim.tolerance,
            verdict: match claim.verdict.unwrap_or(Verdict::NotComparable) {
                Verdict::Reproduced if claim.given => Verdict::Given,
                verdict => verdict,
            },
            reason: (!notes.is_empty()).then(|| notes.join("; ")),
            spread: claim.spread,
            sensitivity: claim.sensitivity,
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean, and from where to where several values go.
fn range(values: &[f64]) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match values.len() {
        1 => number(low),
        _ => format!("{} ({} to {})", number(mean(values)), number(low), number(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(claim: Claim, verdict: Verdict, tolerance: &str) {
        let row = claim.judged("009/fig1");
        assert_eq!((row.verdict, row.tolerance.as_str()), (verdict, tolerance), "{row:?}");
        // Whatever does not agree says why.
        let agrees = [Verdict::Reproduced, Verdict::Given].contains(&row.verdict);
        assert!(agrees || row.reason.is_some());
    }

    #[test]
    fn what_was_put_in_is_not_reproduced() {
        let given = || Claim::new("X1", "something").exactly(3.0).given();
        check(given().ours(3.0), Verdict::Given, "exact");
        check(given().ours(4.0), Verdict::Differs, "exact");
        check(given(), Verdict::NotComparable, "exact");
    }

    #[test]
    fn verdicts_follow_from_the_numbers() {
        use Verdict::{Differs, NotComparable, Reproduced};
        let claim = || Claim::new("X1", "something");
        check(claim().exactly(3.0).ours(3.0), Reproduced, "exact");
        check(claim().exactly(3.0).ours(3.001), Differs, "exact");
        check(claim().within(1.0, 0.5).ours(1.5), Reproduced, "± 0.5");
        check(claim().within_share(-2.0, 0.1).ours(-2.2), Reproduced, "± 10 %");
        check(claim().within_share(2.0, 0.1).ours(2.21), Differs, "± 10 %");
        check(claim().between("about 3", 2.0, 5.0).ours(5.1), Differs, "2 to 5");
        check(claim().between("some", 1.0, 1.182_237_3).ours(1.1), Reproduced, "1 to 1.182");
        check(claim().between("yes", 1.0, 1.0).ours(0.0), Differs, "exactly 1");
        check(claim().at_least("most", 0.5).ours(0.5), Reproduced, "≥ 0.5");
        check(claim().at_most("few", 0.5).ours(0.6), Differs, "≤ 0.5");
        check(claim().within(1.0, 0.5).ours(f64::NAN), NotComparable, "± 0.5");
        check(claim().within(1.0, 0.5), NotComparable, "± 0.5");
    }

    #[test]
    fn seeds_have_to_agree() {
        use Verdict::{Differs, NotComparable, Reproduced, Undecided};
        let judged = |claim: Claim| claim.judged("009/fig1");
        let within = |values: &[f64]| {
            judged(Claim::new("X1", "s").within(1.0, 0.5).if_it_differs("w").ours_at_seeds(values))
        };
        assert_eq!(within(&[1.0, 1.4]).verdict, Reproduced);
        assert_eq!(within(&[1.6, 0.4]).verdict, Differs, "though the mean agrees");
        let mixed = within(&[1.0, 1.6, 1.0]);
        assert_eq!((mixed.verdict, mixed.ours), (Undecided, Some(Quantity::Number(1.2))));
        let spread = mixed.spread.expect("several seeds");
        assert_eq!((spread.seeds, spread.agree, spread.range), (3, 2, Some((1.0, 1.6))));
        assert_eq!(within(&[1.0]).spread, None);

        let ranked = |one: &[f64], two: &[f64]| {
            let named = [("a", one.to_vec()), ("b", two.to_vec())];
            judged(Claim::new("X1", "s").ordered(Order::Falling).ranked_at_seeds(&named))
        };
        // Values of a seed are compared with each other, so a common trend does not matter.
        assert_eq!(ranked(&[2.0, 9.0], &[1.0, 8.0]).verdict, Reproduced);
        assert_eq!(ranked(&[2.0, 8.0], &[1.0, 9.0]).verdict, Undecided);
        assert_eq!(ranked(&[1.0, 8.0], &[2.0, 9.0]).verdict, Differs);
        assert_eq!(ranked(&[], &[]).verdict, NotComparable);

        let five = Claim { seeds: 5, ..Claim::new("X1", "s").within(1.0, 0.5) };
        assert_eq!(judged(five.ours(1.0)).verdict, NotComparable, "too few seeds");
    }

    #[test]
    fn what_the_source_does_not_say_is_not_published() {
        let claim = Claim { unpublished: true, ..Claim::new("X1", "s").exactly(3.0) };
        let row = claim.ours(3.0).judged("009/fig1");
        assert_eq!((row.published, row.verdict), (None, Verdict::Reproduced));
    }

    #[test]
    fn other_settings_are_judged_like_the_claim() {
        let claim = Claim::new("X1", "s").within(1.0, 0.5).sensitive("k 2", 1.6).ours(1.0);
        let row = claim.sensitive("k 3", 1.1).judged("009/fig1");
        let agrees: Vec<bool> = row.sensitivity.iter().map(|other| other.agrees).collect();
        assert_eq!((row.verdict, agrees), (Verdict::Reproduced, vec![false, true]));
        let free = Claim { free: vec!["k".to_owned()], ..Claim::new("X1", "s").exactly(1.0) };
        let note = free.clone().ours(1.0).judged("009/fig1").reason.expect("a note");
        assert_eq!(note, "other values of k were not run");
        assert_eq!(free.ours(1.0).sensitive("k 2", 1.0).judged("009/fig1").reason, None);
        let ranked = Claim::new("X1", "s").ordered(Order::Rising).ranked(&[("a", 1.0), ("b", 2.0)]);
        let row = ranked.sensitive_ranked("k 2", &[("a", 2.0), ("b", 1.0)]).judged("009/fig1");
        assert!(!row.sensitivity[0].agrees);
    }

    #[test]
    fn a_remark_is_no_reason() {
        let notes = |claim: Claim| claim.judged("009/fig1").reason.expect("a note");
        let differs = || Claim::new("X1", "something").exactly(3.0).ours(4.0);
        assert_eq!(notes(differs().remark("note")), "the cause has not been found; note");
        assert_eq!(notes(differs().if_it_differs("why").remark("note")), "why; note");
        assert_eq!(notes(differs().remark("note").if_it_differs("why")), "why; note");
        let agrees = Claim::new("X1", "something").exactly(3.0).ours(3.0);
        assert_eq!(notes(agrees.if_it_differs("why").remark("note")), "note");
    }

    #[test]
    fn ranks_are_strict_where_they_say_so() {
        use Verdict::{Differs, NotComparable, Reproduced};
        let ranked = |order, values: &[f64]| {
            let named: Vec<(&str, f64)> = values.iter().map(|value| ("a", *value)).collect();
            Claim::new("X1", "ranked").ordered(order).ranked(&named)
        };
        check(ranked(Order::Falling, &[3.0, 2.0, 1.0]), Reproduced, "order");
        check(ranked(Order::Falling, &[3.0, 3.0]), Differs, "order");
        check(ranked(Order::NotRising, &[3.0, 3.0]), Reproduced, "order");
        check(ranked(Order::Rising, &[1.0, 2.0]), Reproduced, "order");
        check(ranked(Order::NotFalling, &[1.0, 0.5]), Differs, "order");
        check(ranked(Order::Rising, &[1.0, f64::NAN]), NotComparable, "–");
    }
}
