/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CDC_TYPES_H
#define CDC_TYPES_H

/*
 * Values that cross the driver ABI.
 *
 * Only fixed-width integers, IEEE 754 binary64 numbers (double) and pointers
 * cross it: no bool, enum, long, size_t, time_t, bit-field or FILE.
 * Enumerations are uint32_t with named constants; whoever meets a number that
 * it does not know treats it as described beside the list, and goes on.
 *
 * Strings are UTF-8, end with a NUL byte and contain no control characters.
 * A string member may be NULL only where its comment says so. Times are
 * milliseconds since 1970-01-01 UTC, durations milliseconds.
 *
 * Each struct that may grow begins with `size`, the sizeof of whoever fills
 * it in. New members are appended only; who reads a struct looks at no member
 * beyond the size that it finds, and treats what is missing as zero. CDC_HAS
 * does the comparison:
 *
 *     if (CDC_HAS(spec, placement)) ...
 *
 * This header compiles as C90, as every later C, and as C++.
 */

#include <stddef.h>
#include <stdint.h>

#define CDC_HAS(p, member)                                                    \
    ((uint64_t)((const char *)&(p)->member - (const char *)(p)) +             \
         sizeof((p)->member) <= (p)->size)

#if defined(__GNUC__)
#define CDC_EXPORT __attribute__((visibility("default")))
#define CDC_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define CDC_EXPORT
#define CDC_PRINTF(fmt, args)
#endif

/*
 * Error classes: what the dispatcher decides on. A class tells what is known
 * about the request that failed, not which HTTP status came back.
 *
 * All but OUTCOME_UNKNOWN promise that the request had no effect and will
 * have none. A create whose reply was lost, or that ran into a time limit
 * after the request was sent, is OUTCOME_UNKNOWN, never TRANSIENT: the
 * dispatcher resolves it by looking, not by asking again under a new name.
 */
#define CDC_CLASS_NONE 0u
#define CDC_CLASS_TRANSIENT 1u       /* may work when tried again */
#define CDC_CLASS_RATE_LIMITED 2u    /* too many calls; see retry_after_ms */
#define CDC_CLASS_QUOTA 3u           /* the account may not have more */
#define CDC_CLASS_CAPACITY 4u        /* the provider has no more of it */
#define CDC_CLASS_AUTH 5u            /* not authenticated, or not allowed */
#define CDC_CLASS_CONFIG 6u          /* a setting is wrong */
#define CDC_CLASS_NOT_FOUND 7u       /* the object does not exist */
#define CDC_CLASS_UNSUPPORTED 8u     /* this driver or cloud cannot do it */
#define CDC_CLASS_OUTCOME_UNKNOWN 9u /* may or may not have happened */
#define CDC_CLASS_INTERNAL 10u       /* a broken promise; also: unknown class */

/* What a quota, capacity or rate error covers; unknown counts as NONE. */
#define CDC_SCOPE_NONE 0u    /* not stated: treated as ACCOUNT */
#define CDC_SCOPE_TYPE 1u    /* this instance type */
#define CDC_SCOPE_ZONE 2u    /* this placement */
#define CDC_SCOPE_GROUP 3u   /* this quota group */
#define CDC_SCOPE_MARKET 4u  /* spot, or on-demand */
#define CDC_SCOPE_ACCOUNT 5u /* everything in the account */

/* Life of an instance; a number that the host does not know is refused. */
#define CDC_STATE_PENDING 0u  /* accepted, not usable yet */
#define CDC_STATE_RUNNING 1u  /* started; it may still be booting */
#define CDC_STATE_STOPPING 2u /* on its way down, costs may still run */
#define CDC_STATE_GONE 3u     /* ended; still listed for some time */
#define CDC_STATE_FAILED 4u   /* accepted, then refused: see error_class */

struct cdc_tag {
    const char *key;   /* not empty, at most CDC_TAG_KEY_MAX bytes */
    const char *value; /* at most CDC_TAG_VALUE_MAX bytes; may be "" */
};

