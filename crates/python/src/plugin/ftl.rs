//! Translation layers written in Python.

use super::device::Device;
use super::flash::Flash;
use super::{construct, one_line};
use crate::failure;
use hybridsim_config::params::field;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Loader, Saver, StateError};
use hybridsim_flash::ftl::{
    BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, Maintenance, Properties,
};
use hybridsim_flash::geometry::{Lpn, Ppn};
use hybridsim_flash::ops::{After, FlashOps};
use hybridsim_flash::{Cause, SavedState};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::Cell;

/// The entry of a Python class.
pub fn entry(description: Description) -> FtlEntry {
    FtlEntry { description, provides: &[], build }
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    Python::attach(|py| {
        let object = construct(py, "ftl", "ftl", input.settings, (Device::new(input),))?;
        let flash = Py::new(py, Flash::stand_in()).map_err(|error| {
            failure::keep(error);
            Vec::new()
        })?;
        let class = field(input.settings, "class");
        let layer = PythonFtl { object, flash, class, broken: Cell::new(false) };
        Ok(Box::new(layer) as Box<dyn Ftl>)
    })
}

struct PythonFtl {
    object: Py<PyAny>,
    flash: Py<Flash>,
    class: String,
    /// The object raised an exception: it is not asked any more, and the run ends.
    broken: Cell<bool>,
}

impl PythonFtl {
    fn cannot_be_saved(&self) -> StateError {
        StateError(format!("{} is written in Python, whose objects are not saved", self.class))
    }

    /// Calls `method` with `numbers` and the flash, which is lent to it for this long.
    fn call<T>(
        &self,
        method: &str,
        numbers: &[u32],
        request_pages: u32,
        flash: &mut FlashOps,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T, FtlError> {
        if self.broken.get() {
            return Err(FtlError::Broken(format!("{} has raised an exception", self.class)));
        }
        Python::attach(|py| {
            let handle = self.flash.bind(py);
            handle.borrow_mut().swap(flash, true, request_pages);
            let returned = numbers
                .iter()
                .map(|number| number.into_pyobject(py).map(Bound::into_any))
                .chain([Ok(handle.clone().into_any())])
                .collect::<Result<Vec<_>, _>>()
                .map_err(PyErr::from)
                .and_then(|arguments| PyTuple::new(py, arguments))
                .and_then(|arguments| self.object.bind(py).call_method1(method, arguments))
                .and_then(|value| read(&value));
            handle.borrow_mut().swap(flash, false, 0);
            returned.map_err(|error| self.give_up(py, method, error))
        })
    }

    /// Turns what Python raised into the end of the run.
    fn give_up(&self, py: Python<'_>, method: &str, error: PyErr) -> FtlError {
        let is = |name: &str| {
            let class = py.import("hybridsim.errors").and_then(|errors| errors.getattr(name));
            class.is_ok_and(|class| error.is_instance(py, &class))
        };
        if is("DeviceFull") {
            return FtlError::Full(error.value(py).to_string());
        }
        if is("DeviceWornOut") {
            return FtlError::WornOut(error.value(py).to_string());
        }
        let message = one_line(py, &self.class, method, &error);
        failure::keep(error);
        self.broken.set(true);
        FtlError::Broken(message)
    }
}

fn nothing(_value: &Bound<'_, PyAny>) -> PyResult<()> {
    Ok(())
}

impl SavedState for PythonFtl {
    fn save(&self, _to: &mut Saver) {}

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Err(self.cannot_be_saved())
    }
}

impl Ftl for PythonFtl {
    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps) {
        if self.call("read", &[lpn.0], 0, flash, nothing).is_err() {
            // A read cannot fail, but reading what does not exist ends the run at once.
            flash.read(Ppn::NONE, Cause::Mapping, After::NOTHING);
        }
    }

    fn write(&mut self, lpn: Lpn, hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        self.call("write", &[lpn.0], hint.request_pages, flash, nothing)
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        self.call("trim", &[lpn.0], 0, flash, nothing)
    }

    fn holds(&self, lpn: Lpn, _flash: &FlashOps) -> bool {
        if self.broken.get() {
            return false;
        }
        Python::attach(|py| {
            let answer = self.object.bind(py).call_method1("holds", (lpn.0,));
            answer.and_then(|answer| answer.is_truthy()).unwrap_or_else(|error| {
                failure::keep(error);
                self.broken.set(true);
                false
            })
        })
    }

    fn idle(&mut self, flash: &mut FlashOps) -> Result<bool, FtlError> {
        self.call("idle", &[], 0, flash, |value| value.is_truthy())
    }

    fn properties(&self) -> Properties {
        let mapping_ram_bytes = Python::attach(|py| {
            let answer = self.object.bind(py).call_method0("mapping_ram_bytes");
            answer.and_then(|answer| answer.extract()).unwrap_or_else(|error| {
                failure::keep(error);
                self.broken.set(true);
                0
            })
        });
        let unsaveable = Some(self.cannot_be_saved());
        Properties { mapping_ram_bytes, unsaveable, ..Properties::default() }
    }

    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        Some(self)
    }
}

impl Maintenance for PythonFtl {
    fn prepare(&mut self, flash: &mut FlashOps) -> Result<(), FtlError> {
        self.call("prepare", &[], 0, flash, nothing)
    }
}
