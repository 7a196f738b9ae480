/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CTL_CRED_H
#define CORE_CTL_CRED_H

/*
 * Where the servers are and which tokens open them: from the environment,
 * else from ~/.config/arvados/settings.conf (lines NAME=value; the file must
 * be readable by its owner only). URL and token of a server always come from
 * the same source. Never from the command line.
 */

struct err;

struct cred {
    char *api_url;         /* CDC_API_URL, or https://ARVADOS_API_HOST */
    char *api_token;       /* ARVADOS_API_TOKEN */
    char *dispatch_url;    /* CDC_DISPATCH_URL, or NULL */
    char *dispatch_token;  /* CDC_MANAGEMENT_TOKEN, or NULL */
};

/* ERR_CONFIG when something is missing or wrong. Plain http is refused for
 * anything but a loopback address. */
int cred_read(struct cred *ret, struct err *err);
void cred_fini(struct cred *c);

#endif
