/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PLUGIN_DRVSET_H
#define CORE_PLUGIN_DRVSET_H

/*
 * One instance set of a driver, called on the current thread.
 *
 * Each function runs one callback under a call made for it (call_create with
 * the fitting kind) and leaves outcome, error and results there. iset uses it
 * on worker threads, cdc-driver-check on its only one. Nothing here keeps
 * order: with a SERIAL driver the caller makes one call at a time.
 */

#include <stdbool.h>
#include <stdint.h>

#include <cdc/driver.h>

#include "core/plugin/call.h"

struct driver;
struct err;
struct jsn;
struct logger;

struct drvset {
    struct cdc_driver entry;  /* a copy: a thread that is stuck in the driver
                               * may outlive the registry */
    struct call_origin origin;
    struct jsn *params;       /* never NULL */
    char *backend, *set_id;
    char *state_dir;          /* "" = none */
    struct cdc_set *set;      /* NULL = not open */
    uint32_t caps;            /* CDC_CAP_* of the open set */
};

/* state_dir: the folder below which the driver gets one of its own; NULL or
 * "" = none. params are copied; NULL counts as {}. -1/ERR_CONFIG as
 * schema_check says. */
int drvset_init(struct drvset *s, const struct driver *driver,
                const char *backend, const char *set_id,
                const char *state_dir, const struct jsn *params,
                struct logger *log, struct err *err);
/* Closes the set if it is open. */
void drvset_fini(struct drvset *s);

/*
 * Open the driver's set. It is returned and not yet put into s->set, because
 * that belongs to another thread; drvset_adopt does. NULL on failure.
 */
struct cdc_set *drvset_open(const struct drvset *s, struct call *c);
void drvset_adopt(struct drvset *s, struct cdc_set *set, const struct call *c);

void drvset_create(const struct drvset *s, struct call *c,
                   const struct cdc_create_spec *spec);
/* Afterwards c->instances holds those that match the filter, each id once. */
void drvset_list(const struct drvset *s, struct call *c,
                 const struct cdc_tag *filter, uint32_t n_filter);
void drvset_set_tags(const struct drvset *s, struct call *c, const char *id,
                     const struct cdc_tag *tags, uint32_t n_tags);
void drvset_destroy(const struct drvset *s, struct call *c, const char *id);
void drvset_verify_host_key(const struct drvset *s, struct call *c,
                            const char *id, const char *key);
void drvset_price_history(const struct drvset *s, struct call *c,
                          const char *provider_type, bool preemptible,
                          const char *placement, int64_t since_ms);
void drvset_describe(const struct drvset *s, struct call *c);

/* Pure; into out, NUL-terminated whatever the driver does. */
void drvset_quota_group(const struct drvset *s, const char *provider_type,
                        bool preemptible, char *out, size_t size);

#endif
