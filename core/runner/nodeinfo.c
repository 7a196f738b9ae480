/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few lines about the machine, for whoever later asks why a container was
 * slow or ran out of room. The names follow the peer's node-info.txt where it
 * has the same figure.
 *
 * Four system calls and no file: it is written for every container, between
 * the fork of its first process and the request to start.
 */
#include "core/runner/nodeinfo.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/runner/logs.h"

enum { TEXT_MAX = 4096 };

static int count_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

void nodeinfo_write(struct logs *l, const char *scratch_dir)
{
    CLEANUP(buf_fini) struct buf text;
    struct utsname u = {0};
    struct sysinfo si = {0};
    struct statvfs vfs = {0};

    buf_init(&text, TEXT_MAX);
    if (uname(&u) == 0)
        buf_printf(&text, "Host Information\n%s %s %s %s %s\n", u.sysname,
                   u.nodename, u.release, u.version, u.machine);
    buf_printf(&text, "CPUs usable: %d\n", count_cpus());
    if (sysinfo(&si) == 0)
        buf_printf(&text, "MemTotal: %llu kB\nMemFree: %llu kB\n",
                   (unsigned long long) si.totalram * si.mem_unit / 1024,
                   (unsigned long long) si.freeram * si.mem_unit / 1024);
    if (statvfs(scratch_dir, &vfs) == 0)
        buf_printf(&text, "Disk %s: %llu kB free of %llu kB\n", scratch_dir,
                   (unsigned long long) vfs.f_bavail * vfs.f_frsize / 1024,
                   (unsigned long long) vfs.f_blocks * vfs.f_frsize / 1024);
    logs_append(l, LOGS_NODE_INFO, text.data, text.len);
}
