/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BASE_TEXT_H
#define CORE_BASE_TEXT_H

/*
 * Small texts: durations, sizes, identifiers, times, quoting.
 * All parsers are strict: the whole string must match, nothing is guessed;
 * ret_* parameters are untouched on failure; the error text names the input.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

enum {
    TEXT_UUID_LEN = 27,           /* ccccc-ttttt-xxxxxxxxxxxxxxx */
    TEXT_UUID_SIZE = 28,
    TEXT_TIME_SIZE = 31,          /* 2026-01-02T03:04:05.123456000Z + NUL */
};

/* Go syntax (time.ParseDuration): "10s", "1m30s", "500ms", "1.5h", "0";
 * units ns us ms s m h; other bare numbers and negatives are refused. A part
 * of a millisecond counts as a whole one, so that only "0" is none. */
int text_parse_duration(const char *s, int64_t *ret_ms, struct err *err);
/* The shortest such text: 90000 -> "1m30s". Into out, returned. */
const char *text_format_duration(int64_t ms, char *out, size_t size);

/* Bytes: an integer, or a decimal number + optional blanks + K, Ki, M, ...,
 * E, Ei + optional B (Arvados' ByteSize). */
int text_parse_size(const char *s, int64_t *ret_bytes, struct err *err);

int text_parse_i64(const char *s, int64_t *ret, struct err *err);
int text_parse_f64(const char *s, double *ret, struct err *err);

/* The shortest decimal that reads back as the same double; "NaN", "+Inf" and
 * "-Inf" as in Prometheus' text format. Into out, returned. */
enum { TEXT_F64_SIZE = 32 };
const char *text_format_f64(double v, char out[TEXT_F64_SIZE]);

/* An Arvados uuid; infix (5 chars, e.g. "dz642") may be NULL = any. */
bool text_is_uuid(const char *s, const char *infix);

/* A name of [a-z0-9_-]+, at most max characters. */
bool text_is_name(const char *s, size_t max);
/* The same with [A-Za-z0-9._-]+ and not starting with a dot. */
bool text_is_file_name(const char *s, size_t max);

/* UTC, RFC 3339, nine fraction digits and Z, as Arvados prints it. Times are
 * microseconds since the epoch. */
const char *text_format_time(int64_t us, char out[TEXT_TIME_SIZE]);
/* Any RFC 3339 time with 0..9 fraction digits and Z or an offset. */
int text_parse_time(const char *s, int64_t *ret_us, struct err *err);

/* Append s as one single-quoted POSIX shell word. */
int text_quote_shell(struct buf *b, const char *s);

/* Append s with control characters, backslash and invalid UTF-8 made visible
 * (\n, \x1b, ...), so that it cannot drive a terminal. */
int text_quote_terminal(struct buf *b, const char *s, size_t n);

/* Lower-case hex of n bytes into out (2n + 1 bytes). */
void text_hex(const void *p, size_t n, char *out);
/* n characters of [0-9a-z] out of n random bytes, plus NUL (Arvados ids). */
void text_base36(const uint8_t *random, size_t n, char *out);
/* n characters of lower-case base32 (a-z2-7) out of n random bytes + NUL. */
void text_base32(const uint8_t *random, size_t n, char *out);

/* Whole text valid UTF-8 by RFC 3629, no NUL. */
bool text_is_utf8(const char *s, size_t n);
/* How many bytes the first character of s takes, and which it is; 0 when s is
 * empty or does not start with valid UTF-8. */
size_t text_utf8_char(const char *s, size_t n, uint32_t *ret);

/* Percent-encode everything but unreserved characters (RFC 3986, 2.3). */
int text_encode_uri(struct buf *b, const char *s);
/* Decode in place ('+' stays '+' unless form); -1 on a bad escape or NUL. */
int text_decode_uri(char *s, bool form);

/* strlcpy: truncates, always terminates; returns strlen(src). */
size_t text_copy(char *dst, const char *src, size_t size);

#endif
