//! Which schedulers can be part of a saved state.

use hybridsim_engine::StateError;

/// Schedulers that hold nothing besides the queue. The queue is empty when a state is saved.
const STATELESS: &[&str] = &["fcfs", "sstf", "sptf", "satf", "spctf", "sdf"];

/// Checks that a state can be saved although the scheduler's own state is not part of it.
///
/// # Errors
/// When the scheduler registered as `name` has a state that outlives its requests.
pub fn check_stateless(name: &str) -> Result<(), StateError> {
    if STATELESS.contains(&name) {
        return Ok(());
    }
    Err(StateError(format!("the scheduler `{name}` cannot save its state")))
}
