//! Faults on demand: finding the component, and the time they occur.

use super::Machine;
use super::traffic::{Timer, TreePosition};
use crate::component::Component;
use crate::event::ComponentId;
use crate::inject::Injected;
use crate::time::SimTime;
use crate::timer::TimerPhase;

/// A fault and its time.
pub(super) struct ScheduledFault {
    at: SimTime,
    node: ComponentId,
    fault: Injected,
    occurred: bool,
}

impl Machine {
    /// Schedules `fault` for the component called `name`, or at that path; without a name for the
    /// only one that takes it. It occurs at `at`, before everything else of that instant; the
    /// instant must not have been simulated.
    ///
    /// # Errors
    /// When no such component takes it: a sentence that lists those that do.
    pub fn schedule_fault(
        &mut self,
        at: SimTime,
        name: Option<&str>,
        fault: Injected,
    ) -> Result<(), String> {
        let node = self.find_taker(name, &fault)?;
        debug_assert!(at > self.core.now || self.handled == 0, "a fault in the past");
        let number = u32::try_from(self.faults.len()).expect("fewer than 2^32 faults");
        self.faults.push(ScheduledFault { at, node, fault, occurred: false });
        self.core.timers.push(at, TimerPhase::Fault, Timer::Fault(number));
        Ok(())
    }

    /// Checks what [`Machine::schedule_fault`] checks.
    ///
    /// # Errors
    /// As [`Machine::schedule_fault`].
    pub fn check_fault(&mut self, name: Option<&str>, fault: &Injected) -> Result<(), String> {
        self.find_taker(name, fault).map(drop)
    }

    /// The names of the components that take faults, with the faults.
    pub fn fault_takers(&mut self) -> Vec<(String, &'static [&'static str])> {
        let taker = |(component, position): (&mut Box<dyn Component>, &TreePosition)| {
            Some((last_name(&position.path).to_owned(), component.faults()?.takes()))
        };
        self.components.iter_mut().zip(&self.core.tree).filter_map(taker).collect()
    }

    fn find_taker(&mut self, name: Option<&str>, fault: &Injected) -> Result<ComponentId, String> {
        let kind = fault.name();
        let takers = self.fault_takers();
        let able = takers.iter().filter(|(_, takes)| takes.contains(&kind));
        let able: Vec<&str> = able.map(|(name, _)| name.as_str()).collect();
        let others = match able.as_slice() {
            [] => format!("no component of this system takes `{kind}`"),
            names => format!("`{kind}` is taken by: {}", names.join(", ")),
        };
        let name = match (name, able.as_slice()) {
            (Some(name), _) => name,
            (None, [only]) => only,
            (None, []) => return Err(others),
            (None, _) => return Err(format!("name the component; {others}")),
        };
        let is_named = |path: &str| path == name || last_name(path) == name;
        let Some(node) = self.core.tree.iter().position(|it| is_named(&it.path)) else {
            return Err(format!("there is no component `{name}`; {others}"));
        };
        let component = &mut self.components[node];
        let component_kind = component.info().kind;
        let Some(taker) = component.faults() else {
            return Err(format!("`{name}` (a {component_kind}) takes no faults; {others}"));
        };
        if !taker.takes().contains(&kind) {
            let takes = taker.takes().join(", ");
            return Err(format!(
                "`{name}` (a {component_kind}) does not take `{kind}`, but: {takes}; {others}"
            ));
        }
        taker.check(fault).map_err(|reason| format!("`{name}`: {reason}"))?;
        Ok(ComponentId(node as u16))
    }

    /// Fault `number` occurs.
    pub(super) fn inject(&mut self, number: usize) {
        let ScheduledFault { node, fault, occurred, .. } = &mut self.faults[number];
        *occurred = true;
        let (node, fault) = (*node, *fault);
        self.with_component(node, |component, ctx| {
            if let Some(taker) = component.faults() {
                taker.inject(ctx, &fault);
            }
        });
    }

    /// Sets the timers of the faults to come again.
    pub(super) fn reschedule_faults(&mut self) {
        for (number, fault) in (0..).zip(&self.faults) {
            if !fault.occurred {
                self.core.timers.push(fault.at, TimerPhase::Fault, Timer::Fault(number));
            }
        }
    }
}

/// The name of the component at `path`.
fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
