/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schema versions of the SQLite back end and the steps between them.
 *
 * A database says its version in `PRAGMA user_version` and that it is ours in
 * `PRAGMA application_id`. A step is SQL text that leads from version n-1 to
 * n; opening an older database runs the missing steps, each in a transaction
 * of its own, so that a crash leaves one of the versions and never something
 * between. A newer database is refused: an older program must not guess what
 * its columns mean. A step that has been released is never edited; a change
 * is a new step. test_store.c compares the result with schema.h.
 *
 * Which index serves which question:
 *   containers_state_priority   the dispatcher's queue, most urgent first
 *   containers_state_created    pages of one state in order of age
 *   containers_created          pages of everything in order of age
 *   containers_modified         the default order of a list
 *   containers_locked_by        what a dispatcher holds
 *   containers_auth             the token that a payload uses
 *   containers_spec             equal containers, for use_existing
 *
 * Called once by store_open, on the loop thread, before any other connection.
 */
#include <stdio.h>

#include "core/base/mem.h"
#include "core/store/store_sqlite_mig.h"

enum { APPLICATION_ID = 0x43444341 }; /* "CDCA" */

static const char containers_1[] =
    "CREATE TABLE containers ("
    " uuid TEXT PRIMARY KEY NOT NULL, state TEXT NOT NULL,"
    " priority INTEGER NOT NULL, locked_by_uuid TEXT,"
    " lock_count INTEGER NOT NULL, auth_uuid TEXT,"
    " attempt INTEGER NOT NULL, attempt_uuid TEXT,"
    " created_at INTEGER NOT NULL, modified_at INTEGER NOT NULL,"
    " modified_by_user_uuid TEXT, owner_uuid TEXT NOT NULL,"
    " container_image TEXT NOT NULL, runtime_constraints TEXT NOT NULL,"
    " scheduling_parameters TEXT NOT NULL, exit_code INTEGER,"
    " started_at INTEGER, finished_at INTEGER, progress REAL,"
    " cost REAL NOT NULL, subrequests_cost REAL NOT NULL, log TEXT,"
    " output TEXT, gateway_address TEXT,"
    " interactive_session_started INTEGER NOT NULL,"
    " service INTEGER NOT NULL, runtime_user_uuid TEXT, cwd TEXT NOT NULL,"
    " output_path TEXT NOT NULL, spec_hash TEXT NOT NULL,"
    " secret_mounts_md5 TEXT, runtime_auth_scopes TEXT,"
    " output_storage_classes TEXT NOT NULL, output_properties TEXT NOT NULL,"
    " output_glob TEXT NOT NULL, published_ports TEXT NOT NULL,"
    " runtime_status TEXT NOT NULL, command TEXT NOT NULL,"
    " environment TEXT NOT NULL, mounts TEXT NOT NULL,"
    " secret_mounts TEXT NOT NULL, runtime_token TEXT) STRICT;"
    "CREATE INDEX containers_state_priority"
    " ON containers (state, priority DESC, uuid);"
    "CREATE INDEX containers_state_created"
    " ON containers (state, created_at, uuid);"
    "CREATE INDEX containers_created ON containers (created_at, uuid);"
    "CREATE INDEX containers_modified ON containers (modified_at, uuid);"
    "CREATE INDEX containers_locked_by ON containers (locked_by_uuid, uuid)"
    " WHERE locked_by_uuid IS NOT NULL;"
    "CREATE UNIQUE INDEX containers_auth ON containers (auth_uuid)"
    " WHERE auth_uuid IS NOT NULL;"
    "CREATE INDEX containers_spec ON containers (spec_hash);";

static const char requests_1[] =
    "CREATE TABLE container_requests ("
    " uuid TEXT PRIMARY KEY NOT NULL, state TEXT NOT NULL,"
    " priority INTEGER, container_uuid TEXT, owner_uuid TEXT NOT NULL,"
    " created_at INTEGER NOT NULL, modified_at INTEGER NOT NULL,"
    " modified_by_user_uuid TEXT, name TEXT, description TEXT,"
    " requesting_container_uuid TEXT, container_count INTEGER NOT NULL,"
    " container_count_max INTEGER NOT NULL, cumulative_cost REAL NOT NULL,"
    " use_existing INTEGER NOT NULL, cancelled INTEGER NOT NULL,"
    " log_uuid TEXT, output_uuid TEXT, output_name TEXT,"
    " output_ttl INTEGER NOT NULL, expires_at INTEGER, container_image TEXT,"
    " service INTEGER NOT NULL, cwd TEXT, output_path TEXT,"
    " runtime_constraints TEXT NOT NULL,"
    " scheduling_parameters TEXT NOT NULL,"
    " output_storage_classes TEXT NOT NULL, output_properties TEXT NOT NULL,"
    " output_glob TEXT NOT NULL, published_ports TEXT NOT NULL,"
    " filters TEXT, properties TEXT NOT NULL, command TEXT NOT NULL,"
    " environment TEXT NOT NULL, mounts TEXT NOT NULL,"
    " secret_mounts TEXT NOT NULL, runtime_token TEXT) STRICT;"
    "CREATE INDEX container_requests_container"
    " ON container_requests (container_uuid)"
    " WHERE container_uuid IS NOT NULL;"
    "CREATE INDEX container_requests_requesting"
    " ON container_requests (requesting_container_uuid)"
    " WHERE requesting_container_uuid IS NOT NULL;"
    "CREATE INDEX container_requests_owner"
    " ON container_requests (owner_uuid, created_at, uuid);"
    "CREATE INDEX container_requests_created"
    " ON container_requests (created_at, uuid);"
    "CREATE INDEX container_requests_modified"
    " ON container_requests (modified_at, uuid);";

