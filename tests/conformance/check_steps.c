/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a driver is asked, in order. Each step checks one sentence of
 * <cdc/driver.h>; a step that needs an earlier one to have worked is left out
 * when it has not. The driver is entered through core/plugin/drvset.c, so
 * that what the host refuses in earnest is refused here.
 *
 *   settings    an unknown one is refused, before the driver is asked
 *   open        then nothing of ours may be there (or is destroyed first)
 *   create      one; the list shows it with all its tags
 *   again       the same token makes no second instance, although tags and
 *               init command differ, as they do after a restart
 *   tags        are replaced, not merged; the filter filters
 *   boot        until it has an address; its host key is told from another
 *   restart     close and open: it is still there
 *   second      a second instance has another id
 *   cancelled   a call whose time is up comes back at once
 *   destroy     once, twice, unknown; until the list says that they are gone
 *   close       leaves no thread and no descriptor
 *
 * Everything with our set id is destroyed at the end, whatever happened.
 */

#include "tests/conformance/check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cdc/driver.h>

#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/plugin/drvset.h"
#include "core/plugin/registry.h"
#include "core/plugin/schema.h"
#include "core/port/cloud.h"

enum { POLL_US = 500000, PROMPT_MS = 2000, TOKEN = 27 };

static const char ID_TAG[] = "CheckSetID";
static const char OTHER_TAG[] = "CheckNote";

struct run {
    struct check *c;
    const struct driver *d;
    struct drvset set;
    char token[2][TOKEN + 1];
    char id[2][CDC_ID_MAX + 1]; /* "" = not made */
};

/* --- calls ------------------------------------------------------------------ */

static struct call *new_call(struct run *r, enum call_kind kind)
{
    struct err err = {0};
    struct call *c = call_create(&r->set.origin, kind,
                                 clock_mono_us() + r->c->o->call_ms * 1000,
                                 &err);

    if (!c) {
        fprintf(stderr, "cdc-driver-check: %s\n", err.text);
        exit(1);
    }
    return c;
}

static const char *failure_of(const struct call *c)
{
    static char text[700];

    snprintf(text, sizeof text, "%s: %s: %s",
             c->outcome == OP_UNKNOWN ? "outcome unknown" : "refused",
             err_class_label(c->err.class), c->err.text);
    return text;
}

/* Report a call that should have gone well. */
static bool expect_done(struct run *r, const struct call *c)
{
    if (c->outcome == OP_DONE)
        check_ok(r->c);
    else
        check_failed(r->c, "%s", failure_of(c));
    return c->outcome == OP_DONE;
}

static bool expect_refusal(struct run *r, const struct call *c,
                           enum err_class class)
{
    if (c->outcome == OP_REFUSED && c->err.class == class)
        check_ok(r->c);
    else if (c->outcome == OP_DONE)
        check_failed(r->c, "it succeeded");
    else
        check_failed(r->c, "%s; expected: %s", failure_of(c),
                     err_class_label(class));
    return false;
}

static struct call *list_by(struct run *r, const char *key, const char *value)
{
    struct cdc_tag filter[] = {{ID_TAG, r->c->o->set_id}, {key, value}};
    struct call *c = new_call(r, CALL_LIST);

    drvset_list(&r->set, c, filter, key ? 2 : 1);
    return c;
}

/* value: of a tag, and in the init command; a host that was restarted makes up
 * a new one. */
static struct call *create_call(struct run *r, const char *token,
                                const char *value)
{
    const struct check_options *o = r->c->o;
    const struct cdc_tag tags[] = {
        {ID_TAG, o->set_id}, {OTHER_TAG, value},
    };
    CLEANUP(mem_free) char *init = mem_printf(": %s", value);
    const struct cdc_create_spec spec = {
        .size = sizeof spec, .count = 1, .token = token,
        .type_name = "check", .provider_type = o->type, .vcpus = 1,
        .ram = INT64_C(256) << 20, .price = 0.01, .n_tags = 2, .tags = tags,
        .image = o->image, .placement = o->placement, .init_command = init,
        .public_key = o->public_key,
    };
    struct call *c = new_call(r, CALL_CREATE);

    drvset_create(&r->set, c, &spec);
    return c;
}

