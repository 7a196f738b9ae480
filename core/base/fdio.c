/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loops around read(2) and write(2) that everybody needs: both may do less
 * than was asked, and be interrupted before they did anything.
 *
 * errno and not struct err, since the callers know what the descriptor is:
 * some fail with its name, some drop what cannot be written. No descriptor
 * here may be non-blocking: EAGAIN is a failure like any other. Any thread.
 */

#include "core/base/fdio.h"

#include <errno.h>
#include <unistd.h>

#include "core/base/buf.h"

enum { STEP = 16384 };

int fdio_write_all(int fd, const void *p, size_t n)
{
    const char *from = p;

    while (n > 0) {
        ssize_t done = write(fd, from, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        from += done;
        n -= (size_t) done;
    }
    return 0;
}

/* The end is looked for by itself, so that a buffer of exactly the right
 * maximum is large enough. */
static ssize_t read_some(int fd, struct buf *out, char *spare)
{
    size_t room = out->max - out->len;
    size_t want = room > STEP ? STEP : room;
    char *to = want > 0 ? buf_reserve(out, want) : spare;
    ssize_t n;

    do
        n = read(fd, to, want > 0 ? want : 1);
    while (n < 0 && errno == EINTR);
    if (n > 0 && want == 0) {
        errno = EFBIG;
        return -1;
    }
    if (n > 0)
        buf_add(out, (size_t) n);
    return n;
}

int fdio_read_all(int fd, struct buf *out)
{
    char spare;
    ssize_t n;

    do
        n = read_some(fd, out, &spare);
    while (n > 0);
    return n < 0 ? -1 : 0;
}
