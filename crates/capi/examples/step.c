/* Steps a simulated drive: ten writes, ten reads, the results as JSON.
 *
 *     cc step.c $(pkg-config --cflags --libs hybridsim) -o step
 *     ./step ssd.toml [STATE]
 *
 * With STATE, starts from the state in that file, if there is one, and writes it at the end. */

#include <hybridsim.h>
#include <stdio.h>
#include <stdlib.h>

static void check(hybridsim_status status)
{
    if (status > HYBRIDSIM_STATUS_NONE) {
        fprintf(stderr, "%s\n", hybridsim_error());
        exit(1);
    }
}

/* The bytes of a file, or NULL if it cannot be opened. */
static uint8_t *load(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    long length;

    if (file == NULL)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) > 0) {
        rewind(file);
        data = malloc((size_t)length);
        *bytes = data == NULL ? 0 : fread(data, 1, (size_t)length, file);
    }
    fclose(file);
    return data;
}

int main(int argc, char **argv)
{
    hybridsim_options options = {sizeof options, 0, NULL, 0};
    hybridsim_request request = {0, 0, 4096, HYBRIDSIM_OP_WRITE, 0};
    hybridsim_completion completion;
    hybridsim_session *session;
    uint8_t *state = NULL;
    uint64_t i;

    if (argc < 2) {
        fprintf(stderr, "usage: step SCENARIO [STATE]\n");
        return 2;
    }
    if (argc > 2) {
        options.flags = HYBRIDSIM_SAVE_STATE;
        options.state = state = load(argv[2], &options.state_bytes);
    }
    check(hybridsim_open_file(argv[1], &options, &session));
    free(state);
    for (i = 0; i < 20; i++) {
        request.op = i < 10 ? HYBRIDSIM_OP_WRITE : HYBRIDSIM_OP_READ;
        request.offset = i % 10 * 8192;
        check(hybridsim_submit(session, &request, NULL));
        check(hybridsim_next_completion(session, &completion));
        fprintf(stderr, "request %u ended at %.1f us\n", (unsigned)completion.number,
                (double)completion.at_ns / 1e3);
        request.at_ns = completion.at_ns + 1000;
    }
    check(hybridsim_finish(session));
    puts(hybridsim_results(session));
    if (argc > 2) {
        size_t bytes;
        const uint8_t *end = hybridsim_state(session, &bytes);
        FILE *file = fopen(argv[2], "wb");

        if (file == NULL || fwrite(end, 1, bytes, file) != bytes || fclose(file) != 0) {
            perror(argv[2]);
            return 1;
        }
    }
    hybridsim_close(session);
    return 0;
}
