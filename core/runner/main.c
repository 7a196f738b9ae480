/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crunch-run: supervise one container on this machine.
 *
 * main() makes the process safe (SIGUSR2, which the peer's --list sends to every
 * pid in a lock file, must not kill it; nobody may trace it or dump its
 * memory, which holds the token), reads the command line and the
 * machine's file, and hands over.
 *
 * --detach: read the configuration, take the lock, fork. The child writes the
 * lock file, prints its line for us, and goes on alone, in a session of its
 * own, with nothing but the lock; we end when the line is out. That the
 * descriptor of the lock is shared by a fork is the protocol: the lock lives as
 * long as any copy.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/runner/cli.h"
#include "core/runner/settings.h"
#include "core/runner/host.h"
#include "core/runner/lockfile.h"
#include "core/runner/logs.h"
#include "core/runner/node.h"
#include "core/runner/run.h"

enum { USAGE = 2 };

static int complain(const struct err *err)
{
    fprintf(stderr, "crunch-run: %s\n", err->text);
    return 1;
}

/* Who we are, into the lock file, and with `out` to standard output. */
static int sign(const struct cli *cli, const struct settings *settings,
                int lock_fd, bool out, struct err *err)
{
    struct lock_info info = {
        .pid = getpid(),
        .attempt = settings->attempt,
        .start_time = lock_start_time(getpid()),
    };
    CLEANUP(buf_fini) struct buf line = {0};

    text_copy(info.uuid, cli->uuid, sizeof info.uuid);
    if (lock_write(lock_fd, &info, err) < 0)
        return -1;
    if (!out)
        return 0;
    buf_init(&line, LOCK_CONTENT_MAX);
    lock_format(&info, &line);
    if (write(STDOUT_FILENO, line.data, line.len) < 0)
        return err_set_errno(err, errno, "standard output");
    return 0;
}

static void detach_fds(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return;
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    close(null);
}

/* The child of --detach. The parent waits for a byte on `up`. */
static int run_detached(const struct cli *cli, const struct node *node,
                        struct settings *settings, int lock_fd, int up)
{
    struct err err = {0};

    setsid();
    if (sign(cli, settings, lock_fd, true, &err) < 0 || write(up, "", 1) < 0) {
        complain(&err);
        lock_remove(node->lock_dir, cli->uuid);
        return 1;
    }
    close(up);
    detach_fds();
    logs_echo(false);
    return run_container(cli, node, settings, lock_fd);
}

static int detach(const struct cli *cli, const struct node *node,
                  struct settings *settings, int lock_fd)
{
    struct err err = {0};
    int up[2];
    char byte;

    if (pipe2(up, O_CLOEXEC) < 0) {
        err_set_errno(&err, errno, "pipe");
        return complain(&err);
    }
    switch (fork()) {
    case -1:
        err_set_errno(&err, errno, "fork");
        return complain(&err);
    case 0:
        close(up[0]);
        return run_detached(cli, node, settings, lock_fd, up[1]);
    default:
        close(up[1]);
        return read(up[0], &byte, 1) == 1 ? 0 : 1;
    }
}

static int run(const struct cli *cli, const struct node *node)
{
    struct settings settings = {0};
    struct err err = {0};
    int lock_fd, code;

    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || chdir("/") < 0) {
        err_set_errno(&err, errno, "prctl");
        return complain(&err);
    }
    /* First: a caller that sends nothing must not hold a lock. */
    if (settings_read(STDIN_FILENO, &settings, &err) < 0)
        return complain(&err);
    if (lock_take(node->lock_dir, cli->uuid, &lock_fd, &err) < 0) {
        settings_fini(&settings);
        return complain(&err);
    }
    if (cli->mode == CLI_DETACH) {
        code = detach(cli, node, &settings, lock_fd);
    } else if (sign(cli, &settings, lock_fd, false, &err) < 0) {
        code = complain(&err);
    } else {
        code = run_container(cli, node, &settings, lock_fd);
    }
    settings_fini(&settings);
    return code;
}

static int host_command(const struct cli *cli)
{
    struct err err = {0};
    struct node node;
    int code;

    if (node_load(&node, &err) < 0)
        return complain(&err);
    switch (cli->mode) {
    case CLI_LIST:
        code = host_list(&node);
        break;
    case CLI_KILL:
        code = host_kill(&node, cli->uuid, cli->signum);
        break;
    case CLI_WATCH:
        code = host_watch(&node);
        break;
    default:
        code = run(cli, &node);
    }
    node_fini(&node);
    return code;
}

/* Descriptors 0, 1, 2 exist, so that nothing of ours gets their numbers. */
static void ensure_std_fds(void)
{
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            _exit(1);
    }
}

int main(int argc, char **argv)
{
    static const int ignored[] = {SIGUSR2, SIGUSR1, SIGHUP, SIGPIPE};
    struct err err = {0};
    struct cli cli;

    for (size_t i = 0; i < MEM_COUNT(ignored); i++)
        signal(ignored[i], SIG_IGN);
    ensure_std_fds();
    umask(022);
    if (cli_parse(argc, argv, &cli, &err) < 0) {
        fprintf(stderr, "crunch-run: %s\n%s", err.text, cli_usage);
        return USAGE;
    }
    switch (cli.mode) {
    case CLI_VERSION:
        puts("crunch-run " PACKAGE_VERSION);
        return 0;
    case CLI_HELP:
        fputs(cli_usage, stdout);
        return 0;
    default:
        return host_command(&cli);
    }
}
