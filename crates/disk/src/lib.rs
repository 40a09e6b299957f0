//! The hard disk: geometry, seeks, rotation, on-board cache, power.
