/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bare loop: the least that must happen for containers to run on local
 * VMs, with no decision in it.
 *
 *   bareloop CONFIG SLOTS [WAVE:COUNT ...]
 *
 * Makes SLOTS instances through the real driver, logs in, deploys the runner,
 * starts its watch; when all are warm, each instance takes the next queued
 * container: lock, attempt, start, wait for its exit, look at the record.
 * When none is left the instances are destroyed and must be gone.
 *
 * WAVE:COUNT makes a phase of the next COUNT containers: the first WAVE
 * instances take one each at the same moment, and again when the last of these
 * has ended; with a WAVE of 0 every instance takes the next as soon as its last
 * has ended, which is also what happens to those that no phase names.
 *
 * It is a tracer bullet (driver, SSH, runner and API server joined with no
 * dispatcher between them) and the floor of the benchmarks: the same payloads,
 * runner and API writes, as fast as these parts allow. One JSON object a line
 * on standard output:
 *
 *   {"phase": N, "us": T}                        all warm; a phase begins
 *   {"uuid": U, "slot": I, "lock_us": T, "exit_us": T, "state": S, "code": C}
 *   {"done_us": T, "ran": N, "left": L}
 *
 * with wall-clock microseconds. Exit 0 when every container ended and nothing
 * is left; anything unexpected ends it at once with a line and 1.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/arvados/api_client.h"
#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/jsn.h"
#include "core/base/mem.h"
#include "core/base/secret.h"
#include "core/base/text.h"
#include "core/base/vec.h"
#include "core/conf/conf.h"
#include "core/dispatch/probe.h"
#include "core/dispatch/runner_cmd.h"
#include "core/dispatcher/runner_file.h"
#include "core/io/crypt.h"
#include "core/io/loop.h"
#include "core/model/dispatch_cfg.h"
#include "core/plugin/iset.h"
#include "core/plugin/preflight.h"
#include "core/plugin/registry.h"
#include "core/port/api.h"
#include "core/port/cloud.h"
#include "core/port/exec.h"
#include "core/ssh/ssh_port.h"

enum { SLOTS_MAX = 256, PHASES_MAX = 8, DEADLINE_MS = 60000 };

struct slot {
    int no;
    char token[32], id[64], address[64];
    int port;
    char user[32];
    char host_key[512];
    struct exec_session *session;
    struct op *watch;
    char uuid[CTR_UUID_SIZE];
    int64_t attempt, lock_us, exit_us;
    bool warm, idle; /* idle: at the end, when sessions may break */
};

static struct conf *conf;
static struct dispatch_cfg cfg;
static struct loop *loop;
static struct iset *iset;
static struct cloud_port *cloud;
static struct ssh_port *ssh;
static struct exec_port *x;
static struct api_client *client;
static struct api_port *api;
static struct slot slots[SLOTS_MAX];
static int n_slots, n_warm, n_left;
static int busy; /* slots that have a container */
static struct phase {
    int wave;    /* 0 = each for itself */
    size_t left; /* containers to take */
} phases[PHASES_MAX];
static int n_phases, phase = -1;
static VEC(struct ctr) queue;
static size_t next, ran;

static _Noreturn void die(const char *what, const struct err *err)
{
    fprintf(stderr, "bareloop: %s: %s\n", what, err ? err->text : "failed");
    exit(1);
}

static void must(const struct op_result *r, const char *what)
{
    if (r->outcome != OP_DONE)
        die(what, &r->err);
}

static struct cloud_tag set_tag(void)
{
    static char key[100];

    snprintf(key, sizeof key, "%sInstanceSetID", cfg.tag_prefix);
    return (struct cloud_tag){ key, cfg.instance_set_id };
}

static void set_text(char *dst, size_t size, const char *src)
{
    if (text_copy(dst, src, size) >= size)
        die("a text is too long", NULL);
}

/* --- running containers ------------------------------------------------------------ */

static void destroy_all(void);

static void on_ended(struct slot *s);

static void on_record(void *arg, const struct api_ctr_result *r)
{
    struct slot *s = arg;

    must(&r->r, "get");
    printf("{\"uuid\":\"%s\",\"slot\":%d,\"lock_us\":%lld,\"exit_us\":%lld,"
           "\"state\":\"%s\",\"code\":%d}\n", s->uuid, s->no,
           (long long) s->lock_us, (long long) s->exit_us,
           ctr_state_name(r->c.state), r->c.exit_code);
    if (!ctr_state_final(r->c.state))
        die("an exit was seen, but the record is not final", NULL);
    ran++;
}

