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
