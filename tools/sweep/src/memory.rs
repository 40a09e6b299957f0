//! As many simulations at once as fit into memory.

use hybridsim_config::units::write_bytes;
use std::sync::{Condvar, Mutex, PoisonError};

/// Memory shared by simulations that run at the same time.
#[derive(Debug)]
pub struct Memory {
    limit: u64,
    used: Mutex<u64>,
    freed: Condvar,
}

/// The memory of one simulation; returned when dropped.
pub struct Share<'m> {
    memory: &'m Memory,
    bytes: u64,
}

impl Memory {
    /// At most `limit` bytes at a time.
    pub fn new(limit: u64) -> Self {
        Self { limit, used: Mutex::new(0), freed: Condvar::new() }
    }

    /// Nine tenths of what is available now; unlimited where that is not known.
    pub fn available() -> Self {
        let free = hybridsim_simulation::memory::available();
        Self::new(free.map_or(u64::MAX, |bytes| bytes / 10 * 9))
    }

    /// The bytes of all.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Waits until `bytes` are free.
    ///
    /// # Errors
    /// Fails when they never will be.
    pub fn take(&self, bytes: u64) -> Result<Share<'_>, String> {
        if bytes > self.limit {
            let [needed, limit] = [bytes, self.limit].map(|bytes| write_bytes(bytes >> 20 << 20));
            return Err(format!(
                "needs about {needed} of memory, of which {limit} can be used; make the device \
                 smaller or run it on a larger computer"
            ));
        }
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |used: &mut u64| used.saturating_add(bytes) > self.limit;
        let mut used = self.freed.wait_while(used, full).unwrap_or_else(PoisonError::into_inner);
        *used += bytes;
        Ok(Share { memory: self, bytes })
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        *self.memory.used.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.memory.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn only_as_many_run_at_once_as_fit() {
        let memory = Memory::new(10);
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let share = memory.take(4).expect("it fits");
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    now.fetch_sub(1, Ordering::SeqCst);
                    drop(share);
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 2);
        let refused = Memory::new(8 << 20).take(2 << 30).map(|_| ()).expect_err("too large");
        assert!(refused.contains("2GiB") && refused.contains("8MiB"), "{refused}");
    }
}
