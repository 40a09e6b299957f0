//! An FTL within an observer, which shows each of its operations to the reference model.

use super::model::{Data, Model, Rules, Write};
use hybridsim_engine::{Loader, Saver, StateError};
use hybridsim_flash::SavedState;
use hybridsim_flash::ftl::{
    BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, Maintenance, Properties, page,
};
use hybridsim_flash::geometry::{BlockId, Lpn, Ppn};
use hybridsim_flash::ops::{FlashOps, OpKind};
use std::cell::RefCell;
use std::rc::Rc;

thread_local! {
    /// Models of the FTLs built in this thread that no rig has taken, in the order of building.
    pub(super) static MODELS: RefCell<Vec<Rc<RefCell<Model>>>> = const { RefCell::new(Vec::new()) };
}

/// The FTL `page` within an observer, to be registered in its place.
pub const OBSERVED: FtlEntry = FtlEntry { build: build_observed, ..page::ENTRY };

fn build_observed(input: &FtlInput<'_>) -> BuiltFtl {
    let ftl = (page::ENTRY.build)(input)?;
    let data_pages = ftl.properties().data_pages.unwrap_or(0);
    let model = Model::new(Rules::of(input.settings), *input.geometry, data_pages);
    let model = Rc::new(RefCell::new(model));
    MODELS.with_borrow_mut(|models| models.push(model.clone()));
    Ok(Box::new(Observed { ftl, model }))
}

/// An FTL, each of whose operations the model follows.
struct Observed {
    ftl: Box<dyn Ftl>,
    model: Rc<RefCell<Model>>,
}

impl Observed {
    /// Has the FTL serve a call, for `lpn` if it is about a page, and the model follow it. A write
    /// comes with its handle.
    fn observe<T, E>(
        &mut self,
        (lpn, handle): (Option<Lpn>, Option<u8>),
        flash: &mut FlashOps,
        call: impl FnOnce(&mut dyn Ftl, &mut FlashOps) -> Result<T, E>,
    ) -> Result<T, E> {
        let before = flash.list().len();
        let result = call(&mut *self.ftl, flash);
        let mut model = self.model.borrow_mut();
        if model.wrong.is_none() {
            let rules = model.rules;
            let write = lpn.zip(handle).map(|(Lpn(lpn), handle)| {
                let (group, handle) = rules.place(handle);
                let data = Data { lpn, group, handle, number: 0 };
                Write { data, succeeds: result.is_ok() }
            });
            let followed = model.follow_all(write, &flash.list()[before..]);
            let agrees = followed.and_then(|()| model.compare(&*self.ftl, lpn, flash));
            let has_erased = flash.list()[before..].iter().any(|op| op.kind == OpKind::Erase);
            model.wrong = agrees
                .and_then(|()| if has_erased { model.compare_array(flash.array()) } else { Ok(()) })
                .and_then(|()| if has_erased { self.ftl.audit(flash) } else { Ok(()) })
                .err();
        }
        result
    }
}

impl SavedState for Observed {
    fn save(&self, to: &mut Saver) {
        self.ftl.save(to);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.ftl.restore(from)
    }
}

impl Ftl for Observed {
    fn lookup(&self, lpn: Lpn, flash: &FlashOps) -> Ppn {
        self.ftl.lookup(lpn, flash)
    }

    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps) {
        let read = |ftl: &mut dyn Ftl, flash: &mut FlashOps| {
            ftl.read(lpn, flash);
            Ok::<_, FtlError>(())
        };
        let _never_fails = self.observe((Some(lpn), None), flash, read);
    }

    fn write(&mut self, lpn: Lpn, hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let about = (Some(lpn), Some(hint.handle));
        self.observe(about, flash, |ftl, flash| ftl.write(lpn, hint, flash))
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        self.model.borrow_mut().discard(lpn.0);
        self.observe((Some(lpn), None), flash, |ftl, flash| ftl.trim(lpn, flash))
    }

    fn expect(&self, lpns: &[Lpn], flash: &FlashOps) {
        self.ftl.expect(lpns, flash);
    }

    fn holds(&self, lpn: Lpn, flash: &FlashOps) -> bool {
        self.ftl.holds(lpn, flash)
    }

    fn unit_left(&self, handle: u8) -> Option<u64> {
        self.ftl.unit_left(handle)
    }

    fn idle(&mut self, flash: &mut FlashOps) -> Result<bool, FtlError> {
        self.observe((None, None), flash, |ftl, flash| ftl.idle(flash))
    }

    fn properties(&self) -> Properties {
        self.ftl.properties()
    }

    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        self.ftl.maintenance().is_some().then_some(self as &mut dyn Maintenance)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        self.ftl.audit(flash)
    }
}

impl Maintenance for Observed {
    fn refresh(&mut self, block: BlockId, flash: &mut FlashOps) -> bool {
        let refresh = |ftl: &mut dyn Ftl, flash: &mut FlashOps| {
            ftl.maintenance().map(|it| it.refresh(block, flash)).ok_or(())
        };
        self.observe((None, None), flash, refresh).unwrap_or(false)
    }

    fn power_lost(&mut self) {
        if let Some(maintenance) = self.ftl.maintenance() {
            maintenance.power_lost();
        }
    }
}
