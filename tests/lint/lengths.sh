#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# No function beyond 80 lines, no file beyond 900. In the product's own code
# also: half of the functions have at most 15 lines, nine of ten at most 35.
#
# Exceptions, as file:function, may only become fewer; a switch over an X-macro
# table is the one thing that deserves one.
#
# usage: lengths.sh [TREE]
set -eu
tree=${1:-${TOP_SRCDIR:?}}
exceptions=''
cd "$tree"

if ! ctags --version 2>/dev/null | grep -q 'Universal Ctags'; then
    echo "SKIP: no universal-ctags"
    exit 77
fi

bad=0
find core drivers plugins-api tests etc -type f \
    \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' \) \
    ! -path 'etc/build-aux/*' 2>/dev/null | sort | xargs wc -l |
    awk '$2 != "total" && $1 > 900 {
             print $2 ": " $1 " lines (at most 900)"; bad++
         }
         END { exit bad > 0 }' || bad=1

find core drivers plugins-api tests -name '*.c' | sort |
    xargs ctags --languages=C --kinds-C=f --fields=+ne -f - 2>/dev/null |
    awk -F '\t' '{
             start = end = 0
             for (i = 4; i <= NF; i++) {
                 if ($i ~ /^line:/) start = substr($i, 6)
                 if ($i ~ /^end:/) end = substr($i, 5)
             }
             if (end) print end - start + 1, $2, $1
         }' | sort -n |
    awk -v exceptions=" $exceptions " '
         $1 > 80 && !index(exceptions, " " $2 ":" $3 " ") {
             print $2 ": " $3 "() has " $1 " lines (at most 80)"; bad++
         }
         $2 !~ /^tests\// { length_of[++n] = $1 }
         END {
             median = length_of[int((n + 1) / 2)]
             p90 = length_of[int((n * 9 + 9) / 10)]
             printf "%d functions in the product: median %d, p90 %d lines\n",
                    n, median, p90
             if (median > 15) { print "the median is beyond 15"; bad++ }
             if (p90 > 35) { print "p90 is beyond 35"; bad++ }
             exit bad > 0 || n == 0
         }' || bad=1
[ $bad = 0 ]
