/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the part of crunch-dispatch-cloud.yml(5) that describes each
 * setting, from the settings table: one source for the parser and the manual.
 * A build-time program; the man page is its frame plus this output.
 *
 *   settings_doc man    roff, one .TP per key, then the two tables that the
 *                       manual promises: defaults that differ from Arvados'
 *                       and keys that are accepted but not used
 *   settings_doc keys   one key a line, for the documentation lint
 */
#include <stdio.h>
#include <string.h>

#include "core/conf/conf.h"

/* Text into roff: backslashes and a leading dot or quote are special. */
static void put_text(const char *s)
{
    if (*s == '.' || *s == '\'')
        fputs("\\&", stdout);
    for (; *s; s++) {
        if (*s == '\\')
            fputs("\\e", stdout);
        else if (*s == '-')
            fputs("\\-", stdout);
        else
            putchar(*s);
    }
    putchar('\n');
}

static void put_key(const struct conf_row *row)
{
    fputs(".TP\n.B ", stdout);
    put_text(row->key);
}

static const char *type_name(const char *type)
{
    static const char *const names[][2] = {
        { "STR", "text" },          { "SECRET", "text, secret" },
        { "BOOL", "true or false" }, { "INT", "number" },
        { "FLOAT", "number" },      { "DURATION", "duration" },
        { "SIZE", "size" },         { "LIST", "list of texts" },
        { "MAP", "map" },           { "URLS", "map from URL to {}" },
        { "JSON", "map" },
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i][0], type))
            return names[i][1];
    return type;
}

static void put_row(const struct conf_row *row)
{
    put_key(row);
    printf("(%s; default: %s%s%s)\n", type_name(row->type),
           *row->def ? row->def : "none",
           row->flags & CONF_OURS ? "; not an Arvados setting" : "",
           row->flags & CONF_API ? "; read by crunch\\-api\\-server" : "");
    put_text(row->help);
    if (row->flags & CONF_ZDEF)
        puts("0 means the default.");
    if (row->flags & CONF_UNUSED)
        puts("Accepted, not used; a warning says so.");
}

static void put_man(const struct conf_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_row(&rows[i]);
    puts(".SH DIFFERENCES FROM ARVADOS\n"
         "Defaults that differ from those of arvados\\-dispatch\\-cloud:");
    for (size_t i = 0; i < n; i++) {
        if (!*rows[i].peer)
            continue;
        put_key(&rows[i]);
        printf("Here %s. Arvados: ", *rows[i].def ? rows[i].def : "none");
        put_text(rows[i].peer);
    }
    puts(".SH ACCEPTED, NOT USED\n"
         "These keys of an Arvados file have no effect:");
    for (size_t i = 0; i < n; i++)
        if (rows[i].flags & CONF_UNUSED) {
            fputs(".br\n", stdout);
            put_text(rows[i].key);
        }
}

int main(int argc, char **argv)
{
    size_t n;
    const struct conf_row *rows = conf_rows(&n);

    if (argc == 2 && !strcmp(argv[1], "man")) {
        put_man(rows, n);
    } else if (argc == 2 && !strcmp(argv[1], "keys")) {
        for (size_t i = 0; i < n; i++)
            puts(rows[i].key);
    } else {
        fputs("usage: settings_doc man|keys\n", stderr);
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
