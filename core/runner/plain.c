/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts without mounting, for machines where namespaces are refused: links.
 *
 * It is second best and says so. Two containers that want the same path get
 * the first one's link refused to the second; output is collected from the
 * folder itself, never through a link.
 */
#include "core/runner/plain.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/runner/job.h"
#include "core/runner/logs.h"
#include "core/runner/stage.h"

static int expose(struct stage *s, const struct stage_mount *m, size_t *n,
                  struct err *err)
{
    if (symlink(m->path, m->target) == 0) {
        s->links[(*n)++] = mem_strdup(m->target);
        return 0;
    }
    if (m->file)
        return err_set(err, ERR_UNSUPPORTED,
                       "mounts: %s: cannot be made on a machine without "
                       "isolation: %s", m->target, strerror(errno));
    logs_printf(s->logs,
                "no isolation: %s is not at its path but in %s (%s)",
                m->target, m->path, strerror(errno));
    return 0;
}

int plain_expose(struct stage *s, const struct job *job, char **ret_cwd,
                 struct err *err)
{
    size_t n = 0;

    s->links = mem_calloc(s->n_mounts + 1, sizeof *s->links);
    for (size_t i = 0; i < s->n_mounts; i++) {
        const struct stage_mount *m = &s->mounts[i];

        if (expose(s, m, &n, err) < 0)
            return -1;
        if (strcmp(m->target, job->output_path) == 0 &&
            job_path_within(job->cwd, m->target))
            *ret_cwd = mem_printf("%s%s", m->path,
                                  job->cwd + strlen(m->target));
    }
    return 0;
}
