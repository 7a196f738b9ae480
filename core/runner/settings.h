/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_SETTINGS_H
#define CORE_RUNNER_SETTINGS_H

/*
 * What the dispatcher sends on standard input: the JSON object of Arvados'
 * crunch-run, of which `Env` is used, and an object of ours.
 *
 *   {"Env": {"ARVADOS_API_HOST": "...", "ARVADOS_API_TOKEN": "...",
 *            "ARVADOS_API_HOST_INSECURE": "1",
 *            "InstanceType": "{\"VCPUs\":2,\"RAM\":...,\"Price\":0.1}"},
 *    "CDC": {"APIURL": "http://127.0.0.1:8000", "CABundle": "",
 *            "Attempt": 3}}
 *
 * The token is an attempt token. Attempt is its number and goes into the lock
 * file; absent, the record's is used. Other members are ignored.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/runner/http.h"

struct err;

enum { SETTINGS_MAX = 1024 * 1024 };

struct settings {
    char *token;     /* secret */
    char *api_url;   /* as given */
    struct http_url url;
    char *api_host;  /* NULL = not given */
    bool insecure;
    int64_t attempt; /* 0 = not given */

    /* of the instance; 0 = unknown */
    double price; /* per hour */
    int64_t vcpus, ram;
};

int settings_parse(const char *text, size_t n, struct settings *ret,
                 struct err *err);
/* Read descriptor fd to its end, then parse. */
int settings_read(int fd, struct settings *ret, struct err *err);
void settings_fini(struct settings *c);

/* Money for so many seconds: the share of the instance is the larger of
 * those of its VCPUs and of its RAM, at most 1; 0 when the price or the
 * instance's size is unknown. Pure. */
double settings_cost(const struct settings *c, double seconds, int64_t vcpus,
                   int64_t ram);

#endif
