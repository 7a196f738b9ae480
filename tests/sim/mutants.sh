#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Planted bugs: each patch of tests/sim/mutants is applied to a copy of
# core/dispatch, and the simulator must go red. A patch that does not apply,
# does not compile, or survives, fails the test. The header of a patch names
# the programs' arguments with which it is expected to be caught:
#
#     Red: test_sim_scenarios test_late_start*
#     Red: sim_run --seeds 1-20
#
# What is not caught there is tried with everything before it counts as a
# survivor. Only files that a patch touches are compiled again; the rest comes
# from libdispatch.a. Usage: mutants.sh [NAME...]
set -eu

src=$TOP_SRCDIR
obj=$TOP_BUILDDIR
out=$obj/mutants
failed=0
limit=100

# Apply patch $1 to a copy of core/dispatch in directory $2.
plant() {
    rm -rf "$2"
    mkdir -p "$2/core"
    cp -R "$src/core/dispatch" "$2/core/"
    chmod -R u+w "$2"
    patch -s -p1 -F 3 -d "$2" <"$1"
}

# Compile what differs, link the programs, in directory $1.
build() {
    objs=
    for c in "$1"/core/dispatch/*.c; do
        file=${c##*/}
        cmp -s "$c" "$src/core/dispatch/$file" && continue
        # shellcheck disable=SC2086
        $CC -std=gnu11 -O1 -w ${SAN_CFLAGS-} -I"$1" $CPPFLAGS -c "$c" \
            -o "$1/${file%.c}.o" || return 1
        objs="$objs $1/${file%.c}.o"
    done
    [ -n "$objs" ] || return 1
    for prog in sim_run test_sim_scenarios test_sim_outside; do
        # shellcheck disable=SC2086
        $CC ${SAN_CFLAGS-} -o "$1/$prog" "$obj/tests/sim/$prog.o" \
            "$obj/tests/sim/rig.o" $objs "$obj/core/sim/libsim.a" \
            "$obj/core/dispatch/libdispatch.a" \
            "$obj/core/model/libmodel.a" "$obj/core/base/libbase.a" \
            $SIM_LINK || return 1
    done
}

# Is the mutant in directory $1 caught by program $2 with these arguments?
caught() {
    dir=$1
    shift
    prog=$1
    shift
    ! timeout -k 5 $limit "$dir/$prog" "$@" >"$dir/$prog.log" 2>&1
}

try() {
    patch=$1
    name=$2
    dir=$out/$name
    red=$(sed -n 's/^Red: //p' "$patch")
    if ! plant "$patch" "$dir" || ! build "$dir"; then
        echo "FAILED: $name cannot be planted"
        return 1
    fi
    set -f
    # shellcheck disable=SC2086
    if caught "$dir" $red; then
        set +f
        how=$(sed -n 's/^seed .* s: //p' "$dir"/*.log | head -n 1)
        echo "ok: $name: ${how:-an assertion of $red}"
        return 0
    fi
    set +f
    if caught "$dir" test_sim_scenarios || caught "$dir" test_sim_outside \
        || caught "$dir" sim_run; then
        echo "ok: $name, but not by $red"
        return 0
    fi
    echo "FAILED: $name survives"
    return 1
}

mkdir -p "$out"
n=0
for patch in "$src"/tests/sim/mutants/*.patch; do
    name=${patch##*/}
    name=${name%.patch}
    if [ $# -gt 0 ]; then
        case " $* " in
        *" $name "*) ;;
        *) continue ;;
        esac
    fi
    n=$((n + 1))
    try "$patch" "$name" || failed=$((failed + 1))
done
echo "$n mutants, $failed not caught"
[ "$n" -gt 0 ] && [ "$failed" -eq 0 ]
