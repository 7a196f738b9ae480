/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ARVADOS_API_CLIENT_H
#define CORE_ARVADOS_API_CLIENT_H

/*
 * The API port (core/port/api.h) over HTTP: requests as Arvados' own
 * dispatcher makes them, plus `attempt` and `feed` of our server. One call is
 * one request, with two exceptions: whoami also reads the discovery document,
 * and a page of API_LIST_QUEUED that continues after an item asks first for
 * the rest of that item's priority and, when there is none, for lower ones.
 *
 * The token goes to the configured host only, and appears in no message.
 */

struct api_client;
struct api_port;
struct err;
struct loop;

struct api_client_cfg {
    const char *url;       /* "https://host[:port]" or http:// */
    const char *token;     /* v1 or v2 form */
    const char *ca_bundle; /* PEM file, NULL = the system's */
    unsigned max_conns;    /* 0 = 64 */
};

/* Copies the config. ERR_CONFIG: a URL that is none, a token that cannot be
 * in a header. */
struct api_client *api_client_create(struct loop *l,
                                     const struct api_client_cfg *cfg,
                                     struct err *err);
struct api_port *api_client_port(struct api_client *a);
/* Calls under way are given up; their callbacks do not fire. NULL is fine. */
void api_client_destroy(struct api_client *a);

#endif
