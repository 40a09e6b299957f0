//! An FTL on a small chip, for hand-worked cases.

use super::{Ftl, FtlEntry, FtlError, FtlInput, Hint};
use crate::array::{Array, ProgramOrder};
use crate::defaults;
use crate::geometry::{Geometry, Lpn, Shape};
use crate::ops::{FlashOps, OpKind};
use hybridsim_config::param::Value;

/// A flash operation and its page or block.
pub type Operation = (OpKind, u32);

pub struct Bench {
    pub ftl: Box<dyn Ftl>,
    pub flash: FlashOps,
}

impl Bench {
    /// One plane of `blocks` blocks with `pages` pages each, of which `exported` are exported.
    pub fn new(
        entry: &FtlEntry,
        order: ProgramOrder,
        (blocks, pages): (u64, u64),
        exported: u32,
        params: &[(&'static str, Value)],
    ) -> Self {
        let shape = Shape {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: blocks,
            pages_per_block: pages,
            page_bytes: 2048,
            spare_bytes: 0,
        };
        let geometry = Geometry::new(&shape).expect("a valid shape");
        let registry = defaults::registry();
        let mut settings = defaults::settings(entry.description.params, &registry);
        for (name, value) in params {
            settings.set(name, value.clone());
        }
        let input = FtlInput {
            settings: &settings,
            geometry: &geometry,
            exported_pages: exported,
            registry: &registry,
            seed: 1,
            path: "bench",
        };
        let ftl = (entry.build)(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
        Self { ftl, flash: FlashOps::new(Array::new(geometry, order, 100_000)) }.prepared()
    }

    /// This FTL on new flash that survives `endurance` erases.
    pub fn with_endurance(mut self, endurance: u32) -> Self {
        let array = self.flash.array();
        self.flash = FlashOps::new(Array::new(*array.geometry(), array.order(), endurance));
        self.prepared()
    }

    fn prepared(mut self) -> Self {
        if let Some(maintenance) = self.ftl.maintenance() {
            maintenance.prepare(&mut self.flash).expect("new flash");
        }
        self
    }

    fn did(&self) -> Vec<Operation> {
        assert_eq!(self.flash.violation(), None);
        self.flash.list().iter().map(|op| (op.kind, op.page)).collect()
    }

    pub fn try_write(&mut self, page: u32) -> Result<Vec<Operation>, FtlError> {
        self.try_write_with(page, Hint::of_pages(1))
    }

    fn try_write_with(&mut self, page: u32, hint: Hint) -> Result<Vec<Operation>, FtlError> {
        self.flash.clear();
        self.ftl.write(Lpn(page), hint, &mut self.flash)?;
        Ok(self.did())
    }

    pub fn write(&mut self, page: u32) -> Vec<Operation> {
        self.try_write(page).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Writes a page of a request that writes `whole_pages` in full from this one on.
    pub fn write_of_request(&mut self, page: u32, whole_pages: u32) -> Vec<Operation> {
        let hint = Hint { whole_pages, ..Hint::of_pages(whole_pages) };
        self.try_write_with(page, hint).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn write_all(&mut self, pages: &[u32]) {
        for page in pages {
            self.write(*page);
        }
    }

    pub fn read(&mut self, page: u32) -> Vec<Operation> {
        self.flash.clear();
        self.ftl.read(Lpn(page), &mut self.flash);
        self.did()
    }

    pub fn trim(&mut self, page: u32) -> Vec<Operation> {
        self.flash.clear();
        self.ftl.trim(Lpn(page), &mut self.flash).expect("nothing to write");
        self.did()
    }

    pub fn holds(&self, page: u32) -> bool {
        self.ftl.holds(Lpn(page), &self.flash)
    }

    pub fn audit(&self) {
        self.flash.array().audit().expect("a consistent array");
        self.ftl.audit(&self.flash).expect("consistent metadata");
    }
}

fn count(did: &[Operation], kinds: &[OpKind]) -> usize {
    did.iter().filter(|(kind, _)| kinds.contains(kind)).count()
}

/// Pages copied.
pub fn copies(did: &[Operation]) -> usize {
    count(did, &[OpKind::Copy])
}

/// Blocks erased.
pub fn erases(did: &[Operation]) -> usize {
    count(did, &[OpKind::Erase])
}

/// Pages programmed, copies not counted.
pub fn writes(did: &[Operation]) -> usize {
    count(did, &[OpKind::Program])
}
