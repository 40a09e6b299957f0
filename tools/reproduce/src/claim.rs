//! A published claim, our result, and the verdict, which is always computed.

use crate::published::{self, PublishedClaim, PublishedValue, filled};
use hybridsim_report::figures::number;
use hybridsim_report::study::{Curve, Plot, Quantity, Row, Sensitivity, Spread, Verdict};
use serde::Deserialize;

/// A bound as printed: a whole number, or four significant digits.
fn short(value: f64) -> String {
    match value == value.trunc() {
        true => value.to_string(),
        false => format!("{value:.3e}").parse().unwrap_or(value).to_string(),
    }
}

/// Judged claims and plots of an experiment.
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

    /// Adds the plot `id`, such as `flashsim/response-times`, of `papers/flashsim/claims.toml`,
    /// with `curves`; each `{name}` in its texts is one of `values`.
    pub fn plot(
        &mut self,
        id: &str,
        values: &[(&str, &dyn std::fmt::Display)],
        curves: impl Into<Vec<Curve>>,
    ) {
        self.plots.push(published::plot(id, values, curves.into()));
    }
}

/// Order of named values.
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
    /// Each at least the next, and the first greater than the last: level where it saturates.
    FallingToLevel,
    /// Each at most the next, and the first smaller than the last.
    RisingToLevel,
}

impl Order {
    fn holds(self, one: f64, next: f64) -> bool {
        match self {
            Self::Falling => one > next,
            Self::NotRising | Self::FallingToLevel => one >= next,
            Self::Rising => one < next,
            Self::NotFalling | Self::RisingToLevel => one <= next,
        }
    }

    fn agrees(self, values: &[f64]) -> bool {
        let changes = match (self, values) {
            (Self::FallingToLevel | Self::RisingToLevel, [first, .., last]) => first != last,
            _ => true,
        };
        changes && values.windows(2).all(|pair| self.holds(pair[0], pair[1]))
    }

    const fn sign(self) -> &'static str {
        match self {
            Self::Falling => ">",
            Self::NotRising | Self::FallingToLevel => "≥",
            Self::Rising => "<",
            Self::NotFalling | Self::RisingToLevel => "≤",
        }
    }
}

/// One claim of a source, completed by its methods; without a result it is not comparable.
#[derive(Clone, Debug)]
pub struct Claim {
    source: PublishedClaim,
    published: Option<Quantity>,
    ours: Option<Quantity>,
    tolerance: String,
    /// Least and greatest value that agrees.
    bounds: (f64, f64),
    verdict: Option<Verdict>,
    spread: Option<Spread>,
    sensitivity: Vec<Sensitivity>,
}

impl From<PublishedClaim> for Claim {
    fn from(source: PublishedClaim) -> Self {
        let bounds = (f64::NEG_INFINITY, f64::INFINITY);
        let claim = Self {
            published: None,
            ours: None,
            tolerance: "–".to_owned(),
            bounds,
            verdict: source.not_comparable.is_some().then_some(Verdict::NotComparable),
            spread: None,
            sensitivity: Vec::new(),
            source,
        };
        match claim.source.published.clone() {
            Some(PublishedValue::Number(value)) => claim.published(value),
            Some(PublishedValue::Words(words)) => claim.judged_by(f64::NAN, &words),
            None => claim.judged_by(f64::NAN, ""),
        }
    }
}

impl Claim {
    /// The published claim `id`, such as `flashsim/erases-fast-over-dftl`, from
    /// `papers/flashsim/claims.toml`.
    pub fn of(id: &str) -> Self {
        published::claim(id).clone().into()
    }

    /// An experiment without its data, which is not comparable for this `reason`.
    pub(super) fn without_data(title: &str, reason: &str) -> Self {
        let (row, claim) = ("–".to_owned(), title.to_owned());
        Self::from(PublishedClaim { row, claim, ..Default::default() }).not_comparable(reason)
    }

