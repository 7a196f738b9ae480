/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The final word about a container. Who fills it decides; this only spells it.
 * The keys of runtime_status are Arvados' (error, errorDetail, warning,
 * warningDetail) and noRetry, which is ours.
 */
#include "core/runner/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

#include "core/base/buf.h"
#include "core/base/jsn.h"

__attribute__((format(printf, 3, 0))) static void
set_once(char *slot, size_t size, const char *fmt, va_list ap)
{
    if (!slot[0])
        vsnprintf(slot, size, fmt, ap);
}

void report_error(struct report *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    set_once(r->error, sizeof r->error, fmt, ap);
    va_end(ap);
}

void report_warning(struct report *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    set_once(r->warning, sizeof r->warning, fmt, ap);
    va_end(ap);
}

int report_exit_code(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status)
                                    : WEXITSTATUS(wait_status);
}

static void opt_str(struct jsn_w *w, const char *key, const char *value)
{
    if (value[0])
        jsn_w_str(w, key, value);
}

void report_print(const struct report *r, struct buf *out)
{
    struct jsn_w w;

    jsn_w_init(&w, out);
    jsn_w_obj(&w, NULL);
    jsn_w_str(&w, "state", r->complete ? "Complete" : "Cancelled");
    if (r->complete && r->has_exit_code)
        jsn_w_i64(&w, "exit_code", r->exit_code);
    jsn_w_f64(&w, "cost", r->cost);
    jsn_w_obj(&w, "runtime_status");
    opt_str(&w, "error", r->error);
    opt_str(&w, "errorDetail", r->error_detail);
    opt_str(&w, "warning", r->warning);
    opt_str(&w, "warningDetail", r->warning_detail);
    if (r->no_retry)
        jsn_w_bool(&w, "noRetry", true);
    jsn_w_end_obj(&w);
    jsn_w_end_obj(&w);
}