static struct call *destroy_call(struct run *r, const char *id)
{
    struct call *c = new_call(r, CALL_DESTROY);

    drvset_destroy(&r->set, c, id);
    return c;
}

static const struct cloud_instance *find(const struct call *c, const char *id)
{
    for (size_t i = 0; i < c->instances.n; i++)
        if (strcmp(c->instances.v[i]->id, id) == 0)
            return c->instances.v[i];
    return NULL;
}

static size_t alive(const struct call *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->instances.n; i++)
        n += c->instances.v[i]->state != CLOUD_GONE;
    return n;
}

static const char *tag_of(const struct cloud_instance *i, const char *key)
{
    for (size_t t = 0; t < i->n_tags; t++)
        if (strcmp(i->tags[t].key, key) == 0)
            return i->tags[t].value;
    return NULL;
}

/* --- settings, open ----------------------------------------------------------- */

static void step_settings(struct run *r)
{
    struct jsn *j = jsn_parse("{\"NoSuchSetting\":1}", 19, NULL);

    check_step(r->c, "an unknown setting is refused");
    if (!r->d->descriptor->schema)
        check_skip(r->c, "the driver declares no settings");
    else if (schema_check(r->d->descriptor->schema, j, NULL))
        check_ok(r->c);
    else
        check_failed(r->c, "it was accepted");
    jsn_free(j);
}

static bool open_set(struct run *r, const char *what)
{
    const struct check_options *o = r->c->o;
    struct cdc_set *set = NULL;
    struct err err = {0};
    struct call *c;
    bool good;

    check_step(r->c, what);
    if (drvset_init(&r->set, r->d, "check", o->set_id, o->state_dir,
                    o->params, o->log, &err)) {
        check_failed(r->c, "%s", err.text);
        return false;
    }
    c = new_call(r, CALL_OPEN);
    set = drvset_open(&r->set, c);
    good = expect_done(r, c);
    if (good)
        drvset_adopt(&r->set, set, c);
    call_unref(c);
    return good;
}

static bool wait_gone(struct run *r, const char *id);

static void destroy_all(struct run *r)
{
    struct call *c = list_by(r, NULL, NULL);

    for (size_t i = 0; i < c->instances.n; i++) {
        call_unref(destroy_call(r, c->instances.v[i]->id));
        wait_gone(r, c->instances.v[i]->id);
    }
    call_unref(c);
}

static bool step_nothing_yet(struct run *r)
{
    struct call *c;
    bool good;

    check_step(r->c, "no instance carries our set id yet");
    if (r->c->o->destroy_existing)
        destroy_all(r);
    c = list_by(r, NULL, NULL);
    good = c->outcome == OP_DONE && alive(c) == 0;
    if (good)
        check_ok(r->c);
    else if (c->outcome == OP_DONE)
        check_failed(r->c, "%zu do; see --destroy-existing", alive(c));
    else
        check_failed(r->c, "%s", failure_of(c));
    call_unref(c);
    return good;
}

/* --- create -------------------------------------------------------------------- */

static bool note_created(struct run *r, int which, const struct call *c)
{
    if (!expect_done(r, c))
        return false;
    text_copy(r->id[which], c->instances.v[0]->id, sizeof r->id[which]);
    return true;
}

static void step_listed(struct run *r)
{
    struct call *c = list_by(r, NULL, NULL);
    const struct cloud_instance *i = find(c, r->id[0]);
    const char *token = i ? i->create_token : "";

    check_step(r->c, "the list shows it at once");
    if (c->outcome != OP_DONE)
        check_failed(r->c, "%s", failure_of(c));
    else if (!i || i->state == CLOUD_GONE)
        check_failed(r->c, "%zu instances, not this one", c->instances.n);
    else
        check_ok(r->c);
    check_step(r->c, "it carries the tags and the token of its creation");
    if (!i)
        check_skip(r->c, "it is not listed");
    else if (!tag_of(i, OTHER_TAG) ||
             strcmp(tag_of(i, OTHER_TAG), "first value") != 0)
        check_failed(r->c, "tag %s is missing or changed", OTHER_TAG);
    else if (token[0] && strcmp(token, r->token[0]) != 0)
        check_failed(r->c, "create_token is '%s'", token);
    else
        check_ok(r->c);
    call_unref(c);
}

