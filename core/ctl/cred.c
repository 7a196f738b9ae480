/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading credentials. Two sources are looked at as wholes: if the environment
 * names a server or a token, both must be there; only if it names neither is
 * the settings file asked. Mixing them would send one cluster's token to
 * another cluster's host.
 */
#include "core/ctl/cred.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/io/url.h"

enum { SETTINGS_MAX = 64 << 10 };

/* A source: a function that gives the value of a name, or NULL. */
struct source {
    const char *what;
    char *text; /* of the settings file; NULL = the environment */
};

static char *from_file(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *line = text; line && *line;) {
        const char *end = strchr(line, '\n');
        size_t len = end ? (size_t) (end - line) : strlen(line);

        if (len > n && !strncmp(line, name, n) && line[n] == '=') {
            while (len && (line[len - 1] == '\r' || line[len - 1] == ' '))
                len--;
            return mem_strndup(line + n + 1, len - n - 1);
        }
        line = end ? end + 1 : NULL;
    }
    return NULL;
}

/* Empty counts as absent. */
static char *value(const struct source *s, const char *name)
{
    char *v = s->text ? from_file(s->text, name) : mem_strdup(getenv(name));

    if (v && !*v) {
        free(v);
        v = NULL;
    }
    return v;
}

static int check_url(const char *url, struct err *err)
{
    struct url u;

    if (url_parse(url, &u, err) < 0)
        return -1;
    if (!u.tls && !url_is_loopback(&u))
        return err_set(err, ERR_CONFIG,
                       "%s: plain http would show the token to the network; "
                       "it is used for loopback addresses only", url);
    return 0;
}

/* Both or neither; -1 when there is only one. */
static int read_pair(const struct source *s, const char *url_name,
                     const char *token_name, char **url, char **token,
                     struct err *err)
{
    *token = value(s, token_name);
    if (!*url && !*token)
        return 0;
    if (!*url || !*token)
        return err_set(err, ERR_CONFIG, "%s has %s but not %s", s->what,
                       *url ? url_name : token_name,
                       *url ? token_name : url_name);
    return check_url(*url, err);
}

static int read_api(const struct source *s, struct cred *c, struct err *err)
{
    CLEANUP(mem_free) char *host = value(s, "ARVADOS_API_HOST");

    c->api_url = value(s, "CDC_API_URL");
    if (!c->api_url && host)
        c->api_url = mem_printf("https://%s", host);
    return read_pair(s, "CDC_API_URL or ARVADOS_API_HOST",
                     "ARVADOS_API_TOKEN", &c->api_url, &c->api_token, err);
}

static int read_dispatch(const struct source *s, struct cred *c,
                         struct err *err)
{
    c->dispatch_url = value(s, "CDC_DISPATCH_URL");
    return read_pair(s, "CDC_DISPATCH_URL", "CDC_MANAGEMENT_TOKEN",
                     &c->dispatch_url, &c->dispatch_token, err);
}

static char *settings_path(void)
{
    const char *home = getenv("HOME");

    return home && *home == '/'
               ? mem_printf("%s/.config/arvados/settings.conf", home)
               : NULL;
}

static int read_source(const struct source *s, struct cred *c,
                       struct err *err)
{
    if (!c->api_url && read_api(s, c, err) < 0)
        return -1;
    if (!c->dispatch_url && read_dispatch(s, c, err) < 0)
        return -1;
    return 0;
}

static int read_settings(struct cred *c, struct err *err)
{
    CLEANUP(mem_free) char *path = settings_path();
    struct source file = { path, NULL };
    struct err why = { 0 };
    int rc;

    if (!path)
        return 0;
    file.text = secret_read(path, SETTINGS_MAX, &why);
    if (!file.text) {
        if (why.class == ERR_NOT_FOUND)
            return 0;
        *err = why;
        return -1;
    }
    rc = read_source(&file, c, err);
    secret_free(file.text);
    return rc;
}

int cred_read(struct cred *ret, struct err *err)
{
    struct source env = { "the environment", NULL };
    struct cred c = { 0 };

    if (read_source(&env, &c, err) < 0)
        goto error;
    if ((!c.api_url || !c.dispatch_url) && read_settings(&c, err) < 0)
        goto error;
    if (!c.api_url) {
        err_set(err, ERR_CONFIG,
                "no API server: set CDC_API_URL (or ARVADOS_API_HOST) and "
                "ARVADOS_API_TOKEN, or write them to "
                "~/.config/arvados/settings.conf");
        goto error;
    }
    *ret = c;
    return 0;
error:
    cred_fini(&c);
    return -1;
}

void cred_fini(struct cred *c)
{
    free(c->api_url);
    secret_free(c->api_token);
    free(c->dispatch_url);
    secret_free(c->dispatch_token);
}
