//! Signals that end a command early.

/// Calls `action` at every Ctrl-C and SIGTERM, and at the end of the terminal (SIGHUP) unless that
/// is ignored, as under `nohup`.
#[cfg(unix)]
pub(super) fn on_interrupt(mut action: impl FnMut() + Send + 'static) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let signals = [SIGINT, SIGTERM].into_iter().chain(hang_up);
    // Without a handler the signals end the program at once.
    if let Ok(mut signals) = signal_hook::iterator::Signals::new(signals) {
        std::thread::spawn(move || signals.forever().for_each(|_| action()));
    }
}

/// Whether this process ignores `signal`; `true` where the system does not say.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Calls `action` at every Ctrl-C.
#[cfg(not(unix))]
pub(super) fn on_interrupt(action: impl FnMut() + Send + 'static) {
    // An error means that an earlier handler stays.
    drop(ctrlc::set_handler(action));
}
