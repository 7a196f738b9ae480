/* SPDX-License-Identifier: Apache-2.0 */

/*
 * machines: a driver that lends machines which exist already.
 *
 * An example, and a useful one where there is no cloud. The setting Machines
 * lists them; an instance is a lease on one. A lease is a file in the
 * driver's state folder, named after the machine:
 *
 *     token c2xkq...                the create token it was made for
 *     created 1764489600000
 *     type small
 *     tag ArvadosInstanceSetID<TAB>zzzzz-...
 *
 * What a real driver has to get right is all here, in small:
 *
 * - create is idempotent by token, over restarts too: the token is stored with
 *   the lease, and looked for first;
 * - a lease appears whole or not at all: it is written to a temporary file,
 *   then linked to its name, which fails if somebody else was faster;
 * - ids are never used again: an id is the machine's name and the token;
 * - destroy of something unknown is success;
 * - no retry, no waiting, no caching: one call, one attempt, one outcome.
 *
 * The driver is SERIAL: the host makes one call at a time, and no lock is
 * needed. A lease is given back without cleaning the machine: do that with
 * the dispatcher's InstanceInitCommand, or not at all.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Everything used here is in minor version 1. */
#define CDC_DRIVER_NEEDS_MINOR 1
#include <cdc/driver.h>

enum { LINE = CDC_TAG_KEY_MAX + CDC_TAG_VALUE_MAX + 16, NAME = 64 };

struct cdc_set {
    const struct cdc_host *host;
    const struct cdc_json *machines; /* borrowed until set_close */
    char dir[3072];
};

/* A lease, read from its file. */
struct lease {
    char token[CDC_ID_MAX + 1];
    char type[CDC_ID_MAX + 1];
    int64_t created_ms;
    struct cdc_tag tags[CDC_TAGS_MAX];
    char lines[CDC_TAGS_MAX][LINE]; /* what the tags point into */
    uint32_t n_tags;
};

static int32_t fail(const struct cdc_set *set, struct cdc_op *op,
                    uint32_t error_class, const char *text, const char *what)
{
    return set->host->fail(op, error_class, CDC_SCOPE_NONE, 0, NULL, NULL,
                           "%s: %s", text, what);
}

/* --- machines ------------------------------------------------------------- */

static const char *member(const struct cdc_set *set,
                          const struct cdc_json *machine, const char *key)
{
    return set->host->json_str(set->host->json_get(machine, key));
}

static const struct cdc_json *machine_at(const struct cdc_set *set,
                                         uint32_t i)
{
    return set->host->json_at(set->machines, i);
}

static const char *name_at(const struct cdc_set *set, uint32_t i)
{
    return member(set, machine_at(set, i), "Name");
}

static uint32_t machine_count(const struct cdc_set *set)
{
    return set->host->json_count(set->machines);
}

/* The machine of an id `NAME.TOKEN`; -1 = none of ours. */
static int32_t machine_of(const struct cdc_set *set, const char *id)
{
    size_t n = strcspn(id, ".");

    for (uint32_t i = 0; i < machine_count(set); i++)
        if (strlen(name_at(set, i)) == n &&
            strncmp(name_at(set, i), id, n) == 0)
            return (int32_t)i;
    return -1;
}

static void path_of(const struct cdc_set *set, const char *name, char *out,
                    size_t size)
{
    snprintf(out, size, "%s/%s", set->dir, name);
}

/* --- leases ----------------------------------------------------------------- */

/* One line of a lease; what is unknown is left alone. */
static void read_line(struct lease *l, char *line)
{
    char *tab;

    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "token ", 6) == 0) {
        snprintf(l->token, sizeof l->token, "%s", line + 6);
    } else if (strncmp(line, "type ", 5) == 0) {
        snprintf(l->type, sizeof l->type, "%s", line + 5);
    } else if (strncmp(line, "created ", 8) == 0) {
        l->created_ms = strtoll(line + 8, NULL, 10);
    } else if (strncmp(line, "tag ", 4) == 0 && (tab = strchr(line, '\t')) &&
               l->n_tags < CDC_TAGS_MAX) {
        *tab = '\0';
        l->tags[l->n_tags].key = line + 4;
        l->tags[l->n_tags++].value = tab + 1;
    }
}

/* 1 = read; 0 = the machine is free; -1 = cannot be told, fail() called. */
static int read_lease(const struct cdc_set *set, struct cdc_op *op,
                      const char *name, struct lease *l)
{
    char path[sizeof set->dir + NAME], other[LINE];
    FILE *f;

    memset(l, 0, sizeof *l);
    path_of(set, name, path, sizeof path);
    if (!(f = fopen(path, "re"))) {
        if (errno == ENOENT)
            return 0;
        return fail(set, op, CDC_CLASS_TRANSIENT, path, strerror(errno));
    }
    for (;;) {
        char *line = l->n_tags < CDC_TAGS_MAX ? l->lines[l->n_tags] : other;

        if (!fgets(line, LINE, f))
            break;
        read_line(l, line);
    }
    fclose(f);
    return 1;
}

