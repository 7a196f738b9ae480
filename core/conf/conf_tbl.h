/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CONF_CONF_TBL_H
#define CORE_CONF_CONF_TBL_H

/*
 * Every setting, once: type, struct member, key, default, range, help. The
 * record struct conf, the parser, crunch-dispatch-cloud.yml(5) and the
 * documentation lint are made from this table. Keys are written from below
 * `Clusters.<id>`; names without a mark are Arvados' own
 * (doc.arvados.org, "Configuration reference"), with their meaning.
 *
 * X(type, member, key, default, min, max, flags, peer, help)
 *
 * type    STR SECRET BOOL INT FLOAT DURATION SIZE LIST MAP URLS JSON
 *         (a DURATION is held in milliseconds, a SIZE in bytes)
 * default as it would be written in the file
 * min,max for INT, FLOAT, DURATION (ms) and SIZE
 * flags   CONF_UNUSED accepted for Arvados' sake, has no effect, warned of
 *         CONF_ZDEF   0 means the default, as in Arvados
 *         CONF_OURS   not an Arvados setting
 *         CONF_API    read by crunch-api-server only
 * peer    "" or: Arvados' own default and why ours differs
 */

#define CONF_MAX 1000000000000000LL
#define CONF_DAY (86400 * 1000LL)

#define CONF_TBL_CLUSTER(X)                                                   \
    X(SECRET, system_root_token, "SystemRootToken", "", 0, 0, 0, "",          \
      "Administrator token of the API server. The dispatcher uses it unless " \
      "Containers.CloudVMs.APIToken is set.")                                 \
    X(SECRET, management_token, "ManagementToken", "", 0, 0, 0, "",           \
      "Token for the management API, /metrics and /_health. Empty switches "  \
      "them off.")                                                            \
    X(STR, api_url, "Services.Controller.ExternalURL", "", 0, 0, 0, "",       \
      "URL of the API server. Plain http is accepted for a loopback address " \
      "only.")                                                                \
    X(URLS, api_listen, "Services.Controller.InternalURLs", "", 0, 0,         \
      CONF_API, "",                                                           \
      "Addresses on which crunch-api-server listens.")                        \
    X(URLS, dispatch_listen, "Services.DispatchCloud.InternalURLs", "", 0, 0, \
      0, "",                                                                  \
      "Addresses of the management API; the first that can be bound is used. "\
      "ListenURL of an entry, when there, is bound instead of the key.")      \
    X(BOOL, tls_insecure, "TLS.Insecure", "false", 0, 0, CONF_UNUSED, "",     \
      "Do not verify the API server's certificate.")                          \
    X(STR, tls_certificate, "TLS.Certificate", "", 0, 0, CONF_UNUSED, "",     \
      "Certificate of our own servers.")                                      \
    X(STR, tls_key, "TLS.Key", "", 0, 0, CONF_UNUSED, "",                     \
      "Private key of our own servers.")                                      \
    X(STR, log_level, "SystemLogs.LogLevel", "info", 0, 0, 0, "",             \
      "debug, info, warning or error.")                                       \
    X(STR, log_format, "SystemLogs.Format", "json", 0, 0, 0, "",              \
      "json (one object a line) or text.")                                    \
    X(INT, api_max_concurrent, "API.MaxConcurrentRequests", "64", 1, 100000,  \
      0, "",                                                                  \
      "Requests that crunch-api-server works on at once; the dispatcher "     \
      "keeps at most a quarter of it in flight.")                             \
    X(INT, api_max_queued, "API.MaxQueuedRequests", "128", 0, 100000,         \
      CONF_API, "",                                                           \
      "Requests that may wait beyond those; more are answered 503.")          \
    X(DURATION, api_request_timeout, "API.RequestTimeout", "5m", 1000,        \
      CONF_DAY, 0, "",                                                        \
      "Longest time for one API request; the dispatcher waits at most a "     \
      "minute of it.")                                                        \
    X(SIZE, api_max_request_size, "API.MaxRequestSize", "128MiB", 1024,       \
      1LL << 40, CONF_API, "",                                                \
      "Largest request body.")                                                \
    X(INT, api_max_items, "API.MaxItemsPerResponse", "1000", 1, 100000,       \
      CONF_API, "",                                                           \
      "Largest page of a list.")

