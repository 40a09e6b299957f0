//! Bytes of a client of the network block device protocol.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hybridsim_fuzz::targets::check("nbd", bytes));
