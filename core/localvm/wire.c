/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.c: what cdc-local-vm reads and writes, as plain records.
 *
 * The input comes from a driver, that is from another program: every member
 * has a type, a form and a maximum, and what becomes part of a path, a host
 * name, a line of a configuration file or a cgroup's name is restricted to
 * what is harmless there. The same functions read back what was written into
 * the state directory, so a damaged file there is refused in the same way.
 *
 * Pure but for memory. Never prints, never touches the system.
 */

#include "core/localvm/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/isolate/cgroup.h"

static const char *const states[] = {"pending", "running", "stopping", "gone",
                                     "failed"};

const char *wire_state_label(enum wire_state state)
{
    return states[state];
}

/* --- forms --------------------------------------------------------------- */

static bool is_word(const char *s, const char *also, size_t max)
{
    size_t n = strlen(s), i;

    for (i = 0; i < n; i++)
        if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
              (s[i] >= '0' && s[i] <= '9') || strchr(also, s[i])))
            return false;
    return n > 0 && n <= max;
}

static bool is_token(const char *s)
{
    return is_word(s, "_-", WIRE_TOKEN_MAX);
}

static bool is_set_id(const char *s)
{
    return is_word(s, "._-", WIRE_SET_MAX) && s[0] != '.';
}

/* One line of printable text. */
static bool is_line(const char *s, size_t max)
{
    const char *p;

    for (p = s; *p; p++)
        if ((unsigned char) *p < 0x20 || *p == 0x7f)
            return false;
    return strlen(s) <= max;
}

static bool is_name(const char *s)
{
    return is_line(s, WIRE_NAME_MAX);
}

/* Absolute, without "..", and without what ends a quoted word. */
static bool is_path(const char *s)
{
    const char *up = s;

    while ((up = strstr(up, "/.."))) {
        up += 3;
        if (*up == '/' || *up == '\0')
            return false;
    }
    return s[0] == '/' && is_line(s, WIRE_PATH_MAX) && !strchr(s, '"');
}

static bool is_path_or_empty(const char *s)
{
    return !*s || is_path(s);
}

static bool is_group(const char *s)
{
    struct cgroup none = {0}, cg;

    return is_line(s, 128) && cgroup_child(&none, s, &cg, NULL) == 0;
}

static bool is_command(const char *s)
{
    return strlen(s) <= WIRE_COMMAND_MAX;
}

static bool is_key(const char *s)
{
    return is_line(s, WIRE_KEY_MAX);
}

bool wire_is_id(const char *s)
{
    return strncmp(s, "lvm-", 4) == 0 && strlen(s) == WIRE_ID_SIZE - 1 &&
           strspn(s + 4, "abcdefghijklmnopqrstuvwxyz234567") ==
               WIRE_ID_SIZE - 5;
}

/* --- reading a spec ------------------------------------------------------ */

enum group { TOP, TYPE };

struct text_member {
    const char *key;
    enum group group;
    size_t offset;
    const char *fallback; /* NULL = required */
    bool (*valid)(const char *s);
};

#define AT(member) offsetof(struct wire_spec, member)

static const struct text_member texts[] = {
    {"token", TOP, AT(token), NULL, is_token},
    {"set_id", TOP, AT(set_id), NULL, is_set_id},
    {"placement", TOP, AT(placement), "", is_name},
    {"image", TOP, AT(image), "host", is_name},
    {"init_command", TOP, AT(init_command), "", is_command},
    {"public_key", TOP, AT(public_key), "", is_key},
    {"images_dir", TOP, AT(images_dir), "", is_path_or_empty},
    {"address_range", TOP, AT(address_range), "127.64.0.0/10", is_name},
    {"cgroup_parent", TOP, AT(cgroup_parent), WIRE_CGROUP_PARENT, is_group},
    {"name", TYPE, AT(type_name), NULL, is_name},
    {"provider_type", TYPE, AT(provider_type), "", is_name},
};

struct number_member {
    const char *key;
    enum group group;
    size_t offset;
    int64_t min, max, fallback; /* fallback < 0 = required */
};

static const struct number_member numbers[] = {
    {"member", TOP, AT(member), 0, WIRE_MEMBER_MAX, 0},
    {"pids", TOP, AT(pids), 16, 1 << 22, 8192},
    {"wait_ms", TOP, AT(wait_ms), 0, WIRE_WAIT_MAX, 5000},
    {"vcpus", TYPE, AT(vcpus), 1, 65536, -1},
    {"ram", TYPE, AT(ram), 1 << 20, INT64_MAX >> 8, -1},
    {"scratch", TYPE, AT(scratch), 0, INT64_MAX >> 8, 0},
};

static char **text_slot(struct wire_spec *spec, const struct text_member *m)
{
    return (char **) (void *) ((char *) spec + m->offset);
}

