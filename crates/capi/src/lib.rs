//! The C interface of a simulated system that a program steps: `include/hybridsim.h`.
//!
//! Every function takes pointers from outside. Null pointers, unknown numbers and sizes are
//! answered with a status; what else a pointer has to be is said with each function. A panic ends
//! at the boundary, as [`Status::Internal`], and the session with it.

// The one crate with an interface to C.
#![allow(unsafe_code)]
#![warn(clippy::missing_safety_doc, clippy::undocumented_unsafe_blocks)]

use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Fault, Flags, Lba, SECTOR_BYTES, SimTime};
use hybridsim_simulation::faults::FaultOrder;
use hybridsim_simulation::registry;
use hybridsim_simulation::run::RunError;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::session::{self, Answer, Answered};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::ptr;

/// The status that functions return; `hybridsim_error` has the message of the last one that failed.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// There is none: no completion, no event.
    None = 1,
    /// An argument is wrong; nothing has changed.
    Argument = 2,
    /// The scenario or the saved state cannot be used.
    Scenario = 3,
    /// The simulation ended with an error: only results can be had.
    Ended = 4,
    /// A defect of this library: close the session.
    Internal = 5,
}

/// Kinds of requests, for `hybridsim_request.op`.
#[repr(C)]
pub enum Op {
    Read = 0,
    Write = 1,
    Trim = 2,
    Flush = 3,
    /// Zone management: offset and length are those of one whole zone. Devices without zones fail
    /// it.
    ZoneReset = 4,
    ZoneFinish = 5,
    ZoneOpen = 6,
    ZoneClose = 7,
    /// Moves the write pointer of a zone with a random write area to the end of the range.
    ZoneCommit = 8,
}

/// The outcome of a request, in `hybridsim_completion.outcome`.
#[repr(C)]
pub enum Outcome {
    /// Served.
    Done = 0,
    /// The device could not serve it.
    Failed = 1,
    /// It was outstanding when the power failed.
    Lost = 2,
}

/// Flag of a request: durable when it completes (force unit access).
pub const HYBRIDSIM_FUA: u32 = 1;
/// Flag of a write: a zone append; of an explicit open of a zone: with a random write area.
pub const HYBRIDSIM_APPEND: u32 = 2;
/// Mask of the placement handle of a write in the flags of a request.
pub const HYBRIDSIM_HANDLE: u32 = 0xFF00;

/// Flag of a session: `hybridsim_cut_power` will be called.
pub const HYBRIDSIM_POWER_MAY_FAIL: u32 = 1;
/// Flag of a session: `hybridsim_state` will be called.
pub const HYBRIDSIM_SAVE_STATE: u32 = 2;

/// Options of a session. Set all fields to 0 first, then `size`.
#[repr(C)]
pub struct Options {
    /// `sizeof(hybridsim_options)`.
    pub size: usize,
    /// `HYBRIDSIM_POWER_MAY_FAIL`, `HYBRIDSIM_SAVE_STATE`.
    pub flags: u32,
    /// A state of the same system to start from, or NULL.
    pub state: *const u8,
    /// The state's length in bytes.
    pub state_bytes: usize,
}

/// A request.
#[repr(C)]
pub struct Request {
    /// Arrival in nanoseconds since the start of the session, below 2^63; an instant that
    /// has been simulated already is moved to the next possible one.
    pub at_ns: u64,
    /// First byte; a multiple of 512, 0 for a flush.
    pub offset: u64,
    /// Bytes; a multiple of 512, 0 for a flush.
    pub length: u64,
    /// A `hybridsim_op`.
    pub op: u32,
    /// `HYBRIDSIM_FUA`, `HYBRIDSIM_APPEND`, or 0; and 256 times the placement handle of a write
    /// (0 to 255), for SSDs that place data by it.
    pub flags: u32,
}

/// The end of a request.
#[repr(C)]
pub struct Completion {
    /// The request's number.
    pub number: u64,
    /// Completion in nanoseconds since the start of the session.
    pub at_ns: u64,
    /// A `hybridsim_outcome`.
    pub outcome: u32,
}

