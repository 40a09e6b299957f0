/* hybridsim: a simulated storage system that a program steps.
 *
 * Written by cbindgen from crates/capi/src/lib.rs; do not edit.
 * How to use it: docs/how-to/embed.md. Licensed MIT OR Apache-2.0. */

#ifndef HYBRIDSIM_H
#define HYBRIDSIM_H

#include <stddef.h>
#include <stdint.h>

/*
 Flag of a request: durable when it completes (force unit access).
 */
#define HYBRIDSIM_FUA 1

/*
 Flag of a write: a zone append; of an explicit open of a zone: with a random write area.
 */
#define HYBRIDSIM_APPEND 2

/*
 Mask of the placement handle of a write in the flags of a request.
 */
#define HYBRIDSIM_HANDLE 65280

/*
 Flag of a session: `hybridsim_cut_power` will be called.
 */
#define HYBRIDSIM_POWER_MAY_FAIL 1

/*
 Flag of a session: `hybridsim_state` will be called.
 */
#define HYBRIDSIM_SAVE_STATE 2

/*
 The status that functions return; `hybridsim_error` has the message of the last one that failed.
 */
typedef enum {
  /*
   Done.
   */
  HYBRIDSIM_STATUS_OK = 0,
  /*
   There is none: no completion, no event.
   */
  HYBRIDSIM_STATUS_NONE = 1,
  /*
   An argument is wrong; nothing has changed.
   */
  HYBRIDSIM_STATUS_ARGUMENT = 2,
  /*
   The scenario or the saved state cannot be used.
   */
  HYBRIDSIM_STATUS_SCENARIO = 3,
  /*
   The simulation ended with an error: only results can be had.
   */
  HYBRIDSIM_STATUS_ENDED = 4,
  /*
   A defect of this library: close the session.
   */
  HYBRIDSIM_STATUS_INTERNAL = 5,
} hybridsim_status;

/*
 Kinds of requests, for `hybridsim_request.op`.
 */
typedef enum {
  HYBRIDSIM_OP_READ = 0,
  HYBRIDSIM_OP_WRITE = 1,
  HYBRIDSIM_OP_TRIM = 2,
  HYBRIDSIM_OP_FLUSH = 3,
  /*
   Zone management: offset and length are those of one whole zone. Devices without zones fail
   it.
   */
  HYBRIDSIM_OP_ZONE_RESET = 4,
  HYBRIDSIM_OP_ZONE_FINISH = 5,
  HYBRIDSIM_OP_ZONE_OPEN = 6,
  HYBRIDSIM_OP_ZONE_CLOSE = 7,
  /*
   Moves the write pointer of a zone with a random write area to the end of the range.
   */
  HYBRIDSIM_OP_ZONE_COMMIT = 8,
} hybridsim_op;

/*
 The outcome of a request, in `hybridsim_completion.outcome`.
 */
typedef enum {
  /*
   Served.
   */
  HYBRIDSIM_OUTCOME_DONE = 0,
  /*
   The device could not serve it.
   */
  HYBRIDSIM_OUTCOME_FAILED = 1,
  /*
   It was outstanding when the power failed.
   */
  HYBRIDSIM_OUTCOME_LOST = 2,
} hybridsim_outcome;

/*
 A simulated system. One thread at a time may use it.
 */
typedef struct hybridsim_session hybridsim_session;

/*
 Options of a session. Set all fields to 0 first, then `size`.
 */
typedef struct {
  /*
   `sizeof(hybridsim_options)`.
   */
  size_t size;
  /*
   `HYBRIDSIM_POWER_MAY_FAIL`, `HYBRIDSIM_SAVE_STATE`.
   */
  uint32_t flags;
  /*
   A state of the same system to start from, or NULL.
   */
  const uint8_t *state;
  /*
   The state's length in bytes.
   */
  size_t state_bytes;
} hybridsim_options;

/*
 A request.
 */
typedef struct {
  /*
   Arrival in nanoseconds since the start of the session, below 2^63; an instant that
   has been simulated already is moved to the next possible one.
   */
  uint64_t at_ns;
  /*
   First byte; a multiple of 512, 0 for a flush.
   */
  uint64_t offset;
  /*
   Bytes; a multiple of 512, 0 for a flush.
   */
  uint64_t length;
  /*
   A `hybridsim_op`.
   */
  uint32_t op;
  /*
   `HYBRIDSIM_FUA`, `HYBRIDSIM_APPEND`, or 0; and 256 times the placement handle of a write
   (0 to 255), for SSDs that place data by it.
   */
  uint32_t flags;
} hybridsim_request;

/*
 The end of a request.
 */
typedef struct {
  /*
   The request's number.
   */
  uint64_t number;
  /*
   Completion in nanoseconds since the start of the session.
   */
  uint64_t at_ns;
  /*
   A `hybridsim_outcome`.
   */
  uint32_t outcome;
} hybridsim_completion;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The message of the last function that failed in this thread, until the next one fails; empty
 while the thread or the process ends, such as in functions given to `atexit`.
 */
const char *hybridsim_error(void);

/*
 The version of the library.
 */
const char *hybridsim_version(void);

/*
 Opens the system of the scenario file `path`, whose workload is ignored and may be missing.
 `options` may be NULL. Sets `*session`, which `hybridsim_close` releases.

 # Safety
 `path` ends with a zero byte, `options` points to valid options, and `session` can be written,
 unless they are NULL.
 */
