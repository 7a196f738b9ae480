/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CONF_CONF_H
#define CORE_CONF_CONF_H

/*
 * The configuration: an Arvados cluster file (YAML, `Clusters: <id>: ...`)
 * read once into one immutable record. Settings: conf_tbl.h.
 *
 * Values are merged over the built-in defaults: null keeps the default, an
 * empty string, 0 or false overrides it. Exactly one cluster; SAMPLE keys are
 * dropped. A wrong value is an error with file, line and key. A key that
 * nobody knows, and one that is accepted but not used, is a warning.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/conf/conf_tbl.h"
#include "core/model/itypes.h"

struct buf;
struct dispatch_cfg;
struct err;

struct conf_list {
    char **v;
    size_t n;
};

struct conf_pair {
    char *key;
    char *value;
};

struct conf_map {
    struct conf_pair *v;
    size_t n;
};

struct conf_backend {
    char *name;
    char *driver;
    char *parameters; /* JSON object as text */
    char *image_id;
    char *ssh_user;   /* "" = the driver's */
    struct conf_list placements;
    int64_t max_instances; /* 0 = no limit of its own */
};

#define CONF_C_STR char *
#define CONF_C_SECRET char *
#define CONF_C_JSON char *
#define CONF_C_BOOL bool
#define CONF_C_INT int64_t
#define CONF_C_FLOAT double
#define CONF_C_DURATION int64_t
#define CONF_C_SIZE int64_t
#define CONF_C_LIST struct conf_list
#define CONF_C_URLS struct conf_list
#define CONF_C_MAP struct conf_map

enum conf_id {
#define X(type, member, ...) CONF_ID_##member,
    CONF_TBL(X)
#undef X
    CONF_ID_COUNT
};

struct conf {
    char *file;
    char cluster_id[6];
#define X(type, member, ...) CONF_C_##type member;
    CONF_TBL(X)
#undef X
    bool set[CONF_ID_COUNT]; /* the file has a value for it */
    struct itypes itypes;
    struct conf_backend *backends; /* at least one for a dispatcher */
    size_t n_backends;
};

/* warn(arg, text) is called for each warning; NULL = ignore them. path "-"
 * is standard input. The file may have at most 4 MiB. */
int conf_load(const char *path, void (*warn)(void *arg, const char *text),
              void *arg, struct conf **ret, struct err *err);
/* The same from memory; name stands for the file in messages. */
int conf_parse(const char *text, size_t n, const char *name,
               void (*warn)(void *arg, const char *text), void *arg,
               struct conf **ret, struct err *err);
void conf_destroy(struct conf *c); /* NULL is fine */

/* -config option, else $ARVADOS_CONFIG, else /etc/arvados/config.yml. */
const char *conf_default_path(void);

/* The token of the dispatcher: APIToken or SystemRootToken; "" = none. */
const char *conf_dispatch_token(const struct conf *c);

/*
 * The record for core/dispatch. It borrows from c (itypes). Not filled:
 * public_key, runner*, ca_bundle, instance_set_id when the setting is empty
 * (it needs a hash of the token): those are the program's.
 * `attempts`: the API server is ours (has the attempt route), which changes
 * three defaults. ERR_CONFIG when something a dispatcher needs is missing or
 * settings contradict each other.
 */
int conf_dispatch_cfg(const struct conf *c, bool attempts,
                      struct dispatch_cfg *ret, struct err *err);

/* One row of the table, for --help and the manual. */
struct conf_row {
    const char *type;
    const char *key;
    const char *def;
    unsigned flags;
    const char *peer;
    const char *help;
};
const struct conf_row *conf_rows(size_t *ret_n);

/* All values in force as YAML-like lines `key: value`, secrets shown as
 * "[secret]". */
int conf_print(const struct conf *c, struct buf *out);

#endif