static void on_exit_event(struct slot *s)
{
    s->exit_us = clock_wall_us();
    api->get(api, s->uuid, DEADLINE_MS, on_record, s);
    on_ended(s);
}

static void on_started(void *arg, const struct exec_result *r)
{
    (void) arg;
    must(&r->r, "start");
    if (r->code)
        die(r->errout, NULL);
}

static void on_attempt(void *arg, const struct api_attempt_result *r)
{
    struct slot *s = arg;
    CLEANUP(buf_fini) struct buf cmd, in;
    struct exec_req req = { .deadline_ms = DEADLINE_MS };

    must(&r->r, "attempt");
    s->attempt = r->attempt;
    buf_init(&cmd, RUNNER_CMD_MAX);
    buf_init(&in, 1 << 20);
    runner_cmd_start(&cfg, s->user, s->uuid, &cmd);
    if (runner_cmd_stdin(&cfg, &cfg.itypes.v[0], r->api_token, r->attempt,
                         &in) < 0)
        die("stdin too large", NULL);
    req.command = cmd.data;
    req.input = in.data;
    req.input_len = in.len;
    x->exec(x, s->session, &req, on_started, s);
}

static void on_locked(void *arg, const struct api_ctr_result *r)
{
    struct slot *s = arg;

    must(&r->r, "lock");
    api->attempt(api, s->uuid, DEADLINE_MS, on_attempt, s);
}

static void take(struct slot *s)
{
    if (next == queue.n || !phases[phase].left)
        return;
    phases[phase].left--;
    busy++;
    set_text(s->uuid, sizeof s->uuid, queue.v[next++].uuid);
    s->lock_us = clock_wall_us();
    api->lock(api, s->uuid, DEADLINE_MS, on_locked, s);
}

/* The next wave or phase. */
static void take_all(void)
{
    int n;

    if (phase < 0 || (!phases[phase].left && phase < n_phases - 1))
        printf("{\"phase\":%d,\"us\":%lld}\n", ++phase,
               (long long) clock_wall_us());
    n = phases[phase].wave ? phases[phase].wave : n_slots;
    for (int i = 0; i < n; i++)
        take(&slots[i]);
    if (!busy)
        destroy_all();
}

static void on_ended(struct slot *s)
{
    busy--;
    if (!phases[phase].wave)
        take(s);
    if (!busy)
        take_all();
}

/* --- warming up --------------------------------------------------------------------- */

static void on_queue(void *arg, const struct api_list_result *r)
{
    (void) arg;
    must(&r->r, "list");
    for (size_t i = 0; i < r->n; i++)
        VEC_PUSH(&queue, r->v[i]);
    if (r->n) {
        struct api_list_req req = { .which = API_LIST_QUEUED, .limit = 1000,
                                    .after = &queue.v[queue.n - 1],
                                    .deadline_ms = DEADLINE_MS };

        api->list(api, &req, on_queue, NULL);
        return;
    }
    take_all();
}

static void warm(struct slot *s)
{
    struct api_list_req req = { .which = API_LIST_QUEUED, .limit = 1000,
                                .deadline_ms = DEADLINE_MS };

    if (s->warm)
        return;
    s->warm = true;
    if (++n_warm == n_slots)
        api->list(api, &req, on_queue, NULL);
}

static void on_line(void *arg, const char *line, size_t n)
{
    struct slot *s = arg;
    struct probe_event e;
    struct err err;

    if (probe_parse_event(line, n, cfg.cluster_id, &e, &err) < 0)
        die(line, &err);
    if (e.kind == PROBE_SYNC)
        warm(s);
    else if (e.kind == PROBE_EXIT && !strcmp(e.uuid, s->uuid))
        on_exit_event(s);
    else if (e.kind == PROBE_BROKEN)
        die("an instance calls itself broken", NULL);
}

static void on_watch_end(void *arg, const struct op_result *r)
{
    struct slot *s = arg;

    if (!s->idle)
        die("the watch ended", &r->err);
}