/// A simulated system. One thread at a time may use it.
pub struct Session {
    registry: Registry,
    /// `None` once finished, and after a panic.
    inner: Option<session::Session>,
    fault: Option<Fault>,
    power_may_fail: bool,
    results: Option<CString>,
    state: Option<Vec<u8>>,
}

type Failed = (Status, String);

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

fn wrong(message: &str) -> Failed {
    (Status::Argument, message.to_owned())
}

fn text(message: String) -> CString {
    CString::new(message.replace('\0', " ")).expect("no zero is left")
}

/// The place of a result: uninitialised memory, which is written only.
fn out<T>(to: *mut T, name: &str) -> Result<*mut T, Failed> {
    if to.is_null() { Err(wrong(&format!("{name} is NULL"))) } else { Ok(to) }
}

/// Runs `act`; a failure or a panic becomes a status and the message of [`hybridsim_error`].
fn answer(act: impl FnOnce() -> Result<Status, Failed>) -> Status {
    let ended = catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
        let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
        Err((Status::Internal, format!("defect: {}", message.unwrap_or_default())))
    });
    ended.unwrap_or_else(|(status, message)| {
        // At the end of a thread or of the process there is no message any more.
        let _ = ERROR.try_with(|error| *error.borrow_mut() = text(message));
        status
    })
}

/// The message of the last function that failed in this thread, until the next one fails; empty
/// while the thread or the process ends, such as in functions given to `atexit`.
#[unsafe(no_mangle)]
pub extern "C" fn hybridsim_error() -> *const c_char {
    ERROR.try_with(|error| error.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn hybridsim_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Opens the system of the scenario file `path`, whose workload is ignored and may be missing.
/// `options` may be NULL. Sets `*session`, which `hybridsim_close` releases.
///
/// # Safety
/// `path` ends with a zero byte, `options` points to valid options, and `session` can be written,
/// unless they are NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_open_file(
    path: *const c_char,
    options: *const Options,
    session: *mut *mut Session,
) -> Status {
    // SAFETY: the caller guarantees what this function demands.
    answer(|| unsafe {
        let path = string(path, "path")?;
        open(|| Input::read(Path::new(path), &[]).map_err(RunError::from), options, session)
    })
}

/// Opens the system of a scenario (TOML text). As `hybridsim_open_file`; paths in it are relative
/// to the working directory.
///
/// # Safety
/// As `hybridsim_open_file`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_open_text(
    scenario: *const c_char,
    options: *const Options,
    session: *mut *mut Session,
) -> Status {
    // SAFETY: the caller guarantees what this function demands.
    answer(|| unsafe {
        let text = string(scenario, "scenario")?.to_owned();
        let source = SourceText { name: "scenario".to_owned(), text };
        let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
        open(|| Ok(input), options, session)
    })
}

/// # Safety
/// `text` is NULL, or ends with a zero byte.
unsafe fn string<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failed> {
    if text.is_null() {
        return Err(wrong(&format!("{name} is NULL")));
    }
    // SAFETY: it is not null, and ends with a zero byte.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| wrong(&format!("{name} is not UTF-8")))
}

/// # Safety
/// As [`hybridsim_open_file`].
unsafe fn open(
    input: impl FnOnce() -> Result<Input, RunError>,
    options: *const Options,
    session: *mut *mut Session,
) -> Result<Status, Failed> {
    if session.is_null() {
        return Err(wrong("session is NULL"));
    }
    // SAFETY: it can be written.
    unsafe { session.write(ptr::null_mut()) };
    // SAFETY: it is null or points to options.
    let (flags, state) = unsafe { read_options(options)? };
    let power_may_fail = flags & HYBRIDSIM_POWER_MAY_FAIL != 0;
    let options = session::Options {
        power_may_fail,
        state,
        save_state: flags & HYBRIDSIM_SAVE_STATE != 0,
        ..session::Options::default()
    };
    let registry = registry::standard();
    let opened = input().and_then(|input| {
        let scenario = Scenario::check_system(input, &registry)?;
        session::Session::open(&scenario, &registry, options)
    });
    let inner = opened.map_err(|error| (Status::Scenario, error.to_string()))?;
    let opened = Session {
        registry,
        inner: Some(inner),
        fault: None,
        power_may_fail,
        results: None,
        state: None,
    };
    // SAFETY: it can be written.
    unsafe { session.write(Box::into_raw(Box::new(opened))) };
    Ok(Status::Ok)
}

