/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new service in three folders that are nobody else's to read:
 *
 *   DIR/api-server   config.yml (SystemRootToken, database, files), the
 *                    database with two tokens in it
 *   DIR/dispatcher   config.yml, id_ed25519: its own token, never the root's;
 *                    the API server never has the SSH key
 *   DIR/user         settings.conf for crunchctl
 *
 * Nothing that exists is touched: each folder is made with mkdir, and one that
 * is there ends it with a line. Ports that were not given are free ones, found
 * by binding; they are written down, so that they stay.
 *
 * The instance types fit this host: local VMs share its processors, so VCPUs
 * may add up to more than there are, but RAM may not.
 */
#include "core/apiserver/init.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/apiserver/ident.h"
#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/io/crypt.h"
#include "core/io/loop.h"
#include "core/io/sshkey.h"
#include "core/store/store.h"

enum { FILE_MAX = 64 * 1024 };

struct token {
    char uuid[IDENT_UUID];
    char secret[IDENT_SECRET];
    char text[IDENT_TOKEN];
};

struct init {
    const char *address;
    char dir[PATH_MAX - 64];
    char cluster[6];
    char user[IDENT_USER_NAME];
    int port, dispatch_port;
    char root[IDENT_SECRET], management[IDENT_SECRET];
    struct token dispatcher, person;
    long long ram; /* of this host, bytes */
    long cpus;
};

/* ------------------------------------------------------------- options -- */

static int set_cluster(struct init *in, const char *id, struct err *err)
{
    uint8_t random[5];

    if (!id) {
        secret_random(random, sizeof random);
        text_base36(random, sizeof random, in->cluster);
        return 0;
    }
    if (strlen(id) != 5 || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") !=
                               5)
        return err_set(err, ERR_CONFIG,
                       "a cluster id has five characters of [a-z0-9], not "
                       "'%.30s'", id);
    text_copy(in->cluster, id, sizeof in->cluster);
    return 0;
}

static int set_user(struct init *in, const char *name, struct err *err)
{
    const struct passwd *pw = name ? NULL : getpwuid(getuid());

    if (!name)
        name = pw && text_is_file_name(pw->pw_name, IDENT_USER_NAME - 1)
                   ? pw->pw_name
                   : "user";
    if (!text_is_file_name(name, IDENT_USER_NAME - 1))
        return err_set(err, ERR_CONFIG,
                       "a user's name has characters of [A-Za-z0-9._-], not "
                       "'%.60s'", name);
    text_copy(in->user, name, sizeof in->user);
    return 0;
}

/* A port that nobody listens on now. */
static int free_port(const char *address, int *ret, struct err *err)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof a;
    CLEANUP(mem_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC,
                                       0);

    if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
        return err_set(err, ERR_CONFIG, "'%.60s' is no IPv4 address",
                       address);
    if (fd < 0 || bind(fd, (struct sockaddr *) &a, sizeof a) < 0 ||
        getsockname(fd, (struct sockaddr *) &a, &len) < 0)
        return err_set_errno(err, errno, "cannot bind %s", address);
    *ret = ntohs(a.sin_port);
    return 0;
}

static int set_port(const struct init *in, int64_t given, int *ret,
                    struct err *err)
{
    if (given < 0 || given > 65535)
        return err_set(err, ERR_CONFIG, "a port is a number to 65535");
    *ret = (int) given;
    return given ? 0 : free_port(in->address, ret, err);
}

static void make_token(const char *cluster, struct token *t)
{
    ident_uuid(cluster, "gj3su", t->uuid);
    ident_secret(t->secret);
    ident_token(t->uuid, t->secret, t->text);
}

static int prepare(struct init *in, const struct init_opts *opts,
                   struct err *err)
{
    in->address = opts->address ? opts->address : "127.0.0.1";
    in->ram = (long long) sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    in->cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (set_cluster(in, opts->cluster_id, err) < 0 ||
        set_user(in, opts->user, err) < 0 ||
        set_port(in, opts->port, &in->port, err) < 0)
        return -1;
    do {
        if (set_port(in, opts->dispatch_port, &in->dispatch_port, err) < 0)
            return -1;
    } while (in->dispatch_port == in->port && !opts->dispatch_port);
    ident_secret(in->root);
    ident_secret(in->management);
    make_token(in->cluster, &in->dispatcher);
    make_token(in->cluster, &in->person);
    return 0;
}

/* ------------------------------------------------------------- folders -- */

static int make_dir(const struct init *in, const char *name, struct err *err)
{
    CLEANUP(mem_free) char *path = mem_printf("%s/%s", in->dir, name);

    if (mkdir(path, 0700) == 0)
        return 0;
    if (errno == EEXIST)
        return err_set(err, ERR_CONFIG,
                       "%s is there already: init makes new services only",
                       path);
    return err_set_errno(err, errno, "cannot make %s", path);
}

