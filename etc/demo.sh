#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The whole path in one go, with real parts: an API server and a dispatcher
# are started, containers submitted, run on local VMs, and looked at; then the
# VMs go away and everything is stopped.
#
#   etc/demo.sh BUILDDIR
#
# Each container's state, exit code and (where it is certain) standard output
# are compared with what must come of it, and at the end nothing of the demo
# may be left on the machine. The last line is the verdict.
#
# Where VMs cannot be made (an ordinary user, most containers of other kinds)
# there is one at a time, of plain processes: the verdict says "degraded". For
# root with CI=true, which can be counted on to have VMs, that is a failure.
#
# Everything is written below one fresh private folder, which is kept when
# something fails. Exit code 0: as it should be; 1: it was not; 130: Ctrl-C.
set -u

TIME_LIMIT=50   # seconds for all containers together
GONE_LIMIT=20   # seconds for the VMs to go away

dir=            # the private folder
mark=           # name of the parent of the VMs' control groups
api='' disp='' waiter=''    # process ids
count=0         # containers submitted
faults=0        # what did not come as it should
verdict=

# --- saying ----------------------------------------------------------------

if [ -t 1 ]; then
    bold=$(printf '\033[1m') plain=$(printf '\033[0m') terminal=yes
else
    bold='' plain='' terminal=no
fi

title()  { printf '\n%s%s%s\n\n' "$bold" "$*" "$plain"; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# Seconds since the time of now_ms, as 1.2
since()
{
    ms=$(($(now_ms) - $1))
    printf '%d.%d' $((ms / 1000)) $((ms % 1000 / 100))
}

fault()
{
    faults=$((faults + 1))
    printf 'WRONG: %s\n' "$*"
}

give_up()
{
    fault "$@"
    exit 1
}

# --- the end, however it comes ---------------------------------------------

is_alive() { [ -n "$1" ] && kill -0 "$1" 2>/dev/null; }

# end PID SECONDS: SIGTERM, then SIGKILL; the program's exit code.
end()
{
    is_alive "$1" && kill "$1" 2>/dev/null
    tries=$(($2 * 10))
    while is_alive "$1" && [ $tries -gt 0 ]; do
        sleep 0.1
        tries=$((tries - 1))
    done
    is_alive "$1" && kill -KILL "$1" 2>/dev/null
    [ -z "$1" ] || wait "$1" 2>/dev/null
}

vm_folders()
{
    find "$dir/service/dispatcher/state" -maxdepth 2 -name 'lvm-*' 2>/dev/null
}

# VMs outlive the dispatcher on purpose; these have nobody to come back for.
destroy_vms()
{
    vm_folders | while read -r vm; do
        printf '{"id":"%s"}' "${vm##*/}" |
            timeout 30 "$build/cdc-local-vm" --state "${vm%/*}" destroy
    done >/dev/null 2>&1
}

at_exit()
{
    code=$?
    trap - EXIT
    trap '' INT TERM HUP
    end "$waiter" 1
    end "$disp" 10
    end "$api" 10
    if [ -n "$dir" ]; then
        destroy_vms
        left_groups >/dev/null
    fi
    if [ "$code" != 0 ] && [ "$code" != 130 ]; then
        [ -z "$dir" ] || printf '\nkept, with the logs: %s\n' "$dir"
        verdict=${verdict:-"demo: FAILED"}
    elif [ -n "$dir" ]; then
        rm -rf "$dir"
    fi
    printf '%s%s%s\n' "$bold" "$verdict" "$plain"
    exit "$code"
}

interrupted()
{
    verdict='demo: interrupted; everything was stopped'
    exit 130
}

# --- starting --------------------------------------------------------------

# In the foreground, so that Ctrl-C reaches it too.
crunchctl() { timeout --foreground 60 "$build/crunchctl" "$@"; }

find_build()
{
    build=$(cd "${1:-.}" 2>/dev/null && pwd) || build=
    runner=$build/core/runner/crunch-run
    [ -x "$runner" ] || runner=$build/crunch-run
    for file in "$build/crunchctl" "$build/crunch-api-server" \
        "$build/crunch-dispatch-cloud" "$build/cdc-local-vm" "$runner"; do
        if [ ! -x "$file" ]; then
            echo "usage: etc/demo.sh BUILDDIR (see ./bootstrap.sh build)" >&2
            echo "$file: not built" >&2
            exit 1
        fi
    done
}

# What local VMs can be here.
probe_vms()
{
    reply=$(echo '{}' | timeout 30 "$build/cdc-local-vm" \
        --state "$dir/probe" probe) ||
        give_up "$(printf '%s' "$reply" | sed 's/.*"text":"//; s/"}}$//')"
    degraded=
    case $reply in
    *'"degraded":true'*)
        degraded=$(printf '%s' "$reply" |
            sed -n 's/.*"reason":"\([^"]*\)".*/\1/p')
        degraded="no VMs can be made here (${degraded:-no reason given})"
        ;;
    *'"memory"'*) ;;
    *) degraded='memory cannot be limited here' ;;
    esac
}

