/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The discovery document, made once at start.
 *
 * Clients compose URLs from rootUrl, servicePath and a method's path, and
 * refuse arguments that a method does not list; a method without `response`
 * gets no `alt=json`. Schemas come from the store's tables, methods from the
 * list below, which names what routes.c serves (test_routes compares them).
 * `cdc` says what we have beyond Arvados.
 */
#include "core/apiserver/discovery.h"

#include <string.h>

#include "core/apiserver/app.h"
#include "core/apiserver/resource.h"
#include "core/base/buf.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"

enum { DOCUMENT_MAX = 1 << 20 };

enum {
    P_UUID = 1 << 0,   /* in the path */
    P_LIST = 1 << 1,   /* filters, order, ... */
    P_SELECT = 1 << 2,
    P_BODY = 1 << 3,   /* a record */
    P_SCOPES = 1 << 4
};

struct method {
    const char *name, *http, *path;
    unsigned params;
};

/* Of every resource that has them. {many} is put before the path. */
static const struct method containers[] = {
    {"list", "GET", "", P_LIST},
    {"get", "GET", "/{uuid}", P_UUID | P_SELECT},
    {"create", "POST", "", P_BODY | P_SELECT},
    {"update", "PUT", "/{uuid}", P_UUID | P_BODY | P_SELECT},
    {"delete", "DELETE", "/{uuid}", P_UUID},
    {"lock", "POST", "/{uuid}/lock", P_UUID},
    {"unlock", "POST", "/{uuid}/unlock", P_UUID},
    {"auth", "GET", "/{uuid}/auth", P_UUID},
    {"secret_mounts", "GET", "/{uuid}/secret_mounts", P_UUID},
    {"update_priority", "POST", "/{uuid}/update_priority", P_UUID},
    {"current", "GET", "/current", P_SELECT},
    {"attempt", "POST", "/{uuid}/attempt", P_UUID},
    {"revoke", "DELETE", "/{uuid}/attempt", P_UUID},
    {0}};
static const struct method requests[] = {
    {"list", "GET", "", P_LIST},
    {"get", "GET", "/{uuid}", P_UUID | P_SELECT},
    {"create", "POST", "", P_BODY | P_SELECT},
    {"update", "PUT", "/{uuid}", P_UUID | P_BODY | P_SELECT},
    {"cancel", "POST", "/{uuid}/cancel", P_UUID},
    {"container_status", "GET", "/{uuid}/container_status", P_UUID},
    {0}};
static const struct method tokens[] = {
    {"list", "GET", "", P_LIST},
    {"get", "GET", "/{uuid}", P_UUID | P_SELECT},
    {"create", "POST", "", P_BODY},
    {"create_system_auth", "POST", "/create_system_auth", P_SCOPES},
    {"current", "GET", "/current", 0},
    {"delete", "DELETE", "/{uuid}", P_UUID},
    {0}};
static const struct method collections[] = {
    {"list", "GET", "", P_LIST},
    {"get", "GET", "/{uuid}", P_UUID | P_SELECT},
    {0}};
static const struct method users[] = {
    {"current", "GET", "/current", 0},
    {"get", "GET", "/{uuid}", P_UUID},
    {0}};

static const struct {
    const char *one, *many, *model;
    const struct method *methods;
} groups[] = {
    {"container", "containers", "Container", containers},
    {"container_request", "container_requests", "ContainerRequest", requests},
    {"api_client_authorization", "api_client_authorizations",
     "ApiClientAuthorization", tokens},
    {"collection", "collections", "Collection", collections},
    {"user", "users", "User", users},
};

/* ------------------------------------------------------------- methods -- */

static void write_param(struct jsn_w *w, const char *name, const char *type,
                        const char *location, bool required)
{
    jsn_w_obj(w, name);
    jsn_w_str(w, "type", type);
    jsn_w_bool(w, "required", required);
    jsn_w_str(w, "location", location);
    jsn_w_str(w, "description", "");
    jsn_w_end_obj(w);
}

