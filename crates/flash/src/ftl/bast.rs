//! BAST, the log-block scheme as published: a page goes to its data block while its page there is
//! erased, and to the log block of that block afterwards.
//!
//! The implementation is that of `log-block`, with other defaults: first writes bypass the log
//! block, a data block that was never programmed is not erased, and there are partial merges beside
//! switch and full merges.

use super::log_block::{Parameters, build};
use super::{FtlEntry, REFRESH};
use hybridsim_config::param::Param;
use hybridsim_config::registry::Description;

pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "bast",
        summary: "A log block for each overwritten data block; first writes go in place.",
        origin: "Kim et al., IEEE Trans. Consumer Electronics 48(2), 2002; flashsim, section 2. \
                 Which log block is merged when free blocks run short is assumed; the page tables \
                 of log blocks are in memory, so no spare areas are read for them",
        params: PARAMS,
    },
    provides: &[REFRESH],
    build,
};

/// The parameters of `log-block` with the defaults of BAST.
const PARAMS: &[Param] = &{
    let [log_blocks, victim, first, clean, partial, when] = *Parameters::PARAMS else { panic!() };
    let first_write_to_data = Param { default: Some("true"), ..first };
    let erase_clean = Param { default: Some("false"), ..clean };
    let partial_merge = Param { default: Some("true"), ..partial };
    [log_blocks, victim, first_write_to_data, erase_clean, partial_merge, when]
};
