/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_IDENT_H
#define CORE_APISERVER_IDENT_H

/*
 * Names and secrets that the server makes. Any thread.
 */

enum {
    IDENT_SECRET = 51,    /* 50 characters of [0-9a-z] and NUL */
    IDENT_TOKEN = 84,     /* v2/<uuid>/<secret> and NUL */
    IDENT_USER_NAME = 64, /* with NUL */
    IDENT_UUID = 28
};

void ident_secret(char out[IDENT_SECRET]);
/* A secret that can be made again: HMAC-SHA256 by key over purpose and id. */
void ident_derive(const char *key, const char *purpose, const char *id,
                  char out[IDENT_SECRET]);
void ident_token(const char *uuid, const char *secret,
                 char out[IDENT_TOKEN]);

/* <cluster>-<infix>-<15 random characters> */
void ident_uuid(const char *cluster, const char *infix,
                char out[IDENT_UUID]);
/* The same with 15 characters that follow from the name: users exist as
 * names on tokens. */
void ident_user(const char *cluster, const char *name, char out[IDENT_UUID]);
/* <cluster>-<infix>-000000000000000: the system's own. */
void ident_system(const char *cluster, const char *infix,
                  char out[IDENT_UUID]);

#endif