static int64_t *number_slot(struct wire_spec *spec,
                            const struct number_member *m)
{
    return (int64_t *) (void *) ((char *) spec + m->offset);
}

static int read_text(const struct jsn *j, const struct text_member *m,
                     struct wire_spec *spec, struct err *err)
{
    const char *s = m->fallback;

    if (s ? jsn_opt_str(j, m->key, &s, err) < 0
          : jsn_str(j, m->key, &s, err) < 0)
        return -1;
    if (!m->valid(s))
        return err_set(err, ERR_INVALID, "%s: not allowed: %.80s", m->key, s);
    mem_set_str(text_slot(spec, m), s);
    return 0;
}

static int read_number(const struct jsn *j, const struct number_member *m,
                       struct wire_spec *spec, struct err *err)
{
    int64_t v = m->fallback;

    if (v >= 0 ? jsn_opt_i64(j, m->key, &v, err) < 0
               : jsn_i64(j, m->key, &v, err) < 0)
        return -1;
    if (v < m->min || v > m->max)
        return err_set(err, ERR_INVALID, "%s: out of range", m->key);
    *number_slot(spec, m) = v;
    return 0;
}

static int read_shared(const struct jsn *j, struct wire_spec *spec,
                       struct err *err)
{
    const struct jsn *list = jsn_get(j, "shared_dirs");
    const char *s;
    size_t i;

    if (list && jsn_type(list) != JSN_ARRAY)
        return err_set(err, ERR_INVALID, "shared_dirs: not an array");
    if (jsn_count(list) > WIRE_SHARED_MAX)
        return err_set(err, ERR_TOO_LARGE, "shared_dirs: more than %d",
                       WIRE_SHARED_MAX);
    for (i = 0; i < jsn_count(list); i++) {
        if (jsn_as_str(jsn_at(list, i), &s, err) < 0)
            return -1;
        if (!is_path(s))
            return err_set(err, ERR_INVALID, "shared_dirs: %.80s", s);
        spec->shared[spec->n_shared++] = mem_strdup(s);
    }
    return 0;
}

static int read_all(const struct jsn *j, struct wire_spec *spec,
                    struct err *err)
{
    struct jsn *type;
    size_t i;

    if (jsn_obj(j, "type", &type, err) < 0)
        return -1;
    for (i = 0; i < MEM_COUNT(texts); i++)
        if (read_text(texts[i].group == TYPE ? type : j, &texts[i], spec,
                      err) < 0)
            return -1;
    for (i = 0; i < MEM_COUNT(numbers); i++)
        if (read_number(numbers[i].group == TYPE ? type : j, &numbers[i],
                        spec, err) < 0)
            return -1;
    spec->price = -1;
    if (jsn_opt_f64(type, "price", &spec->price, err) < 0 ||
        read_shared(j, spec, err) < 0)
        return -1;
    return wire_read_tags(j, "tags", &spec->tags, err);
}

int wire_read_spec(const struct jsn *j, struct wire_spec *ret,
                   struct err *err)
{
    struct wire_spec spec = {0};

    if (jsn_type(j) != JSN_OBJECT)
        return err_set(err, ERR_INVALID, "the input is not an object");
    if (read_all(j, &spec, err) < 0) {
        wire_spec_fini(&spec);
        return -1;
    }
    *ret = spec;
    return 0;
}

void wire_spec_fini(struct wire_spec *spec)
{
    size_t i;

    for (i = 0; i < MEM_COUNT(texts); i++)
        free(*text_slot(spec, &texts[i]));
    for (i = 0; i < spec->n_shared; i++)
        free(spec->shared[i]);
    wire_tags_fini(&spec->tags);
    memset(spec, 0, sizeof *spec);
}

/* --- writing it ---------------------------------------------------------- */

static void write_group(struct jsn_w *w, const struct wire_spec *spec,
                        enum group group)
{
    /* The slots are only read. */
    struct wire_spec *s = (struct wire_spec *) (uintptr_t) spec;
    size_t i;

    for (i = 0; i < MEM_COUNT(texts); i++)
        if (texts[i].group == group)
            jsn_w_str(w, texts[i].key, *text_slot(s, &texts[i]));
    for (i = 0; i < MEM_COUNT(numbers); i++)
        if (numbers[i].group == group)
            jsn_w_i64(w, numbers[i].key, *number_slot(s, &numbers[i]));
}

void wire_write_spec(struct jsn_w *w, const char *key,
                     const struct wire_spec *spec)
{
    size_t i;

    jsn_w_obj(w, key);
    write_group(w, spec, TOP);
    jsn_w_obj(w, "type");
    write_group(w, spec, TYPE);
    jsn_w_f64(w, "price", spec->price);
    jsn_w_end_obj(w);
    jsn_w_arr(w, "shared_dirs");
    for (i = 0; i < spec->n_shared; i++)
        jsn_w_str(w, NULL, spec->shared[i]);
    jsn_w_end_arr(w);
    wire_write_tags(w, "tags", &spec->tags);
    jsn_w_end_obj(w);
}