    /// Agreement as the source has it, for the published `number` or `words`.
    fn judged_by(self, number: f64, words: &str) -> Self {
        let (tolerance, bounds) = match self.source {
            PublishedClaim { exactly: Some(value), .. } => ("exact".to_owned(), (value, value)),
            PublishedClaim { exactly_published: true, .. } => {
                ("exact".to_owned(), (number, number))
            }
            PublishedClaim { within: Some(delta), .. } => return self.within(number, delta),
            PublishedClaim { within_share: Some(share), .. } => {
                let tolerance = format!("± {} %", short(share * 100.0));
                return Self { tolerance, ..self.within(number, (number * share).abs()) };
            }
            PublishedClaim { at_most_published: true, .. } => {
                (format!("≤ {}", short(number)), (f64::NEG_INFINITY, number))
            }
            PublishedClaim { between: Some((low, high)), .. } => {
                return self.between(words, low, high);
            }
            PublishedClaim { at_least: Some(low), .. } => {
                return self.between(words, low, f64::INFINITY);
            }
            PublishedClaim { at_most: Some(high), .. } => {
                return self.between(words, f64::NEG_INFINITY, high);
            }
            _ => return self,
        };
        let published = self.source.exactly.map(Quantity::Number);
        Self { tolerance, bounds, published, ..self }
    }

    /// The number that the source gives, where it is not in its claim.
    #[must_use]
    pub fn published(self, number: f64) -> Self {
        Self { published: Some(Quantity::Number(number)), ..self.judged_by(number, "") }
    }

    /// The source gives `number`; agreement is within `delta` of it.
    #[must_use]
    pub fn within(self, number: f64, delta: f64) -> Self {
        let tolerance = format!("± {}", short(delta));
        let published = Some(Quantity::Number(number));
        Self { published, tolerance, bounds: (number - delta, number + delta), ..self }
    }

    /// The source says something that means from `low` to `high`, either of which may be infinite.
    #[must_use]
    pub fn between(self, words: &str, low: f64, high: f64) -> Self {
        let tolerance = match (low, high) {
            (f64::NEG_INFINITY, _) => format!("≤ {}", short(high)),
            (_, f64::INFINITY) => format!("≥ {}", short(low)),
            _ if low == high => format!("exactly {}", short(low)),
            _ => format!("{} to {}", short(low), short(high)),
        };
        let published = Some(Quantity::Words(words.to_owned()));
        Self { published, tolerance, bounds: (low, high), ..self }
    }

