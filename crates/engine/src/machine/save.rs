//! The state of a machine between runs.

use super::Machine;
use super::traffic::Event;
use crate::event::Phase;
use crate::fact::NodeId;
use crate::state::{Loader, Saver, StateError};
use crate::time::SimTime;

impl Machine {
    /// The state of everything below the root, after a run that settled.
    ///
    /// # Errors
    /// When requests are in flight, or a layer cannot save itself.
    pub fn save(&self) -> Result<Vec<u8>, StateError> {
        if self.in_flight() > 0 {
            return Err(StateError(format!("{} requests are in flight", self.in_flight())));
        }
        let mut saver = Saver::default();
        let wakes: Vec<(SimTime, u16, u64)> = self
            .core
            .events
            .in_order()
            .into_iter()
            .filter_map(|(time, event)| match event {
                // The root's timers belong to its workload, which ends with the run.
                Event::Wake(node, token) if node.0 != 0 => Some((time, node.0, token)),
                _ => None,
            })
            .collect();
        saver.put(&(self.core.now, wakes));
        for (layer, place) in self.layers.iter().zip(&self.core.places).skip(1) {
            layer.save(&mut saver).map_err(|error| located(&place.path, &error))?;
        }
        Ok(saver.into_bytes())
    }

    /// Goes on from `state`: everything below the root takes its own back, and it is the time it
    /// was then. The root begins afresh.
    ///
    /// # Errors
    /// When the state is not of this system; the machine must not be used afterwards.
    pub fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let mut loader = Loader::new(state);
        let (now, wakes): (SimTime, Vec<(SimTime, u16, u64)>) = loader.take()?;
        for (layer, place) in self.layers.iter_mut().zip(&self.core.places).skip(1) {
            layer.restore(&mut loader).map_err(|error| located(&place.path, &error))?;
        }
        loader.end()?;
        self.core.now = now;
        for (time, node, token) in wakes {
            if time < now || usize::from(node) >= self.layers.len() {
                return Err(StateError(format!("a timer of node {node} at {time} makes no sense")));
            }
            self.core.events.push(time, Phase::Wake, Event::Wake(NodeId(node), token));
        }
        self.prepared[1..].fill(true);
        Ok(())
    }
}

fn located(path: &str, error: &StateError) -> StateError {
    StateError(format!("{path}: {error}"))
}
