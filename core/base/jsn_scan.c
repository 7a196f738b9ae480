/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lexical pass over JSON text that comes before json-c.
 *
 * json-c 0.16 and 0.18 differ in what their strict mode takes: 0.18 refuses
 * every non-ASCII string; both take NaN, Infinity, single quotes, overlong
 * UTF-8, surrogates, duplicate keys and integers that they silently clamp. So
 * every token is checked here, against RFC 8259: blanks, punctuation, the three
 * words, numbers (integers must fit int64), strings (RFC 3629, no raw control
 * character, no lone surrogate, no U+0000, since strings are NUL-terminated
 * everywhere above). Also counted: nesting, and colons, from which jsn.c learns
 * whether json-c dropped a duplicate key.
 *
 * What json-c then sees is pure ASCII and tokens on which all its versions
 * agree; it decides whether they stand in a legal order.
 *
 * Pure; any thread.
 */
#include "core/base/jsn_scan.h"

#include <stdint.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/text.h"

struct scanner {
    const char *text;
    size_t n;
    size_t at;
    size_t depth;
    size_t members;
    bool ascii;
    struct err *err;
};

static int refuse(struct scanner *s, const char *why)
{
    return err_set(s->err, ERR_INVALID, "JSON: %s at byte %zu", why, s->at);
}

/* The byte i further on; 0 behind the end (a NUL byte is never legal). */
static char peek(const struct scanner *s, size_t i)
{
    return i < s->n - s->at ? s->text[s->at + i] : '\0';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int scan_word(struct scanner *s)
{
    static const char *const words[] = {"true", "false", "null"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t len = strlen(words[i]);
        if (s->n - s->at >= len &&
            memcmp(s->text + s->at, words[i], len) == 0) {
            s->at += len;
            return 0;
        }
    }
    return refuse(s, "unknown word");
}

static size_t count_digits(const struct scanner *s, size_t from)
{
    size_t n = 0;

    while (is_digit(peek(s, from + n)))
        n++;
    return n;
}

/* digits without a sign and without leading zeros. */
static bool fits_i64(const char *digits, size_t n, bool negative)
{
    const char *limit = negative ? "9223372036854775808"
                                 : "9223372036854775807";

    return n < 19 || (n == 19 && memcmp(digits, limit, 19) <= 0);
}

static int scan_number(struct scanner *s)
{
    bool negative = peek(s, 0) == '-';
    size_t len = negative;
    size_t digits = count_digits(s, len);
    bool integer = true;

    if (digits == 0 || (digits > 1 && peek(s, len) == '0'))
        return refuse(s, "malformed number");
    const char *first = s->text + s->at + len;
    len += digits;
    if (peek(s, len) == '.') {
        size_t n = count_digits(s, len + 1);
        if (n == 0)
            return refuse(s, "malformed number");
        len += 1 + n;
        integer = false;
    }
    if (peek(s, len) == 'e' || peek(s, len) == 'E') {
        len += peek(s, len + 1) == '+' || peek(s, len + 1) == '-' ? 2 : 1;
        size_t n = count_digits(s, len);
        if (n == 0)
            return refuse(s, "malformed number");
        len += n;
        integer = false;
    }
    if (integer && !fits_i64(first, digits, negative))
        return refuse(s, "integer out of range");
    s->at += len;
    return 0;
}

/* The four hex digits of a \u at s->at; -1 if they are not there. */
static int hex4(const struct scanner *s)
{
    int v = 0;

    if (peek(s, 0) != '\\' || peek(s, 1) != 'u')
        return -1;
    for (size_t i = 2; i < 6; i++) {
        char c = peek(s, i);
        int d = is_digit(c)              ? c - '0'
                : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                         : -1;
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

static int scan_escape(struct scanner *s)
{
    char c = peek(s, 1);

    if (c != 'u') {
        if (c == '\0' || !strchr("\"\\/bfnrt", c))
            return refuse(s, "unknown escape");
        s->at += 2;
        return 0;
    }
    int unit = hex4(s);
    if (unit < 0)
        return refuse(s, "malformed \\u escape");
    if (unit == 0)
        return refuse(s, "U+0000 in a string");
    if (unit >= 0xDC00 && unit <= 0xDFFF)
        return refuse(s, "lone surrogate");
    s->at += 6;
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        int low = hex4(s);
        if (low < 0xDC00 || low > 0xDFFF)
            return refuse(s, "lone surrogate");
        s->at += 6;
    }
    return 0;
}

static int scan_string(struct scanner *s)
{
    s->at++;
    while (s->at < s->n) {
        unsigned char c = (unsigned char) s->text[s->at];
        uint32_t cp;
        if (c == '"') {
            s->at++;
            return 0;
        }
        if (c < 0x20)
            return refuse(s, "control character in a string");
        if (c == '\\') {
            if (scan_escape(s) < 0)
                return -1;
        } else if (c < 0x80) {
            s->at++;
        } else {
            size_t len = text_utf8_char(s->text + s->at, s->n - s->at, &cp);
            if (len == 0)
                return refuse(s, "invalid UTF-8");
            s->ascii = false;
            s->at += len;
        }
    }
    return refuse(s, "string without an end");
}

static int scan_punctuation(struct scanner *s, char c)
{
    switch (c) {
    case '{':
    case '[':
        if (++s->depth > JSN_DEPTH)
            return refuse(s, "nested too deeply");
        break;
    case '}':
    case ']':
        /* One too many is json-c's to refuse. */
        s->depth -= s->depth > 0;
        break;
    case ':':
        s->members++;
        break;
    case ',':
        break;
    default:
        return refuse(s, "unexpected character");
    }
    s->at++;
    return 0;
}

static int scan_token(struct scanner *s)
{
    char c = peek(s, 0);

    if (c == '"')
        return scan_string(s);
    if (c == '-' || is_digit(c))
        return scan_number(s);
    if (c >= 'a' && c <= 'z')
        return scan_word(s);
    return scan_punctuation(s, c);
}

int jsn_scan(const char *text, size_t n, struct jsn_scan *ret,
             struct err *err)
{
    struct scanner s = {.text = text, .n = n, .ascii = true, .err = err};
    size_t start = n;
    size_t end = n;

    while (s.at < n) {
        if (is_blank(text[s.at])) {
            s.at++;
            continue;
        }
        if (start == n)
            start = s.at;
        if (scan_token(&s) < 0)
            return -1;
        end = s.at;
    }
    if (start == n)
        return refuse(&s, "no value");
    *ret = (struct jsn_scan){
        .start = start, .end = end, .members = s.members, .ascii = s.ascii};
    return 0;
}

static void escape(struct buf *out, uint32_t cp)
{
    if (cp > 0xFFFF) {
        cp -= 0x10000;
        buf_printf(out, "\\u%04x", (unsigned) (0xD800 + (cp >> 10)));
        cp = 0xDC00 + (cp & 0x3FF);
    }
    buf_printf(out, "\\u%04x", (unsigned) cp);
}

int jsn_scan_escape(const char *text, size_t n, struct buf *out)
{
    while (n > 0) {
        size_t plain = 0;
        while (plain < n && (text[plain] & 0x80) == 0)
            plain++;
        buf_append(out, text, plain);
        text += plain;
        n -= plain;
        if (n == 0)
            break;
        uint32_t cp = 0xFFFD;
        size_t len = text_utf8_char(text, n, &cp);
        if (len == 0)
            len = 1;
        escape(out, cp);
        text += len;
        n -= len;
    }
    return out->over ? -1 : 0;
}