    /// Fills `value` in where the claim, its reasons or its remark say `{name}`, or `{name:.2}` for
    /// a number with two digits behind the point.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        let PublishedClaim { claim, if_it_differs, remark, not_comparable, .. } = &mut self.source;
        let texts = [if_it_differs, remark, not_comparable].map(Option::as_mut);
        for text in texts.into_iter().flatten().chain([claim]) {
            *text = filled(text, &[(name, &value)]);
        }
        self
    }

    /// As [`Claim::with`], for several numbers.
    #[must_use]
    pub fn with_figures(self, figures: &[(&str, f64)]) -> Self {
        figures.iter().fold(self, |claim, (name, value)| claim.with(name, value))
    }

    /// Whether the source's number went into what was run, or is worked out by the formula that is
    /// checked: agreement then counts as `given`, not as reproduced.
    #[must_use]
    pub fn given_if(mut self, is_given: bool) -> Self {
        self.source.given |= is_given;
        self
    }

    /// The result. NaN is none.
    #[must_use]
    pub fn ours(self, value: f64) -> Self {
        self.ours_at_seeds(&[value])
    }

    /// A result for each seed. The verdict is the one on which all seeds agree.
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

    /// The claim with the verdict of `runs` runs at different seeds, of which `agree` agree.
    fn decided(self, agree: usize, runs: usize, range: Option<(f64, f64)>) -> Self {
        if (runs as u32) < self.source.seeds {
            let missing = format!("{} seeds are wanted, {runs} were run", self.source.seeds);
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

    /// The source ranks; `ours` are the values in its order. NaN among them is no result.
    ///
    /// # Panics
    /// When the claim names no order.
    #[must_use]
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
        let order = self.source.order.expect("a ranking names its order");
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

    /// The result at another setting of a parameter that the source leaves open; left out where it
    /// is no number.
    #[must_use]
    pub fn sensitive(mut self, setting: impl Into<String>, value: f64) -> Self {
        if !value.is_finite() {
            return self;
        }
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
        let order = self.source.order.expect("a ranking names its order");
        let values: Vec<f64> = ours.iter().map(|(_, value)| *value).collect();
        if values.iter().any(|value| !value.is_finite()) {
            return self;
        }
        let words: Vec<String> =
            ours.iter().map(|(name, value)| format!("{name} {}", number(*value))).collect();
        let (ours, agrees) = (Quantity::Words(words.join(", ")), order.agrees(&values));
        self.sensitivity.push(Sensitivity { setting: setting.into(), ours, agrees });
        self
    }

    /// It cannot be put to the test.
    #[must_use]
    pub fn not_comparable(mut self, reason: &str) -> Self {
        self.source.not_comparable = Some(reason.to_owned());
        Self { ours: None, verdict: Some(Verdict::NotComparable), ..self }
    }

    /// The reason of a difference; printed only if there is one.
    #[must_use]
    pub fn if_it_differs(mut self, reason: &str) -> Self {
        self.source.if_it_differs = Some(reason.to_owned());
        self
    }

    /// A remark printed with any verdict. It is not a reason: a row that differs still needs one.
    #[must_use]
    pub fn remark(mut self, remark: &str) -> Self {
        self.source.remark = Some(remark.to_owned());
        self
    }

    /// The verdict, unless a reading of equal standing contradicts it.
    fn by_all_readings(&self, verdict: Verdict) -> Verdict {
        let is_reading = |other: &Sensitivity| self.source.readings.contains(&other.setting);
        let mut readings = self.sensitivity.iter().filter(|other| is_reading(other));
        let contradicted = match verdict {
            Verdict::Reproduced => readings.any(|other| !other.agrees),
            Verdict::Differs => readings.any(|other| other.agrees),
            _ => false,
        };
        if contradicted { Verdict::Undecided } else { verdict }
    }

    /// The row with its verdict.
    pub(super) fn judged(self, experiment: &str) -> Row {
        let claim = match self.verdict {
            None => self.not_comparable("nothing was measured"),
            Some(_) => self,
        };
        let verdict = claim.verdict.map(|verdict| claim.by_all_readings(verdict));
        let source = claim.source;
        let unknown = || "the cause has not been found".to_owned();
        let reason = match verdict {
            Some(Verdict::Differs) => Some(source.if_it_differs.unwrap_or_else(unknown)),
            Some(Verdict::Undecided) => source.if_it_differs,
            _ => source.not_comparable,
        };
        let untried = !source.free.is_empty() && claim.sensitivity.is_empty();
        let untried = untried && verdict != Some(Verdict::NotComparable);
        let untried =
            untried.then(|| format!("other values of {} were not run", source.free.join(", ")));
        let notes: Vec<String> = [reason, source.remark, untried].into_iter().flatten().collect();
        Row {
            id: source.row,
            experiment: experiment.to_owned(),
            claim: source.claim,
            published: claim.published.filter(|_| !source.unpublished),
            ours: claim.ours,
            unit: source.unit,
            tolerance: claim.tolerance,
            verdict: match verdict.unwrap_or(Verdict::NotComparable) {
                Verdict::Reproduced if source.given => Verdict::Given,
                verdict => verdict,
            },
            unpublished: source.unpublished,
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

    const NEAR_1: &str = "published = 1.0\nwithin = 0.5";

    /// A claim that agrees as `criterion` says, in TOML.
    fn claim(criterion: &str) -> Claim {
        let text = format!("row = \"X1\"\nclaim = \"something\"\n{criterion}");
        toml::from_str::<PublishedClaim>(&text).expect("a claim").into()
    }

    fn check(claim: Claim, verdict: Verdict, tolerance: &str) {
        let row = claim.judged("009/fig1");
        assert_eq!((row.verdict, row.tolerance.as_str()), (verdict, tolerance), "{row:?}");
        // Whatever does not agree says why.
        let agrees = [Verdict::Reproduced, Verdict::Given].contains(&row.verdict);
        assert!(agrees || row.reason.is_some());
    }

    #[test]
    fn what_was_put_in_is_not_reproduced() {
        let given = || claim("exactly = 3.0").given_if(true);
        check(given().ours(3.0), Verdict::Given, "exact");
        check(given().ours(4.0), Verdict::Differs, "exact");
        check(given(), Verdict::NotComparable, "exact");
    }

    #[test]
    fn verdicts_follow_from_the_numbers() {
        use Verdict::{Differs, NotComparable, Reproduced};
        check(claim("exactly = 3.0").ours(3.0), Reproduced, "exact");
        check(claim("exactly = 3.0").ours(3.001), Differs, "exact");
        check(claim("exactly_published = true").published(3.0).ours(3.001), Differs, "exact");
        check(claim("published = 1.0\nwithin = 0.5").ours(1.5), Reproduced, "± 0.5");
        check(claim("within_share = 0.1").published(-2.0).ours(-2.2), Reproduced, "± 10 %");
        check(claim("within_share = 0.1").published(2.0).ours(2.21), Differs, "± 10 %");
        check(claim("at_most_published = true").published(2.0).ours(2.1), Differs, "≤ 2");
        check(claim("between = [2.0, 5.0]").ours(5.1), Differs, "2 to 5");
        check(claim("between = [1.0, 1.1822373]").ours(1.1), Reproduced, "1 to 1.182");
        check(claim("").between("yes", 1.0, 1.0).ours(0.0), Differs, "exactly 1");
        check(claim("at_least = 0.5").ours(0.5), Reproduced, "≥ 0.5");
        check(claim("published = \"few\"\nat_most = 0.5").ours(0.6), Differs, "≤ 0.5");
        check(claim("within = 0.5").published(1.0).ours(f64::NAN), NotComparable, "± 0.5");
        check(claim("within = 0.5").published(1.0), NotComparable, "± 0.5");
    }

    #[test]
    fn seeds_have_to_agree() {
        use Verdict::{Differs, NotComparable, Reproduced, Undecided};
        let judged = |claim: Claim| claim.judged("009/fig1");
        let within =
            |values: &[f64]| judged(claim(NEAR_1).if_it_differs("w").ours_at_seeds(values));
        assert_eq!(within(&[1.0, 1.4]).verdict, Reproduced);
        assert_eq!(within(&[1.6, 0.4]).verdict, Differs, "though the mean agrees");
        let mixed = within(&[1.0, 1.6, 1.0]);
        assert_eq!((mixed.verdict, mixed.ours), (Undecided, Some(Quantity::Number(1.2))));
        let spread = mixed.spread.expect("several seeds");
        assert_eq!((spread.seeds, spread.agree, spread.range), (3, 2, Some((1.0, 1.6))));
        assert_eq!(within(&[1.0]).spread, None);

        let ranked = |one: &[f64], two: &[f64]| {
            let named = [("a", one.to_vec()), ("b", two.to_vec())];
            judged(claim("order = \"falling\"").ranked_at_seeds(&named))
        };
        // Values of a seed are compared with each other, so a common trend does not matter.
        assert_eq!(ranked(&[2.0, 9.0], &[1.0, 8.0]).verdict, Reproduced);
        assert_eq!(ranked(&[2.0, 8.0], &[1.0, 9.0]).verdict, Undecided);
        assert_eq!(ranked(&[1.0, 8.0], &[2.0, 9.0]).verdict, Differs);
        assert_eq!(ranked(&[], &[]).verdict, NotComparable);

        let five = format!("{NEAR_1}\nseeds = 5");
        assert_eq!(judged(claim(&five).ours(1.0)).verdict, NotComparable, "too few seeds");
    }

    #[test]
    fn what_the_source_does_not_say_is_not_published() {
        let row = claim("exactly = 3.0\nunpublished = true").ours(3.0).judged("009/fig1");
        assert_eq!((row.published, row.verdict), (None, Verdict::Reproduced));
    }

    #[test]
    fn other_settings_are_judged_like_the_claim() {
        let row = claim(NEAR_1).sensitive("k 2", 1.6).ours(1.0);
        let row = row.sensitive("k 3", 1.1).judged("009/fig1");
        let agrees: Vec<bool> = row.sensitivity.iter().map(|other| other.agrees).collect();
        assert_eq!((row.verdict, agrees), (Verdict::Reproduced, vec![false, true]));
        let free = claim("exactly = 1.0\nfree = [\"k\"]");
        let note = free.clone().ours(1.0).judged("009/fig1").reason.expect("a note");
        assert_eq!(note, "other values of k were not run");
        assert_eq!(free.ours(1.0).sensitive("k 2", 1.0).judged("009/fig1").reason, None);
        let ranked = claim("order = \"rising\"").ranked(&[("a", 1.0), ("b", 2.0)]);
        let row = ranked.sensitive_ranked("k 2", &[("a", 2.0), ("b", 1.0)]).judged("009/fig1");
        assert!(!row.sensitivity[0].agrees);
    }

    #[test]
    fn settings_without_a_number_are_left_out() {
        let claim = claim("exactly = 3.0").ours(3.0);
        let row = claim.sensitive("none", f64::NAN).sensitive("all", f64::INFINITY);
        let row = row.sensitive("some", 4.0).judged("009/fig1");
        let names: Vec<&str> = row.sensitivity.iter().map(|it| it.setting.as_str()).collect();
        assert_eq!(names, ["some"]);
    }

    #[test]
    fn a_row_that_cannot_be_compared_lacks_no_settings() {
        let open = || claim("exactly = 3.0\nfree = [\"k\"]\nif_it_differs = \"why\"");
        let reason = |claim: Claim| claim.judged("009/fig1").reason.expect("there is one");
        assert!(reason(open().ours(4.0)).contains("other values of k were not run"));
        assert_eq!(reason(open().not_comparable("nothing to compare")), "nothing to compare");
    }

    #[test]
    fn readings_of_equal_standing_have_to_agree() {
        use Verdict::{Differs, Reproduced, Undecided};
        let judged = |ours: f64, reading: f64| {
            let claim = claim(&format!("{NEAR_1}\nreadings = [\"k 2\"]\nif_it_differs = \"why\""));
            claim.ours(ours).sensitive("k 2", reading).sensitive("k 3", 9.0).judged("009/fig1")
        };
        assert_eq!(judged(1.0, 1.2).verdict, Reproduced, "k 3 is no reading");
        assert_eq!(judged(2.0, 3.0).verdict, Differs);
        assert_eq!(judged(1.0, 2.0).verdict, Undecided);
        let row = judged(2.0, 1.0);
        assert_eq!((row.verdict, row.reason.as_deref()), (Undecided, Some("why")));
    }

    #[test]
    fn a_remark_is_no_reason() {
        let notes = |claim: Claim| claim.judged("009/fig1").reason.expect("a note");
        let differs = || claim("exactly = 3.0").ours(4.0);
        assert_eq!(notes(differs().remark("note")), "the cause has not been found; note");
        assert_eq!(notes(differs().if_it_differs("why").remark("note")), "why; note");
        assert_eq!(notes(differs().remark("note").if_it_differs("why")), "why; note");
        let agrees = claim("exactly = 3.0").ours(3.0);
        assert_eq!(notes(agrees.if_it_differs("why").remark("note")), "note");
    }

    #[test]
    fn ranks_are_strict_where_they_say_so() {
        use Verdict::{Differs, NotComparable, Reproduced};
        let ranked = |order: &str, values: &[f64]| {
            let named: Vec<(&str, f64)> = values.iter().map(|value| ("a", *value)).collect();
            claim(&format!("order = \"{order}\"")).ranked(&named)
        };
        check(ranked("falling", &[3.0, 2.0, 1.0]), Reproduced, "order");
        check(ranked("falling", &[3.0, 3.0]), Differs, "order");
        check(ranked("not-rising", &[3.0, 3.0]), Reproduced, "order");
        check(ranked("rising", &[1.0, 2.0]), Reproduced, "order");
        check(ranked("not-falling", &[1.0, 0.5]), Differs, "order");
        check(ranked("rising", &[1.0, f64::NAN]), NotComparable, "–");
    }
}
