/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whole reads and writes over a pipe that is smaller than what goes through
 * it, and at the exact limit of a buffer.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/fdio.h"
#include "core/base/mem.h"
#include "tests/unit/unit.h"

enum { MUCH = 300000 };

static int pair[2];
static char bytes[MUCH];

static void *write_much(void *arg)
{
    *(int *) arg = fdio_write_all(pair[1], bytes, sizeof bytes);
    close(pair[1]);
    return NULL;
}

/* Read everything into a buffer of that maximum. */
static int pass_through(struct buf *out, size_t max)
{
    pthread_t thread;
    int written = -1, rc, saved;

    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    assert_int_equal(pthread_create(&thread, NULL, write_much, &written), 0);
    buf_init(out, max);
    rc = fdio_read_all(pair[0], out);
    saved = errno;
    close(pair[0]);
    pthread_join(thread, NULL);
    assert_true(rc < 0 || written == 0);
    errno = saved;
    return rc;
}

static void more_than_a_pipe_holds(void **state)
{
    struct buf out;

    (void) state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char) (i * 7 + i / 251);
    assert_int_equal(pass_through(&out, 2 * MUCH), 0);
    assert_int_equal(out.len, MUCH);
    assert_memory_equal(out.data, bytes, MUCH);
    buf_fini(&out);
}

static void the_maximum_is_exact(void **state)
{
    struct buf out;

    (void) state;
    assert_int_equal(pass_through(&out, MUCH), 0);
    assert_int_equal(out.len, MUCH);
    buf_fini(&out);
    assert_int_equal(pass_through(&out, MUCH - 1), -1);
    assert_int_equal(errno, EFBIG);
    buf_fini(&out);
}

static void failures_are_told(void **state)
{
    struct buf out;

    (void) state;
    buf_init(&out, 10);
    assert_int_equal(fdio_write_all(-1, "x", 1), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(fdio_read_all(-1, &out), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(fdio_write_all(-1, "", 0), 0);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_than_a_pipe_holds),
        cmocka_unit_test(the_maximum_is_exact),
        cmocka_unit_test(failures_are_told),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("fdio", tests, NULL, NULL);
}