static void write_params(struct jsn_w *w, unsigned params)
{
    jsn_w_obj(w, "parameters");
    if (params & P_UUID)
        write_param(w, "uuid", "string", "path", true);
    if (params & (P_LIST | P_SELECT))
        write_param(w, "select", "array", "query", false);
    if (params & P_LIST) {
        write_param(w, "filters", "array", "query", false);
        write_param(w, "order", "array", "query", false);
        write_param(w, "limit", "integer", "query", false);
        write_param(w, "offset", "integer", "query", false);
        write_param(w, "count", "string", "query", false);
        write_param(w, "distinct", "boolean", "query", false);
        write_param(w, "include_trash", "boolean", "query", false);
    }
    if (params & P_SCOPES)
        write_param(w, "scopes", "array", "query", false);
    jsn_w_end_obj(w);
}

static void write_request(struct jsn_w *w, const char *one, const char *model)
{
    jsn_w_obj(w, "request");
    jsn_w_bool(w, "required", true);
    jsn_w_obj(w, "properties");
    jsn_w_obj(w, one);
    jsn_w_str(w, "$ref", model);
    jsn_w_end_obj(w);
    jsn_w_end_obj(w);
    jsn_w_end_obj(w);
}

static void write_method(struct jsn_w *w, const struct method *m,
                         const char *one, const char *many, const char *model)
{
    CLEANUP(mem_free) char *id = mem_printf("arvados.%s.%s", many, m->name);
    CLEANUP(mem_free) char *path = mem_printf("%s%s", many, m->path);
    CLEANUP(mem_free) char *list = mem_printf("%sList", model);

    jsn_w_obj(w, m->name);
    jsn_w_str(w, "id", id);
    jsn_w_str(w, "path", path);
    jsn_w_str(w, "httpMethod", m->http);
    jsn_w_str(w, "description", "");
    write_params(w, m->params);
    if (m->params & P_BODY)
        write_request(w, one, model);
    jsn_w_obj(w, "response");
    jsn_w_str(w, "$ref", m->params & P_LIST ? list : model);
    jsn_w_end_obj(w);
    jsn_w_arr(w, "scopes");
    jsn_w_str(w, NULL, "https://api.arvados.org/auth/arvados");
    jsn_w_end_arr(w);
    jsn_w_end_obj(w);
}

static void write_resources(struct jsn_w *w)
{
    jsn_w_obj(w, "resources");
    for (size_t i = 0; i < MEM_COUNT(groups); i++) {
        jsn_w_obj(w, groups[i].many);
        jsn_w_obj(w, "methods");
        for (const struct method *m = groups[i].methods; m->name; m++)
            write_method(w, m, groups[i].one, groups[i].many,
                         groups[i].model);
        jsn_w_end_obj(w);
        jsn_w_end_obj(w);
    }
    jsn_w_end_obj(w);
}

/* ------------------------------------------------------------- schemas -- */

static const char *type_name(const struct store_col *c)
{
    switch (c->type) {
    case STORE_STR:
        return "string";
    case STORE_I64:
        return "integer";
    case STORE_F64:
        return "float";
    case STORE_BOOL:
        return "boolean";
    case STORE_TIME:
        return "datetime";
    case STORE_JSON:
        return "Hash";
    }
    return "string";
}

static void write_type(struct jsn_w *w, const char *name, const char *type)
{
    jsn_w_obj(w, name);
    jsn_w_str(w, "type", type);
    jsn_w_end_obj(w);
}

static void write_schema(struct jsn_w *w, const struct resource *r)
{
    jsn_w_obj(w, r->model);
    jsn_w_str(w, "id", r->model);
    jsn_w_str(w, "type", "object");
    jsn_w_str(w, "uuidPrefix", r->infix);
    jsn_w_obj(w, "properties");
    write_type(w, "etag", "string");
    for (unsigned i = 0; i < store_col_count(r->table); i++) {
        const struct store_col *c = store_col(r->table, i);
        if (!(c->flags & STORE_PRIVATE))
            write_type(w, c->name, type_name(c));
    }
    jsn_w_end_obj(w);
    jsn_w_end_obj(w);
}

