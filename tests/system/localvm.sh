#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# cdc-local-vm with real VMs: login, limits, isolation, kills at every step,
# destroy without a trace, images, degraded mode. Needs root and a machine
# where VMs can be made (exit 77 otherwise).

set -u
export LC_ALL=C
VM=${CDC_LOCAL_VM:-$TOP_BUILDDIR/cdc-local-vm}
[ "$(id -u)" = 0 ] || { echo "skipped: not root"; exit 77; }
[ -x /usr/sbin/sshd ] && command -v ssh-keygen >/dev/null ||
    { echo "skipped: no OpenSSH"; exit 77; }

T=$(mktemp -d /tmp/cdc-localvm.XXXXXX) && chmod 755 "$T" || exit 1
S=$T/state
SET=test-$$
checks=0 bad=0

case $("$VM" --state "$S" probe <<< '{}') in
*'"degraded":false'*) ;;
*) echo "skipped: VMs cannot be made here"; rm -rf "$T"; exit 77 ;;
esac

# --- helpers ----------------------------------------------------------------

ok() { # ok WHAT COMMAND...
    local what=$1
    shift
    checks=$((checks + 1))
    if ! "$@"; then
        bad=$((bad + 1))
        echo "FAILED: $what"
    fi
}

same() { # same GOT WANTED
    [ "$1" = "$2" ] || { echo "  got '$1', wanted '$2'"; return 1; }
}

has() { # has TEXT PART
    case $1 in *"$2"*) ;; *) echo "  no '$2' in: $1"; return 1 ;; esac
}

not() { ! "$@"; }

# field NAME: of one compact record on standard input
field() { sed -n 's/.*"'"$1"'":"\{0,1\}\([^",}]*\).*/\1/p'; }

vm() { # vm COMMAND [JSON]
    timeout 60 "$VM" --state "$S" "$1" <<< "${2:-{\}}"
}

ram=$((256 << 20))
spec() { # spec TOKEN [MEMBERS OF THE OBJECT]
    printf '{"token":"%s","set_id":"%s","public_key":"%s",%s' "$1" "$SET" \
        "$(cat "$T/key.pub")" "${2:-}"
    printf '"type":{"name":"t","provider_type":"pt","vcpus":1,'
    printf '"ram":%d,"price":0.25}}' "$ram"
}

token() { printf 'c%026d' "$1"; }

in_vm() { # in_vm RECORD SHELL-COMMAND
    local a p
    a=$(field address <<< "$1") p=$(field port <<< "$1")
    printf '[%s]:%s %s\n' "$a" "$p" "$(field host_key <<< "$1")" \
        > "$T/known.$BASHPID"
    timeout 30 ssh -F none -n -o BatchMode=yes -o StrictHostKeyChecking=yes \
        -o UserKnownHostsFile="$T/known.$BASHPID" \
        -o GlobalKnownHostsFile=/dev/null -o IdentitiesOnly=yes \
        -i "$T/key" -p "$p" "$(field user <<< "$1")@$a" "$2"
}

# armed RULES COMMAND...: with fault points; the pipe is filled beforehand.
armed() {
    local rules=$1
    shift
    rm -f "$T/faults"
    mkfifo "$T/faults"
    exec 9<>"$T/faults"
    printf '%s\n' "$rules" >&9
    CDC_FAULT_FD=9 "$@"
    local rc=$?
    exec 9>&-
    return $rc
}

groups_of() { # every directory named like this in any cgroup tree
    find /sys/fs/cgroup -type d -name "$1" 2>/dev/null
}

pids_of() { # processes in groups of our set
    local dir
    for dir in $(groups_of "$SET"); do
        find "$dir" -name cgroup.procs -exec cat {} + 2>/dev/null
    done | sort -u
}

mounts_left() { # mounts that show our state, in any process
    grep -ls "$T" /proc/[0-9]*/mountinfo 2>/dev/null
}

nothing_left() {
    local left
    left=$(ls -A "$S" | grep -vx -e lock -e ended)
    same "$left" "" && same "$(groups_of "$SET")" "" &&
        same "$(pids_of)" "" && same "$(mounts_left)" ""
}

