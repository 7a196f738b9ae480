/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_run: mixed trouble from seeds.
 *
 *     sim_run [--seeds A-B | --seed N] [--trace] [--twice] [--all-faults]
 *
 * Each seed is a world of about thirty containers in which everything that can
 * go wrong does for a quarter of an hour; then it must come to rest: every
 * container final, nothing left. One line is printed per seed, and at the end
 * how often each kind of fault fired. --twice runs each seed again and
 * compares the trace hashes; --all-faults fails when a kind never fired. The
 * exit code is 1 on any failure. SIM_LOG=1 shows the dispatcher's log.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/sim/chaos.h"
#include "tests/sim/rig.h"

enum { TROUBLE_S = 900, SETTLE_S = 5400, SUBMIT_S = 420 };

struct run {
    struct rig *r;
    struct sim_rng rng;
    unsigned left;
};

struct options {
    uint64_t first, last;
    bool trace, twice, all_faults;
};

static unsigned fault_total[SIM_FAULT_COUNT];
static unsigned point_total[SIM_POINT_COUNT];

static void draw_job(struct run *x, struct sim_job *job)
{
    *job = (struct sim_job){
        .vcpus = sim_rng_range(&x->rng, 1, 4),
        .ram = sim_rng_range(&x->rng, 1, 6) << 30,
        .scratch = sim_rng_range(&x->rng, 0, 8) << 30,
        .priority = sim_rng_range(&x->rng, 1, 1000),
        .run_us = sim_rng_range(&x->rng, SIM_S / 10, 120 * (int64_t) SIM_S),
        .exit_code = (int32_t) sim_rng_range(&x->rng, 0, 3),
    };
    switch (sim_rng_range(&x->rng, 0, 24)) {
    case 0:
        job->vcpus = 64; /* impossible */
        break;
    case 1:
        job->invalid = "mounts: not an object";
        break;
    case 2:
        job->ignore_term_us = 8 * SIM_S;
        break;
    case 3:
        job->run_us = 400 * (int64_t) SIM_S;
        break;
    default:
        break;
    }
}

static void submit(void *arg)
{
    struct run *x = arg;
    struct sim_job job;
    int64_t burst = sim_rng_range(&x->rng, 1, 6);

    while (burst-- > 0 && x->left > 0) {
        draw_job(x, &job);
        sim_api_submit(x->r->w->api, &job);
        x->left--;
    }
    if (x->left > 0)
        sim_at(x->r->w,
               sim_rng_range(&x->rng, 0, 2 * (int64_t) SUBMIT_S * SIM_S / 10),
               submit, x);
}

static bool done(struct rig *r)
{
    return r->w->now_us > (int64_t) TROUBLE_S * SIM_S && r->d && rig_quiet(r);
}

static void print_trace(void *arg, int64_t us, const char *line)
{
    (void) arg;
    (void) us;
    puts(line);
}

static void report(const struct rig *r)
{
    const struct sim *w = r->w;
    unsigned complete = 0;

    for (size_t i = 0; i < w->api->ctrs.n; i++)
        complete += w->api->ctrs.v[i]->rec.state == CTR_COMPLETE;
    printf("seed %-4" PRIu64 " %016" PRIx64 " %6" PRIu64 " turns, %5d s, "
           "%2zu containers (%u complete), %2u instances, %5.0f VM-s, "
           "%u crashes%s\n",
           w->seed, w->hash, w->turns, (int) (w->now_us / SIM_S),
           w->api->ctrs.n, complete, r->cloud->made,
           sim_cloud_seconds(r->cloud), r->crashes,
           w->failure ? "  FAILED" : "");
}

static bool run_seed(uint64_t seed, const struct options *o, bool quiet,
                     uint64_t *hash)
{
    struct rig *r = rig_create(seed);
    struct sim_chaos *chaos;
    struct run x = {.r = r, .left = 30};

    sim_rng_init(&x.rng, seed, "jobs");
    if (o->trace)
        r->w->trace = print_trace;
    sim_cloud_add_foreign(r->cloud, "another-set");
    if (seed % 5 == 0)
        r->cloud->quota = 4;
    rig_start(r);
    chaos = sim_chaos_create(r->w, (int64_t) TROUBLE_S * SIM_S);
    sim_at(r->w, 0, submit, &x);
    rig_run(r, (int64_t) (TROUBLE_S + SETTLE_S) * SIM_S, done);
    if (!r->w->failure)
        check_end(r->w);
    *hash = r->w->hash;
    bool ok = !r->w->failure;
    if (!quiet) {
        report(r);
        for (unsigned f = 0; f < SIM_FAULT_COUNT; f++)
            fault_total[f] += r->w->faults[f].count;
        for (unsigned p = 0; p < SIM_POINT_COUNT; p++)
            point_total[p] += r->w->point_count[p];
    }
    sim_chaos_destroy(chaos);
    rig_destroy(r);
    return ok;
}

static bool print_faults(bool all)
{
    bool ok = true;

    puts("faults:");
    for (unsigned f = 0; f < SIM_FAULT_COUNT; f++) {
        printf("  %6u %s\n", fault_total[f], sim_fault_label(f));
        if (all && fault_total[f] == 0) {
            printf("FAILED: %s never fired\n", sim_fault_label(f));
            ok = false;
        }
    }
    puts("points:");
    for (unsigned p = 0; p < SIM_POINT_COUNT; p++)
        printf("  %6u %s\n", point_total[p], sim_point_label(p));
    return ok;
}

static int usage(void)
{
    fputs("usage: sim_run [--seeds A-B | --seed N] [--trace] [--twice] "
          "[--all-faults]\n",
          stderr);
    return 2;
}

static int parse_seeds(char *text, struct options *o)
{
    char *dash = strchr(text, '-');
    int64_t first, last;

    if (dash)
        *dash++ = '\0';
    if (text_parse_i64(text, &first, NULL) != 0 ||
        text_parse_i64(dash ? dash : text, &last, NULL) != 0)
        return -1;
    o->first = (uint64_t) first;
    o->last = (uint64_t) last;
    return 0;
}

static int parse_options(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        bool seeds =
            strcmp(argv[i], "--seeds") == 0 || strcmp(argv[i], "--seed") == 0;

        if (seeds && i + 1 < argc && parse_seeds(argv[i + 1], o) == 0)
            i++;
        else if (strcmp(argv[i], "--trace") == 0)
            o->trace = true;
        else if (strcmp(argv[i], "--twice") == 0)
            o->twice = true;
        else if (strcmp(argv[i], "--all-faults") == 0)
            o->all_faults = true;
        else
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {.first = 1, .last = 50};
    unsigned failed = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (parse_options(argc, argv, &o) != 0)
        return usage();
    for (uint64_t seed = o.first; seed <= o.last; seed++) {
        uint64_t hash, again;

        failed += !run_seed(seed, &o, false, &hash);
        if (!o.twice)
            continue;
        run_seed(seed, &o, true, &again);
        if (hash != again) {
            printf("FAILED: seed %" PRIu64 " has two trace hashes\n", seed);
            failed++;
        }
    }
    if (!print_faults(o.all_faults))
        failed++;
    printf("%u failed\n", failed);
    return failed > 0;
}
