//! Fault injection: finding the component, and the time of the fault.

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
    /// only one that supports it. It occurs at `at`, before everything else of that instant; the
    /// instant must not have been simulated.
    ///
    /// # Errors
    /// If no such component supports it: a sentence that lists those that do.
    pub fn schedule_fault(
        &mut self,
        at: SimTime,
        name: Option<&str>,
        fault: Injected,
    ) -> Result<(), String> {
        let node = self.find_supporting(name, &fault)?;
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
        self.find_supporting(name, fault).map(drop)
    }

    /// The names of the components that support faults, with the faults.
    pub fn supported_faults(&mut self) -> Vec<(String, &'static [&'static str])> {
        let one = |(component, position): (&mut Box<dyn Component>, &TreePosition)| {
            Some((last_name(&position.path).to_owned(), component.faults()?.supported()))
        };
        self.components.iter_mut().zip(&self.core.tree).filter_map(one).collect()
    }

    fn find_supporting(
        &mut self,
        name: Option<&str>,
        fault: &Injected,
    ) -> Result<ComponentId, String> {
        let kind = fault.name();
        let components = self.supported_faults();
        let able = components.iter().filter(|(_, supported)| supported.contains(&kind));
        let able: Vec<&str> = able.map(|(name, _)| name.as_str()).collect();
        let others = match able.as_slice() {
            [] => format!("no component of this system supports `{kind}`"),
            names => format!("components that support `{kind}`: {}", names.join(", ")),
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
        let Some(target) = component.faults() else {
            return Err(format!("`{name}` (a {component_kind}) supports no faults; {others}"));
        };
        if !target.supported().contains(&kind) {
            let supported = target.supported().join(", ");
            return Err(format!(
                "`{name}` (a {component_kind}) does not support `{kind}`; it supports: \
                 {supported}; {others}"
            ));
        }
        target.check(fault).map_err(|reason| format!("`{name}`: {reason}"))?;
        Ok(ComponentId(node as u16))
    }

    /// Faults due when the run starts occur before the first requests reach the devices.
    pub(super) fn inject_due(&mut self) {
        for number in 0..self.faults.len() {
            if self.faults[number].at <= self.core.now {
                self.inject(number);
            }
        }
    }

    /// The faults that have not occurred: their numbers, in the order in which they were
    /// scheduled, and times.
    pub fn faults_to_come(&self) -> impl Iterator<Item = (usize, SimTime)> {
        let numbered = self.faults.iter().enumerate();
        numbered.filter(|(_, fault)| !fault.occurred).map(|(number, fault)| (number, fault.at))
    }

    /// Fault `number` occurs, if it has not.
    pub(super) fn inject(&mut self, number: usize) {
        let ScheduledFault { node, fault, occurred, .. } = &mut self.faults[number];
        if std::mem::replace(occurred, true) {
            return;
        }
        let (node, fault) = (*node, *fault);
        self.with_component(node, |component, ctx| {
            if let Some(target) = component.faults() {
                target.inject(ctx, &fault);
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
