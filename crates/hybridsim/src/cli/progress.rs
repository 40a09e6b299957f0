//! The progress bar: shown on a terminal, hidden otherwise.

use clap::ValueEnum;
use hybridsim_engine::SimTime;
use hybridsim_simulation::run::RunProgress;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::IsTerminal;
use std::time::Instant;

/// The condition for showing progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// If standard error is a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl When {
    fn target(self) -> ProgressDrawTarget {
        let show = match self {
            Self::Auto => std::io::stderr().is_terminal(),
            Self::Always => true,
            Self::Never => false,
        };
        if show { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
    }
}

const STEPS: u64 = 1000;

/// The progress of runs that may go on at the same time, each on its own line.
pub struct Bars(MultiProgress);

impl Bars {
    /// No bars yet.
    pub fn new(when: When) -> Self {
        Self(MultiProgress::with_draw_target(when.target()))
    }

    /// Calls `print`, which may print, without bars meanwhile.
    pub fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        self.0.suspend(print)
    }

    /// A further bar, titled `title`.
    pub fn add(&self, title: &str) -> Progress {
        Progress::of(self.0.add(ProgressBar::new(STEPS)), title)
    }
}

/// One run's progress.
pub struct Progress {
    bar: ProgressBar,
    began: Cell<Instant>,
}

impl Progress {
    /// A bar titled `title`.
    pub fn new(when: When, title: &str) -> Self {
        Self::of(ProgressBar::with_draw_target(Some(STEPS), when.target()), title)
    }

    fn of(bar: ProgressBar, title: &str) -> Self {
        let style =
            ProgressStyle::with_template("{prefix:<16} {bar:30} {percent:>3}% {msg}, {eta} left")
                .expect("a fixed template is valid");
        bar.set_style(style);
        bar.set_prefix(title.to_owned());
        Self { bar, began: Cell::new(Instant::now()) }
    }

    /// Shows the progress of the run.
    pub fn update(&self, progress: &RunProgress) {
        if self.bar.is_hidden() {
            return;
        }
        let RunProgress { fraction, requests, now, preparing } = *progress;
        if preparing {
            self.bar.set_message("preconditioning");
            self.began.set(Instant::now());
        } else {
            let seconds = self.began.get().elapsed().as_secs_f64();
            let rate = requests as f64 / seconds.max(1e-3) / 1e6;
            self.bar.set_message(format!("{rate:.2} M requests/s, simulated {now}"));
        }
        if let Some(fraction) = fraction {
            self.bar.set_position((fraction.clamp(0.0, 1.0) * STEPS as f64) as u64);
        }
    }

    /// Shows how much of a trace has been read.
    pub fn reading(&self, fraction: Option<f64>) {
        let now = SimTime::ZERO;
        self.update(&RunProgress { fraction, requests: 0, now, preparing: false });
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of a sequence of steps, each of unknown length.
pub struct Steps {
    bar: ProgressBar,
}

impl Steps {
    /// A bar of `count` steps.
    pub fn new(when: When, count: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(count as u64), when.target());
        let style = ProgressStyle::with_template("{prefix:<20} {bar:20} {pos}/{len} {msg}")
            .expect("a fixed template is valid");
        bar.set_style(style);
        Self { bar }
    }

    /// The step `name` begins.
    pub fn begin(&self, name: &str) {
        self.bar.set_prefix(name.to_owned());
        self.bar.tick();
    }

    /// Shows `name` as the last thing done within the step.
    pub fn message(&self, name: &str) {
        self.bar.set_message(name.to_owned());
    }

    /// The step is done.
    pub fn end(&self) {
        self.bar.inc(1);
    }

    /// The step `name` is done.
    pub fn end_of(&self, name: &str) {
        self.message(name);
        self.end();
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
