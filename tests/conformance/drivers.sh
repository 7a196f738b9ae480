#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# cdc-driver-check itself: it passes the example driver, built with one
# compiler command as its README says, and it finds what is wrong with drivers
# that break the contract, crash or hang.
set -eu
: "${TOP_SRCDIR:?}" "${TOP_BUILDDIR:?}"
check="$TOP_BUILDDIR/cdc-driver-check"
bad="$TOP_BUILDDIR/tests/bad-drivers/.libs"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect NAME CODE PATTERN COMMAND...: exit code and a line of the output.
expect()
{
    name=$1 code=$2 pattern=$3
    shift 3
    got=0
    timeout 60 "$@" >"$work/out" 2>&1 || got=$?
    if [ "$got" != "$code" ] || ! grep -qE "$pattern" "$work/out"; then
        echo "FAILED: $name: exit code $got, wanted $code and '$pattern' in:"
        cat "$work/out"
        failures=$((failures + 1))
    else
        echo "ok: $name"
    fi
}

# shellcheck disable=SC2086 # CC may be "ccache gcc"
${CC:-cc} -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fPIC \
    -fvisibility=hidden -I"$TOP_SRCDIR/plugins-api" \
    -I"$TOP_BUILDDIR/plugins-api" -shared -Wl,-z,defs -Wl,-z,now \
    -Wl,-z,nodelete "$TOP_SRCDIR/plugins-api/example/machines.c" \
    -o "$work/machines.so"
machines='{"Machines":[{"Name":"a","Address":"192.0.2.1"},
    {"Name":"b","Address":"192.0.2.2","Port":2222,"User":"x"}]}'
expect 'the example keeps the contract' 0 '# 25 passed, 0 failed' \
    "$check" --trust-build-tree --state-dir "$work" --params "$machines" \
    "$work/machines.so"
expect 'it is described' 0 '^name +machines$' \
    "$check" --trust-build-tree --describe "$work/machines.so"
expect 'one machine: capacity' 0 'SKIP refused: capacity: .*all are in use' \
    "$check" --trust-build-tree --state-dir "$work" \
    --params '{"Machines":[{"Name":"a","Address":"192.0.2.1"}]}' \
    "$work/machines.so"
expect 'a wrong setting' 1 '^# .*two have the same Name' \
    "$check" --trust-build-tree --state-dir "$work" --params \
    '{"Machines":[{"Name":"a","Address":"::1"},{"Name":"a","Address":"::1"}]}' \
    "$work/machines.so"
expect 'an unknown setting' 1 "unknown setting 'Machine'" \
    "$check" --trust-build-tree --state-dir "$work" \
    --params '{"Machine":[]}' "$work/machines.so"

expect 'a driver that forgets' 1 '^not ok .* its instances are still there' \
    "$check" --trust-build-tree "$bad/scripted.so"
expect 'a driver that emits garbage' 1 'emitted garbage: port 70000' \
    "$check" --trust-build-tree --params '{"Mode":"bad_port"}' \
    "$bad/scripted.so"
expect 'a driver that is deaf' 1 '^not ok .*cancelled comes back at once' \
    "$check" --trust-build-tree \
    --params '{"Mode":"sulky","In":"list","Ms":2500}' "$bad/scripted.so"
expect 'a driver that crashes' 1 \
    '^Bail out! .*during: no instance carries our set id' \
    "$check" --trust-build-tree "$bad/crash_in_list.so"
expect 'a constructor that crashes' 1 '^# driver .*opening it ended' \
    "$check" --trust-build-tree "$bad/ctor_crash.so"
expect 'another exported name' 1 "exports 'EVP_DigestInit'" \
    "$check" --trust-build-tree "$bad/extra_export.so"
expect 'no such driver' 1 'not ok 1 ' "$check" --driver-dir "$work" absent
expect 'a file that others can write' 1 'can be written by others' \
    sh -c "chmod 0666 '$work/machines.so'; '$check' '$work/machines.so'"
expect 'no arguments' 2 'name one driver' "$check"
expect 'a wrong option' 2 'invalid option|unrecognized option' "$check" --odd x

# Each setting that a driver of ours declares stands in its manual page.
for so in "$TOP_BUILDDIR"/drivers/*/.libs/*.so; do
    name=$(basename "$so" .so)
    page="$TOP_SRCDIR/doc/cdc-driver-$name.7"
    "$check" --trust-build-tree --describe "$so" |
        sed -n 's/^\([A-Z][A-Za-z]*\)\t.*/\1/p' >"$work/settings"
    while read -r setting; do
        if ! grep -q "^\.BR* $setting " "$page"; then
            echo "FAILED: $page does not explain $setting"
            failures=$((failures + 1))
        fi
    done <"$work/settings"
    echo "ok: the $(wc -l <"$work/settings") settings of $name are explained"
done
[ $failures = 0 ]
