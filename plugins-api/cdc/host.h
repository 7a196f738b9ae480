/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CDC_HOST_H
#define CDC_HOST_H

/*
 * What the host does for a driver: a table of functions.
 *
 * A driver is handed one pointer to it in set_open. The table is the same for
 * all sets and lives as long as the process. It grows at its end only: a
 * driver that wants a service of a later minor version asks first,
 *
 *     if (CDC_HOST_HAS(host, json_parse)) ...
 *
 * or states `minor_needed` in its descriptor. HTTP requests and signatures
 * (HMAC-SHA256, RS256) are not part of it yet; they will be appended.
 *
 * Operations. Every callback that may talk to a cloud gets a `struct cdc_op`:
 * the call's deadline, its cancellation, and the place where results and the
 * reason of a failure are put. An op may be used by the thread that runs the
 * callback until the callback returns. Then it is dead: the functions below
 * drop what is done with a dead op, and return what a cancelled one would.
 *
 * Memory. Strings and results that the host returns are valid until the
 * callback returns (what belongs to the settings: until set_close returns).
 * Nothing is ever freed across the boundary.
 *
 * Every function may be called from any thread that runs a callback.
 */

#include <cdc/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cdc_op;

/* A program to run, see run_process. */
struct cdc_process {
    uint32_t size;             /* sizeof(struct cdc_process) */
    uint32_t max_output;       /* bytes kept of each stream; 0 = 1 MiB, and at
                                * most 16 MiB */
    const char *const *argv;   /* argv[0] is an absolute path; ends with NULL */
    const char *const *env;    /* NAME=value, ends with NULL; NULL = PATH and
                                * LANG=C.UTF-8 only */
    const void *input;         /* written to its standard input; NULL if
                                * input_len is 0 */
    uint64_t input_len;
};

/* How it ended. */
struct cdc_process_result {
    uint32_t size;             /* filled in by the caller before the call */
    int32_t exit_code;         /* 0..255; -1 if a signal ended it */
    int32_t term_signal;       /* 0, or that signal */
    uint32_t truncated;        /* 1: a stream was longer than max_output */
    const char *out;           /* standard output, a NUL byte follows */
    uint64_t out_len;
    const char *err;           /* standard error, a NUL byte follows */
    uint64_t err_len;
};

struct cdc_host {
    uint32_t size;      /* of the table in the running host */
    uint32_t abi_major; /* CDC_ABI_MAJOR of the running host */
    uint32_t abi_minor; /* CDC_ABI_MINOR of the running host */
    uint32_t reserved;

    /* -- always allowed ------------------------------------------------ */

    /* Write one event to the host's log. op may be NULL or dead. The host
     * adds backend, driver and call. Never log a secret. */
    void (*log)(struct cdc_op *op, uint32_t level, const char *fmt, ...)
        CDC_PRINTF(3, 4);

    /* The wall clock, and one that never jumps (its origin means nothing).
     * Drivers use these and no others, so that tests can run on a clock of
     * their own. */
    int64_t (*now_ms)(void);
    int64_t (*mono_ms)(void);

    /* -- the call in hand ---------------------------------------------- */

    /*
     * Say why the callback is going to return -1. The last call counts.
     * retry_after_ms: earliest sensible retry from now, 0 = not stated.
     * code, request_id: the provider's own, NULL = none; both are cut at 63
     * bytes. The text is one line without a full stop, cut at 511 bytes.
     * Always returns -1, so that a driver may write
     *
     *     return host->fail(op, CDC_CLASS_CONFIG, CDC_SCOPE_NONE, 0, NULL,
     *                       NULL, "Region is missing");
     */
    int32_t (*fail)(struct cdc_op *op, uint32_t error_class, uint32_t scope,
                    int64_t retry_after_ms, const char *code,
                    const char *request_id, const char *fmt, ...)
        CDC_PRINTF(7, 8);

