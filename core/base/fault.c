/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named fault points for system tests.
 *
 * A test wants a program to die, stop or fail at one exact place, the nth time
 * it comes by. The points are in the shipped programs, so that what is tested
 * is what is shipped; therefore arming must not be possible for whoever can
 * merely set an environment variable. It takes a descriptor that a parent
 * opened and passed down: a pipe, or a memfd, which has no name that could be
 * opened instead.
 *
 * fault_init() runs once, before there are threads; from then on the rules are
 * constant and only the counters of passages change. Unarmed, a passage costs
 * one comparison.
 */
#include "core/base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"

enum { RULES_MAX = 64, TEXT_MAX = 4096 };

enum action { KILL, STOP, DELAY, FAIL };

struct rule {
    enum fault_point point;
    int64_t nth; /* counted from 1 */
    enum action action;
    int64_t delay_ms;
};

static struct rule rules[RULES_MAX];
static size_t n_rules; /* 0 = unarmed */
static atomic_llong passed[FAULT_COUNT];

static const char *const point_names[] = {
#define X(name, where) [FAULT_##name] = #name,
    FAULT_POINTS(X)
#undef X
};

static int parse_point(const char *s, struct rule *rule, struct err *err)
{
    for (size_t i = 0; i < FAULT_COUNT; i++) {
        if (strcmp(s, point_names[i]) == 0) {
            rule->point = (enum fault_point) i;
            return 0;
        }
    }
    return err_set(err, ERR_CONFIG, "no fault point is named '%.64s'", s);
}

static int parse_action(const char *s, struct rule *rule, struct err *err)
{
    static const char delay[] = "delay=";

    if (strcmp(s, "kill") == 0)
        rule->action = KILL;
    else if (strcmp(s, "stop") == 0)
        rule->action = STOP;
    else if (strcmp(s, "fail") == 0)
        rule->action = FAIL;
    else if (strncmp(s, delay, sizeof delay - 1) == 0) {
        rule->action = DELAY;
        return text_parse_i64(s + sizeof delay - 1, &rule->delay_ms, err);
    } else
        return err_set(err, ERR_CONFIG, "unknown fault action '%.64s'", s);
    return 0;
}

/* point:nth:action; line is changed. */
static int parse_line(char *line, struct rule *rule, struct err *err)
{
    char *nth = strchr(line, ':');
    char *action = nth ? strchr(nth + 1, ':') : NULL;

    if (!action)
        return err_set(err, ERR_CONFIG, "'%.64s' is not point:nth:action",
                       line);
    *nth++ = '\0';
    *action++ = '\0';
    if (parse_point(line, rule, err) < 0 ||
        text_parse_i64(nth, &rule->nth, err) < 0 ||
        parse_action(action, rule, err) < 0)
        return -1;
    if (rule->nth < 1)
        return err_set(err, ERR_CONFIG, "passages are counted from 1");
    return 0;
}

static int parse_rules(char *text, struct err *err)
{
    char *line;

    while ((line = strsep(&text, "\n"))) {
        if (*line == '\0')
            continue;
        if (n_rules == RULES_MAX)
            return err_set(err, ERR_CONFIG, "more than %d fault rules",
                           RULES_MAX);
        struct rule rule = {0};
        if (parse_line(line, &rule, err) < 0)
            return -1;
        rules[n_rules++] = rule;
    }
    return 0;
}

/* A file without a name (memfd) or a pipe; not what a path leads to. */
static int check_fd(int fd, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "CDC_FAULT_FD");
    bool memfd = S_ISREG(st.st_mode) && st.st_nlink == 0 &&
                 fcntl(fd, F_GET_SEALS) >= 0;
    if (!memfd && !S_ISFIFO(st.st_mode))
        return err_set(err, ERR_CONFIG,
                       "CDC_FAULT_FD is neither a pipe nor a memfd");
    return 0;
}

/* Never waits: the parent has written everything before it started us. */
static int read_rules(int fd, char *text, size_t size, struct err *err)
{
    size_t n = 0;

    lseek(fd, 0, SEEK_SET); /* fails on a pipe, and need not work there */
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (n < size - 1) {
        ssize_t got = read(fd, text + n, size - 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno != EAGAIN)
            return err_set_errno(err, errno, "CDC_FAULT_FD");
        if (got <= 0)
            break;
        n += (size_t) got;
    }
    text[n] = '\0';
    return 0;
}

int fault_init(struct err *err)
{
    const char *number = getenv("CDC_FAULT_FD");
    char text[TEXT_MAX];
    int64_t v;

    if (!number)
        return 0;
    if (text_parse_i64(number, &v, err) < 0)
        return err_prefix(err, "CDC_FAULT_FD");
    if (v <= STDERR_FILENO || v > INT32_MAX)
        return err_set(err, ERR_CONFIG, "CDC_FAULT_FD is out of range");
    CLEANUP(mem_close) int fd = (int) v;
    unsetenv("CDC_FAULT_FD");
    if (check_fd(fd, err) < 0 ||
        read_rules(fd, text, sizeof text, err) < 0 ||
        parse_rules(text, err) < 0) {
        n_rules = 0;
        return -1;
    }
    return 0;
}

static void sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000,
                            .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

static bool act(const struct rule *rule)
{
    switch (rule->action) {
    case KILL:
        kill(getpid(), SIGKILL);
        break;
    case STOP:
        kill(getpid(), SIGSTOP);
        break;
    case DELAY:
        sleep_ms(rule->delay_ms);
        break;
    case FAIL:
        return true;
    }
    return false;
}

bool fault_hit(enum fault_point point)
{
    bool fail = false;

    if (n_rules == 0)
        return false;
    long long nth = atomic_fetch_add(&passed[point], 1) + 1;
    for (size_t i = 0; i < n_rules; i++)
        if (rules[i].point == point && rules[i].nth == nth)
            fail = act(&rules[i]) || fail;
    return fail;
}
