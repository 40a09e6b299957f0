//! Sessions through the C interface, called from Rust so that Miri checks each access to memory:
//! `MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p hybridsim-capi --test memory`.

#![allow(unsafe_code)]

use hybridsim_c::*;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;

const DEVICE: &CStr =
    c"[component.d]\nkind = \"constant-device\"\ncapacity = \"1MiB\"\nlatency = \"10us\"\n";

fn open(flags: u32, state: &[u8]) -> *mut Session {
    let pointer = if state.is_empty() { ptr::null() } else { state.as_ptr() };
    let options =
        Options { size: size_of::<Options>(), flags, state: pointer, state_bytes: state.len() };
    let mut session = ptr::null_mut();
    // SAFETY: the text ends with a zero byte, and all of it lives as long as the call.
    let status = unsafe { hybridsim_open_text(DEVICE.as_ptr(), &options, &mut session) };
    assert_eq!(status, Status::Ok);
    session
}

/// A write to each of the first `count` pages, and their completions; the number of the last.
fn serve(session: *mut Session, count: u64) -> u64 {
    let mut number = MaybeUninit::uninit();
    for page in 0..count {
        let (at_ns, offset) = (1000 * page, 4096 * page);
        let request = Request { at_ns, offset, length: 4096, op: Op::Write as u32, flags: 0 };
        // SAFETY: the session is open, the request initialised, and the number only written.
        let status = unsafe { hybridsim_submit(session, &request, number.as_mut_ptr()) };
        assert_eq!(status, Status::Ok);
    }
    for _ in 0..count {
        let mut done = MaybeUninit::<Completion>::uninit();
        // SAFETY: the session is open, and the completion only written.
        let status = unsafe { hybridsim_next_completion(session, done.as_mut_ptr()) };
        assert_eq!(status, Status::Ok);
        // SAFETY: a session that answers `Ok` has written it.
        let done = unsafe { done.assume_init() };
        assert_eq!(done.outcome, Outcome::Done as u32);
    }
    // SAFETY: as above; there is none left, so nothing is written.
    let none = unsafe { hybridsim_poll(session, MaybeUninit::uninit().as_mut_ptr()) };
    assert_eq!(none, Status::None);
    // SAFETY: the last submission has written it.
    unsafe { number.assume_init() }
}

/// Finishes and closes a session; returns its state.
fn finish(session: *mut Session) -> Vec<u8> {
    let mut bytes = 0;
    // SAFETY: the session is open; results and state are copied before it is closed.
    unsafe {
        assert_eq!(hybridsim_finish(session), Status::Ok);
        let results = CStr::from_ptr(hybridsim_results(session)).to_str().expect("UTF-8");
        assert!(results.contains("\"fingerprint\""), "{results}");
        let state = hybridsim_state(session, &mut bytes);
        let state = std::slice::from_raw_parts(state, bytes).to_vec();
        hybridsim_close(session);
        state
    }
}

#[test]
fn a_session_is_closed_before_its_end() {
    let session = open(0, &[]);
    assert_eq!(serve(session, 3), 2, "requests are numbered from 0");
    // SAFETY: the session is open, and not used afterwards.
    unsafe { hybridsim_close(session) };
}

#[test]
#[cfg_attr(miri, ignore = "states are compressed in C, and results take Miri too long")]
fn a_session_is_saved_and_resumed() {
    let session = open(HYBRIDSIM_SAVE_STATE, &[]);
    assert_eq!(serve(session, 3), 2);
    let state = finish(session);
    let resumed = open(HYBRIDSIM_SAVE_STATE, &state);
    assert_eq!(serve(resumed, 2), 1);
    finish(resumed);
}

#[test]
fn errors_leave_memory_alone() {
    let session = open(0, &[]);
    let request = Request { at_ns: 0, offset: 1, length: 512, op: Op::Read as u32, flags: 0 };
    let mut number = 77;
    // SAFETY: the session is open; null pointers are answered.
    unsafe {
        assert_eq!(hybridsim_submit(session, &request, &mut number), Status::Argument);
        assert_eq!(hybridsim_submit(session, ptr::null(), &mut number), Status::Argument);
        assert_eq!(number, 77);
        let error = CStr::from_ptr(hybridsim_error()).to_str().expect("UTF-8");
        assert!(error.contains("NULL"), "{error}");
        assert!(hybridsim_results(session).is_null());
        hybridsim_close(session);
        hybridsim_close(ptr::null_mut());
    }
}