    /* 1 when nobody waits for the result any more (deadline, shutdown). A
     * driver that loops looks at it in each turn. */
    int32_t (*cancelled)(struct cdc_op *op);

    /* Milliseconds until the deadline; 0 when it has passed. */
    int64_t (*deadline_ms)(struct cdc_op *op);

    /* Sleep. 0 after the full time; -1 at once when cancelled or when the
     * deadline comes first. */
    int32_t (*sleep_ms)(struct cdc_op *op, int64_t ms);

    /* -- results ------------------------------------------------------- */

    /*
     * Each returns 0, or -1 when the record was refused: it is malformed,
     * there are too many, or the op is dead or of another kind. A malformed
     * record makes the whole call fail as INTERNAL, whatever the callback
     * returns; there is no need to look at the return value, but a loop may
     * end early.
     */
    int32_t (*emit_instance)(struct cdc_op *op,
                             const struct cdc_instance *instance);
    int32_t (*emit_price)(struct cdc_op *op, const struct cdc_price *price);
    /* list only: the instances of this placement could not be asked for.
     * What is not in the list is then not taken as gone. "" = everywhere. */
    int32_t (*emit_unknown_scope)(struct cdc_op *op, const char *placement);
    /* describe only: one line of "key: value" for people. */
    int32_t (*emit_fact)(struct cdc_op *op, const char *key,
                         const char *value);
    /* set_open only: the capabilities of this set, where they are not those
     * of the descriptor (for example because a privilege is missing). */
    int32_t (*set_caps)(struct cdc_op *op, uint32_t caps);

    /* -- JSON ---------------------------------------------------------- */

    /*
     * A value is never NULL-checked by the caller: every accessor takes NULL
     * as JSON null, so that chains need no test in between.
     */
    uint32_t (*json_type)(const struct cdc_json *j); /* CDC_JSON_* */
    uint32_t (*json_count)(const struct cdc_json *j); /* members, elements */
    /* Member of an object; NULL when absent, null, or j is no object. */
    const struct cdc_json *(*json_get)(const struct cdc_json *j,
                                       const char *key);
    /* Element i of an array, or value i of an object. */
    const struct cdc_json *(*json_at)(const struct cdc_json *j, uint32_t i);
    /* Name of member i of an object; NULL when there is none. */
    const char *(*json_key)(const struct cdc_json *j, uint32_t i);
    /* The value. NULL or -1 when it is of another type; *ret is then left
     * alone, which makes defaults easy. An integer is taken as a double too,
     * never the other way round. */
    const char *(*json_str)(const struct cdc_json *j);
    int32_t (*json_i64)(const struct cdc_json *j, int64_t *ret);
    int32_t (*json_f64)(const struct cdc_json *j, double *ret);
    int32_t (*json_bool)(const struct cdc_json *j, int32_t *ret);
    /*
     * Parse a text of len bytes (at most 16 MiB); the value is valid until
     * the callback returns. NULL, with fail() already called as INTERNAL, when
     * the text is not one strict JSON value in valid UTF-8 or nests more than
     * 32 deep.
     */
    const struct cdc_json *(*json_parse)(struct cdc_op *op, const char *text,
                                         uint64_t len);

    /* -- processes ----------------------------------------------------- */

    /*
     * Run a program to its end in a process group of its own, without any
     * open descriptor of the host's. 0: it ended, *result says how; a result
     * is valid until the callback returns. -1, with fail() already called:
     * CONFIG when it could not be started, or when the program or a folder
     * above it can be written by others than root and the user that the host
     * runs as; OUTCOME_UNKNOWN when the deadline or a cancellation came
     * first, and the process group was killed.
     * A driver never forks by itself.
     */
    int32_t (*run_process)(struct cdc_op *op,
                           const struct cdc_process *process,
                           struct cdc_process_result *result);
};

#define CDC_HOST_HAS(host, service)                                           \
    (CDC_HAS(host, service) && (host)->service != NULL)

#ifdef __cplusplus
}
#endif

#endif
