/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container request's definition: defaults, validation, the container.
 *
 * Checked before anything is stored, off the writer's thread. An Uncommitted
 * request is a draft: what it says must be well formed, but it may lack
 * anything. A Committed one must be able to run: a command, an image, VCPUs
 * and RAM, an output path that is mounted, a priority.
 *
 * `spec_hash` is the digest of everything that decides what a container
 * computes (not: priority, scheduling, cache sizes). Two requests with the
 * same hash may share a container.
 *
 * Pure; any thread.
 */
#include "core/apiserver/spec.h"

#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/io/crypt.h"
#include "core/model/ctr.h"

enum { KEY_TEXT_MAX = 128 << 20, PRIORITY_MAX = 1000 };

void spec_defaults(struct store_row *cr, int64_t max_retries)
{
    static const struct {
        unsigned col;
        const char *text;
    } texts[] = {
        {R_state, "Uncommitted"}, {R_cwd, "."}, {R_environment, "{}"},
        {R_mounts, "{}"}, {R_secret_mounts, "{}"}, {R_properties, "{}"},
        {R_command, "[]"}, {R_runtime_constraints, "{}"},
        {R_scheduling_parameters, "{}"}, {R_output_glob, "[]"},
        {R_output_storage_classes, "[\"default\"]"},
        {R_output_properties, "{}"}, {R_published_ports, "{}"},
    };

    for (size_t i = 0; i < MEM_COUNT(texts); i++)
        if (!store_has(cr, texts[i].col))
            store_set_str(cr, texts[i].col, texts[i].text);
    if (!store_has(cr, R_container_count_max))
        store_set_i64(cr, R_container_count_max, max_retries);
    if (!store_has(cr, R_use_existing))
        store_set_i64(cr, R_use_existing, 1);
    if (!store_has(cr, R_output_ttl))
        store_set_i64(cr, R_output_ttl, 0);
    if (!store_has(cr, R_service))
        store_set_i64(cr, R_service, 0);
    store_set_i64(cr, R_container_count, 0);
    store_set_f64(cr, R_cumulative_cost, 0);
    store_set_i64(cr, R_cancelled, 0);
}

static struct jsn *parse_col(const struct store_row *cr, unsigned col,
                             struct err *err)
{
    const char *text = store_str(cr, col);
    struct jsn *j = jsn_parse(text, strlen(text), err);

    if (!j)
        err_prefix(err, "%s", store_col(STORE_REQUESTS, col)->name);
    return j;
}

static int check_strings(const struct store_row *cr, unsigned col,
                         bool may_be_empty, struct err *err)
{
    const char *name = store_col(STORE_REQUESTS, col)->name;
    CLEANUP(jsn_cleanup) struct jsn *j = parse_col(cr, col, err);
    const char *s;

    if (!j)
        return -1;
    if (jsn_type(j) != JSN_ARRAY)
        return err_set(err, ERR_INVALID, "%s must be an array of strings",
                       name);
    for (size_t i = 0; i < jsn_count(j); i++)
        if (jsn_as_str(jsn_at(j, i), &s, err) < 0)
            return err_prefix(err, "%s", name);
        else if (!may_be_empty && !*s)
            return err_set(err, ERR_INVALID, "%s: an element is empty", name);
    return 0;
}

static int check_environment(const struct store_row *cr, struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = parse_col(cr, R_environment, err);
    struct jsn_iter it = {0};
    const char *s;

    if (!j)
        return -1;
    if (jsn_type(j) != JSN_OBJECT)
        return err_set(err, ERR_INVALID, "environment must be an object");
    while (jsn_next(j, &it)) {
        if (!*it.key || strchr(it.key, '='))
            return err_set(err, ERR_INVALID,
                           "environment: '%.60s' is no variable name",
                           it.key);
        if (jsn_as_str(it.value, &s, err) < 0)
            return err_prefix(err, "environment: %.60s", it.key);
    }
    return 0;
}

