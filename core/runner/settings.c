/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration on standard input.
 *
 * It holds the only secret of the runner. The text is read into a buffer that
 * is overwritten afterwards; the token is kept in one place and never put into
 * the environment, as the peer's program does, because /proc shows that.
 *
 * Called before the lock is taken: nobody is told "started" with a
 * configuration that cannot be used.
 */
#include "core/runner/settings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/fdio.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/secret.h"

enum { TOKEN_MAX = 1024 };

void settings_fini(struct settings *c)
{
    secret_free(c->token);
    free(c->api_url);
    free(c->api_host);
    *c = (struct settings){0};
}

/* It becomes part of a header line. */
static bool is_token(const char *s)
{
    size_t n = strlen(s);

    for (size_t i = 0; i < n; i++) {
        if (s[i] <= ' ' || s[i] > '~')
            return false;
    }
    return n > 0 && n < TOKEN_MAX;
}

static int parse_itype(const char *text, struct settings *c, struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, strlen(text), err);

    if (!j || jsn_opt_f64(j, "Price", &c->price, err) < 0 ||
        jsn_opt_i64(j, "VCPUs", &c->vcpus, err) < 0 ||
        jsn_opt_i64(j, "RAM", &c->ram, err) < 0)
        return err_prefix(err, "Env.InstanceType");
    return 0;
}

static int parse_env(const struct jsn *env, struct settings *c, struct err *err)
{
    const char *token = NULL, *host = NULL, *insecure = NULL, *itype = NULL;

    if (jsn_str(env, "ARVADOS_API_TOKEN", &token, err) < 0 ||
        jsn_opt_str(env, "ARVADOS_API_HOST", &host, err) < 0 ||
        jsn_opt_str(env, "ARVADOS_API_HOST_INSECURE", &insecure, err) < 0 ||
        jsn_opt_str(env, "InstanceType", &itype, err) < 0)
        return err_prefix(err, "Env");
    if (!is_token(token))
        return err_set(err, ERR_CONFIG, "Env.ARVADOS_API_TOKEN: not a token");
    c->token = mem_strdup(token);
    c->api_host = mem_strdup(host);
    c->insecure = insecure && *insecure;
    return itype && *itype ? parse_itype(itype, c, err) : 0;
}

static int parse_cdc(const struct jsn *cdc, struct settings *c, struct err *err)
{
    const char *url = NULL;

    if (!cdc)
        return err_set(err, ERR_CONFIG,
                       "no CDC.APIURL: this runner cannot speak to an "
                       "Arvados API server");
    if (jsn_str(cdc, "APIURL", &url, err) < 0 ||
        jsn_opt_i64(cdc, "Attempt", &c->attempt, err) < 0 ||
        http_url_parse(url, &c->url, err) < 0)
        return err_prefix(err, "CDC");
    if (c->attempt < 0)
        return err_set(err, ERR_CONFIG, "CDC.Attempt: negative");
    c->api_url = mem_strdup(url);
    return 0;
}

int settings_parse(const char *text, size_t n, struct settings *ret,
                 struct err *err)
{
    CLEANUP(jsn_cleanup) struct jsn *j = jsn_parse(text, n, err);
    struct settings c = {0};

    if (!j)
        return -1;
    if (parse_env(jsn_get(j, "Env"), &c, err) < 0 ||
        parse_cdc(jsn_get(j, "CDC"), &c, err) < 0) {
        settings_fini(&c);
        return -1;
    }
    *ret = c;
    return 0;
}

int settings_read(int fd, struct settings *ret, struct err *err)
{
    CLEANUP(buf_wipe) struct buf text;

    buf_init(&text, SETTINGS_MAX);
    if (fdio_read_all(fd, &text) < 0)
        return err_set_errno(err, errno, "standard input");
    if (settings_parse(text.data, text.len, ret, err) < 0)
        return err_prefix(err, "standard input");
    return 0;
}

static double share(int64_t part, int64_t whole)
{
    return whole > 0 && part > 0 ? (double) part / (double) whole : 0;
}

double settings_cost(const struct settings *c, double seconds, int64_t vcpus,
                   int64_t ram)
{
    double of_vcpus = share(vcpus, c->vcpus), of_ram = share(ram, c->ram);
    double larger = of_vcpus > of_ram ? of_vcpus : of_ram;

    if (larger > 1)
        larger = 1;
    if (!(c->price > 0) || !(seconds > 0) || !isfinite(c->price))
        return 0;
    return seconds * c->price / 3600 * larger;
}
