//! BAST, the log-block scheme as published: a page goes to its data block while its place there
//! is erased, and to the block's log afterwards.
//!
//! The machinery is that of `log-block`; see there. What differs is in the defaults alone: first
//! writes bypass the log, a data block that was never programmed is not erased, and beside switch
//! and full merges there are partial ones.

use super::FtlEntry;
use super::log_block::{build, params};
use hybridsim_config::param::Param;
use hybridsim_config::registry::Description;

/// The BAST translation layer.
pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "bast",
        summary: "A log block per data block that is written again; first writes go in place.",
        origin: "Kim et al., IEEE Trans. Consumer Electronics 48(2), 2002; flashsim, section 2. \
                 Which log is merged when blocks run short is assumed; the log's page map is in \
                 memory, so no spare areas are read for it",
        params: &PARAMS,
    },
    build,
};

const PARAMS: [Param; 5] = params("true", "false", "true");