/* A path may not be public and secret. */
static int check_overlap(const struct jsn *mounts, const struct jsn *secret,
                         struct err *err)
{
    struct jsn_iter it = {0};

    while (jsn_next(secret, &it))
        if (jsn_has(mounts, it.key))
            return err_set(err, ERR_INVALID,
                           "secret_mounts: %.200s is in mounts too", it.key);
    return 0;
}

static int check_mounts(const struct store_row *cr, bool commit,
                        struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *m = parse_col(cr, R_mounts, err);
    CLEANUP(jsn_cleanup) struct jsn *s = NULL;
    const char *out = store_str(cr, R_output_path), *kind = "";

    if (!m || !(s = parse_col(cr, R_secret_mounts, err)))
        return -1;
    if (spec_mounts(m, out, false, err) < 0)
        return err_prefix(err, "mounts");
    if (spec_mounts(s, out, true, err) < 0)
        return err_prefix(err, "secret_mounts");
    if (check_overlap(m, s, err) < 0)
        return -1;
    if (!commit)
        return 0;
    if (!*out || !jsn_get(m, out))
        return err_set(err, ERR_INVALID,
                       "output_path must be the path of a mount");
    jsn_opt_str(jsn_get(m, out), "kind", &kind, NULL);
    if (strcmp(kind, "tmp") != 0)
        return err_set(err, ERR_INVALID,
                       "output_path must be a mount of kind tmp");
    return 0;
}

static int check_image(const struct store_row *cr, bool commit,
                       struct err *err)
{
    const char *image = store_str(cr, R_container_image);

    if (!*image && !commit)
        return 0;
    if (!text_is_file_name(image, CTR_IMAGE_SIZE - 1))
        return err_set(err, ERR_INVALID,
                       "container_image must be \"host\" or a name of "
                       "[A-Za-z0-9._-]+, not '%.100s'", image);
    return 0;
}

static int check_numbers(const struct store_row *cr, bool commit,
                         struct err *err)
{
    int64_t priority = store_i64(cr, R_priority);

    if (commit && !store_has(cr, R_priority))
        return err_set(err, ERR_INVALID, "priority must not be null");
    if (priority < 0 || priority > PRIORITY_MAX)
        return err_set(err, ERR_INVALID, "priority must be 0 to %d",
                       PRIORITY_MAX);
    if (store_i64(cr, R_container_count_max) < 1)
        return err_set(err, ERR_INVALID,
                       "container_count_max must be positive");
    if (store_i64(cr, R_output_ttl) < 0)
        return err_set(err, ERR_INVALID, "output_ttl must not be negative");
    if (store_i64(cr, R_service) && store_i64(cr, R_use_existing))
        return err_set(err, ERR_INVALID,
                       "use_existing cannot be true if service is true");
    return 0;
}

static int check_command(const struct store_row *cr, bool commit,
                         struct err *err)
{
    if (check_strings(cr, R_command, true, err) < 0)
        return -1;
    if (commit && strcmp(store_str(cr, R_command), "[]") == 0)
        return err_set(err, ERR_INVALID, "command must not be empty");
    return 0;
}

/* Objects that only need to be objects. */
static int check_objects(const struct store_row *cr, struct err *err)
{
    static const unsigned cols[] = {R_properties, R_output_properties,
                                    R_published_ports};

    for (size_t i = 0; i < MEM_COUNT(cols); i++)
        if (store_str(cr, cols[i])[0] != '{')
            return err_set(err, ERR_INVALID, "%s must be an object",
                           store_col(STORE_REQUESTS, cols[i])->name);
    return 0;
}

int spec_check(struct store_row *cr, bool commit, struct err *err)
{
    if (check_command(cr, commit, err) < 0 ||
        check_image(cr, commit, err) < 0 ||
        check_environment(cr, err) < 0 ||
        check_mounts(cr, commit, err) < 0 ||
        check_strings(cr, R_output_glob, false, err) < 0 ||
        check_strings(cr, R_output_storage_classes, false, err) < 0 ||
        check_objects(cr, err) < 0 ||
        check_numbers(cr, commit, err) < 0 ||
        spec_constraints(cr, R_runtime_constraints, commit, err) < 0)
        return -1;
    return spec_scheduling(cr, R_scheduling_parameters, err);
}