static void write_list_schema(struct jsn_w *w, const struct resource *r)
{
    CLEANUP(mem_free) char *name = mem_printf("%sList", r->model);

    jsn_w_obj(w, name);
    jsn_w_str(w, "id", name);
    jsn_w_str(w, "type", "object");
    jsn_w_obj(w, "properties");
    write_type(w, "kind", "string");
    jsn_w_obj(w, "items");
    jsn_w_str(w, "type", "array");
    jsn_w_obj(w, "items");
    jsn_w_str(w, "$ref", r->model);
    jsn_w_end_obj(w);
    jsn_w_end_obj(w);
    write_type(w, "offset", "integer");
    write_type(w, "limit", "integer");
    write_type(w, "items_available", "integer");
    jsn_w_end_obj(w);
    jsn_w_end_obj(w);
}

static void write_schemas(struct jsn_w *w)
{
    const struct resource *r;

    jsn_w_obj(w, "schemas");
    for (size_t i = 0; (r = resource_at(i)); i++) {
        write_schema(w, r);
        write_list_schema(w, r);
    }
    jsn_w_obj(w, "User");
    jsn_w_str(w, "id", "User");
    jsn_w_str(w, "type", "object");
    jsn_w_str(w, "uuidPrefix", "tpzed");
    jsn_w_obj(w, "properties");
    write_type(w, "uuid", "string");
    write_type(w, "username", "string");
    write_type(w, "full_name", "string");
    write_type(w, "is_admin", "boolean");
    write_type(w, "is_active", "boolean");
    jsn_w_end_obj(w);
    jsn_w_end_obj(w);
    jsn_w_end_obj(w);
}

/* ------------------------------------------------------------ document -- */

static void write_head(struct jsn_w *w, const struct app_cfg *cfg,
                       const char *url)
{
    CLEANUP(mem_free) char *root = mem_printf("%s/", url);
    CLEANUP(mem_free) char *base = mem_printf("%s/arvados/v1/", url);

    jsn_w_str(w, "kind", "discovery#restDescription");
    jsn_w_str(w, "discoveryVersion", "v1");
    jsn_w_str(w, "id", "arvados:v1");
    jsn_w_str(w, "name", "arvados");
    jsn_w_str(w, "version", "v1");
    jsn_w_str(w, "revision", "20250402");
    jsn_w_str(w, "title", "crunch-api-server");
    jsn_w_str(w, "description", "Arvados containers API");
    jsn_w_str(w, "protocol", "rest");
    jsn_w_str(w, "rootUrl", root);
    jsn_w_str(w, "servicePath", "arvados/v1/");
    jsn_w_str(w, "basePath", "/arvados/v1/");
    jsn_w_str(w, "baseUrl", base);
    jsn_w_str(w, "batchPath", "batch");
    jsn_w_str(w, "uuidPrefix", cfg->cluster_id);
    jsn_w_i64(w, "maxItemsPerResponse", cfg->max_items);
    jsn_w_i64(w, "maxRequestSize", cfg->max_body);
    jsn_w_i64(w, "defaultCollectionReplication", 1);
    jsn_w_i64(w, "blobSignatureTtl", 0);
    jsn_w_i64(w, "defaultTrashLifetime", 0);
    jsn_w_str(w, "packageVersion", "crunch-dispatch-cloud");
    jsn_w_obj(w, "remoteHosts");
    jsn_w_end_obj(w);
}

char *discovery_make(const struct app_cfg *cfg, const char *url)
{
    CLEANUP(mem_free) char *feed = mem_printf("%s/arvados/v1/feed", url);
    struct buf out;
    struct jsn_w w;

    buf_init(&out, DOCUMENT_MAX);
    jsn_w_init(&w, &out);
    jsn_w_obj(&w, NULL);
    write_head(&w, cfg, url);
    jsn_w_obj(&w, "cdc");
    jsn_w_bool(&w, "attempts", true);
    jsn_w_str(&w, "feed", feed);
    jsn_w_end_obj(&w);
    jsn_w_obj(&w, "parameters");
    write_param(&w, "alt", "string", "query", false);
    jsn_w_end_obj(&w);
    write_schemas(&w);
    write_resources(&w);
    jsn_w_end_obj(&w);
    return buf_take(&out, NULL);
}
