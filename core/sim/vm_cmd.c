/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands as an instance understands them.
 *
 * The text is what the dispatcher sent to a remote shell. It is split into
 * words by the POSIX quoting rules that matter (single quotes, backslash), a
 * leading `sudo` is dropped, and the words decide. Anything that is not
 * understood is "command not found", so that a change of the dispatcher's
 * texts shows at once. Pure, but for the answer.
 */

#include "core/sim/vm_impl.h"

#include "core/base/jsn.h"
#include "core/base/text.h"
#include "core/sim/api.h"
#include "core/sim/cloud.h"

enum { WORDS_MAX = 24, WORD_SIZE = 1600 };

struct words {
    unsigned n;
    char v[WORDS_MAX][WORD_SIZE];
};

/* One word from *p into out; false at the end of the text. */
static bool next_word(const char **p, char out[WORD_SIZE])
{
    size_t n = 0;
    bool quoted = false;

    *p += strspn(*p, " \n");
    if (!**p)
        return false;
    for (; **p && (quoted || (**p != ' ' && **p != '\n')); (*p)++) {
        if (**p == '\'') {
            quoted = !quoted;
            continue;
        }
        if (**p == '\\' && !quoted && (*p)[1])
            (*p)++;
        if (n + 1 < WORD_SIZE)
            out[n++] = **p;
    }
    out[n] = '\0';
    return true;
}

static void split(const char *text, struct words *w)
{
    w->n = 0;
    while (w->n < WORDS_MAX && next_word(&text, w->v[w->n]))
        if (w->n > 0 || strcmp(w->v[0], "sudo") != 0)
            w->n++;
}

static bool has_word(const struct words *w, const char *word)
{
    for (unsigned i = 0; i < w->n; i++)
        if (strcmp(w->v[i], word) == 0)
            return true;
    return false;
}

static enum sim_cmd kind_of(const struct sim_net *n, const char *text,
                            const struct words *w)
{
    if (strcmp(text, n->boot_probe ? n->boot_probe : "true") == 0)
        return SIM_CMD_BOOT;
    if (w->n == 2 && strcmp(w->v[0], "md5sum") == 0)
        return SIM_CMD_MD5;
    if (w->n == 2 && strcmp(w->v[0], "cat") == 0 &&
        strstr(w->v[1], "instance-secret"))
        return SIM_CMD_IDENTITY;
    if (w->n == 3 && strcmp(w->v[0], "sh") == 0 && strcmp(w->v[1], "-c") == 0 &&
        strstr(w->v[2], "cat >"))
        return SIM_CMD_DEPLOY;
    if (has_word(w, "--detach") && has_word(w, "--stdin-config"))
        return SIM_CMD_START;
    if (has_word(w, "--list"))
        return SIM_CMD_LIST;
    if (has_word(w, "--watch"))
        return SIM_CMD_WATCH;
    if (w->n == 4 && strcmp(w->v[1], "--kill") == 0)
        return SIM_CMD_KILL;
    return SIM_CMD_OTHER;
}

/* The path that a deploy script moves its file to: after "f=". */
static void deploy_path(const char *script, char *out, size_t size)
{
    const char *p = strstr(script, "f=");
    size_t n = p ? strcspn(p + 2, "; ") : 0;

    if (n >= size)
        n = size - 1;
    if (p)
        memcpy(out, p + 2, n);
    out[n] = '\0';
}

void sim_command_parse(const struct sim_net *n, const char *text,
                       struct sim_command *ret)
{
    struct words *w = MEM_NEW(struct words);

    memset(ret, 0, sizeof *ret);
    split(text, w);
    ret->kind = kind_of(n, text, w);
    switch (ret->kind) {
    case SIM_CMD_MD5:
        text_copy(ret->path, w->v[1], sizeof ret->path);
        break;
    case SIM_CMD_DEPLOY:
        deploy_path(w->v[2], ret->path, sizeof ret->path);
        break;
    case SIM_CMD_START:
    case SIM_CMD_KILL:
        text_copy(ret->uuid, w->v[w->n - 1], sizeof ret->uuid);
        text_copy(ret->path, w->v[0], sizeof ret->path);
        break;
    case SIM_CMD_LIST:
    case SIM_CMD_WATCH:
        text_copy(ret->path, w->v[0], sizeof ret->path);
        break;
    default:
        break;
    }
    free(w);
}

void sim_command_token(const char *input, size_t n, char *out, size_t size)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(input, n, NULL);
    const char *token = "";

    jsn_opt_str(jsn_get(j, "Env"), "ARVADOS_API_TOKEN", &token, NULL);
    text_copy(out, token, size);
}

/* --- answers --------------------------------------------------------- */

static struct sim_file *find_file(const struct sim_machine *m, const char *path)
{
    for (size_t i = 0; i < m->files.n; i++)
        if (strcmp(m->files.v[i].path, path) == 0)
            return &m->files.v[i];
    return NULL;
}

bool sim_machine_has_runner(const struct sim_machine *m, const char *path)
{
    const struct sim_file *f = find_file(m, path);
    const char *image = m->net->runner_command;

    return f ? f->runner : image && strcmp(image, path) == 0;
}

static int answer_md5(const struct sim_machine *m, const char *path,
                      struct buf *out)
{
    const struct sim_file *f = find_file(m, path);

    if (!f)
        return 1;
    buf_printf(out, "%s  %s\n",
               f->runner ? m->net->runner_hash
                         : "00000000000000000000000000000000",
               path);
    return 0;
}

static int answer_deploy(struct sim_machine *m, const char *path,
                         const void *input, size_t n)
{
    struct sim_net *net = m->net;
    struct sim_file *f = find_file(m, path);
    bool right =
        n == net->runner_size && (n == 0 || memcmp(input, net->runner, n) == 0);

    if (f)
        f->runner = right;
    else
        VEC_PUSH(&m->files, (struct sim_file){mem_strdup(path), right});
    return 0;
}

static int answer_list(const struct sim_machine *m, struct buf *out)
{
    if (m->broken)
        buf_puts(out, "broken\n");
    for (size_t i = 0; i < m->procs.n; i++)
        buf_printf(out, "%s%s\n", m->procs.v[i]->uuid,
                   m->procs.v[i]->phase == SIM_PROC_STALE ? " stale" : "");
    return 0;
}

static int answer_identity(const struct sim_machine *m, struct buf *out)
{
    const char *key = m->net->secret_tag;
    const char *secret = key ? sim_vm_tag(m->vm, key) : NULL;

    if (!secret)
        return 1;
    buf_puts(out, m->impostor ? "something else" : secret);
    return 0;
}

void sim_command_answer(struct sim_machine *m, const struct sim_command *cmd,
                        const void *input, size_t n, int *code, struct buf *out)
{
    switch (cmd->kind) {
    case SIM_CMD_BOOT:
        *code = m->net->w->now_us >= m->ready_us ? 0 : 1;
        break;
    case SIM_CMD_MD5:
        *code = answer_md5(m, cmd->path, out);
        break;
    case SIM_CMD_DEPLOY:
        *code = answer_deploy(m, cmd->path, input, n);
        break;
    case SIM_CMD_IDENTITY:
        *code = answer_identity(m, out);
        break;
    case SIM_CMD_LIST:
        *code =
            sim_machine_has_runner(m, cmd->path) ? answer_list(m, out) : 127;
        break;
    default:
        *code = 127;
        break;
    }
}
