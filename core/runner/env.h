/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RUNNER_ENV_H
#define CORE_RUNNER_ENV_H

#include <stddef.h>

struct settings;
struct err;
struct job;

/*
 * The payload's whole environment: the job's, CDC_CONTAINER_UUID, and, if auth
 * is not NULL (the record that GET containers/{uuid}/auth returned), what is
 * needed to call the API: ARVADOS_API_HOST, ARVADOS_API_HOST_INSECURE,
 * ARVADOS_API_TOKEN, CDC_API_URL. Nothing of the runner's own environment.
 * A name that the runner sets wins over the job's. NULL-terminated; free with
 * env_free, which overwrites it.
 */
char **env_build(const struct job *job, const struct settings *settings,
                 const char *auth, size_t auth_len, struct err *err);
void env_free(char **env);

#endif
