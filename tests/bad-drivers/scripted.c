/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A driver for tests, with instances in memory, that misbehaves on request.
 *
 * Settings: `Mode` says what is wrong (below, beside each mode), `In` in which
 * callback (its name; default every one), `Ms` how long for the slow modes.
 * Without a mode it is a correct driver. Compiled twice: `scripted` is SERIAL,
 * `scripted_parallel` PARALLEL.
 *
 * It keeps a global count of threads inside a set (`overlap` in describe) so
 * that a test can see whether the host kept the thread model.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cdc/driver.h>

#ifdef PARALLEL
#define NAME "scripted_parallel"
#define THREADS CDC_THREADS_PARALLEL
#else
#define NAME "scripted"
#define THREADS CDC_THREADS_SERIAL
#endif

enum { MAX = 64, TAGS = 16 };

#define MODES(X)                                                              \
    X(none)         /* correct */                                             \
    X(fail)         /* fail(QUOTA, GROUP, 7 s, "Code", "req-1") */            \
    X(no_reason)    /* return -1 and say nothing */                           \
    X(unknown)      /* fail(OUTCOME_UNKNOWN) */                               \
    X(deaf)         /* sleep Ms, whatever the host says; then go on */        \
    X(sulky)        /* the same, but only when it is cancelled */             \
    X(polite)       /* host->sleep_ms(Ms); then go on or fail */              \
    X(nothing)      /* return 0 at once */                                    \
    X(half)         /* do it, then fail(TRANSIENT) */                         \
    X(late)         /* a thread emits after the return */                     \
    X(no_id)        /* garbage in the record: */                              \
    X(null_record)                                                            \
    X(bad_size)                                                               \
    X(bad_utf8)                                                               \
    X(bad_state)                                                              \
    X(bad_address)                                                            \
    X(bad_port)                                                               \
    X(bad_price)                                                              \
    X(bad_tags)                                                               \
    X(long_name)                                                              \
    X(control)                                                                \
    X(misplaced)    /* emit a price */                                        \
    X(partial)      /* list: also an unknown scope */                         \
    X(twice)        /* list: every instance twice, newest last */             \
    X(unfiltered)   /* list: everything */                                    \
    X(crash)

enum mode {
#define X(name) M_##name,
    MODES(X)
#undef X
};

struct vm {
    int used, destroyed;
    char id[32], token[64];
    char keys[TAGS][64], values[TAGS][64];
    uint32_t n_tags;
};

struct cdc_set {
    const struct cdc_host *host;
    enum mode mode;
    char in[32];
    int64_t ms;
    struct vm vms[MAX];
    int made;
    pthread_mutex_t lock;
    int late; /* threads that have yet to emit; atomic */
};

static int inside, overlap; /* atomic */

static enum mode mode_of(const char *name)
{
    static const char *const names[] = {
#define X(name) #name,
        MODES(X)
#undef X
    };

    for (size_t i = 0; name && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum mode)i;
    return M_none;
}

static enum mode mode_in(const struct cdc_set *set, const char *callback)
{
    return !set->in[0] || strcmp(set->in, callback) == 0 ? set->mode : M_none;
}

static void sleep_deaf(int64_t ms)
{
    while (ms-- > 0)
        usleep(1000);
}

static int32_t fail(const struct cdc_set *set, struct cdc_op *op,
                    uint32_t class, const char *text)
{
    return set->host->fail(op, class, CDC_SCOPE_GROUP, 7000, "Code", "req-1",
                           "%s", text);
}

/* What all callbacks may do before their work. 1: go on; else the result,
 * less one. */
