//! Faults on demand that disks take: a slow mechanism.

use hybridsim_engine::{Injected, Slowdown};

/// The faults of a disk.
pub const TAKES: &[&str] = &["slow"];

/// Checks that `fault` can occur to a disk.
///
/// # Errors
/// A slow die: a disk has none.
pub fn check(fault: &Injected) -> Result<(), String> {
    match fault {
        Injected::Slow { die: Some(_), .. } => {
            Err("a disk has no dies: leave out `die`".to_owned())
        }
        _ => Ok(()),
    }
}

/// Sets `slowdown` as `fault` says.
pub fn slow_down(slowdown: &mut Slowdown, fault: &Injected) {
    if let Injected::Slow { factor, .. } = *fault {
        *slowdown = Slowdown::by(factor);
    }
}