static int print_lease(FILE *f, const struct lease *l)
{
    fprintf(f, "token %s\ntype %s\ncreated %" PRId64 "\n", l->token, l->type,
            l->created_ms);
    for (uint32_t i = 0; i < l->n_tags; i++)
        fprintf(f, "tag %s\t%s\n", l->tags[i].key, l->tags[i].value);
    return fflush(f) == 0 && fsync(fileno(f)) == 0 ? 0 : -1;
}

/* Write it beside its place, then put it there: by link(), which never
 * replaces, or by rename(), which does. -1 with errno set. */
static int write_lease(const struct cdc_set *set, const char *name,
                       const struct lease *l, int replace)
{
    char path[sizeof set->dir + NAME], temp[sizeof set->dir + NAME + 8];
    int rc, saved;
    FILE *f;

    path_of(set, name, path, sizeof path);
    snprintf(temp, sizeof temp, "%s.new", path);
    if (!(f = fopen(temp, "we")))
        return -1;
    rc = print_lease(f, l);
    if (fclose(f) != 0 || rc)
        return -1;
    rc = replace ? rename(temp, path) : link(temp, path);
    saved = errno;
    unlink(temp);
    errno = saved;
    return rc;
}

static int32_t emit(const struct cdc_set *set, struct cdc_op *op, uint32_t at,
                    const struct lease *l)
{
    const struct cdc_json *machine = machine_at(set, at);
    struct cdc_instance i;
    char id[NAME + CDC_ID_MAX];
    int64_t port = 0;

    snprintf(id, sizeof id, "%.63s.%.190s", name_at(set, at), l->token);
    set->host->json_i64(set->host->json_get(machine, "Port"), &port);
    memset(&i, 0, sizeof i);
    i.size = sizeof i;
    i.state = CDC_STATE_RUNNING;
    i.id = id;
    i.name = name_at(set, at);
    i.create_token = l->token;
    i.port = (int32_t)port;
    i.provider_type = l->type;
    i.address = member(set, machine, "Address");
    i.user = member(set, machine, "User");
    i.tags = l->tags;
    i.n_tags = l->n_tags;
    i.created_ms = l->created_ms;
    i.price = -1;
    i.host_key = member(set, machine, "HostKey");
    return set->host->emit_instance(op, &i);
}

/* --- callbacks -------------------------------------------------------------- */

/* 0, or what is wrong with the setting. */
static const char *check_machines(const struct cdc_set *set)
{
    for (uint32_t i = 0; i < machine_count(set); i++) {
        const char *name = name_at(set, i);

        if (!name || !name[0] || strlen(name) >= NAME - 8 ||
            strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") !=
                strlen(name))
            return "each needs a Name of [a-z0-9_-], at most 55 characters";
        if (!member(set, machine_at(set, i), "Address"))
            return "each needs an Address";
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(name, name_at(set, k)) == 0)
                return "two have the same Name";
    }
    return NULL;
}

static int32_t set_open(const struct cdc_host *host, struct cdc_op *op,
                        const struct cdc_set_config *config,
                        struct cdc_set **ret_set)
{
    struct cdc_set *set = calloc(1, sizeof *set);
    const char *wrong;

    if (!set)
        return host->fail(op, CDC_CLASS_TRANSIENT, CDC_SCOPE_NONE, 0, NULL,
                          NULL, "out of memory");
    set->host = host;
    set->machines = host->json_get(config->params, "Machines");
    snprintf(set->dir, sizeof set->dir, "%s", config->state_dir);
    wrong = set->dir[0] ? check_machines(set) : "no state folder";
    if (wrong) {
        fail(set, op, CDC_CLASS_CONFIG, "Machines", wrong);
        free(set);
        return -1;
    }
    *ret_set = set;
    return 0;
}

static void set_close(struct cdc_set *set)
{
    free(set);
}

/* 1 = there is a lease for the token, and it was emitted. */
static int emit_by_token(const struct cdc_set *set, struct cdc_op *op,
                         const char *token)
{
    struct lease l;
    int rc;

    for (uint32_t i = 0; i < machine_count(set); i++) {
        rc = read_lease(set, op, name_at(set, i), &l);
        if (rc < 0)
            return -1;
        if (rc && strcmp(l.token, token) == 0) {
            emit(set, op, i, &l);
            return 1;
        }
    }
    return 0;
}