# init writes the configuration of an installed suite; ours lies in BUILDDIR.
configure()
{
    timeout 30 "$build/crunch-api-server" init "$dir/service" \
        >"$dir/init.log" 2>&1 || give_up "init: $(cat "$dir/init.log")"
    # A VM of plain processes has no file system of its own to copy to.
    copies=/tmp/crunch-run
    [ -z "$degraded" ] || copies=$dir/crunch-run
    sed "/TimeoutIdle:/c\\
        TimeoutIdle: 3s\\
        DeployRunnerDirectory: $copies\\
        DriverDirectory: \"$build/drivers/loopback/.libs\"\\
        DeployRunnerBinary: \"$runner\"\\
        DriverParameters: {Program: \"$build/cdc-local-vm\", CgroupParent: $mark}
        " "$dir/service/dispatcher/config.yml" >"$dir/config.tmp"
    cat "$dir/config.tmp" >"$dir/service/dispatcher/config.yml"
    rm "$dir/config.tmp"
    unset ARVADOS_API_HOST
    set -a
    # shellcheck disable=SC1091 # made by init
    . "$dir/service/user/settings.conf"
    set +a
}

# 1 when they end again or do not become well in 10 seconds.
start_servers()
{
    "$build/crunch-api-server" -config "$dir/service/api-server/config.yml" \
        >"$dir/api-server.log" 2>&1 &
    api=$!
    "$build/crunch-dispatch-cloud" -trust-build-tree \
        -config "$dir/service/dispatcher/config.yml" \
        >"$dir/dispatcher.log" 2>&1 &
    disp=$!
    tries=100
    until crunchctl top 2>/dev/null | grep -q 'health OK'; do
        tries=$((tries - 1))
        is_alive $api && is_alive $disp && [ $tries -gt 0 ] || return 1
        sleep 0.1
    done
}

start()
{
    umask 077
    dir=$(mktemp -d "${TMPDIR:-/tmp}/cdc-demo.XXXXXX") ||
        give_up "no private folder can be made"
    mark=cdc-demo-${dir##*.}
    probe_vms
    # init picks free ports; until they are bound others may take them.
    for try in 1 2 3; do
        configure
        start_servers && return
        end "$disp" 5
        end "$api" 5
        [ $try = 3 ] || rm -r "$dir/service"
    done
    give_up "the servers do not start:" \
        "$(tail -qn 1 "$dir/api-server.log" "$dir/dispatcher.log")"
}

# --- the containers --------------------------------------------------------

# note NAME STATE CODE STDOUT UUID: what must come of it; STDOUT - = whatever.
note()
{
    echo "$5 $1 $2 $3" >>"$dir/jobs"
    [ "$4" = - ] || printf '%s\n' "$4" >"$dir/want.$1"
    count=$((count + 1))
}

# job NAME STATE CODE STDOUT ARGUMENTS OF SUBMIT
job()
{
    name=$1 state=$2 code=$3 text=$4
    shift 4
    uuid=$(crunchctl submit --name "$name" --ram 64MiB "$@") ||
        give_up "submitting $name"
    note "$name" "$state" "$code" "$text" "$uuid"
}

# Standard input and standard output are mounts of the Arvados API.
job_with_stdin()
{
    uuid=$(tr -d '\n' <<'REQUEST' | crunchctl submit --file -
{"name":"stdin-stdout","command":["tr","a-z","A-Z"],"container_image":"host",
"output_path":"/out","cwd":"/out","state":"Committed","priority":500,
"use_existing":false,"runtime_constraints":{"vcpus":1,"ram":67108864},
"mounts":{"/out":{"kind":"tmp","capacity":1048576},
"stdin":{"kind":"text","content":"from a mount\n"},
"stdout":{"kind":"file","path":"/out/upper.txt"}}}
REQUEST
    ) || give_up "submitting stdin-stdout"
    note stdin-stdout Complete 0 - "$uuid"
}

submit_all()
{
    # shellcheck disable=SC2016 # for the container's shell
    {
    job hello Complete 0 'hello, world' -- echo 'hello, world'
    job environment Complete 0 'salve, munde' \
        --env GREETING=salve --env WHOM=munde -- sh -c 'echo $GREETING, $WHOM'
    printf '%s\n' pear apple quince >"$dir/fruit"
    job text-mounts Complete 0 'apple pear quince ' \
        --file-text /out/fruit="$dir/fruit" --text /out/blank=' ' -- \
        sh -c 'sort fruit | tr "\n" "$(cat blank)"; echo'
    job_with_stdin
    job output-files Complete 0 'two files' -- sh -c 'mkdir numbers
        seq 1 1000 >numbers/list
        sha256sum numbers/list >checksum
        echo two files'
    job exit-3 Complete 3 - -- sh -c 'echo no luck >&2; exit 3'
    job killed-itself Complete 143 - -- sh -c 'kill -TERM $$'
    job no-such-program Complete 127 - -- /no/such/program
    job impossible Cancelled - - --vcpus 500 -- true
    job over-its-time Cancelled - - --max-run-time 2s -- sleep 600
    job cancelled Cancelled - - --priority 900 -- sleep 600
    cancel_uuid=$uuid
    job two-cpus Complete 0 ready --vcpus 2 --priority 950 -- sh -c \
        'sleep 3; echo ready'
    job four-cpus Complete 0 ready --vcpus 4 --priority 950 -- sh -c \
        'sleep 3; echo ready'
    for n in 1 2 3 4 5; do
        job work-$n Complete 0 - --priority $((n * 100)) -- sh -c \
            'head -c 100000000 /dev/zero | sha256sum; sleep 1'
    done
    job urgent Complete 0 now --priority 1000 -- echo now
    if [ -z "$degraded" ]; then
        job scratch Complete 0 8388608 --tmp /scratch=16MiB -- sh -c \
            'head -c 8388608 /dev/zero >/scratch/f && wc -c </scratch/f'
        job alone Complete 0 'uid 65534, devices: lo' -- sh -c \
            'echo "uid $(id -u), devices:" $(sed -n "s/:.*//p" /proc/net/dev)'
        job over-its-memory Complete 137 - -- tail /dev/zero
    fi
    }
}

cancel_when_running()
{
    [ -n "$cancel_uuid" ] || return 0
    crunchctl show "$cancel_uuid" | grep -q '^  state  *Running' || return 0
    crunchctl cancel "$cancel_uuid" >"$dir/cancel.log" 2>&1 ||
        give_up "cancelling: $(cat "$dir/cancel.log")"
    cancel_uuid=
}

# On a terminal the picture of crunchctl top; else a line for each change.
show_progress()
{
    if [ $terminal = yes ]; then
        crunchctl top --count 1
        return
    fi
    line=$(crunchctl top |
        sed -n '1s/^[^ ]*  \(.*instances [0-9]*\).*/\1/p')
    [ "$line" = "${last_line-}" ] || printf '%6s s  %s  ended %d\n' \
        "$(since "$1")" "$line" \
        "$(grep -c -e ' Complete$' -e ' Cancelled$' "$dir/progress")"
    last_line=$line
}

wait_all()
{
    # shellcheck disable=SC2046 # a list of uuids
    crunchctl wait --timeout ${TIME_LIMIT}s $(cut -d' ' -f1 "$dir/jobs") \
        2>"$dir/progress" &
    waiter=$!
    while is_alive $waiter; do
        cancel_when_running
        show_progress "$1"
        sleep 0.4
    done
    wait $waiter
    code=$?
    waiter=
    # 1: some of them failed, as they should.
    [ $code -le 1 ] || fault "waiting: $(tail -n 1 "$dir/progress")"
}

# --- looking at what came of them ------------------------------------------

uuid_of() { sed -n "s/ $1 .*//p" "$dir/jobs"; }

check_job()
{
    set -- "$@" "$(awk -v u="$1" '$1 == u { print $3, $4 }' "$dir/list")"
    [ "$3 $4" = "$5" ] || fault "$2 is $5, not $3 $4"
    [ -f "$dir/want.$2" ] || return 0
    crunchctl logs --name stdout.txt "$1" >"$dir/got.$2" 2>&1
    cmp -s "$dir/want.$2" "$dir/got.$2" ||
        fault "$2 says: $(head -n 3 "$dir/got.$2")"
}

check_output()
{
    crunchctl output "$(uuid_of output-files)" "$dir/files" >"$dir/output.log" \
        2>&1 || fault "output: $(cat "$dir/output.log")"
    (cd "$dir/files" && sha256sum --quiet -c checksum) ||
        fault "output-files: its checksum does not fit"
    crunchctl output "$(uuid_of stdin-stdout)" "$dir/upper" >/dev/null 2>&1
    [ "$(cat "$dir/upper/upper.txt")" = 'FROM A MOUNT' ] ||
        fault "stdin-stdout wrote something else"
}

check_all()
{
    crunchctl list --long --limit 100 >"$dir/list" || give_up "crunchctl list"
    while read -r uuid name state code; do
        check_job "$uuid" "$name" "$state" "$code"
    done <"$dir/jobs"
    check_output
    crunchctl show "$(uuid_of impossible)" >"$dir/impossible"
    grep -q 'runtime_status.*VCPU' "$dir/impossible" ||
        fault "the impossible container does not say why"
    nodes=$(awk 'NR > 1 && $5 ~ /-[0-9][0-9]$/ { print $5 }' "$dir/list" |
        sort -u | wc -l)
    [ -n "$degraded" ] || [ "$nodes" -ge 3 ] ||
        fault "the containers ran on $nodes VMs only"
}

show_all()
{
    title "What came of them (crunchctl list --long, uuids left out)"
    sed 's/^[^ ]*  *//' "$dir/list" | awk '
        NR == 1 { print; next }
        { line[NR] = $0; cost += $NF }
        END { for (i = NR; i > 1; i--) print line[i]
              printf "\n%d containers, %.6f in all\n", NR - 1, cost }'
    title "The log of exit-3 (crunchctl logs UUID)"
    crunchctl logs "$(uuid_of exit-3)" 2>&1
    title "The output of output-files (crunchctl output UUID DIR)"
    (cd "$dir/files" && wc -c checksum numbers/list | sed '$d' &&
        cat checksum)
    title "Why impossible did not run (crunchctl show UUID)"
    grep -e '^  state' -e 'runtime_status' "$dir/impossible" | sed 1d
}

# --- nothing may be left ---------------------------------------------------

instances() { crunchctl instances | sed 1d; }

wait_gone()
{
    title "The VMs go away"
    begun=$(now_ms) last=
    while :; do
        n=$(instances | wc -l)
        [ "$n" = "$last" ] || printf '%6s s  instances %d\n' \
            "$(since "$begun")" "$n"
        last=$n
        [ "$n" != 0 ] || return 0
        if [ $(($(now_ms) - begun)) -gt $((GONE_LIMIT * 1000)) ]; then
            fault "after $GONE_LIMIT s there are still $n instances"
            return
        fi
        sleep 0.2
    done
}

stop()
{
    end "$disp" 20
    code=$?
    disp=
    [ $code = 0 ] || fault "the dispatcher ended with code $code"
    end "$api" 20
    code=$?
    api=
    [ $code = 0 ] || fault "the API server ended with code $code"
}

# Everything of a VM carries the name of our folder or of our control groups.
# Dead processes that their parent has not asked for yet do not count.
left_processes()
{
    grep -lsa -e "$dir/" -e "$mark" /proc/[0-9]*/cmdline /proc/[0-9]*/cgroup |
        sort -u | while read -r file; do
        status=${file%/*}/status
        grep -qs '^State:.*[XZ]' "$status" || sed -n 's/^Name:[[:space:]]*//p' \
            "$status" 2>/dev/null
    done
}

# The parent of the VMs' groups stays, as its maker does not know who else uses
# it. It is ours; when it is empty it can be removed.
left_groups()
{
    find /sys/fs/cgroup -depth -type d -path "*/$mark*" -exec rmdir {} + \
        2>/dev/null
    find /sys/fs/cgroup -type d -path "*/$mark*" 2>/dev/null
}

left_locks()
{
    find /var/lock/ -maxdepth 1 -name "crunch-run-$cluster-*.lock" 2>/dev/null
}

check_left()
{
    left=$(vm_folders)
    [ -z "$left" ] || fault "VM folders are left: $left"
    left=$(left_processes)
    [ -z "$left" ] || fault "processes are left: $left"
    left=$(left_groups)
    [ -z "$left" ] || fault "control groups are left: $left"
    left=$(grep -ls -e "$dir" /proc/[0-9]*/mountinfo)
    [ -z "$left" ] || fault "mounts are left: $left"
    left=$(left_locks)
    [ -z "$left" ] || fault "lock files are left: $left"
}

conclude()
{
    if [ -n "$degraded" ] && [ "${CI-}" = true ] && [ "$(id -u)" = 0 ]; then
        fault "degraded, and CI is set: $degraded"
    fi
    took=$(since "$1")
    if [ $faults != 0 ]; then
        verdict="demo: FAILED: $faults of what was checked is wrong (see above)"
        exit 1
    fi
    verdict="demo: OK: $count containers ended as they should on $nodes VMs \
in $took s; nothing is left"
    if [ -n "$degraded" ]; then
        verdict="demo: OK but degraded: $degraded; $count containers ended as \
they should in $took s; nothing is left"
    fi
    exit 0
}

# --- main ------------------------------------------------------------------

find_build "${1-}"
trap at_exit EXIT
trap interrupted INT TERM HUP
demo_begun=$(now_ms)
start
cluster=$(sed -n '/^Clusters:/{n;s/[ :]//g;p;}' \
    "$dir/service/api-server/config.yml" | tail -n 1)
title "An API server and a dispatcher run ($(since "$demo_begun") s)"
[ -z "$degraded" ] || echo "degraded: $degraded; one VM of plain processes"
grep -h -e ExternalURL -e Database -e StateDirectory \
    "$dir"/service/*/config.yml | sort -u

title "Containers are submitted, and run"
submit_begun=$(now_ms)
submit_all
printf '%6s s  %d containers submitted\n' "$(since "$submit_begun")" "$count"
wait_all "$submit_begun"
check_all
show_all
wait_gone
stop
check_left
echo
conclude "$demo_begun"