static const char others_1[] =
    "CREATE TABLE api_client_authorizations ("
    " uuid TEXT PRIMARY KEY NOT NULL, owner_uuid TEXT NOT NULL,"
    " user_name TEXT NOT NULL, is_admin INTEGER NOT NULL,"
    " secret_hash TEXT NOT NULL UNIQUE, expires_at INTEGER,"
    " created_at INTEGER NOT NULL, modified_at INTEGER NOT NULL,"
    " modified_by_user_uuid TEXT, container_uuid TEXT, attempt INTEGER,"
    " scopes TEXT NOT NULL) STRICT;"
    "CREATE INDEX api_client_authorizations_owner"
    " ON api_client_authorizations (owner_uuid, created_at, uuid);"
    "CREATE INDEX api_client_authorizations_expires"
    " ON api_client_authorizations (expires_at)"
    " WHERE expires_at IS NOT NULL;"
    "CREATE TABLE collections ("
    " uuid TEXT PRIMARY KEY NOT NULL, owner_uuid TEXT NOT NULL,"
    " portable_data_hash TEXT NOT NULL, created_at INTEGER NOT NULL,"
    " modified_at INTEGER NOT NULL, modified_by_user_uuid TEXT, name TEXT,"
    " description TEXT, file_count INTEGER NOT NULL,"
    " file_size_total INTEGER NOT NULL, container_uuid TEXT NOT NULL,"
    " attempt INTEGER NOT NULL, content TEXT NOT NULL,"
    " properties TEXT NOT NULL, manifest_text TEXT NOT NULL) STRICT;"
    "CREATE INDEX collections_hash ON collections (portable_data_hash);"
    "CREATE INDEX collections_owner"
    " ON collections (owner_uuid, created_at, uuid);"
    "CREATE INDEX collections_created ON collections (created_at, uuid);"
    "CREATE INDEX collections_container"
    " ON collections (container_uuid, content);"
    "CREATE TABLE idempotency_keys (id TEXT PRIMARY KEY NOT NULL,"
    " body_hash TEXT NOT NULL, request_uuid TEXT NOT NULL,"
    " created_at INTEGER NOT NULL) STRICT;"
    "CREATE INDEX idempotency_keys_created"
    " ON idempotency_keys (created_at);"
    "CREATE TABLE meta (id TEXT PRIMARY KEY NOT NULL,"
    " value TEXT NOT NULL) STRICT;";

static const struct mig_step steps[] = {
    {1, {containers_1, requests_1, others_1}},
};

int mig_version(void)
{
    return steps[MEM_COUNT(steps) - 1].version;
}

static int exec(sqlite3 *db, const char *sql, struct err *err)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    return err_set(err, ERR_INTERNAL, "%s", sqlite3_errmsg(db));
}

static int pragma(sqlite3 *db, const char *sql, int64_t *ret, struct err *err)
{
    sqlite3_stmt *stmt;
    int rc;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return err_set(err, ERR_INTERNAL, "%s", sqlite3_errmsg(db));
    rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    if (rc == SQLITE_ROW)
        return 0;
    return err_set(err, ERR_INTERNAL, "%s", sqlite3_errmsg(db));
}

static int run_texts(sqlite3 *db, const struct mig_step *step,
                     struct err *err)
{
    char done[96];

    for (size_t i = 0; i < MIG_TEXTS && step->sql[i]; i++)
        if (exec(db, step->sql[i], err) < 0)
            return -1;
    snprintf(done, sizeof done,
             "PRAGMA user_version = %d; PRAGMA application_id = %d",
             step->version, APPLICATION_ID);
    return exec(db, done, err);
}

static int run_step(sqlite3 *db, const struct mig_step *step, struct err *err)
{
    if (exec(db, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    if (run_texts(db, step, err) == 0 && exec(db, "COMMIT", err) == 0)
        return 0;
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return err_prefix(err, "migration to version %d", step->version);
}

int mig_apply(sqlite3 *db, const char *path, const struct mig_step *list,
              size_t n, struct err *err)
{
    int64_t version, id, tables;
    int newest = list[n - 1].version;

    if (pragma(db, "PRAGMA user_version", &version, err) < 0 ||
        pragma(db, "PRAGMA application_id", &id, err) < 0 ||
        pragma(db, "SELECT count(*) FROM sqlite_schema", &tables, err) < 0)
        return err_prefix(err, "%s", path);
    if (tables > 0 && id != APPLICATION_ID)
        return err_set(err, ERR_CONFIG,
                       "%s is a database of another program", path);
    if (version > newest)
        return err_set(err, ERR_CONFIG,
                       "%s has schema version %lld, this program knows up "
                       "to %d: use a newer crunch-api-server",
                       path, (long long) version, newest);
    for (size_t i = 0; i < n; i++)
        if (list[i].version > version && run_step(db, &list[i], err) < 0)
            return err_prefix(err, "%s", path);
    return 0;
}

int mig_run(sqlite3 *db, const char *path, struct err *err)
{
    return mig_apply(db, path, steps, MEM_COUNT(steps), err);
}
