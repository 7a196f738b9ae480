/* SPDX-License-Identifier: Apache-2.0 */
/* conf: defaults, each kind of value, refusals with file, line and key,
 * warnings, backends, instance types, and the record for core/dispatch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/conf/conf.h"
#include "core/model/dispatch_cfg.h"

static char warnings[8192];

static void on_warn(void *arg, const char *text)
{
    size_t n = strlen(warnings);

    (void) arg;
    snprintf(warnings + n, sizeof warnings - n, "%s\n", text);
}

static int try_parse(const char *text, struct conf **ret, struct err *err)
{
    warnings[0] = 0;
    return conf_parse(text, strlen(text), "c.yml", on_warn, NULL, ret, err);
}

static struct conf *parse(const char *text)
{
    struct conf *c = NULL;
    struct err err;

    if (try_parse(text, &c, &err) < 0)
        fail_msg("%s", err.text);
    return c;
}

static void refused(const char *text, const char *want)
{
    struct conf *c = NULL;
    struct err err;

    assert_int_equal(try_parse(text, &c, &err), -1);
    assert_null(c);
    if (err.class != ERR_CONFIG || !strstr(err.text, want))
        fail_msg("\"%s\" lacks \"%s\"", err.text, want);
}

static void warned(const char *want)
{
    if (!strstr(warnings, want))
        fail_msg("warnings lack \"%s\":\n%s", want, warnings);
}

#define CLOUD(s) "Clusters:\n zzzzz:\n  Containers:\n   CloudVMs:\n" s

static void test_defaults(void **state)
{
    struct conf *c = parse("Clusters: {zzzzz: {}}");

    (void) state;
    assert_string_equal(c->cluster_id, "zzzzz");
    assert_int_equal(c->poll, 10000);
    assert_int_equal(c->timeout_booting, 600000);
    assert_int_equal(c->max_instances, 64);
    assert_int_equal(c->reserve_ram, 550LL << 20);
    assert_true(c->max_price_factor == 1.5);
    assert_string_equal(c->tag_prefix, "Arvados");
    assert_true(c->deploy_key);
    assert_false(c->set[CONF_ID_poll]);
    assert_int_equal(c->n_backends, 1);
    assert_string_equal(c->backends[0].name, "default");
    assert_string_equal(c->backends[0].driver, "ec2");
    assert_string_equal(warnings, "");
    conf_destroy(c);
}

static void test_values(void **state)
{
    struct conf *c = parse(CLOUD("    PollInterval: 1m30s\n"
                                 "    MaxInstances: 0\n"
                                 "    SyncInterval: 0\n"
                                 "    TimeoutIdle: ~\n"
                                 "    DeployPublicKey: no\n"
                                 "    BootProbeCommand: ''\n"
                                 "    ResourceTags: {a: b, c: 1}\n"
                                 "    DriverParameters: {Region: x, N: 3}\n"
                                 "   CrunchRunArgumentsList: [--a, '--b=c']\n"
                                 "   ReserveExtraRAM: 1GiB\n"
                                 "   MaximumPriceFactor: 2\n"));

    (void) state;
    assert_int_equal(c->poll, 90000);
    assert_int_equal(c->max_instances, 0);
    assert_int_equal(c->sync, 60000); /* 0 means the default */
    assert_int_equal(c->timeout_idle, 60000);
    assert_false(c->set[CONF_ID_timeout_idle]);
    assert_false(c->deploy_key);
    assert_string_equal(c->boot_probe, "");
    assert_int_equal(c->resource_tags.n, 2);
    assert_string_equal(c->resource_tags.v[1].value, "1");
    assert_string_equal(c->driver_parameters, "{\"Region\":\"x\",\"N\":3}");
    assert_string_equal(c->runner_args.v[1], "--b=c");
    assert_int_equal(c->reserve_ram, 1LL << 30);
    assert_true(c->max_price_factor == 2.0);
    conf_destroy(c);
}

