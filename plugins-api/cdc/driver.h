/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CDC_DRIVER_H
#define CDC_DRIVER_H

/*
 * Cloud drivers for crunch-dispatch-cloud.
 *
 * A driver is a shared object `NAME.so` that exports exactly one symbol, the
 * constant `cdc_driver_entry`: a descriptor with the driver's name, what it
 * can do, and its callbacks. cdc-driver(7) is the manual; a complete driver
 * to start from is installed under doc/crunch-dispatch-cloud/example-driver;
 * `cdc-driver-check` tests any driver against what is written here.
 *
 * The promise. While CDC_ABI_MAJOR is 0 there is none: the minor version must
 * match exactly. From 1.0 on, within one major version: a driver built
 * against older headers keeps working on newer hosts, and its source keeps
 * compiling; a driver built against newer headers works on an older host if
 * that host has at least `minor_needed`. COMPATIBILITY.md has the rules.
 *
 * Life. The host reads the descriptor of the file without running any of it,
 * opens it once in a child process, then once for good: it is never unloaded.
 * For each configured backend it calls set_open once, then the other
 * callbacks, then set_close once when no other callback runs.
 *
 * Threads. Callbacks block; they run on worker threads of the host with all
 * signals blocked, never on its event loop. With CDC_THREADS_SERIAL at most
 * one callback of a set runs at a time, with CDC_THREADS_PARALLEL any number;
 * callbacks of different sets always may overlap. quota_group is the
 * exception: it may be called at any time, and must not block.
 *
 * Errors. A callback returns 0, or -1 after host->fail(). A failure without a
 * reason is taken as INTERNAL with nothing known about its effect.
 *
 * Time. Every op has a deadline. A callback that has not returned when it
 * passes is written off: its thread is lost to the host, its late results are
 * dropped, and the outcome of a create, destroy or set_tags is then unknown.
 * host->sleep_ms and host->run_process end in time by themselves.
 *
 * Ownership, whole. (1) What the host passes is borrowed until the callback
 * returns. (2) What a driver emits is copied before emit returns. (3) The
 * only thing that a driver allocates and the host keeps is the set, and only
 * set_close ends it. (4) No free() ever crosses the boundary.
 *
 * A driver must not: fork, install signal handlers, change the working
 * directory, the locale, the environment or resource limits, write to standard
 * output or error, call global init or clean-up functions of shared
 * libraries, keep threads that outlive set_close, register exit handlers, end
 * the process. It decides nothing: no retry, rotation, back-off or caching
 * that a dispatcher cannot see. One call is one attempt with one outcome.
 *
 * Trust. A driver runs inside the dispatcher, with its rights; a crash in a
 * callback ends the dispatcher (which restarts and finds its instances
 * again).
 */

#include <cdc/types.h>
#include <cdc/host.h>
#include <cdc/version.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CDC_MAGIC 0x43444370u /* "pCDC" in a little-endian file */

/* What kind of plugin a descriptor describes; cdc_driver is KIND_CLOUD. */
#define CDC_KIND_CLOUD 1u

/* Build switches that alter the layout of a struct; there are none. */
#define CDC_LAYOUT 0u

#define CDC_THREADS_SERIAL 0u   /* one callback of a set at a time */
#define CDC_THREADS_PARALLEL 1u

/* Capabilities; bits that the host does not know are ignored. */
#define CDC_CAP_BATCH 0x01u      /* create takes count > 1 */
#define CDC_CAP_SET_TAGS 0x02u   /* set_tags works */
#define CDC_CAP_VERIFY_KEY 0x04u /* verify_host_key can tell right from wrong,
                                  * or instance records carry host_key */
#define CDC_CAP_PRICES 0x08u     /* price_history works */
#define CDC_CAP_SINGLE 0x10u     /* at most one instance at a time */
#define CDC_CAP_NO_SUDO 0x20u    /* commands run as the login user, whoever
                                  * that is: never preceded by sudo */

/* The driver's own: it defines this struct as it likes. */
struct cdc_set;

/* What a set is opened with. Strings and params stay valid until set_close
 * has returned. */
struct cdc_set_config {
    uint32_t size;
    uint32_t reserved;
    const char *set_id;    /* InstanceSetID: marks what is ours */
    const char *backend;   /* name of the backend in the configuration */
    const char *state_dir; /* absolute; a folder for this driver alone, made
                            * by the host on demand; "" = none */
    const struct cdc_json *params; /* DriverParameters: an object */
};

/*
 * The descriptor.
 *
 * The first seven members are the frozen prefix: their meaning and place never
 * change, in any major version. After the prefix, members are only appended.
 * Use CDC_DRIVER_PREFIX to fill it in:
 *
 *     const struct cdc_driver cdc_driver_entry = {
 *         CDC_DRIVER_PREFIX, CDC_THREADS_SERIAL, CDC_CAP_SET_TAGS, 0,
 *         "mycloud", "1.2", "instances of My Cloud", ...
 *     };
 *
 * All strings are literals of the driver, never NULL but where said.
 */
struct cdc_driver {
    uint32_t magic;        /* CDC_MAGIC */
    uint32_t kind;         /* CDC_KIND_CLOUD */
    uint32_t struct_size;  /* sizeof(struct cdc_driver), as compiled */
    uint32_t abi_major;    /* CDC_ABI_MAJOR, as compiled: must be the host's */
    uint32_t minor_built;  /* CDC_ABI_MINOR, as compiled */
    uint32_t minor_needed; /* lowest host minor that it can live with */
    uint32_t layout;       /* CDC_LAYOUT */
    uint32_t threads;      /* CDC_THREADS_* */

