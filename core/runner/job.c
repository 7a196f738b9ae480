/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the API record to a job.
 *
 * Two kinds of trouble are told apart. Text that is no container's record is
 * the server's fault and ends the runner without a word to the server. A
 * record that asks for what this runner does not have (a GPU, published ports,
 * a mount kind), or for nothing that makes sense, ends the container as
 * Cancelled, with the reason. Everything else is kept as it stands.
 *
 * Pure; the mounts are in job_mounts.c.
 */
#include "core/runner/job.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/secret.h"

static void free_list(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

void job_fini(struct job *j)
{
    free_list(j->argv);
    free_list(j->env);
    free_list(j->globs);
    free(j->cwd);
    free(j->image);
    free(j->output_path);
    for (size_t i = 0; i < j->n_mounts; i++) {
        free(j->mounts[i].target);
        if (j->mounts[i].secret)
            secret_free(j->mounts[i].content);
        else
            free(j->mounts[i].content);
        free(j->mounts[i].path);
    }
    free(j->mounts);
    *j = (struct job){0};
}

static int unsupported(struct err *err, const char *what)
{
    return err_set(err, ERR_UNSUPPORTED, "%s: not supported by this runner",
                   what);
}

static int parse_strings(const struct jsn *list, size_t max, char ***ret,
                         struct err *err)
{
    size_t n = jsn_count(list);

    if (list && jsn_type(list) != JSN_ARRAY)
        return err_set(err, ERR_INVALID, "not an array");
    if (n > max)
        return err_set(err, ERR_UNSUPPORTED, "more than %zu elements", max);
    *ret = mem_calloc(n + 1, sizeof **ret);
    for (size_t i = 0; i < n; i++) {
        const char *s;

        if (jsn_as_str(jsn_at(list, i), &s, err) < 0)
            return err_prefix(err, "[%zu]", i);
        (*ret)[i] = mem_strdup(s);
    }
    return 0;
}

static int parse_env(const struct jsn *env, struct job *j, struct err *err)
{
    struct jsn_iter it = {0};

    if (jsn_count(env) > JOB_ENV_MAX)
        return err_set(err, ERR_UNSUPPORTED, "environment: too many");
    j->env = mem_calloc(jsn_count(env) + 1, sizeof *j->env);
    while (jsn_next(env, &it)) {
        const char *value;

        if (jsn_as_str(it.value, &value, err) < 0)
            return err_prefix(err, "environment: %s", it.key);
        if (it.key[0] == '\0' || strchr(it.key, '='))
            return err_set(err, ERR_UNSUPPORTED,
                           "environment: \"%s\" is not a name", it.key);
        j->env[j->n_env++] = mem_printf("%s=%s", it.key, value);
    }
    return 0;
}

/* ".", "" = the image's default, which is "/" for a folder. */
static int parse_cwd(const char *cwd, struct job *j, struct err *err)
{
    if (!cwd || *cwd == '\0' || strcmp(cwd, ".") == 0)
        cwd = "/";
    if (*cwd != '/' || strlen(cwd) >= JOB_PATH_MAX)
        return err_set(err, ERR_UNSUPPORTED,
                       "cwd: \"%s\" is not an absolute path", cwd);
    j->cwd = mem_strdup(cwd);
    return 0;
}

static int parse_image(const char *image, struct job *j, struct err *err)
{
    if (!text_is_file_name(image, 127))
        return err_set(err, ERR_UNSUPPORTED,
                       "container_image: \"%s\" is neither \"host\" nor the "
                       "name of an image folder", image);
    j->image = mem_strdup(image);
    return 0;
}

static int refuse_gpus(const struct jsn *rc, struct err *err)
{
    int64_t gpus = 0, cuda = 0;

    if (jsn_opt_i64(jsn_get(rc, "gpu"), "device_count", &gpus, err) < 0 ||
        jsn_opt_i64(jsn_get(rc, "cuda"), "device_count", &cuda, err) < 0)
        return err_prefix(err, "runtime_constraints");
    return gpus > 0 || cuda > 0 ? unsupported(err, "GPUs") : 0;
}

static int parse_needs(const struct jsn *record, struct job *j,
                       struct err *err)
{
    const struct jsn *rc = jsn_get(record, "runtime_constraints");
    const struct jsn *sp = jsn_get(record, "scheduling_parameters");

    j->vcpus = 1;
    if (jsn_opt_i64(rc, "vcpus", &j->vcpus, err) < 0 ||
        jsn_opt_i64(rc, "ram", &j->ram, err) < 0 ||
        jsn_opt_bool(rc, "API", &j->api, err) < 0)
        return err_prefix(err, "runtime_constraints");
    if (jsn_opt_i64(sp, "max_run_time", &j->max_run_time_s, err) < 0)
        return err_prefix(err, "scheduling_parameters");
    if (j->vcpus < 1 || j->vcpus > 65536 || j->ram < 0 ||
        j->max_run_time_s < 0 || j->max_run_time_s > INT32_MAX)
        return err_set(err, ERR_UNSUPPORTED,
                       "runtime_constraints: a number is out of range");
    return refuse_gpus(rc, err);
}

static int refuse_services(const struct jsn *record, struct err *err)
{
    bool service = false;

    if (jsn_opt_bool(record, "service", &service, err) < 0)
        return -1;
    if (service)
        return unsupported(err, "service");
    if (jsn_count(jsn_get(record, "published_ports")) > 0)
        return unsupported(err, "published_ports");
    return 0;
}

static int parse_head(const struct jsn *record, struct job *j,
                      struct err *err)
{
    const char *uuid = NULL, *state = NULL;

    if (jsn_str(record, "uuid", &uuid, err) < 0 ||
        jsn_str(record, "state", &state, err) < 0 ||
        jsn_opt_i64(record, "attempt", &j->attempt, err) < 0)
        return -1;
    text_copy(j->uuid, uuid, sizeof j->uuid);
    text_copy(j->state, state, sizeof j->state);
    return 0;
}

static int parse_record(const struct jsn *record, struct job *j,
                        struct err *err)
{
    const char *cwd = NULL, *image = NULL, *output = NULL;

    if (parse_head(record, j, err) < 0 ||
        jsn_opt_str(record, "cwd", &cwd, err) < 0 ||
        jsn_str(record, "container_image", &image, err) < 0 ||
        jsn_str(record, "output_path", &output, err) < 0)
        return -1;
    j->output_path = mem_strdup(output);
    if (parse_strings(jsn_get(record, "command"), JOB_ARGS_MAX, &j->argv,
                      err) < 0)
        return err_prefix(err, "command");
    if (!j->argv[0])
        return err_set(err, ERR_UNSUPPORTED, "command: empty");
    if (parse_strings(jsn_get(record, "output_glob"), JOB_GLOBS_MAX,
                      &j->globs, err) < 0)
        return err_prefix(err, "output_glob");
    if (parse_env(jsn_get(record, "environment"), j, err) < 0 ||
        parse_cwd(cwd, j, err) < 0 || parse_image(image, j, err) < 0 ||
        parse_needs(record, j, err) < 0 || refuse_services(record, err) < 0)
        return -1;
    return job_parse_mounts(jsn_get(record, "mounts"), j, err);
}

int job_parse(const char *text, size_t n, struct job *ret, struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *record = jsn_parse(text, n, err);
    struct job j = {0};

    if (!record)
        return -1;
    if (parse_record(record, &j, err) < 0) {
        /* Uuid and state are known as soon as the record is one. */
        *ret = (struct job){0};
        text_copy(ret->uuid, j.uuid, sizeof ret->uuid);
        text_copy(ret->state, j.state, sizeof ret->state);
        ret->attempt = j.attempt;
        if (err && j.state[0])
            err->class = ERR_UNSUPPORTED;
        job_fini(&j);
        return -1;
    }
    *ret = j;
    return 0;
}

const struct job_mount *job_mount(const struct job *j, const char *target)
{
    for (size_t i = 0; i < j->n_mounts; i++) {
        if (strcmp(j->mounts[i].target, target) == 0)
            return &j->mounts[i];
    }
    return NULL;
}

bool job_path_within(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 &&
           (path[n] == '\0' || path[n] == '/' || (n > 0 && dir[n - 1] == '/'));
}
