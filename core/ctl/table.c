/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables on a terminal: cells are collected, then printed with the width of
 * the widest cell of their column. Widths are counted in code points, which
 * is right for what this tool prints. Empty cells show "-", so that columns
 * can be cut apart by other tools.
 */
#include "core/ctl/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/base/vec.h"

enum { TABLE_COLUMNS = 16, TABLE_CELL_MAX = 400 };

struct table {
    size_t n_columns;
    bool right[TABLE_COLUMNS];
    size_t width[TABLE_COLUMNS];
    VEC(char *) cells; /* the heads first */
};

static size_t code_points(const char *s)
{
    size_t n = 0;

    for (; *s; s++)
        n += ((unsigned char) *s & 0xc0) != 0x80;
    return n;
}

static void add(struct table *t, char *text)
{
    size_t column = t->cells.n % t->n_columns;
    size_t n = code_points(text);

    if (n > t->width[column])
        t->width[column] = n;
    VEC_PUSH(&t->cells, text);
}

struct table *table_create(const char *heads)
{
    struct table *t = MEM_NEW(struct table);

    t->n_columns = 1;
    for (const char *p = heads; *p; p++)
        t->n_columns += *p == '|';
    for (size_t i = 0; i < t->n_columns; i++) {
        size_t n = strcspn(heads, "|");

        t->right[i] = *heads == '>';
        add(t, mem_strndup(heads + t->right[i], n - t->right[i]));
        heads += n + (heads[n] == '|');
    }
    return t;
}

void table_destroy(struct table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->cells.n; i++)
        free(t->cells.v[i]);
    VEC_FINI(&t->cells);
    free(t);
}

void table_cell(struct table *t, const char *text)
{
    struct buf b;

    buf_init(&b, 4 * TABLE_CELL_MAX);
    if (!text || !*text)
        text = "-";
    text_quote_terminal(&b, text, strnlen(text, TABLE_CELL_MAX));
    add(t, buf_take(&b, NULL));
    buf_fini(&b);
}

void table_printf(struct table *t, const char *fmt, ...)
{
    char text[TABLE_CELL_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    table_cell(t, text);
}

size_t table_rows(const struct table *t)
{
    return t->cells.n / t->n_columns - 1;
}

static void print_row(const struct table *t, char *const *cells,
                      size_t width, struct buf *out)
{
    size_t start = out->len;

    for (size_t i = 0; i < t->n_columns; i++) {
        size_t pad = t->width[i] - code_points(cells[i]);
        bool last = i + 1 == t->n_columns;

        if (t->right[i])
            buf_printf(out, "%*s", (int) pad, "");
        buf_puts(out, cells[i]);
        if (!last)
            buf_printf(out, "%*s", (int) (2 + (t->right[i] ? 0 : pad)), "");
    }
    if (width && out->len - start > width)
        buf_truncate(out, start + width);
    buf_putc(out, '\n');
}

void table_print(const struct table *t, size_t width, struct buf *out)
{
    for (size_t i = 0; i + t->n_columns <= t->cells.n; i += t->n_columns)
        print_row(t, t->cells.v + i, width, out);
}
