//! The shape of a flash device, for translation layers written in Python.

use hybridsim_flash::ftl::FtlInput;
use hybridsim_flash::geometry::{BlockId, Geometry, PlaneId, Ppn};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

/// A flash device as its translation layer knows it. Blocks, pages and planes are plain numbers.
#[pyclass(frozen, module = "hybridsim")]
pub struct Device {
    geometry: Geometry,
    /// Logical pages offered to the host: 0 to this, exclusive.
    #[pyo3(get)]
    exported_pages: u32,
    /// The run's seed, for layers that draw random numbers.
    #[pyo3(get)]
    seed: u64,
    /// The device's path in the system, such as `hybrid/flash`.
    #[pyo3(get)]
    path: String,
}

impl Device {
    /// The device in `input`.
    pub fn new(input: &FtlInput<'_>) -> Self {
        Self {
            geometry: *input.geometry,
            exported_pages: input.exported_pages,
            seed: input.seed,
            path: input.path.to_owned(),
        }
    }
}

/// `number` if the device has so many; an `IndexError` otherwise.
pub fn within(what: &str, number: u32, count: u32) -> PyResult<u32> {
    if number < count {
        return Ok(number);
    }
    let message = format!("there is no {what} {number}; there are {count}, counted from 0");
    Err(PyIndexError::new_err(message))
}

#[pymethods]
impl Device {
    /// Channels.
    #[getter]
    fn channels(&self) -> u32 {
        self.geometry.channels()
    }

    /// Dies of the device.
    #[getter]
    fn dies(&self) -> u32 {
        self.geometry.dies()
    }

    /// Planes of the device.
    #[getter]
    fn planes(&self) -> u32 {
        self.geometry.planes()
    }

    /// Blocks of the device.
    #[getter]
    fn blocks(&self) -> u32 {
        self.geometry.blocks()
    }

    /// Blocks in each plane.
    #[getter]
    fn blocks_per_plane(&self) -> u32 {
        self.geometry.blocks_per_plane()
    }

    /// Pages of the device.
    #[getter]
    fn pages(&self) -> u32 {
        self.geometry.pages()
    }

    /// Pages in each block.
    #[getter]
    fn pages_per_block(&self) -> u32 {
        self.geometry.pages_per_block()
    }

    /// Data bytes in each page.
    #[getter]
    fn page_bytes(&self) -> u32 {
        self.geometry.page_bytes()
    }

    /// Page number `offset` of `block`.
    fn page(&self, block: u32, offset: u32) -> PyResult<u32> {
        let block = within("block", block, self.geometry.blocks())?;
        let offset = within("page in a block", offset, self.geometry.pages_per_block())?;
        Ok(self.geometry.page(BlockId(block), offset).0)
    }

    /// The block that holds `page`.
    fn block_of(&self, page: u32) -> PyResult<u32> {
        let page = within("page", page, self.geometry.pages())?;
        Ok(self.geometry.block_of(Ppn(page)).0)
    }

    /// The place of `page` in its block.
    fn offset_of(&self, page: u32) -> PyResult<u32> {
        let page = within("page", page, self.geometry.pages())?;
        Ok(self.geometry.offset_of(Ppn(page)))
    }

    /// The plane that holds `block`.
    fn plane_of(&self, block: u32) -> PyResult<u32> {
        let block = within("block", block, self.geometry.blocks())?;
        Ok(self.geometry.plane_of(BlockId(block)).0)
    }

    /// The die that holds `block`.
    fn die_of(&self, block: u32) -> PyResult<u16> {
        let block = within("block", block, self.geometry.blocks())?;
        Ok(self.geometry.die_of(BlockId(block)).0)
    }

    /// The first block of `plane`; its blocks follow each other.
    fn first_block(&self, plane: u32) -> PyResult<u32> {
        let plane = within("plane", plane, self.geometry.planes())?;
        Ok(self.geometry.first_block(PlaneId(plane)).0)
    }
}
