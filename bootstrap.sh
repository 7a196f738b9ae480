#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Build out of tree in ./build.
set -eu
cd "$(dirname "$0")"
[ -x configure ] || autoreconf -fi
mkdir -p build
cd build
[ -f Makefile ] || ../configure -q --enable-werror
exec make -j"$(nproc)"