#define CONF_TBL_CONTAINERS(X)                                                \
    X(SECRET, private_key, "Containers.DispatchPrivateKey", "", 0, 0, 0, "",  \
      "SSH key for the instances: PEM or OpenSSH text, or "                   \
      "file:///absolute/path. Ed25519 is much cheaper than RSA.")             \
    X(DURATION, stale_lock, "Containers.StaleLockTimeout", "1m", 0, CONF_DAY, \
      0, "",                                                                  \
      "After a start, how long to wait for instances that cannot be probed "  \
      "before warning of the containers they may run. Never unlocks by "      \
      "itself.")                                                              \
    X(STR, runner_command, "Containers.CrunchRunCommand", "crunch-run", 0, 0, \
      0, "",                                                                  \
      "Runner to call on an instance when none is deployed.")                 \
    X(LIST, runner_args, "Containers.CrunchRunArgumentsList", "", 0, 0, 0,    \
      "",                                                                     \
      "Further arguments of the runner, at most 16.")                         \
    X(STR, runtime_engine, "Containers.RuntimeEngine", "docker", 0, 0, 0, "", \
      "Passed to the runner as --runtime-engine; our runner ignores it.")     \
    X(SIZE, reserve_ram, "Containers.ReserveExtraRAM", "550MiB", 0,           \
      1LL << 50, 0,                                                           \
      "550MiB; with our API server 0, because our runner needs no such "      \
      "reserve",                                                              \
      "Added to the RAM of each container when choosing an instance type.")   \
    X(INT, keep_buffers, "Containers.LocalKeepBlobBuffersPerVCPU", "1", 0,    \
      1000, 0,                                                                \
      "1; with our API server 0, because there is no keepstore",              \
      "Keep buffers counted into the RAM a container needs.")                 \
    X(STR, keep_logs, "Containers.LocalKeepLogsToContainerLog", "none", 0, 0, \
      CONF_UNUSED, "",                                                        \
      "Which keepstore logs a container's log gets.")                         \
    X(FLOAT, max_price_factor, "Containers.MaximumPriceFactor", "1.5", 0,     \
      1000, 0, "",                                                            \
      "Instance types up to this factor above the cheapest fitting one may "  \
      "be used. Below 1 counts as 1.")                                        \
    X(FLOAT, spot_price_factor, "Containers.PreemptiblePriceFactor", "0", 0,  \
      1, 0, "",                                                               \
      "Above 0: for each instance type that is not preemptible add "          \
      "NAME.preemptible at this part of its price.")                          \
    X(INT, max_dispatch_attempts, "Containers.MaxDispatchAttempts", "10", 1,  \
      1000000, CONF_API, "",                                                  \
      "A container that was locked so often without running is cancelled at " \
      "its next unlock.")                                                     \
    X(INT, max_retry_attempts, "Containers.MaxRetryAttempts", "3", 1, 1000,   \
      CONF_API, "",                                                           \
      "Default container_count_max of a request.")                            \
    X(SIZE, default_cache_ram, "Containers.DefaultKeepCacheRAM", "0", 0,      \
      1LL << 50, CONF_UNUSED, "",                                             \
      "Default keep_cache_ram of a request.")                                 \
    X(BOOL, always_preemptible, "Containers.AlwaysUsePreemptibleInstances",   \
      "false", 0, 0, CONF_UNUSED, "",                                         \
      "Make child containers preemptible.")                                   \
    X(DURATION, min_retry, "Containers.MinRetryPeriod", "0s", 0, CONF_DAY,    \
      CONF_UNUSED, "",                                                        \
      "Of the Slurm dispatcher.")

