//! Arbitration between submission queues, in the terms of the NVM Express base specification
//! (section "Command Arbitration"): round robin, and weighted round robin with an urgent priority
//! class. The specification assigns weights to three priority classes; here each queue has its own.

use hybridsim_engine::{Loader, Saver, StateError};

hybridsim_config::choices! {
    /// Choice of the queue from which the next request is taken.
    #[derive(Default)]
    pub enum Arbitration {
        /// Each queue in turn, an arbitration burst of requests at a time.
        #[default]
        RoundRobin = "round-robin",
        /// In a round, each queue has as many requests taken as its weight says.
        WeightedRoundRobin = "weighted-round-robin",
    }
}

/// A submission queue to the arbiter.
#[derive(Clone, Copy, Debug)]
struct Queue {
    weight: u32,
    urgent: bool,
    /// Requests left in this round.
    credits: u32,
}

/// Chooses queues.
#[derive(Clone, Debug)]
pub struct Arbiter {
    arbitration: Arbitration,
    burst: u32,
    queues: Vec<Queue>,
    /// The queue chosen last, for the urgent class and the others.
    turns: [Turn; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    queue: usize,
    /// Requests it may have taken in its turn.
    left: u32,
}

impl Arbiter {
    /// An arbiter for queues of these weights, `true` for those of the urgent class, which
    /// precedes the others.
    pub fn new(arbitration: Arbitration, burst: u32, queues: &[(u32, bool)]) -> Self {
        let queue = |&(weight, urgent): &(u32, bool)| Queue { weight, urgent, credits: weight };
        let last = queues.len().saturating_sub(1);
        let turns = [Turn { queue: last, left: 0 }; 2];
        Self { arbitration, burst, queues: queues.iter().map(queue).collect(), turns }
    }

    /// Writes whose turn it is, and the credits left.
    pub fn save(&self, to: &mut Saver) {
        self.turns.iter().for_each(|turn| to.put(&(turn.queue, turn.left)));
        self.queues.iter().for_each(|queue| to.put(&queue.credits));
    }

    /// Reads back what [`Arbiter::save`] wrote.
    ///
    /// # Errors
    /// If the state belongs to other queues.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        for turn in &mut self.turns {
            (turn.queue, turn.left) = from.take()?;
            if turn.queue >= self.queues.len() {
                return Err(StateError(format!("there is no submission queue {}", turn.queue)));
            }
        }
        for queue in &mut self.queues {
            queue.credits = from.take()?;
        }
        Ok(())
    }

    /// The queue to take the next request from: one of those that are `ready`.
    pub fn choose(&mut self, ready: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.choose_in(true, ready).or_else(|| self.choose_in(false, ready))
    }

    fn choose_in(&mut self, urgent: bool, ready: &dyn Fn(usize) -> bool) -> Option<usize> {
        let count = self.queues.len();
        let weighted = self.arbitration == Arbitration::WeightedRoundRobin && !urgent;
        let turn = self.turns[usize::from(urgent)];
        let fits = |queue: usize| self.queues[queue].urgent == urgent && ready(queue);
        let has_credit = |queue: usize| !weighted || self.queues[queue].credits > 0;
        let queue = if turn.left > 0 && fits(turn.queue) && has_credit(turn.queue) {
            turn.queue
        } else {
            let following = (1..=count).map(|step| (turn.queue + step) % count);
            match following.clone().find(|&queue| fits(queue) && has_credit(queue)) {
                Some(queue) => queue,
                None => {
                    // A round ends when every queue with requests has used its credits. Those
                    // without requests do not save theirs.
                    let queue = following.clone().find(|&queue| fits(queue))?;
                    self.queues.iter_mut().for_each(|queue| queue.credits = queue.weight);
                    queue
                }
            }
        };
        let turn = &mut self.turns[usize::from(urgent)];
        let same = turn.queue == queue && turn.left > 0;
        *turn = Turn { queue, left: if same { turn.left - 1 } else { self.burst - 1 } };
        if weighted {
            self.queues[queue].credits -= 1;
        }
        Some(queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(arbiter: &mut Arbiter, count: usize, ready: &dyn Fn(usize) -> bool) -> Vec<usize> {
        (0..count).map_while(|_| arbiter.choose(ready)).collect()
    }

    #[test]
    fn round_robin_takes_a_burst_of_each() {
        let queues = [(1, false), (9, false), (1, false)];
        let mut arbiter = Arbiter::new(Arbitration::RoundRobin, 1, &queues);
        assert_eq!(order(&mut arbiter, 5, &|_| true), [0, 1, 2, 0, 1]);
        assert_eq!(order(&mut arbiter, 3, &|queue| queue != 2), [0, 1, 0]);
        let mut arbiter = Arbiter::new(Arbitration::RoundRobin, 2, &queues);
        assert_eq!(order(&mut arbiter, 7, &|_| true), [0, 0, 1, 1, 2, 2, 0]);
        assert_eq!(order(&mut arbiter, 3, &|_| false), [0; 0]);
    }

    #[test]
    fn weights_are_requests_in_a_round() {
        let queues = [(3, false), (1, false), (2, false)];
        let mut arbiter = Arbiter::new(Arbitration::WeightedRoundRobin, 1, &queues);
        assert_eq!(order(&mut arbiter, 7, &|_| true), [0, 1, 2, 0, 2, 0, 1]);
        let mut arbiter = Arbiter::new(Arbitration::WeightedRoundRobin, 8, &queues);
        assert_eq!(order(&mut arbiter, 7, &|_| true), [0, 0, 0, 1, 2, 2, 0]);
    }

    #[test]
    fn an_idle_queue_saves_no_credits() {
        let mut arbiter =
            Arbiter::new(Arbitration::WeightedRoundRobin, 1, &[(2, false), (2, false)]);
        assert_eq!(order(&mut arbiter, 6, &|queue| queue == 0), [0; 6]);
        // What is left of the round, and then half of the requests: not what six rounds gave it.
        assert_eq!(order(&mut arbiter, 8, &|_| true), [1, 1, 0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn the_urgent_class_precedes() {
        let queues = [(1, false), (1, true), (5, true)];
        let mut arbiter = Arbiter::new(Arbitration::WeightedRoundRobin, 1, &queues);
        assert_eq!(order(&mut arbiter, 4, &|_| true), [1, 2, 1, 2]);
        assert_eq!(arbiter.choose(&|queue| queue == 0), Some(0));
    }
}
