/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A VM's host key: made by core/io/sshkey, with the public part in the form
 * that instance records carry, "TYPE BASE64" without comment and newline.
 *
 * Called when an intent is made, from one thread. The private key is in no
 * buffer of ours but the caller's when this returns.
 */

#include "core/localvm/keygen.h"

#include <string.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/io/sshkey.h"

enum { LINE_MAX_BYTES = 512 };

int keygen_ed25519(struct buf *private_key, char **ret_public,
                   struct err *err)
{
    CLEANUP(buf_fini) struct buf line;
    size_t type;

    buf_init(&line, LINE_MAX_BYTES);
    if (sshkey_make("", private_key, &line, err) < 0)
        return -1;
    if (private_key->over || line.over)
        return err_set(err, ERR_TOO_LARGE, "no room for the host key");
    type = strcspn(line.data, " ") + 1;
    *ret_public =
        mem_strndup(line.data, type + strcspn(line.data + type, " \n"));
    return 0;
}
