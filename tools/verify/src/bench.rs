//! Runs the scenarios of checks, as the commands of the program do.

use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Fault, Request};
use hybridsim_observe::{Detail, RunResults};
use hybridsim_report::column::Numbers;
use hybridsim_simulation::run::{self, RunOutput, RunProgress};
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::session::{self, Session};
use hybridsim_simulation::write_amplification::{self, Counted};
use std::path::PathBuf;

/// The program under test.
pub struct Bench<'a> {
    registry: &'a Registry,
    /// Returns `false` to interrupt a run.
    go_on: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Bench<'a> {
    /// Runs scenarios with the entries of `registry` while `go_on` returns `true`.
    pub const fn new(registry: &'a Registry, go_on: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { registry, go_on }
    }

    /// Fails once the checks are to end.
    pub(crate) fn check_interrupt(&self) -> Result<(), String> {
        if (self.go_on)() { Ok(()) } else { Err(Fault::Interrupted.to_string()) }
    }

    fn input(text: &str) -> Input {
        let source =
            SourceText { name: "the scenario of a check".to_owned(), text: text.to_owned() };
        Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None }
    }

    fn scenario(&self, text: &str) -> Result<Scenario, String> {
        Scenario::check(Self::input(text), self.registry).map_err(|error| error.to_string())
    }

    /// One key of the results of a run of the scenario `text`.
    pub(crate) fn run(&self, text: &str, key: &str) -> Result<f64, String> {
        number(&self.observe(text, Detail::Bare, false)?, key)
    }

    /// The results of a run of the scenario `text`.
    pub(crate) fn observe(
        &self,
        text: &str,
        detail: Detail,
        observer_thread: bool,
    ) -> Result<RunResults, String> {
        let mut on_progress = |_: &RunProgress| (self.go_on)();
        let on_progress = Some(&mut on_progress as _);
        let options = run::Options { detail, on_progress, observer_thread, ..Default::default() };
        let done = run::run(&self.scenario(text)?, self.registry, options);
        sound(done.map_err(|error| error.to_string())?)
    }

    /// The write amplification of the scenario `text`, counted without a clock.
    pub(crate) fn amplification(&self, text: &str) -> Result<f64, String> {
        let mut on_progress = |_: &RunProgress| (self.go_on)();
        let on_progress = Some(&mut on_progress as _);
        let options = write_amplification::Options { on_progress, cache: None };
        let done = write_amplification::count(&self.scenario(text)?, self.registry, options);
        match done.map_err(|error| error.to_string())? {
            Counted { fault: Some(fault), .. } => Err(fault.to_string()),
            Counted { results, .. } => {
                results.write_amplification.ok_or_else(|| "nothing was written".to_owned())
            }
        }
    }

    /// One key of the results of the system `text` after `requests`, one at a time.
    pub(crate) fn serve(
        &self,
        text: &str,
        requests: impl IntoIterator<Item = Request>,
        key: &str,
    ) -> Result<f64, String> {
        let scenario = Scenario::check_system(Self::input(text), self.registry);
        let scenario = scenario.map_err(|error| error.to_string())?;
        let session = Session::open(&scenario, self.registry, session::Options::default());
        let mut session = session.map_err(|error| error.to_string())?;
        for request in requests {
            self.check_interrupt()?;
            session.submit(request, session.now()).map_err(|error| error.to_string())?;
            session.next_completion().map_err(|fault| fault.to_string())?;
        }
        let done = session.finish(self.registry, None, Vec::new());
        number(&sound(done.map_err(|error| error.to_string())?)?, key)
    }
}

/// The results of a run that ended without a fault or a violated invariant.
fn sound(done: RunOutput) -> Result<RunResults, String> {
    match (done.fault, done.results.violations.first()) {
        (None, None) => Ok(done.results),
        (Some(fault), _) => Err(fault.to_string()),
        (None, Some(violation)) => Err(violation.clone()),
    }
}

fn number(results: &RunResults, key: &str) -> Result<f64, String> {
    Numbers::new(results).get(key).ok_or_else(|| format!("the results have no number `{key}`"))
}
