//! Bytes of a host of NVMe over TCP.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hybridsim_fuzz::targets::check("nvme", bytes));