static int32_t take_free_one(const struct cdc_set *set, struct cdc_op *op,
                             const struct lease *l)
{
    for (uint32_t i = 0; i < machine_count(set); i++) {
        if (write_lease(set, name_at(set, i), l, 0) == 0)
            return emit(set, op, i, l);
        if (errno != EEXIST)
            return fail(set, op, CDC_CLASS_TRANSIENT, name_at(set, i),
                        strerror(errno));
    }
    return fail(set, op, CDC_CLASS_CAPACITY, "Machines", "all are in use");
}

static int32_t create(struct cdc_op *op, struct cdc_set *set,
                      const struct cdc_create_spec *spec)
{
    int rc = emit_by_token(set, op, spec->token);
    struct lease l;

    if (rc)
        return rc > 0 ? 0 : -1;
    memset(&l, 0, sizeof l);
    snprintf(l.token, sizeof l.token, "%s", spec->token);
    snprintf(l.type, sizeof l.type, "%s", spec->provider_type);
    l.created_ms = set->host->now_ms();
    l.n_tags = spec->n_tags < CDC_TAGS_MAX ? spec->n_tags : CDC_TAGS_MAX;
    for (uint32_t i = 0; i < l.n_tags; i++)
        l.tags[i] = spec->tags[i];
    return take_free_one(set, op, &l);
}

/* The host filters again, so that everything may be emitted. */
static int32_t list(struct cdc_op *op, struct cdc_set *set,
                    const struct cdc_tag *filter, uint32_t n_filter)
{
    struct lease l;
    int rc;

    (void)filter;
    (void)n_filter;
    for (uint32_t i = 0; i < machine_count(set); i++) {
        rc = read_lease(set, op, name_at(set, i), &l);
        if (rc < 0)
            return -1; /* rather no list than one that lacks something */
        if (rc)
            emit(set, op, i, &l);
    }
    return 0;
}

/* 1 = *l is the lease with this id, 0 = there is none, -1 = failed. */
static int lease_of(const struct cdc_set *set, struct cdc_op *op,
                    const char *id, int32_t *at, struct lease *l)
{
    int rc;

    if ((*at = machine_of(set, id)) < 0)
        return 0;
    rc = read_lease(set, op, name_at(set, (uint32_t)*at), l);
    if (rc < 1)
        return rc;
    return strcmp(id + strcspn(id, "."), "") != 0 &&
           strcmp(id + strcspn(id, ".") + 1, l->token) == 0;
}

static int32_t set_tags(struct cdc_op *op, struct cdc_set *set,
                        const char *id, const struct cdc_tag *tags,
                        uint32_t n_tags)
{
    struct lease l;
    int32_t at;
    int rc = lease_of(set, op, id, &at, &l);

    if (rc < 0)
        return -1;
    if (rc == 0)
        return fail(set, op, CDC_CLASS_NOT_FOUND, "no such instance", id);
    l.n_tags = n_tags < CDC_TAGS_MAX ? n_tags : CDC_TAGS_MAX;
    for (uint32_t i = 0; i < l.n_tags; i++)
        l.tags[i] = tags[i];
    if (write_lease(set, name_at(set, (uint32_t)at), &l, 1))
        return fail(set, op, CDC_CLASS_TRANSIENT, id, strerror(errno));
    return 0;
}

static int32_t destroy(struct cdc_op *op, struct cdc_set *set, const char *id)
{
    char path[sizeof set->dir + NAME];
    struct lease l;
    int32_t at;
    int rc = lease_of(set, op, id, &at, &l);

    if (rc <= 0)
        return rc;
    path_of(set, name_at(set, (uint32_t)at), path, sizeof path);
    if (unlink(path) && errno != ENOENT)
        return fail(set, op, CDC_CLASS_TRANSIENT, path, strerror(errno));
    return 0;
}

static int32_t describe(struct cdc_op *op, struct cdc_set *set)
{
    char n[16];

    snprintf(n, sizeof n, "%u", machine_count(set));
    set->host->emit_fact(op, "machines", n);
    return 0;
}

const struct cdc_driver cdc_driver_entry = {
    CDC_DRIVER_PREFIX,
    CDC_THREADS_SERIAL,
    CDC_CAP_SET_TAGS,
    0,
    "machines",
    "1.0",
    "lends machines that exist already",
    NULL,
    "Machines\tlist\trequired\t{Name, Address, Port, User, HostKey} each\n",
    set_open,
    set_close,
    create,
    list,
    set_tags,
    destroy,
    NULL,
    NULL,
    NULL,
    describe,
};
