/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What makes a descriptor acceptable.
 *
 * The prefix is judged twice by the same function: as read from the file,
 * before any of the driver's code has run, and as found in memory afterwards.
 * The order of the tests is the order in which an answer makes sense: is it a
 * plugin at all, of our kind, laid out as we think, of our major version, and
 * can both sides live with each other's minor?
 *
 * Minor versions: while the major is 0 both must be equal, because nothing is
 * promised yet. Afterwards only `minor_needed` counts, `minor_built` is for
 * people.
 *
 * Sizes: a smaller descriptor is an older one (its missing callbacks read as
 * NULL), a larger one is newer (we never ask for what we do not know). The
 * floor is the last callback that every driver must have.
 */

#include "core/plugin/descriptor.h"

#include <cdc/driver.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/text.h"

enum { DESCRIPTOR_MAX = 4096 };

#define DESCRIPTOR_MIN                                                        \
    (offsetof(struct cdc_driver, destroy) +                                   \
     sizeof(((struct cdc_driver *)0)->destroy))

_Static_assert(offsetof(struct cdc_driver, layout) ==
                   offsetof(struct descriptor_prefix, layout),
               "the prefix of the descriptor is frozen");

struct descriptor_host descriptor_host(void)
{
    struct descriptor_host host = {CDC_ABI_MAJOR, CDC_ABI_MINOR};

    return host;
}

static int refuse_minor(const struct descriptor_prefix *p, uint32_t minor,
                        const char *verb, struct descriptor_host host,
                        struct err *err)
{
    return err_set(err, ERR_CONFIG, "%s driver ABI %u.%u, this host has %u.%u",
                   verb, p->abi_major, minor, host.abi_major, host.abi_minor);
}

static int check_version(const struct descriptor_prefix *p,
                         struct descriptor_host host, struct err *err)
{
    if (p->abi_major != host.abi_major)
        return refuse_minor(p, p->minor_built, "built for", host, err);
    if (p->minor_needed > host.abi_minor)
        return refuse_minor(p, p->minor_needed, "needs", host, err);
    if (p->abi_major == 0 && p->minor_built != host.abi_minor)
        return refuse_minor(p, p->minor_built, "built for", host, err);
    return 0;
}

int descriptor_check_prefix(const struct descriptor_prefix *p,
                            size_t object_size, struct descriptor_host host,
                            struct err *err)
{
    if (p->magic != CDC_MAGIC)
        return err_set(err, ERR_CONFIG,
                       "not a driver: wrong magic number 0x%08x", p->magic);
    if (p->kind != CDC_KIND_CLOUD)
        return err_set(err, ERR_CONFIG,
                       "a plugin of kind %u, not a cloud driver (%u)",
                       p->kind, CDC_KIND_CLOUD);
    if (check_version(p, host, err))
        return -1;
    if (p->struct_size < DESCRIPTOR_MIN || p->struct_size > DESCRIPTOR_MAX)
        return err_set(err, ERR_CONFIG,
                       "its descriptor claims %u bytes, not %u to %u",
                       p->struct_size, (unsigned)DESCRIPTOR_MIN,
                       (unsigned)DESCRIPTOR_MAX);
    if (object_size && p->struct_size > object_size)
        return err_set(err, ERR_CONFIG,
                       "its descriptor claims %u bytes but has %zu",
                       p->struct_size, object_size);
    if (p->layout != CDC_LAYOUT)
        return err_set(err, ERR_CONFIG,
                       "built with layout switches 0x%x, this host has 0x%x",
                       p->layout, CDC_LAYOUT);
    return 0;
}

static int check_texts(const struct cdc_driver *d, const char *stem,
                       struct err *err)
{
    if (!d->name || !d->version || !d->description)
        return err_set(err, ERR_CONFIG,
                       "name, version or description is missing");
    if (!text_is_name(d->name, 63))
        return err_set(err, ERR_CONFIG,
                       "its name is not [a-z0-9_-]{1,63}");
    if (strcmp(d->name, stem) != 0)
        return err_set(err, ERR_CONFIG,
                       "it calls itself '%s'; the file's name must be %s.so",
                       d->name, d->name);
    return 0;
}

static int check_callbacks(const struct cdc_driver *d, struct err *err)
{
    const char *missing = !d->set_open ? "set_open"
                          : !d->set_close ? "set_close"
                          : !d->create ? "create"
                          : !d->list ? "list"
                          : !d->destroy ? "destroy"
                          : (d->caps & CDC_CAP_SET_TAGS) && !d->set_tags
                              ? "set_tags"
                          : (d->caps & CDC_CAP_PRICES) && !d->price_history
                              ? "price_history" : NULL;

    if (missing)
        return err_set(err, ERR_CONFIG, "callback %s is missing", missing);
    if (d->threads > CDC_THREADS_PARALLEL)
        return err_set(err, ERR_CONFIG, "unknown thread model %u",
                       d->threads);
    return 0;
}

int descriptor_copy(const void *descriptor, const char *stem,
                    struct cdc_driver *ret, struct err *err)
{
    struct descriptor_prefix prefix;
    struct cdc_driver d = {0};

    memcpy(&prefix, descriptor, sizeof prefix);
    memcpy(&d, descriptor, prefix.struct_size < sizeof d ? prefix.struct_size
                                                         : sizeof d);
    if (check_texts(&d, stem, err) || check_callbacks(&d, err))
        return -1;
    *ret = d;
    return 0;
}