/* ---------------------------------------------------------- container -- */

static void copy_col(struct store_row *to, unsigned to_col,
                     const struct store_row *from, unsigned from_col)
{
    if (from->set & STORE_BIT(from_col))
        store_set_value(to, to_col, &from->v[from_col]);
}

static void set_hash(struct store_row *c)
{
    static const unsigned cols[] = {
        C_command, C_cwd, C_environment, C_output_path, C_output_glob,
        C_container_image, C_mounts, C_secret_mounts_md5};
    char hex[2 * CRYPT_SHA256_LEN + 1];
    struct buf key;

    buf_init(&key, KEY_TEXT_MAX);
    for (size_t i = 0; i < MEM_COUNT(cols); i++)
        buf_printf(&key, "%s\n", store_str(c, cols[i]));
    spec_constraints_key(store_str(c, C_runtime_constraints), &key);
    crypt_sha256_hex(key.data, key.len, hex);
    store_set_str(c, C_spec_hash, hex);
    buf_fini(&key);
}

/* What every container starts with. */
static void set_fresh(struct store_row *c)
{
    store_set_str(c, C_state, "Queued");
    store_set_i64(c, C_lock_count, 0);
    store_set_i64(c, C_attempt, 0);
    store_set_f64(c, C_cost, 0);
    store_set_f64(c, C_subrequests_cost, 0);
    store_set_i64(c, C_interactive_session_started, 0);
    store_set_str(c, C_runtime_status, "{}");
}

static bool is_workflow_runner(const struct store_row *cr)
{
    const char *command = store_str(cr, R_command), *first = "";
    CLEANUP(jsn_cleanup) struct jsn *j =
        jsn_parse(command, strlen(command), NULL);

    jsn_as_str(jsn_at(j, 0), &first, NULL);
    return strcmp(first, "arvados-cwl-runner") == 0;
}

void spec_container(const struct store_row *cr, struct store_row *ret)
{
    static const struct {
        unsigned c, r;
    } same[] = {
        {C_container_image, R_container_image}, {C_cwd, R_cwd},
        {C_output_path, R_output_path},
        {C_runtime_constraints, R_runtime_constraints},
        {C_scheduling_parameters, R_scheduling_parameters},
        {C_output_storage_classes, R_output_storage_classes},
        {C_output_properties, R_output_properties},
        {C_output_glob, R_output_glob},
        {C_published_ports, R_published_ports}, {C_command, R_command},
        {C_environment, R_environment}, {C_mounts, R_mounts},
        {C_secret_mounts, R_secret_mounts}, {C_service, R_service},
        {C_runtime_token, R_runtime_token},
    };
    const char *secret = store_str(cr, R_secret_mounts);
    char md5[2 * CRYPT_MD5_LEN + 1];

    set_fresh(ret);
    for (size_t i = 0; i < MEM_COUNT(same); i++)
        copy_col(ret, same[i].c, cr, same[i].r);
    crypt_md5_hex(secret, strlen(secret), md5);
    store_set_str(ret, C_secret_mounts_md5, md5);
    if (is_workflow_runner(cr))
        spec_scheduling_supervisor(ret, C_scheduling_parameters);
    set_hash(ret);
}

void spec_copy(const struct store_row *old, struct store_row *ret)
{
    static const unsigned cols[] = {
        C_container_image, C_cwd, C_output_path, C_runtime_constraints,
        C_output_properties, C_output_glob, C_command, C_environment,
        C_mounts, C_secret_mounts, C_secret_mounts_md5, C_runtime_token,
        C_runtime_user_uuid, C_runtime_auth_scopes, C_spec_hash,
        C_output_storage_classes, C_published_ports, C_service};

    set_fresh(ret);
    for (size_t i = 0; i < MEM_COUNT(cols); i++)
        copy_col(ret, cols[i], old, cols[i]);
}
