/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A small ELF reader: enough of the format to judge a driver before any of
 * its code runs, constructors included.
 *
 *   1. the file header: class, byte order, type ET_DYN;
 *   2. the section table: the one SHT_DYNSYM and the string table it links;
 *   3. the symbols: the wanted one, and nothing else that is exported. An
 *      extra exported symbol is how a driver that embeds a library ends up
 *      calling another copy of it, or has its own called;
 *   4. the program header that maps the symbol: the bytes themselves. The
 *      prefix of a descriptor is plain numbers, so no relocation is needed.
 *
 * Everything is a number from a file that may be damaged: each range is
 * checked against a limit and each read must deliver all its bytes. What this
 * reader does not understand it refuses; the dynamic linker has the last word
 * later anyway.
 *
 * Source: the generic ABI (System V ABI, chapters 4 and 5), <elf.h>.
 * Called on the main thread while drivers are loaded.
 */

#include "core/plugin/elffile.h"

#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/mem.h"

#define ELF_CLASS_HERE (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ELF_DATA_HERE ELFDATA2LSB
#else
#define ELF_DATA_HERE ELFDATA2MSB
#endif

struct elffile {
    int fd;
    ElfW(Ehdr) eh;
    struct buf sections; /* eh.e_shnum x Shdr */
    struct buf symbols;
    struct buf strings;
};

static int damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_CONFIG, "damaged ELF file: %s", what);
}

static int read_at(int fd, void *p, size_t n, uint64_t offset,
                   struct err *err)
{
    ssize_t got;

    if (offset > INT64_MAX - n)
        return damaged(err, "an offset is beyond the end");
    do
        got = pread(fd, p, n, (off_t)offset);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_set_errno(err, errno, "read");
    if ((size_t)got != n)
        return damaged(err, "it is too short");
    return 0;
}

static int read_buf(int fd, struct buf *b, uint64_t n, uint64_t offset,
                    struct err *err)
{
    char *room = n <= ELFFILE_MAX ? buf_reserve(b, (size_t)n) : NULL;

    if (!room)
        return damaged(err, "a table is too large");
    if (read_at(fd, room, (size_t)n, offset, err))
        return -1;
    buf_add(b, (size_t)n);
    return 0;
}

static int read_header(struct elffile *f, struct err *err)
{
    if (read_at(f->fd, &f->eh, sizeof f->eh, 0, err))
        return -1;
    if (memcmp(f->eh.e_ident, ELFMAG, SELFMAG) != 0)
        return err_set(err, ERR_CONFIG, "not an ELF file");
    if (f->eh.e_ident[EI_CLASS] != ELF_CLASS_HERE ||
        f->eh.e_ident[EI_DATA] != ELF_DATA_HERE)
        return err_set(err, ERR_CONFIG, "made for another machine");
    if (f->eh.e_type != ET_DYN)
        return err_set(err, ERR_CONFIG, "not a shared object");
    if (f->eh.e_shentsize != sizeof(ElfW(Shdr)) ||
        f->eh.e_phentsize != sizeof(ElfW(Phdr)))
        return damaged(err, "strange table entries");
    return read_buf(f->fd, &f->sections,
                    (uint64_t)f->eh.e_shnum * sizeof(ElfW(Shdr)),
                    f->eh.e_shoff, err);
}

/* Tables are copied out: nothing says that they are aligned. */
static ElfW(Shdr) section_at(const struct elffile *f, size_t i)
{
    ElfW(Shdr) sh;

    memcpy(&sh, f->sections.data + i * sizeof sh, sizeof sh);
    return sh;
}

static int read_tables(struct elffile *f, struct err *err)
{
    ElfW(Shdr) sh = {0}, strings;
    size_t i;

    for (i = 0; i < f->eh.e_shnum; i++) {
        sh = section_at(f, i);
        if (sh.sh_type == SHT_DYNSYM)
            break;
    }
    if (i == f->eh.e_shnum)
        return damaged(err, "no table of dynamic symbols");
    if (sh.sh_link >= f->eh.e_shnum)
        return damaged(err, "no table of symbol names");
    strings = section_at(f, sh.sh_link);
    if (read_buf(f->fd, &f->symbols, sh.sh_size, sh.sh_offset, err) ||
        read_buf(f->fd, &f->strings, strings.sh_size, strings.sh_offset, err))
        return -1;
    return 0;
}