/// # Safety
/// `options` is NULL or points to options whose state is NULL or as long as they say.
unsafe fn read_options(options: *const Options) -> Result<(u32, Option<Vec<u8>>), Failed> {
    if options.is_null() {
        return Ok((0, None));
    }
    // SAFETY: the size is the first field of options of any version.
    let size = unsafe { options.cast::<usize>().read() };
    if size != size_of::<Options>() {
        let message = "options.size is not sizeof(hybridsim_options): the header is of another \
                       version, or size was not set";
        return Err(wrong(message));
    }
    // SAFETY: it points to options of this size.
    let options = unsafe { &*options };
    if options.flags & !(HYBRIDSIM_POWER_MAY_FAIL | HYBRIDSIM_SAVE_STATE) != 0 {
        return Err(wrong("unknown flag in options.flags"));
    }
    let (state, bytes) = (options.state, options.state_bytes);
    if state.is_null() && bytes > 0 {
        return Err(wrong("options.state is NULL"));
    }
    if bytes > isize::MAX as usize {
        return Err(wrong("options.state_bytes is beyond memory"));
    }
    // SAFETY: it is not null and has so many bytes.
    let state = (!state.is_null()).then(|| unsafe { std::slice::from_raw_parts(state, bytes) });
    Ok((options.flags, state.map(<[u8]>::to_vec)))
}

/// Closes a session, with all that it returned. NULL is ignored.
///
/// # Safety
/// `session` is NULL, or was opened and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_close(session: *mut Session) {
    if !session.is_null() {
        // SAFETY: it was made by `Box::into_raw` and is closed once.
        let session = unsafe { Box::from_raw(session) };
        answer(|| {
            drop(session);
            Ok(Status::Ok)
        });
    }
}

/// # Safety
/// `session` is NULL, or open and used by no one else.
unsafe fn opened<'a>(session: *mut Session) -> Result<&'a mut Session, Failed> {
    // SAFETY: it is null, or open and used by no one else.
    unsafe { session.as_mut() }.ok_or_else(|| wrong("session is NULL"))
}

impl Session {
    fn inner(&mut self) -> Result<&mut session::Session, Failed> {
        if let Some(fault) = &self.fault {
            return Err((Status::Ended, fault.to_string()));
        }
        self.inner.as_mut().ok_or_else(|| wrong("the session is finished"))
    }

    /// Runs `act`; a panic in it ends the session.
    fn run<T>(&mut self, act: impl FnOnce(&mut session::Session) -> T) -> Result<T, Failed> {
        let inner = self.inner()?;
        let ended = catch_unwind(AssertUnwindSafe(|| act(inner)));
        Ok(ended.unwrap_or_else(|panic| {
            // Dropping the session may panic again.
            let broken = self.inner.take();
            let _ = catch_unwind(AssertUnwindSafe(|| drop(broken)));
            resume_unwind(panic)
        }))
    }

    /// Simulates; a fault ends the simulation.
    fn step<T>(
        &mut self,
        act: impl FnOnce(&mut session::Session) -> Result<T, Fault>,
    ) -> Result<T, Failed> {
        self.run(act)?.map_err(|fault| {
            let message = fault.to_string();
            self.fault = Some(fault);
            (Status::Ended, message)
        })
    }
}

