//! What the program knows: the entries of every room, in one value.

use hybridsim_config::registry::Registry;

/// Everything that ships with the program.
pub fn standard() -> Registry {
    let mut registry = Registry::default();
    registry.add_all(hybridsim_disk::ENTRIES);
    registry.add_all(hybridsim_disk::seek::ENTRIES);
    registry.add_all(hybridsim_flash::ENTRIES);
    registry.add_all(hybridsim_flash::ftl::ENTRIES);
    registry.add_all(hybridsim_flash::gc::ENTRIES);
    registry.add_all(hybridsim_flash::hotcold::ENTRIES);
    registry.add_all(hybridsim_flash::wear::ENTRIES);
    hybridsim_cache::register(&mut registry);
    registry.add_all(hybridsim_hybrid::ENTRIES);
    registry.add_all(hybridsim_interconnect::ENTRIES);
    registry.add_all(hybridsim_array::ENTRIES);
    registry.add_all(hybridsim_host::scheduler::ENTRIES);
    registry.add_all(hybridsim_workload::synthetic::ENTRIES);
    registry.add_all(hybridsim_workload::synthetic::distribution::ENTRIES);
    registry.add_all(hybridsim_workload::trace::ENTRIES);
    registry.add_all(hybridsim_workload::write::ENTRIES);
    registry
}
