/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

/*
 * What every unit test includes: cmocka with the headers it wants first, and
 * two helpers.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/err.h"

/* expr succeeds; if not, the error's text is printed. */
#define assert_ok(expr, err)                                                  \
    do {                                                                      \
        if ((expr) != 0)                                                      \
            fail_msg("%s: %s", #expr, (err)->text);                           \
    } while (0)

/* expr fails with that class and a text. */
#define assert_err(expr, err, klass)                                          \
    do {                                                                      \
        err_clear(err);                                                       \
        if ((expr) == 0)                                                      \
            fail_msg("%s succeeded", #expr);                                  \
        assert_string_equal(err_class_label((err)->class),                    \
                            err_class_label(klass));                          \
        assert_true((err)->text[0] != '\0');                                  \
    } while (0)

#endif