static void step_again(struct run *r)
{
    struct call *again, *c;

    check_step(r->c, "creating again with the same token makes no second");
    again = create_call(r, r->token[0], "another value");
    c = list_by(r, NULL, NULL);
    if (again->outcome != OP_DONE)
        check_failed(r->c, "%s", failure_of(again));
    else if (strcmp(again->instances.v[0]->id, r->id[0]) != 0)
        check_failed(r->c, "another id: '%s', first '%s'",
                     again->instances.v[0]->id, r->id[0]);
    else if (alive(c) != 1)
        check_failed(r->c, "the list shows %zu instances", alive(c));
    else
        check_ok(r->c);
    call_unref(again);
    call_unref(c);
}

/* --- tags ----------------------------------------------------------------------- */

static struct call *tag_call(struct run *r, const char *id)
{
    const struct cdc_tag tags[] = {
        {ID_TAG, r->c->o->set_id}, {"CheckNew", "a \"quoted\" value, \xc3\xa9"},
    };
    struct call *c = new_call(r, CALL_SET_TAGS);

    drvset_set_tags(&r->set, c, id, tags, 2);
    return c;
}

static void step_tags_replaced(struct run *r)
{
    const struct cloud_instance *i;
    const char *value;
    struct call *c;

    check_step(r->c, "set_tags has replaced them");
    c = list_by(r, NULL, NULL);
    i = find(c, r->id[0]);
    value = i ? tag_of(i, "CheckNew") : NULL;
    if (!value || strcmp(value, "a \"quoted\" value, \xc3\xa9") != 0)
        check_failed(r->c, "the new tag reads '%s'", value ? value : "");
    else if (tag_of(i, OTHER_TAG))
        check_failed(r->c, "the old tag %s is still there", OTHER_TAG);
    else
        check_ok(r->c);
    call_unref(c);
}

static void step_tags(struct run *r)
{
    struct call *c;

    check_step(r->c, "tags can be set");
    if (!(r->set.caps & CDC_CAP_SET_TAGS)) {
        check_skip(r->c, "no capability to set tags");
        return;
    }
    c = tag_call(r, r->id[0]);
    if (expect_done(r, c))
        step_tags_replaced(r);
    call_unref(c);
    check_step(r->c, "tags of an unknown instance: not-found");
    c = tag_call(r, "no-such-instance");
    expect_refusal(r, c, ERR_NOT_FOUND);
    call_unref(c);
}

static void step_filter(struct run *r)
{
    struct call *c = list_by(r, "CheckOther", "x");

    check_step(r->c, "a filter that nothing matches gives an empty list");
    if (c->outcome != OP_DONE)
        check_failed(r->c, "%s", failure_of(c));
    else if (c->instances.n)
        check_failed(r->c, "%zu instances", c->instances.n);
    else
        check_ok(r->c);
    call_unref(c);
}

/* --- boot, host key ------------------------------------------------------------ */

/* An address and a host key, "" where there is none. */
struct seen {
    char address[64];
    char host_key[2100];
    enum cloud_state state;
};

static void look(struct run *r, struct seen *ret)
{
    struct call *c = list_by(r, NULL, NULL);
    const struct cloud_instance *i = find(c, r->id[0]);

    memset(ret, 0, sizeof *ret);
    ret->state = i ? i->state : CLOUD_GONE;
    text_copy(ret->address, i ? i->address : "", sizeof ret->address);
    text_copy(ret->host_key, i && i->host_key ? i->host_key : "",
              sizeof ret->host_key);
    call_unref(c);
}