/* NULL when the index is wild; names end inside the table (buf adds a NUL). */
static const char *symbol_name(const struct elffile *f, const ElfW(Sym) *s)
{
    return s->st_name < f->strings.len ? f->strings.data + s->st_name : NULL;
}

static bool is_exported(const ElfW(Sym) *s)
{
    unsigned bind = s->st_info >> 4, visibility = s->st_other & 3;

    return s->st_shndx != SHN_UNDEF && bind != STB_LOCAL &&
           (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

/* Older linkers, crt files and sanitizers export these on their own. */
static bool is_tools(const char *name)
{
    static const char *const names[] = {
        "_init", "_fini", "__bss_start", "_edata", "_end",
    };

    for (size_t i = 0; i < MEM_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return strncmp(name, "__odr_asan.", 11) == 0;
}

static int find_symbol(const struct elffile *f, const char *name,
                       ElfW(Sym) *ret, struct err *err)
{
    bool found = false;
    ElfW(Sym) s;

    for (size_t at = 0; at + sizeof s <= f->symbols.len; at += sizeof s) {
        const char *this;

        memcpy(&s, f->symbols.data + at, sizeof s);
        if (!is_exported(&s))
            continue;
        if (!(this = symbol_name(f, &s)))
            return damaged(err, "a symbol's name is beyond the end");
        if (strcmp(this, name) == 0) {
            *ret = s;
            found = true;
        } else if (!is_tools(this)) {
            return err_set(err, ERR_CONFIG,
                           "it exports '%.100s'; a driver exports nothing "
                           "but %s", this, name);
        }
    }
    if (!found)
        return err_set(err, ERR_CONFIG, "not a driver: it exports no %s",
                       name);
    return 0;
}

/* Where in the file the bytes at a virtual address are. */
static int file_offset(const struct elffile *f, uint64_t address, size_t n,
                       uint64_t *ret, struct err *err)
{
    ElfW(Phdr) ph;

    for (size_t i = 0; i < f->eh.e_phnum; i++) {
        if (read_at(f->fd, &ph, sizeof ph,
                    f->eh.e_phoff + i * (uint64_t)sizeof ph, err))
            return -1;
        if (ph.p_type == PT_LOAD && address >= ph.p_vaddr &&
            ph.p_filesz >= n && address - ph.p_vaddr <= ph.p_filesz - n) {
            *ret = ph.p_offset + (address - ph.p_vaddr);
            return 0;
        }
    }
    return err_set(err, ERR_CONFIG, "its descriptor has no initial value");
}

static int read_prefix(const struct elffile *f, const ElfW(Sym) *s,
                       const char *name, void *prefix, size_t n,
                       struct err *err)
{
    uint64_t offset = 0;

    if ((s->st_info & 0xf) != STT_OBJECT)
        return err_set(err, ERR_CONFIG, "%s is not a data object", name);
    if (s->st_size < n)
        return err_set(err, ERR_CONFIG,
                       "%s has %llu bytes, too few for a descriptor", name,
                       (unsigned long long)s->st_size);
    if (file_offset(f, s->st_value, n, &offset, err))
        return -1;
    return read_at(f->fd, prefix, n, offset, err);
}

int elffile_read_symbol(int fd, const char *name, void *prefix, size_t n,
                        size_t *ret_size, struct err *err)
{
    struct elffile f = {.fd = fd};
    ElfW(Sym) symbol = {0};
    int rc;

    buf_init(&f.sections, ELFFILE_MAX);
    buf_init(&f.symbols, ELFFILE_MAX);
    buf_init(&f.strings, ELFFILE_MAX);
    rc = read_header(&f, err) || read_tables(&f, err) ||
         find_symbol(&f, name, &symbol, err) ||
         read_prefix(&f, &symbol, name, prefix, n, err) ? -1 : 0;
    if (rc == 0)
        *ret_size = (size_t)symbol.st_size;
    buf_fini(&f.sections);
    buf_fini(&f.symbols);
    buf_fini(&f.strings);
    return rc;
}
