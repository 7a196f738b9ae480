/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRIVERS_COMMON_JSONW_H
#define DRIVERS_COMMON_JSONW_H

/*
 * Writing JSON text in a driver. key is NULL for the root and inside arrays.
 * Texts are UTF-8 (the host guarantees it for what it passes). Nothing fails
 * but memory; look at `failed` once at the end.
 */

#include <cdc/types.h>

struct jsonw {
    char *text; /* NUL-terminated; NULL while empty */
    size_t len, cap;
    int comma;  /* the next value needs one */
    int failed; /* out of memory, or beyond JSONW_MAX */
};

enum { JSONW_MAX = 1 << 20 };

void jsonw_fini(struct jsonw *w); /* zero-initialise to begin */

void jsonw_obj(struct jsonw *w, const char *key);
void jsonw_arr(struct jsonw *w, const char *key);
void jsonw_end_obj(struct jsonw *w);
void jsonw_end_arr(struct jsonw *w);
void jsonw_str(struct jsonw *w, const char *key, const char *s);
void jsonw_i64(struct jsonw *w, const char *key, int64_t v);
void jsonw_f64(struct jsonw *w, const char *key, double v);
void jsonw_tags(struct jsonw *w, const char *key, const struct cdc_tag *tags,
                uint32_t n);

#endif
