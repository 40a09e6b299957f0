//! The standard registry.

use hybridsim_config::registry::Registry;

/// All entries that ship with the program.
pub fn standard() -> Registry {
    let mut registry = Registry::default();
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
