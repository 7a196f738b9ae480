/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers, durations and sizes out of text, strictly.
 *
 * strtol() and strtod() skip blanks, stop where they like and ask the locale
 * for the decimal point, so each parser here first checks the form itself. A
 * decimal number is read as an integer and a fraction, so that "3" times any
 * unit is exact and a result that does not fit into 63 bits is refused instead
 * of rounded.
 *
 * Durations follow Go's time.ParseDuration, sizes Arvados' ByteSize, because
 * both occur in the configuration files that are shared with Arvados.
 *
 * Pure; any thread.
 */
#include "core/base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/mem.h"

struct decimal {
    int64_t whole;
    double fraction; /* 0 <= fraction < 1 */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits with at most one point; moves *s behind them. -1: none, or too big. */
static int scan_decimal(const char **s, struct decimal *ret)
{
    const char *p = *s;
    struct decimal d = {0};
    double scale = 0.1;
    size_t digits = 0;

    for (; is_digit(*p); p++, digits++)
        if (__builtin_mul_overflow(d.whole, 10, &d.whole) ||
            __builtin_add_overflow(d.whole, *p - '0', &d.whole))
            return -1;
    if (*p == '.') {
        for (p++; is_digit(*p); p++, digits++, scale /= 10)
            d.fraction += (*p - '0') * scale;
        if (d.fraction >= 1)
            d.fraction = 0x1.fffffffffffffp-1; /* the double before 1 */
    }
    if (digits == 0)
        return -1;
    *ret = d;
    *s = p;
    return 0;
}

/* *sum += d * unit, exact in the whole part. -1: does not fit. */
static int add_scaled(int64_t *sum, const struct decimal *d, int64_t unit)
{
    int64_t part;

    if (__builtin_mul_overflow(d->whole, unit, &part) ||
        __builtin_add_overflow(*sum, part, sum))
        return -1;
    part = (int64_t) (d->fraction * (double) unit + 1e-6);
    return __builtin_add_overflow(*sum, part, sum) ? -1 : 0;
}

/* Longer units first where one is the beginning of another. */
static const struct {
    const char *name;
    int64_t ns;
} duration_units[] = {
    {"ns", 1},           {"us", 1000},
    {"\u00b5s", 1000},   {"\u03bcs", 1000},
    {"ms", 1000000},     {"s", 1000000000},
    {"m", 60000000000},  {"h", 3600000000000},
};

static int64_t scan_duration_unit(const char **s)
{
    for (size_t i = 0; i < MEM_COUNT(duration_units); i++) {
        size_t len = strlen(duration_units[i].name);
        if (strncmp(*s, duration_units[i].name, len) == 0) {
            *s += len;
            return duration_units[i].ns;
        }
    }
    return 0;
}

int text_parse_duration(const char *s, int64_t *ret_ms, struct err *err)
{
    const char *p = s;
    int64_t ns = 0;

    if (strcmp(s, "0") == 0) {
        *ret_ms = 0;
        return 0;
    }
    do {
        struct decimal d;
        if (scan_decimal(&p, &d) < 0)
            return err_set(err, ERR_INVALID,
                           "'%.64s' is no duration like 10s or 1m30s", s);
        int64_t unit = scan_duration_unit(&p);
        if (unit == 0)
            return err_set(err, ERR_INVALID,
                           "duration '%.64s' lacks a unit (ns us ms s m h)",
                           s);
        if (add_scaled(&ns, &d, unit) < 0)
            return err_set(err, ERR_INVALID, "duration '%.64s' is too long",
                           s);
    } while (*p);
    *ret_ms = ns / 1000000 + (ns % 1000000 != 0);
    return 0;
}

const char *text_format_duration(int64_t ms, char *out, size_t size)
{
    char text[64];
    size_t n = 0;
    int64_t hours = ms / 3600000;
    int64_t minutes = ms / 60000 % 60;
    int64_t seconds = ms / 1000 % 60;
    int64_t rest = ms % 1000;

    if (hours)
        n += (size_t) snprintf(text + n, sizeof text - n, "%jdh",
                               (intmax_t) hours);
    if (minutes)
        n += (size_t) snprintf(text + n, sizeof text - n, "%jdm",
                               (intmax_t) minutes);
    if (seconds)
        n += (size_t) snprintf(text + n, sizeof text - n, "%jds",
                               (intmax_t) seconds);
    if (rest)
        n += (size_t) snprintf(text + n, sizeof text - n, "%jdms",
                               (intmax_t) rest);
    text_copy(out, n ? text : "0", size);
    return out;
}

static int scan_size_unit(const char *s, int64_t *ret)
{
    static const char prefixes[] = "KMGTPE";
    int64_t unit = 1;

    while (*s == ' ' || *s == '\t')
        s++;
    const char *prefix = *s ? strchr(prefixes, *s) : NULL;
    if (prefix) {
        int64_t step = s[1] == 'i' ? 1024 : 1000;
        for (const char *p = prefixes; p <= prefix; p++)
            unit *= step;
        s += s[1] == 'i' ? 2 : 1;
    }
    if (*s == 'B')
        s++;
    if (*s)
        return -1;
    *ret = unit;
    return 0;
}

int text_parse_size(const char *s, int64_t *ret_bytes, struct err *err)
{
    const char *p = s;
    struct decimal d;
    int64_t unit;
    int64_t bytes = 0;

    if (scan_decimal(&p, &d) < 0)
        return err_set(err, ERR_INVALID,
                       "'%.64s' is no size like 1000000 or 4GiB", s);
    if (scan_size_unit(p, &unit) < 0)
        return err_set(err, ERR_INVALID,
                       "size '%.64s' has an unknown unit (K Ki M Mi ... E Ei)",
                       s);
    if (add_scaled(&bytes, &d, unit) < 0)
        return err_set(err, ERR_INVALID, "size '%.64s' is too large", s);
    *ret_bytes = bytes;
    return 0;
}

int text_parse_i64(const char *s, int64_t *ret, struct err *err)
{
    const char *p = s + (*s == '-');
    char *end;

    if (!is_digit(*p))
        return err_set(err, ERR_INVALID, "'%.64s' is no integer", s);
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (*end)
        return err_set(err, ERR_INVALID, "'%.64s' is no integer", s);
    if (errno)
        return err_set(err, ERR_INVALID, "%.64s is out of range", s);
    *ret = v;
    return 0;
}

/* [-] digits [. digits] [e [+-] digits]: no hex, no inf, no nan. */
static bool is_float(const char *s)
{
    const char *p = s + (*s == '-');
    size_t digits = 0;

    for (; is_digit(*p); p++)
        digits++;
    if (*p == '.')
        for (p++; is_digit(*p); p++)
            digits++;
    if (digits == 0)
        return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '+' || *p == '-';
        if (!is_digit(*p))
            return false;
        while (is_digit(*p))
            p++;
    }
    return *p == '\0';
}

int text_parse_f64(const char *s, double *ret, struct err *err)
{
    char *end;

    if (!is_float(s))
        return err_set(err, ERR_INVALID, "'%.64s' is no number", s);
    /* No program of the suite sets a locale: the point is a point. */
    double v = strtod(s, &end);
    if (*end || !isfinite(v))
        return err_set(err, ERR_INVALID, "%.64s is out of range", s);
    *ret = v;
    return 0;
}

const char *text_format_f64(double v, char out[TEXT_F64_SIZE])
{
    if (isnan(v) || isinf(v)) {
        text_copy(out, isnan(v) ? "NaN" : v < 0 ? "-Inf" : "+Inf",
                  TEXT_F64_SIZE);
        return out;
    }
    /* 15 digits are always exact one way, 17 the other. */
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, TEXT_F64_SIZE, "%.*g", digits, v);
        if (strtod(out, NULL) == v)
            break;
    }
    return out;
}
