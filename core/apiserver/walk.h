/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_WALK_H
#define CORE_APISERVER_WALK_H

/*
 * A walk over a folder of files, in an order that does not depend on the file
 * system: what hashing and listing have in common. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum {
    WALK_DEPTH = 32, /* folders in one another, the file included */
    WALK_NAME = 255  /* bytes of a name */
};

struct walk {
    bool open; /* each() gets a descriptor for reading, else -1 */
    bool sync; /* sync each folder after its files */
    /* dir is "" or "a/b". -1 ends the walk. */
    int (*each)(void *arg, const char *dir, const char *name, int fd,
                int64_t size, struct err *err);
    void *arg;
};

/* A folder's files in order of name, then its folders likewise. Links and
 * anything else that is neither are left out. dir stays the caller's. */
int walk_run(const struct walk *w, int dir, struct err *err);

/* n bytes that may be the name of a file or folder: not empty, not "." or
 * "..", no control characters. */
bool walk_is_name(const char *s, size_t n);

#endif
