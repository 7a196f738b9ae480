/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small texts: identifiers, quoting, encodings. Numbers and durations are in
 * text_num.c, times in text_time.c.
 *
 * Everything here is pure: no locale (the <ctype.h> functions ask it, so they
 * are not used), no global state, no I/O. Quoting exists once for each reader:
 * text_quote_shell() for a POSIX shell at the other end of an SSH command,
 * text_quote_terminal() for a person's terminal, text_encode_uri() for a URL.
 *
 * Any thread.
 */
#include "core/base/text.h"

#include <string.h>

#include "core/base/buf.h"

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

bool text_is_uuid(const char *s, const char *infix)
{
    for (size_t i = 0; i < TEXT_UUID_LEN; i++) {
        bool dash = i == 5 || i == 11;
        if (dash ? s[i] != '-' : !is_lower_alnum(s[i]))
            return false;
    }
    if (s[TEXT_UUID_LEN] != '\0')
        return false;
    return !infix || (strlen(infix) == 5 && memcmp(s + 6, infix, 5) == 0);
}

bool text_is_name(const char *s, size_t max)
{
    size_t n = 0;

    for (; s[n]; n++)
        if (n == max ||
            !(is_lower_alnum(s[n]) || s[n] == '_' || s[n] == '-'))
            return false;
    return n > 0;
}

bool text_is_file_name(const char *s, size_t max)
{
    size_t n = 0;

    if (s[0] == '.')
        return false;
    for (; s[n]; n++)
        if (n == max || !(is_alnum(s[n]) || s[n] == '.' || s[n] == '_' ||
                          s[n] == '-'))
            return false;
    return n > 0;
}

/*
 * The table of well-formed byte sequences of RFC 3629, section 4, as ranges of
 * the second byte; all further bytes are 80..BF. Overlong forms, surrogates
 * and what lies beyond U+10FFFF fall outside of it.
 */
static const struct {
    unsigned char lead_min, lead_max, len, second_min, second_max;
} utf8_forms[] = {
    {0xC2, 0xDF, 2, 0x80, 0xBF},
    {0xE0, 0xE0, 3, 0xA0, 0xBF},
    {0xE1, 0xEC, 3, 0x80, 0xBF},
    {0xED, 0xED, 3, 0x80, 0x9F},
    {0xEE, 0xEF, 3, 0x80, 0xBF},
    {0xF0, 0xF0, 4, 0x90, 0xBF},
    {0xF1, 0xF3, 4, 0x80, 0xBF},
    {0xF4, 0xF4, 4, 0x80, 0x8F},
};

static size_t utf8_tail(const unsigned char *p, size_t n, size_t form,
                        uint32_t *ret)
{
    size_t len = utf8_forms[form].len;
    uint32_t cp = p[0] & (0x7Fu >> len);

    if (n < len || p[1] < utf8_forms[form].second_min ||
        p[1] > utf8_forms[form].second_max)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        cp = cp << 6 | (p[i] & 0x3Fu);
    }
    *ret = cp;
    return len;
}

size_t text_utf8_char(const char *s, size_t n, uint32_t *ret)
{
    const unsigned char *p = (const unsigned char *) s;

    if (n == 0)
        return 0;
    if (p[0] < 0x80) {
        *ret = p[0];
        return 1;
    }
    for (size_t i = 0; i < sizeof utf8_forms / sizeof utf8_forms[0]; i++)
        if (p[0] >= utf8_forms[i].lead_min && p[0] <= utf8_forms[i].lead_max)
            return utf8_tail(p, n, i, ret);
    return 0;
}

bool text_is_utf8(const char *s, size_t n)
{
    uint32_t cp;

    while (n > 0) {
        size_t len = text_utf8_char(s, n, &cp);
        if (len == 0 || cp == 0)
            return false;
        s += len;
        n -= len;
    }
    return true;
}

int text_quote_shell(struct buf *b, const char *s)
{
    buf_putc(b, '\'');
    for (; *s; s++) {
        if (*s == '\'')
            buf_puts(b, "'\\''");
        else
            buf_putc(b, *s);
    }
    return buf_putc(b, '\'');
}

static void quote_char(struct buf *b, const char *s, size_t len, uint32_t cp)
{
    switch (cp) {
    case '\n':
        buf_puts(b, "\\n");
        return;
    case '\r':
        buf_puts(b, "\\r");
        return;
    case '\t':
        buf_puts(b, "\\t");
        return;
    case '\\':
        buf_puts(b, "\\\\");
        return;
    }
    /* U+0080..U+009F are control characters too, for some terminals. */
    if (cp < 0x20 || cp == 0x7F)
        buf_printf(b, "\\x%02x", (unsigned) cp);
    else if (cp >= 0x80 && cp < 0xA0)
        buf_printf(b, "\\u%04x", (unsigned) cp);
    else
        buf_append(b, s, len);
}

int text_quote_terminal(struct buf *b, const char *s, size_t n)
{
    while (n > 0) {
        uint32_t cp = 0;
        size_t len = text_utf8_char(s, n, &cp);
        if (len == 0) {
            len = 1;
            buf_printf(b, "\\x%02x", (unsigned char) *s);
        } else {
            quote_char(b, s, len, cp);
        }
        s += len;
        n -= len;
    }
    return b->over ? -1 : 0;
}

void text_hex(const void *p, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = p;

    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * n] = '\0';
}

void text_base36(const uint8_t *random, size_t n, char *out)
{
    /* 256 is no multiple of 36: the first four digits are slightly likelier,
     * which is of no matter for identifiers that are not secret. */
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";

    for (size_t i = 0; i < n; i++)
        out[i] = digits[random[i] % 36];
    out[n] = '\0';
}

void text_base32(const uint8_t *random, size_t n, char *out)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";

    for (size_t i = 0; i < n; i++)
        out[i] = digits[random[i] % 32];
    out[n] = '\0';
}

int text_encode_uri(struct buf *b, const char *s)
{
    for (; *s; s++) {
        if (is_alnum(*s) || strchr("-._~", *s))
            buf_putc(b, *s);
        else
            buf_printf(b, "%%%02X", (unsigned char) *s);
    }
    return b->over ? -1 : 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int text_decode_uri(char *s, bool form)
{
    char *out = s;

    while (*s) {
        if (*s == '%') {
            int high = hex_digit(s[1]);
            int low = high < 0 ? -1 : hex_digit(s[2]);
            if (low < 0 || (high == 0 && low == 0))
                return -1;
            *out++ = (char) (high << 4 | low);
            s += 3;
        } else {
            *out++ = form && *s == '+' ? ' ' : *s;
            s++;
        }
    }
    *out = '\0';
    return 0;
}

size_t text_copy(char *dst, const char *src, size_t size)
{
    size_t len = strlen(src);

    if (size > 0) {
        size_t n = len < size ? len : size - 1;
        memcpy(dst, src, n);
        dst[n] = '\0';
    }
    return len;
}