cleanup() {
    local id
    for id in $(cd "$S" 2>/dev/null && ls -d lvm-* 2>/dev/null); do
        vm destroy "{\"id\":\"$id\"}" > /dev/null
    done
    # Only if that failed: what is in the groups of our set is ours.
    for id in $(pids_of); do
        for f in $(find /sys/fs/cgroup -path "*/cdc/$SET/*" \
            -name freezer.state); do echo THAWED > "$f"; done
        kill -9 "$id" 2> /dev/null
    done
    rm -rf "$T"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

ssh-keygen -q -t ed25519 -N '' -f "$T/key" || exit 1
mkdir "$T/shared" && chmod 1777 "$T/shared"

# --- three at once ----------------------------------------------------------

extra='"tags":{"who":"me","n":"%d"},"shared_dirs":["'$T'/shared"],'
extra+='"init_command":"umask 077; echo secret-%d > '
extra+='/var/run/arvados-instance-secret",'
jobs=()
for i in 1 2 3; do
    # shellcheck disable=SC2059
    vm create "$(spec "$(token $i)" "$(printf "$extra" $i $i)")" \
        > "$T/r$i" &
    jobs+=($!)
done
for j in "${jobs[@]}"; do ok "create" wait "$j"; done
for i in 1 2 3; do eval "r$i=\$(cat $T/r$i)"; done

# shellcheck disable=SC2154
{
for r in "$r1" "$r2" "$r3"; do
    ok "running" same "$(field state <<< "$r")" running
done
ok "ids differ" not same "$(field id <<< "$r1")" "$(field id <<< "$r2")" \
    > /dev/null
ok "host name" same "$(in_vm "$r1" hostname)" "$(token 1)-00"
ok "secret" same \
    "$(in_vm "$r2" 'cat /var/run/arvados-instance-secret; id -u')" \
    "secret-2
0"
ok "price, type" has "$r1" '"provider_type":"pt"'
ok "price" same "$(field price <<< "$r1")" 0.25
ok "limits" has "$r1" '"limits":["memory"'

# --- isolation --------------------------------------------------------------

in_vm "$r1" 'for d in /tmp /run /root /var/lock /etc /var/tmp; do
    echo mine > $d/mark; done'
for d in /tmp /run /root /var/lock /etc /var/tmp; do
    ok "$d is private" not test -e $d/mark
    ok "$d of another VM" not in_vm "$r2" "test -e $d/mark"
done
ok "the host's files" not in_vm "$r1" "test -e $T/key"
ok "no secrets in /etc" same \
    "$(in_vm "$r1" 'cat /etc/shadow; ls /etc/ssh /etc/sudoers 2>/dev/null')" \
    "root:*:20000:0:99999:7:::"
ok "/usr is read-only" not in_vm "$r1" 'touch /usr/x 2>/dev/null'
ok "a /dev of its own" same "$(in_vm "$r1" 'ls /dev' | tr '\n' ' ')" \
    "fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom \
zero "
ok "own processes only" same "$(in_vm "$r1" 'cat /proc/1/comm')" cdc-vm-init
in_vm "$r1" "echo hello > $T/shared/from-1"
ok "shared folder" same "$(in_vm "$r2" "cat $T/shared/from-1")" hello
caps=$(in_vm "$r1" 'sed -n s/CapEff:.//p /proc/self/status')
for c in 16 17 22 25; do # SYS_MODULE SYS_RAWIO SYS_BOOT SYS_TIME
    ok "capability $c" same $((0x$caps >> c & 1)) 0
done
ok "settings of the machine" not in_vm "$r1" \
    'echo 1 2>/dev/null > /proc/sys/vm/drop_caches' 2>/dev/null

# --- groups and limits ------------------------------------------------------

id1=$(field id <<< "$r1")
pid1=$(sed -n 's/.*"proc":"\([0-9]*\) .*/\1/p' "$S/$id1/run.json")
ok "in a group of its own" grep -q "/cdc/$SET/$id1/sys" /proc/"$pid1"/cgroup
ok "never in ours" not grep -qF "$(sed -n '/:memory:/p;/^0::/p' \
    /proc/self/cgroup | grep -v ':/$' || echo none)" /proc/"$pid1"/cgroup
ok "not our child" not same "$(sed -n 's/^PPid:.//p' /proc/"$pid1"/status)" \
    $$ > /dev/null
node=$(in_vm "$r1" 'cat /run/crunch/node.json')
ok "node.json" has "$node" '"isolation":"full"'
ok "node.json: shared" has "$node" "\"path\":\"$T/shared\""
ok "node.json is root's" same \
    "$(in_vm "$r1" 'stat -c "%a %u" /run/crunch/node.json')" "600 0"
mem=$(field memory <<< "$node")
[ -n "$mem" ] || mem=$(field unified <<< "$node")
# A payload over the limit dies; sshd does not.
ok "memory limit" same "$(in_vm "$r1" "mkdir $mem/c1 &&
    sh -c 'echo \$\$ > $mem/c1/cgroup.procs; exec dd if=/dev/zero of=/dev/null bs=1G count=1' \
    2>/dev/null; echo \$?; rmdir $mem/c1" 2>/dev/null)" 137
ok "after that" same "$(in_vm "$r1" 'echo alive')" alive
if [ -d /sys/fs/cgroup/memory/cdc ]; then
    g=/sys/fs/cgroup/memory/cdc/$SET/$id1
    ok "RAM" same "$(cat "$g/payload/memory.limit_in_bytes")" $ram
    ok "RAM and overhead" same "$(cat "$g/memory.limit_in_bytes")" \
        $((ram + (64 << 20)))
    g=/sys/fs/cgroup/cpu/cdc/$SET/$id1
    ok "CPU" same "$(cat "$g/payload/cpu.cfs_quota_us")" 100000
    ok "no CPU limit on sshd" same "$(cat "$g/sys/cpu.cfs_quota_us")" -1
    # What root inside can write is below the limit.
    in_vm "$r1" "echo -1 > $mem/memory.limit_in_bytes" 2>/dev/null
    ok "the limit stays" same \
        "$(cat "/sys/fs/cgroup/memory/cdc/$SET/$id1/payload/memory.limit_in_bytes")" \
        $ram
fi

g=/sys/fs/cgroup/cdc/$SET/$id1
if [ -e "$g/cgroup.procs" ]; then
    ok "v2: RAM" same "$(cat "$g/payload/memory.max")" $ram
    ok "v2: RAM and overhead" same "$(cat "$g/memory.max")" \
        $((ram + (64 << 20)))
    ok "v2: CPU" same "$(cat "$g/payload/cpu.max")" "100000 100000"
    ok "v2: no CPU limit on sshd" same "$(cat "$g/sys/cpu.max")" "max 100000"
    ok "v2: pids" same "$(cat "$g/payload/pids.max")" 8192
    in_vm "$r1" "echo max > $mem/memory.max" 2>/dev/null
    ok "v2: the limit stays" same "$(cat "$g/payload/memory.max")" $ram
    ok "v2: no way up" not in_vm "$r1" "test -e $mem/../payload"
fi

# --- asking again -----------------------------------------------------------

again=$(vm create "$(spec "$(token 1)")")
ok "the same token" same "$(field id <<< "$again")" "$id1"
ok "the first parameters" has "$again" '"who":"me"'
again=$(vm create "$(spec "$(token 1)" '"member":1,')")
ok "another member" not same "$(field id <<< "$again")" "$id1" > /dev/null
ok "its name" same "$(field name <<< "$again")" "$(token 1)-01"
ok "destroy" same "$(vm destroy "{\"id\":\"$(field id <<< "$again")\"}")" {}
list=$(vm list)
ok "list" same "$(grep -o '"state":"running"' <<< "$list" | wc -l)" 3
ok "filter" same "$(vm list '{"filter":{"n":"2"}}' |
    grep -o '"id"' | wc -l)" 1
ok "another set" has "$(vm list '{"set_id":"other"}')" '"instances":[]'
ok "tag" same "$(vm tag "{\"id\":\"$id1\",\"tags\":{\"x\":\"y\"}}")" {}
ok "tags are replaced" has "$(vm list '{"filter":{"x":"y"}}')" \
    '"tags":{"x":"y"}'
ok "tag of nobody" has "$(vm tag \
    '{"id":"lvm-aaaaaaaaaaaaaaaaaaaa","tags":{}}')" '"class":"not-found"'
ok "destroy of nobody" same \
    "$(vm destroy '{"id":"lvm-aaaaaaaaaaaaaaaaaaaa"}')" {}
ok "destroy of nonsense" same "$(vm destroy '{"id":"../.."}')" {}

# --- sshd dies, a VM dies, a VM is frozen -----------------------------------

in_vm "$r2" 'kill $(cat /run/vm/sshd.pid)' || :
for _ in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.2
    in_vm "$r2" true 2> /dev/null && break
done
ok "sshd comes back" in_vm "$r2" true

id2=$(field id <<< "$r2") id3=$(field id <<< "$r3")
pid2=$(sed -n 's/.*"proc":"\([0-9]*\) .*/\1/p' "$S/$id2/run.json")
kill -9 "$pid2"
sleep 0.2
ok "told as gone" has "$(vm list '{"filter":{"n":"2"}}')" '"state":"gone"'
ok "told once" has "$(vm list '{"filter":{"n":"2"}}')" '"instances":[]'
ok "gone for its token" has "$(vm create "$(spec "$(token 2)")")" \
    '"state":"gone"'

frozen=0
for f in /sys/fs/cgroup/freezer/cdc/"$SET"/"$id3"/freezer.state \
    /sys/fs/cgroup/cdc/"$SET"/"$id3"/cgroup.freeze; do
    [ -e "$f" ] || continue
    case $f in */freezer.state) echo FROZEN > "$f" ;; *) echo 1 > "$f" ;; esac
    frozen=1