/* --- tags ---------------------------------------------------------------- */

static int read_tag(const char *key, const struct jsn *value,
                    struct wire_tags *tags, struct err *err)
{
    const char *s;

    if (!value || jsn_as_str(value, &s, err) < 0)
        return err_set(err, ERR_INVALID, "tag %.80s: not a string", key);
    if (!*key || strlen(key) > WIRE_TAG_KEY_MAX ||
        strlen(s) > WIRE_TAG_VALUE_MAX)
        return err_set(err, ERR_TOO_LARGE, "tag %.80s: empty or too long",
                       key);
    tags->v[tags->n].key = mem_strdup(key);
    tags->v[tags->n++].value = mem_strdup(s);
    return 0;
}

int wire_read_tags(const struct jsn *j, const char *key,
                   struct wire_tags *ret, struct err *err)
{
    const struct jsn *obj = jsn_get(j, key);
    struct jsn_iter it = {0};
    struct wire_tags tags = {0};

    if (obj && jsn_type(obj) != JSN_OBJECT)
        return err_set(err, ERR_INVALID, "%s: not an object", key);
    if (jsn_count(obj) > WIRE_TAGS_MAX)
        return err_set(err, ERR_TOO_LARGE, "%s: more than %d", key,
                       WIRE_TAGS_MAX);
    tags.v = mem_calloc(jsn_count(obj), sizeof *tags.v);
    while (obj && jsn_next(obj, &it))
        if (read_tag(it.key, it.value, &tags, err) < 0) {
            wire_tags_fini(&tags);
            return -1;
        }
    *ret = tags;
    return 0;
}

void wire_write_tags(struct jsn_w *w, const char *key,
                     const struct wire_tags *tags)
{
    size_t i;

    jsn_w_obj(w, key);
    for (i = 0; i < tags->n; i++)
        jsn_w_str(w, tags->v[i].key, tags->v[i].value);
    jsn_w_end_obj(w);
}

void wire_tags_fini(struct wire_tags *tags)
{
    size_t i;

    for (i = 0; i < tags->n; i++) {
        free(tags->v[i].key);
        free(tags->v[i].value);
    }
    free(tags->v);
    tags->v = NULL;
    tags->n = 0;
}

static bool has_tag(const struct wire_tags *tags, const struct wire_tag *want)
{
    size_t i;

    for (i = 0; i < tags->n; i++)
        if (strcmp(tags->v[i].key, want->key) == 0)
            return strcmp(tags->v[i].value, want->value) == 0;
    return false;
}

bool wire_tags_match(const struct wire_tags *tags,
                     const struct wire_tags *filter)
{
    size_t i;

    for (i = 0; i < filter->n; i++)
        if (!has_tag(tags, &filter->v[i]))
            return false;
    return true;
}

/* --- errors and limits --------------------------------------------------- */

void wire_write_error(struct jsn_w *w, const char *key, const struct err *err)
{
    jsn_w_obj(w, key);
    jsn_w_str(w, "class", err_class_label(err->class));
    jsn_w_str(w, "scope", err_scope_label(err->scope));
    jsn_w_i64(w, "retry_ms", err->retry_ms);
    jsn_w_str(w, "code", err->code);
    jsn_w_str(w, "text", err->text);
    jsn_w_end_obj(w);
}

static const struct {
    uint32_t bit;
    const char *name;
} limit_names[] = {
    {CGROUP_LIMIT_MEMORY, "memory"},
    {CGROUP_LIMIT_CPU, "cpu"},
    {CGROUP_LIMIT_PIDS, "pids"},
};

void wire_write_limits(struct jsn_w *w, const char *key, uint32_t limits)
{
    size_t i;

    jsn_w_arr(w, key);
    for (i = 0; i < MEM_COUNT(limit_names); i++)
        if (limits & limit_names[i].bit)
            jsn_w_str(w, NULL, limit_names[i].name);
    jsn_w_end_arr(w);
}

uint32_t wire_read_limits(const struct jsn *j, const char *key)
{
    const struct jsn *list = jsn_get(j, key);
    uint32_t limits = 0;
    const char *s;
    size_t i, k;

    for (i = 0; i < jsn_count(list); i++)
        for (k = 0; k < MEM_COUNT(limit_names); k++)
            if (jsn_as_str(jsn_at(list, i), &s, NULL) == 0 &&
                strcmp(s, limit_names[k].name) == 0)
                limits |= limit_names[k].bit;
    return limits;
}
