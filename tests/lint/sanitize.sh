#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The unit tests once more, built by clang with sanitizers: memory and
# undefined behaviour together, then data races. Part of make check-long.
set -eu
src=${TOP_SRCDIR:?}
work=${TOP_BUILDDIR:?}/sanitize

if ! command -v "${CLANG:-clang}" >/dev/null; then
    echo "SKIP: no clang"
    exit 77
fi
for list in address,undefined thread; do
    dir=$work/$list
    mkdir -p "$dir"
    cd "$dir"
    if [ ! -f Makefile ]; then
        "$src/configure" -q --enable-sanitize="$list" --disable-full-check \
            CC="${CLANG:-clang}" CFLAGS='-g -O1'
    fi
    # Not the variables of the make that runs this test.
    env -u MAKEFLAGS -u MFLAGS -u TESTS make -s -j"$(nproc)" check \
        TEST_TIMEOUT=600
done
