#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Who may include whom. Any include of ours that is not in the first table, and
# any third-party header outside of the rooms that the second table names, is
# an error; so is an include that is not written from the top of the tree.
#
# usage: layers.sh [TREE]
set -eu
tree=${1:-${TOP_SRCDIR:?}}
cd "$tree"

# A room is core/X, drivers/X, plugins-api or tests; it may always include
# itself. "programs" stands for each of them, and none includes another.
edges='
base
model        base
port         base model
io           base
conf         base model
isolate      base
arvados      base model port io
plugin       base model port io plugins-api
ssh          base model port io
store        base model port io
sim          base model port io
dispatch     base model port
programs     base model port io conf isolate arvados plugin ssh store sim dispatch
plugins-api
drivers      plugins-api drivers/common
tests        *
'

# Single files that may know one room more than their own room may.
exceptions='
core/io/realports.c    port
'
programs='dispatcher apiserver agent runner localvm ctl'

# Prefix of a third-party header, and where it may be included. An entry with
# a dot is one file.
third_party='
uv.h       io dispatcher apiserver agent ctl
curl/      io
llhttp.h   io
openssl/   io runner
json       base/jsn.c
yaml.h     conf
ltdl.h     plugin/dl.c
libssh/    ssh
sqlite3.h  store
ares.h     runner
expat.h    drivers/ec2
libpq      store
cmocka.h
'

find core drivers plugins-api tests -name '*.[ch]' ! -path '*/example/*' \
    2>/dev/null | sort |
    xargs grep -nE '^[[:space:]]*#[[:space:]]*include' /dev/null |
    awk -v edges="$edges" -v exceptions="$exceptions" \
        -v programs="$programs" -v third="$third_party" '
function room_of(path,   part) {
    split(path, part, "/")
    if (part[1] == "core")
        return part[2]
    if (part[1] == "drivers")
        return "drivers/" part[2]
    return part[1]
}
function wrong(why) {
    printf "%s:%s: includes %s: %s\n", file, line, name, why
    bad++
}
function may(from, to) {
    if (from == to || allowed[from, "*"] || allowed[from, to])
        return 1
    return from ~ /^drivers\// && allowed["drivers", to]
}
function check_ours(   to) {
    if (name == "config.h")
        return
    if (name !~ /^(core|drivers|tests|plugins-api)\//) {
        wrong("is not written from the top of the tree")
        return
    }
    to = room_of(name)
    if (to == "plugins-api")
        wrong("is written <cdc/...>")
    else if (!may(from, to) && !allowed[file, to])
        wrong(from " must not know " to)
}
function check_system(   i, n, where, ok, any) {
    if (name ~ /^cdc\//) {
        if (!may(from, "plugins-api"))
            wrong(from " must not know plugins-api")
        return
    }
    for (i in prefix) {
        if (index(name, prefix[i]) != 1)
            continue
        n = split(rooms[i], where, " ")
        ok = from == "tests"
        for (any = 1; any <= n; any++)
            ok = ok || where[any] == from || "core/" where[any] == file
        if (!ok)
            wrong("belongs to " (n ? rooms[i] : "tests"))
    }
}
BEGIN {
    n = split(edges, rows, "\n")
    for (i = 1; i <= n; i++) {
        cells = split(rows[i], cell, " ")
        heads = split(cell[1] == "programs" ? programs : cell[1], head, " ")
        for (h = 1; h <= heads; h++) {
            known[head[h]] = 1
            for (c = 2; c <= cells; c++)
                allowed[head[h], cell[c]] = 1
        }
    }
    n = split(exceptions, rows, "\n")
    for (i = 1; i <= n; i++)
        if (split(rows[i], cell, " ") == 2)
            allowed[cell[1], cell[2]] = 1
    n = split(third, rows, "\n")
    for (i = 1; i <= n; i++) {
        if (split(rows[i], cell, " ") == 0)
            continue
        prefix[i] = cell[1]
        sub(/^ *[^ ]+ */, "", rows[i])
        rooms[i] = rows[i]
    }
}
{
    # file:line:# include "name" or <name>
    i = index($0, ":")
    file = substr($0, 1, i - 1)
    rest = substr($0, i + 1)
    line = substr(rest, 1, index(rest, ":") - 1)
    from = room_of(file)
    total++
    if (from !~ /^drivers\// && !known[from]) {
        printf "%s: the room %s is not in the table of %s\n", file, from,
               "tests/lint/layers.sh"
        bad++
        next
    }
    if (match(rest, /"[^"]*"/)) {
        name = substr(rest, RSTART + 1, RLENGTH - 2)
        check_ours()
    } else if (match(rest, /<[^>]*>/)) {
        name = substr(rest, RSTART + 1, RLENGTH - 2)
        check_system()
    } else {
        name = rest
        wrong("is neither \"file\" nor <file>")
    }
}
END {
    printf "%d includes, %d wrong\n", total, bad
    exit bad > 0 || total == 0
}'
