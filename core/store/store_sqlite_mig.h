/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_STORE_STORE_SQLITE_MIG_H
#define CORE_STORE_STORE_SQLITE_MIG_H

/*
 * Migrations of the SQLite back end. Separate from store_sqlite.h so that a
 * test can run steps of its own.
 */

#include <sqlite3.h>
#include <stddef.h>

#include "core/base/err.h"

enum { MIG_TEXTS = 4 };

/* One step: SQL texts that lead from version - 1 to version. */
struct mig_step {
    int version;
    const char *sql[MIG_TEXTS];
};

/* Bring the database to the last version of the list (ascending, not empty).
 * ERR_CONFIG: it is newer, or not ours. path is for messages. */
int mig_apply(sqlite3 *db, const char *path, const struct mig_step *list,
              size_t n, struct err *err);
/* The same with our own steps, and the version they end at. */
int mig_run(sqlite3 *db, const char *path, struct err *err);
int mig_version(void);

#endif
