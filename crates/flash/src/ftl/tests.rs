//! Tests over several FTLs: capabilities of entries, and conditions of parameters.

use super::bench::Bench;
use super::{ENTRIES, FtlEntry, REFRESH, SLC_MODE, anand, slc_cache};
use super::{Hint, Lpn};
use crate::array::ProgramOrder;
use crate::defaults;
use crate::geometry::BlockId;
use hybridsim_config::check::read;
use hybridsim_config::ineffective::without_effect;
use hybridsim_config::param::Param;

/// The keys in `text` that have no effect.
fn ineffective(params: &'static [Param], text: &str) -> Vec<String> {
    let registry = defaults::registry();
    let settings = read(text, &[params], &registry).expect("valid");
    without_effect(&settings, params, &registry, "").into_iter().map(|(key, _)| key).collect()
}

#[test]
fn keys_of_a_cache_that_does_not_exist_have_no_effect() {
    let of = |text| ineffective(slc_cache::ENTRY.description.params, text);
    let keys = "keep_free = 0.1\nwhen_full = \"fold\"\nlow_mark = \"1MiB\"\n";
    assert!(of(keys).is_empty());
    let none = format!("{keys}dynamic_size = \"0B\"");
    assert_eq!(of(&none), ["keep_free", "low_mark", "when_full"]);
    assert_eq!(of(&format!("{none}\nstatic_size = \"1MiB\"")), ["keep_free"]);
}

#[test]
fn chains_of_one_unit_are_never_folded() {
    let of = |text| ineffective(anand::ENTRY.description.params, text);
    let keys = "fold_into = \"fresh\"\nno_free_unit = \"longest\"\n";
    assert!(of(keys).is_empty());
    assert_eq!(of(&format!("{keys}chain_max = 1")), ["fold_into", "no_free_unit"]);
}

/// Whether some block can be refreshed after the exported pages were written once.
fn refreshes(entry: &FtlEntry) -> bool {
    let mut bench = Bench::new(entry, ProgramOrder::Sequential, (16, 8), 64, &[]);
    for page in 0..64 {
        let hint = Hint::of_pages(1);
        bench.ftl.write(Lpn(page), hint, &mut bench.flash).expect("new flash");
    }
    let Some(maintenance) = bench.ftl.maintenance() else { return false };
    (0..16).any(|block| maintenance.refresh(BlockId(block), &mut bench.flash))
}

#[test]
fn entries_provide_what_they_do() {
    for entry in ENTRIES {
        let name = entry.description.name;
        let bench = Bench::new(entry, ProgramOrder::Sequential, (16, 8), 64, &[]);
        let slc = bench.ftl.properties().slc_blocks.is_some();
        assert_eq!(slc, entry.provides.contains(&SLC_MODE), "{name}");
        assert_eq!(refreshes(entry), entry.provides.contains(&REFRESH), "{name}");
    }
}