static int before(const struct cdc_set *set, struct cdc_op *op,
                  const char *callback)
{
    switch (mode_in(set, callback)) {
    case M_fail:
        return fail(set, op, CDC_CLASS_QUOTA, "no more of it") - 1;
    case M_unknown:
        return fail(set, op, CDC_CLASS_OUTCOME_UNKNOWN, "no reply") - 1;
    case M_no_reason:
        return -2;
    case M_nothing:
        return -1;
    case M_deaf:
        sleep_deaf(set->ms);
        return 1;
    case M_sulky:
        if (set->host->cancelled(op))
            sleep_deaf(set->ms);
        return 1;
    case M_polite:
        if (set->host->sleep_ms(op, set->ms) == 0)
            return 1;
        return fail(set, op, CDC_CLASS_OUTCOME_UNKNOWN, "interrupted") - 1;
    case M_crash:
        abort();
    default:
        return 1;
    }
}

static void enter(void)
{
    if (__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) > 1)
        __atomic_store_n(&overlap, 1, __ATOMIC_SEQ_CST);
}

static int32_t leave(int32_t rc)
{
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    return rc;
}

/* --- records --------------------------------------------------------------- */

static void spoil(struct cdc_instance *i, struct cdc_tag *tags, enum mode m)
{
    static char long_name[CDC_ID_MAX + 2];

    memset(long_name, 'x', sizeof long_name - 1);
    switch (m) {
    case M_no_id: i->id = ""; break;
    case M_bad_size: i->size = 7; break;
    case M_bad_utf8: i->placement = "zone\xff"; break;
    case M_bad_state: i->state = 99; break;
    case M_bad_address: i->address = "example.org"; break;
    case M_bad_port: i->port = 70000; break;
    case M_bad_price: i->price = 0.0 / (i->price - i->price); break;
    case M_bad_tags: i->tags = NULL; i->n_tags = 3; break;
    case M_long_name: i->name = long_name; break;
    case M_control: tags[0].value = "two\nlines"; break;
    default: break;
    }
}

static int32_t emit(const struct cdc_set *set, struct cdc_op *op,
                    const struct vm *vm, enum mode m, uint32_t state)
{
    struct cdc_instance i;
    struct cdc_tag tags[TAGS];

    memset(&i, 0, sizeof i);
    for (uint32_t t = 0; t < vm->n_tags; t++) {
        tags[t].key = vm->keys[t];
        tags[t].value = vm->values[t];
    }
    i.size = sizeof i;
    i.state = state;
    i.id = vm->id;
    i.create_token = vm->token;
    i.address = "127.0.0.1";
    i.port = 2222;
    i.tags = tags;
    i.n_tags = vm->n_tags;
    i.price = 0.25;
    if (m == M_misplaced)
        return set->host->emit_price(op, NULL);
    spoil(&i, tags, m);
    return set->host->emit_instance(op, m == M_null_record ? NULL : &i);
}

struct late {
    struct cdc_set *set;
    struct cdc_op *op;
    struct vm vm;
};

static void *emit_late(void *arg)
{
    struct late *l = arg;

    sleep_deaf(30);
    emit(l->set, l->op, &l->vm, M_none, CDC_STATE_RUNNING);
    fail(l->set, l->op, CDC_CLASS_QUOTA, "too late");
    l->set->host->log(l->op, CDC_LOG_WARNING, "late words");
    __atomic_sub_fetch(&l->set->late, 1, __ATOMIC_SEQ_CST);
    free(l);
    return NULL;
}

static void start_late(struct cdc_set *set, struct cdc_op *op,
                       const struct vm *vm)
{
    struct late *l = calloc(1, sizeof *l);
    pthread_t thread;

    l->set = set;
    l->op = op;
    l->vm = *vm;
    __atomic_add_fetch(&set->late, 1, __ATOMIC_SEQ_CST);
    if (pthread_create(&thread, NULL, emit_late, l) == 0)
        pthread_detach(thread);
}

/* --- callbacks --------------------------------------------------------------- */

static int32_t set_open(const struct cdc_host *host, struct cdc_op *op,
                        const struct cdc_set_config *config,
                        struct cdc_set **ret_set)
{
    const struct cdc_json *p = config->params;
    const char *in = host->json_str(host->json_get(p, "In"));
    struct cdc_set *set = calloc(1, sizeof *set);
    int rc;

