//! The Python module `hybridsim._core`: the program as functions and classes.
//!
//! It is as thin as it can be. What Python users see is in `python/hybridsim`, and what is
//! simulated is in the other crates; here values are turned from one into the other.

mod conformance;
mod failure;
mod inspect;
mod observe;
mod plugin;
mod run;
mod session;
mod study;
mod trace;

use pyo3::prelude::*;

/// The compiled half of the package.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::conformance::{check_ftl, check_replacement};
    #[pymodule_export]
    use crate::inspect::{check, explain, listing, parse_quantity, schema, write_quantity};
    #[pymodule_export]
    use crate::observe::event_kinds;
    #[pymodule_export]
    use crate::plugin::device::Device;
    #[pymodule_export]
    use crate::plugin::flash::Flash;
    #[pymodule_export]
    use crate::plugin::register;
    #[pymodule_export]
    use crate::plugin::request::Request;
    #[pymodule_export]
    use crate::plugin::scheduler::PythonHead;
    #[pymodule_export]
    use crate::run::{cli, report_html, run};
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::study::{
        Study, available_memory, completed_outcome, contents, run_task, save_outcome,
    };
    #[pymodule_export]
    use crate::trace::{TraceReader, convert, trace_info};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
