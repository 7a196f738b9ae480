#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh clone to a result with one command; see usage() below.
#
# Everything is built in a folder of its own. Packages are installed by name
# and only when they are missing; nothing else on the machine is changed, and
# a second run does only what is left to do. The last line says how it went,
# and the exit code says the same.
set -eu

usage()
{
    cat <<'USAGE'
usage: ./bootstrap.sh [options] {build | check | demo}

  build   build the suite
  check   build, run every test and lint, compile with clang, make distcheck
  demo    build, then run containers on local VMs

  --no-install     install nothing: list the packages that are missing and
                   exit with 3 if any are
  --builddir DIR   build there instead of in ./build
  --help           show this text

Exit code: 0 it went well; 1 it did not; 2 wrong arguments; 3 packages are
missing (--no-install).
USAGE
}

say()  { printf 'bootstrap: %s\n' "$*"; }
die()  { printf 'bootstrap: %s\n' "$*" >&2; exit 1; }

wrong_arguments()
{
    printf 'bootstrap: %s (see ./bootstrap.sh --help)\n' "$*" >&2
    exit 2
}

# --- packages --------------------------------------------------------------

debian_release()
{
    # VERSION_ID is absent on testing and unstable.
    (. /etc/os-release 2>/dev/null && echo "${VERSION_ID:-99}") || echo 0
}

packages_for()
{
    echo autoconf automake libtool pkgconf make gcc libc6-dev xz-utils
    echo libuv1-dev libcurl4-openssl-dev libjson-c-dev libssl-dev libssh-dev
    echo libltdl-dev libyaml-dev libsqlite3-dev libcmocka-dev
    # llhttp is a library from Debian 13 on.
    if [ "$(debian_release)" = 12 ]; then
        echo node-llhttp
    else
        echo libllhttp-dev
    fi
    case $1 in
    demo)
        echo openssh-server openssh-client iproute2 procps
        ;;
    check)
        echo openssh-server openssh-client iproute2 procps
        echo clang g++ universal-ctags mandoc ca-certificates patch
        echo python3 python3-venv
        ;;
    esac
}

is_installed()
{
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_packages()
{
    for package in $(packages_for "$1"); do
        is_installed "$package" || printf '%s ' "$package"
    done
}

# Something listens on TCP port 22 (16 hexadecimal) here.
port_22_listens()
{
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        awk '$4 == "0A" && $2 ~ /:0016$/ { found = 1 } END { exit !found }'
}

# The package openssh-server starts an sshd on port 22 for everybody. Only the
# program is wanted here, so its units are masked before it arrives. Where the
# package was installed before, its service is its owner's business.
mask_ssh_units()
{
    for unit in ssh.service ssh.socket; do
        file=/etc/systemd/system/$unit
        if [ -e "$file" ] || [ -L "$file" ]; then
            continue
        fi
        $as_root mkdir -p /etc/systemd/system
        $as_root ln -s /dev/null "$file"
        say "masked $unit, so that no sshd appears on port 22" \
            "(undo: systemctl unmask $unit)"
    done
}

install_packages()
{
    as_root=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "not root, and there is no sudo:" \
            "run as root: apt-get install --no-install-recommends $*"
        as_root=sudo
        [ -t 0 ] || as_root='sudo -n'
    fi
    listened=no
    port_22_listens && listened=yes
    case " $* " in
    *' openssh-server '*) mask_ssh_units ;;
    esac

    say "installing: $*"
    apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y
         -o DPkg::Lock::Timeout=300"
    $apt update </dev/null || die "apt-get update failed"
    $apt install --no-install-recommends "$@" </dev/null ||
        die "apt-get install failed"

    if [ $listened = no ] && port_22_listens; then
        die "installing openssh-server has started an sshd on port 22;" \
            "stop it: systemctl disable --now ssh.service ssh.socket"
    fi
}

provide_packages()
{
    if ! command -v dpkg-query >/dev/null; then
        say "not a Debian system; configure will tell what is missing"
        return 0
    fi
    missing=$(missing_packages "$1")
    if [ -z "$missing" ]; then
        if [ $install = no ]; then
            say "no package is missing"
        fi
        return 0
    fi
    if [ $install = no ]; then
        counted=yes
        say "missing packages: $missing"
        say "(as root: apt-get install --no-install-recommends ..., or leave" \
            "out --no-install)"
        exit 3
    fi
    # shellcheck disable=SC2086 # a list of names
    install_packages $missing
}

# --- building --------------------------------------------------------------

jobs=$(nproc 2>/dev/null || echo 2)

