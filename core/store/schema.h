/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_STORE_SCHEMA_H
#define CORE_STORE_SCHEMA_H

/*
 * The tables of the API server, once: from these lists come the column
 * numbers that the server uses, the names and types that the back ends use,
 * the fields that a resource shows and the schemas of the discovery document.
 * Field meanings: Arvados API, "containers", "container_requests",
 * "api_client_authorizations", "collections".
 *
 * X(name, type, flags). The first column is the primary key, a text.
 *
 * types  STR; I64; F64; BOOL; TIME (microseconds since the epoch);
 *        JSON (canonical text: compact, keys sorted)
 * flags  0, or of: STORE_NULLABLE; STORE_PRIVATE (never shown, neither
 *        selectable nor filterable by a client)
 *
 * Small columns that change come first and large texts last, because a row
 * database reads a long row from its front. A table has at most
 * STORE_COLS_MAX columns. Adding one takes a migration in every back end; a
 * test compares the two.
 */

enum {
    STORE_NULLABLE = 1 << 0,
    STORE_PRIVATE = 1 << 1,
    STORE_COLS_MAX = 48
};

/*
 * attempt: number of the last attempt made, 0 = none. attempt_uuid: token of
 * the live attempt, NULL = revoked or none: every write of a runner compares
 * it inside the write transaction. spec_hash: digest of all that makes two
 * containers equal for use_existing.
 */
#define STORE_CONTAINERS_COLS(X)                                              \
    X(uuid, STR, 0)                                                           \
    X(state, STR, 0)                                                          \
    X(priority, I64, 0)                                                       \
    X(locked_by_uuid, STR, STORE_NULLABLE)                                    \
    X(lock_count, I64, 0)                                                     \
    X(auth_uuid, STR, STORE_NULLABLE)                                         \
    X(attempt, I64, 0)                                                        \
    X(attempt_uuid, STR, STORE_NULLABLE | STORE_PRIVATE)                      \
    X(created_at, TIME, 0)                                                    \
    X(modified_at, TIME, 0)                                                   \
    X(modified_by_user_uuid, STR, STORE_NULLABLE)                             \
    X(owner_uuid, STR, 0)                                                     \
    X(container_image, STR, 0)                                                \
    X(runtime_constraints, JSON, 0)                                           \
    X(scheduling_parameters, JSON, 0)                                         \
    X(exit_code, I64, STORE_NULLABLE)                                         \
    X(started_at, TIME, STORE_NULLABLE)                                       \
    X(finished_at, TIME, STORE_NULLABLE)                                      \
    X(progress, F64, STORE_NULLABLE)                                          \
    X(cost, F64, 0)                                                           \
    X(subrequests_cost, F64, 0)                                               \
    X(log, STR, STORE_NULLABLE)                                               \
    X(output, STR, STORE_NULLABLE)                                            \
    X(gateway_address, STR, STORE_NULLABLE)                                   \
    X(interactive_session_started, BOOL, 0)                                   \
    X(service, BOOL, 0)                                                       \
    X(runtime_user_uuid, STR, STORE_NULLABLE)                                 \
    X(cwd, STR, 0)                                                            \
    X(output_path, STR, 0)                                                    \
    X(spec_hash, STR, STORE_PRIVATE)                                          \
    X(secret_mounts_md5, STR, STORE_NULLABLE | STORE_PRIVATE)                 \
    X(runtime_auth_scopes, JSON, STORE_NULLABLE)                              \
    X(output_storage_classes, JSON, 0)                                        \
    X(output_properties, JSON, 0)                                             \
    X(output_glob, JSON, 0)                                                   \
    X(published_ports, JSON, 0)                                               \
    X(runtime_status, JSON, 0)                                                \
    X(command, JSON, 0)                                                       \
    X(environment, JSON, 0)                                                   \
    X(mounts, JSON, 0)                                                        \
    X(secret_mounts, JSON, STORE_PRIVATE)                                     \
    X(runtime_token, STR, STORE_NULLABLE | STORE_PRIVATE)

/* cancelled: its owner asked for the end, not only for a hold (priority 0). */
#define STORE_REQUESTS_COLS(X)                                                \
    X(uuid, STR, 0)                                                           \
    X(state, STR, 0)                                                          \
    X(priority, I64, STORE_NULLABLE)                                          \
    X(container_uuid, STR, STORE_NULLABLE)                                    \
    X(owner_uuid, STR, 0)                                                     \
    X(created_at, TIME, 0)                                                    \
    X(modified_at, TIME, 0)                                                   \
    X(modified_by_user_uuid, STR, STORE_NULLABLE)                             \
    X(name, STR, STORE_NULLABLE)                                              \
    X(description, STR, STORE_NULLABLE)                                       \
    X(requesting_container_uuid, STR, STORE_NULLABLE)                         \
    X(container_count, I64, 0)                                                \
    X(container_count_max, I64, 0)                                            \
    X(cumulative_cost, F64, 0)                                                \
    X(use_existing, BOOL, 0)                                                  \
    X(cancelled, BOOL, STORE_PRIVATE)                                         \
    X(log_uuid, STR, STORE_NULLABLE)                                          \
    X(output_uuid, STR, STORE_NULLABLE)                                       \
    X(output_name, STR, STORE_NULLABLE)                                       \
    X(output_ttl, I64, 0)                                                     \
    X(expires_at, TIME, STORE_NULLABLE)                                       \
    X(container_image, STR, STORE_NULLABLE)                                   \
    X(service, BOOL, 0)                                                       \
    X(cwd, STR, STORE_NULLABLE)                                               \
    X(output_path, STR, STORE_NULLABLE)                                       \
    X(runtime_constraints, JSON, 0)                                           \
    X(scheduling_parameters, JSON, 0)                                         \
    X(output_storage_classes, JSON, 0)                                        \
    X(output_properties, JSON, 0)                                             \
    X(output_glob, JSON, 0)                                                   \
    X(published_ports, JSON, 0)                                               \
    X(filters, JSON, STORE_NULLABLE)                                          \
    X(properties, JSON, 0)                                                    \
    X(command, JSON, 0)                                                       \
    X(environment, JSON, 0)                                                   \
    X(mounts, JSON, 0)                                                        \
    X(secret_mounts, JSON, STORE_PRIVATE)                                     \
    X(runtime_token, STR, STORE_NULLABLE | STORE_PRIVATE)

