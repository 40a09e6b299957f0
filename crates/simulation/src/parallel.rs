//! Independent work on several threads.

use std::sync::{Mutex, mpsc};
use std::thread;

/// As many threads as there are processors.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Applies `work` to every item on up to `threads` threads, which is this one alone where one
/// suffices; results come in the order of `items`. `finished` is called in this thread as each of
/// them is done, with its position in `items`.
///
/// # Panics
/// Panics when `work` panics.
pub fn parallel_map<T: Send, R: Send>(
    items: Vec<T>,
    threads: usize,
    work: impl Fn(T) -> R + Sync,
    mut finished: impl FnMut(usize, &R),
) -> Vec<R> {
    let count = items.len();
    if threads.min(count) <= 1 {
        let one = |(at, item)| {
            let result = work(item);
            finished(at, &result);
            result
        };
        return items.into_iter().enumerate().map(one).collect();
    }
    let queue = Mutex::new(items.into_iter().enumerate());
    let (send, receive) = mpsc::channel();
    let next = || queue.lock().ok()?.next();
    let mut results: Vec<(usize, R)> = Vec::with_capacity(count);
    thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            let (send, next, work) = (send.clone(), &next, &work);
            scope.spawn(move || {
                while let Some((at, item)) = next() {
                    // The receiver outlives the threads.
                    drop(send.send((at, work(item))));
                }
            });
        }
        drop(send);
        for (at, result) in receive {
            finished(at, &result);
            results.push((at, result));
        }
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        for threads in [0, 1, 3, 100] {
            let mut calls = Vec::new();
            let squares = parallel_map(
                (0..50u64).collect(),
                threads,
                |n| {
                    // Later items finish first.
                    thread::sleep(std::time::Duration::from_micros((50 - n) * 10));
                    n * n
                },
                |at, square| calls.push((at as u64).pow(2) == *square),
            );
            assert_eq!(squares, (0..50).map(|n| n * n).collect::<Vec<_>>(), "{threads} threads");
            assert_eq!(calls, [true; 50]);
        }
        assert!(parallel_map(Vec::<u8>::new(), 4, |n| n, |_, _| {}).is_empty());
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_is_passed_on() {
        parallel_map(vec![1, 2], 2, |n| assert_ne!(n, 2), |_, ()| {});
    }
}
