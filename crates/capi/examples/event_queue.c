/* Couples a simulated drive to a simulator that has its own event queue, such as gem5 or SST.
 *
 *     cc event_queue.c $(pkg-config --cflags --libs hybridsim) -o event_queue
 *     ./event_queue ssd.toml
 *
 * Here that simulator is a model of four clients: each thinks, requests a block, waits for it, and
 * thinks again. Its queue has one event for each client that thinks, and one event for the drive,
 * which is moved whenever hybridsim_next_event says so. No part simulates ahead of the queue. */

#include <hybridsim.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLIENTS = 4, REQUESTS = 200 };

static const uint64_t NEVER = UINT64_MAX;

static void check(hybridsim_status status)
{
    if (status > HYBRIDSIM_STATUS_NONE) {
        fprintf(stderr, "%s\n", hybridsim_error());
        exit(1);
    }
}

/* The event queue: when each client ends thinking, and when the drive has something to do. */
static uint64_t client_event[CLIENTS];
static uint64_t drive_event = UINT64_MAX;

/* Which client waits for a request, by the request's number. */
static int client_of[REQUESTS];
static uint64_t submitted, completed, last_completion;

static uint64_t random_number(void)
{
    static uint64_t x = 88172645463325252u;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

/* Moves the drive's event: after every submission and every advance. */
static void reschedule(hybridsim_session *drive, uint64_t now)
{
    hybridsim_status status = hybridsim_next_event(drive, &drive_event);

    check(status);
    if (status == HYBRIDSIM_STATUS_NONE)
        drive_event = NEVER;
    else if (drive_event < now)
        drive_event = now;
}

static void client_requests(hybridsim_session *drive, int client, uint64_t now)
{
    uint64_t blocks = hybridsim_capacity(drive) / 4096, number;
    hybridsim_request request = {0, 0, 4096, HYBRIDSIM_OP_READ, 0};

    request.at_ns = now;
    request.offset = random_number() % blocks * 4096;
    if (random_number() % 4 == 0)
        request.op = HYBRIDSIM_OP_WRITE;
    client_event[client] = NEVER;
    if (submitted == REQUESTS)
        return;
    check(hybridsim_submit(drive, &request, &number));
    client_of[number] = client;
    submitted++;
}

static void drive_advances(hybridsim_session *drive, uint64_t now)
{
    hybridsim_completion completion;

    check(hybridsim_advance_to(drive, now));
    while (hybridsim_poll(drive, &completion) == HYBRIDSIM_STATUS_OK) {
        /* The next 5 to 25 microseconds the client thinks. */
        client_event[client_of[completion.number]] =
            completion.at_ns + 5000 + random_number() % 20000;
        last_completion = completion.at_ns;
        completed++;
    }
}

int main(int argc, char **argv)
{
    hybridsim_session *drive;
    uint64_t now;
    int client, first;

    if (argc < 2) {
        fprintf(stderr, "usage: event_queue SCENARIO\n");
        return 2;
    }
    check(hybridsim_open_file(argv[1], NULL, &drive));
    for (client = 0; client < CLIENTS; client++)
        client_event[client] = (uint64_t)client * 1000;
    for (;;) {
        first = 0;
        for (client = 1; client < CLIENTS; client++)
            if (client_event[client] < client_event[first])
                first = client;
        now = client_event[first] < drive_event ? client_event[first] : drive_event;
        if (now == NEVER)
            break;
        if (now == drive_event)
            drive_advances(drive, now);
        else
            client_requests(drive, first, now);
        reschedule(drive, now);
    }
    fprintf(stderr, "%u requests, the last ended at %.1f us\n", (unsigned)completed,
            (double)last_completion / 1e3);
    check(hybridsim_finish(drive));
    puts(hybridsim_results(drive));
    hybridsim_close(drive);
    return completed == REQUESTS ? 0 : 1;
}
