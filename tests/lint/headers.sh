#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every header compiles alone, so that no .c file depends on the order of its
# includes. The public headers also compile as C90 and as C++, since drivers
# are written in what their authors like.
#
# usage: headers.sh [TREE]
set -eu
tree=${1:-${TOP_SRCDIR:?}}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
total=0

# compile HEADER LANGUAGE-NAME COMMAND...
compile()
{
    header=$1 language=$2
    shift 2
    total=$((total + 1))
    # shellcheck disable=SC2086 # CPPFLAGS is a list
    if ! "$@" -I"$tree" -I"$tree/plugins-api" \
        -I"${TOP_BUILDDIR:-$tree}/plugins-api" ${CPPFLAGS-} -Werror \
        -fsyntax-only "$work/one.$suffix" 2>"$work/log"; then
        echo "$header does not compile alone as $language:"
        cat "$work/log"
        bad=$((bad + 1))
    fi
}

# Not headers but bodies: what includes them defines names for them first.
templates='tests/bad-drivers/bad.h'

cd "$tree"
for header in $(find core drivers plugins-api tests -name '*.h' | sort); do
    case " $templates " in *" $header "*) continue ;; esac
    # Once more at the end: include guards work.
    printf '#include "%s"\n#include "%s"\n' "$tree/$header" "$tree/$header" \
        >"$work/one.c"
    suffix=c
    # shellcheck disable=SC2086 # CC may be "ccache gcc"
    compile "$header" C11 ${CC:-cc} -std=gnu11 -Wall -Wextra -Wno-unused
    case $header in
    plugins-api/cdc/*)
        # shellcheck disable=SC2086
        compile "$header" C90 ${CC:-cc} -std=c90 -pedantic -Wall -Wextra
        if command -v "${CXX:-c++}" >/dev/null; then
            cp "$work/one.c" "$work/one.cc"
            suffix=cc
            compile "$header" C++ "${CXX:-c++}" -std=c++11 -pedantic -Wall \
                -Wextra
        fi
        ;;
    esac
done
echo "$total compilations, $bad failed"
[ $bad = 0 ] && [ $total -gt 0 ]