#define CONF_TBL_CLOUD(X)                                                     \
    X(BOOL, enable, "Containers.CloudVMs.Enable", "false", 0, 0, CONF_UNUSED, \
      "",                                                                     \
      "Arvados' own dispatcher does not read it either.")                     \
    X(STR, driver, "Containers.CloudVMs.Driver", "ec2", 0, 0, 0, "",          \
      "Driver of the one backend `default`; a name of [a-z0-9_-]+, the stem " \
      "of its file. Not used when Backends is set.")                          \
    X(JSON, driver_parameters, "Containers.CloudVMs.DriverParameters", "", 0, \
      0, 0, "",                                                               \
      "Settings of the driver; see cdc-driver-NAME(7).")                      \
    X(STR, image_id, "Containers.CloudVMs.ImageID", "", 0, 0, 0, "",          \
      "Image of the instances.")                                              \
    X(INT, ssh_port, "Containers.CloudVMs.SSHPort", "22", 1, 65535, 0, "",    \
      "SSH port of instances whose driver names none.")                       \
    X(STR, boot_probe, "Containers.CloudVMs.BootProbeCommand",                \
      "systemctl is-system-running", 0, 0, 0,                                 \
      "the same; with the driver loopback `true`, because a local VM has no " \
      "systemd",                                                              \
      "Command that succeeds when an instance is ready; empty means `true`.") \
    X(STR, init_command, "Containers.CloudVMs.InstanceInitCommand", "", 0, 0, \
      0, "",                                                                  \
      "Shell commands that a new instance runs, after the line of ours that " \
      "writes its secret.")                                                   \
    X(STR, deploy_runner, "Containers.CloudVMs.DeployRunnerBinary",           \
      "/proc/self/exe", 0, 0, 0,                                              \
      "/proc/self/exe, which in Arvados is the runner itself; ours then "     \
      "deploys its own crunch-run to our API server's containers, and "       \
      "/usr/bin/crunch-run or /usr/bin/arvados-server to an Arvados "         \
      "cluster's",                                                            \
      "Runner to copy to the instances; empty: copy nothing, call "           \
      "CrunchRunCommand.")                                                    \
    X(STR, deploy_dir, "Containers.CloudVMs.DeployRunnerDirectory",           \
      "/tmp/arvados-crunch-run", 0, 0, 0, "",                                 \
      "Folder on the instance for it: an absolute path of letters, digits "   \
      "and /._+@%,:=-.")                             \
    X(BOOL, deploy_key, "Containers.CloudVMs.DeployPublicKey", "true", 0, 0,  \
      0, "",                                                                  \
      "Give the public part of DispatchPrivateKey to the driver.")            \
    X(MAP, resource_tags, "Containers.CloudVMs.ResourceTags", "", 0, 0, 0,    \
      "",                                                                     \
      "Further tags of each instance, at most 32.")                           \
    X(STR, tag_prefix, "Containers.CloudVMs.TagKeyPrefix", "Arvados", 0, 0,   \
      0, "",                                                                  \
      "Prefix of the tags that mark our instances. Changing it orphans "      \
      "them.")                                                                \
    X(DURATION, poll, "Containers.CloudVMs.PollInterval", "10s", 0, CONF_DAY, \
      0, "",                                                                  \
      "Least time between two full reads of the queue. With a change feed "   \
      "this is only the safety net.")                                         \
    X(DURATION, probe, "Containers.CloudVMs.ProbeInterval", "10s", 0,         \
      CONF_DAY, CONF_ZDEF, "",                                                \
      "Time between two `--list` probes of an instance whose runner cannot "  \
      "be watched, and between boot probes at most.")                         \
    X(INT, max_probes, "Containers.CloudVMs.MaxProbesPerSecond", "100", 0,    \
      100000, CONF_ZDEF,                                                      \
      "10, which at 1,000 instances means a probe each 100 s",                \
      "Most commands per second that probe instances.")                       \
    X(DURATION, sync, "Containers.CloudVMs.SyncInterval", "1m", 0, CONF_DAY,  \
      CONF_ZDEF, "",                                                          \
      "Time between two lists of the cloud's instances; it is asked sooner "  \
      "while a create or destroy is open.")                                   \
    X(DURATION, timeout_idle, "Containers.CloudVMs.TimeoutIdle", "1m", 0,     \
      CONF_DAY * 365, CONF_ZDEF, "",                                          \
      "An instance that has had nothing to do for so long is destroyed.")     \
    X(DURATION, timeout_booting, "Containers.CloudVMs.TimeoutBooting", "10m", \
      0, CONF_DAY, CONF_ZDEF, "",                                             \
      "An instance that is not ready after this time is destroyed.")          \
    X(DURATION, timeout_probe, "Containers.CloudVMs.TimeoutProbe", "10m", 0,  \
      CONF_DAY, CONF_ZDEF, "",                                                \
      "An instance that has been silent for so long is destroyed.")           \
    X(DURATION, timeout_shutdown, "Containers.CloudVMs.TimeoutShutdown",      \
      "10s", 0, CONF_DAY, CONF_ZDEF, "",                                      \
      "Repeat a destroy when the instance is still listed after this time.")  \
    X(DURATION, timeout_signal, "Containers.CloudVMs.TimeoutSignal", "5s", 0, \
      CONF_DAY, CONF_ZDEF, "",                                                \
      "Time between two SIGTERM to a runner that is to end.")                 \
    X(DURATION, timeout_term, "Containers.CloudVMs.TimeoutTERM", "2m", 0,     \
      CONF_DAY, CONF_ZDEF, "",                                                \
      "Give up on such a runner after this time and drain its instance.")     \
    X(DURATION, timeout_stale, "Containers.CloudVMs.TimeoutStaleRunLock",     \
      "5s", 0, CONF_DAY, CONF_ZDEF, "",                                       \
      "A run lock held for so long by a dead runner makes the instance "      \
      "broken: it drains.")                                                   \
    X(INT, max_cloud_ops, "Containers.CloudVMs.MaxCloudOpsPerSecond", "10",   \
      0, 100000, 0, "",                                                       \
      "Most calls per second to each backend; 0 = no limit.")                 \
    X(INT, max_create_ops,                                                    \
      "Containers.CloudVMs.MaxConcurrentInstanceCreateOps", "20", 0, 100000,  \
      0,                                                                      \
      "1, with which the first 20 instances take 100 s",                      \
      "Most create calls in flight at once; 0 = no limit.")                   \
    X(INT, max_instances, "Containers.CloudVMs.MaxInstances", "64", 0,        \
      1000000, 0, "",                                                         \
      "Most instances at a time, those on their way down included; 0 = no "   \
      "limit.")                                                               \
    X(INT, max_per_instance,                                                  \
      "Containers.CloudVMs.MaxRunningContainersPerInstance", "0", 0, 100000,  \
      0, "",                                                                  \
      "Most containers on one instance; 0 = as many as fit, 1 = no sharing. " \
      "Also accepted directly below Containers.")                             \
    X(INT, initial_quota, "Containers.CloudVMs.InitialQuotaEstimate", "0", 0, \
      1000000, 0, "",                                                         \
      "Most instances to ask for before a quota is known; 0 = MaxInstances.") \
    X(FLOAT, supervisor_fraction, "Containers.CloudVMs.SupervisorFraction",   \
      "0.5", 0, 1, 0, "",                                                     \
      "Part of the containers that run at once which may be supervisors "     \
      "(workflow runners); 0 = no limit.")                                    \
    X(MAP, backends_raw, "Containers.CloudVMs.Backends", "", 0, 0,            \
      CONF_OURS | CONF_SPECIAL, "",                                           \
      "Several backends: NAME: {Driver, DriverParameters, ImageID, "          \
      "Placements (list), MaxInstances, SSHUser}.")                           \
    X(STR, instance_set_id, "Containers.CloudVMs.InstanceSetID", "", 0, 0,    \
      CONF_OURS, "",                                                          \
      "Value of the tag that marks our instances. Empty: the uuid of a v2 "   \
      "token, else the MD5 of the token, as in Arvados.")                     \
    X(STR, state_dir, "Containers.CloudVMs.StateDirectory",                   \
      "/var/lib/crunch-dispatch-cloud", 0, 0, CONF_OURS, "",                  \
      "Folder of the journal and of the drivers' state; locked by the "       \
      "running dispatcher.")                                                  \
    X(STR, driver_dir, "Containers.CloudVMs.DriverDirectory", "", 0, 0,       \
      CONF_OURS, "",                                                          \
      "Folder of the driver files. Empty: the installed one.")                \
    X(STR, api_url_instances, "Containers.CloudVMs.APIURLForInstances", "",   \
      0, 0, CONF_OURS, "",                                                    \
      "URL at which instances reach the API server, if it differs from "      \
      "Services.Controller.ExternalURL.")                                     \
    X(SECRET, api_token, "Containers.CloudVMs.APIToken", "", 0, 0, CONF_OURS, \
      "",                                                                     \
      "Token of this dispatcher. Several dispatchers at one API server need " \
      "one each. Empty: SystemRootToken.")                                    \
    X(INT, absent_lists, "Containers.CloudVMs.AbsentLists", "3", 1, 100,      \
      CONF_OURS, "",                                                          \
      "So many complete lists in a row must lack an instance before it is "   \
      "held to be gone.")                                                     \
    X(DURATION, absent_grace, "Containers.CloudVMs.AbsentGrace", "2m", 0,     \
      CONF_DAY, CONF_OURS, "",                                                \
      "Not before this time after it was created, though.")                   \
    X(DURATION, cloud_deadline, "Containers.CloudVMs.TimeoutCloudCall",       \
      "2m", 1000, CONF_DAY, CONF_OURS, "",                                    \
      "Deadline of one call to a driver.")                                    \
    X(DURATION, exec_deadline, "Containers.CloudVMs.TimeoutCommand", "1m",    \
      1000, CONF_DAY, CONF_OURS, "",                                          \
      "Deadline of one command on an instance.")                              \
    X(DURATION, connect_deadline, "Containers.CloudVMs.TimeoutConnect",       \
      "20s", 100, CONF_DAY, CONF_OURS, "",                                    \
      "Deadline of a connection to an instance, login included.")             \
    X(INT, max_sessions, "Containers.CloudVMs.MaxCommandsPerInstance", "8",   \
      2, 60, CONF_OURS, "",                                                   \
      "Most commands at once on one SSH connection. OpenSSH allows 10.")

