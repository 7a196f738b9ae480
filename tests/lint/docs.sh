#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What can be set, given or called has its line in the manual:
#
#   programs   each installed program has a page that mandoc accepts
#   options    each option that a program's --help names stands in its page
#   routes     each row of a program's route table stands in
#              protocol-api.md or, with its whole path, in
#              crunch-dispatch-cloud(8)
#   settings   each key of the settings table has a help text and stands in
#              crunch-dispatch-cloud.yml(5)
#
# usage: docs.sh [TREE [BUILD-TREE]]
set -eu
tree=${1:-${TOP_SRCDIR:?}}
build=${2:-${TOP_BUILDDIR:?}}
bad=0
total=0

wrong()
{
    echo "$*"
    bad=$((bad + 1))
}

# Text of a page with roff's escapes undone.
plain()
{
    sed -e 's/\\-/-/g' -e 's/\\e/\\/g' -e 's/\\f[BIRP]//g' -e 's/\\&//g' "$1"
}

# page_of PROGRAM: its manual page, or nothing.
page_of()
{
    for page in "$tree/doc/$1".[1-8] "$build/doc/$1".[1-8]; do
        if [ -f "$page" ]; then
            echo "$page"
            return
        fi
    done
}

check_page()
{
    total=$((total + 1))
    if command -v mandoc >/dev/null; then
        complaints=$(mandoc -T lint -W error "$1" || true)
        [ -z "$complaints" ] || wrong "$complaints"
    fi
    grep -q '^\.SH NAME' "$1" || wrong "$1 has no section NAME"
}

# stands_for NAME: the page has a pattern such as -legacy-*-config for it.
stands_for()
{
    for pattern in $(grep -oE -- '-[a-z-]+\*[a-z-]*' "$work/page"); do
        pattern=${pattern#-}
        # shellcheck disable=SC2254 # it is a pattern
        case $1 in ${pattern#-}) return 0 ;; esac
    done
    return 1
}

check_options()
{
    program=$1 page=$2
    plain "$page" >"$work/page"
    timeout 10 "$program" --help >"$work/help" 2>&1 </dev/null || true
    # An option stands after a blank, a bracket, a bar or at the start.
    grep -oE '(^|[[ |(,])--?[a-z][a-z-]+' "$work/help" |
        sed 's/^[^-]*//' | sort -u >"$work/options" || true
    while read -r option; do
        total=$((total + 1))
        name=${option#-}
        name=${name#-}
        grep -qE -- "(^|[^a-z-])--?$name([^a-z-]|\$)" "$work/page" ||
            stands_for "$name" ||
            wrong "$page says nothing of the option $option"
    done <"$work/options"
}

# routes_of FOLDER: method and path of each {"GET", "path", ...} in it, or of
# each X("GET", DISPATCH "path", ...).
routes_of()
{
    grep -hoE '(\{|X\() *"(GET|HEAD|POST|PUT|PATCH|DELETE)", *(DISPATCH )?"[a-z/_][^"]*"' \
        "$tree/$1"/*.c 2>/dev/null |
        sed -E -e 's/^(\{|X\() *"([A-Z]+)", */\2 /' \
            -e 's|DISPATCH "|"/arvados/v1/dispatch/|' -e 's/"//g' | sort -u || true
}

# The API server's page has one row per resource; what Arvados calls list, get,
# create, update and delete stands there by that name, the rest by its path
# behind the resource, with {uuid} or {id} for the record.
check_api_routes()
{
    page=$tree/doc/protocol-api.md
    routes_of core/apiserver >"$work/routes"
    while read -r method path; do
        total=$((total + 1))
        resource=${path%%/*}
        rest=${path#"$resource"}
        rest=${rest#/}
        rest=${rest%/\*}
        case $method:$rest in
        GET:) name=list ;;
        POST:) name=create ;;
        GET:\{\}) name=get ;;
        PUT:\{\}) name=update ;;
        DELETE:\{\}) name=delete ;;
        *) name=\`$(printf %s "$rest" | sed 's/{}/{(uuid|id)}/')\` ;;
        esac
        name=$(printf %s "$name" | sed -e 's/[{}]/\\&/g')
        # A resource without a row of its own is a route among "others".
        if ! grep -qE "^\\| \`$resource\` \\|.*$name" "$page" &&
            ! grep '^| others |' "$page" | grep -qF "\`$path\`"; then
            wrong "$page has no $method $path in its table"
        fi
    done <"$work/routes"
}

check_management_routes()
{
    routes_of core/dispatcher >"$work/routes"
    [ -s "$work/routes" ] || return 0
    plain "$tree/doc/crunch-dispatch-cloud.8" >"$work/page"
    while read -r method path; do
        total=$((total + 1))
        grep -qF -- "$path" "$work/page" ||
            wrong "crunch-dispatch-cloud(8) says nothing of $method $path"
    done <"$work/routes"
}

check_settings()
{
    settings=$build/core/conf/settings_doc
    page=$build/doc/crunch-dispatch-cloud.yml.5
    [ -x "$settings" ] || return 0
    plain "$page" >"$work/page"
    "$settings" keys >"$work/keys"
    while read -r key; do
        total=$((total + 1))
        # The key on a line of its own macro, and text on the line after it.
        awk -v key="$key" '
            want { text = $0; exit }
            $1 == ".B" && $2 == key { want = 1 }
            END { exit !(want && text != "" && text !~ /^\.TP/) }
        ' "$work/page" || wrong "$page does not explain $key"
    done <"$work/keys"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for page in "$tree"/doc/*.[1-8] "$build"/doc/*.[1-8]; do
    if [ -f "$page" ]; then
        check_page "$page"
    fi
done
for name in crunch-dispatch-cloud crunch-api-server crunch-run crunchctl \
    cdc-local-vm cdc-driver-check; do
    for program in "$build/$name" "$build"/core/*/"$name"; do
        [ -x "$program" ] || continue
        page=$(page_of "$name")
        if [ -z "$page" ]; then
            wrong "$name has no manual page in doc"
        else
            check_options "$program" "$page"
        fi
    done
done
check_api_routes
check_management_routes
check_settings

echo "$total checks, $bad complaints"
[ $bad = 0 ] && [ $total -gt 0 ]
