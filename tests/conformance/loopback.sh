#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The loopback driver with real VMs, through cdc-driver-check; afterwards no
# process, mount or record of them may be left. Runs as anybody: without
# privileges there is one VM of plain processes.
set -eu
: "${TOP_BUILDDIR:?}"
program="$TOP_BUILDDIR/cdc-local-vm"
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT

if [ ! -x /usr/sbin/sshd ]; then
    echo "SKIP: no /usr/sbin/sshd (Debian: openssh-server)"
    exit 77
fi
mode=$(echo '{}' | "$program" --state "$state/loopback" probe)
echo "# $mode"
case $mode in
*'"degraded":true'*)
    if [ "$(id -u)" = 0 ] && [ -n "${CI-}" ]; then
        echo "FAILED: root cannot make VMs here"
        exit 1
    fi
    ;;
esac

ssh-keygen -q -t ed25519 -N '' -f "$state/key"
timeout 200 "$TOP_BUILDDIR/cdc-driver-check" --verbose --trust-build-tree \
    --image host --type small --state-dir "$state" --set-id "conf-$$" \
    --public-key "$(cat "$state/key.pub")" --boot-timeout 60s \
    --params "{\"Program\":\"$program\"}" \
    "$TOP_BUILDDIR/drivers/loopback/.libs/loopback.so"

bad=0
if grep -F "$state" /proc/self/mountinfo; then
    echo "FAILED: a mount is left"
    bad=1
fi
for pid in /proc/[0-9]*; do
    if { tr '\0' ' ' <"$pid/cmdline" | grep -F "$state/loopback"; } \
        2>/dev/null; then
        echo "FAILED: process ${pid#/proc/} is left"
        bad=1
    fi
done
if find /sys/fs/cgroup -maxdepth 4 -type d -name "conf-$$" 2>/dev/null |
    grep .; then
    echo "FAILED: a control group is left"
    bad=1
fi
[ $bad = 0 ]