static void on_deployed(void *arg, const struct exec_result *r)
{
    struct slot *s = arg;
    CLEANUP(buf_fini) struct buf cmd;

    must(&r->r, "deploy");
    if (r->code)
        die(r->errout, NULL);
    buf_init(&cmd, RUNNER_CMD_MAX);
    runner_cmd_watch(&cfg, s->user, &cmd);
    s->watch = x->stream(x, s->session, cmd.data, on_line, on_watch_end, s);
}

static void on_connected(void *arg, const struct exec_connect_result *r)
{
    struct slot *s = arg;
    CLEANUP(buf_fini) struct buf cmd;
    struct exec_req req = { .input = cfg.runner, .input_len = cfg.runner_size, .input_kept = true,
                            .deadline_ms = DEADLINE_MS };
    struct err err;

    must(&r->r, "connect");
    s->session = r->session;
    if (*s->host_key && strcmp(s->host_key, r->host_key) != 0)
        die("the host key is another one", NULL);
    if (x->approve(x, s->session, r->host_key, &err) < 0)
        die("approve", &err);
    buf_init(&cmd, RUNNER_CMD_MAX);
    runner_cmd_deploy(&cfg, s->user, "bare", &cmd);
    req.command = cmd.data;
    x->exec(x, s->session, &req, on_deployed, s);
}

static void on_broken(void *arg, const struct err *why)
{
    struct slot *s = arg;

    if (!s->idle)
        die("a session broke", why);
}

static void connect_slot(struct slot *s)
{
    struct exec_target t = { s->id, s->address, s->port, s->user,
                             DEADLINE_MS };

    x->connect(x, &t, on_connected, on_broken, s);
}

static void on_instance(struct slot *s, const struct cloud_instance *i)
{
    if (i->state == CLOUD_FAILED)
        die("an instance failed", &i->err);
    set_text(s->id, sizeof s->id, i->id);
    set_text(s->address, sizeof s->address, i->address);
    set_text(s->user, sizeof s->user, *i->user ? i->user : "root");
    set_text(s->host_key, sizeof s->host_key, i->host_key ? i->host_key : "");
    s->port = i->port;
    if (!*s->address)
        die("an instance has no address", NULL);
    connect_slot(s);
}

static void on_created(void *arg, const struct cloud_create_result *r)
{
    must(&r->r, "create");
    on_instance(arg, &r->v[0]);
}

static void create_slot(struct slot *s)
{
    const struct itype *it = &cfg.itypes.v[0];
    struct cloud_tag tag = set_tag();
    uint8_t random[26];
    struct cloud_create_req req = {
        .token = s->token, .count = 1, .type_name = it->name,
        .provider_type = it->provider_type, .vcpus = it->vcpus,
        .ram = it->ram, .scratch = itype_scratch(it), .price = it->price,
        .image = *cfg.backends[0].image_id ? cfg.backends[0].image_id
                                           : "host",
        .placement = "", .tags = &tag, .n_tags = 1, .init_command = "",
        .public_key = cfg.public_key, .deadline_ms = DEADLINE_MS,
    };

    secret_random(random, sizeof random);
    s->token[0] = 'c';
    text_base32(random, sizeof random, s->token + 1);
    cloud->create(cloud, &req, on_created, s);
}

/* --- the end ----------------------------------------------------------------------- */

static int n_listed;

static void on_listed(void *arg, const struct cloud_instance *i)
{
    (void) arg;
    n_listed += i->state != CLOUD_GONE;
}

static void on_list_end(void *arg, const struct cloud_list_result *r)
{
    (void) arg;
    must(&r->r, "list instances");
    printf("{\"done_us\":%lld,\"ran\":%zu,\"left\":%d}\n",
           (long long) clock_wall_us(), ran, n_listed);
    loop_stop(loop);
}

static void on_destroyed(void *arg, const struct op_result *r)
{
    struct cloud_tag tag = set_tag();

    (void) arg;
    must(r, "destroy");
    if (--n_left == 0)
        cloud->list(cloud, &tag, 1, DEADLINE_MS, on_listed, on_list_end,
                    NULL);
}

static void destroy_all(void)
{
    n_left = n_slots;
    for (int i = 0; i < n_slots; i++) {
        slots[i].idle = true;
        x->close(x, slots[i].session);
        cloud->destroy(cloud, slots[i].id, DEADLINE_MS, on_destroyed,
                       &slots[i]);
    }
}

/* --- setting up --------------------------------------------------------------------- */

