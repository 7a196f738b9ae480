#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What a grep can see: nothing is left to do, no call that invites accidents,
# a licence line in each file, an essay at the top of each .c of the product.
#
# usage: words.sh [TREE]
set -eu
tree=${1:-${TOP_SRCDIR:?}}
cd "$tree"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# complain TEXT: standard input, if there is any, are the places. Runs at the
# end of a pipe, so what it finds is kept in a file.
complain()
{
    places=$(cat)
    if [ -n "$places" ]; then
        printf '%s:\n%s\n' "$1" "$places" | tee -a "$work/bad"
    fi
}

everything=$(find core drivers plugins-api tests etc doc .ci \
    configure.ac Makefile.am bootstrap.sh README.md HACKING.md NEWS.md \
    -type f ! -path 'etc/build-aux/*' ! -path 'etc/m4/l*' \
    ! -path '*/corpus/*' ! -name words.sh 2>/dev/null | sort)
c_files=$(printf '%s\n' "$everything" | grep '\.[ch]$' || true)
product=$(printf '%s\n' "$c_files" | grep -E '^(core|drivers)/.*\.c$' || true)

# shellcheck disable=SC2086 # lists of names without blanks
{
    grep -nwE 'TODO|FIXME|XXX' $everything /dev/null |
        complain 'something is left to do' || true
    grep -nE '(^|[^A-Za-z0-9_>."])(system|popen|sprintf|vsprintf|strcpy|strcat|strtok|gets|tmpnam|mktemp|setlocale)\(' \
        $c_files /dev/null | complain 'forbidden call' || true
    grep -nE '(^|[^A-Za-z0-9._/-])/work/' $everything /dev/null |
        complain 'path of one particular machine' || true
    grep -nE '[[:space:]]+$' $c_files /dev/null |
        complain 'blanks at the end of a line' || true
    grep -nP '\t' $c_files /dev/null | complain 'tab in C' || true
}

printf '%s\n' "$everything" |
    grep -E '\.([chs]|sh|py|mk|am|ac|m4|in)$' |
    while read -r file; do
        head -n 5 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
            echo "$file"
    done | complain 'no licence line at the top'

# The essay is the comment that follows the licence line.
printf '%s\n' "$product" | while read -r file; do
    [ -n "$file" ] || continue
    lines=$(awk 'NR == 1 { next }
                 !started && /^(#include "config.h")?$/ { next }
                 !started && !/^\/\*/ { exit }
                 { started = 1; n++ }
                 /\*\// { exit }
                 END { print n - 2 }' "$file")
    [ "$lines" -ge 3 ] || echo "$file"
done | complain 'no essay at the top (3 lines at least, better 10)'

# shellcheck disable=SC2086
awk 'length($0) > 100 { print FILENAME ":" FNR }' $c_files /dev/null |
    complain 'line beyond 100 characters (80 is the aim)'

[ ! -s "$work/bad" ]
