#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The unit tests once more, built by clang with sanitizers: memory and
# undefined behaviour together, then data races. Part of make check-long.
set -eu
src=${TOP_SRCDIR:?}
work=${TOP_BUILDDIR:?}/sanitize

clang=${CLANG:-clang} # may be "ccache clang"
if ! command -v "${clang##* }" >/dev/null; then
    echo "SKIP: no clang"
    exit 77
fi
# A crash is left to the kernel: tests of the loader look for the signal.
ASAN_OPTIONS=handle_segv=0:handle_abort=0
LSAN_OPTIONS=suppressions=$src/tests/lint/lsan.supp:print_suppressions=0
TSAN_OPTIONS=suppressions=$src/tests/lint/tsan.supp:handle_segv=0
export ASAN_OPTIONS LSAN_OPTIONS TSAN_OPTIONS

for list in address,undefined thread; do
    dir=$work/$list
    mkdir -p "$dir"
    cd "$dir"
    if [ ! -f Makefile ]; then
        "$src/configure" -q --enable-sanitize="$list" --disable-full-check \
            CC="$clang" CFLAGS='-g -O1'
    fi
    # A constructor that calls exit() ends the thread sanitizer with a code of
    # its own, and the loader's test expects the constructor's.
    red=
    if [ $list = thread ]; then
        red=tests/unit/test_registry
    fi
    # Not the variables of the make that runs this test.
    env -u MAKEFLAGS -u MFLAGS -u TESTS make -s -j"$(nproc)" check \
        TEST_TIMEOUT=600 XFAIL_TESTS="$red"
done