done
ok "frozen" same $frozen 1
ok "destroy of a frozen VM" same "$(vm destroy "{\"id\":\"$id3\"}")" {}
ok "destroy with a process in it" same "$(
    in_vm "$r1" 'setsid sleep 100 > /dev/null 2>&1 & :'
    vm destroy "{\"id\":\"$id1\"}")" {}
ok "destroy again" same "$(vm destroy "{\"id\":\"$id1\"}")" {}
}
ok "nothing is left" nothing_left

# --- killed at every step ---------------------------------------------------

n=100
for point in NEW INTENT GROUPED CLONED RECORDED RELEASED; do
    n=$((n + 1)) t=$(token $n)
    armed "LOCALVM_$point:1:kill" "$VM" --state "$S" create \
        <<< "$(spec "$t")" > "$T/out" 2> /dev/null
    ok "killed at $point" same $? 137
    ok "$point: no word" same "$(cat "$T/out")" ""
    before=$(vm list | grep -o '"id":"[^"]*"')
    r=$(vm create "$(spec "$t")")
    ok "$point: create again" same "$(field state <<< "$r")" running
    [ -z "$before" ] ||
        ok "$point: the same VM" same "\"id\":\"$(field id <<< "$r")\"" \
            "$before"
    ok "$point: login" in_vm "$r" true
    ok "$point: one VM" same "$(vm list | grep -o '"id"' | wc -l)" 1
    vm destroy "{\"id\":\"$(field id <<< "$r")\"}" > /dev/null
    # What the first call left and nobody was told of.
    for d in "$S"/.new-*; do [ ! -e "$d" ] || touch -d '1 hour ago' "$d"; done
    vm list > /dev/null
    ok "$point: nothing is left" nothing_left
