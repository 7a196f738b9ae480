/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DISPATCH_HOSTKEY_H
#define CORE_DISPATCH_HOSTKEY_H

/*
 * How far the host key that an instance offers may be trusted.
 */

#include <stdbool.h>

enum hostkey_step {
    HOSTKEY_APPROVE, /* it is the one we know */
    HOSTKEY_WRONG,   /* it is another one: never talk to this machine */
    HOSTKEY_ASK,     /* the driver can tell */
    HOSTKEY_READ,    /* read the instance secret first: no stdin, no token */
    HOSTKEY_NONE     /* nobody can tell: refuse */
};

struct hostkey_facts {
    const char *offered; /* by the machine, just now */
    const char *pinned;  /* "" = none; from the journal or an earlier session */
    const char *listed;  /* "" = none; told by the cloud */
    const char *secret;  /* instance secret, "" = none */
    bool can_verify;     /* the driver has verify_host_key and did not say
                          * UNSUPPORTED for this instance */
};

/* What to do next. Pure. */
enum hostkey_step hostkey_step(const struct hostkey_facts *f);

/* Both name the same key: type and base64 are equal, a comment is ignored. */
bool hostkey_equal(const char *a, const char *b);

/* The output of the identity command is exactly the secret. */
bool hostkey_secret_matches(const char *secret, const char *out,
                            unsigned long out_len);

#endif
