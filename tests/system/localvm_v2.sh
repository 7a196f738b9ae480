#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The tests of control groups and local VMs on a machine with pure cgroup v2
# (nsdelegate, as systemd mounts it), whatever the host has: a guest in qemu
# under software emulation, some five minutes. The guest's root is a copy of
# the programs that the tests need, in an initrd; no disk, no network.
#
# Needs qemu-system-x86_64, cpio and a kernel with its overlay module: that of
# this machine, or a folder named by CDC_GUEST_KERNEL into which a kernel
# package was unpacked (Debian: apt-get download linux-image-...-cloud-amd64;
# dpkg -x FILE DIR). Exit 77 without them.

set -u
export LC_ALL=C
skip() { echo "skipped: $*"; exit 77; }

for tool in qemu-system-x86_64 cpio ldd; do
    command -v $tool > /dev/null || skip "no $tool"
done
[ "$(uname -m)" = x86_64 ] || skip "made for x86_64"
[ -x /usr/sbin/sshd ] || skip "no sshd"
from=${CDC_GUEST_KERNEL:-}
kernel=$(ls "$from"/boot/vmlinuz-* 2> /dev/null | tail -1)
[ -n "$kernel" ] || skip "no kernel in ${from:-/}boot"
module=$(find "$from/lib/modules/${kernel##*/vmlinuz-}" \
    -name 'overlay.ko*' 2> /dev/null | head -1)
[ -n "$module" ] || skip "no overlay module for ${kernel##*/}"

T=$(mktemp -d /tmp/cdc-guest.XXXXXX) || exit 1
trap 'rm -rf "$T"' EXIT
R=$T/root

# --- a root -----------------------------------------------------------------

mkdir -p "$R"/{etc/ssh,proc,sys,dev,tmp,run,root,home,t,new} \
    "$R"/usr/{bin,sbin,lib,lib64} "$R"/var/{tmp,lib,log}
for d in bin sbin lib lib64; do ln -s usr/$d "$R/$d"; done
ln -s /run "$R/var/run"
ln -s /run/lock "$R/var/lock"

copy() { # copy FILE TARGET: and name the libraries it needs
    mkdir -p "$R${2%/*}"
    cp -L "$1" "$R$2"
    ldd "$1" 2> /dev/null | grep -o '/[^ )]*'
}

{
    for b in bash sh ls cat mkdir rm mount umount grep sed find sort stat ln \
        cp mv touch id head tail dd seq timeout setsid sleep hostname date \
        rmdir chmod chown mknod mktemp mkfifo wc tr env setpriv unshare ssh \
        ssh-keygen ps ldd cut true echo ip sshd switch_root insmod uname; do
        f=$(PATH=/usr/bin:/bin:/usr/sbin:/sbin type -P $b)
        [ -z "$f" ] || copy "$f" "/usr${f#/usr}"
    done
    for f in /usr/lib/openssh/sshd-session /usr/lib/openssh/sshd-auth; do
        [ ! -e $f ] || copy $f $f
    done
    for f in "$TOP_BUILDDIR"/cdc-local-vm \
        "$TOP_BUILDDIR"/tests/unit/test_{cgroup_live,ns,killtree}; do
        copy "$f" "/t/${f##*/}"
    done
} | sort -u | while read -r lib; do
    to=/usr${lib#/usr}
    mkdir -p "$R${to%/*}" && cp -Ln "$lib" "$R$to"
done
cp "$TOP_SRCDIR"/tests/system/localvm.sh "$R/t/"
case $module in
*.xz) xz -dc "$module" > "$R/t/overlay.ko" ;;
*.zst) zstd -dqc "$module" > "$R/t/overlay.ko" ;;
*) cp "$module" "$R/t/overlay.ko" ;;
esac
cat > "$R/etc/passwd" <<'END'
root:x:0:0:root:/root:/bin/bash
sshd:x:100:65534::/run/sshd:/usr/sbin/nologin
END
printf 'root:x:0:\ntty:x:5:\nnogroup:x:65534:\n' > "$R/etc/group"
echo 'root:*:20000:0:99999:7:::' > "$R/etc/shadow"
echo secret > "$R/etc/sudoers"
chmod 600 "$R/etc/shadow" "$R/etc/sudoers"

# An initramfs cannot be left by pivot_root: move to a tmpfs first.
cat > "$R/init" <<'END'
#!/bin/bash
export PATH=/usr/sbin:/usr/bin
mount -t devtmpfs dev /dev
mount -t tmpfs -o mode=755 tmpfs /new
for d in usr etc root var home t bin sbin lib lib64; do cp -a /$d /new/; done
mkdir /new/proc /new/sys /new/dev /new/run /new/tmp
mount --move /dev /new/dev
exec switch_root /new /bin/bash /t/run
END
cat > "$R/t/run" <<'END'
export PATH=/usr/sbin:/usr/bin HOME=/root TOP_BUILDDIR=/t
exec > /dev/ttyS0 2>&1 < /dev/null
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /tmp
mkdir -p /dev/pts /run/lock
mount -t devpts devpts /dev/pts
insmod /t/overlay.ko
ip link set lo up
mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup
mkdir /sys/fs/cgroup/a.service # as a service manager would
echo $$ > /sys/fs/cgroup/a.service/cgroup.procs
for t in test_cgroup_live test_ns test_killtree; do
    timeout 100 /t/$t > /tmp/out 2>&1 || { cat /tmp/out; echo "FAILED: $t"; }
    echo "ran $t"
done
timeout 1500 bash /t/localvm.sh || echo "FAILED: localvm.sh, code $?"
echo "groups left: $(ls -d /sys/fs/cgroup/cdc* 2> /dev/null)"
echo "guest is done"
sleep 1
echo b > /proc/sysrq-trigger
END
chmod 755 "$R/init"
(cd "$R" && find . | cpio -o -H newc --quiet) | gzip -1 > "$T/initrd"

# --- run it -----------------------------------------------------------------

timeout 1800 qemu-system-x86_64 -accel tcg -m 1500 -smp 2 \
    -kernel "$kernel" -initrd "$T/initrd" \
    -append 'console=ttyS0 panic=-1 quiet' -no-reboot -nodefaults \
    -nographic -serial stdio -monitor none < /dev/null > "$T/log" 2>&1

tr -d '\r' < "$T/log" | sed 's/.*\x1b[^ ]*//' | tail -60
grep -q '^guest is done' "$T/log" &&
    grep -q '^ran test_killtree' "$T/log" &&
    grep -q '^groups left: .\?$' "$T/log" &&
    grep -q ' checks, 0 failed' "$T/log" &&
    ! grep -q FAILED "$T/log"