static void test_refusals(void **state)
{
    (void) state;
    refused(CLOUD("    PollInterval: soon\n"),
            "c.yml:5: Containers.CloudVMs.PollInterval");
    refused(CLOUD("    PollInterval: 5\n"), "c.yml:5:");
    refused(CLOUD("    MaxInstances: -1\n"), "out of range");
    refused(CLOUD("    MaxInstances: [1]\n"), "not a list");
    refused(CLOUD("    DeployPublicKey: maybe\n"), "true or false");
    refused(CLOUD("    ResourceTags: [a]\n"), "a map wanted");
    refused(CLOUD("    SupervisorFraction: 2\n"), "out of range");
    refused(CLOUD("    Driver: ../evil\n"), "CloudVMs.Driver");
    refused("Clusters: {}\n", "no cluster");
    refused("Clusters: {zzzzz: {}, yyyyy: {}}\n", "more than one cluster");
    refused("Clusters: {zzzzzz: {}}\n", "5 characters");
    refused("x: 1\n", "Clusters");
    refused("Clusters: {zzzzz: {SystemRootToken: \"a b\"}}\n",
            "SystemRootToken");
    refused("Clusters: {zzzzz: {SystemLogs: {Format: xml}}}\n", "xml");
    refused("Clusters: {zzzzz: {SystemLogs: {LogLevel: loud}}}\n", "loud");
}

static void test_warnings(void **state)
{
    struct conf *c = parse(CLOUD("    pollinterval: 3s\n"
                                 "    Colour: red\n"
                                 "    Enable: true\n"
                                 "   MinRetryPeriod: 1s\n"
                                 "  Volumes: {x: {}}\n"));

    (void) state;
    warned("c.yml:5: Containers.CloudVMs.pollinterval: ignored; did you mean "
           "Containers.CloudVMs.PollInterval?");
    warned("c.yml:6: Containers.CloudVMs.Colour: unknown key");
    warned("c.yml:7: Containers.CloudVMs.Enable: accepted, not used");
    warned("c.yml:8: Containers.MinRetryPeriod: accepted, not used");
    assert_null(strstr(warnings, "Volumes"));
    conf_destroy(c);
}

/* Every unused row warns, every used one does not. */
static void test_each_unused_row_warns(void **state)
{
    size_t n;
    const struct conf_row *rows = conf_rows(&n);

    (void) state;
    for (size_t i = 0; i < n; i++) {
        char text[512], key[128], *part;
        size_t len;
        struct conf *c;
        int depth = 1;

        if (!(rows[i].flags & CONF_UNUSED))
            continue;
        snprintf(key, sizeof key, "%s", rows[i].key);
        len = (size_t) snprintf(text, sizeof text, "Clusters: {zzzzz: {");
        for (part = key; strchr(part, '.'); part = strchr(part, '.') + 1) {
            len += (size_t) snprintf(text + len, sizeof text - len, "%.*s: {",
                                     (int) strcspn(part, "."), part);
            depth++;
        }
        len += (size_t) snprintf(text + len, sizeof text - len, "%s: %s",
                                 part, *rows[i].def ? rows[i].def : "x");
        for (; depth >= 0; depth--)
            len += (size_t) snprintf(text + len, sizeof text - len, "}");
        c = parse(text);
        warned("accepted, not used");
        conf_destroy(c);
    }
}

static void test_instance_types(void **state)
{
    struct conf *c = parse("Clusters:\n zzzzz:\n"
                           "  Containers: {PreemptiblePriceFactor: 0.5}\n"
                           "  InstanceTypes:\n"
                           "   big: {VCPUs: 8, RAM: 16GiB, Price: 0.8,"
                           " ProviderType: m8, AddedScratch: 10GB}\n"
                           "   small: {VCPUs: 1, RAM: 2GiB, Price: 0.1,"
                           " IncludedScratch: 1GB}\n");

    (void) state;
    assert_int_equal(c->itypes.n, 4);
    assert_string_equal(c->itypes.v[0].name, "small.preemptible");
    assert_true(c->itypes.v[0].preemptible);
    assert_string_equal(itypes_find(&c->itypes, "big")->provider_type, "m8");
    assert_string_equal(itypes_find(&c->itypes, "small")->provider_type,
                        "small");
    assert_int_equal(itype_scratch(itypes_find(&c->itypes, "big")),
                     10000000000LL);
    conf_destroy(c);
    refused("Clusters: {zzzzz: {InstanceTypes: [a]}}", "InstanceTypes");
    refused("Clusters: {zzzzz: {InstanceTypes: {a: {VCPUs: 1}}}}",
            "VCPUs and RAM above 0");
    refused("Clusters: {zzzzz: {InstanceTypes: {a: {VCPUs: x}}}}",
            "InstanceTypes.a.VCPUs");
}

static void test_localhost_type(void **state)
{
    struct conf *c = parse(CLOUD("    Driver: loopback\n"));

    (void) state;
    assert_int_equal(c->itypes.n, 1);
    assert_string_equal(c->itypes.v[0].name, "localhost");
    assert_true(c->itypes.v[0].ram > 0);
    conf_destroy(c);
}

