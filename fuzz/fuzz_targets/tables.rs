//! Tables and options.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hybridsim_fuzz::targets::check("tables", bytes));
