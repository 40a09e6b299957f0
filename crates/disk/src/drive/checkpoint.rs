//! The state of a drive between runs.
//!
//! No command is in the drive when its state is saved. Read-ahead, buffered writes not yet on the
//! medium and the spindle's idle time-out go on in the next run where they were.

use super::HardDisk;
use crate::cache::Segments;
use hybridsim_engine::{Checkpoint, Loader, Saver, StateError};

impl Checkpoint for HardDisk {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&(self.electronics.is_after_write(), self.electronics_free, self.answered));
        to.put(&*self.buffer.borrow());
        to.put(&(self.owes_destage, self.read_ahead, self.destaging));
        to.put(&(self.arm, self.head, self.written));
        to.put(&(self.free_at, self.held_until, self.wake_at));
        to.put(&(&self.clock, &self.power, self.slow));
        self.queue.save(to)
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let after_write;
        (after_write, self.electronics_free, self.answered) = from.take()?;
        self.electronics.set_after_write(after_write);
        // Its positioners share the buffer.
        let spec = *self.buffer.borrow().spec();
        *self.buffer.borrow_mut() = from.take::<Segments>()?.restored(&spec)?;
        (self.owes_destage, self.read_ahead, self.destaging) = from.take()?;
        (self.arm, self.head, self.written) = from.take()?;
        (self.free_at, self.held_until, self.wake_at) = from.take()?;
        (self.clock, self.power, self.slow) = from.take()?;
        self.queue.restore(from)
    }
}
