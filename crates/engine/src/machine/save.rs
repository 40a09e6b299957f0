//! The state of a machine between runs.

use super::Machine;
use super::traffic::Timer;
use crate::component::{Checkpoint, Component};
use crate::event::ComponentId;
use crate::state::{Loader, Saver, StateError};
use crate::time::SimTime;
use crate::timer::TimerPhase;

impl Machine {
    /// The state of every component, after a run that settled. Of the root it holds what a later
    /// run continues, its scheduler for example, but not its workload.
    ///
    /// # Errors
    /// If requests are in flight, or a component cannot save itself.
    pub fn save(&mut self) -> Result<Vec<u8>, StateError> {
        self.save_into(Saver::default())
    }

    /// Checks that there is nothing that cannot be saved, without the work of saving it.
    ///
    /// # Errors
    /// As [`Machine::save`].
    pub fn try_save(&mut self) -> Result<(), StateError> {
        self.save_into(Saver::trial()).map(drop)
    }

    fn save_into(&mut self, mut saver: Saver) -> Result<Vec<u8>, StateError> {
        if self.in_flight() > 0 {
            return Err(StateError(format!("{} requests are in flight", self.in_flight())));
        }
        let wakes: Vec<(SimTime, u16, u64)> = self
            .core
            .timers
            .in_order()
            .into_iter()
            .filter_map(|(time, timer)| match timer {
                // The root's timers belong to its workload, which ends with the run.
                Timer::Wake(node, token) if node.0 != 0 => Some((time, node.0, token)),
                _ => None,
            })
            .collect();
        saver.put(&(self.core.now, wakes));
        for (component, position) in self.components.iter_mut().zip(&self.core.tree).skip(1) {
            let saved = checkpoint(component.as_mut()).and_then(|state| state.save(&mut saver));
            saved.map_err(|error| located(&position.path, &error))?;
        }
        let mut root = Saver::default();
        if let Some(state) = self.components[0].checkpoint() {
            state.save(&mut root).map_err(|error| located(&self.core.tree[0].path, &error))?;
        }
        saver.put_bytes(&root.into_bytes());
        Ok(saver.into_bytes())
    }

    /// Continues from `state`, at the time of the save. The root takes back its own part too, but
    /// begins its workload afresh.
    ///
    /// # Errors
    /// If the state is not of this system; the machine must not be used afterwards.
    pub fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let mut loader = Loader::new(state);
        let (now, wakes): (SimTime, Vec<(SimTime, u16, u64)>) = loader.take()?;
        for (component, position) in self.components.iter_mut().zip(&self.core.tree).skip(1) {
            let restored =
                checkpoint(component.as_mut()).and_then(|state| state.restore(&mut loader));
            restored.map_err(|error| located(&position.path, &error))?;
        }
        let root = loader.take_bytes()?;
        loader.end()?;
        if let Some(own) = self.components[0].checkpoint().filter(|_| !root.is_empty()) {
            let mut loader = Loader::new(root);
            let restored = own.restore(&mut loader).and_then(|()| loader.end());
            restored.map_err(|error| located(&self.core.tree[0].path, &error))?;
        }
        self.core.now = now;
        for (time, node, token) in wakes {
            if time < now || usize::from(node) >= self.components.len() {
                return Err(StateError(format!("a timer of node {node} at {time} makes no sense")));
            }
            self.core.timers.push(time, TimerPhase::Wake, Timer::Wake(ComponentId(node), token));
        }
        self.prepared[1..].fill(true);
        Ok(())
    }
}

fn checkpoint(component: &mut dyn Component) -> Result<&mut dyn Checkpoint, StateError> {
    let kind = component.info().kind;
    component.checkpoint().ok_or_else(|| StateError(format!("a `{kind}` cannot save its state")))
}

fn located(path: &str, error: &StateError) -> StateError {
    StateError(format!("{path}: {error}"))
}