done

# Nobody asks again: list clears up, after its time of grace.
for point in INTENT GROUPED RECORDED; do
    n=$((n + 1))
    armed "LOCALVM_$point:1:kill" "$VM" --state "$S" create \
        <<< "$(spec "$(token $n)")" > /dev/null 2>&1
    ok "$point: shown" has "$(vm list)" '"state":"pending"'
    touch -d '1 hour ago' "$S"/lvm-*/vm.json
    ok "$point: dropped" has "$(vm list)" '"instances":[]'
    ok "$point: dropped without a trace" nothing_left
done

for point in DYING KILLED UNGROUPED; do
    for how in destroy list create; do
        n=$((n + 1)) t=$(token $n)
        id=$(vm create "$(spec "$t")" | field id)
        armed "LOCALVM_$point:1:kill" "$VM" --state "$S" destroy \
            <<< "{\"id\":\"$id\"}" > /dev/null 2>&1
        case $how in
        destroy) vm destroy "{\"id\":\"$id\"}" > /dev/null ;;
        list) vm list > /dev/null ;;
        create) vm create "$(spec "$t")" > "$T/out"
            ok "$point: no second life" not grep -q running "$T/out" ;;
        esac
        [ $how != create ] || vm list > /dev/null
        ok "$point, then $how" nothing_left
    done
done

# The same token from several at once, one of them killed: one VM.
t=$(token 200) jobs=()
armed 'LOCALVM_CLONED:1:kill' "$VM" --state "$S" create \
    <<< "$(spec "$t")" > /dev/null 2>&1 &
