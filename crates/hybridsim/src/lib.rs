//! Scenario files, presets, the registry and the command line.