    uint32_t caps;         /* CDC_CAP_* that every set of it has; set_open may
                            * change them for one set */
    uint32_t reserved;     /* 0 */
    const char *name;      /* [a-z0-9_-]+: the file's stem, the value of the
                            * setting `Driver` */
    const char *version;   /* the driver's own */
    const char *description; /* one line */
    const char *url;       /* documentation, or NULL */
    /*
     * The settings that DriverParameters may have, one a line:
     *
     *     Name<TAB>type<TAB>required|default<TAB>help
     *
     * type is str, int, num, bool, list or map. `required` means just that;
     * anything else is the default in JSON (may be empty: none). Unknown
     * settings and wrong types are refused before set_open, with the
     * driver's help text. NULL = the driver checks everything by itself.
     */
    const char *schema;

    /* ---- callbacks, append-only; "must" = may not be NULL ------------- */

    /*
     * must. Open an instance set: check the settings and, if it is cheap,
     * that the cloud answers. *ret_set is passed to every other callback and
     * may not be NULL on success. host stays valid for ever. Settings that
     * are wrong: CONFIG, with the name of the setting in the text.
     */
    int32_t (*set_open)(const struct cdc_host *host, struct cdc_op *op,
                        const struct cdc_set_config *config,
                        struct cdc_set **ret_set);

    /*
     * must. Free the set; instances stay as they are. May not block longer
     * than a second. set is never NULL.
     */
    void (*set_close)(struct cdc_set *set);

    /*
     * must. Ask the cloud for spec->count instances in one request, and emit
     * each one that it accepted (1..count), even if it is still pending.
     *
     * Idempotent by spec->token: the same token again emits the same instances
     * and makes none. This must hold after a restart and when the first reply
     * was lost, so the token has to reach the cloud: as client token, as part
     * of the name, or as a tag. tags and init_command may differ then (they
     * hold a secret that the host does not keep); what there is stays as it was
     * made, and a cloud that refuses other parameters under one client token
     * must be asked for its instance instead. The instance carries all of
     * spec->tags from its first moment: what has no tags cannot be found.
     *
     * Returns when the cloud has accepted: it does not wait for the boot. A
     * later refusal shows up in list, as CDC_STATE_FAILED.
     */
    int32_t (*create)(struct cdc_op *op, struct cdc_set *set,
                      const struct cdc_create_spec *spec);

    /*
     * must. Emit every instance that carries all of the filter's tags:
     * pending, running, stopping, and failed ones. More is allowed (the host
     * filters again), less is not: what was not asked for, or did not answer,
     * must be named with emit_unknown_scope. The same instance twice is
     * allowed, the last one counts. Ending with 0 and no unknown scope says
     * "this is all there is".
     */
    int32_t (*list)(struct cdc_op *op, struct cdc_set *set,
                    const struct cdc_tag *filter, uint32_t n_filter);

    /*
     * CDC_CAP_SET_TAGS. Replace the tags of an instance: others disappear
     * (those of the cloud's own excepted). Unknown id: NOT_FOUND.
     */
    int32_t (*set_tags)(struct cdc_op *op, struct cdc_set *set,
                        const char *id, const struct cdc_tag *tags,
                        uint32_t n_tags);

    /*
     * must. Destroy an instance and everything made with it. 0 when the cloud
     * accepted that, and when it does not know the id. Need not wait: list
     * tells when it is gone.
     */
    int32_t (*destroy)(struct cdc_op *op, struct cdc_set *set,
                       const char *id);

    /*
     * May be NULL. Is this the host key of that instance? key has the form
     * "ssh-ed25519 AAAA...", without a comment. 0 = yes. AUTH = no, somebody
     * is in between. UNSUPPORTED = cannot be told (yet).
     */
    int32_t (*verify_host_key)(struct cdc_op *op, struct cdc_set *set,
                               const char *id, const char *key);

    /*
     * May be NULL: one group for all. Write the name of the quota group that
     * instances of this type count against, at most out_size - 1 bytes and a
     * NUL. Pure: no I/O, no lock held for long, the same answer every time.
     */
    void (*quota_group)(struct cdc_set *set, const char *provider_type,
                        uint32_t preemptible, char *out, uint32_t out_size);

    /*
     * CDC_CAP_PRICES. Emit the price of a type in force at since_ms and each
     * change after it, in any order. placement "" = all of them.
     */
    int32_t (*price_history)(struct cdc_op *op, struct cdc_set *set,
                             const char *provider_type, uint32_t preemptible,
                             const char *placement, int64_t since_ms);

    /* May be NULL. Facts for people (emit_fact): account, region, mode. */
    int32_t (*describe)(struct cdc_op *op, struct cdc_set *set);
};

/* The frozen prefix; a driver that needs nothing newer than minor 0 of its
 * major defines CDC_DRIVER_NEEDS_MINOR as 0 before the include. */
#ifndef CDC_DRIVER_NEEDS_MINOR
#define CDC_DRIVER_NEEDS_MINOR CDC_ABI_MINOR
#endif

#define CDC_DRIVER_PREFIX                                                     \
    CDC_MAGIC, CDC_KIND_CLOUD, (uint32_t)sizeof(struct cdc_driver),           \
        CDC_ABI_MAJOR, CDC_ABI_MINOR, CDC_DRIVER_NEEDS_MINOR, CDC_LAYOUT

/* The one symbol of the file. */
extern CDC_EXPORT const struct cdc_driver cdc_driver_entry;

#ifdef __cplusplus
}
#endif

#endif
