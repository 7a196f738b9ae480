/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.c: the shared page between a VM's first process and the host.
 *
 * Writer: the first process, one thread. Readers: any call of cdc-local-vm,
 * through the file. Texts are written before the phase that announces them.
 * It is no durable record: after a power cut it may say anything, and then
 * the process it speaks of is gone as well.
 */

#include "core/localvm/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/isolate/sysfile.h"

struct status *status_create(const char *path, struct err *err)
{
    CLEANUP(mem_close) int fd = -1;
    void *p;

    unlink(path);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct status)) < 0)
        goto error;
    p = mmap(NULL, sizeof(struct status), PROT_READ | PROT_WRITE, MAP_SHARED,
             fd, 0);
    if (p != MAP_FAILED)
        return p;
error:
    err_set_errno(err, errno, "make %s", path);
    return NULL;
}

void status_unmap(struct status *s)
{
    if (s)
        munmap(s, sizeof *s);
}

void status_read(const char *path, struct status *ret)
{
    char raw[sizeof *ret + 1];

    memset(ret, 0, sizeof *ret);
    if (sysfile_read(path, raw, sizeof raw) != (ssize_t) sizeof *ret)
        return;
    memcpy(ret, raw, sizeof *ret);
    ret->text[sizeof ret->text - 1] = '\0';
}

void status_tell(struct status *s, enum status_phase phase,
                 const struct err *why)
{
    if (why) {
        s->class = (int) why->class;
        text_copy(s->text, why->text, sizeof s->text);
    }
    s->phase = (int) phase;
}
