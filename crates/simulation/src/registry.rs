//! The standard registry.

use hybridsim_config::registry::Registry;

/// Categories of which the Python package has an entry `python`, a class named by its path, with
/// the summary of that entry.
pub const IN_PYTHON: [(&str, &str); 6] = [
    ("ftl", "A translation layer written in Python."),
    ("replacement", "A replacement policy written in Python."),
    ("admission", "An admission policy written in Python."),
    ("cleanup", "A cleanup policy written in Python."),
    ("gc-policy", "A garbage collection policy written in Python."),
    ("scheduler", "A scheduler written in Python."),
];

/// All entries that ship with the program.
pub fn standard() -> Registry {
    let mut registry = Registry::default();
    let help = "a class named by its path is code: if you trust it, run the scenario with \
                `python -m hybridsim --allow-code`, or call `hybridsim.allow_code()` in Python";
    IN_PYTHON.iter().for_each(|(category, _)| registry.add_absent(category, "python", help));
    registry.add_all(hybridsim_disk::ENTRIES);
    registry.add_all(hybridsim_disk::seek::ENTRIES);
    registry.add_all(hybridsim_disk::smr::ENTRIES);
    hybridsim_ssd::register(&mut registry);
    hybridsim_cache::register(&mut registry);
    registry.add_all(hybridsim_hybrid::ENTRIES);
    registry.add_all(hybridsim_interconnect::ENTRIES);
    registry.add_all(hybridsim_array::ENTRIES);
    registry.add_all(hybridsim_layer::ENTRIES);
    registry.add_all(hybridsim_host::scheduler::ENTRIES);
    registry.add_all(hybridsim_workload::synthetic::ENTRIES);
    registry.add_all(hybridsim_workload::synthetic::distribution::ENTRIES);
    registry.add_all(hybridsim_workload::synthetic::lsm::COMPACTIONS);
    registry.add_all(hybridsim_workload::trace::ENTRIES);
    registry.add_all(hybridsim_workload::trace::serving::ENTRIES);
    registry.add_all(hybridsim_workload::write::ENTRIES);
    registry.add_samples(include_str!("samples.toml"));
    registry
}
