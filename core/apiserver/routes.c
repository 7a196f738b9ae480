/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The routes, and how a path finds one.
 *
 * A row says method, path, which kinds of token may use it, in which lane it
 * runs, and the handler. Everything that a token of some kind may do can be
 * read off this table: a runner's (ATTEMPT) and a payload's rights are the
 * rows that name them. Finer rights (whose container, which columns) are the
 * handlers'.
 *
 * Pure; any thread.
 */
#include "core/apiserver/routes.h"

#include <string.h>

#include "core/apiserver/handlers.h"
#include "core/apiserver/records.h"
#include "core/base/mem.h"
#include "core/base/text.h"

#define ADMIN WHO_ADMIN
#define USER (WHO_ADMIN | WHO_USER)
#define PAYLOAD (USER | WHO_PAYLOAD)
#define ANY (PAYLOAD | WHO_ATTEMPT)
#define OWN (WHO_ATTEMPT | WHO_PAYLOAD)
#define W ROUTE_WRITE
#define BYTES ROUTE_BYTES

static const struct route routes[] = {
    /* containers */
    {"GET", "containers", 0, PAYLOAD, NULL, records_list, NULL,
     STORE_CONTAINERS},
    {"POST", "containers", W, ADMIN, containers_prepare, containers_create,
     NULL, STORE_CONTAINERS},
    {"GET", "containers/current", 0, ANY, NULL, containers_current, NULL,
     STORE_CONTAINERS},
    {"GET", "containers/{}", 0, ANY, NULL, records_get, NULL,
     STORE_CONTAINERS},
    {"PUT", "containers/{}", W, ANY, containers_prepare, containers_update,
     NULL, STORE_CONTAINERS},
    {"DELETE", "containers/{}", W, ADMIN, NULL, containers_delete, NULL,
     STORE_CONTAINERS},
    {"POST", "containers/{}/lock", W, ADMIN, NULL, locks_lock, NULL,
     STORE_CONTAINERS},
    {"POST", "containers/{}/unlock", W, ADMIN, NULL, locks_unlock, NULL,
     STORE_CONTAINERS},
    {"GET", "containers/{}/auth", 0, ADMIN | WHO_ATTEMPT, NULL, locks_auth,
     NULL, STORE_CONTAINERS},
    {"GET", "containers/{}/secret_mounts", 0, OWN, NULL,
     containers_secret_mounts, NULL, STORE_CONTAINERS},
    {"POST", "containers/{}/update_priority", W, ADMIN, NULL,
     containers_update_priority, NULL, STORE_CONTAINERS},
    {"POST", "containers/{}/attempt", W, ADMIN, NULL, locks_attempt, NULL,
     STORE_CONTAINERS},
    {"DELETE", "containers/{}/attempt", W, ADMIN, NULL, locks_revoke, NULL,
     STORE_CONTAINERS},
    {"PUT", "containers/{}/log/*", BYTES, WHO_ATTEMPT, NULL, content_put_log,
     NULL, STORE_CONTAINERS},
    {"PUT", "containers/{}/output/*", BYTES, WHO_ATTEMPT, NULL,
     content_put_output, NULL, STORE_CONTAINERS},

    /* container_requests */
    {"GET", "container_requests", 0, PAYLOAD, NULL, records_list, NULL,
     STORE_REQUESTS},
    {"POST", "container_requests", W, PAYLOAD, requests_prepare_create,
     requests_create, NULL, STORE_REQUESTS},
    {"GET", "container_requests/{}", 0, PAYLOAD, NULL, records_get, NULL,
     STORE_REQUESTS},
    {"PUT", "container_requests/{}", W, PAYLOAD, requests_prepare_update,
     requests_update, NULL, STORE_REQUESTS},
    {"POST", "container_requests/{}/cancel", W, PAYLOAD, NULL,
     requests_cancel, NULL, STORE_REQUESTS},
    {"GET", "container_requests/{}/container_status", ROUTE_FINISH, PAYLOAD,
     NULL, requests_status, status_finish, STORE_REQUESTS},
    {"GET", "container_requests/{}/log", 0, PAYLOAD, NULL, content_list_log,
     NULL, STORE_REQUESTS},
    {"GET", "container_requests/{}/log/*", 0, PAYLOAD, NULL, content_get_log,
     NULL, STORE_REQUESTS},

    /* api_client_authorizations */
    {"GET", "api_client_authorizations", 0, USER, NULL, records_list, NULL,
     STORE_TOKENS},
    {"POST", "api_client_authorizations", W, USER, NULL, tokens_create, NULL,
     STORE_TOKENS},
    {"POST", "api_client_authorizations/create_system_auth", W, ADMIN, NULL,
     tokens_create_system, NULL, STORE_TOKENS},
    {"GET", "api_client_authorizations/current", 0, ANY, NULL,
     tokens_current, NULL, STORE_TOKENS},
    {"GET", "api_client_authorizations/{}", 0, USER, NULL, records_get, NULL,
     STORE_TOKENS},
    {"DELETE", "api_client_authorizations/{}", W, USER, NULL, tokens_delete,
     NULL, STORE_TOKENS},

    /* collections */
    {"GET", "collections", 0, PAYLOAD, NULL, records_list, NULL,
     STORE_COLLECTIONS},
    {"GET", "collections/{}", 0, PAYLOAD, NULL, content_collection, NULL,
     STORE_COLLECTIONS},
    {"GET", "collections/{}/files", 0, PAYLOAD, NULL, content_list_files,
     NULL, STORE_COLLECTIONS},
    {"GET", "collections/{}/files/*", 0, PAYLOAD, NULL, content_get_file,
     NULL, STORE_COLLECTIONS},

    /* users; the table only fills the field */
    {"GET", "users/current", 0, ANY, NULL, users_current, NULL,
     STORE_TOKENS},
    {"GET", "users/{}", 0, PAYLOAD, NULL, users_get, NULL, STORE_TOKENS},

    /* our own */
    {"GET", "feed", ROUTE_FINISH, ADMIN, NULL, feed_run, feed_finish,
     STORE_CONTAINERS},
};

const struct route *routes_at(size_t i)
{
    return i < MEM_COUNT(routes) ? &routes[i] : NULL;
}

static bool take_part(const char **path, char *out, size_t size)
{
    size_t n = strcspn(*path, "/");

    if (n == 0 || n >= size)
        return false;
    memcpy(out, *path, n);
    out[n] = '\0';
    *path += n;
    return true;
}

static bool matches(const char *pattern, const char *path, char *id,
                    size_t size, const char **rest)
{
    while (*pattern) {
        if (pattern[0] == '{') {
            if (!take_part(&path, id, size))
                return false;
            pattern += 2;
        } else if (pattern[0] == '*') {
            *rest = path;
            return *path != '\0';
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *path == '\0';
}

static const char *as_routed(const char *method)
{
    if (strcmp(method, "HEAD") == 0)
        return "GET";
    return strcmp(method, "PATCH") == 0 ? "PUT" : method;
}

const struct route *routes_find(const char *method, const char *path,
                                char *ret_id, size_t size,
                                const char **ret_rest, bool *ret_other)
{
    method = as_routed(method);
    *ret_other = false;
    *ret_rest = "";
    for (size_t i = 0; i < MEM_COUNT(routes); i++) {
        ret_id[0] = '\0';
        if (!matches(routes[i].path, path, ret_id, size, ret_rest))
            continue;
        if (strcmp(routes[i].method, method) == 0)
            return &routes[i];
        *ret_other = true;
    }
    return NULL;
}
