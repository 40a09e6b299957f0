//! Writes that wait for entries of the write buffer, in order of arrival, with the operations that
//! are scheduled when they get them.

use super::request::RequestSchedule;
use crate::ops::FlashOp;
use hybridsim_engine::SimTime;
use std::collections::VecDeque;

/// A write some of whose pages are not in the write buffer.
#[derive(Clone, Copy, Debug)]
pub struct WaitingWrite {
    pub schedule: RequestSchedule,
    pub number: u64,
    pub pages: usize,
}

#[derive(Clone, Copy, Debug)]
struct WaitingPage {
    /// Number of operations.
    ops: usize,
    bytes: u64,
}

/// The queue of the write buffer.
#[derive(Debug, Default)]
pub struct WaitingWrites {
    writes: VecDeque<WaitingWrite>,
    /// Pages of all writes and of the current request, in order.
    pages: VecDeque<WaitingPage>,
    /// Operations of all pages, in order.
    ops: VecDeque<FlashOp>,
    pages_of_current: usize,
    /// Time at which the first page gets its entry, as far as it is known.
    pub until: SimTime,
}

impl WaitingWrites {
    /// Whether no page waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Another page of the current request waits.
    pub fn push_page(&mut self, ops: &[FlashOp], bytes: u64) {
        self.ops.extend(ops);
        self.pages.push_back(WaitingPage { ops: ops.len(), bytes });
        self.pages_of_current += 1;
    }

    /// The current request, some of whose pages wait, is complete.
    pub fn end_current(&mut self, schedule: &RequestSchedule, number: u64) {
        let pages = std::mem::take(&mut self.pages_of_current);
        self.writes.push_back(WaitingWrite { schedule: *schedule, number, pages });
    }

    /// Drops the pages of the current request.
    pub fn drop_current(&mut self) {
        for _ in 0..std::mem::take(&mut self.pages_of_current) {
            let page = self.pages.pop_back().expect("pages of the current request");
            self.ops.truncate(self.ops.len() - page.ops);
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Removes the first write; its pages remain the first.
    pub fn pop_write(&mut self) -> Option<WaitingWrite> {
        self.writes.pop_front()
    }

    pub fn put_back(&mut self, write: WaitingWrite) {
        self.writes.push_front(write);
    }

    /// Removes the first page: its operations go to `ops`. Returns its bytes.
    pub fn pop_page(&mut self, ops: &mut Vec<FlashOp>) -> u64 {
        let page = self.pages.pop_front().expect("waiting writes have waiting pages");
        ops.clear();
        ops.extend(self.ops.drain(..page.ops));
        page.bytes
    }
}