#define CONF_TBL_APISERVER(X)                                                 \
    X(STR, as_database, "APIServer.Database",                                 \
      "/var/lib/crunch-api-server/db.sqlite", 0, 0, CONF_OURS | CONF_API, "", \
      "File of the database.")                                                \
    X(STR, as_files, "APIServer.FilesDirectory",                              \
      "/var/lib/crunch-api-server/files", 0, 0, CONF_OURS | CONF_API, "",     \
      "Folder of logs and output.")                                           \
    X(STR, as_durability, "APIServer.Durability", "full", 0, 0,               \
      CONF_OURS | CONF_API, "",                                               \
      "full: an answered write survives loss of power (one fdatasync per "    \
      "group of commits). process: it survives the end of the program.")      \
    X(INT, as_readers, "APIServer.Readers", "4", 1, 64, CONF_OURS | CONF_API, \
      "",                                                                     \
      "Threads that read the database.")                                      \
    X(INT, as_max_connections, "APIServer.MaxConnections", "2000", 1, 100000, \
      CONF_OURS | CONF_API, "",                                               \
      "Most client connections at once.")                                     \
    X(INT, as_max_per_peer, "APIServer.MaxConnectionsPerAddress", "1000", 1,  \
      100000, CONF_OURS | CONF_API, "",                                       \
      "Most of them from one address.")                                       \
    X(INT, as_rate, "APIServer.MaxRequestsPerSecond", "0", 0, 1000000,        \
      CONF_OURS | CONF_API, "",                                               \
      "Requests per second and token; more are answered 429. 0 = no limit.")  \
    X(SIZE, as_max_file, "APIServer.MaxFileSize", "1GiB", 1, 1LL << 50,       \
      CONF_OURS | CONF_API, "",                                               \
      "Largest log or output file.")                                          \
    X(SIZE, as_max_attempt, "APIServer.MaxBytesPerAttempt", "10GiB", 1,       \
      1LL << 50, CONF_OURS | CONF_API, "",                                    \
      "Most bytes of logs and output that one run of a container may store.") \
    X(INT, as_max_files, "APIServer.MaxFilesPerAttempt", "10000", 1, 1000000, \
      CONF_OURS | CONF_API, "",                                               \
      "Most files of it.")                                                    \
    X(INT, as_feed, "APIServer.FeedLength", "100000", 16, 10000000,           \
      CONF_OURS | CONF_API, "",                                               \
      "Changes that the change feed remembers.")

#define CONF_TBL(X)                                                           \
    CONF_TBL_CLUSTER(X)                                                       \
    CONF_TBL_CONTAINERS(X)                                                    \
    CONF_TBL_CLOUD(X)                                                         \
    CONF_TBL_APISERVER(X)

enum conf_flag {
    CONF_UNUSED = 1 << 0,
    CONF_ZDEF = 1 << 1,
    CONF_OURS = 1 << 2,
    CONF_API = 1 << 3,
    CONF_SPECIAL = 1 << 4 /* parsed by code of its own */
};

#endif
