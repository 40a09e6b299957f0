//! Memory for the data and replies of all connections.

use std::cell::Cell;
use std::time::Duration;
use tokio::sync::Notify;

/// Time in which clients that the server waits for have to take or send something, while others
/// wait for memory.
pub const STALLED: Duration = Duration::from_secs(30);

/// How much of it is in use.
pub struct Budget {
    bytes_max: usize,
    used: Cell<usize>,
    freed: Notify,
}

impl Budget {
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, used: Cell::new(0), freed: Notify::new() }
    }

    /// Whether `bytes` more fit. What alone exceeds the whole is admitted if nothing is in use.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.used.get() == 0 || self.used.get() + bytes <= self.bytes_max
    }

    /// What used `before` bytes uses `now` bytes.
    pub fn change(&self, before: usize, now: usize) {
        self.used.set(self.used.get() - before + now);
        if now < before {
            self.freed.notify_waiters();
        }
    }

    /// Waits until something is freed; `false` after [`STALLED`].
    pub async fn freed(&self) -> bool {
        tokio::time::timeout(STALLED, self.freed.notified()).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_waits_unless_it_is_alone() {
        let budget = Budget::new(100);
        assert!(budget.has_room(1000));
        budget.change(0, 60);
        assert!(budget.has_room(40) && !budget.has_room(41));
        budget.change(60, 10);
        assert!(budget.has_room(90));
        budget.change(10, 0);
        assert!(budget.has_room(101));
    }
}