    set->host = host;
    set->mode = mode_of(host->json_str(host->json_get(p, "Mode")));
    snprintf(set->in, sizeof set->in, "%s", in ? in : "");
    host->json_i64(host->json_get(p, "Ms"), &set->ms);
    pthread_mutex_init(&set->lock, NULL);
    host->log(op, CDC_LOG_INFO, "opened set %s", config->set_id);
    rc = set->in[0] ? before(set, op, "set_open") : 1;
    if (rc < 1) {
        free(set);
        return rc + 1;
    }
    *ret_set = set;
    return 0;
}

static void set_close(struct cdc_set *set)
{
    while (__atomic_load_n(&set->late, __ATOMIC_SEQ_CST) > 0)
        usleep(1000);
    pthread_mutex_destroy(&set->lock);
    free(set);
}

static struct vm *by_token(struct cdc_set *set, const char *token)
{
    for (int i = 0; i < set->made; i++)
        if (strcmp(set->vms[i].token, token) == 0)
            return &set->vms[i];
    return NULL;
}

static void store_tags(struct vm *vm, const struct cdc_tag *tags, uint32_t n)
{
    vm->n_tags = n < TAGS ? n : TAGS;
    for (uint32_t i = 0; i < vm->n_tags; i++) {
        snprintf(vm->keys[i], sizeof vm->keys[i], "%s", tags[i].key);
        snprintf(vm->values[i], sizeof vm->values[i], "%s", tags[i].value);
    }
}

static struct vm *make(struct cdc_set *set, const struct cdc_create_spec *s)
{
    struct vm *vm = by_token(set, s->token);

    if (vm || set->made == MAX)
        return vm;
    vm = &set->vms[set->made];
    vm->used = 1;
    snprintf(vm->id, sizeof vm->id, "vm-%d", ++set->made);
    snprintf(vm->token, sizeof vm->token, "%s", s->token);
    store_tags(vm, s->tags, s->n_tags);
    return vm;
}

static int32_t create(struct cdc_op *op, struct cdc_set *set,
                      const struct cdc_create_spec *spec)
{
    int rc = (enter(), before(set, op, "create"));
    enum mode m = mode_in(set, "create");
    struct vm *vm, copy;

    if (rc < 1)
        return leave(rc + 1);
    pthread_mutex_lock(&set->lock);
    if ((vm = make(set, spec)))
        copy = *vm;
    pthread_mutex_unlock(&set->lock);
    if (!vm)
        return leave(fail(set, op, CDC_CLASS_QUOTA, "64 is enough"));
    emit(set, op, &copy, m,
         copy.destroyed ? CDC_STATE_GONE : CDC_STATE_PENDING);
    if (m == M_late)
        start_late(set, op, &copy);
    if (m == M_half)
        return leave(fail(set, op, CDC_CLASS_TRANSIENT, "half done"));
    return leave(0);
}

static int matches(const struct vm *vm, const struct cdc_tag *tag)
{
    for (uint32_t i = 0; i < vm->n_tags; i++)
        if (strcmp(vm->keys[i], tag->key) == 0)
            return strcmp(vm->values[i], tag->value) == 0;
    return 0;
}

static int wanted(const struct vm *vm, const struct cdc_tag *filter,
                  uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!matches(vm, &filter[i]))
            return 0;
    return 1;
}