# configure_in DIR ARGUMENT...: once; later runs leave it to make.
configure_in()
{
    dir=$1
    shift
    mkdir -p "$dir" || die "no build folder can be made here;" \
        "name one that can be written to: --builddir DIR"
    # autoreconf writes Makefile.in last: without it, it was interrupted.
    if [ ! -x "$srcdir/configure" ] || [ ! -f "$srcdir/Makefile.in" ]; then
        (cd "$srcdir" && autoreconf -fi) || die "autoreconf failed"
    fi
    [ -f "$dir/Makefile" ] || (cd "$dir" && "$srcdir/configure" -q "$@") ||
        die "configure failed (see $dir/config.log)"
}

build()
{
    start=$(date +%s)
    configure_in "$builddir" --enable-werror
    make -s -C "$builddir" -j"$jobs" || die "the build FAILED"
    say "built in $builddir ($(($(date +%s) - start)) s)"
}

# --- check -----------------------------------------------------------------

passed=0 failed=0 skipped=0 failures=
counted=no

# check always ends with the line that counts, however early it stops.
print_counts()
{
    code=$?
    if [ $counted = no ]; then
        echo "$passed passed, $((failed + 1)) failed, $skipped skipped"
    fi
    exit $code
}

# count RESULT NAME
count()
{
    case $1 in
    PASS | XFAIL) passed=$((passed + 1)) ;;
    SKIP) skipped=$((skipped + 1)) ;;
    *)
        failed=$((failed + 1))
        failures="$failures $2"
        ;;
    esac
}

# run NAME COMMAND...: one step that is a test of its own.
run()
{
    name=$1
    log=$builddir/$name.log
    shift
    say "$name ..."
    if "$@" >"$log" 2>&1 </dev/null; then
        count PASS "$name"
    else
        count FAIL "$name"
        tail -n 40 "$log"
        say "$name FAILED; all of it: $log"
    fi
}

# Every .trs file that automake's harness wrote is one test.
count_automake_results()
{
    for trs in $(find "$builddir" -path "$builddir/clang" -prune -o \
                      -name '*.trs' -print | sort); do
        name=${trs#"$builddir"/}
        result=$(sed -n 's/^:test-result: *//p' "$trs")
        count "${result:-ERROR}" "${name%.trs}"
    done
}

make_check()
{
    # Results of tests that no longer exist must not count.
    find "$builddir" -name '*.trs' -exec rm -f {} +
    say "make check ..."
    code=0
    make -s -C "$builddir" -j"$jobs" check </dev/null || code=$?
    before=$failed
    count_automake_results
    if [ $code != 0 ] && [ $failed = "$before" ]; then
        count FAIL make-check # it did not come as far as the tests
    fi
}

# Compiles what make check compiles, and runs nothing of it.
clang_build()
{
    configure_in "$builddir/clang" --enable-werror CC="${CLANG:-clang}"
    make -s -C "$builddir/clang" -j"$jobs" check TESTS=
}

distcheck()
{
    timeout -k 10 900 make -s -C "$builddir" -j"$jobs" distcheck \
        DISTCHECK_CONFIGURE_FLAGS=--enable-werror
}

check()
{
    make_check
    run clang-build clang_build
    run distcheck distcheck
    if [ -n "$failures" ]; then
        say "FAILED:$failures"
    fi
    counted=yes
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed = 0 ] && [ $passed -gt 0 ]
}

# --- main ------------------------------------------------------------------

srcdir=$(cd "$(dirname "$0")" && pwd)
builddir=$srcdir/build
install=yes
command=

while [ $# -gt 0 ]; do
    case $1 in
    --no-install) install=no ;;
    --builddir)
        [ $# -ge 2 ] || wrong_arguments "--builddir needs a folder"
        builddir=$2
        shift
        ;;
    --builddir=*) builddir=${1#*=} ;;
    --help | -h)
        usage
        exit 0
        ;;
    build | check | demo)
        [ -z "$command" ] || wrong_arguments "one command at a time"
        command=$1
        ;;
    -*) wrong_arguments "unknown option $1" ;;
    *) wrong_arguments "unknown command $1" ;;
    esac
    shift
done
if [ -z "$command" ]; then
    usage >&2
    exit 2
fi
case $builddir in
/*) ;;
*) builddir=$PWD/$builddir ;;
esac

if [ "$command" = check ]; then
    trap print_counts EXIT
fi
provide_packages "$command"
case $command in
build)
    build
    say "build: OK"
    ;;
check)
    build
    check
    ;;
demo)
    build
    code=0
    "$srcdir/etc/demo.sh" "$builddir" || code=$?
    if [ $code = 0 ]; then
        say "demo: OK"
    else
        say "demo: FAILED (exit code $code)"
    fi
    exit $code
    ;;
esac
