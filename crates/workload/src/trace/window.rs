//! The reorder window: sorts records by time, as far as each may be late.

use crate::record::{BATCH_RECORDS, Record};
use hybridsim_engine::SimTime;
use std::collections::VecDeque;

/// Place of a record among those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Behind all others.
    Kept,
    /// Before others.
    Sorted,
    /// It is later than the window is long, and has the time of the record before it.
    TooLate,
}

/// Chunks that late records make longer are divided.
const CHUNK_MAX: usize = 2 * BATCH_RECORDS;

/// The window, in chunks that leave it whole, so that a record in order is never moved. The last
/// [`Self::records_max`] records can be sorted, the others wait for the rest of their chunk.
pub struct Window {
    /// Full chunks, oldest first.
    chunks: VecDeque<Vec<Record>>,
    /// The chunk that records are added to.
    newest: Vec<Record>,
    /// Records in `chunks`.
    chunked: usize,
    records_max: usize,
    /// Time of the newest record.
    last: SimTime,
    /// Time of the newest record that has left the window.
    left: Option<SimTime>,
}

impl Window {
    pub fn new(records_max: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            newest: Vec::with_capacity(BATCH_RECORDS),
            chunked: 0,
            records_max,
            last: SimTime::ZERO,
            left: None,
        }
    }

    /// By how many records a record may be late.
    pub const fn records_max(&self) -> usize {
        self.records_max
    }

    /// Whether no record that may still come belongs into the oldest chunk, however long it is.
    pub fn is_ready(&self) -> bool {
        self.room() == 0
    }

    /// Records to add until the window is ready.
    pub fn room(&self) -> usize {
        (self.records_max + CHUNK_MAX).saturating_sub(self.chunked + self.newest.len())
    }

    /// Whether a record of this time is behind all others, and the newest chunk takes it.
    #[inline(always)]
    pub fn is_followed_by(&self, at: SimTime) -> bool {
        at >= self.last && self.newest.len() < BATCH_RECORDS
    }

    /// Adds a record that follows the others ([`Window::is_followed_by`]).
    #[inline(always)]
    pub fn append(&mut self, record: Record) {
        self.last = record.at;
        self.newest.push(record);
    }

    /// Adds a record, sorted by time.
    pub fn push(&mut self, record: Record) -> Order {
        if self.newest.len() >= BATCH_RECORDS {
            self.close_chunk(Vec::new());
        }
        if !self.is_followed_by(record.at) {
            return self.insert(record);
        }
        self.append(record);
        Order::Kept
    }

    /// Begins a new chunk in the memory of `next`.
    #[cold]
    fn close_chunk(&mut self, mut next: Vec<Record>) {
        next.clear();
        next.reserve(BATCH_RECORDS);
        self.chunked += self.newest.len();
        self.chunks.push_back(std::mem::replace(&mut self.newest, next));
    }

    /// Replaces `batch` with the oldest chunk, or with none when the window is empty.
    pub fn take(&mut self, batch: &mut Vec<Record>) {
        batch.clear();
        if let Some(oldest) = self.chunks.pop_front() {
            self.chunked -= oldest.len();
            let memory = std::mem::replace(batch, oldest);
            if self.newest.len() >= BATCH_RECORDS {
                self.close_chunk(memory);
            }
        } else {
            batch.reserve(BATCH_RECORDS);
            std::mem::swap(&mut self.newest, batch);
        }
        self.left = batch.last().map(|record| record.at).or(self.left);
    }

    /// The records that a late one can be sorted among, newest first.
    pub fn newest_first(&mut self) -> impl Iterator<Item = &mut Record> {
        let chunks = self.chunks.iter_mut().rev().flat_map(|chunk| chunk.iter_mut().rev());
        self.newest.iter_mut().rev().chain(chunks).take(self.records_max)
    }

    /// Adds a record that is older than the newest one.
    #[cold]
    fn insert(&mut self, mut record: Record) -> Order {
        let mut room = self.records_max;
        for older in (0..=self.chunks.len()).rev() {
            let before = older.checked_sub(1).and_then(|at| self.chunks[at].last());
            let before = before.map(|record| record.at).or(self.left);
            let chunk = match self.chunks.get_mut(older) {
                Some(chunk) => chunk,
                None => &mut self.newest,
            };
            let start = chunk.len().saturating_sub(room);
            room -= chunk.len() - start;
            let before = if start > 0 { Some(chunk[start - 1].at) } else { before };
            let at = start + chunk[start..].partition_point(|other| other.at <= record.at);
            let order = match before {
                Some(before) if at == start && before > record.at => {
                    if older > 0 && room > 0 {
                        continue;
                    }
                    record.at = before;
                    Order::TooLate
                }
                _ => Order::Sorted,
            };
            chunk.insert(at, record);
            let divided = (chunk.len() >= CHUNK_MAX).then(|| chunk.split_off(BATCH_RECORDS));
            if older < self.chunks.len() {
                self.chunked += 1;
            }
            if let Some(divided) = divided {
                self.chunks.insert(older + 1, divided);
            }
            return order;
        }
        unreachable!("the oldest chunk takes it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::{Lba, Op, Request, Stream};

    /// A window that moves on record by record.
    fn plainly(times: &[u64], records_max: usize) -> (Vec<(u64, u64)>, Vec<Order>) {
        let (mut window, mut out) = (VecDeque::<(u64, u64)>::new(), Vec::<(u64, u64)>::new());
        let mut orders = Vec::new();
        let mut leave = |(at, number): (u64, u64), orders: &mut Vec<Order>| {
            let last = out.last().map_or(at, |last| last.0);
            if at < last {
                *orders.last_mut().expect("the late record") = Order::TooLate;
            }
            out.push((at.max(last), number));
        };
        for (&at, number) in times.iter().zip(0..) {
            let place = window.partition_point(|other| other.0 <= at);
            orders.push(if place == window.len() { Order::Kept } else { Order::Sorted });
            window.insert(place, (at, number));
            if window.len() > records_max {
                leave(window.pop_front().expect("a record"), &mut orders);
            }
        }
        while let Some(oldest) = window.pop_front() {
            leave(oldest, &mut orders);
        }
        (out, orders)
    }

    /// Times that mostly advance, with late ones, with one far ahead, set back, and falling.
    fn examples() -> Vec<Vec<u64>> {
        let mut stream = Stream::new(1, "window");
        let mut late = |late_max| {
            (0..6_000).map(|at| at + 10_000 - stream.below(late_max)).collect::<Vec<u64>>()
        };
        let mut examples = vec![late(1), late(40), late(3_000), late(8_000)];
        let mut ahead: Vec<u64> = (0..6_000).collect();
        ahead[600] = 1_000_000;
        let falling = (0..6_000).rev().collect();
        let set_back = (0..6_000).map(|at| at % 3_000).collect();
        let repeated = (0..6_000).map(|at| at * 7_919 % 100_003).collect();
        examples.extend([ahead, falling, set_back, repeated]);
        examples
    }

    #[test]
    fn chunks_change_no_order_and_stay_short() {
        for records_max in [0, 1, 7, 511, 512, 513, 2_000, 10_000] {
            for (example, times) in examples().into_iter().enumerate() {
                let (mut window, mut out) = (Window::new(records_max), Vec::new());
                let (mut batch, mut orders) = (Vec::new(), Vec::new());
                let mut take = |window: &mut Window| {
                    window.take(&mut batch);
                    assert!(batch.len() <= CHUNK_MAX);
                    out.extend(batch.iter().map(|r: &Record| (r.at.as_ns(), r.request.lba.0)));
                    !batch.is_empty()
                };
                for (&at, number) in times.iter().zip(0..) {
                    let request = Request::new(Op::Read, Lba(number), 8);
                    let at = SimTime::from_ns(at);
                    orders.push(window.push(Record { at, request, response: None }));
                    if window.is_ready() {
                        assert!(take(&mut window));
                    }
                    let held = window.chunked + window.newest.len();
                    assert!(held < records_max + CHUNK_MAX, "{held} {records_max} {example}");
                    let counted: usize = window.chunks.iter().map(Vec::len).sum();
                    assert_eq!(counted, window.chunked);
                }
                while take(&mut window) {}
                let (expected, their_orders) = plainly(&times, records_max);
                assert_eq!(out, expected, "{records_max} {example}");
                assert_eq!(orders, their_orders, "{records_max} {example}");
            }
        }
    }
}
