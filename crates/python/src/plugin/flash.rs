//! The flash a translation layer written in Python works on.
//!
//! The device lends its [`FlashOps`] for the time of one call. It is swapped into the Python
//! object and swapped out again afterwards, so an object kept longer holds nothing but a stand-in
//! and says so.

use super::device::within;
use crate::failure;
use hybridsim_flash::Cause;
use hybridsim_flash::array::{Array, PageState, ProgramOrder};
use hybridsim_flash::geometry::{BlockId, Geometry, Lpn, Ppn, Shape};
use hybridsim_flash::ops::{After, FlashOps};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The cells and the operations on them.
#[pyclass(module = "hybridsim")]
pub struct Flash {
    ops: FlashOps,
    lent: bool,
    request_pages: u32,
}

impl Flash {
    /// An object that is lent nothing yet.
    pub fn stand_in() -> Self {
        let shape = Shape {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 1,
            pages_per_block: 1,
            page_bytes: 512,
            spare_bytes: 0,
        };
        let geometry = Geometry::new(&shape).expect("one page of 512 bytes is a sound shape");
        let ops = FlashOps::new(Array::new(geometry, ProgramOrder::Any, 1));
        Self { ops, lent: false, request_pages: 0 }
    }

    /// Lends `ops`, or takes them back.
    pub fn swap(&mut self, ops: &mut FlashOps, lent: bool, request_pages: u32) {
        std::mem::swap(&mut self.ops, ops);
        self.lent = lent;
        self.request_pages = request_pages;
    }

    fn lent(&self) -> PyResult<&FlashOps> {
        if self.lent { Ok(&self.ops) } else { Err(not_lent()) }
    }

    fn lent_mut(&mut self) -> PyResult<&mut FlashOps> {
        if self.lent { Ok(&mut self.ops) } else { Err(not_lent()) }
    }

    fn block(&self, block: u32) -> PyResult<BlockId> {
        Ok(BlockId(within("block", block, self.lent()?.array().geometry().blocks())?))
    }

    fn page(&self, page: u32) -> PyResult<Ppn> {
        Ok(Ppn(within("page", page, self.lent()?.array().geometry().pages())?))
    }

    fn after(&self, after: Option<usize>) -> PyResult<After> {
        match after {
            None => Ok(After::NOTHING),
            Some(index) if index < self.lent()?.list().len() => Ok(After::index_of(index)),
            Some(_) => Err(PyValueError::new_err(
                "`after` must be what an operation of the same call returned",
            )),
        }
    }

    /// Applies `act` to the flash; a rule broken by it is an exception.
    fn act<T>(&mut self, py: Python<'_>, act: impl FnOnce(&mut FlashOps) -> T) -> PyResult<T> {
        let ops = self.lent_mut()?;
        let result = act(ops);
        match ops.violation() {
            None => Ok(result),
            Some(violation) => Err(failure::raise(py, "FlashRuleBroken", violation.to_string())),
        }
    }
}

fn not_lent() -> PyErr {
    PyValueError::new_err("the flash may only be used while a method of the layer is running")
}

fn cause(name: &str) -> PyResult<Cause> {
    Cause::ALL.into_iter().find(|cause| cause.name() == name).ok_or_else(|| {
        let names = Cause::ALL.map(Cause::name).join(", ");
        PyValueError::new_err(format!("there is no cause {name:?}; there are: {names}"))
    })
}

#[pymethods]
impl Flash {
    /// Pages the whole request touches, while a page of it is written; 0 otherwise.
    #[getter]
    fn request_pages(&self) -> u32 {
        self.request_pages
    }

    /// Blocks that are erased and can be used.
    #[getter]
    fn free_blocks(&self) -> PyResult<u32> {
        Ok(self.lent()?.array().free_blocks())
    }

    /// Reads the page the host waits for, behind the mapping operation `after`.
    #[pyo3(signature = (page, *, after = None))]
    fn host_read(
        &mut self,
        py: Python<'_>,
        page: u32,
        after: Option<usize>,
    ) -> PyResult<Option<usize>> {
        let (page, after) = (self.page(page)?, self.after(after)?);
        self.act(py, |ops| ops.host_read(page, after).index())
    }

    /// Programs `page` with the host's data of logical page `lpn`.
    #[pyo3(signature = (page, lpn, *, after = None))]
    fn host_program(
        &mut self,
        py: Python<'_>,
        page: u32,
        lpn: u32,
        after: Option<usize>,
    ) -> PyResult<Option<usize>> {
        let (page, after) = (self.page(page)?, self.after(after)?);
        self.act(py, |ops| ops.host_program(page, Lpn(lpn), after).index())
    }