static void on_opened(void *arg, const struct op_result *r)
{
    (void) arg;
    must(r, "open");
    for (int i = 0; i < n_slots; i++)
        create_slot(&slots[i]);
}

static void on_whoami(void *arg, const struct api_whoami_result *r)
{
    (void) arg;
    must(&r->r, "whoami");
    cloud->open(cloud, DEADLINE_MS, on_opened, NULL);
}

static void set_up_cloud(void)
{
    struct registry_options ro = {
        .dir = *conf->driver_dir ? conf->driver_dir : NULL,
        .trust_build_tree = true,
    };
    struct registry *registry = registry_create(&ro);
    struct err err;
    const struct driver *driver =
        registry_load(registry, conf->backends[0].driver, &err);
    struct iset_options io = { .loop = loop, .backend = "default",
                               .set_id = cfg.instance_set_id,
                               .state_dir = conf->state_dir };

    if (!driver)
        die("driver", &err);
    if (mkdir(conf->state_dir, 0700) < 0 && errno != EEXIST)
        die(conf->state_dir, NULL);
    io.params = jsn_parse(conf->backends[0].parameters,
                          strlen(conf->backends[0].parameters), &err);
    iset = iset_create(driver, &io, &err);
    if (!iset)
        die("instance set", &err);
    cloud = iset_port(iset);
}

static void set_up_ssh(void)
{
    char *key;
    struct err err;

    if (strncmp(conf->private_key, "file://", 7) != 0)
        die("DispatchPrivateKey: file:// wanted", NULL);
    key = secret_read(conf->private_key + 7, 64 << 10, &err);
    ssh = key ? ssh_port_create(loop, key, 22, &err) : NULL;
    if (!ssh)
        die("key", &err);
    secret_free(key);
    x = ssh_port_exec(ssh);
    set_text(cfg.public_key, sizeof cfg.public_key, ssh_port_public_key(ssh));
}

static void set_up(const char *config)
{
    struct err err;
    struct api_client_cfg ac = { 0 };
    char *bytes;

    if (conf_load(config, NULL, NULL, &conf, &err) < 0 ||
        conf_dispatch_cfg(conf, true, &cfg, &err) < 0 ||
        runner_file_load(conf, true, &cfg, &bytes, &err) < 0)
        die(config, &err);
    if (!*cfg.instance_set_id)
        crypt_md5_hex(conf_dispatch_token(conf),
                      strlen(conf_dispatch_token(conf)), cfg.instance_set_id);
    loop = loop_create(&err);
    set_up_cloud();
    set_up_ssh();
    ac.url = conf->api_url;
    ac.token = conf_dispatch_token(conf);
    client = api_client_create(loop, &ac, &err);
    if (!client)
        die("API client", &err);
    api = api_client_port(client);
}

/* WAVE:COUNT */
static bool add_phase(const char *arg)
{
    struct phase *p = &phases[n_phases++];
    char *end;

    p->wave = (int) strtol(arg, &end, 10);
    if (*end != ':' || p->wave < 0 || p->wave > n_slots)
        return false;
    p->left = strtoul(end + 1, &end, 10);
    return p->left > 0 && !*end;
}

static bool parse(int argc, char **argv)
{
    if (argc < 3 || argc - 3 >= PHASES_MAX || (n_slots = atoi(argv[2])) < 1 ||
        n_slots > SLOTS_MAX)
        return false;
    for (int i = 3; i < argc; i++)
        if (!add_phase(argv[i]))
            return false;
    phases[n_phases++].left = SIZE_MAX;
    return true;
}

int main(int argc, char **argv)
{
    int rc = preflight_child_main(argc, argv);

    if (rc >= 0)
        return rc;
    if (!parse(argc, argv)) {
        fputs("usage: bareloop CONFIG SLOTS [WAVE:COUNT ...]\n", stderr);
        return 2;
    }
    for (int i = 0; i < n_slots; i++)
        slots[i].no = i;
    setvbuf(stdout, NULL, _IOLBF, 0);
    set_up(argv[1]);
    api->whoami(api, DEADLINE_MS, on_whoami, NULL);
    loop_run(loop);
    api_client_destroy(client);
    ssh_port_destroy(ssh);
    iset_destroy(iset, 1000);
    conf_destroy(conf);
    return n_listed || ran != queue.n;
}
