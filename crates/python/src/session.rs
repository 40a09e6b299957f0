//! A system that Python runs step by step.

use crate::failure;
use crate::plugin;
use crate::run::{Source, outcome, read_system, refusal};
use hybridsim_engine::{Fault, Flags, Lba, Op, Request, SECTOR_BYTES, SimTime, ZoneAction};
use hybridsim_observe::Detail;
use hybridsim_simulation::faults::FaultOrder;
use hybridsim_simulation::session::{self, Answer, Answered, Options};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Number, time, outcome and data versions of a request that has ended.
type Ended = (u64, u64, &'static str, Vec<u64>);

/// See `hybridsim.Session`.
#[pyclass(unsendable, module = "hybridsim._core")]
pub struct Session {
    /// `None` once finished.
    inner: Option<session::Session>,
    fault: Option<Fault>,
    power_may_fail: bool,
}

#[pymethods]
impl Session {
    #[new]
    fn new(
        py: Python<'_>,
        source: Source,
        sets: Vec<String>,
        full: bool,
        versions: bool,
        power_may_fail: bool,
    ) -> PyResult<Self> {
        failure::guarded(|| {
            let scenario = read_system(py, source, sets)?;
            if plugin::uses_python(&scenario) {
                let message = "a session takes no policies written in Python: use hybridsim.run";
                return Err(failure::raise(py, "Error", message));
            }
            let detail = if full { Detail::Full } else { Detail::Bare };
            let options = Options { detail, versions, power_may_fail, ..Options::default() };
            let inner = session::Session::open(&scenario, &plugin::registry(), options)
                .map_err(|error| refusal(py, &error, None))?;
            Ok(Self { inner: Some(inner), fault: None, power_may_fail })
        })
    }

    fn capacity_bytes(&mut self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.open(py)?.capacity() * SECTOR_BYTES)
    }

    fn now_ns(&mut self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.open(py)?.now().as_ns())
    }

    fn outstanding(&mut self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.open(py)?.outstanding())
    }

    /// Returns number and arrival.
    fn submit(
        &mut self,
        py: Python<'_>,
        op: &str,
        range: (u64, u64),
        at_ns: Option<u64>,
        flags: (bool, bool, bool, u8),
    ) -> PyResult<(u64, u64)> {
        let ((offset, length), (fua, append, zrwa, handle)) = (range, flags);
        failure::guarded(|| {
            let wrong = |message: String| failure::raise(py, "ArgumentError", message);
            let Some(op) = Op::from_name(op) else {
                let names = Op::ALL.map(Op::name).join(", ");
                return Err(wrong(format!("op is one of {names}, not {op:?}")));
            };
            if append && op != Op::Write {
                return Err(wrong("only a write can be an append".to_owned()));
            }
            if zrwa && op != Op::Zone(ZoneAction::Open) {
                return Err(wrong("only a zone_open can have zrwa".to_owned()));
            }
            if !offset.is_multiple_of(SECTOR_BYTES) || !length.is_multiple_of(SECTOR_BYTES) {
                return Err(wrong("offset and length must be multiples of 512 bytes".to_owned()));
            }
            let sectors = u32::try_from(length / SECTOR_BYTES)
                .map_err(|_| wrong(format!("a request of {length} bytes is too long")))?;
            let flag = |given, flag| if given { flag } else { Flags::NONE };
            let flags = flag(fua, Flags::FUA).with(flag(append, Flags::APPEND));
            let flags = flags.with(flag(zrwa, Flags::RANDOM_WRITE_AREA)).with_handle(handle);
            let request =
                Request { flags, ..Request::new(op, Lba(offset / SECTOR_BYTES), sectors) };
            let inner = self.open(py)?;
            let at = at_ns.map_or(inner.now(), SimTime::from_ns);
            let submitted = inner.submit(request, at).map_err(|error| wrong(error.to_string()))?;
            Ok((submitted.number, submitted.at.as_ns()))
        })
    }

    /// Returns what has ended.
    fn advance_to(&mut self, py: Python<'_>, time_ns: u64) -> PyResult<Vec<Ended>> {
        self.step(py, |inner| {
            inner.advance_to(SimTime::from_ns(time_ns))?;
            Ok(std::iter::from_fn(|| inner.answer()).collect())
        })
    }

    /// Returns one request that has ended, or none.
    fn next_completion(&mut self, py: Python<'_>) -> PyResult<Vec<Ended>> {
        self.step(py, |inner| Ok(inner.next_completion()?.into_iter().collect()))
    }

    fn next_event(&mut self, py: Python<'_>) -> PyResult<Option<u64>> {
        // Advancing to the very time of an event leaves what might follow an arrival then.
        Ok(self.open(py)?.next_event().map(|next| next.as_ns().saturating_add(1)))
    }

    /// Returns what has ended, or is lost.
    fn cut_power(&mut self, py: Python<'_>, at_ns: Option<u64>) -> PyResult<Vec<Ended>> {
        if !self.power_may_fail {
            let message = "open the session with power_may_fail=True";
            return Err(failure::raise(py, "ArgumentError", message));
        }
        self.step(py, |inner| {
            let at = at_ns.map_or(inner.now(), SimTime::from_ns);
            inner.cut_power(at)?;
            Ok(std::iter::from_fn(|| inner.answer()).collect())
        })
    }

    /// Returns the time of the fault, a JSON object.
    fn inject(&mut self, py: Python<'_>, fault: &str, at_ns: Option<u64>) -> PyResult<u64> {
        failure::guarded(|| {
            let wrong = |message: String| failure::raise(py, "ArgumentError", message);
            if let Some(fault) = &self.fault {
                return Err(failure::raise(py, "Error", fault.to_string()));
            }
            let object = serde_json::from_str(fault).map_err(|error| wrong(error.to_string()))?;
            let order = FaultOrder::from_json(&object).map_err(wrong)?;
            let inner = self.open(py)?;
            let at = at_ns.map_or(inner.now(), SimTime::from_ns);
            Ok(inner.inject(&order, at).map_err(wrong)?.as_ns())
        })
    }

    /// As `hybridsim._core.run`.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        failure::guarded(|| {
            self.open(py)?;
            let inner = self.inner.take().expect("it is open");
            let done = inner.finish(&plugin::registry(), self.fault.take(), Vec::new());
            outcome(py, &done.map_err(|error| refusal(py, &error, None))?, None)
        })
    }
}

impl Session {
    fn open(&mut self, py: Python<'_>) -> PyResult<&mut session::Session> {
        let finished = || failure::raise(py, "Error", "the session is finished");
        self.inner.as_mut().ok_or_else(finished)
    }

    fn step(
        &mut self,
        py: Python<'_>,
        act: impl FnOnce(&mut session::Session) -> Result<Vec<Answer>, Fault>,
    ) -> PyResult<Vec<Ended>> {
        failure::guarded(|| {
            if let Some(fault) = &self.fault {
                return Err(failure::raise(py, "Error", fault.to_string()));
            }
            match act(self.open(py)?) {
                Ok(answers) => Ok(answers.into_iter().map(ended).collect()),
                Err(fault) => {
                    let error = failure::raise(py, "Error", fault.to_string());
                    self.fault = Some(fault);
                    Err(error)
                }
            }
        })
    }
}

fn ended(answer: Answer) -> Ended {
    let outcome = match answer.outcome {
        Answered::Done => "done",
        Answered::Failed => "failed",
        Answered::Lost => "lost",
    };
    (answer.number, answer.at.as_ns(), outcome, answer.versions)
}
