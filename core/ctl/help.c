/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Printing the verb table: for people (--help) and as roff for crunchctl(1),
 * which is made at build time by the hidden option --man-verbs. Nothing here
 * knows a single verb: what is not in the table is not in the help.
 */
#include "core/ctl/help.h"

#include <stdio.h>
#include <string.h>

#include "core/ctl/verbs.h"

void help_all(void)
{
    puts("usage: crunchctl VERB [options] [arguments]\n");
    for (const struct verb *v = verbs; v->name; v++)
        printf("  %-10s %s\n", v->name, v->help);
    puts("\nEach verb: crunchctl VERB --help. Manual: crunchctl(1).\n"
         "Credentials: environment, else ~/.config/arvados/settings.conf.\n"
         "Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 not "
         "found,\n4 refused, 5 no answer, 6 timed out; submit --wait and wait: "
         "the container's\nown, 125 cancelled or our failure, 126 cannot be "
         "started, 127 command not\nfound, 137 killed by a limit.");
}

static void print_opts(const struct verb_opt *o)
{
    for (; o->name; o++) {
        char left[64];

        snprintf(left, sizeof left, "%s--%s%s%s",
                 o->letter ? (char[]){ '-', o->letter, ',', ' ', 0 } : "",
                 o->name, *o->value ? " " : "", o->value);
        printf("  %-26s %s\n", left, o->help);
    }
}

void help_verb(const struct verb *v)
{
    printf("usage: crunchctl %s [options] %s\n\nTo %s.\n\n", v->name, v->args,
           v->help);
    print_opts(v->opts);
    print_opts(verb_common_opts);
}

/* --- roff ------------------------------------------------------------------------ */

static void put(const char *s)
{
    for (; *s; s++)
        fputs(*s == '-' ? "\\-" : *s == '\\' ? "\\e" : (char[]){ *s, 0 },
              stdout);
}

static void man_opts(const struct verb_opt *o)
{
    for (; o->name; o++) {
        fputs(".TP\n.BI ", stdout);
        if (o->letter)
            printf("\\-%c\\fR,\\ \\fB", o->letter);
        fputs("\\-\\-", stdout);
        put(o->name);
        if (*o->value) {
            fputs(" \" ", stdout);
            put(o->value);
            putchar('"');
        }
        putchar('\n');
        put(o->help);
        puts(".");
    }
}

void help_man(void)
{
    for (const struct verb *v = verbs; v->name; v++) {
        printf(".SS crunchctl %s [options] ", v->name);
        put(v->args);
        putchar('\n');
        fputs("To ", stdout);
        put(v->help);
        puts(".");
        man_opts(v->opts);
    }
    puts(".SS All verbs");
    man_opts(verb_common_opts);
}