    /// Reads `page` on the layer's own account.
    #[pyo3(signature = (page, *, cause = "mapping", after = None))]
    fn read(
        &mut self,
        py: Python<'_>,
        page: u32,
        cause: &str,
        after: Option<usize>,
    ) -> PyResult<Option<usize>> {
        let (page, why, after) = (self.page(page)?, self::cause(cause)?, self.after(after)?);
        self.act(py, |ops| ops.read(page, why, after).index())
    }

    /// Programs `page` on the layer's own account; `owner` is kept beside the data.
    #[pyo3(signature = (page, owner, *, cause = "mapping", after = None))]
    fn program(
        &mut self,
        py: Python<'_>,
        page: u32,
        owner: u32,
        cause: &str,
        after: Option<usize>,
    ) -> PyResult<Option<usize>> {
        let (page, why, after) = (self.page(page)?, self::cause(cause)?, self.after(after)?);
        self.act(py, |ops| ops.program(page, Lpn(owner), why, after).index())
    }

    /// Moves the valid page `source` to `target`, with its owner.
    #[pyo3(signature = (source, target, *, cause = "gc", after = None))]
    fn copy(
        &mut self,
        py: Python<'_>,
        source: u32,
        target: u32,
        cause: &str,
        after: Option<usize>,
    ) -> PyResult<Option<usize>> {
        let (source, target) = (self.page(source)?, self.page(target)?);
        let (why, after) = (self::cause(cause)?, self.after(after)?);
        self.act(py, |ops| ops.copy(source, target, why, after).index())
    }

    /// Erases `block`; `False` when it is worn out now and must not be used again.
    #[pyo3(signature = (block, *, cause = "gc", after = None))]
    fn erase(
        &mut self,
        py: Python<'_>,
        block: u32,
        cause: &str,
        after: Option<usize>,
    ) -> PyResult<bool> {
        let (block, why, after) = (self.block(block)?, self::cause(cause)?, self.after(after)?);
        self.act(py, |ops| ops.erase(block, why, after))
    }

    /// Marks `page` as no longer needed, which takes no time; returns how many valid pages its
    /// block keeps.
    fn invalidate(&mut self, py: Python<'_>, page: u32) -> PyResult<u32> {
        let page = self.page(page)?;
        self.act(py, |ops| ops.invalidate(page))
    }

    /// Valid pages in `block`.
    fn valid_pages(&self, block: u32) -> PyResult<u32> {
        let block = self.block(block)?;
        Ok(self.lent()?.array().valid(block))
    }

    /// The next page of `block` to program, as a place in the block; `pages_per_block` when full.
    fn next_page(&self, block: u32) -> PyResult<u32> {
        let block = self.block(block)?;
        Ok(self.lent()?.array().next_page(block))
    }

    /// Erase count of `block`.
    fn erases(&self, block: u32) -> PyResult<u32> {
        let block = self.block(block)?;
        Ok(self.lent()?.array().erases(block))
    }

    /// Whether `block` is worn out.
    fn is_worn_out(&self, block: u32) -> PyResult<bool> {
        let block = self.block(block)?;
        Ok(self.lent()?.array().is_retired(block))
    }

    /// The logical page stored in `page`; only sensible for a page that is not free.
    fn owner(&self, page: u32) -> PyResult<u32> {
        let page = self.page(page)?;
        Ok(self.lent()?.array().owner(page).0)
    }

    /// `"free"`, `"valid"` or `"invalid"`.
    fn state(&self, page: u32) -> PyResult<&'static str> {
        let page = self.page(page)?;
        Ok(match self.lent()?.array().state(page) {
            PageState::Free => "free",
            PageState::Valid => "valid",
            PageState::Invalid => "invalid",
        })
    }

    /// The valid pages of `block`, ascending.
    fn valid_in(&self, block: u32) -> PyResult<Vec<u32>> {
        let block = self.block(block)?;
        let array = self.lent()?.array();
        let mut pages = Vec::with_capacity(array.valid(block) as usize);
        let mut from = 0;
        while let Some(offset) = array.next_valid(block, from) {
            pages.push(array.geometry().page(block, offset).0);
            from = offset + 1;
        }
        Ok(pages)
    }
}