/// The capacity of the system in bytes; 0 for a session that is NULL or finished.
///
/// # Safety
/// `session` is NULL, or open and used by no one else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_capacity(session: *mut Session) -> u64 {
    // SAFETY: as demanded.
    unsafe { number(session, |inner| inner.capacity() * SECTOR_BYTES) }
}

/// The simulated time in nanoseconds since the start of the session.
///
/// # Safety
/// `session` is NULL, or open and used by no one else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_now(session: *mut Session) -> u64 {
    // SAFETY: as demanded.
    unsafe { number(session, |inner| inner.now().as_ns()) }
}

/// Requests submitted that have not ended.
///
/// # Safety
/// `session` is NULL, or open and used by no one else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_outstanding(session: *mut Session) -> u64 {
    // SAFETY: as demanded.
    unsafe { number(session, |inner| inner.outstanding()) }
}

/// # Safety
/// `session` is NULL, or open and used by no one else.
unsafe fn number(session: *mut Session, of: impl FnOnce(&session::Session) -> u64) -> u64 {
    // SAFETY: as demanded.
    let session = unsafe { session.as_ref() };
    session.and_then(|it| it.inner.as_ref()).map_or(0, of)
}

/// Submits a request. Sets `*number`, unless NULL: requests are numbered from 0.
///
/// # Safety
/// `session` is NULL, or open and used by no one else; `request` can be read and `number` written,
/// unless they are NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_submit(
    session: *mut Session,
    request: *const Request,
    number: *mut u64,
) -> Status {
    answer(|| {
        // SAFETY: as demanded.
        let session = unsafe { opened(session)? };
        // SAFETY: as demanded.
        let request = unsafe { request.as_ref() }.ok_or_else(|| wrong("request is NULL"))?;
        let (at, request) = (time(request.at_ns, "request.at_ns")?, engine_request(request)?);
        let submitted = session.run(|inner| inner.submit(request, at))?;
        let submitted = submitted.map_err(|rejected| wrong(&rejected.to_string()))?;
        if !number.is_null() {
            // SAFETY: as demanded.
            unsafe { number.write(submitted.number) };
        }
        Ok(Status::Ok)
    })
}

/// Times up to half of the type's range, so that the system can add latencies to them.
fn time(ns: u64, name: &str) -> Result<SimTime, Failed> {
    if ns > u64::MAX / 2 {
        return Err(wrong(&format!("{name} {ns} is beyond 2^63 - 1 nanoseconds")));
    }
    Ok(SimTime::from_ns(ns))
}

fn engine_request(request: &Request) -> Result<hybridsim_engine::Request, Failed> {
    use hybridsim_engine::{Op, ZoneAction};
    let Some(op) = Op::from_code(request.op.into()) else {
        return Err(wrong(&format!("request.op {} is not a hybridsim_op", request.op)));
    };
    if request.flags & !(HYBRIDSIM_FUA | HYBRIDSIM_APPEND | HYBRIDSIM_HANDLE) != 0 {
        return Err(wrong("unknown flag in request.flags"));
    }
    let flag = |given: u32, flag| if request.flags & given != 0 { flag } else { Flags::NONE };
    let flags = flag(HYBRIDSIM_FUA, Flags::FUA).with(flag(HYBRIDSIM_APPEND, Flags::APPEND));
    let flags = flags.with_handle(request.flags.to_be_bytes()[2]);
    let may_append = matches!(op, Op::Write | Op::Zone(ZoneAction::Open));
    if flags.contains(Flags::APPEND) && !may_append {
        return Err(wrong("only a write or an open of a zone can have HYBRIDSIM_APPEND"));
    }
    let Request { offset, length, .. } = *request;
    if matches!(op, Op::Flush) && (offset, length) != (0, 0) {
        return Err(wrong("a flush has neither request.offset nor request.length"));
    }
    if !offset.is_multiple_of(SECTOR_BYTES) || !length.is_multiple_of(SECTOR_BYTES) {
        return Err(wrong("request.offset and request.length are multiples of 512"));
    }
    let sectors = u32::try_from(length / SECTOR_BYTES)
        .map_err(|_| wrong(&format!("a request of {length} bytes is too long")))?;
    let first = Lba(offset / SECTOR_BYTES);
    Ok(hybridsim_engine::Request { flags, ..hybridsim_engine::Request::new(op, first, sectors) })
}

