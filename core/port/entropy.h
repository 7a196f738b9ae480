/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PORT_ENTROPY_H
#define CORE_PORT_ENTROPY_H

/* The entropy port: the only source of randomness for core/dispatch. */

#include <stddef.h>

struct entropy_port {
    void (*bytes)(struct entropy_port *e, void *out, size_t n);
    void *impl;
};

#endif
