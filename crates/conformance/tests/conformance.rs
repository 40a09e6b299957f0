//! The conformance suite must catch controllers that are broken in the usual ways.

use hybridsim_config::build::ComponentEntry;
use hybridsim_config::param::Settings;
use hybridsim_config::registry::{Description, Registry};
use hybridsim_conformance::{Load, Rig};
use hybridsim_engine::{
    Completion, Component, ComponentInfo, Ctx, LatencyBreakdown, Lba, Op, Request, RequestId,
};
use std::collections::BTreeSet;

const DESCRIPTION: Description =
    Description { name: "canary", summary: "must fail", origin: "tests", params: &[] };

/// The tag of what belongs to a request that has been answered.
const ANSWERED: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Defect {
    None,
    /// Completes a write that has only been issued.
    EarlyAnswer,
    /// Reads from the second child what was written to the first, now and then.
    StaleRead,
    /// Writes to a page in flight go to the other child and may be overtaken.
    LostUpdate,
    /// Data of a request are shifted by a sector.
    Shift,
    /// A trim forgets one sector too many.
    WideTrim,
}

/// Writes single sectors of even address to child 0 and of odd address to child 1.
struct Canary {
    defect: Defect,
    count: u64,
    left: Vec<u32>,
    /// Sectors written at least once.
    written: BTreeSet<u64>,
}

impl Component for Canary {
    fn capacity(&self) -> u64 {
        100
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo::default()
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.count += 1;
        let rarely = self.count % 40 == 7;
        let slot = id.0 as usize;
        self.left.resize(self.left.len().max(slot + 1), 0);
        if request.op == Op::Flush {
            self.left[slot] = 2;
            (0..2).for_each(|child| {
                ctx.issue(child, *request, u64::from(id.0));
            });
            return;
        }
        let last = self.capacity() - 1;
        let early = self.defect == Defect::EarlyAnswer && request.op == Op::Write;
        let tag = if early { ANSWERED } else { u64::from(id.0) };
        let extra = self.defect == Defect::WideTrim && request.op == Op::Trim;
        let sectors = request.sectors + u32::from(extra && request.end().0 <= last);
        self.left[slot] = sectors;
        for skip in 0..sectors {
            let lba = request.lba.0 + u64::from(skip);
            let mut child = (lba % 2) as usize;
            let moves = self.defect == Defect::StaleRead && request.op == Op::Read
                || self.defect == Defect::LostUpdate && request.op == Op::Write;
            if moves && rarely && self.written.contains(&lba) {
                child = 1 - child;
            }
            if request.op == Op::Write {
                self.written.insert(lba);
            }
            let shift = self.defect == Defect::Shift && rarely && request.op == Op::Read;
            let lba = if shift { (lba + 2).min(last) } else { lba };
            let mut part = request.part(skip, 1, Lba(lba));
            if early {
                // The request's own data are gone once it is answered.
                let version = ctx.data().versions(part.data, 1)[0];
                part.data = ctx.take_data(1);
                ctx.data().versions_mut(part.data, 1)[0] = version;
            }
            ctx.issue(child, part, tag);
        }
        if early {
            ctx.complete(id, LatencyBreakdown::NONE);
        }
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if done.tag == ANSWERED {
            ctx.data().give_back(done.request.data);
            return;
        }
        let left = &mut self.left[done.tag as usize];
        *left -= 1;
        if *left == 0 {
            ctx.complete(RequestId(done.tag as u32), done.breakdown);
        }
    }
}

fn entry(defect: Defect) -> ComponentEntry {
    macro_rules! build {
        ($defect:ident) => {
            |_| {
                let written = BTreeSet::new();
                Ok(Box::new(Canary { defect: Defect::$defect, count: 0, left: vec![], written }))
            }
        };
    }
    let description = DESCRIPTION;
    match defect {
        Defect::None => ComponentEntry::new(description, build!(None)),
        Defect::EarlyAnswer => ComponentEntry::new(description, build!(EarlyAnswer)),
        Defect::StaleRead => ComponentEntry::new(description, build!(StaleRead)),
        Defect::LostUpdate => ComponentEntry::new(description, build!(LostUpdate)),
        Defect::Shift => ComponentEntry::new(description, build!(Shift)),
        Defect::WideTrim => ComponentEntry::new(description, build!(WideTrim)),
    }
}

fn check(defect: Defect, depth: u32) -> Result<(), String> {
    let (settings, registry) = (Settings::default(), Registry::default());
    let entry = entry(defect);
    let rig = Rig {
        entry: &entry,
        settings: &settings,
        registry: &registry,
        children: &[100, 100],
        seed: 3,
    };
    rig.check_random(&Load { requests: 3000, sectors_max: 20, seed: 8 }, depth).map(|_| ())
}

#[test]
fn every_broken_controller_is_caught() {
    for depth in [1, 8] {
        check(Defect::None, depth).expect("the canary without a defect conforms");
        for defect in [
            Defect::EarlyAnswer,
            Defect::StaleRead,
            Defect::LostUpdate,
            Defect::Shift,
            Defect::WideTrim,
        ] {
            match check(defect, depth) {
                Ok(()) => panic!("{defect:?} at depth {depth} was not caught"),
                Err(error) => assert!(error.contains("wrong data"), "{error}"),
            }
        }
    }
}
