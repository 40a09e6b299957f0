//! Error correction: with what probability a page has a codeword with too many bit errors.

/// A code that corrects so many bits of each codeword, and how many codewords a page has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ecc {
    bits: u64,
    corrects: u64,
    codewords: f64,
    /// Logarithms of the binomial coefficients of `bits` over `corrects` and one more.
    choose: [f64; 2],
}

/// Chances below e to this power are taken for zero: they are below the resolution of a 53-bit
/// random number.
const LOG_NEGLIGIBLE: f64 = -46.0;

impl Ecc {
    /// `corrects` is below `bits`.
    pub fn new(bits: u64, corrects: u64, codewords: u64) -> Self {
        let log_factorial = |n: u64| libm::lgamma(n as f64 + 1.0);
        let choose = |k: u64| log_factorial(bits) - log_factorial(k) - log_factorial(bits - k);
        let choose = [choose(corrects), choose(corrects + 1)];
        Self { bits, corrects, codewords: codewords as f64, choose }
    }

    /// The probability that a page cannot be corrected at raw bit error rate `rber`.
    pub fn page_fails(&self, rber: f64) -> f64 {
        -libm::expm1(self.codewords * libm::log1p(-self.codeword_fails(rber)))
    }

    /// The probability of more bit errors in a codeword than are corrected: the upper tail of the
    /// binomial distribution.
    pub fn codeword_fails(&self, rber: f64) -> f64 {
        if rber <= 0.0 {
            return 0.0;
        }
        if rber >= 1.0 {
            return 1.0;
        }
        let (n, k) = (self.bits as f64, (self.corrects + 1) as f64);
        let mean = n * rber;
        // Chernoff's bound.
        if k > mean && k - mean - k * libm::log(k / mean) < LOG_NEGLIGIBLE {
            return 0.0;
        }
        let odds = rber / (1.0 - rber);
        let term = |choose: f64, k: f64| {
            libm::exp(choose + k * libm::log(rber) + (n - k) * libm::log1p(-rber))
        };
        if k > mean {
            let up = |k: f64| (n - k) / (k + 1.0) * odds;
            return series(term(self.choose[1], k), k, n, up);
        }
        // The lower tail is the smaller one: its terms, counted from the last on.
        let k = self.corrects as f64;
        let down = |left: f64| (k - left) / ((n - k + left + 1.0) * odds);
        (1.0 - series(term(self.choose[0], k), 0.0, k, down)).max(0.0)
    }
}

/// The sum of `term` and those that follow it, each `ratio` of its number times the one before,
/// from number `from` up to number `to`.
fn series(mut term: f64, from: f64, to: f64, ratio: impl Fn(f64) -> f64) -> f64 {
    let (mut sum, mut at) = (term, from);
    while at < to && term > sum * f64::EPSILON {
        term *= ratio(at);
        sum += term;
        at += 1.0;
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tail summed from the recurrence of the distribution, from no error on.
    fn tail(n: u32, corrects: u32, p: f64) -> f64 {
        let mut term = libm::pow(1.0 - p, f64::from(n));
        let mut sum = 0.0;
        for k in 0..=n {
            sum += if k > corrects { term } else { 0.0 };
            term *= f64::from(n - k) / f64::from(k + 1) * p / (1.0 - p);
        }
        sum
    }

    #[test]
    fn the_tail_is_that_of_the_binomial_distribution() {
        for (n, corrects) in [(1, 0), (64, 1), (512, 4), (4_096, 15), (8_192, 72)] {
            let ecc = Ecc::new(u64::from(n), u64::from(corrects), 1);
            for p in [1e-5, 1e-4, 1e-3, 3e-3, 8.8e-3, 0.01, 0.02, 0.05] {
                let (found, wanted) = (ecc.codeword_fails(p), tail(n, corrects, p));
                let most = 1e-9 * wanted + 1e-18;
                assert!((found - wanted).abs() < most, "{n} {corrects} {p}: {found} {wanted}");
            }
        }
    }

    #[test]
    fn certain_and_impossible_errors_have_chances_of_one_and_zero() {
        let ecc = Ecc::new(8_192, 72, 4);
        assert_eq!([0.0, 1e-7].map(|p| ecc.page_fails(p)), [0.0, 0.0]);
        assert!([0.05, 0.5, 1.0].iter().all(|p| ecc.page_fails(*p) == 1.0));
        // Four codewords fail about four times as often as one, as long as that is rare.
        let one = ecc.codeword_fails(5e-3);
        assert!(one > 0.0 && (ecc.page_fails(5e-3) / (4.0 * one) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_published_code_fails_as_often_as_its_designer_says() {
        // Hetzler (2012), "The error rate surface for MLC NAND flash": a code that corrects 15 of
        // 4,291 bits turns a bit error rate of 3.4e-4 into a sector failure rate of 4.1e-12. The
        // rate, printed with two digits, may be 3.35e-4: the tail grows with its 16th power.
        let ecc = Ecc::new(4_291, 15, 1);
        let (low, high) = (ecc.codeword_fails(3.35e-4), ecc.codeword_fails(3.45e-4));
        assert!(low < 4.15e-12 && high > 4.05e-12, "{low:e} to {high:e}");
    }
}