static int32_t list(struct cdc_op *op, struct cdc_set *set,
                    const struct cdc_tag *filter, uint32_t n_filter)
{
    int rc = (enter(), before(set, op, "list"));
    enum mode m = mode_in(set, "list");

    if (rc < 1)
        return leave(rc + 1);
    pthread_mutex_lock(&set->lock);
    for (int i = 0; i < set->made; i++) {
        const struct vm *vm = &set->vms[i];

        if (vm->destroyed ||
            (m != M_unfiltered && !wanted(vm, filter, n_filter)))
            continue;
        if (m == M_twice)
            emit(set, op, vm, m, CDC_STATE_PENDING);
        emit(set, op, vm, m, CDC_STATE_RUNNING);
        if (m == M_late)
            start_late(set, op, vm);
    }
    pthread_mutex_unlock(&set->lock);
    if (m == M_partial)
        set->host->emit_unknown_scope(op, "zone-b");
    if (m == M_half)
        return leave(fail(set, op, CDC_CLASS_TRANSIENT, "page 2 lost"));
    return leave(0);
}

static struct vm *by_id(struct cdc_set *set, const char *id)
{
    for (int i = 0; i < set->made; i++)
        if (strcmp(set->vms[i].id, id) == 0 && !set->vms[i].destroyed)
            return &set->vms[i];
    return NULL;
}

static int32_t set_tags(struct cdc_op *op, struct cdc_set *set,
                        const char *id, const struct cdc_tag *tags,
                        uint32_t n_tags)
{
    int rc = (enter(), before(set, op, "set_tags"));
    struct vm *vm;

    if (rc < 1)
        return leave(rc + 1);
    pthread_mutex_lock(&set->lock);
    if ((vm = by_id(set, id)))
        store_tags(vm, tags, n_tags);
    pthread_mutex_unlock(&set->lock);
    return leave(vm ? 0 : fail(set, op, CDC_CLASS_NOT_FOUND, "no such vm"));
}

static int32_t destroy(struct cdc_op *op, struct cdc_set *set, const char *id)
{
    int rc = (enter(), before(set, op, "destroy"));
    struct vm *vm;

    if (rc < 1)
        return leave(rc + 1);
    pthread_mutex_lock(&set->lock);
    if ((vm = by_id(set, id)))
        vm->destroyed = 1;
    pthread_mutex_unlock(&set->lock);
    return leave(0);
}

static int32_t verify_host_key(struct cdc_op *op, struct cdc_set *set,
                               const char *id, const char *key)
{
    int rc = (enter(), before(set, op, "verify_host_key"));

    (void)id;
    if (rc < 1)
        return leave(rc + 1);
    return leave(strcmp(key, "ssh-ed25519 GOOD") == 0
                     ? 0 : fail(set, op, CDC_CLASS_AUTH, "another key"));
}

static void quota_group(struct cdc_set *set, const char *provider_type,
                        uint32_t preemptible, char *out, uint32_t out_size)
{
    (void)set;
    snprintf(out, out_size, "%.1s%s", provider_type,
             preemptible ? "-spot" : "");
}

static int32_t price_history(struct cdc_op *op, struct cdc_set *set,
                             const char *provider_type, uint32_t preemptible,
                             const char *placement, int64_t since_ms)
{
    struct cdc_price p = {
        sizeof p, preemptible, provider_type, placement, since_ms, 0.125,
    };

    set->host->emit_price(op, &p);
    return 0;
}

static int32_t describe(struct cdc_op *op, struct cdc_set *set)
{
    set->host->emit_fact(op, "overlap",
                         __atomic_load_n(&overlap, __ATOMIC_SEQ_CST) ? "yes"
                                                                     : "no");
    return 0;
}

const struct cdc_driver cdc_driver_entry = {
    CDC_DRIVER_PREFIX,
    THREADS,
    CDC_CAP_SET_TAGS | CDC_CAP_VERIFY_KEY | CDC_CAP_PRICES,
    0,
    NAME,
    "1",
    "instances in memory, for tests",
    NULL,
    "Mode\tstr\t\"none\"\twhat goes wrong\n"
    "In\tstr\t\"\"\tin which callback\n"
    "Ms\tint\t0\thow long\n",
    set_open,
    set_close,
    create,
    list,
    set_tags,
    destroy,
    verify_host_key,
    quota_group,
    price_history,
    describe,
};