hybridsim_status hybridsim_open_file(const char *path,
                                     const hybridsim_options *options,
                                     hybridsim_session **session);

/*
 Opens the system of a scenario (TOML text). As `hybridsim_open_file`; paths in it are relative
 to the working directory.

 # Safety
 As `hybridsim_open_file`.
 */
hybridsim_status hybridsim_open_text(const char *scenario,
                                     const hybridsim_options *options,
                                     hybridsim_session **session);

/*
 Closes a session, with all that it returned. NULL is ignored.

 # Safety
 `session` is NULL, or was opened and not closed.
 */
void hybridsim_close(hybridsim_session *session);

/*
 The capacity of the system in bytes; 0 for a session that is NULL or finished.

 # Safety
 `session` is NULL, or open and used by no one else.
 */
uint64_t hybridsim_capacity(hybridsim_session *session);

/*
 The simulated time in nanoseconds since the start of the session.

 # Safety
 `session` is NULL, or open and used by no one else.
 */
uint64_t hybridsim_now(hybridsim_session *session);

/*
 Requests submitted that have not ended.

 # Safety
 `session` is NULL, or open and used by no one else.
 */
uint64_t hybridsim_outstanding(hybridsim_session *session);

/*
 Submits a request. Sets `*number`, unless NULL: requests are numbered from 0.

 # Safety
 `session` is NULL, or open and used by no one else; `request` can be read and `number` written,
 unless they are NULL.
 */
hybridsim_status hybridsim_submit(hybridsim_session *session,
                                  const hybridsim_request *request,
                                  uint64_t *number);

/*
 Simulates up to `time_ns`, below 2^63; completions wait for `hybridsim_poll`.

 # Safety
 `session` is NULL, or open and used by no one else.
 */
hybridsim_status hybridsim_advance_to(hybridsim_session *session, uint64_t time_ns);

/*
 Sets `*time_ns` to the time by which the session has to be advanced for something to happen in
 it; `HYBRIDSIM_STATUS_NONE` while no request is outstanding. A request that is submitted changes
 it. It need not be the time of a completion, and may be earlier than the last arrival, as
 devices catch up with the time without requests: advance at once then.

 # Safety
 `session` is NULL, or open and used by no one else; `time_ns` is NULL or can be written.
 */
hybridsim_status hybridsim_next_event(hybridsim_session *session, uint64_t *time_ns);

/*
 Sets `*completion` to the oldest that was not returned yet, without simulating;
 `HYBRIDSIM_STATUS_NONE` if there is none.

 # Safety
 `session` is NULL, or open and used by no one else; `completion` is NULL or can be written.
 */
hybridsim_status hybridsim_poll(hybridsim_session *session, hybridsim_completion *completion);

/*
 Simulates until a request ends and sets `*completion`; `HYBRIDSIM_STATUS_NONE` if none is
 outstanding.

 # Safety
 `session` is NULL, or open and used by no one else; `completion` is NULL or can be written.
 */
hybridsim_status hybridsim_next_completion(hybridsim_session *session,
                                           hybridsim_completion *completion);

/*
 The power fails after `at_ns`, below 2^63, and comes back at once: outstanding requests end as
 lost. Needs `HYBRIDSIM_POWER_MAY_FAIL`.

 # Safety
 `session` is NULL, or open and used by no one else.
 */
hybridsim_status hybridsim_cut_power(hybridsim_session *session, uint64_t at_ns);

/*
 A fault occurs at `at_ns`, below 2^63, or as soon after as is possible; requests submitted later
 arrive after it. `fault` is a JSON object with the keys of `run.faults` without `at`, such as
 `{"do": "slow", "component": "ssd", "die": 3, "factor": 10}`. Sets `*time_ns` to its time,
 unless NULL. `HYBRIDSIM_STATUS_ARGUMENT` with the components that take the fault if it cannot
 occur.

 # Safety
 `session` is NULL, or open and used by no one else; `fault` is NULL or ends with a zero byte;
 `time_ns` is NULL or can be written.
 */
hybridsim_status hybridsim_inject(hybridsim_session *session,
                                  const char *fault,
                                  uint64_t at_ns,
                                  uint64_t *time_ns);

/*
 Serves what is outstanding and ends the simulation, after which `hybridsim_results` and
 `hybridsim_state` return something. `HYBRIDSIM_STATUS_ENDED` if it ended with an error: the
 results cover the time before.

 # Safety
 `session` is NULL, or open and used by no one else.
 */
hybridsim_status hybridsim_finish(hybridsim_session *session);

/*
 The results as JSON, as `hybridsim run --json` prints them; NULL before `hybridsim_finish`.
 Valid until the session is closed.

 # Safety
 `session` is NULL, or open and used by no one else.
 */
const char *hybridsim_results(const hybridsim_session *session);

/*
 The state of the system at the end, to start from later, and its length in `*bytes`; NULL
 before `hybridsim_finish`, when that returned `HYBRIDSIM_STATUS_ENDED`, and without
 `HYBRIDSIM_SAVE_STATE`. Valid until the session is closed.

 # Safety
 `session` is NULL, or open and used by no one else; `bytes` is NULL or can be written.
 */
const uint8_t *hybridsim_state(const hybridsim_session *session, size_t *bytes);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HYBRIDSIM_H */
