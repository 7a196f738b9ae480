#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A driver exports one data symbol, cdc_driver_entry, is bound when it is
# loaded, is never unloaded, and links nothing that the host table offers.
#
# usage: exports.sh [BUILD-TREE]
set -eu
build=${1:-${TOP_BUILDDIR:?}}
bad=0
total=0

wrong()
{
    echo "$so: $*"
    bad=$((bad + 1))
}

for so in "$build"/drivers/*/.libs/*.so; do
    [ -f "$so" ] || continue
    total=$((total + 1))
    # The sanitizers add names of their own that begin with two underscores.
    exported=$(${NM:-nm} -D --defined-only "$so" |
        awk '$3 !~ /^(_init$|_fini$|__)/ { print $2, $3 }')
    case $exported in
    'D cdc_driver_entry' | 'R cdc_driver_entry') ;;
    *) wrong "exports" "$exported" ;;
    esac
    dynamic=$(readelf -dW "$so")
    case $dynamic in *NOW*) ;; *) wrong "is bound lazily" ;; esac
    case $dynamic in *NODELETE*) ;; *) wrong "can be unloaded" ;; esac
    needed=$(printf '%s\n' "$dynamic" | grep NEEDED |
        grep -E 'lib(curl|crypto|ssl|json-c|uv|ssh)' || true)
    [ -z "$needed" ] || wrong "links $needed"
done
if [ $total = 0 ]; then
    echo "SKIP: no driver is built"
    exit 77
fi
echo "$total drivers, $bad complaints"
[ $bad = 0 ]
