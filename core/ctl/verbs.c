/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb table, spelled out of CTL_VERBS: each verb's options become an
 * array, each verb a row with the function of its own file (verb_NAME in
 * NAME.c). Nothing but data; main.c parses by it, help.c prints it.
 */
#include "core/ctl/verbs.h"

#define OPT(name, letter, value, help) { #name, letter, value, help },
#define X(name, args, opts, help)                                             \
    static const struct verb_opt opts_##name[] = {                            \
        opts(OPT) { 0, 0, 0, 0 }                                              \
    };
CTL_VERBS(X)
#undef X

const struct verb_opt verb_common_opts[] = {
    OPTS_COMMON(OPT) { 0, 0, 0, 0 }
};

const struct verb verbs[] = {
#define X(name, args, opts, help) { #name, args, help, opts_##name,           \
                                    verb_##name },
    CTL_VERBS(X)
#undef X
    { 0, 0, 0, 0, 0 }
};
