//! Bytes of a client of `hybridsim serve`.
#![no_main]

use hybridsim_config::registry::Registry;
use hybridsim_simulation::registry::standard;
use std::sync::LazyLock;

static REGISTRY: LazyLock<Registry> = LazyLock::new(standard);

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hybridsim_fuzz::client::converses(&REGISTRY, bytes);
});
