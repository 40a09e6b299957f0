//! The `cache` command: the cached states of preconditioned devices.

use super::output::{Failure, print};
use clap::Args;
use hybridsim_simulation::state::PreconditionCache;
use indicatif::HumanBytes;

#[derive(Args)]
pub struct CacheArgs {
    /// Delete all cached states
    #[arg(long)]
    clear: bool,
}

pub fn cache(args: &CacheArgs) -> Result<(), Failure> {
    let Some(cache) = PreconditionCache::standard() else {
        return Err(Failure::usage(
            "this platform has no cache folder; set HYBRIDSIM_CACHE to a folder",
        ));
    };
    let folder = cache.folder.display();
    if args.clear {
        let usage = cache.clear()?;
        return print(&format!(
            "{folder}: {} states deleted, {}",
            usage.states,
            HumanBytes(usage.bytes)
        ));
    }
    let usage = cache.usage();
    print(&format!(
        "{folder}: {} states of preconditioned devices, {} of at most {}; the least recently used \
         are deleted first",
        usage.states,
        HumanBytes(usage.bytes),
        HumanBytes(cache.bytes_max)
    ))
}
