#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Fifty seeds of mixed trouble, in which every kind of fault fires; some of
# them twice, with equal trace hashes. With CDC_LONG=1: a thousand, each twice.
set -eu

run=$TOP_BUILDDIR/tests/sim/sim_run
if [ -n "${CDC_LONG:-}" ]; then
    exec "$run" --seeds 1-1000 --twice --all-faults
fi
"$run" --seeds 1-5 --twice >/dev/null
exec "$run" --seeds 1-50 --all-faults
