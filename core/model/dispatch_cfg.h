/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_MODEL_DISPATCH_CFG_H
#define CORE_MODEL_DISPATCH_CFG_H

/*
 * Everything that core/dispatch needs to know of the configuration, as one
 * plain record. core/conf fills it from the settings table (names in
 * comments are keys below Containers.CloudVMs unless written out); the
 * simulator fills it by hand. Durations are milliseconds, sizes bytes,
 * 0 in a Max* field means unlimited.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/model/itypes.h"
#include "core/model/need.h"

enum { DISPATCH_BACKENDS = 16, DISPATCH_TAGS = 32, DISPATCH_NAME = 64 };

struct dispatch_tag {
    char key[DISPATCH_NAME];
    char value[256];
};

struct dispatch_backend {
    char name[DISPATCH_NAME];       /* key in Backends, or "default" */
    char image_id[256];             /* ImageID */
    char ssh_user[32];              /* login user if the driver names none */
    char placements[8][DISPATCH_NAME]; /* in order of preference; may be 0 */
    unsigned n_placements;
    int64_t max_instances;          /* MaxInstances of this backend */
};

struct dispatch_cfg {
    char cluster_id[6];
    char instance_set_id[64];
    char tag_prefix[DISPATCH_NAME];          /* TagKeyPrefix */
    struct dispatch_tag tags[DISPATCH_TAGS]; /* ResourceTags */
    unsigned n_tags;
    struct dispatch_backend backends[DISPATCH_BACKENDS];
    unsigned n_backends;
    struct itypes itypes;                    /* borrowed from core/conf */
    struct need_policy need;
    double max_price_factor;                 /* Containers.MaximumPriceFactor */

    /* limits */
    int64_t max_instances;
    int64_t max_create_ops;      /* MaxConcurrentInstanceCreateOps */
    int64_t max_cloud_ops_per_s; /* MaxCloudOpsPerSecond */
    int64_t max_per_instance;    /* MaxRunningContainersPerInstance */
    int64_t max_probes_per_s;    /* MaxProbesPerSecond */
    int64_t max_api_ops;         /* requests in flight at the API server */
    int64_t max_ssh_per_instance; /* channels per session */
    int64_t initial_quota;       /* InitialQuotaEstimate */
    double supervisor_fraction;  /* SupervisorFraction */

    /* times */
    int64_t poll_ms, probe_ms, sync_ms;
    int64_t timeout_idle_ms, timeout_booting_ms, timeout_probe_ms;
    int64_t timeout_shutdown_ms, timeout_signal_ms, timeout_term_ms;
    int64_t timeout_stale_run_lock_ms;
    int64_t stale_lock_ms;       /* Containers.StaleLockTimeout */
    int64_t api_deadline_ms, cloud_deadline_ms, exec_deadline_ms;
    int64_t connect_deadline_ms;
    int64_t absent_lists;        /* lists that must miss a VM before it is gone */
    int64_t absent_grace_ms;     /* and this long after it was created */

    /* what runs on an instance */
    char boot_probe[1024];       /* BootProbeCommand, "" = `true` */
    char init_command[4096];     /* InstanceInitCommand */
    char public_key[1024];       /* OpenSSH format, "" = not deployed */
    char runner_command[256];    /* path on the instance when not deployed */
    char runner_dir[256];        /* DeployRunnerDirectory */
    const void *runner;          /* bytes to deploy; NULL = do not deploy */
    uint64_t runner_size;
    char runner_hash[33];        /* hex md5 of those bytes */
    char runner_args[16][128];   /* CrunchRunArgumentsList */
    unsigned n_runner_args;
    char runtime_engine[32];     /* passed on when not "" */
    char api_url[256];           /* APIURLForInstances: what the runner calls */
    char *ca_bundle;             /* PEM or NULL; borrowed */
};

#endif
