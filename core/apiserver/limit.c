/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Token buckets in a table of fixed size.
 *
 * A bucket belongs to a token (not to a whole Authorization header, which can
 * be written in many ways) or to an address that failed to log in. The table is
 * addressed by a hash with a random start, so that nobody can aim at somebody
 * else's bucket; two that meet in one place push each other out, which at worst
 * forgets what was counted. Nothing grows, nothing has to be swept.
 *
 * Administrators' tokens (a dispatcher's) are not limited once they were seen
 * to be that. Failed logins: FAILURES a second from one address, then 429
 * until some seconds have passed: guessing tokens is hopeless anyway, this
 * only keeps it from costing much.
 *
 * Loop thread; time comes from the caller.
 */
#include "core/apiserver/limit.h"

#include <stdlib.h>

#include "core/apiserver/app.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/base/secret.h"

enum { SLOTS = 4096, FAILURES = 20, BURST_SECONDS = 2 };

struct bucket {
    uint64_t key; /* 0 = free */
    double tokens;
    int64_t at_us;
    bool exempt;
};

struct limit {
    int64_t rate;
    uint64_t seed;
    struct bucket slots[SLOTS];
};

struct limit *limit_create(int64_t rate)
{
    struct limit *l = MEM_NEW(struct limit);

    l->rate = rate;
    secret_random(&l->seed, sizeof l->seed);
    return l;
}

void limit_destroy(struct limit *l)
{
    free(l);
}

/* kind keeps tokens and addresses apart. */
static uint64_t hash(const struct limit *l, char kind, const char *text)
{
    uint64_t h = (l->seed ^ (unsigned char) kind) *
                 UINT64_C(0x9e3779b97f4a7c15);

    for (; *text; text++) {
        h = (h ^ (unsigned char) *text) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    return h ? h : 1;
}

static struct bucket *find(struct limit *l, uint64_t key, double full,
                           int64_t now_us, bool make)
{
    struct bucket *b = &l->slots[key % SLOTS];

    if (b->key == key)
        return b;
    if (!make)
        return NULL;
    *b = (struct bucket){.key = key, .tokens = full, .at_us = now_us};
    return b;
}

static void refill(struct bucket *b, double rate, double full, int64_t now_us)
{
    if (now_us > b->at_us)
        b->tokens += rate * (double) (now_us - b->at_us) / 1e6;
    if (b->tokens > full)
        b->tokens = full;
    b->at_us = now_us;
}

static bool failed_too_often(struct limit *l, const char *peer,
                             int64_t now_us)
{
    struct bucket *b = find(l, hash(l, 'a', peer), 0, now_us, false);

    if (!b)
        return false;
    refill(b, FAILURES, FAILURES * BURST_SECONDS, now_us);
    return b->tokens < 1;
}

static bool known_admin(struct limit *l, const char *token)
{
    struct bucket *b;

    if (!token)
        return false;
    b = find(l, hash(l, 't', token), 0, 0, false);
    return b && b->exempt;
}

bool limit_pass(struct limit *l, const char *token, const char *peer,
                int64_t now_us)
{
    double rate = (double) l->rate, full = rate * BURST_SECONDS;
    struct bucket *b;

    if (known_admin(l, token))
        return true;
    if (failed_too_often(l, peer, now_us))
        return false;
    if (l->rate == 0 || !token)
        return true;
    b = find(l, hash(l, 't', token), full, now_us, true);
    refill(b, rate, full, now_us);
    if (b->tokens < 1)
        return false;
    b->tokens -= 1;
    return true;
}

void limit_note_at(struct limit *l, const char *token,
                   const char *peer, int status, bool admin, int64_t now_us)
{
    double full = FAILURES * BURST_SECONDS;
    struct bucket *b;

    if (admin && token) {
        b = find(l, hash(l, 't', token), full, now_us, true);
        b->exempt = true;
    }
    if (status != 401)
        return;
    b = find(l, hash(l, 'a', peer), full, now_us, true);
    refill(b, FAILURES, full, now_us);
    b->tokens -= 1;
}

void limit_note(struct app *app, const char *token, const char *peer,
                int status, bool admin)
{
    limit_note_at(app->limit, token, peer, status, admin,
                  clock_mono_us());
}
