//! The interface that the page in `page/` has to the simulator: text and JSON in and out.
//!
//! It is compiled to WebAssembly and runs in a worker of the browser. A browser cancels a run by
//! ending the worker, so a call here need not return early.

// wasm-bindgen generates the calls between JavaScript and Rust.
#![allow(unsafe_code)]

mod catalogue;
mod check;
mod engine;
mod knobs;

use engine::Engine;
use js_sys::Function;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsValue, throw_str};

/// The simulator, and the runs to be shown together.
#[wasm_bindgen]
pub struct Playground(Engine);

#[wasm_bindgen]
impl Playground {
    /// A simulator without runs.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        // Otherwise a browser reports a defect as `unreachable`.
        std::panic::set_hook(Box::new(|panic| throw_str(&panic.to_string())));
        Self(Engine::new())
    }

    /// Version, examples and presets, as JSON.
    pub fn catalogue(&self) -> String {
        catalogue::catalogue().to_string()
    }

    /// The scenario format as JSON Schema.
    pub fn schema(&self) -> String {
        self.0.schema()
    }

    /// Makes `bytes` the trace that scenarios name `name`.
    pub fn put_trace(&self, name: &str, bytes: Vec<u8>) {
        hybridsim_workload::trace::in_memory::put(name, bytes);
    }

    /// Problems of a scenario with their places, or what it describes, as JSON.
    pub fn check(&self, text: &str) -> String {
        self.0.check(text).to_string()
    }

    /// Forgets all runs.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Runs a scenario and keeps it for [`Playground::report`]. `on_progress` is called about ten
    /// times a second. The answer is JSON: the results as of `hybridsim run --json`, or problems.
    pub fn run(&mut self, text: &str, name: &str, on_progress: &Function) -> String {
        let answer = self.0.run(text, name, &mut |progress| {
            let fraction = progress.fraction.map_or(JsValue::NULL, JsValue::from);
            let requests = JsValue::from(progress.requests as f64);
            let preparing = JsValue::from(progress.preparing);
            // The page shows less when its own function fails.
            drop(on_progress.call3(&JsValue::NULL, &fraction, &requests, &preparing));
            true
        });
        answer.to_string()
    }

    /// The report of all runs: one HTML document.
    pub fn report(&self) -> String {
        self.0.report()
    }
}
