/* SPDX-License-Identifier: Apache-2.0 */

/* Child processes: input, output, ends of every kind, nothing inherited. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/io/loop.h"
#include "core/io/proc.h"
#include "tests/unit/unit.h"

struct world {
    struct loop *l;
    int results, wanted;
    struct err err;
    int exit_code, signal;
    struct buf out, errout;
    bool out_cut;
};

static int setup(void **state)
{
    struct world *w = MEM_NEW(struct world);

    w->l = loop_create(NULL);
    w->wanted = 1;
    buf_init(&w->out, 4 << 20);
    buf_init(&w->errout, 4 << 20);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    loop_destroy(w->l);
    buf_fini(&w->out);
    buf_fini(&w->errout);
    free(w);
    return 0;
}

static void on_end(void *arg, const struct proc_result *r)
{
    struct world *w = arg;

    w->err = r->err;
    w->exit_code = r->exit_code;
    w->signal = r->signal;
    w->out_cut = r->out_cut;
    buf_reset(&w->out);
    buf_append(&w->out, r->out, r->out_len);
    buf_reset(&w->errout);
    buf_append(&w->errout, r->errout, r->errout_len);
    if (++w->results == w->wanted)
        loop_stop(w->l);
}

static struct proc *sh(struct world *w, const char *script,
                       struct proc_req req)
{
    const char *argv[] = {"sh", "-c", script, "sh", NULL};

    req.argv = argv;
    return proc_start(w->l, &req, on_end, w);
}

static void run(struct world *w, const char *script, struct proc_req req)
{
    int before = w->results;

    sh(w, script, req);
    assert_int_equal(w->results, before); /* never inside the call */
    w->wanted = before + 1;
    loop_run(w->l);
}

static void input_output_and_code(void **state)
{
    struct world *w = *state;

    run(w, "read a; echo got $a; echo bad >&2; exit 7",
        (struct proc_req) {.input = "x y\n", .input_len = 4});
    assert_int_equal(w->err.class, ERR_NONE);
    assert_int_equal(w->exit_code, 7);
    assert_int_equal(w->signal, 0);
    assert_string_equal(w->out.data, "got x y\n");
    assert_string_equal(w->errout.data, "bad\n");
    run(w, "cat", (struct proc_req) {0}); /* end of file at once */
    assert_int_equal(w->exit_code, 0);
    assert_string_equal(w->out.data, "");
}

static void arguments_are_no_shell_words(void **state)
{
    struct world *w = *state;
    const char *argv[] = {"/usr/bin/printf", "%s|", "a b", "$(id)", "", NULL};
    const char *env[] = {"A=1", NULL};
    const char *show[] = {"/usr/bin/env", NULL};

    proc_start(w->l, &(struct proc_req) {.argv = argv}, on_end, w);
    loop_run(w->l);
    assert_string_equal(w->out.data, "a b|$(id)||");
    w->wanted = 2;
    proc_start(w->l, &(struct proc_req) {.argv = show, .env = env,
                                         .cwd = "/"}, on_end, w);
    loop_run(w->l);
    assert_string_equal(w->out.data, "A=1\n");
}

static void much_data_both_ways(void **state)
{
    enum { N = 2 << 20 };
    struct world *w = *state;
    CLEANUP(mem_free) char *data = mem_zalloc(N);

    memset(data, 'q', N);
    run(w, "cat", (struct proc_req) {.input = data, .input_len = N,
                                     .max_output = N});
    assert_int_equal(w->out.len, N);
    assert_false(w->out_cut);
    run(w, "cat; echo end >&2", (struct proc_req) {
            .input = data, .input_len = N, .max_output = 1000});
    assert_int_equal(w->out.len, 1000);
    assert_true(w->out_cut);
    assert_string_equal(w->errout.data, "end\n");
    run(w, "exit 3", (struct proc_req) {.input = data, .input_len = N});
    assert_int_equal(w->exit_code, 3); /* nobody read the input */
}

static void what_cannot_start_is_told(void **state)
{
    struct world *w = *state;
    const char *argv[] = {"/no/such/program", NULL};
    struct proc *p;

    p = proc_start(w->l, &(struct proc_req) {.argv = argv}, on_end, w);
    assert_int_equal(proc_pid(p), 0);
    proc_kill(p);
    loop_run(w->l);
    assert_int_equal(w->err.class, ERR_NOT_FOUND);
    assert_non_null(strstr(w->err.text, "/no/such/program"));
    assert_int_equal(w->exit_code, -1);
}

static void deadlines_kill_the_whole_session(void **state)
{
    struct world *w = *state;
    int64_t t = clock_mono_us();

    run(w, "sleep 60 & sleep 60", (struct proc_req) {.deadline_ms = 100});
    /* Less than the second that a held stream would cost. */
    assert_in_range(clock_mono_us() - t, 100000, 900000);
    assert_int_equal(w->err.class, ERR_TIMEOUT);
    assert_int_equal(w->signal, SIGKILL);
    assert_int_equal(w->exit_code, -1);
}

static void kill_now(void *arg)
{
    proc_kill(arg);
    proc_kill(arg);
}

static void a_process_can_be_killed(void **state)
{
    struct world *w = *state;
    struct proc *p = sh(w, "sleep 60", (struct proc_req) {0});

    assert_true(proc_pid(p) > 1);
    loop_timer_arm(w->l, 20000, kill_now, p);
    loop_run(w->l);
    assert_int_equal(w->err.class, ERR_CANCELLED);
    assert_int_equal(w->signal, SIGKILL);
}

static void a_held_stream_is_not_waited_for_long(void **state)
{
    struct world *w = *state;
    int64_t t = clock_mono_us();
    char *end;
    long pid;

    run(w, "sleep 20 & echo $!", (struct proc_req) {0});
    assert_in_range(clock_mono_us() - t, 1000000, 5000000);
    assert_int_equal(w->err.class, ERR_NONE);
    assert_int_equal(w->exit_code, 0);
    pid = strtol(w->out.data, &end, 10);
    assert_string_equal(end, "\n");
    kill((pid_t) pid, SIGKILL);
}

/* Descriptors that whoever runs this test left open in us. */
static int left_open(void)
{
    int n = 0;

    for (int fd = 3; fd < 1000; fd++) {
        int flags = fcntl(fd, F_GETFD);

        n += flags >= 0 && !(flags & FD_CLOEXEC);
    }
    return n;
}

static void nothing_is_inherited(void **state)
{
    struct world *w = *state;
    char want[16];
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    w->wanted = 3;
    for (int i = 0; i < 3; i++) /* the pipes of others neither */
        sh(w, "cat >/dev/null; ls /proc/self/fd | wc -l; "
              "kill -s USR1 $$; echo survived",
           (struct proc_req) {.input = "x", .input_len = 1});
    loop_run(w->l);
    snprintf(want, sizeof want, "%d\n", 4 + left_open()); /* ls opens one */
    assert_string_equal(w->out.data, want);
    /* The default action is back, so it has not survived. */
    assert_int_equal(w->signal, SIGUSR1);
    close(fd);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(input_output_and_code),
        T(arguments_are_no_shell_words),
        T(much_data_both_ways),
        T(what_cannot_start_is_told),
        T(deadlines_kill_the_whole_session),
        T(a_process_can_be_killed),
        T(a_held_stream_is_not_waited_for_long),
        T(nothing_is_inherited),
    };

    signal(SIGUSR1, SIG_IGN); /* must not reach the children */
    return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
