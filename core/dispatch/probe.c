/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parsers for what comes back from instances.
 *
 * An instance is not trusted to be sane: it may run another version, or the
 * output of a login script may be mixed in. A line that is not understood is
 * never taken for an absence or a presence; only whole, well-formed lines
 * that name a container of our cluster count. (Several clusters on one host
 * once killed each other's containers.)
 *
 * Called by watch.c on the loop. Pure.
 */

#include "core/dispatch/probe.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"

/* One line of --list, without its newline. */
static int list_line(const char *line, size_t n, const char *cluster_id,
                     struct probe_list *l, struct err *err)
{
    struct probe_run run = {0};

    if (n == 6 && memcmp(line, "broken", 6) == 0)
        l->broken = true;
    if (n < TEXT_UUID_LEN || strncmp(line, cluster_id, 5) != 0)
        return 0;
    memcpy(run.uuid, line, TEXT_UUID_LEN);
    line += TEXT_UUID_LEN;
    n -= TEXT_UUID_LEN;
    if (!text_is_uuid(run.uuid, "dz642"))
        return 0;
    if (n == 6 && memcmp(line, " stale", 6) == 0)
        run.stale = true;
    else if (n != 0)
        return 0;
    if (l->n == PROBE_RUNS_MAX)
        return err_set(err, ERR_TOO_LARGE,
                       "more than %d containers are listed", PROBE_RUNS_MAX);
    if ((l->n & (l->n - 1)) == 0) /* a power of two: the block is full */
        l->v = mem_realloc(l->v, l->n ? 2 * l->n : 1, sizeof *l->v);
    l->v[l->n++] = run;
    return 0;
}

int probe_parse_list(const char *out, size_t n, const char *cluster_id,
                     struct probe_list *ret, struct err *err)
{
    struct probe_list l = {0};

    while (n > 0) {
        const char *nl = memchr(out, '\n', n);
        size_t len = nl ? (size_t) (nl - out) : n;
        size_t text = len;

        while (text > 0 && (out[text - 1] == '\r' || out[text - 1] == ' '))
            text--;
        if (list_line(out, text, cluster_id, &l, err) == -1) {
            probe_list_fini(&l);
            return -1;
        }
        out += nl ? len + 1 : len;
        n -= nl ? len + 1 : len;
    }
    *ret = l;
    return 0;
}

void probe_list_fini(struct probe_list *l)
{
    free(l->v);
    *l = (struct probe_list) {0};
}

static enum probe_event_kind kind_of(const char *label)
{
    static const char *const labels[] = {
#define X(name, label) label,
        PROBE_EVENTS(X)
#undef X
    };

    for (int i = 0; i < PROBE_OTHER; i++)
        if (strcmp(labels[i], label) == 0)
            return (enum probe_event_kind) i;
    return PROBE_OTHER;
}

static bool kind_has_uuid(enum probe_event_kind kind)
{
    return kind == PROBE_RUN || kind == PROBE_START || kind == PROBE_EXIT ||
           kind == PROBE_STALE;
}

int probe_parse_event(const char *line, size_t n, const char *cluster_id,
                      struct probe_event *ret, struct err *err)
{
    struct probe_event e = {0};
    const char *label, *uuid = "", *boot = "";
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(line, n, err);

    if (!j || jsn_str(j, "event", &label, err) == -1)
        return -1;
    e.kind = kind_of(label);
    if (kind_has_uuid(e.kind)) {
        if (jsn_str(j, "uuid", &uuid, err) == -1 ||
            jsn_opt_i64(j, "attempt", &e.attempt, err) == -1)
            return -1;
        if (!text_is_uuid(uuid, "dz642"))
            return err_set(err, ERR_INVALID, "no container uuid: %s", uuid);
        text_copy(e.uuid, uuid, sizeof e.uuid);
        if (strncmp(uuid, cluster_id, 5) != 0)
            e.kind = PROBE_OTHER;
    } else if (e.kind == PROBE_HELLO) {
        if (jsn_opt_str(j, "boot", &boot, err) == -1)
            return -1;
        text_copy(e.boot, boot, sizeof e.boot);
    }
    *ret = e;
    return 0;
}