/// Simulates up to `time_ns`, below 2^63; completions wait for `hybridsim_poll`.
///
/// # Safety
/// `session` is NULL, or open and used by no one else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_advance_to(session: *mut Session, time_ns: u64) -> Status {
    answer(|| {
        // SAFETY: as demanded.
        let session = unsafe { opened(session)? };
        let until = time(time_ns, "time_ns")?;
        session.step(|inner| inner.advance_to(until))?;
        Ok(Status::Ok)
    })
}

/// Sets `*time_ns` to the time by which the session has to be advanced for something to happen in
/// it; `HYBRIDSIM_STATUS_NONE` while no request is outstanding. A request that is submitted changes
/// it. It need not be the time of a completion, and may be earlier than the last arrival, as
/// devices catch up with the time without requests: advance at once then.
///
/// # Safety
/// `session` is NULL, or open and used by no one else; `time_ns` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_next_event(session: *mut Session, time_ns: *mut u64) -> Status {
    answer(|| {
        // SAFETY: as demanded.
        let session = unsafe { opened(session)? };
        let time_ns = out(time_ns, "time_ns")?;
        let Some(next) = session.run(|inner| inner.next_event())? else { return Ok(Status::None) };
        // Advancing to the very time of an event leaves what might follow an arrival then.
        let next = next.as_ns().saturating_add(1);
        // SAFETY: as demanded.
        unsafe { time_ns.write(next) };
        Ok(Status::Ok)
    })
}

/// Sets `*completion` to the oldest that was not returned yet, without simulating;
/// `HYBRIDSIM_STATUS_NONE` if there is none.
///
/// # Safety
/// `session` is NULL, or open and used by no one else; `completion` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_poll(
    session: *mut Session,
    completion: *mut Completion,
) -> Status {
    // SAFETY: as demanded.
    unsafe { complete(session, completion, |inner| Ok(inner.answer())) }
}

/// Simulates until a request ends and sets `*completion`; `HYBRIDSIM_STATUS_NONE` if none is
/// outstanding.
///
/// # Safety
/// `session` is NULL, or open and used by no one else; `completion` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_next_completion(
    session: *mut Session,
    completion: *mut Completion,
) -> Status {
    // SAFETY: as demanded.
    unsafe { complete(session, completion, session::Session::next_completion) }
}

/// # Safety
/// As [`hybridsim_poll`].
unsafe fn complete(
    session: *mut Session,
    completion: *mut Completion,
    act: impl FnOnce(&mut session::Session) -> Result<Option<Answer>, Fault>,
) -> Status {
    answer(|| {
        // SAFETY: as demanded.
        let session = unsafe { opened(session)? };
        let to = out(completion, "completion")?;
        let Some(answer) = session.step(act)? else { return Ok(Status::None) };
        let outcome = match answer.outcome {
            Answered::Done => Outcome::Done,
            Answered::Failed => Outcome::Failed,
            Answered::Lost => Outcome::Lost,
        };
        let Answer { number, at, .. } = answer;
        // SAFETY: as demanded.
        unsafe { to.write(Completion { number, at_ns: at.as_ns(), outcome: outcome as u32 }) };
        Ok(Status::Ok)
    })
}

/// The power fails after `at_ns`, below 2^63, and comes back at once: outstanding requests end as
/// lost. Needs `HYBRIDSIM_POWER_MAY_FAIL`.
///
/// # Safety
/// `session` is NULL, or open and used by no one else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_cut_power(session: *mut Session, at_ns: u64) -> Status {
    answer(|| {
        // SAFETY: as demanded.
        let session = unsafe { opened(session)? };
        if !session.power_may_fail {
            return Err(wrong("open the session with HYBRIDSIM_POWER_MAY_FAIL"));
        }
        let at = time(at_ns, "at_ns")?;
        session.step(|inner| inner.cut_power(at))?;
        Ok(Status::Ok)
    })
}

