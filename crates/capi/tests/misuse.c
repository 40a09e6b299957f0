/* Every function with null pointers, wrong numbers and sizes, in wrong order. */

#include <hybridsim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

/* `call` returns `expected`, with a message that contains `word`. */
static void expect(int line, hybridsim_status call, hybridsim_status expected, const char *word)
{
    if (call != expected || (word != NULL && strstr(hybridsim_error(), word) == NULL)) {
        fprintf(stderr, "line %d: status %d, not %d with `%s`: %s\n", line, (int)call,
                (int)expected, word == NULL ? "" : word, hybridsim_error());
        failures++;
    }
}

#define OK(call) expect(__LINE__, call, HYBRIDSIM_STATUS_OK, NULL)
#define NONE(call) expect(__LINE__, call, HYBRIDSIM_STATUS_NONE, NULL)
#define WRONG(call, word) expect(__LINE__, call, HYBRIDSIM_STATUS_ARGUMENT, word)
#define ENDED(call, word) expect(__LINE__, call, HYBRIDSIM_STATUS_ENDED, word)
#define SCENARIO(call, word) expect(__LINE__, call, HYBRIDSIM_STATUS_SCENARIO, word)
#define IS(condition) \
    expect(__LINE__, (condition) ? HYBRIDSIM_STATUS_OK : HYBRIDSIM_STATUS_NONE, \
           HYBRIDSIM_STATUS_OK, NULL)

static const char DEVICE[] =
    "[component.d]\nkind = \"constant-device\"\ncapacity = \"1MiB\"\nlatency = \"10us\"\n";
static const char DISK[] = "[component.d]\npreset = \"seagate-cheetah-9lp\"\n";

static const char MEMS[] = "[component.d]\nkind = \"mems\"\n";

static void opening(void)
{
    hybridsim_session *session = (hybridsim_session *)&failures;
    hybridsim_options options = {sizeof options, 0, NULL, 0};
    const uint8_t garbage[] = "this is not a state";

    WRONG(hybridsim_open_text(NULL, NULL, &session), "scenario is NULL");
    WRONG(hybridsim_open_file(NULL, NULL, &session), "path is NULL");
    WRONG(hybridsim_open_text(DEVICE, NULL, NULL), "session is NULL");
    WRONG(hybridsim_open_text("\xff", NULL, &session), "UTF-8");
    SCENARIO(hybridsim_open_text("nonsense", NULL, &session), "nonsense");
    IS(session == NULL);
    SCENARIO(hybridsim_open_text("", NULL, &session), "component");
    SCENARIO(hybridsim_open_file("/nowhere/at/all.toml", NULL, &session), "/nowhere/at/all.toml");
    options.size = 4;
    WRONG(hybridsim_open_text(DEVICE, &options, &session), "size");
    options.size = sizeof options;
    options.flags = 64;
    WRONG(hybridsim_open_text(DEVICE, &options, &session), "flag");
    options.flags = 0;
    options.state_bytes = 10;
    WRONG(hybridsim_open_text(DEVICE, &options, &session), "state is NULL");
    options.state = garbage;
    options.state_bytes = (size_t)-1;
    WRONG(hybridsim_open_text(DEVICE, &options, &session), "memory");
    options.state_bytes = sizeof garbage;
    SCENARIO(hybridsim_open_text(DEVICE, &options, &session), "not a saved state");
    IS(session == NULL);
    hybridsim_close(NULL);
}