static bool step_boot(struct run *r, struct seen *seen)
{
    int64_t end_us = clock_mono_us() + r->c->o->boot_ms * 1000;

    check_step(r->c, "it gets to run and has an address");
    for (;;) {
        look(r, seen);
        if (seen->state == CLOUD_RUNNING && seen->address[0]) {
            check_ok(r->c);
            return true;
        }
        if (seen->state > CLOUD_RUNNING || clock_mono_us() > end_us)
            break;
        usleep(POLL_US);
    }
    check_failed(r->c, "state %d, address '%s'", (int)seen->state,
                 seen->address);
    return false;
}

static void verify(struct run *r, const char *key, bool right)
{
    struct call *c = new_call(r, CALL_VERIFY_HOST_KEY);

    check_step(r->c, right ? "its own host key is accepted"
                           : "another host key is refused: auth");
    drvset_verify_host_key(&r->set, c, r->id[0], key);
    if (c->outcome == OP_REFUSED && c->err.class == ERR_UNSUPPORTED)
        check_skip(r->c, "the driver cannot tell");
    else if (right)
        expect_done(r, c);
    else
        expect_refusal(r, c, ERR_AUTH);
    call_unref(c);
}

static void step_host_key(struct run *r, const struct seen *seen)
{
    if (seen->host_key[0])
        verify(r, seen->host_key, true);
    if (r->set.caps & CDC_CAP_VERIFY_KEY)
        verify(r, "ssh-ed25519 "
                  "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                  "AAAAAAAAAA", false);
}

/* --- restart, second, pure things ----------------------------------------------- */

static bool step_restart(struct run *r)
{
    struct call *c;

    drvset_fini(&r->set);
    if (!open_set(r, "the set can be closed and opened again"))
        return false;
    check_step(r->c, "its instances are still there");
    c = list_by(r, NULL, NULL);
    if (find(c, r->id[0]))
        check_ok(r->c);
    else
        check_failed(r->c, "the list has %zu instances, not ours",
                     c->instances.n);
    call_unref(c);
    return true;
}

static void step_second(struct run *r)
{
    struct call *c;

    check_step(r->c, "another token makes another instance");
    if (r->set.caps & CDC_CAP_SINGLE) {
        check_skip(r->c, "one instance at a time");
        return;
    }
    c = create_call(r, r->token[1], "first value");
    if (c->outcome == OP_DONE &&
        strcmp(c->instances.v[0]->id, r->id[0]) == 0)
        check_failed(r->c, "the same id: '%s'", r->id[0]);
    else if (c->outcome == OP_REFUSED && (c->err.class == ERR_QUOTA ||
                                          c->err.class == ERR_CAPACITY))
        check_skip(r->c, failure_of(c));
    else
        note_created(r, 1, c);
    call_unref(c);
}

static void step_cancelled(struct run *r)
{
    int64_t begun = clock_mono_us();
    struct cdc_tag filter = {ID_TAG, r->c->o->set_id};
    struct call *c = new_call(r, CALL_LIST);
    int64_t took_ms;

    check_step(r->c, "a call that is cancelled comes back at once");
    call_cancel(c);
    drvset_list(&r->set, c, &filter, 1);
    took_ms = (clock_mono_us() - begun) / 1000;
    if (took_ms > PROMPT_MS)
        check_failed(r->c, "after %lld ms", (long long)took_ms);
    else
        check_ok(r->c);
    call_unref(c);
}

static void step_quota_group(struct run *r)
{
    char one[64], two[64];

    check_step(r->c, "quota_group gives the same answer twice");
    if (!r->d->descriptor->quota_group) {
        check_skip(r->c, "one group for all");
        return;
    }
    drvset_quota_group(&r->set, r->c->o->type, false, one, sizeof one);
    drvset_quota_group(&r->set, r->c->o->type, false, two, sizeof two);
    if (strcmp(one, two) != 0)
        check_failed(r->c, "'%s', then '%s'", one, two);
    else
        check_ok(r->c);
}

static void step_describe(struct run *r)
{
    struct call *c = new_call(r, CALL_DESCRIBE);

    check_step(r->c, "describe");
    drvset_describe(&r->set, c);
    if (c->outcome == OP_REFUSED && c->err.class == ERR_UNSUPPORTED)
        check_skip(r->c, "no such callback");
    else
        expect_done(r, c);
    call_unref(c);
}

static void step_prices(struct run *r)
{
    struct call *c = new_call(r, CALL_PRICE_HISTORY);

    check_step(r->c, "price_history");
    drvset_price_history(&r->set, c, r->c->o->type, true,
                         r->c->o->placement, 0);
    if (c->outcome == OP_REFUSED && c->err.class == ERR_UNSUPPORTED)
        check_skip(r->c, "no such capability");
    else
        expect_done(r, c);
    call_unref(c);
}

/* --- destroy --------------------------------------------------------------------- */

static bool wait_gone(struct run *r, const char *id)
{
    int64_t end_us = clock_mono_us() + r->c->o->boot_ms * 1000;
    const struct cloud_instance *i;
    struct call *c;
    bool gone;

    do {
        c = list_by(r, NULL, NULL);
        i = find(c, id);
        gone = c->outcome == OP_DONE && (!i || i->state == CLOUD_GONE);
        call_unref(c);
    } while (!gone && clock_mono_us() < end_us && usleep(POLL_US) == 0);
    return gone;
}

static void destroy(struct run *r, const char *what, const char *id)
{
    struct call *c;

    check_step(r->c, what);
    c = destroy_call(r, id);
    expect_done(r, c);
    call_unref(c);
}

static void step_destroy(struct run *r)
{
    for (int i = 0; i < 2; i++) {
        if (!r->id[i][0])
            continue;
        destroy(r, i ? "the second can be destroyed"
                     : "an instance can be destroyed", r->id[i]);
        check_step(r->c, "the list says in time that it is gone");
        if (wait_gone(r, r->id[i]))
            check_ok(r->c);
        else
            check_failed(r->c, "it is still there");
    }
    destroy(r, "destroying it again is no error", r->id[0]);
    destroy(r, "destroying an unknown instance is no error",
            "no-such-instance");
}

/* --- close ------------------------------------------------------------------------ */

static unsigned entries(const char *path)
{
    DIR *dir = opendir(path);
    unsigned n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static void step_close(struct run *r, unsigned threads, unsigned fds)
{
    unsigned t, f;

    drvset_fini(&r->set);
    check_step(r->c, "closing the set leaves no thread and no descriptor");
    t = entries("/proc/self/task");
    f = entries("/proc/self/fd");
    if (t > threads || f > fds)
        check_failed(r->c, "%u threads and %u descriptors more",
                     t - threads, f > fds ? f - fds : 0);
    else
        check_ok(r->c);
}

/* --- in order ---------------------------------------------------------------------- */

static void new_token(char *out)
{
    uint8_t random[TOKEN - 1];

    secret_random(random, sizeof random);
    out[0] = 'c';
    text_base32(random, sizeof random, out + 1);
}

/* With an instance; false when the set could not be opened again. */
static bool steps_of_life(struct run *r)
{
    struct seen seen;

    step_listed(r);
    step_again(r);
    step_tags(r);
    step_filter(r);
    if (step_boot(r, &seen))
        step_host_key(r, &seen);
    if (!step_restart(r))
        return false;
    step_second(r);
    step_cancelled(r);
    step_quota_group(r);
    step_prices(r);
    step_describe(r);
    step_destroy(r);
    return true;
}

bool check_run(struct check *c, const struct driver *d)
{
    struct run r = {.c = c, .d = d};
    unsigned threads = entries("/proc/self/task");
    unsigned fds = entries("/proc/self/fd");
    struct call *call;
    bool made, open = true;

    new_token(r.token[0]);
    new_token(r.token[1]);
    step_settings(&r);
    if (!open_set(&r, "the set can be opened")) {
        drvset_fini(&r.set);
        return false;
    }
    if (step_nothing_yet(&r)) {
        check_step(c, "an instance can be created");
        call = create_call(&r, r.token[0], "first value");
        made = note_created(&r, 0, call);
        call_unref(call);
        open = !made || steps_of_life(&r);
        if (open)
            destroy_all(&r);
    }
    step_close(&r, threads, fds);
    return c->failures == 0;
}
