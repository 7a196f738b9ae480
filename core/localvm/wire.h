/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LOCALVM_WIRE_H
#define CORE_LOCALVM_WIRE_H

/*
 * The language of cdc-local-vm: one JSON object in on standard input, one out
 * on standard output, one process per call.
 *
 *     cdc-local-vm --state DIR {probe|create|list|tag|destroy}
 *
 * Exit 0: the reply below. Exit 1: {"error": {...}}. Exit 2: wrong command
 * line, told on standard error, no JSON. Standard error may carry remarks for
 * the log, one a line. DIR is absolute; it is made (0700) when missing. Any
 * number of calls may run at once, on one DIR or on several.
 *
 * probe    in   {} or {"cgroup_parent"}
 *          out  {"degraded": bool, "reason": str,
 *                "cgroup": {"version": 0|1|2, "limits": ["memory","cpu","pids"]}}
 *               degraded: VMs cannot be made here (reason says what was
 *               refused); create then gives one VM of plain processes.
 *               limits: those that can be put in force here.
 *
 * create   in   {"token": str,            [A-Za-z0-9_-]{1,64}
 *                "member": int,           0..99; default 0
 *                "set_id": str,           [A-Za-z0-9._-]{1,64}
 *                "type": {"name": str, "provider_type": str,
 *                         "vcpus": int, "ram": bytes, "scratch": bytes,
 *                         "price": num},
 *                "placement": str,        default ""
 *                "image": str,            "host", the name of a directory
 *                                         below images_dir, or its absolute
 *                                         path; default "host"
 *                "tags": {str: str},
 *                "init_command": str,     default "": run by sh as root inside
 *                                         before the first login
 *                "public_key": str,       OpenSSH format; "" = nobody logs in
 *                "images_dir": str,       default "": no images
 *                "shared_dirs": [str],    absolute; shown at the same path
 *                "address_range": str,    IPv4 "127.A.B.C/LEN", LEN 8..24;
 *                                         default "127.64.0.0/10"
 *                "cgroup_parent": str,    default "cdc": VMs are in the group
 *                                         <cgroup_parent>/<set_id>/<id>
 *                "pids": int,             default 8192
 *                "wait_ms": int}          0..60000, default 5000: wait so long
 *                                         for state "running"
 *          out  {"instance": {...}}
 *               Idempotent by (token, member): the same VM again, finished if
 *               an earlier call was killed half-way; its other parameters are
 *               then those of the first call. A token whose VM was destroyed
 *               gives a record with state "gone" and makes nothing.
 *               Refused: "quota" (degraded: there is one already), "config"
 *               (image, address_range, shared_dirs), "invalid" (input).
 *
 * list     in   {"set_id": str, "filter": {str: str}}    both may be absent
 *          out  {"instances": [{...}], "degraded": bool}
 *               Complete. Also removes what killed calls left behind, and VMs
 *               that ended by themselves after telling "gone" once.
 *
 * tag      in   {"id": str, "tags": {str: str}}          replaces all
 *          out  {}                        unknown id: "not-found"
 *
 * destroy  in   {"id": str}
 *          out  {}                        also for an unknown id
 *               Returns when no process, mount, group or file is left.
 *
 * The instance record:
 *
 *          {"id": str,                    "lvm-" + 20 of [a-z2-7]; never used
 *                                         again
 *           "name": str,                  "<token>-NN", NN the member
 *           "create_token": str, "member": int, "set_id": str,
 *           "state": "pending"|"running"|"stopping"|"gone"|"failed",
 *           "error": {...},               state "failed" only
 *           "type": str, "provider_type": str, "placement": str,
 *           "image": str,
 *           "address": str, "port": int, "user": str,
 *           "tags": {str: str},
 *           "created_ms": int, "price": num,
 *           "host_key": str,              "ssh-ed25519 AAAA..."
 *           "degraded": bool,
 *           "reason": str,                why, or what is second best (say, no
 *                                         disk layer: "upper layer on tmpfs")
 *           "limits": [str]}              in force, of "memory","cpu","pids"
 *
 * and the error: {"class": str, "scope": str, "retry_ms": int, "code": str,
 * "text": str}, class and scope by their labels in core/base/err.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

enum {
    WIRE_INPUT_MAX = 1 << 20,
    WIRE_TAGS_MAX = 64,
    WIRE_SHARED_MAX = 16,
    WIRE_ID_SIZE = 25,      /* "lvm-" + 20 + NUL */
    WIRE_WORD_SIZE = 65,    /* token, set id */
    WIRE_NAME_SIZE = 256,   /* other names */
    WIRE_PATH_SIZE = 512,
    WIRE_COMMAND_MAX = 64 * 1024,
    WIRE_KEY_MAX = 16 * 1024
};

struct wire_tag {
    char *key;
    char *value;
};

struct wire_tags {
    struct wire_tag *v; /* at most WIRE_TAGS_MAX, sorted by key */
    size_t n;
};

/* The request of create, and what is kept of it for the VM's life. Strings
 * are owned and never NULL. */
struct wire_spec {
    char *token, *set_id, *placement, *image;
    char *type_name, *provider_type;
    char *init_command, *public_key;
    char *images_dir, *address_range, *cgroup_parent;
    char *shared[WIRE_SHARED_MAX];
    size_t n_shared;
    struct wire_tags tags;
    int64_t member, vcpus, ram, scratch, pids, wait_ms;
    double price;
};

enum wire_state {
    WIRE_PENDING, WIRE_RUNNING, WIRE_STOPPING, WIRE_GONE, WIRE_FAILED
};

const char *wire_state_label(enum wire_state state);

/* Parse and check the request of create. ERR_INVALID or ERR_CONFIG. */
int wire_parse_spec(const char *text, size_t n, struct wire_spec *ret,
                    struct err *err);
/* The same shape, for the state directory. */
void wire_print_spec(const struct wire_spec *spec, struct buf *out);
void wire_spec_fini(struct wire_spec *spec);

/* {"id", "tags", "set_id", "filter"}: whichever the command needs. */
struct wire_query {
    char id[WIRE_ID_SIZE];         /* "" = absent or not the form of an id */
    char set_id[WIRE_WORD_SIZE];   /* "" = any */
    char cgroup_parent[WIRE_PATH_SIZE];
    struct wire_tags tags;         /* of "tags" or "filter" */
    bool has_id;
};

int wire_parse_query(const char *text, size_t n, struct wire_query *ret,
                     struct err *err);
void wire_query_fini(struct wire_query *q);

int wire_parse_tags(const char *text, size_t n, struct wire_tags *ret,
                    struct err *err);
void wire_print_tags(const struct wire_tags *tags, struct buf *out);
void wire_tags_fini(struct wire_tags *tags);
/* Does `tags` hold every one of `filter`, with the same value? */
bool wire_tags_match(const struct wire_tags *tags,
                     const struct wire_tags *filter);

/* {"error": {...}} */
void wire_print_error(const struct err *err, struct buf *out);

#endif
