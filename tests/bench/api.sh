#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Figures of the API server with 8 clients: durable lock + unlock pairs per
# second, and a page of a long queue against one of a short queue. Floors are
# measured in the same run, on the same disk. Goals, not gates.
set -eu

top=${TOP_BUILDDIR:-.}
bench=$top/tests/bench/apibench
seconds=${BENCH_SECONDS:-8}
many=${BENCH_CONTAINERS:-100000}
few=1000
dir=$(mktemp -d "${TMPDIR:-/tmp}/cdc-bench-XXXXXX")
pids=

finish()
{
    for pid in $pids; do
        kill "$pid" 2>/dev/null && wait "$pid" || :
    done
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# start NAME: a fresh server; sets port, token.
start()
{
    "$top/crunch-api-server" init "$dir/$1" >/dev/null
    config=$dir/$1/api-server/config.yml
    # Pairs are repeated on the same containers.
    cat >>"$config" <<-'YML'
	    Containers: {MaxDispatchAttempts: 1000000}
	    SystemLogs: {LogLevel: warning}
	YML
    "$top/crunch-api-server" -config "$config" -port-file "$dir/$1/port" \
        2>"$dir/$1/log" &
    pids="$pids $!"
    server=$!
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        test -s "$dir/$1/port" && break
        sleep 0.1
    done
    port=$(cat "$dir/$1/port")
    token=$(sed -n 's/ *APIToken: "\(.*\)"/\1/p' "$dir/$1/dispatcher/config.yml")
}

# number KEY LINE
number() { printf '%s\n' "$2" | sed "s/.*\"$1\": \([0-9.]*\).*/\1/"; }
ratio() { awk "BEGIN { printf \"%.2f\", $1 / $2 }"; }

# best FILE: the smallest number in it.
best() { sort -n "$1" | head -n 1; }

# Both servers are asked in turn, and the best median of each counts: caches
# warm, neighbours quiet.
start small
"$bench" "$port" "$token" load $few >/dev/null
small_port=$port small_token=$token
start large
load=$("$bench" "$port" "$token" load "$many")
for i in 1 2 3 4 5 6 7 8 9; do
    for where in first last; do
        number page_us "$("$bench" "$small_port" "$small_token" page $few \
            $where)" >>"$dir/small_$where"
        number page_us "$("$bench" "$port" "$token" page "$many" $where)" \
            >>"$dir/large_$where"
    done
done
small_first=$(best "$dir/small_first") small_last=$(best "$dir/small_last")
large_first=$(best "$dir/large_first") large_last=$(best "$dir/large_last")
hello=$(number requests "$("$bench" "$port" "$token" hello 3)")
cpu_before=$(awk '{print $14 + $15}' "/proc/$server/stat")
pairs=$("$bench" "$port" "$token" pairs "$many" "$seconds")
cpu_after=$(awk '{print $14 + $15}' "/proc/$server/stat")
rate=$(number pairs "$pairs")
floor=$(number pairs "$("$bench" - "$dir/floor.sqlite" floor "$seconds")")
rss=$(awk '/VmRSS/ {print $2}' "/proc/$server/status")
cpu=$(awk "BEGIN { printf \"%.0f\", ($cpu_after - $cpu_before) * 10000 / \
    $(number count "$pairs") }")

cat <<REPORT
API server, 8 clients, durability full (WAL, synchronous=FULL, group commit)
  lock + unlock pairs        $rate /s    (aim 2000)
  floor: SQLite alone        $floor /s    ratio $(ratio "$floor" "$rate")
  server CPU per pair        $cpu us
  smallest request           $hello /s
  creates while loading      $(number creates "$load") /s
  RSS with $many containers  $rss kB
  page of 100, us            of $few   of $many   ratio (aim 1.5)
    first                    $small_first   $large_first   $(ratio "$large_first" "$small_first")
    last                     $small_last   $large_last   $(ratio "$large_last" "$small_last")
REPORT
