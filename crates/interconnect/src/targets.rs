//! Targets of buses and controllers: every device keeps its own address space; the address spaces
//! are concatenated.

use hybridsim_config::build::ChildView;
use hybridsim_config::param::Problem;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{Lba, Request, Target};
use std::rc::Rc;

/// The devices below.
#[derive(Clone)]
pub struct Targets {
    targets: Vec<Target>,
    /// First sector of each, and the end of the last.
    starts: Vec<u64>,
}

impl Targets {
    /// The devices that `children` give access to; problems are reported for `param`.
    ///
    /// # Errors
    /// No device at all, or more sectors than can be counted.
    pub fn new(children: &[ChildView], param: &'static str) -> Result<Self, Vec<Problem>> {
        let mut starts = vec![0u64];
        for child in children {
            let Some(end) = starts[starts.len() - 1].checked_add(child.capacity) else {
                return Err(vec![Problem::new(param, "together exceed 2^64 sectors")]);
            };
            starts.push(end);
        }
        if children.is_empty() {
            return Err(vec![Problem::new(param, "needs at least one device")]);
        }
        let target = |child: &ChildView| Target {
            sectors: child.capacity,
            positioner: child.positioner.clone(),
        };
        Ok(Self { targets: children.iter().map(target).collect(), starts })
    }

    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Always `false`: there is at least one.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Sectors of all devices.
    pub fn capacity(&self) -> u64 {
        self.starts[self.targets.len()]
    }

    /// All of them, for [`hybridsim_engine::Component::targets`].
    pub fn all(&self) -> Vec<Target> {
        self.targets.clone()
    }

    /// The estimates of device `target`.
    pub fn positioner(&self, target: usize) -> Option<&Rc<dyn Positioner>> {
        self.targets[target].positioner.as_ref()
    }

    /// The estimates of the only device.
    pub fn only_positioner(&self) -> Option<Rc<dyn Positioner>> {
        let [target] = self.targets.as_slice() else { return None };
        target.positioner.clone()
    }

    /// The device a request addresses, and the request in its address space. A request lies within
    /// one device.
    pub fn split(&self, request: &Request) -> (usize, Request) {
        let target = match self.targets.len() {
            1 => 0,
            count => self.starts.partition_point(|at| *at <= request.lba.0).clamp(1, count) - 1,
        };
        let lba = Lba(request.lba.0.saturating_sub(self.starts[target]));
        (target, Request { lba, ..*request })
    }
}