static int make_dirs(struct init *in, const char *dir, struct err *err)
{
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, errno, "cannot make %s", dir);
    CLEANUP(mem_free) char *real = realpath(dir, NULL);
    if (!real)
        return err_set_errno(err, errno, "%s", dir);
    if (text_copy(in->dir, real, sizeof in->dir) >= sizeof in->dir)
        return err_set(err, ERR_CONFIG, "the folder's name is too long");
    if (strpbrk(in->dir, "\"\\\n"))
        return err_set(err, ERR_CONFIG,
                       "the folder's name has characters that YAML quotes");
    if (make_dir(in, "api-server", err) < 0 ||
        make_dir(in, "dispatcher", err) < 0)
        return -1;
    return make_dir(in, "user", err);
}

static int write_file(const struct init *in, const char *name,
                      const struct buf *text, struct err *err)
{
    CLEANUP(mem_free) char *path = mem_printf("%s/%s", in->dir, name);
    CLEANUP(mem_close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL |
                                               O_CLOEXEC, 0600);

    if (fd < 0 ||
        write(fd, text->data, text->len) != (ssize_t) text->len ||
        fsync(fd) < 0)
        return err_set_errno(err, errno, "cannot write %s", path);
    return 0;
}

/* --------------------------------------------------------------- files -- */

static void put_services(struct buf *b, const struct init *in)
{
    buf_printf(b,
               "    Services:\n"
               "      Controller:\n"
               "        ExternalURL: \"http://%s:%d/\"\n"
               "        InternalURLs: {\"http://%s:%d/\": {}}\n"
               "      DispatchCloud:\n"
               "        InternalURLs: {\"http://%s:%d/\": {}}\n",
               in->address, in->port, in->address, in->port, in->address,
               in->dispatch_port);
}

static int write_api(const struct init *in, struct err *err)
{
    CLEANUP(buf_wipe) struct buf b;

    buf_init(&b, FILE_MAX);
    buf_printf(&b,
               "# crunch-api-server; see crunch-api-server(8).\n"
               "Clusters:\n"
               "  \"%s\":\n"
               "    # May do everything. The dispatcher has a token of its\n"
               "    # own and does not need it.\n"
               "    SystemRootToken: \"%s\"\n"
               "    # For /metrics, and to ask the dispatcher for reasons.\n"
               "    ManagementToken: \"%s\"\n",
               in->cluster, in->root, in->management);
    put_services(&b, in);
    buf_printf(&b,
               "    APIServer:\n"
               "      Database: \"%s/api-server/db.sqlite\"\n"
               "      FilesDirectory: \"%s/api-server/files\"\n",
               in->dir, in->dir);
    return write_file(in, "api-server/config.yml", &b, err);
}

/* 1, 2, 4, ... VCPUs: at least up to 4, for a local VM's processors are a
 * share and not a reservation; RAM so that four of a type fit. */
static void put_types(struct buf *b, const struct init *in)
{
    const long long gib = 1LL << 30, mib = 1LL << 20;

    buf_puts(b, "    InstanceTypes:\n");
    for (int n = 1; n <= 4 || n <= in->cpus; n *= 2) {
        long long ram = n * gib, most = in->ram / 4;
        if (ram > most)
            ram = most;
        buf_printf(b,
                   "      local%d:\n"
                   "        ProviderType: local%d\n"
                   "        VCPUs: %d\n"
                   "        RAM: %lldMiB\n"
                   "        IncludedScratch: 10GiB\n"
                   "        Price: %d.%02d\n",
                   n, n, n, ram / mib, n / 20, n % 20 * 5);
        if (n >= 64)
            break;
    }
}

static void put_cloud(struct buf *b, const struct init *in)
{
    buf_printf(b,
               "    Containers:\n"
               "      DispatchPrivateKey: \"file://%s/dispatcher/id_ed25519\"\n"
               "      CloudVMs:\n"
               "        Driver: loopback\n"
               "        ImageID: host\n"
               "        APIToken: \"%s\"\n"
               "        StateDirectory: \"%s/dispatcher/state\"\n"
               "        MaxInstances: 4\n"
               "        TimeoutIdle: 5s\n",
               in->dir, in->dispatcher.text, in->dir);
}

