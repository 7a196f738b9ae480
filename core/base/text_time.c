/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RFC 3339 times, to and from microseconds since the epoch.
 *
 * Arvados prints nine fraction digits and Z; others print what they like, so
 * reading takes any number of digits from none to nine and any offset. The
 * calendar is computed here (days from civil, the proleptic Gregorian
 * calendar), since timegm() silently corrects a 30th of February.
 *
 * Pure; any thread.
 */
#include "core/base/text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/err.h"

enum { US = 1000000, DAY_S = 86400 };

struct civil {
    int year, month, day, hour, minute, second;
    int us;
    int offset_s;
};

const char *text_format_time(int64_t us, char out[TEXT_TIME_SIZE])
{
    int64_t sec = us / US;
    int64_t frac = us % US;
    struct tm tm;

    if (frac < 0) {
        frac += US;
        sec--;
    }
    time_t t = sec;
    /* Years 1 to 9999 only: the form has no room for others. */
    if (sec < -62135596800 || sec > 253402300799 || !gmtime_r(&t, &tm)) {
        text_copy(out, "0001-01-01T00:00:00.000000000Z", TEXT_TIME_SIZE);
        return out;
    }
    char text[96]; /* as much as seven ints could take */
    snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%06d000Z",
             tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
             tm.tm_min, tm.tm_sec, (int) frac);
    text_copy(out, text, TEXT_TIME_SIZE);
    return out;
}

static bool leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && leap(year));
}

static int64_t days_since_epoch(const struct civil *c)
{
    int64_t y = c->year - 1;
    int64_t days = y * 365 + y / 4 - y / 100 + y / 400 - 719162;

    for (int m = 1; m < c->month; m++)
        days += days_in(c->year, m);
    return days + c->day - 1;
}

/* Exactly n digits at *s. */
static int scan_digits(const char **s, int n, int *ret)
{
    int v = 0;

    for (int i = 0; i < n; i++, (*s)++) {
        if (**s < '0' || **s > '9')
            return -1;
        v = v * 10 + (**s - '0');
    }
    *ret = v;
    return 0;
}

static int scan_char(const char **s, const char *any_of)
{
    if (**s == '\0' || !strchr(any_of, **s))
        return -1;
    (*s)++;
    return 0;
}

static int scan_date_time(const char **s, struct civil *c)
{
    if (scan_digits(s, 4, &c->year) < 0 || scan_char(s, "-") < 0 ||
        scan_digits(s, 2, &c->month) < 0 || scan_char(s, "-") < 0 ||
        scan_digits(s, 2, &c->day) < 0 || scan_char(s, "Tt ") < 0 ||
        scan_digits(s, 2, &c->hour) < 0 || scan_char(s, ":") < 0 ||
        scan_digits(s, 2, &c->minute) < 0 || scan_char(s, ":") < 0 ||
        scan_digits(s, 2, &c->second) < 0)
        return -1;
    return 0;
}

/* Nanoseconds are cut to microseconds. */
static int scan_fraction(const char **s, struct civil *c)
{
    int digits = 0;

    if (**s != '.')
        return 0;
    for ((*s)++; **s >= '0' && **s <= '9'; (*s)++, digits++)
        if (digits < 6)
            c->us = c->us * 10 + (**s - '0');
    if (digits == 0 || digits > 9)
        return -1;
    for (; digits < 6; digits++)
        c->us *= 10;
    return 0;
}

static int scan_zone(const char **s, struct civil *c)
{
    int hours, minutes;
    int sign = **s == '-' ? -1 : 1;

    if (scan_char(s, "Zz") == 0)
        return 0;
    if (scan_char(s, "+-") < 0 || scan_digits(s, 2, &hours) < 0 ||
        scan_char(s, ":") < 0 || scan_digits(s, 2, &minutes) < 0 ||
        hours > 23 || minutes > 59)
        return -1;
    c->offset_s = sign * (hours * 3600 + minutes * 60);
    return 0;
}

static bool is_civil(const struct civil *c)
{
    return c->year >= 1 && c->month >= 1 && c->month <= 12 && c->day >= 1 &&
           c->day <= days_in(c->year, c->month) && c->hour <= 23 &&
           c->minute <= 59 &&
           /* A leap second is read as the second after it. */
           c->second <= 60;
}

int text_parse_time(const char *s, int64_t *ret_us, struct err *err)
{
    const char *p = s;
    struct civil c = {0};

    if (scan_date_time(&p, &c) < 0 || scan_fraction(&p, &c) < 0 ||
        scan_zone(&p, &c) < 0 || *p || !is_civil(&c))
        return err_set(err, ERR_INVALID, "'%.64s' is no RFC 3339 time", s);
    int64_t sec = days_since_epoch(&c) * DAY_S + c.hour * 3600 +
                  c.minute * 60 + c.second - c.offset_s;
    *ret_us = sec * US + c.us;
    return 0;
}
