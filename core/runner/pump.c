/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving the payload's output.
 *
 * Pipes and not the files themselves are what the payload gets, because
 * programs open /dev/stderr anew ("echo message > /dev/stderr"): with a file
 * that truncates everything said before, with a pipe it does what was meant.
 *
 * Init pumps while the payload lives, since it never waits for a network; the
 * supervisor pumps once more after everybody's death, for what was in the
 * pipe when init was killed.
 */
#include "core/runner/pump.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "core/base/fdio.h"

enum { CHUNK = 64 * 1024, CHUNKS_MAX = 16 };

void pump_run(struct pump *p)
{
    static char chunk[CHUNK];

    /* Not for ever: others wait for their turn. */
    for (int i = 0; i < CHUNKS_MAX && p->from >= 0; i++) {
        ssize_t n = read(p->from, chunk, sizeof chunk);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            close(p->from);
            p->from = -1;
        } else if (fdio_write_all(p->to, chunk, (size_t) n) < 0) {
            continue; /* dropped */
        }
    }
}
