/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The payload's environment: exactly what the record says, and the few names
 * that the runner owns. Nothing of the runner's own environment gets in, nor
 * anything of the machine's: a container that needs PATH or HOME says so.
 *
 * With API access the payload gets a token of its own, the container's. It is
 * never the attempt token, which may write the container's state.
 *
 * Pure; called once, before the fork.
 */
#include "core/runner/env.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/runner/settings.h"
#include "core/runner/job.h"

enum { OWN_MAX = 5 };

/* Do both begin with the same "NAME="? */
static bool same_name(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");

    return strncmp(a, b, n + 1) == 0;
}

/* Arvados' form of a container's token: v2/uuid/secret/container. */
static int own_token(const struct job *job, const char *auth, size_t n,
                     char **ret, struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(auth, n, err);
    const char *uuid, *token;

    if (!j || jsn_str(j, "uuid", &uuid, err) < 0 ||
        jsn_str(j, "api_token", &token, err) < 0)
        return -1;
    *ret = strncmp(token, "v2/", 3) == 0
               ? mem_printf("ARVADOS_API_TOKEN=%s", token)
               : mem_printf("ARVADOS_API_TOKEN=v2/%s/%s/%s", uuid, token,
                            job->uuid);
    return 0;
}

static int own_names(const struct job *job, const struct settings *c,
                     const char *auth, size_t n, char **own, struct err *err)
{
    *own++ = mem_printf("CDC_CONTAINER_UUID=%s", job->uuid);
    if (!auth)
        return 0;
    if (own_token(job, auth, n, own++, err) < 0)
        return -1;
    *own++ = mem_printf("CDC_API_URL=%s", c->api_url);
    if (c->api_host)
        *own++ = mem_printf("ARVADOS_API_HOST=%s", c->api_host);
    if (c->insecure)
        *own++ = mem_printf("ARVADOS_API_HOST_INSECURE=1");
    return 0;
}

char **env_build(const struct job *job, const struct settings *settings,
                 const char *auth, size_t auth_len, struct err *err)
{
    char **env = mem_calloc(job->n_env + OWN_MAX + 1, sizeof *env);
    char *own[OWN_MAX + 1] = {0};
    size_t n = 0;
    int r = own_names(job, settings, auth, auth_len, own, err);

    for (size_t i = 0; i < job->n_env; i++) {
        bool ours = false;

        for (size_t k = 0; own[k]; k++)
            ours |= same_name(own[k], job->env[i]);
        if (!ours)
            env[n++] = mem_strdup(job->env[i]);
    }
    for (size_t k = 0; own[k]; k++)
        env[n++] = own[k];
    if (r == 0)
        return env;
    env_free(env);
    return NULL;
}

void env_free(char **env)
{
    for (size_t i = 0; env && env[i]; i++)
        secret_free(env[i]);
    free(env);
}
