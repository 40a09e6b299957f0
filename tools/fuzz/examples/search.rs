//! Random systems until one fails: `search RUNS [FIRST]`. Exits with 1 when one does.

use hybridsim_fuzz::Verdict;
use hybridsim_fuzz::coverage::Coverage;
use hybridsim_simulation::registry::standard;
use std::process::ExitCode;

fn main() -> ExitCode {
    let number = |at| std::env::args().nth(at).and_then(|it| it.parse::<u64>().ok());
    let (runs, first) = (number(1).unwrap_or(100), number(2).unwrap_or(1));
    let registry = standard();
    let mut coverage = Coverage::new(&registry);
    for seed in first..first + runs {
        if let Verdict::Failed { scenario, reason } =
            hybridsim_fuzz::one(&registry, seed, &mut coverage)
        {
            println!("{seed}: {}\n{scenario}", reason.lines().next().unwrap_or_default());
            return ExitCode::FAILURE;
        }
    }
    println!("{coverage}");
    ExitCode::SUCCESS
}
