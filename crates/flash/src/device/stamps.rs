//! The stamps of verified runs, which move as operations move data.

use super::Ssd;
use crate::event::Cause;
use crate::ops::{FRESH, FlashOp, OpKind};
use std::collections::BTreeMap;

/// Whether `op` brings the host's page, or what a part of it is written over.
pub fn is_host_read(op: &&FlashOp) -> bool {
    op.kind == OpKind::Read && matches!(op.cause, Cause::Host | Cause::Partial)
}

impl Ssd {
    /// Fills the page buffer from the host's read among the noted operations, if there is one.
    pub(super) fn page_of_host_read(&mut self) -> bool {
        let Some(op) = self.parts.flash.list().iter().rfind(is_host_read) else { return false };
        let at = u64::from(op.page) * u64::from(self.sectors_per_page);
        self.contents.read(at, &mut self.page);
        true
    }

    /// Moves stamps as the operations from number `first` on move data.
    pub(super) fn move_contents(&mut self, first: usize) {
        let per_page = u64::from(self.sectors_per_page);
        let pages_per_block = u64::from(self.parts.flash.array().geometry().pages_per_block());
        let mut buffer = vec![0; per_page as usize];
        let list = &self.parts.flash.list()[first..];
        // What was read and is programmed again later in the list.
        let mut memory: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        let restored = |op: &FlashOp| op.kind == OpKind::Program && op.from != FRESH;
        memory.extend(list.iter().filter(|op| restored(op)).map(|op| (op.from, Vec::new())));
        for op in list {
            let at = u64::from(op.page) * per_page;
            match op.kind {
                OpKind::Read => {
                    if let Some(held) = memory.get_mut(&op.page) {
                        held.resize(per_page as usize, 0);
                        self.contents.read(at, held);
                    }
                }
                OpKind::Program if op.cause == Cause::Host => self.contents.write(at, &self.page),
                OpKind::Program if op.from != FRESH => {
                    // Empty when it was never read: that shows as wrong data.
                    let held = memory.get(&op.from).filter(|held| !held.is_empty());
                    held.into_iter().for_each(|held| self.contents.write(at, held));
                }
                OpKind::Program => self.contents.clear(at, per_page),
                OpKind::Copy => {
                    self.contents.read(u64::from(op.from) * per_page, &mut buffer);
                    // The target was erased, so it holds zeros already.
                    if buffer.iter().any(|stamp| *stamp != 0) {
                        self.contents.write(at, &buffer);
                    }
                }
                OpKind::Erase => {
                    self.contents.clear(at * pages_per_block, per_page * pages_per_block);
                }
            }
        }
    }
}