jobs+=($!)
for i in 1 2 3; do
    vm create "$(spec "$t")" > "$T/same$i" &
    jobs+=($!)
done
wait "${jobs[@]}"
ok "one VM for many" same \
    "$(cat "$T"/same? | field id | sort -u | wc -l)" 1
vm destroy "{\"id\":\"$(field id < "$T/same1")\"}" > /dev/null

# --- wrong input ------------------------------------------------------------

for bad_spec in '{' '[]' '{}' "$(spec "a/b")" "$(spec "")" \
    "$(spec x '"set_id":"../x",')" "$(spec x '"cgroup_parent":"../x",')" \
    "$(spec x '"shared_dirs":["relative"],')" \
    "$(spec x '"tags":{"a":1},')" "$(spec x '"member":-1,')" \
    "$(spec x '"public_key":"a\nb",')"; do
    out=$(vm create "$bad_spec")
    ok "refused: ${bad_spec:0:40}" same $? 1
    ok "class" has "$out" '{"error":{"class":"'
done
for bad_spec in "$(spec x '"image":"nowhere",')" \
    "$(spec x '"image":"/etc","images_dir":"/usr",')" \
    "$(spec x '"image":"..","images_dir":"/usr",')" \
    "$(spec x '"address_range":"10.0.0.0/8",')" \
    "$(spec x '"shared_dirs":["/nowhere"],')"; do
    ok "config: ${bad_spec:0:60}" has "$(vm create "$bad_spec")" \
        '"class":"config"'
done
ok "a relative state directory" has \
    "$("$VM" --state x list <<< '{}')" '"class":"config"'
ok "usage" same "$("$VM" list <<< '{}' 2> /dev/null; echo $?)" 2
ok "nothing came of it" nothing_left

# --- an image directory -----------------------------------------------------

# As little as an sshd with a shell needs, with links that point elsewhere.
img=$T/images/mini
mkdir -p "$img"/{etc,proc,var/empty,usr/sbin,usr/bin,usr/lib/openssh,run/sshd}
ln -s usr/bin "$img/bin"
for f in /usr/sbin/sshd /bin/sh /bin/cat /bin/ls /usr/bin/id /bin/mkdir \
    /usr/lib/openssh/sshd-session /usr/lib/openssh/sshd-auth; do
    [ -e "$f" ] || continue
    case $f in /bin/*) to=/usr$f ;; *) to=$f ;; esac
    cp -L "$f" "$img$to"
    ldd "$f" | grep -o '/[^ ]*'
done | sort -u | while read -r lib; do
    mkdir -p "$img${lib%/*}" && cp -Ln "$lib" "$img$lib" 2> /dev/null
done
printf 'root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run:/bin/false\n' \
    > "$img/etc/passwd"
printf 'root:!:19000::::::\n' > "$img/etc/shadow"
printf 'root:x:0:\nnogroup:x:65534:\n' > "$img/etc/group"
echo mini > "$img/etc/which"
ln -s /var/scratch "$img/tmp"
mkdir "$img/var/scratch"
ln -s "$T/shared" "$img/dev"  # exists outside, but not inside
ln -s /run "$img/var/run"
rm -f "$T"/shared/*
r=$(vm create "$(spec "$(token 300)" \
    '"image":"mini","images_dir":"'"$T"'/images",')")
# A dangling link where a mount must go is the image's fault.
ok "image with a broken link" has "$r" '"error"'
rm "$img/dev"
r=$(vm create "$(spec "$(token 300)" \
    '"image":"mini","images_dir":"'"$T"'/images",')")
ok "image" same "$(field state <<< "$r")" running
ok "image: content" same "$(in_vm "$r" 'cat /etc/which')" mini
ok "image: a link is followed" same \
    "$(in_vm "$r" 'echo x > /tmp/y; cat /var/scratch/y')" x
ok "image: its own programs" has "$(in_vm "$r" 'ls /')" usr
ok "image: writable" in_vm "$r" 'echo x > /usr/bin/new && mkdir /new'
ok "image: untouched" not test -e "$img/new"
ok "image: images are shown" same \
    "$(in_vm "$r" 'ls /var/lib/crunch-run/images')" mini
id=$(field id <<< "$r")
ok "image: disk layer" same "$(field reason <<< "$r")" ""
vm destroy "{\"id\":\"$id\"}" > /dev/null

# The state directory on an overlay: the upper layer moves to memory.
cat > "$T/on-overlay.sh" <<'END'
mkdir "$1/lower" "$1/upper" "$1/work" "$1/ovl" &&
mount -t overlay overlay -o \
    "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" "$1/ovl" &&
"$2" --state "$1/ovl/state" create < "$1/in" > "$1/out" &&
id=$(sed -n 's/.*"id":"\([^"]*\)".*/\1/p' "$1/out") &&
"$2" --state "$1/ovl/state" destroy <<< "{\"id\":\"$id\"}" &&
ls "$1/ovl/state"
END
mkdir "$T/o"
spec "$(token 301)" '"image":"mini","images_dir":"'"$T"'/images",' > "$T/o/in"
ok "state on an overlay" has \
    "$(timeout 60 unshare -m bash "$T/on-overlay.sh" "$T/o" "$VM")" "lock"
