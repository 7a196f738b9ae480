/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PORT_OP_H
#define CORE_PORT_OP_H

/*
 * What all ports share: the shape of an operation.
 *
 *     struct op *x(port, const struct x_req *req, x_cb *cb, void *arg);
 *
 * - The request, with everything it points to, is copied before x returns.
 * - x never fails at once: bad luck is reported by cb. It never returns NULL.
 * - cb fires exactly once, on the loop thread, never inside the call to x
 *   (in the simulator: never in the turn that asked).
 * - The op belongs to the port; it is valid until cb has returned.
 * - The result, with everything it points to, is borrowed during cb.
 * - op_cancel is a hint. cb still fires, with OP_CANCELLED or with the true
 *   outcome, whichever came first. A cancelled create is OP_UNKNOWN.
 * - Every op has a deadline; when it passes, cb fires with OP_UNKNOWN (an
 *   effect may have happened) or OP_REFUSED/ERR_TIMEOUT (it cannot have).
 * - Streams are ops with n x on_data, then exactly one end callback.
 *
 * Below a port one request is performed and one outcome reported. Retry,
 * back-off, order, throttling are decided above, in core/dispatch.
 */

#include "core/base/err.h"

struct op; /* each adapter embeds its own */

enum op_outcome {
    OP_DONE,     /* it happened; err is ERR_NONE */
    OP_REFUSED,  /* it did not happen and will not; err says why */
    OP_UNKNOWN,  /* it may or may not have happened, or still may */
    OP_CANCELLED /* given up before it had any effect */
};

/* First member of every result. */
struct op_result {
    enum op_outcome outcome;
    struct err err;
};

#endif
