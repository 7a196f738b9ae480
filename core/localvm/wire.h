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
 * probe    in   {}
 *          out  {"degraded": bool, "reason": str,
 *                "cgroup": {"version": 0|1|2, "limits": ["memory","cpu","pids"]}}
 *               degraded: VMs cannot be made here (reason says what was
 *               refused); create then gives one VM of plain processes.
 *               limits: those that can be put in force here.
 *
 * create   in   {"token": str,            [A-Za-z0-9_-]{1,60}
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
struct jsn;
struct jsn_w;

enum {
    WIRE_INPUT_MAX = 1 << 20,
    WIRE_TAGS_MAX = 64,
    WIRE_TAG_KEY_MAX = 127,
    WIRE_TAG_VALUE_MAX = 511,
    WIRE_SHARED_MAX = 16,
    WIRE_ID_SIZE = 25,       /* "lvm-" + 20 + NUL */
    WIRE_TOKEN_MAX = 60,     /* the name is the VM's host name too */
    WIRE_SET_MAX = 64,
    WIRE_NAME_MAX = 255,     /* of types, placements, images */
    WIRE_PATH_MAX = 255,
    WIRE_COMMAND_MAX = 64 << 10,
    WIRE_KEY_MAX = 16 << 10,
    WIRE_MEMBER_MAX = 99,
    WIRE_WAIT_MAX = 60000
};

#define WIRE_CGROUP_PARENT "cdc"

struct wire_tag {
    char *key;
    char *value;
};

struct wire_tags {
    struct wire_tag *v; /* at most WIRE_TAGS_MAX */
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

/* Check and take over the request of create. ERR_INVALID names the member.
 * On failure nothing is left to free. */
int wire_read_spec(const struct jsn *j, struct wire_spec *ret,
                   struct err *err);
/* The same shape under a key: for the state directory. */
void wire_write_spec(struct jsn_w *w, const char *key,
                     const struct wire_spec *spec);
void wire_spec_fini(struct wire_spec *spec);

/* The object {str: str} at key; absent = none. */
int wire_read_tags(const struct jsn *j, const char *key,
                   struct wire_tags *ret, struct err *err);
void wire_write_tags(struct jsn_w *w, const char *key,
                     const struct wire_tags *tags);
void wire_tags_fini(struct wire_tags *tags);
/* Does `tags` hold every one of `filter`, with the same value? */
bool wire_tags_match(const struct wire_tags *tags,
                     const struct wire_tags *filter);

/* The form of an id; says nothing about its existence. */
bool wire_is_id(const char *s);

/* An error object under a key. */
void wire_write_error(struct jsn_w *w, const char *key,
                      const struct err *err);
/* CGROUP_LIMIT_* bits as an array of names, and back. */
void wire_write_limits(struct jsn_w *w, const char *key, uint32_t limits);
uint32_t wire_read_limits(const struct jsn *j, const char *key);

#endif
