/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Glob patterns.
 *
 * Twice the same greedy walk, once over the parts of a path with `**`, once
 * over the bytes of a part with `*`: on a mismatch go back to the last star
 * and let it take one more. Going back further is never needed, so a pattern
 * full of stars costs no more than its length times that of the path.
 */
#include "core/runner/glob.h"

#include <string.h>

/* One bracket expression at p (after '['); *ret_end is behind its ']', or
 * NULL when it has none. */
static bool in_bracket(const char *p, const char *end, char c,
                       const char **ret_end)
{
    bool negated = p < end && (*p == '^' || *p == '!');
    bool found = false;
    const char *first;

    if (negated)
        p++;
    for (first = p; p < end && (*p != ']' || p == first);) {
        unsigned char low, high;

        if (*p == '\\' && p + 1 < end)
            p++;
        low = high = (unsigned char) *p++;
        if (p + 1 < end && *p == '-' && p[1] != ']') {
            high = (unsigned char) p[1];
            p += 2;
        }
        found |= low <= (unsigned char) c && (unsigned char) c <= high;
    }
    *ret_end = p < end ? p + 1 : NULL;
    return found != negated;
}

/* One byte of the text against the pattern's next element. */
static bool match_one(const char *p, const char *end, char c,
                      const char **ret_next)
{
    const char *after;

    *ret_next = p + 1;
    if (*p == '?')
        return true;
    if (*p == '[') {
        bool in = in_bracket(p + 1, end, c, &after);

        if (after) {
            *ret_next = after;
            return in;
        }
    }
    if (*p == '\\' && p + 1 < end) {
        *ret_next = p + 2;
        return p[1] == c;
    }
    return *p == c;
}

static bool match_part(const char *p, const char *p_end, const char *s,
                       const char *s_end)
{
    const char *star = NULL, *resume = NULL, *next;

    while (s < s_end) {
        if (p < p_end && *p == '*') {
            star = ++p;
            resume = s;
        } else if (p < p_end && match_one(p, p_end, *s, &next)) {
            p = next;
            s++;
        } else if (star) {
            p = star;
            s = ++resume;
        } else {
            return false;
        }
    }
    while (p < p_end && *p == '*')
        p++;
    return p == p_end;
}

static const char *part_end(const char *s)
{
    return s + strcspn(s, "/");
}

/* The next part, or the terminating NUL. */
static const char *skip(const char *end)
{
    return *end == '/' ? end + 1 : end;
}

static bool is_deep(const char *p, const char *end)
{
    return end - p == 2 && p[0] == '*' && p[1] == '*';
}

bool glob_match(const char *pattern, const char *path)
{
    const char *deep = NULL, *resume = NULL;

    while (*path) {
        const char *p_end = part_end(pattern), *s_end = part_end(path);

        if (is_deep(pattern, p_end)) {
            if (*p_end == '\0')
                return true; /* the last: at least one part is here */
            deep = pattern = skip(p_end);
            resume = path;
        } else if (*pattern && match_part(pattern, p_end, path, s_end)) {
            pattern = skip(p_end);
            path = skip(s_end);
        } else if (deep) {
            pattern = deep;
            path = resume = skip(part_end(resume));
        } else {
            return false;
        }
    }
    return *pattern == '\0';
}
