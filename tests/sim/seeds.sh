#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Two hundred seeds of mixed trouble; the first fifty, in which every kind of
# fault fires, each twice with equal trace hashes. With CDC_LONG=1: ten
# thousand, each twice.
set -eu

run=$TOP_BUILDDIR/tests/sim/sim_run
"$run" --seeds 1-50 --twice --all-faults
if [ -n "${CDC_LONG:-}" ]; then
    exec "$run" --seeds 51-10000 --twice
fi
exec "$run" --seeds 51-200