static void test_backends(void **state)
{
    struct conf *c =
        parse(CLOUD("    ImageID: common\n    Backends:\n"
                    "     east: {Driver: ec2, Placements: [a, b],"
                    " DriverParameters: {Region: e}}\n"
                    "     here: {Driver: loopback, ImageID: host,"
                    " MaxInstances: 3}\n"));

    (void) state;
    assert_int_equal(c->n_backends, 2);
    assert_string_equal(c->backends[0].image_id, "common");
    assert_int_equal(c->backends[0].placements.n, 2);
    assert_string_equal(c->backends[0].parameters, "{\"Region\":\"e\"}");
    assert_string_equal(c->backends[1].image_id, "host");
    assert_int_equal(c->backends[1].max_instances, 3);
    conf_destroy(c);
    refused(CLOUD("    Backends: {A: {Driver: ec2}}\n"), "a-z, 0-9");
    refused(CLOUD("    Backends: {a: {}}\n"), "Driver");
}

#define WHOLE                                                                 \
    "Clusters:\n zzzzz:\n  SystemRootToken: abcdefghijkl\n"                   \
    "  Services: {Controller: {ExternalURL: 'http://127.0.0.1:8000/'}}\n"     \
    "  Containers:\n   DispatchPrivateKey: file:///k\n   CloudVMs:\n"         \
    "    Driver: loopback\n"

static void test_dispatch_cfg(void **state)
{
    struct conf *c = parse(WHOLE "    ResourceTags: {k: v}\n");
    struct dispatch_cfg *d = malloc(sizeof *d);
    struct err err;

    (void) state;
    if (conf_dispatch_cfg(c, true, d, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(d->boot_probe, "true");
    assert_int_equal(d->need.reserve_extra_ram, 0);
    assert_int_equal(d->need.keep_buffers_per_vcpu, 0);
    assert_false(d->need.ram_discount);
    assert_int_equal(d->n_tags, 1);
    assert_string_equal(d->backends[0].name, "default");
    assert_string_equal(d->api_url, "http://127.0.0.1:8000/");
    assert_int_equal(d->max_api_ops, 16);
    assert_int_equal(conf_dispatch_cfg(c, false, d, &err), 0);
    assert_int_equal(d->need.reserve_extra_ram, 550LL << 20);
    assert_true(d->need.ram_discount);
    conf_destroy(c);
    free(d);
}

static void test_dispatch_needs(void **state)
{
    struct conf *c = parse("Clusters: {zzzzz: {}}");
    struct dispatch_cfg *d = malloc(sizeof *d);
    struct err err;

    (void) state;
    assert_int_equal(conf_dispatch_cfg(c, true, d, &err), -1);
    assert_non_null(strstr(err.text, "Services.Controller.ExternalURL"));
    conf_destroy(c);
    c = parse(WHOLE "    StateDirectory: here\n");
    assert_int_equal(conf_dispatch_cfg(c, true, d, &err), -1);
    assert_non_null(strstr(err.text, "StateDirectory"));
    conf_destroy(c);
    c = parse(WHOLE "    DeployRunnerDirectory: '/tmp/a b'\n");
    assert_int_equal(conf_dispatch_cfg(c, true, d, &err), -1);
    assert_non_null(strstr(err.text, "DeployRunnerDirectory"));
    conf_destroy(c);
    c = parse(WHOLE
              "  InstanceTypes: {a: {VCPUs: 1, RAM: 1GiB, Backend: no}}\n");
    assert_int_equal(conf_dispatch_cfg(c, true, d, &err), -1);
    assert_non_null(strstr(err.text, "no backend \"no\""));
    conf_destroy(c);
    free(d);
}

static void test_print_hides_secrets(void **state)
{
    struct conf *c = parse(WHOLE);
    struct buf b;

    (void) state;
    buf_init(&b, 1 << 20);
    assert_int_equal(conf_print(c, &b), 0);
    assert_null(strstr(b.data, "abcdefghijkl"));
    assert_non_null(strstr(b.data, "SystemRootToken: [secret]"));
    buf_fini(&b);
    conf_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_each_unused_row_warns),
        cmocka_unit_test(test_instance_types),
        cmocka_unit_test(test_localhost_type),
        cmocka_unit_test(test_backends),
        cmocka_unit_test(test_dispatch_cfg),
        cmocka_unit_test(test_dispatch_needs),
        cmocka_unit_test(test_print_hides_secrets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
