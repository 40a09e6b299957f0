//! FTLs with known defects: the conformance suite must catch each.

use hybridsim_config::param::Settings;
use hybridsim_config::registry::{Description, Registry};
use hybridsim_engine::{Loader, Saver, StateError};
use hybridsim_flash::SavedState;
use hybridsim_flash::array::ProgramOrder;
use hybridsim_flash::conformance::{Subject, check};
use hybridsim_flash::ftl::{BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, Properties};
use hybridsim_flash::geometry::{BlockId, Lpn, Ppn};
use hybridsim_flash::ops::{After, FlashOps};

/// A log without garbage collection, with a chosen defect.
struct Canary {
    map: Vec<Ppn>,
    next: u32,
    pages: u32,
    fault: &'static str,
}

impl SavedState for Canary {
    fn save(&self, to: &mut Saver) {
        to.put(&(&self.map, self.next));
        if self.fault == "saves too much" {
            to.put(&self.pages);
        }
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (map, next) = from.take()?;
        self.map = map;
        if self.fault != "loses its position" {
            self.next = next;
        }
        Ok(())
    }
}

impl Ftl for Canary {
    fn lookup(&self, lpn: Lpn, _flash: &FlashOps) -> Ppn {
        self.map[lpn.0 as usize]
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let mut page = Ppn(self.next);
        match self.fault {
            "programs a used page" if self.next > 3 => page = Ppn(0),
            "panics" if lpn.0 == 2 => panic!("canary"),
            "erases data" if self.next > 2 => {
                flash.erase(BlockId(0), hybridsim_flash::Cause::Gc, After::NOTHING);
            }
            "reports full" if self.next > 2 => {
                return Err(FtlError::Full("canary".to_owned()));
            }
            "reports worn out" if self.next > 2 => {
                return Err(FtlError::WornOut("canary".to_owned()));
            }
            _ => {}
        }
        if self.next == self.pages {
            // Out of pages, so that an undetected defect ends differently.
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

    fn properties(&self) -> Properties {
        let mapping_ram_bytes = u64::from(self.fault != "needs no memory");
        Properties { mapping_ram_bytes, ..Properties::default() }
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
            Description { name: "canary", summary: "Defective.", origin: "this test", params: &[] };
        ($fault, FtlEntry { description, provides: &[], build })
    }};
}

#[test]
fn defective_ftls_are_caught_and_their_cases_shrunk() {
    // The panicking canary would print a message for every attempt to shrink its case.
    std::panic::set_hook(Box::new(|_| {}));
    let registry = Registry::default();
    let settings = Settings::default();
    let table = [
        (canary!("programs a used page"), "not erased"),
        (canary!("panics"), "panicked: canary"),
        (canary!("erases data"), "still holds data"),
        (canary!("programs twice"), "programmed it 2 times"),
        (canary!("loses an update"), "was last written by"),
        (canary!("reports full"), "although no block is worn out"),
        (canary!("reports worn out"), "but no block is worn out"),
        (canary!("needs no memory"), "no controller memory"),
        (canary!("saves too much"), "cannot restore what it saved"),
        (canary!("loses its position"), "after a restore"),
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
        assert!(failure.case.ops.len() <= 6, "{fault} was not shrunk: {failure}");
    }
}
