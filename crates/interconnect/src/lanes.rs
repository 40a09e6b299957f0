//! What layers on the way to devices have in common: each device keeps its own addresses, one
//! behind the other.

use hybridsim_config::build::ChildView;
use hybridsim_config::param::Problem;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{Lane, Lba, Request};
use std::rc::Rc;

/// The devices below.
#[derive(Clone)]
pub struct Lanes {
    lanes: Vec<Lane>,
    /// Where each begins; one more at the end.
    starts: Vec<u64>,
}

impl Lanes {
    /// The devices `children` give access to; `param` is to blame if that is impossible.
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
        let lane = |child: &ChildView| Lane {
            sectors: child.capacity,
            positioner: child.positioner.clone(),
        };
        Ok(Self { lanes: children.iter().map(lane).collect(), starts })
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Whether there is none; there is always one.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Sectors of all.
    pub fn capacity(&self) -> u64 {
        self.starts[self.lanes.len()]
    }

    /// All of them, for [`hybridsim_engine::Layer::lanes`].
    pub fn all(&self) -> Vec<Lane> {
        self.lanes.clone()
    }

    /// The estimates of device `lane`.
    pub fn positioner(&self, lane: usize) -> Option<&Rc<dyn Positioner>> {
        self.lanes[lane].positioner.as_ref()
    }

    /// The estimates of the only device.
    pub fn only_positioner(&self) -> Option<Rc<dyn Positioner>> {
        let [lane] = self.lanes.as_slice() else { return None };
        lane.positioner.clone()
    }

    /// The device a request is for, and the request in its addresses. Requests lie within one.
    pub fn split(&self, request: &Request) -> (usize, Request) {
        let lane = match self.lanes.len() {
            1 => 0,
            count => self.starts.partition_point(|at| *at <= request.lba.0).clamp(1, count) - 1,
        };
        let lba = Lba(request.lba.0.saturating_sub(self.starts[lane]));
        (lane, Request { lba, ..*request })
    }
}
