//! Measurements that constants are fitted to.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hybridsim_fuzz::targets::check("measurements", bytes));
