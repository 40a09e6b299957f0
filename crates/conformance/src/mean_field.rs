//! The write amplification of cleaning under uniform random writes, by theory.

/// The principal branch of Lambert's W, for -1/e < x < 0, by Newton's method.
fn lambert_w(x: f64) -> f64 {
    (0..100).fold(-0.5, |w: f64, _| w - (w * w.exp() - x) / (w.exp() * (w + 1.0)))
}

/// FIFO cleaning (Desnoyers, SYSTOR 2012): a / (a + W(-a e^-a)), a = physical / exported.
pub fn fifo(a: f64) -> f64 {
    a / (a + lambert_w(-a * (-a).exp()))
}

/// Greedy cleaning of very many blocks of `pages` pages, filled to `full`.
///
/// In the stationary state every level j above the threshold m is left at the rate the collector
/// refills blocks, so a share 1/j of them has j valid pages; of level m the collector takes a
/// share 1 - q directly and the rest from below. Filling: all shares add up to 1 and hold `full`.
pub fn greedy(pages: u32, full: f64) -> f64 {
    let b = f64::from(pages);
    let harmonic = |from: u32| (from + 1..=pages).map(|j| 1.0 / f64::from(j)).sum::<f64>();
    let (mut low, mut high) = (0.0, b - 1e-9);
    for _ in 0..200 {
        let victim: f64 = (low + high) / 2.0;
        let m = victim.floor() as u32 + 1;
        let q = f64::from(m) - victim;
        let filled = (b - victim) / (harmonic(m) + q / f64::from(m)) / b;
        if filled < full { low = victim } else { high = victim }
    }
    b / (b - low)
}

/// Cleaning of blocks drawn at random, which are as full as the device.
pub fn random(full: f64) -> f64 {
    1.0 / (1.0 - full)
}

/// Collecting the best of `d` blocks drawn at random, of very many blocks of `pages` pages, filled
/// to `full`.
///
/// Let s(i) be the share of blocks with i or more valid pages. Per victim of each block on average
/// one full block comes in, a share s(i)^d of the victims has i or more valid pages, and each of
/// the i (s(i) - s(i + 1)) pages of blocks with exactly i is overwritten at a rate c that is the
/// same for all pages. What comes into the blocks with i or more must leave them:
///
/// ```text
/// 1 = s(i)^d + c i (s(i) - s(i + 1)),     s(pages + 1) = 0.
/// ```
///
/// For a given c this gives s from the top down; c follows from the sum of s, the mean number of
/// valid pages. Summed over i: c times that mean is the number of pages the host writes per
/// victim. With d = 1 the sum of s(i)^d is the mean itself, so 1 / (1 - full), which is tested.
pub fn choices(d: u32, pages: u32, full: f64) -> f64 {
    let mean_valid = |c: f64| {
        let (mut above, mut sum) = (0.0, 0.0);
        for i in (1..=pages).rev() {
            let rate = c * f64::from(i);
            let (mut low, mut high) = (above, 1.0);
            for _ in 0..60 {
                let s: f64 = (low + high) / 2.0;
                let out = s.powi(d as i32) + rate * (s - above);
                if out < 1.0 { low = s } else { high = s }
            }
            above = (low + high) / 2.0;
            sum += above;
        }
        sum
    };
    let wanted = full * f64::from(pages);
    let (mut low, mut high) = (1e-6, 1e3f64);
    for _ in 0..100 {
        let c = (low * high).sqrt();
        if mean_valid(c) > wanted { low = c } else { high = c }
    }
    f64::from(pages) / (low * wanted)
}
