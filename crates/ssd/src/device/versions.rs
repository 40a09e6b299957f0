//! Data versions in verified runs: they move as flash operations move data.

use super::FlashBackEnd;
use super::merge::PartialUnit;
use hybridsim_flash::event::Cause;
use hybridsim_flash::ops::{FRESH, FlashOp, OpKind};

use std::collections::BTreeMap;

/// Whether `op` reads a page for the host, or the rest of a page that is written in part.
pub fn is_host_read(op: &&FlashOp) -> bool {
    op.kind == OpKind::Read && matches!(op.cause, Cause::Host | Cause::Partial)
}

impl FlashBackEnd {
    /// Fills the page buffer from the host's read among the recorded operations, if there is one.
    pub(crate) fn load_host_read(&mut self) -> bool {
        let Some(op) = self.flash.list().iter().rfind(is_host_read) else { return false };
        let at = u64::from(op.page) * u64::from(self.sectors_per_page());
        self.versions.read(at, &mut self.page);
        true
    }

    /// Fills the page buffer with `versions`; with zeros if there are none.
    pub(crate) fn load_versions(&mut self, versions: &[u64]) {
        match versions.len() == self.page.len() {
            true => self.page.copy_from_slice(versions),
            false => self.page.fill(0),
        }
    }

    /// Fills the page buffer with the versions of `unit`; where it is `partial`, over those of the
    /// recorded read of the rest.
    pub(super) fn load_unit(&mut self, unit: &PartialUnit, partial: bool) {
        if !(partial && self.load_host_read()) {
            self.page.fill(0);
        }
        unit.overlay(0, &mut self.page);
    }

    /// Moves versions as the recorded operations from number `first` on move data.
    pub(crate) fn move_versions(&mut self, first: usize) {
        let per_page = u64::from(self.sectors_per_page());
        let pages_per_block = u64::from(self.flash.array().geometry().pages_per_block());
        let list = &self.flash.list()[first..];
        // Pages that are read first and programmed again later in the list.
        let mut controller_ram: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        let restored = |op: &FlashOp| op.kind == OpKind::Program && op.from != FRESH;
        controller_ram.extend(list.iter().filter(|op| restored(op)).map(|op| (op.from, vec![])));
        for op in list {
            let at = u64::from(op.page) * per_page;
            match op.kind {
                OpKind::Read => {
                    if let Some(page) = controller_ram.get_mut(&op.page) {
                        page.resize(per_page as usize, 0);
                        self.versions.read(at, page);
                    }
                }
                OpKind::Program if op.cause == Cause::Host => self.versions.write(at, &self.page),
                OpKind::Program if op.from != FRESH => {
                    // Empty if it was never read: the next read of it reports wrong data.
                    let page = controller_ram.get(&op.from).filter(|page| !page.is_empty());
                    page.into_iter().for_each(|page| self.versions.write(at, page));
                }
                OpKind::Program => self.versions.clear(at, per_page),
                OpKind::Copy => {
                    self.versions.copy(u64::from(op.from) * per_page, at, per_page);
                }
                OpKind::Erase => {
                    self.versions.clear(at * pages_per_block, per_page * pages_per_block);
                }
            }
        }
    }
}
