/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PORT_CLOUD_H
#define CORE_PORT_CLOUD_H

/*
 * The cloud port: one per configured backend (one instance set of one
 * driver). It mirrors the driver ABI (plugins-api/cdc/driver.h), where the
 * meaning of each callback is written down; here are only the differences:
 * calls are asynchronous (op.h), and results are plain records.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/op.h"

enum cloud_cap {
    CLOUD_CAP_BATCH = 1 << 0,       /* create takes count > 1 */
    CLOUD_CAP_SET_TAGS = 1 << 1,
    CLOUD_CAP_VERIFY_KEY = 1 << 2,  /* verify_host_key can tell */
    CLOUD_CAP_PRICES = 1 << 3,
    CLOUD_CAP_SINGLE = 1 << 4,      /* degraded: at most one instance */
    CLOUD_CAP_NO_SUDO = 1 << 5      /* commands run as the login user */
};

enum cloud_state {
    CLOUD_PENDING, CLOUD_RUNNING, CLOUD_STOPPING, CLOUD_GONE, CLOUD_FAILED
};

struct cloud_tag {
    const char *key;
    const char *value;
};

/* Strings are never NULL but where said. */
struct cloud_instance {
    const char *id;           /* never re-used */
    const char *name;
    const char *create_token; /* "" when the cloud does not tell */
    int32_t member;           /* number within the batch, from 0 */
    enum cloud_state state;
    struct err err;           /* why, when CLOUD_FAILED */
    const char *provider_type;
    const char *placement;
    const char *address;      /* IP literal; "" while unknown */
    int32_t port;             /* 0 = default */
    const char *user;         /* login user; "" = default */
    const struct cloud_tag *tags;
    size_t n_tags;
    int64_t created_ms;       /* wall; 0 = unknown */
    double price;             /* per hour; < 0 = unknown */
    const char *host_key;     /* "ssh-ed25519 AAAA..." or NULL */
};

struct cloud_create_req {
    const char *token;        /* create token: `c` + 26 base32; idempotent */
    int32_t count;            /* 1 unless CLOUD_CAP_BATCH */
    const char *type_name;    /* key in InstanceTypes */
    const char *provider_type;
    int64_t vcpus, ram, scratch;
    bool preemptible;
    double price;
    const char *image;
    const char *placement;    /* "" = the driver's only one */
    const struct cloud_tag *tags;
    size_t n_tags;
    const char *init_command;
    const char *public_key;   /* "" = none */
    int64_t deadline_ms;
};

struct cloud_create_result {
    struct op_result r;
    const struct cloud_instance *v; /* OP_DONE: 1..count of them */
    size_t n;
};

struct cloud_list_result {
    struct op_result r;
    bool complete;            /* false: the named scopes are unknown */
    const char *unknown;      /* comma-separated placements, or "" */
};

struct cloud_verify_result {
    struct op_result r;       /* OP_REFUSED/UNSUPPORTED = cannot tell;
                               * OP_REFUSED/AUTH = the key is wrong */
};

typedef void cloud_cb(void *arg, const struct op_result *r);

struct cloud_port {
    const char *backend;      /* name in the configuration */
    const char *driver;
    uint32_t caps;            /* enum cloud_cap; valid after open */

    /* Open the instance set. Before that, nothing else may be called. */
    struct op *(*open)(struct cloud_port *c, int64_t deadline_ms,
                       cloud_cb *cb, void *arg);
    struct op *(*create)(struct cloud_port *c,
                         const struct cloud_create_req *req,
                         void (*cb)(void *arg,
                                    const struct cloud_create_result *r),
                         void *arg);
    /* All instances that carry every one of the tags, booting and stopping
     * ones included. */
    struct op *(*list)(struct cloud_port *c, const struct cloud_tag *filter,
                       size_t n_filter, int64_t deadline_ms,
                       void (*on_data)(void *arg,
                                       const struct cloud_instance *i),
                       void (*end)(void *arg,
                                   const struct cloud_list_result *r),
                       void *arg);
    /* Replace all tags. */
    struct op *(*set_tags)(struct cloud_port *c, const char *id,
                           const struct cloud_tag *tags, size_t n_tags,
                           int64_t deadline_ms, cloud_cb *cb, void *arg);
    /* Accepted, or unknown to the cloud = OP_DONE. */
    struct op *(*destroy)(struct cloud_port *c, const char *id,
                          int64_t deadline_ms, cloud_cb *cb, void *arg);
    /* key: "ssh-ed25519 AAAA..." as offered by the machine at `address`. */
    struct op *(*verify_host_key)(struct cloud_port *c, const char *id,
                                  const char *key, int64_t deadline_ms,
                                  cloud_cb *cb, void *arg);
    /* Pure; into out, NUL-terminated; "" = one group for all. */
    void (*quota_group)(struct cloud_port *c, const char *provider_type,
                        bool preemptible, char *out, size_t size);
    void (*op_cancel)(struct cloud_port *c, struct op *op);
    void *impl;
};

#endif
