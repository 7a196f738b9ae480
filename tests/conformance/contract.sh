#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What the public headers promise: a whole driver compiles with nothing else,
# as C90 and as C++; the frozen prefix of the descriptor is where it always
# was; every type has a fixed width.
#
# usage: contract.sh [TREE]
set -eu
tree=${1:-${TOP_SRCDIR:?}}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

cat >"$work/whole.c" <<'END'
#include <cdc/driver.h>
struct cdc_set { int unused; };
static void set_close(struct cdc_set *set) { (void)set; }
const struct cdc_driver cdc_driver_entry = {
    CDC_DRIVER_PREFIX, CDC_THREADS_SERIAL, CDC_CAP_BATCH, 0, "x", "1", "y",
    NULL, NULL, NULL, set_close, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL };
int can_parse(const struct cdc_host *host);
int can_parse(const struct cdc_host *host)
{
    return CDC_HOST_HAS(host, json_parse);
}
#define AT(member, offset)                                                    \
    extern char at_##member[offsetof(struct cdc_driver, member) == offset     \
                            ? 1 : -1]
AT(magic, 0);
AT(kind, 4);
AT(struct_size, 8);
AT(abi_major, 12);
AT(minor_built, 16);
AT(minor_needed, 20);
AT(layout, 24);
END

# try COMMAND...: compile it and see that it exports the descriptor alone.
try()
{
    if ! "$@" -Wall -Wextra -Werror -pedantic -fPIC -fvisibility=hidden \
        -I"$tree/plugins-api" -I"${TOP_BUILDDIR:-$tree}/plugins-api" \
        -shared -o "$work/whole.so" "$work/whole.c"; then
        echo "FAILED: $*"
        bad=1
    elif ! nm -D --defined-only "$work/whole.so" |
        grep -q ' [DR] cdc_driver_entry$'; then
        echo "FAILED: $*: the descriptor is not exported"
        bad=1
    else
        echo "ok: $*"
    fi
}

# shellcheck disable=SC2086 # CC may be "ccache gcc"
for standard in c90 c11; do
    try ${CC:-cc} -std=$standard
done
if command -v "${CXX:-c++}" >/dev/null; then
    try "${CXX:-c++}" -x c++ -std=c++98
    try "${CXX:-c++}" -x c++ -std=c++17
fi

# Comments may use any word.
for header in "$tree"/plugins-api/cdc/*.h; do
    if sed -e 's|/\*.*\*/||' -e '/\/\*/,/\*\//d' "$header" |
        grep -nwE 'bool|size_t|long|unsigned|enum|time_t|off_t|FILE|wchar_t'
    then
        echo "FAILED: ${header##*/}: a type without a fixed width"
        bad=1
    fi
done
[ $bad = 0 ]