ok "said so" has "$(field reason < "$T/o/out")" "upper layer on tmpfs"
ok "nothing is left of images" nothing_left

# --- degraded: an ordinary user ---------------------------------------------

# A user with a shell, known only inside a private mount namespace.
cat > "$T/plain.sh" <<'END'
set -e
sed '$a cdctest:x:64999:64999::/tmp:/bin/sh' /etc/passwd > "$1/passwd"
chmod 644 "$1/passwd"
mount --bind "$1/passwd" /etc/passwd
# The build folder may lie where only root gets to, such as in /root.
touch "$1/plain-vm"
mount --bind "$2" "$1/plain-vm"
exec setpriv --reuid 64999 --regid 64999 --clear-groups --no-new-privs \
    bash "$1/plain-user.sh" "$1" "$1/plain-vm"
END
cat > "$T/plain-user.sh" <<'END'
d=$1/plain vm=$2
run() { timeout 30 "$vm" --state "$d/state" "$@"; }
field() { sed -n 's/.*"'"$1"'":"\{0,1\}\([^",}]*\).*/\1/p'; }
run create < "$d/in1" > "$d/r1" 2> "$d/err1"
run create < "$d/in2" > "$d/r2" 2> /dev/null
printf '[%s]:%s %s\n' "$(field address < "$d/r1")" "$(field port < "$d/r1")" \
    "$(field host_key < "$d/r1")" > "$d/known"
timeout 30 ssh -F none -n -o BatchMode=yes -o StrictHostKeyChecking=yes \
    -o UserKnownHostsFile="$d/known" -o GlobalKnownHostsFile=/dev/null \
    -i "$d/key" -p "$(field port < "$d/r1")" \
    "$(field user < "$d/r1")@$(field address < "$d/r1")" \
    'id -un; cat "$CDC_NODE_JSON"; setsid sleep 300 > /dev/null 2>&1 &' \
    > "$d/login"
run list <<< '{}' > "$d/list"
run destroy <<< "{\"id\":\"$(field id < "$d/r1")\"}" > "$d/destroyed"
ls -A "$d/state" > "$d/left"
END
mkdir "$T/plain" && cp "$T/key" "$T/plain/key" && chown -R 64999 "$T/plain"
spec "$(token 400)" > "$T/plain/in1"
spec "$(token 401)" > "$T/plain/in2"
timeout 100 unshare -m bash "$T/plain.sh" "$T" "$VM"
p=$T/plain
ok "degraded: running" same "$(field state < "$p/r1")" running
ok "degraded: says so" has "$(cat "$p/r1")" '"degraded":true'
ok "degraded: a reason" has "$(cat "$p/err1")" "degraded: "
ok "degraded: one only" has "$(cat "$p/r2")" '"class":"quota"'
ok "degraded: login" has "$(cat "$p/login")" cdctest
ok "degraded: node.json" has "$(cat "$p/login")" '"isolation":"plain"'
ok "degraded: list" has "$(cat "$p/list")" '"degraded":true'
ok "degraded: destroy" same "$(cat "$p/destroyed")" {}
ok "degraded: no file" same "$(grep -vx -e lock -e ended "$p/left")" ""
ok "degraded: no process" same "$(ps -o stat=,args= -u 64999 | grep -v ^Z)" ""

echo "$checks checks, $bad failed"
[ $bad = 0 ]
