//! Events by which Linux's block layer logs each step of a request, and the one that counts as the
//! request's arrival.

use hybridsim_config::param::Kind;
use serde::Serialize;
use std::fmt;

/// A step of a request through the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum BlockEvent {
    /// Submitted by a file system or program, before merging and splitting.
    #[serde(rename = "Q")]
    Queued,
    /// Inserted into the scheduler's queue.
    #[serde(rename = "I")]
    Inserted,
    /// Issued to the device.
    #[serde(rename = "D")]
    Issued,
    #[serde(rename = "C")]
    Completed,
}

impl BlockEvent {
    /// Events that may count as arrival, the preferred one first.
    const ARRIVALS: [Self; 3] = [Self::Issued, Self::Queued, Self::Inserted];

    /// The letter that blktrace uses.
    pub const fn letter(self) -> char {
        match self {
            Self::Queued => 'Q',
            Self::Inserted => 'I',
            Self::Issued => 'D',
            Self::Completed => 'C',
        }
    }

    const fn meaning(self) -> &'static str {
        match self {
            Self::Queued => "queued by a file system or program",
            Self::Inserted => "inserted into the scheduler's queue",
            Self::Issued => "issued to the device",
            Self::Completed => "completed",
        }
    }
}

hybridsim_config::choices! {
    /// The event that counts as arrival.
    pub(crate) enum ArrivalEvent { Best = "best", Queued = "Q", Inserted = "I", Issued = "D" }
}

hybridsim_config::params! {
    /// Parameters of formats that log block-layer events.
    pub(crate) struct Parameters {
        pub event: ArrivalEvent = Kind::Choice(ArrivalEvent::NAMES), default "\"best\"",
            "The event that counts as arrival: Q (queued by a file system or program, before \
             merging), I (inserted into the scheduler's queue) or D (issued to the device); best \
             is D if the first 64 KiB of the trace have any, else Q, else I.";
    }
}

/// Numbers of events of a trace by kind, without commands that transfer no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BlockEvents {
    /// The event that counts as arrival.
    pub arrival: BlockEvent,
    /// Whether the user chose it.
    pub chosen: bool,
    pub queued: u64,
    pub inserted: u64,
    pub issued: u64,
    pub completed: u64,
}

impl BlockEvents {
    /// No events. `has` says whether the first part of the trace has an event.
    pub(crate) fn new(choice: ArrivalEvent, has: impl Fn(BlockEvent) -> bool) -> Self {
        let best = || BlockEvent::ARRIVALS.into_iter().find(|event| has(*event));
        let arrival = match choice {
            ArrivalEvent::Best => best().unwrap_or(BlockEvent::Issued),
            ArrivalEvent::Queued => BlockEvent::Queued,
            ArrivalEvent::Inserted => BlockEvent::Inserted,
            ArrivalEvent::Issued => BlockEvent::Issued,
        };
        let chosen = choice != ArrivalEvent::Best;
        Self { arrival, chosen, queued: 0, inserted: 0, issued: 0, completed: 0 }
    }

    #[inline]
    pub(crate) const fn add(&mut self, event: BlockEvent) {
        match event {
            BlockEvent::Queued => self.queued += 1,
            BlockEvent::Inserted => self.inserted += 1,
            BlockEvent::Issued => self.issued += 1,
            BlockEvent::Completed => self.completed += 1,
        }
    }

    /// The number of events of a kind.
    pub const fn count(&self, event: BlockEvent) -> u64 {
        match event {
            BlockEvent::Queued => self.queued,
            BlockEvent::Inserted => self.inserted,
            BlockEvent::Issued => self.issued,
            BlockEvent::Completed => self.completed,
        }
    }

    /// The kinds that could have counted as arrivals and did not.
    fn others(&self) -> impl Iterator<Item = (BlockEvent, u64)> {
        let own = self.arrival;
        let others = BlockEvent::ARRIVALS.into_iter().filter(move |event| *event != own);
        others.map(|event| (event, self.count(event))).filter(|(_, count)| *count > 0)
    }

    /// A note for a run, unless the user chose the event or there is no choice.
    pub fn note(&self) -> Option<String> {
        let has_choice = !self.chosen && self.others().next().is_some();
        has_choice.then(|| format!("{self}; choose with `event` of the format"))
    }

    /// Why a trace with these events has no requests, where they explain it.
    pub(crate) fn why_no_requests(&self) -> Option<String> {
        if self.count(self.arrival) > 0 {
            return None;
        }
        let letter = self.arrival.letter();
        if let Some((other, count)) = self.others().next() {
            let other = other.letter();
            return Some(format!(
                "it has {count} {other} events, but no {letter} event: choose `event = \
                 \"{other}\"` of the format"
            ));
        }
        (self.completed > 0).then(|| {
            format!(
                "it has {} C events (completions), but none of Q, I or D, from which requests are \
                 read: record issues as well (D; `block_rq_issue` of ftrace)",
                self.completed
            )
        })
    }
}

impl fmt::Display for BlockEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, letter) = (self.count(self.arrival), self.arrival.letter());
        write!(f, "requests are the {count} {letter} events ({})", self.arrival.meaning())?;
        for (event, count) in self.others() {
            write!(f, "; {count} {} events ({}) are not", event.letter(), event.meaning())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_issued_to_the_device_are_preferred() {
        use BlockEvent::{Inserted, Issued, Queued};
        let of = |has: &[BlockEvent], choice| BlockEvents::new(choice, |it| has.contains(&it));
        let best = |has: &[BlockEvent]| of(has, ArrivalEvent::Best).arrival;
        assert_eq!(best(&[Queued, Inserted, Issued]), Issued);
        assert_eq!(best(&[Queued, Inserted]), Queued);
        assert_eq!((best(&[Inserted]), best(&[])), (Inserted, Issued));
        let mut events = of(&[Queued, Issued], ArrivalEvent::Queued);
        [Queued, Queued, Issued].into_iter().for_each(|event| events.add(event));
        assert_eq!(
            events.to_string(),
            "requests are the 2 Q events (queued by a file system or program); 1 D events (issued \
             to the device) are not"
        );
        assert_eq!(events.note(), None, "the user chose");
        assert!(BlockEvents { chosen: false, ..events }.note().is_some());
        assert_eq!(BlockEvents { chosen: false, issued: 0, ..events }.note(), None, "one kind");
    }
}
