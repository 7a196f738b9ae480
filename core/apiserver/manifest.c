/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifests in Arvados' format, so that a portable data hash computed here is
 * the one that any Arvados tool computes for the same files in the same order.
 *
 *   ./dir md5+size md5+size 0:3:a 3:5:b\n
 *
 * A line (stream) names its folder, then the blocks that its content is cut
 * into, then each file as position:size:name in that content. Blanks,
 * control characters, colons and backslashes in names are written as octal. A
 * stream without content names the empty block. Folders without files do not
 * appear.
 *
 * Pure but for MD5; one thread per writer.
 */
#include "core/apiserver/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/io/crypt.h"

enum {
    BLOCK = 64 << 20,
    TEXT_MAX = 256 << 20,
    MD5_HEX = 2 * CRYPT_MD5_LEN + 1
};

struct manifest_w {
    struct manifest *m;
    char *dir;                   /* of the open stream; NULL = none */
    struct buf blocks;           /* " md5+size" of the stream */
    struct buf tokens;           /* " pos:size:name" */
    struct crypt_digest *digest; /* of the block that grows */
    size_t block_len;
    int64_t stream_len;
    char *file;                  /* present file; NULL = none */
    int64_t file_pos;
};

void manifest_init(struct manifest *m)
{
    *m = (struct manifest){0};
    buf_init(&m->text, TEXT_MAX);
}

void manifest_fini(struct manifest *m)
{
    buf_fini(&m->text);
}

struct manifest_w *manifest_begin(struct manifest *m)
{
    struct manifest_w *w = MEM_NEW(struct manifest_w);

    w->m = m;
    buf_init(&w->blocks, TEXT_MAX);
    buf_init(&w->tokens, TEXT_MAX);
    w->digest = crypt_digest_create("md5");
    return w;
}

static void put_name(struct buf *b, const char *name)
{
    for (const char *s = name; *s; s++) {
        unsigned char c = (unsigned char) *s;
        if (c <= 0x20 || c == 0x7f || c == ':' || c == '\\')
            buf_printf(b, "\\%03o", c);
        else
            buf_putc(b, *s);
    }
}

static void end_block(struct manifest_w *w)
{
    char hex[MD5_HEX];

    if (w->block_len == 0)
        return;
    crypt_digest_end(w->digest, hex, sizeof hex);
    buf_printf(&w->blocks, " %s+%zu", hex, w->block_len);
    w->digest = crypt_digest_create("md5");
    w->block_len = 0;
}

static void end_file(struct manifest_w *w)
{
    if (!w->file)
        return;
    buf_printf(&w->tokens, " %lld:%lld:", (long long) w->file_pos,
               (long long) (w->stream_len - w->file_pos));
    put_name(&w->tokens, w->file);
    w->m->files++;
    w->m->bytes += w->stream_len - w->file_pos;
    mem_set_str(&w->file, NULL);
}

static void end_stream(struct manifest_w *w)
{
    struct buf *out = &w->m->text;

    end_file(w);
    end_block(w);
    if (!w->dir)
        return;
    buf_putc(out, '.');
    if (*w->dir)
        buf_putc(out, '/');
    put_name(out, w->dir);
    if (w->blocks.len == 0)
        buf_puts(&w->blocks, " d41d8cd98f00b204e9800998ecf8427e+0");
    buf_append(out, w->blocks.data, w->blocks.len);
    buf_append(out, w->tokens.data, w->tokens.len);
    buf_putc(out, '\n');
    if (w->blocks.over || w->tokens.over)
        out->over = true;
    buf_reset(&w->blocks);
    buf_reset(&w->tokens);
    mem_set_str(&w->dir, NULL);
    w->stream_len = 0;
}

void manifest_file(struct manifest_w *w, const char *dir, const char *name)
{
    if (w->dir && strcmp(w->dir, dir) != 0)
        end_stream(w);
    end_file(w);
    if (!w->dir)
        mem_set_str(&w->dir, dir);
    mem_set_str(&w->file, name);
    w->file_pos = w->stream_len;
}

void manifest_data(struct manifest_w *w, const void *p, size_t n)
{
    const char *data = p;

    while (n > 0) {
        size_t room = BLOCK - w->block_len;
        size_t now = n < room ? n : room;
        crypt_digest_add(w->digest, data, now);
        w->block_len += now;
        w->stream_len += (int64_t) now;
        data += now;
        n -= now;
        if (w->block_len == BLOCK)
            end_block(w);
    }
}

int manifest_end(struct manifest_w *w, struct err *err)
{
    struct manifest *m = w->m;
    char hex[MD5_HEX];

    end_stream(w);
    crypt_digest_destroy(w->digest);
    buf_fini(&w->blocks);
    buf_fini(&w->tokens);
    free(w);
    if (m->text.over)
        return err_set(err, ERR_TOO_LARGE, "the manifest is too long");
    crypt_md5_hex(m->text.data, m->text.len, hex);
    snprintf(m->pdh, sizeof m->pdh, "%s+%zu", hex, m->text.len);
    return 0;
}
