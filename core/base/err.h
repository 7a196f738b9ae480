/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BASE_ERR_H
#define CORE_BASE_ERR_H

/*
 * Why something failed: a class to decide on, a text to show.
 *
 * Every fallible function of the tree returns 0 or -1 and fills a
 * `struct err *err`, always its last parameter; NULL is allowed and means
 * that the caller does not want to know. Decide on the class, show the text,
 * never the other way round. The classes and scopes are those of the driver
 * ABI (plugins-api/cdc/types.h) plus the ones that only appear inside.
 */

#include <stdint.h>

/*      name            label            meaning */
#define ERR_CLASSES(X)                                                        \
    X(NONE,            "none",           "no error")                          \
    X(TRANSIENT,       "transient",      "may work when tried again")         \
    X(RATE_LIMITED,    "rate-limited",   "too many calls; see retry_ms")      \
    X(QUOTA,           "quota",          "the account may not have more")     \
    X(CAPACITY,        "capacity",       "the provider has no more of it")    \
    X(AUTH,            "auth",           "not authenticated or not allowed")  \
    X(CONFIG,          "config",         "a setting is wrong")                \
    X(NOT_FOUND,       "not-found",      "the object does not exist")         \
    X(UNSUPPORTED,     "unsupported",    "cannot be done by this peer")       \
    X(UNKNOWN,         "outcome-unknown", "may or may not have happened")     \
    X(INTERNAL,        "internal",       "a broken promise inside")           \
    X(INVALID,         "invalid",        "the input is malformed")            \
    X(CONFLICT,        "conflict",       "refused: state is not as assumed")  \
    X(TIMEOUT,         "timeout",        "the deadline passed")               \
    X(CANCELLED,       "cancelled",      "the caller gave it up")             \
    X(TOO_LARGE,       "too-large",      "a limit on size was exceeded")

enum err_class {
#define X(name, label, help) ERR_##name,
    ERR_CLASSES(X)
#undef X
};

/* What a quota, capacity or rate error covers. */
#define ERR_SCOPES(X)                                                         \
    X(NONE,    "none")    /* not stated: treat as ACCOUNT */                  \
    X(TYPE,    "type")                                                        \
    X(ZONE,    "zone")                                                        \
    X(GROUP,   "group")   /* quota group */                                   \
    X(MARKET,  "market")  /* spot or on-demand */                             \
    X(ACCOUNT, "account")

enum err_scope {
#define X(name, label) ERR_SCOPE_##name,
    ERR_SCOPES(X)
#undef X
};

struct err {
    enum err_class class;
    enum err_scope scope;
    int64_t retry_ms;    /* earliest retry, from now; 0 = not stated */
    char code[64];       /* the provider's or system's own code, or "" */
    char request_id[64]; /* the provider's request id, or "" */
    char text[512];      /* one line for people, no trailing full stop */
};

/* The label of a class or scope: a static string, "?" if out of range. */
const char *err_class_label(enum err_class class);
const char *err_scope_label(enum err_scope scope);
/* Label to class; ERR_INTERNAL for an unknown label. */
enum err_class err_class_of(const char *label);

/* Fill err (if not NULL) from scratch and return -1. */
int err_set(struct err *err, enum err_class class, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same from an errno value: the class is derived, ": strerror" appended,
 * code set to the symbolic name (ENOENT). */
int err_set_errno(struct err *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "text: " before what is already there; class unchanged; returns -1. */
int err_prefix(struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Back to ERR_NONE and empty texts. NULL is fine. */
void err_clear(struct err *err);

#endif
