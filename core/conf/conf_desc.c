/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings table, spelled out: for each row of CONF_TBL its type, its
 * place in struct conf and its range (for the reader, conf.c), and what people
 * are told of it (for the manual and for -check-config). Printing never shows
 * a secret. Constant data; nothing here can fail but a full buffer.
 */
#include "core/base/buf.h"
#include "core/base/text.h"
#include "core/conf/conf_priv.h"

const struct conf_desc conf_descs[CONF_ID_COUNT] = {
#define X(t, member, k, d, lo, hi, fl, pe, he)                                \
    { { #t, k, d, fl, pe, he }, CONF_TYPE_##t, offsetof(struct conf, member), \
      lo, hi },
    CONF_TBL(X)
#undef X
};

const struct conf_row *conf_rows(size_t *ret_n)
{
    static struct conf_row pub[CONF_ID_COUNT];

    for (size_t i = 0; i < CONF_ID_COUNT; i++)
        pub[i] = conf_descs[i].pub;
    *ret_n = CONF_ID_COUNT;
    return pub;
}

static void print_row(const struct conf *c, const struct conf_desc *row,
                      struct buf *out)
{
    const char *p = (const char *) c + row->offset;
    const struct conf_list *list = (const void *) p;
    const struct conf_map *map = (const void *) p;
    char text[64];

    buf_printf(out, "%s:", row->pub.key);
    switch (row->type) {
    case CONF_TYPE_SECRET:
        buf_puts(out, **(char *const *) (const void *) p ? " [secret]" : "");
        break;
    case CONF_TYPE_STR:
    case CONF_TYPE_JSON:
        buf_printf(out, " %s", *(char *const *) (const void *) p);
        break;
    case CONF_TYPE_BOOL:
        buf_puts(out, *(const bool *) p ? " true" : " false");
        break;
    case CONF_TYPE_FLOAT:
        buf_printf(out, " %g", *(const double *) (const void *) p);
        break;
    case CONF_TYPE_DURATION:
        buf_printf(out, " %s",
                   text_format_duration(*(const int64_t *) (const void *) p,
                                        text, sizeof text));
        break;
    case CONF_TYPE_LIST:
    case CONF_TYPE_URLS:
        for (size_t i = 0; i < list->n; i++)
            buf_printf(out, "%s%s", i ? ", " : " ", list->v[i]);
        break;
    case CONF_TYPE_MAP:
        for (size_t i = 0; i < map->n; i++)
            buf_printf(out, "%s%s=%s", i ? ", " : " ", map->v[i].key,
                       map->v[i].value);
        break;
    default:
        buf_printf(out, " %lld",
                   (long long) *(const int64_t *) (const void *) p);
    }
    buf_putc(out, '\n');
}

int conf_print(const struct conf *c, struct buf *out)
{
    for (size_t i = 0; i < CONF_ID_COUNT; i++)
        print_row(c, &conf_descs[i], out);
    return out->over ? -1 : 0;
}
