//! Memory for the data and replies of all connections.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Time in which clients that the server waits for have to take or send something, while others
/// wait for memory.
pub const STALLED: Duration = Duration::from_secs(30);

/// A limit on memory, with the bytes in use.
pub struct Budget {
    bytes_max: usize,
    used: Cell<usize>,
    /// Those that wait, first come, first served.
    waiting: RefCell<VecDeque<u64>>,
    /// Numbers those that wait.
    numbers: Cell<u64>,
    freed: Notify,
}

/// A place among those that wait for memory.
struct Place<'a> {
    budget: &'a Budget,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.budget.waiting.borrow_mut().retain(|number| *number != self.number);
        self.budget.freed.notify_waiters();
    }
}

impl Budget {
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            used: Cell::new(0),
            waiting: RefCell::default(),
            numbers: Cell::new(0),
            freed: Notify::new(),
        }
    }

    /// Whether `bytes` more fit. More than the whole fit if nothing is in use.
    fn has_room(&self, bytes: usize) -> bool {
        self.used.get() == 0 || self.used.get() + bytes <= self.bytes_max
    }

    /// A user of `before` bytes now uses `now` bytes.
    pub fn change(&self, before: usize, now: usize) {
        self.used.set(self.used.get() - before + now);
        if now < before {
            self.freed.notify_waiters();
        }
    }

    /// Waits until `bytes` more fit; calls `stalled` whenever that has taken another [`STALLED`].
    pub async fn room(&self, bytes: usize, stalled: impl Fn()) {
        if self.waiting.borrow().is_empty() && self.has_room(bytes) {
            return;
        }
        let number = self.numbers.replace(self.numbers.get() + 1);
        self.waiting.borrow_mut().push_back(number);
        let place = Place { budget: self, number };
        let mut deadline = Instant::now() + STALLED;
        while self.waiting.borrow().front() != Some(&place.number) || !self.has_room(bytes) {
            if tokio::time::timeout_at(deadline, self.freed.notified()).await.is_err() {
                stalled();
                deadline = Instant::now() + STALLED;
            }
        }
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

    #[tokio::test(start_paused = true)]
    async fn a_large_request_is_not_overtaken_and_stalled_clients_are_reported_in_time() {
        let budget = Budget::new(100);
        budget.change(0, 90);
        let (stalled, served) = (Cell::new(0), RefCell::new(Vec::new()));
        let large = async {
            budget.room(50, || stalled.set(stalled.get() + 1)).await;
            served.borrow_mut().push("large");
        };
        let small = async {
            tokio::task::yield_now().await;
            budget.room(5, || ()).await;
            served.borrow_mut().push("small");
        };
        let others = async {
            // Others come and go all the time.
            for _ in 0..70 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                budget.change(90, 80);
                budget.change(80, 90);
            }
            assert!(served.borrow().is_empty(), "{:?}", served.borrow());
            budget.change(90, 40);
        };
        tokio::join!(large, small, others);
        assert_eq!((stalled.get(), served.into_inner()), (2, vec!["large", "small"]));
    }
}