static void stepping(void)
{
    hybridsim_session *session;
    hybridsim_request request = {0, 0, 4096, HYBRIDSIM_OP_READ, 0};
    hybridsim_completion completion;
    uint64_t number = 99, time;
    size_t bytes = 99;

    OK(hybridsim_open_text(DEVICE, NULL, &session));
    IS(hybridsim_capacity(session) == 1 << 20 && hybridsim_capacity(NULL) == 0);
    IS(hybridsim_now(session) == 0 && hybridsim_now(NULL) == 0);
    IS(hybridsim_results(session) == NULL && hybridsim_results(NULL) == NULL);
    IS(hybridsim_state(session, &bytes) == NULL && bytes == 0);
    IS(hybridsim_state(NULL, NULL) == NULL);
    NONE(hybridsim_poll(session, &completion));
    NONE(hybridsim_next_completion(session, &completion));
    NONE(hybridsim_next_event(session, &time));
    WRONG(hybridsim_submit(NULL, &request, NULL), "session is NULL");
    WRONG(hybridsim_submit(session, NULL, NULL), "request is NULL");
    request.op = 17;
    WRONG(hybridsim_submit(session, &request, NULL), "17");
    request.op = HYBRIDSIM_OP_READ;
    request.flags = 4;
    WRONG(hybridsim_submit(session, &request, NULL), "flag");
    request.flags = HYBRIDSIM_APPEND;
    WRONG(hybridsim_submit(session, &request, NULL), "only a write");
    request.flags = 0;
    request.length = 100;
    WRONG(hybridsim_submit(session, &request, NULL), "512");
    request.length = 0;
    WRONG(hybridsim_submit(session, &request, NULL), "empty");
    request.length = UINT64_MAX - 511;
    WRONG(hybridsim_submit(session, &request, NULL), "too long");
    request.length = 4096;
    request.offset = 1 << 20;
    WRONG(hybridsim_submit(session, &request, NULL), "sectors of the device");
    request.offset = UINT64_MAX - 511;
    WRONG(hybridsim_submit(session, &request, NULL), "sectors of the device");
    request.offset = 0;
    request.at_ns = UINT64_MAX / 2 + 1;
    WRONG(hybridsim_submit(session, &request, NULL), "at_ns");
    request.at_ns = 0;
    request.op = HYBRIDSIM_OP_FLUSH;
    WRONG(hybridsim_submit(session, &request, NULL), "flush");
    request.op = HYBRIDSIM_OP_READ;
    IS(hybridsim_outstanding(session) == 0 && number == 99);
    OK(hybridsim_submit(session, &request, &number));
    IS(hybridsim_outstanding(session) == 1 && number == 0);
    WRONG(hybridsim_next_event(session, NULL), "NULL");
    WRONG(hybridsim_next_event(NULL, &time), "NULL");
    WRONG(hybridsim_advance_to(NULL, 1), "NULL");
    WRONG(hybridsim_advance_to(session, UINT64_MAX), "time_ns");
    WRONG(hybridsim_next_completion(session, NULL), "NULL");
    WRONG(hybridsim_poll(NULL, &completion), "NULL");
    WRONG(hybridsim_cut_power(session, 5), "HYBRIDSIM_POWER_MAY_FAIL");
    WRONG(hybridsim_cut_power(NULL, 5), "NULL");
    WRONG(hybridsim_inject(NULL, "{}", 5, &time), "session is NULL");
    WRONG(hybridsim_inject(session, NULL, 5, &time), "fault is NULL");
    WRONG(hybridsim_inject(session, "slow", 5, &time), "JSON");
    WRONG(hybridsim_inject(session, "{}", 5, &time), "`do` is missing");
    WRONG(hybridsim_inject(session, "{\"do\": \"wear\"}", 5, NULL), "no component of this system");
    WRONG(hybridsim_inject(session, "{\"do\": \"slow\", \"factor\": 2}", UINT64_MAX, NULL),
          "at_ns");
    OK(hybridsim_advance_to(session, 10001));
    OK(hybridsim_poll(session, &completion));
    IS(completion.at_ns == 10000 && completion.outcome == HYBRIDSIM_OUTCOME_DONE);
    OK(hybridsim_finish(session));
    IS(strstr(hybridsim_results(session), "\"requests\":1,") != NULL);
    WRONG(hybridsim_finish(session), "finished");
    WRONG(hybridsim_submit(session, &request, NULL), "finished");
    IS(hybridsim_state(session, NULL) == NULL);
    hybridsim_close(session);
    WRONG(hybridsim_finish(NULL), "NULL");
}

/* A power failure loses what is outstanding; a device that cannot model it ends the simulation. */
static void power(void)
{
    hybridsim_options options = {sizeof options, HYBRIDSIM_POWER_MAY_FAIL, NULL, 0};
    hybridsim_request request = {0, 0, 4096, HYBRIDSIM_OP_WRITE, HYBRIDSIM_FUA};
    hybridsim_completion completion;
    hybridsim_session *session;

    OK(hybridsim_open_text(DISK, &options, &session));
    OK(hybridsim_submit(session, &request, NULL));
    WRONG(hybridsim_cut_power(session, UINT64_MAX), "at_ns");
    OK(hybridsim_cut_power(session, 1000));
    OK(hybridsim_poll(session, &completion));
    IS(completion.outcome == HYBRIDSIM_OUTCOME_LOST);
    OK(hybridsim_submit(session, &request, NULL));
    OK(hybridsim_next_completion(session, &completion));
    IS(completion.outcome == HYBRIDSIM_OUTCOME_DONE && completion.number == 1);
    hybridsim_close(session);

    OK(hybridsim_open_text(MEMS, &options, &session));
    ENDED(hybridsim_cut_power(session, 1000), "does not model power failures");
    ENDED(hybridsim_submit(session, &request, NULL), "does not model power failures");
    ENDED(hybridsim_finish(session), "does not model power failures");
    IS(hybridsim_results(session) != NULL && hybridsim_state(session, NULL) == NULL);
    hybridsim_close(session);
}

/* A fault has its effect on the requests submitted after it. */
static void faults(void)
{
    hybridsim_request request = {0, 0, 4096, HYBRIDSIM_OP_READ, 0};
    hybridsim_completion completion;
    hybridsim_session *session;
    uint64_t time = 0;

    OK(hybridsim_open_text(DEVICE, NULL, &session));
    OK(hybridsim_inject(session, "{\"do\": \"slow\", \"factor\": 3}", 500, &time));
    IS(time == 500);
    OK(hybridsim_submit(session, &request, NULL));
    OK(hybridsim_next_completion(session, &completion));
    IS(completion.at_ns == 30500);
    OK(hybridsim_inject(session, "{\"do\": \"slow\", \"factor\": 1}", 0, &time));
    IS(time == 30501);
    OK(hybridsim_submit(session, &request, NULL));
    OK(hybridsim_next_completion(session, &completion));
    IS(completion.at_ns == 40501);
    OK(hybridsim_finish(session));
    WRONG(hybridsim_inject(session, "{\"do\": \"slow\", \"factor\": 1}", 0, &time), "finished");
    hybridsim_close(session);
}

/* The message of the thread is gone by now. */
static void at_exit(void)
{
    hybridsim_session *session;

    if (hybridsim_open_text(NULL, NULL, &session) != HYBRIDSIM_STATUS_ARGUMENT ||
        hybridsim_error() == NULL) {
        _Exit(1);
    }
}

int main(void)
{
    atexit(at_exit);
    opening();
    stepping();
    power();
    faults();
    return failures == 0 && hybridsim_version()[0] != '\0' ? 0 : 1;
}
