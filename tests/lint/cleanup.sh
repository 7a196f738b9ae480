#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A local with the cleanup attribute is cleaned up on every way out of its
# function, also on one that leaves before the variable has a value. So it
# has one from the start: either the declaration initialises it, or, for a
# struct buf, buf_init() stands before the first statement that can leave.
#
# usage: cleanup.sh [TREE]
set -eu
tree=${1:-${TOP_SRCDIR:?}}
cd "$tree"

find core drivers tests -name '*.c' ! -path '*/example/*' 2>/dev/null | sort |
    xargs awk '
function names(text,   n, i, part) {
    sub(/.*CLEANUP\([a-z_]+\) */, "", text)
    sub(/^(const +)?(unsigned +)?(struct +)?[a-z_0-9]+ +/, "", text)
    sub(/;.*/, "", text)
    while (gsub(/\([^()]*\)/, "", text) || gsub(/\{[^{}]*\}/, "", text))
        ;
    n = split(text, part, ",")
    for (i = 1; i <= n; i++)
        if (part[i] !~ /=/) {
            gsub(/[ *]/, "", part[i])
            if (part[i] != "")
                open[part[i]] = FILENAME ":" FNR
        }
}
FNR == 1 { split("", open) }
/CLEANUP\(/ && /;/ && $0 !~ /#define/ { names($0); next }
{
    for (v in open) {
        if ($0 ~ "buf_init\\(&" v "[,)]")
            delete open[v]
        else if ($0 ~ /(^|[^a-z_])(return|goto|break|continue)([^a-z_]|$)/ ||
                 $0 ~ /^}/) {
            printf "%s: %s may be cleaned up before it has a value\n",
                open[v], v
            delete open[v]
            bad++
        }
    }
}
END { exit (bad > 0) }
' || exit 1