static int write_dispatcher(const struct init *in, struct err *err)
{
    CLEANUP(buf_wipe) struct buf b, key;
    CLEANUP(buf_fini) struct buf public_line;

    buf_init(&b, FILE_MAX);
    buf_init(&key, FILE_MAX);
    buf_init(&public_line, FILE_MAX);
    buf_printf(&b,
               "# crunch-dispatch-cloud; see crunch-dispatch-cloud.yml(5).\n"
               "Clusters:\n"
               "  \"%s\":\n"
               "    ManagementToken: \"%s\"\n",
               in->cluster, in->management);
    put_services(&b, in);
    put_cloud(&b, in);
    put_types(&b, in);
    if (write_file(in, "dispatcher/config.yml", &b, err) < 0 ||
        sshkey_make("crunch-dispatch-cloud", &key, &public_line, err) < 0 ||
        write_file(in, "dispatcher/id_ed25519", &key, err) < 0)
        return -1;
    return write_file(in, "dispatcher/id_ed25519.pub", &public_line, err);
}

static int write_user(const struct init *in, struct err *err)
{
    CLEANUP(buf_wipe) struct buf b;

    buf_init(&b, FILE_MAX);
    buf_printf(&b,
               "# crunchctl: ~/.config/arvados/settings.conf, or named by\n"
               "# the environment. See crunchctl(1).\n"
               "ARVADOS_API_HOST=%s:%d\n"
               "ARVADOS_API_TOKEN=%s\n"
               "CDC_API_URL=http://%s:%d\n"
               "CDC_DISPATCH_URL=http://%s:%d\n"
               "CDC_MANAGEMENT_TOKEN=%s\n",
               in->address, in->port, in->person.text, in->address, in->port,
               in->address, in->dispatch_port, in->management);
    return write_file(in, "user/settings.conf", &b, err);
}

/* ------------------------------------------------------------ database -- */

struct job {
    struct store_job job;
    const struct init *in;
    struct loop *loop;
    struct err err;
};

static int put_token(struct store_tx *tx, const struct init *in,
                     const struct token *t, const char *name, bool admin,
                     struct err *err)
{
    CLEANUP(store_row_fini) struct store_row row = {0};
    char hash[2 * CRYPT_SHA256_LEN + 1], owner[IDENT_UUID];

    crypt_sha256_hex(t->secret, strlen(t->secret), hash);
    ident_user(in->cluster, name, owner);
    store_set_str(&row, T_uuid, t->uuid);
    store_set_str(&row, T_owner_uuid, owner);
    store_set_str(&row, T_user_name, name);
    store_set_i64(&row, T_is_admin, admin);
    store_set_str(&row, T_secret_hash, hash);
    store_set_i64(&row, T_created_at, clock_wall_us());
    store_set_i64(&row, T_modified_at, clock_wall_us());
    store_set_str(&row, T_scopes, "[\"all\"]");
    return store_insert(tx, STORE_TOKENS, &row, err);
}

static enum store_next on_run(struct store_job *job, struct store_tx *tx)
{
    struct job *j = MEM_CONTAINER(job, struct job, job);

    if (put_token(tx, j->in, &j->in->dispatcher, "dispatcher", true,
                  &j->err) < 0 ||
        put_token(tx, j->in, &j->in->person, j->in->user, false,
                  &j->err) < 0)
        return STORE_ABORT;
    return STORE_DONE;
}

static void on_done(struct store_job *job)
{
    struct job *j = MEM_CONTAINER(job, struct job, job);

    if (j->err.class == ERR_NONE)
        j->err = job->err;
    loop_stop(j->loop);
}

static int write_database(const struct init *in, struct err *err)
{
    CLEANUP(mem_free) char *path = mem_printf("%s/api-server/db.sqlite",
                                              in->dir);
    struct store_opts opts = {.path = path, .full = true, .readers = 1};
    struct job j = {.job = {.run = on_run, .done = on_done}, .in = in};
    struct store *st = NULL;

    if (!(j.loop = loop_create(err)))
        return -1;
    if (store_open(j.loop, &opts, &st, err) < 0 ||
        store_submit(st, &j.job, STORE_WRITE, err) < 0) {
        j.err = *err;
    } else {
        loop_run(j.loop);
    }
    store_close(st);
    loop_destroy(j.loop);
    *err = j.err;
    return err->class == ERR_NONE ? 0 : -1;
}

int init_run(const struct init_opts *opts, struct err *err)
{
    struct init in = {0};

    if (prepare(&in, opts, err) < 0 ||
        make_dirs(&in, opts->dir, err) < 0 || write_api(&in, err) < 0 ||
        write_dispatcher(&in, err) < 0 || write_user(&in, err) < 0 ||
        write_database(&in, err) < 0)
        return -1;
    printf("cluster %s is ready in %s\n\n"
           "  crunch-api-server -config %s/api-server/config.yml\n"
           "  crunch-dispatch-cloud -config %s/dispatcher/config.yml\n"
           "  %s/user/settings.conf   for crunchctl (user %s)\n",
           in.cluster, in.dir, in.dir, in.dir, in.dir, in.user);
    explicit_bzero(&in, sizeof in);
    return 0;
}