/// A fault occurs at `at_ns`, below 2^63, or as soon after as is possible; requests submitted later
/// arrive after it. `fault` is a JSON object with the keys of `run.faults` without `at`, such as
/// `{"do": "slow", "component": "ssd", "die": 3, "factor": 10}`. Sets `*time_ns` to its time,
/// unless NULL. `HYBRIDSIM_STATUS_ARGUMENT` with the components that take the fault if it cannot
/// occur.
///
/// # Safety
/// `session` is NULL, or open and used by no one else; `fault` is NULL or ends with a zero byte;
/// `time_ns` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_inject(
    session: *mut Session,
    fault: *const c_char,
    at_ns: u64,
    time_ns: *mut u64,
) -> Status {
    answer(|| {
        // SAFETY: as demanded.
        let session = unsafe { opened(session)? };
        // SAFETY: as demanded.
        let fault = unsafe { string(fault, "fault")? };
        let object = serde_json::from_str(fault)
            .map_err(|error| wrong(&format!("fault is not a JSON object: {error}")))?;
        let order = FaultOrder::from_json(&object).map_err(|message| wrong(&message))?;
        let at = time(at_ns, "at_ns")?;
        let occurs = session.run(|inner| inner.inject(&order, at))?;
        let occurs = occurs.map_err(|message| wrong(&message))?;
        if !time_ns.is_null() {
            // SAFETY: as demanded.
            unsafe { time_ns.write(occurs.as_ns()) };
        }
        Ok(Status::Ok)
    })
}

/// Serves what is outstanding and ends the simulation, after which `hybridsim_results` and
/// `hybridsim_state` return something. `HYBRIDSIM_STATUS_ENDED` if it ended with an error: the
/// results cover the time before.
///
/// # Safety
/// `session` is NULL, or open and used by no one else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_finish(session: *mut Session) -> Status {
    answer(|| {
        // SAFETY: as demanded.
        let session = unsafe { opened(session)? };
        let inner = session.inner.take().ok_or_else(|| wrong("the session is finished"))?;
        let output = inner
            .finish(&session.registry, session.fault.take(), Vec::new())
            .map_err(|error| (Status::Scenario, error.to_string()))?;
        let json = serde_json::to_string(&output.results);
        let json = json.map_err(|error| (Status::Internal, error.to_string()))?;
        (session.results, session.state) = (Some(text(json)), output.state);
        match output.fault {
            Some(fault) => Err((Status::Ended, fault.to_string())),
            None => Ok(Status::Ok),
        }
    })
}

/// The results as JSON, as `hybridsim run --json` prints them; NULL before `hybridsim_finish`.
/// Valid until the session is closed.
///
/// # Safety
/// `session` is NULL, or open and used by no one else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_results(session: *const Session) -> *const c_char {
    // SAFETY: as demanded.
    let session = unsafe { session.as_ref() };
    session.and_then(|it| it.results.as_ref()).map_or(ptr::null(), |it| it.as_ptr())
}

/// The state of the system at the end, to start from later, and its length in `*bytes`; NULL
/// before `hybridsim_finish`, when that returned `HYBRIDSIM_STATUS_ENDED`, and without
/// `HYBRIDSIM_SAVE_STATE`. Valid until the session is closed.
///
/// # Safety
/// `session` is NULL, or open and used by no one else; `bytes` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hybridsim_state(session: *const Session, bytes: *mut usize) -> *const u8 {
    // SAFETY: as demanded.
    let state = unsafe { session.as_ref() }.and_then(|it| it.state.as_deref());
    if !bytes.is_null() {
        // SAFETY: as demanded.
        unsafe { bytes.write(state.map_or(0, <[u8]>::len)) };
    }
    state.map_or(ptr::null(), <[u8]>::as_ptr)
}
