//! The targets of coverage-guided fuzzing (`fuzz/`): a check of any bytes, and valid inputs.

#[cfg(unix)]
use crate::client;
use crate::{input, seeds};
use hybridsim_config::registry::Registry;
use hybridsim_simulation::registry::standard;
use std::sync::LazyLock;

/// A reader of bytes from outside, as fuzzing calls it.
pub struct Target {
    pub name: &'static str,
    /// Valid inputs, from which fuzzing starts.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Panics for bytes that are handled wrongly.
    pub check: fn(&Registry, &[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "scenario", seeds: seeds::scenarios, check: input::scenario },
    Target { name: "trace", seeds: seeds::traces, check: |_, bytes| input::trace(bytes) },
    Target { name: "import", seeds: seeds::imports, check: |_, bytes| input::import(bytes) },
    Target { name: "measurements", seeds: seeds::measurements, check: input::measurements },
    Target { name: "tables", seeds: seeds::tables, check: |_, bytes| input::tables(bytes) },
    Target { name: "state", seeds: seeds::states, check: input::saved_state },
    #[cfg(unix)]
    Target { name: "nbd", seeds: seeds::nbd, check: |it, bytes| _ = client::nbd(it, bytes) },
    #[cfg(unix)]
    Target { name: "nvme", seeds: seeds::nvme, check: |it, bytes| _ = client::nvme(it, bytes) },
];

static REGISTRY: LazyLock<Registry> = LazyLock::new(standard);

/// Checks `bytes` by the target called `name`.
///
/// # Panics
/// Panics where they are handled wrongly, and without such a target.
pub fn check(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    (target.check)(&REGISTRY, bytes);
}
