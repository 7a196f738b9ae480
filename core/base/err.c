/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling struct err.
 *
 * The texts come from everywhere, clouds and peers included, and end up in one
 * log line or on a terminal: control characters become blanks here, and a text
 * that is cut is cut between characters. Nothing allocates: an error must be
 * reportable when there is no memory.
 *
 * Any thread; a struct err belongs to its caller.
 */
#include "core/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const class_labels[] = {
#define X(name, label, help) [ERR_##name] = label,
    ERR_CLASSES(X)
#undef X
};

static const char *const scope_labels[] = {
#define X(name, label) [ERR_SCOPE_##name] = label,
    ERR_SCOPES(X)
#undef X
};

enum {
    N_CLASSES = sizeof class_labels / sizeof class_labels[0],
    N_SCOPES = sizeof scope_labels / sizeof scope_labels[0],
};

/* How an errno value is classed; what is not listed is INTERNAL. */
static const struct {
    int errnum;
    enum err_class class;
} errno_classes[] = {
    {EACCES, ERR_AUTH},
    {EPERM, ERR_AUTH},
    {EROFS, ERR_AUTH},
    {ENOENT, ERR_NOT_FOUND},
    {ESRCH, ERR_NOT_FOUND},
    {ENODEV, ERR_NOT_FOUND},
    {ENXIO, ERR_NOT_FOUND},
    {EEXIST, ERR_CONFLICT},
    {ENOTEMPTY, ERR_CONFLICT},
    {EBUSY, ERR_CONFLICT},
    {EADDRINUSE, ERR_CONFLICT},
    {EINVAL, ERR_INVALID},
    {ENOTDIR, ERR_INVALID},
    {EISDIR, ERR_INVALID},
    {ELOOP, ERR_INVALID},
    {EILSEQ, ERR_INVALID},
    {E2BIG, ERR_TOO_LARGE},
    {EFBIG, ERR_TOO_LARGE},
    {EMSGSIZE, ERR_TOO_LARGE},
    {EOVERFLOW, ERR_TOO_LARGE},
    {ENAMETOOLONG, ERR_TOO_LARGE},
    {ENOSYS, ERR_UNSUPPORTED},
    {EOPNOTSUPP, ERR_UNSUPPORTED},
    {EAFNOSUPPORT, ERR_UNSUPPORTED},
    {ETIMEDOUT, ERR_TIMEOUT},
    {ECANCELED, ERR_CANCELLED},
    {EAGAIN, ERR_TRANSIENT},
    {EINTR, ERR_TRANSIENT},
    {ENOMEM, ERR_TRANSIENT},
    {ENOSPC, ERR_TRANSIENT},
    {EDQUOT, ERR_TRANSIENT},
    {EMFILE, ERR_TRANSIENT},
    {ENFILE, ERR_TRANSIENT},
    {ENOBUFS, ERR_TRANSIENT},
    {EPIPE, ERR_TRANSIENT},
    {ECONNREFUSED, ERR_TRANSIENT},
    {ECONNRESET, ERR_TRANSIENT},
    {ECONNABORTED, ERR_TRANSIENT},
    {ENOTCONN, ERR_TRANSIENT},
    {ENETDOWN, ERR_TRANSIENT},
    {ENETUNREACH, ERR_TRANSIENT},
    {EHOSTDOWN, ERR_TRANSIENT},
    {EHOSTUNREACH, ERR_TRANSIENT},
};

static enum err_class class_of_errno(int errnum)
{
    for (size_t i = 0; i < sizeof errno_classes / sizeof errno_classes[0]; i++)
        if (errno_classes[i].errnum == errnum)
            return errno_classes[i].class;
    return ERR_INTERNAL;
}

const char *err_class_label(enum err_class class)
{
    return (unsigned) class < N_CLASSES ? class_labels[class] : "?";
}

const char *err_scope_label(enum err_scope scope)
{
    return (unsigned) scope < N_SCOPES ? scope_labels[scope] : "?";
}

enum err_class err_class_of(const char *label)
{
    for (unsigned i = 0; i < N_CLASSES; i++)
        if (strcmp(class_labels[i], label) == 0)
            return (enum err_class) i;
    return ERR_INTERNAL;
}

/* Drop a UTF-8 sequence that was cut off at the end of s. */
static void trim_partial(char *s)
{
    size_t len = strlen(s);
    size_t start = len;

    while (start > 0 && len - start < 3 && (s[start - 1] & 0xC0) == 0x80)
        start--;
    if (start == 0)
        return;
    unsigned char lead = (unsigned char) s[start - 1];
    size_t want = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (len - start + 1 < want)
        s[start - 1] = '\0';
}

static void tidy(char *s, bool cut)
{
    if (cut)
        trim_partial(s);
    for (; *s; s++)
        if ((unsigned char) *s < 0x20 || *s == 0x7F)
            *s = ' ';
}

__attribute__((format(printf, 2, 0))) static void
set_text(struct err *err, const char *fmt, va_list ap)
{
    int n = vsnprintf(err->text, sizeof err->text, fmt, ap);

    tidy(err->text, n >= (int) sizeof err->text);
}

int err_set(struct err *err, enum err_class class, const char *fmt, ...)
{
    struct err fresh = {.class = class};
    va_list ap;

    if (!err)
        return -1;
    /* Into a copy: an argument may point into *err. */
    va_start(ap, fmt);
    set_text(&fresh, fmt, ap);
    va_end(ap);
    *err = fresh;
    return -1;
}

int err_set_errno(struct err *err, int errnum, const char *fmt, ...)
{
    struct err fresh = {.class = class_of_errno(errnum)};
    const char *name = strerrorname_np(errnum);
    const char *desc = strerrordesc_np(errnum);
    va_list ap;

    if (!err)
        return -1;
    va_start(ap, fmt);
    set_text(&fresh, fmt, ap);
    va_end(ap);
    size_t len = strlen(fresh.text);
    int n = snprintf(fresh.text + len, sizeof fresh.text - len, ": %s",
                     desc ? desc : "unknown error");
    tidy(fresh.text, n >= (int) (sizeof fresh.text - len));
    snprintf(fresh.code, sizeof fresh.code, "%s", name ? name : "");
    *err = fresh;
    return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    char before[sizeof err->text];
    char after[sizeof err->text];
    va_list ap;

    if (!err)
        return -1;
    va_start(ap, fmt);
    vsnprintf(before, sizeof before, fmt, ap);
    va_end(ap);
    memcpy(after, err->text, sizeof after);
    int n = snprintf(err->text, sizeof err->text, "%s%s%s", before,
                     after[0] ? ": " : "", after);
    tidy(err->text, n >= (int) sizeof err->text);
    return -1;
}

void err_clear(struct err *err)
{
    if (err)
        *err = (struct err){.class = ERR_NONE};
}
