/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics in the Prometheus text format 0.0.4.
 *
 * A registry holds families in the order of their registration; a family holds
 * one series per combination of label values, sorted by them, so that two
 * scrapes differ only in their numbers. A family without labels has its series
 * from the start: a counter that never counted shows 0, not nothing.
 *
 * The number of series per family is limited, because label values may come
 * from a configuration or a cloud; what exceeds the limit is dropped. A
 * summary's quantiles are computed at each scrape over a ring of the last
 * values. Sums and counts are for all time.
 *
 * Used on one thread, the program's loop. No function waits or fails.
 */
#include "core/base/metric.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/base/vec.h"

enum { SERIES_MAX = 1000, WINDOW = 1024, KEY_MAX = 1024 };

static const double bounds[] = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,  0.25, 0.5,  1,    2.5,
    5,     10,     25,    50,   100,   250,  500,  1000, 2500, 5000, 10000,
};

static const double quantiles[] = {0.5, 0.9, 0.95, 0.99};

/* The end of a label value inside a key. */
#define SEPARATOR '\x1f'

struct series {
    char *labels[METRIC_LABELS];
    double value; /* counter, gauge; else the sum of what was observed */
    uint64_t count;
    uint64_t *buckets; /* histogram: MEM_COUNT(bounds), not cumulative */
    double *window;    /* summary: ring of WINDOW */
};

struct metric {
    enum metric_type type;
    const char *name;
    const char *help;
    char *label_names[METRIC_LABELS];
    size_t n_labels;
    struct map *series;
};

struct metrics {
    VEC(struct metric *) families;
};

static void series_destroy(void *arg)
{
    struct series *s = arg;

    for (size_t i = 0; i < METRIC_LABELS; i++)
        free(s->labels[i]);
    free(s->buckets);
    free(s->window);
    free(s);
}

static void family_destroy(struct metric *f)
{
    for (size_t i = 0; i < METRIC_LABELS; i++)
        free(f->label_names[i]);
    map_destroy(f->series);
    free(f);
}

struct metrics *metrics_create(void)
{
    return MEM_NEW(struct metrics);
}

void metrics_destroy(struct metrics *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->families.n; i++)
        family_destroy(m->families.v[i]);
    VEC_FINI(&m->families);
    free(m);
}

static void split_labels(struct metric *f, const char *labels)
{
    while (*labels) {
        size_t len = strcspn(labels, ",");
        assert(f->n_labels < METRIC_LABELS);
        f->label_names[f->n_labels++] = mem_strndup(labels, len);
        labels += len;
        labels += *labels == ',';
    }
}

/* Label values as one key; a value with the separator in it only loses its
 * own distinctness. */
static void make_key(const struct metric *f, const char *const *values,
                     char key[KEY_MAX])
{
    size_t n = 0;

    key[0] = '\0';
    for (size_t i = 0; i < f->n_labels && n < KEY_MAX - 1; i++)
        n += (size_t) snprintf(key + n, KEY_MAX - n, "%s%c",
                               values[i] ? values[i] : "", SEPARATOR);
}

static struct series *series_create(const struct metric *f,
                                    const char *const *values)
{
    struct series *s = MEM_NEW(struct series);

    for (size_t i = 0; i < f->n_labels; i++)
        s->labels[i] = mem_strdup(values[i] ? values[i] : "");
    if (f->type == METRIC_HISTOGRAM)
        s->buckets = mem_calloc(MEM_COUNT(bounds), sizeof *s->buckets);
    if (f->type == METRIC_SUMMARY)
        s->window = mem_calloc(WINDOW, sizeof *s->window);
    return s;
}

/* The series, made if need be; NULL when the family is full. */
static struct series *obtain(struct metric *f, const char *l1, const char *l2,
                             const char *l3)
{
    const char *const values[METRIC_LABELS] = {l1, l2, l3};
    char key[KEY_MAX];
    struct series *s;

    make_key(f, values, key);
    s = map_get(f->series, key);
    if (!s && map_count(f->series) < SERIES_MAX) {
        s = series_create(f, values);
        map_set(f->series, key, s);
    }
    return s;
}

struct metric *metric_add(struct metrics *m, enum metric_type type,
                          const char *name, const char *help,
                          const char *labels)
{
    for (size_t i = 0; i < m->families.n; i++)
        if (strcmp(m->families.v[i]->name, name) == 0)
            return m->families.v[i];
    struct metric *f = MEM_NEW(struct metric);
    f->type = type;
    f->name = name;
    f->help = help;
    f->series = map_create(series_destroy);
    split_labels(f, labels);
    VEC_PUSH(&m->families, f);
    if (f->n_labels == 0)
        obtain(f, NULL, NULL, NULL);
    return f;
}

void metric_inc(struct metric *f, double by, const char *l1, const char *l2,
                const char *l3)
{
    struct series *s = obtain(f, l1, l2, l3);

    if (s)
        s->value += by;
}

void metric_set(struct metric *f, double value, const char *l1,
                const char *l2, const char *l3)
{
    struct series *s = obtain(f, l1, l2, l3);

    if (s)
        s->value = value;
}