/* Limits on what a driver emits; beyond them the call fails as INTERNAL. */
#define CDC_ID_MAX 255         /* bytes of id, name, placement, ... */
#define CDC_TAG_KEY_MAX 127
#define CDC_TAG_VALUE_MAX 511
#define CDC_TAGS_MAX 64        /* tags of one instance */
#define CDC_INSTANCES_MAX 100000 /* instances in one list */

/*
 * One instance, as the cloud tells it now. Emitted by create and list.
 * Everything is copied before emit_instance returns.
 */
struct cdc_instance {
    uint32_t size;            /* sizeof(struct cdc_instance) */
    uint32_t state;           /* CDC_STATE_* */
    const char *id;           /* stable, unique in the set, never used again */
    const char *name;         /* for people; NULL = the id */
    const char *create_token; /* spec.token it was made for; NULL or "" = the
                               * cloud does not tell */
    int32_t member;           /* number within a batch, from 0 */
    int32_t port;             /* SSH port; 0 = 22 */
    const char *provider_type; /* the cloud's name of its type; NULL = "" */
    const char *placement;    /* zone or subnet; NULL or "" = the only one */
    const char *address;      /* IPv4 or IPv6 literal that the dispatcher can
                               * reach; NULL or "" while there is none */
    const char *user;         /* login user; NULL or "" = as configured */
    const struct cdc_tag *tags; /* n_tags of them */
    uint32_t n_tags;
    uint32_t error_class;     /* CDC_STATE_FAILED: why, else 0 */
    const char *error_text;   /* one line for people; NULL = "" */
    int64_t created_ms;       /* 0 = unknown */
    double price;             /* per hour, as charged; < 0 = unknown */
    const char *host_key;     /* "ssh-ed25519 AAAA...", told by a channel that
                               * nobody in between can forge; else NULL */
};

/*
 * What to create. The placement is chosen above the driver: a create is one
 * request to one placement, and the driver neither rotates nor retries.
 */
struct cdc_create_spec {
    uint32_t size;
    int32_t count;             /* 1, or with CDC_CAP_BATCH more */
    const char *token;         /* `c` + 26 characters of [a-z2-7], not secret:
                                * the name of this attempt */
    const char *type_name;     /* key in the section InstanceTypes */
    const char *provider_type; /* the cloud's name for it */
    int64_t vcpus;
    int64_t ram;               /* bytes */
    int64_t scratch;           /* bytes */
    double price;              /* per hour, as configured */
    uint32_t preemptible;      /* 0 or 1 */
    uint32_t n_tags;
    const struct cdc_tag *tags;
    const char *image;         /* the cloud's name of the image */
    const char *placement;     /* "" = the only one */
    const char *init_command;  /* shell, to be run as root at boot; may be "" */
    const char *public_key;    /* OpenSSH format, for the login user; may be
                                * "" */
};

/* One sample of price_history. Copied before emit_price returns. */
struct cdc_price {
    uint32_t size;
    uint32_t preemptible;      /* 0 or 1 */
    const char *provider_type;
    const char *placement;     /* NULL or "" = everywhere */
    int64_t start_ms;          /* in force from then on */
    double price;              /* per hour */
};

/* A driver's own settings: a JSON value, see the accessors in host.h. */
struct cdc_json;

#define CDC_JSON_NULL 0u /* also: absent */
#define CDC_JSON_BOOL 1u
#define CDC_JSON_INT 2u
#define CDC_JSON_DOUBLE 3u
#define CDC_JSON_STRING 4u
#define CDC_JSON_ARRAY 5u
#define CDC_JSON_OBJECT 6u

/* Log levels; an unknown one counts as INFO. */
#define CDC_LOG_DEBUG 0u
#define CDC_LOG_INFO 1u
#define CDC_LOG_WARNING 2u
#define CDC_LOG_ERROR 3u

#endif