/* container_uuid, attempt: set in attempt tokens only. */
#define STORE_TOKENS_COLS(X)                                                  \
    X(uuid, STR, 0)                                                           \
    X(owner_uuid, STR, 0)                                                     \
    X(user_name, STR, 0)                                                      \
    X(is_admin, BOOL, 0)                                                      \
    X(secret_hash, STR, STORE_PRIVATE)                                        \
    X(expires_at, TIME, STORE_NULLABLE)                                       \
    X(created_at, TIME, 0)                                                    \
    X(modified_at, TIME, 0)                                                   \
    X(modified_by_user_uuid, STR, STORE_NULLABLE)                             \
    X(container_uuid, STR, STORE_NULLABLE | STORE_PRIVATE)                    \
    X(attempt, I64, STORE_NULLABLE | STORE_PRIVATE)                           \
    X(scopes, JSON, 0)

/* container_uuid and attempt say where the files lie, kind is "log" or
 * "output". */
#define STORE_COLLECTIONS_COLS(X)                                             \
    X(uuid, STR, 0)                                                           \
    X(owner_uuid, STR, 0)                                                     \
    X(portable_data_hash, STR, 0)                                             \
    X(created_at, TIME, 0)                                                    \
    X(modified_at, TIME, 0)                                                   \
    X(modified_by_user_uuid, STR, STORE_NULLABLE)                             \
    X(name, STR, STORE_NULLABLE)                                              \
    X(description, STR, STORE_NULLABLE)                                       \
    X(file_count, I64, 0)                                                     \
    X(file_size_total, I64, 0)                                                \
    X(container_uuid, STR, STORE_PRIVATE)                                     \
    X(attempt, I64, STORE_PRIVATE)                                            \
    X(content, STR, STORE_PRIVATE)                                            \
    X(properties, JSON, 0)                                                    \
    X(manifest_text, STR, 0)

/* id: owner's uuid, a slash, the Idempotency-Key. */
#define STORE_IDEMPOTENCY_COLS(X)                                             \
    X(id, STR, STORE_PRIVATE)                                                 \
    X(body_hash, STR, STORE_PRIVATE)                                          \
    X(request_uuid, STR, STORE_PRIVATE)                                       \
    X(created_at, TIME, STORE_PRIVATE)

/* One row per fact about the database itself, such as its cluster. */
#define STORE_META_COLS(X)                                                    \
    X(id, STR, STORE_PRIVATE)                                                 \
    X(value, STR, STORE_PRIVATE)

/*      enum name    name                          column prefix; columns */
#define STORE_TABLES(X)                                                       \
    X(CONTAINERS,  "containers",                C, STORE_CONTAINERS_COLS)     \
    X(REQUESTS,    "container_requests",        R, STORE_REQUESTS_COLS)       \
    X(TOKENS,      "api_client_authorizations", T, STORE_TOKENS_COLS)         \
    X(COLLECTIONS, "collections",               L, STORE_COLLECTIONS_COLS)    \
    X(IDEMPOTENCY, "idempotency_keys",          I, STORE_IDEMPOTENCY_COLS)    \
    X(META,        "meta",                      M, STORE_META_COLS)

enum store_table {
#define X(name, label, prefix, cols) STORE_##name,
    STORE_TABLES(X)
#undef X
    STORE_TABLE_COUNT
};

/* Column numbers: C_uuid, C_state, ...; R_uuid, ...; T_...; L_...; I_...;
 * M_... */
enum {
#define X(name, type, flags) C_##name,
    STORE_CONTAINERS_COLS(X)
#undef X
    C_COUNT
};
enum {
#define X(name, type, flags) R_##name,
    STORE_REQUESTS_COLS(X)
#undef X
    R_COUNT
};
enum {
#define X(name, type, flags) T_##name,
    STORE_TOKENS_COLS(X)
#undef X
    T_COUNT
};
enum {
#define X(name, type, flags) L_##name,
    STORE_COLLECTIONS_COLS(X)
#undef X
    L_COUNT
};
enum {
#define X(name, type, flags) I_##name,
    STORE_IDEMPOTENCY_COLS(X)
#undef X
    I_COUNT
};
enum {
#define X(name, type, flags) M_##name,
    STORE_META_COLS(X)
#undef X
    M_COUNT
};

enum store_type {
    STORE_STR,
    STORE_I64,
    STORE_F64,
    STORE_BOOL,
    STORE_TIME,
    STORE_JSON
};

struct store_col {
    const char *name;
    enum store_type type;
    unsigned flags;
};

const char *store_table_name(enum store_table t);
unsigned store_col_count(enum store_table t);
const struct store_col *store_col(enum store_table t, unsigned col);
/* Column of that name; -1 = none. */
int store_col_of(enum store_table t, const char *name);

#endif