void metric_observe(struct metric *f, double value, const char *l1,
                    const char *l2, const char *l3)
{
    struct series *s = obtain(f, l1, l2, l3);

    if (!s)
        return;
    s->value += value;
    if (s->window)
        s->window[s->count % WINDOW] = value;
    s->count++;
    for (size_t i = 0; s->buckets && i < MEM_COUNT(bounds); i++) {
        if (value <= bounds[i]) {
            s->buckets[i]++;
            break;
        }
    }
}

void metric_zero(struct metric *f)
{
    const char *key = NULL;
    struct series *s;

    while ((s = map_next(f->series, &key)))
        s->value = 0;
}

double metric_value(const struct metric *f, const char *l1, const char *l2,
                    const char *l3)
{
    const char *const values[METRIC_LABELS] = {l1, l2, l3};
    char key[KEY_MAX];

    make_key(f, values, key);
    const struct series *s = map_get(f->series, key);
    if (!s)
        return 0;
    return f->type == METRIC_HISTOGRAM || f->type == METRIC_SUMMARY
               ? (double) s->count
               : s->value;
}

static void print_escaped(struct buf *out, const char *s, bool quotes)
{
    for (; *s; s++) {
        if (*s == '\n')
            buf_puts(out, "\\n");
        else if (*s == '\\')
            buf_puts(out, "\\\\");
        else if (*s == '"' && quotes)
            buf_puts(out, "\\\"");
        else
            buf_putc(out, *s);
    }
}

static void print_label(struct buf *out, const char *name, const char *value,
                        bool first)
{
    buf_printf(out, "%c%s=\"", first ? '{' : ',', name);
    print_escaped(out, value, true);
    buf_putc(out, '"');
}

/* name[suffix]{labels, extra="value"} number; extra may be NULL. */
static void print_sample(struct buf *out, const struct metric *f,
                         const struct series *s, const char *suffix,
                         const char *extra, const char *extra_value, double v)
{
    char number[TEXT_F64_SIZE];
    bool first = true;

    buf_printf(out, "%s%s", f->name, suffix);
    for (size_t i = 0; i < f->n_labels; i++) {
        print_label(out, f->label_names[i], s->labels[i], first);
        first = false;
    }
    if (extra) {
        print_label(out, extra, extra_value, first);
        first = false;
    }
    buf_printf(out, "%s %s\n", first ? "" : "}", text_format_f64(v, number));
}

static void print_totals(struct buf *out, const struct metric *f,
                         const struct series *s)
{
    print_sample(out, f, s, "_sum", NULL, NULL, s->value);
    print_sample(out, f, s, "_count", NULL, NULL, (double) s->count);
}

static void print_histogram(struct buf *out, const struct metric *f,
                            const struct series *s)
{
    uint64_t below = 0;
    char bound[TEXT_F64_SIZE];

    for (size_t i = 0; i < MEM_COUNT(bounds); i++) {
        below += s->buckets[i];
        print_sample(out, f, s, "_bucket", "le",
                     text_format_f64(bounds[i], bound), (double) below);
    }
    print_sample(out, f, s, "_bucket", "le", "+Inf", (double) s->count);
    print_totals(out, f, s);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a;
    double y = *(const double *) b;

    return (x > y) - (x < y);
}

static void print_summary(struct buf *out, const struct metric *f,
                          const struct series *s)
{
    size_t n = s->count < WINDOW ? (size_t) s->count : WINDOW;
    CLEANUP(mem_free) double *sorted = mem_dup(s->window, n * sizeof *sorted);
    char q[TEXT_F64_SIZE];

    qsort(sorted, n, sizeof *sorted, by_value);
    for (size_t i = 0; i < MEM_COUNT(quantiles); i++) {
        /* Nearest rank. */
        size_t rank = (size_t) (quantiles[i] * (double) n + 0.999999);
        double v = n ? sorted[rank ? rank - 1 : 0] : (double) NAN;
        print_sample(out, f, s, "", "quantile",
                     text_format_f64(quantiles[i], q), v);
    }
    print_totals(out, f, s);
}

static void print_series(struct buf *out, const struct metric *f,
                         const struct series *s)
{
    switch (f->type) {
    case METRIC_HISTOGRAM:
        print_histogram(out, f, s);
        break;
    case METRIC_SUMMARY:
        print_summary(out, f, s);
        break;
    case METRIC_COUNTER:
    case METRIC_GAUGE:
        print_sample(out, f, s, "", NULL, NULL, s->value);
        break;
    }
}

void metrics_print(const struct metrics *m, struct buf *out)
{
    static const char *const types[] = {
        [METRIC_COUNTER] = "counter",
        [METRIC_GAUGE] = "gauge",
        [METRIC_HISTOGRAM] = "histogram",
        [METRIC_SUMMARY] = "summary",
    };

    for (size_t i = 0; i < m->families.n; i++) {
        const struct metric *f = m->families.v[i];
        const char *key = NULL;
        const struct series *s;
        buf_printf(out, "# HELP %s ", f->name);
        print_escaped(out, f->help, false);
        buf_printf(out, "\n# TYPE %s %s\n", f->name, types[f->type]);
        while ((s = map_next(f->series, &key)))
            print_series(out, f, s);
    }
}
