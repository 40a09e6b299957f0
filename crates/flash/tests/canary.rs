//! Translation layers that are wrong in known ways: the conformance suite must catch each.

use hybridsim_config::param::Settings;
use hybridsim_config::registry::{Description, Registry};
use hybridsim_engine::{Loader, Saver, StateError};
use hybridsim_flash::array::ProgramOrder;
use hybridsim_flash::conformance::{Subject, check};
use hybridsim_flash::ftl::{BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint};
use hybridsim_flash::geometry::{BlockId, Lpn, Ppn};
use hybridsim_flash::ops::{After, FlashOps};

/// A log without garbage collection that goes wrong in a chosen way.
struct Canary {
    map: Vec<Ppn>,
    next: u32,
    pages: u32,
    fault: &'static str,
}

impl Ftl for Canary {
    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps) {
        let page = self.map[lpn.0 as usize];
        if page != Ppn::NONE {
            flash.host_read(page, After::NOTHING);
        }
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let mut page = Ppn(self.next);
        match self.fault {
            "programs a used page" if self.next > 3 => page = Ppn(0),
            "panics" if lpn.0 == 2 => panic!("canary"),
            "erases data" if self.next > 2 => {
                flash.erase(BlockId(0), hybridsim_flash::Cause::Gc, After::NOTHING);
            }
            "says full" if self.next > 2 => {
                return Err(FtlError::Full("canary".to_owned()));
            }
            "says worn out" if self.next > 2 => {
                return Err(FtlError::WornOut("canary".to_owned()));
            }
            _ => {}
        }
        if self.next == self.pages {
            // Out of pages: what a canary that has not failed yet would be told apart by.
            return Err(FtlError::Full("end of the log".to_owned()));
        }
        flash.host_program(page, lpn, After::NOTHING);
        if self.fault == "programs twice" && lpn.0 == 1 {
            self.next += 1;
            flash.host_program(Ppn(self.next), lpn, After::NOTHING);
        }
        self.next += 1;
        let forgets = self.fault == "loses an update" && self.map[lpn.0 as usize] != Ppn::NONE;
        if !forgets {
            self.map[lpn.0 as usize] = page;
        }
        Ok(())
    }

    fn trim(&mut self, _lpn: Lpn, _flash: &mut FlashOps) -> Result<(), FtlError> {
        Ok(())
    }

    fn holds(&self, lpn: Lpn, _flash: &FlashOps) -> bool {
        self.map[lpn.0 as usize] != Ppn::NONE
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&(&self.map, self.next));
        if self.fault == "saves too much" {
            to.put(&self.pages);
        }
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (map, next) = from.take()?;
        self.map = map;
        if self.fault != "forgets its place" {
            self.next = next;
        }
        Ok(())
    }

    fn mapping_ram_bytes(&self) -> u64 {
        u64::from(self.fault != "needs no memory")
    }
}

macro_rules! canary {
    ($fault:literal) => {{
        fn build(input: &FtlInput<'_>) -> BuiltFtl {
            Ok(Box::new(Canary {
                map: vec![Ppn::NONE; input.exported_pages as usize],
                next: 0,
                pages: input.geometry.pages(),
                fault: $fault,
            }))
        }
        let description =
            Description { name: "canary", summary: "Wrong.", origin: "this test", params: &[] };
        ($fault, FtlEntry { description, build })
    }};
}

#[test]
fn wrong_translation_layers_are_caught_and_their_cases_shrunk() {
    // The panicking canary would print its panic for every attempt at shrinking.
    std::panic::set_hook(Box::new(|_| {}));
    let registry = Registry::default();
    let settings = Settings::default();
    let table = [
        (canary!("programs a used page"), "not erased"),
        (canary!("panics"), "panicked: canary"),
        (canary!("erases data"), "still holds data"),
        (canary!("programs twice"), "programmed it 2 times"),
        (canary!("loses an update"), "was last written by"),
        (canary!("says full"), "gave up on a sound device"),
        (canary!("says worn out"), "but no block is"),
        (canary!("needs no memory"), "no memory"),
        (canary!("saves too much"), "cannot take back what it saved"),
        (canary!("forgets its place"), "after save and restore"),
    ];
    let caught: Vec<_> = table
        .iter()
        .map(|((fault, entry), expected)| {
            (fault, expected, {
                let (entry, settings, registry) = (*entry, &settings, &registry);
                let order = ProgramOrder::Sequential;
                check(&Subject { entry, settings, registry, order, saves: true }, 60, 5)
            })
        })
        .collect();
    let _ = std::panic::take_hook();
    for (fault, expected, result) in caught {
        let failure = result.expect_err(fault);
        assert!(failure.reason.contains(expected), "{fault}: {failure}");
        assert!(failure.case.acts.len() <= 6, "{fault} was not shrunk: {failure}");
    }
}
