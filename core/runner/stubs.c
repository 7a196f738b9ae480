/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Name services, switched off.
 *
 * A static glibc still loads the name service modules of the machine it runs
 * on, and those of another release crash it. Nothing here looks up a name, but
 * the libraries that are linked in could; so the functions are defined here,
 * linked first, and always fail. A test checks that no name service is left
 * in the binary.
 */
#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <stddef.h>

int getaddrinfo(const char *node, const char *service,
                const struct addrinfo *hints, struct addrinfo **res)
{
    (void) node;
    (void) service;
    (void) hints;
    *res = NULL;
    return EAI_FAIL;
}

void freeaddrinfo(struct addrinfo *res)
{
    (void) res;
}

struct hostent *gethostbyname(const char *name)
{
    (void) name;
    return NULL;
}

struct servent *getservbyname(const char *name, const char *proto)
{
    (void) name;
    (void) proto;
    return NULL;
}

struct passwd *getpwnam(const char *name)
{
    (void) name;
    errno = ENOSYS;
    return NULL;
}

struct passwd *getpwuid(uid_t uid)
{
    (void) uid;
    errno = ENOSYS;
    return NULL;
}

struct group *getgrnam(const char *name)
{
    (void) name;
    errno = ENOSYS;
    return NULL;
}
