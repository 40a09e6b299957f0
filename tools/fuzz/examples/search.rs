//! Random systems until one fails: `search RUNS`. Exits with 1 when one does.

use hybridsim_fuzz::Verdict;
use hybridsim_fuzz::coverage::Coverage;
use hybridsim_simulation::registry::standard;
use std::process::ExitCode;

fn main() -> ExitCode {
    let runs = std::env::args().nth(1).and_then(|it| it.parse().ok()).unwrap_or(100);
    let registry = standard();
    let mut coverage = Coverage::new(&registry);
    for seed in 1..=runs {
        if let Verdict::Failed { scenario, reason } =
            hybridsim_fuzz::one(&registry, seed, &mut coverage)
        {
            println!("{seed}: {}\n{scenario}", reason.lines().next().unwrap_or_default());
            return ExitCode::FAILURE;
        }
    }
    println!("{runs} systems, no failure");
    ExitCode::SUCCESS
}
