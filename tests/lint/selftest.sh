#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The lints themselves: each passes on a small clean tree and goes red when one
# fault is planted in it.
set -eu
lint=${TOP_SRCDIR:?}/tests/lint
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
bad=0
total=0

clean_tree()
{
    rm -rf "$tree"
    mkdir -p "$tree/core/base" "$tree/core/dispatch" "$tree/core/io" \
        "$tree/drivers/common" "$tree/drivers/one" "$tree/plugins-api/cdc" \
        "$tree/tests/unit"
    for name in base/b dispatch/d io/i; do
        printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' \
            '#ifndef GUARD_'"${name##*/}" '#define GUARD_'"${name##*/}" \
            'int f_'"${name##*/}"'(void);' '#endif' >"$tree/core/$name.h"
        printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' '/*' \
            ' * What for.' ' *' ' * Steps.' ' *' ' * Any thread.' ' */' \
            '#include "core/'"$name"'.h"' '#include <stdio.h>' \
            '#include "core/base/b.h"' \
            'int f_'"${name##*/}"'(void)' '{' '    return 0;' '}' \
            >"$tree/core/$name.c"
    done
    printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' \
        'typedef int cdc_t;' >"$tree/plugins-api/cdc/once.h"
    # A typedef may be repeated in C11, not in C90: so it needs its guard.
    printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' \
        '#ifndef CDC_ONCE_H' '#define CDC_ONCE_H' 'typedef int cdc_t;' \
        '#endif' >"$tree/plugins-api/cdc/once.h"
    printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' \
        '#include "core/dispatch/d.h"' '#include <cmocka.h>' \
        >"$tree/tests/unit/t.c"
}

# green LINT: it passes on the clean tree.
green()
{
    total=$((total + 1))
    clean_tree
    if ! "$lint/$1.sh" "$tree" >"$work/log" 2>&1; then
        echo "$1 complains about the clean tree:"
        cat "$work/log"
        bad=$((bad + 1))
    fi
}

# red LINT FILE TEXT: it fails when TEXT is appended to FILE, and names FILE.
red()
{
    total=$((total + 1))
    clean_tree
    printf '%b\n' "$3" >>"$tree/$2"
    code=0
    "$lint/$1.sh" "$tree" >"$work/log" 2>&1 || code=$?
    if [ $code != 1 ] || ! grep -q "$2" "$work/log"; then
        echo "$1 does not see in $2 (exit code $code): $3"
        cat "$work/log"
        bad=$((bad + 1))
    fi
}

green layers
red layers core/base/b.c '#include "core/io/i.h"'
red layers core/dispatch/d.c '#include "core/io/i.h"'
red layers core/dispatch/d.c '#include <uv.h>'
red layers core/dispatch/d.c '  #  include <sqlite3.h>'
red layers core/dispatch/d.c '#include <cdc/driver.h>'
red layers core/io/i.c '#include "core/dispatch/d.h"'
red layers core/io/i.c '#include <json.h>'
red layers core/io/i.c '#include "tests/unit/unit.h"'
red layers core/io/i.c '#include "i.h"'
red layers core/io/i.c '#include "../base/b.h"'
red layers core/io/i.c '#include <cmocka.h>'
red layers core/io/i.c '#include HEADER'
red layers drivers/one/one.c '#include "core/base/b.h"'
red layers drivers/one/one.c '#include "drivers/two/two.h"'
red layers drivers/one/one.c '#include <curl/curl.h>'
red layers plugins-api/cdc/once.h '#include "core/base/b.h"'
red layers core/newroom.c '#include <stdio.h>'

green headers
red headers core/io/i.h 'size_t needs_stddef(void);'
red headers core/io/i.h 'static inline int twice(void) { return 1; }'
red headers plugins-api/cdc/once.h '// no comment of C90'
red headers plugins-api/cdc/once.h 'typedef int class; class f(class class);'

if ctags --version 2>/dev/null | grep -q 'Universal Ctags'; then
    long=$(yes '    x++;' | head -n 80)
    green lengths
    red lengths core/io/i.c "int g(void)\n{\n    int x = 0;\n$long\n}"
    red lengths tests/unit/t.c "int g(void)\n{\n    int x = 0;\n$long\n}"
    red lengths core/io/i.c "$(yes '/* one more */' | head -n 900)"
    many=$(for i in 1 2 3 4 5 6; do
        printf 'int g%s(int x)\n{\n%s\n}\n' "$i" "$(yes '    x++;' | head -n 20)"
    done)
    clean_tree
    total=$((total + 1))
    printf '%s\n' "$many" >>"$tree/core/io/i.c"
    if "$lint/lengths.sh" "$tree" >"$work/log" 2>&1 ||
        ! grep -q median "$work/log"; then
        echo "lengths does not see a long median"
        bad=$((bad + 1))
    fi
fi

green cleanup
red cleanup core/io/i.c \
    'int g(int x)\n{\n    CLEANUP(buf_fini) struct buf b;\n    if (x)\n        return 1;\n    buf_init(&b, 1);\n    return 0;\n}'
red cleanup core/io/i.c \
    'int g(int x)\n{\n    CLEANUP(mem_free) char *s;\n    return x;\n}'

green words
red words core/io/i.c '/* TO''DO: later */'
red words tests/unit/t.c '/* FIX''ME */'
red words core/io/i.c 'int g(void) { return system("x"); }'
red words core/io/i.c 'void g(char *s) { s = strcat(s, "x"); }'
red words core/io/i.c 'int g(void);   '
red words core/io/i.c '\tint g(void);'
red words core/io/plain.c '#include "core/io/i.h"'
red words core/io/short.c \
    '/* SPDX-License-Identifier: Apache-2.0 */\n/* Short. */\n'
red words core/io/i.h '/* see /wo''rk/notes */'

# exports looks into a build tree.
clean_tree
build=$work/build
mkdir -p "$build/drivers/one/.libs"
so=$build/drivers/one/.libs/one.so
# shellcheck disable=SC2086
module()
{
    printf '%s\n' "$1" >"$work/one.c"
    shift
    ${CC:-cc} -shared -fPIC -o "$so" "$work/one.c" "$@"
}
good_flags='-Wl,-z,now -Wl,-z,nodelete'

# exports_is GREEN-OR-RED WHAT
exports_is()
{
    total=$((total + 1))
    result=red
    if "$lint/exports.sh" "$build" >"$work/log" 2>&1; then
        result=green
    fi
    if [ $result != "$1" ]; then
        echo "exports is $result for: $2"
        cat "$work/log"
        bad=$((bad + 1))
    fi
}

# shellcheck disable=SC2086
{
    module 'const int cdc_driver_entry = 1;' $good_flags
    exports_is green 'one data symbol'
    module 'const int cdc_driver_entry = 1; int f(void) { return 1; }' \
        $good_flags
    exports_is red 'a second symbol'
    module 'int cdc_driver_entry(void) { return 1; }' $good_flags
    exports_is red 'a function instead of data'
    module 'const int cdc_driver_entry = 1;' -Wl,-z,lazy -Wl,-z,nodelete
    exports_is red 'lazy binding'
    module 'const int cdc_driver_entry = 1;' -Wl,-z,now
    exports_is red 'can be unloaded'
}

# docs reads pages in the tree and asks programs in the build tree.
docs_tree()
{
    clean_tree
    rm -rf "$build"
    mkdir -p "$tree/doc" "$build/doc" "$build/core/conf" "$build/core/ctl"
    printf '%s\n' '.TH CRUNCHCTL 1' '.SH NAME' 'crunchctl \- a program' \
        '.SH OPTIONS' '.TP' '.B \-\-json' 'Print JSON.' \
        >"$tree/doc/crunchctl.1"
    printf '%s\n' '.TH CRUNCH 5' '.SH NAME' 'crunch \- a file' '.SH KEYS' \
        '.TP' '.B First\-Key' 'Its text.' '.TP' '.B Second' 'Its text.' \
        >"$build/doc/crunch-dispatch-cloud.yml.5"
    program "$build/core/ctl/crunchctl" 'usage: crunchctl [--json]'
    program "$build/core/conf/settings_doc" 'First-Key' 'Second'
    mkdir -p "$tree/core/apiserver" "$tree/core/dispatcher"
    printf '%s\n' '    {"GET", "things", 0},' '    {"PUT", "things/{}", 0},' \
        '    {"POST", "things/{}/lock", 0},' \
        '    {"GET", "things/{}/log/*", 0},' '    {"GET", "feed", 0},' \
        >"$tree/core/apiserver/routes.c"
    printf '%s\n' '| resource | routes |' \
        '| `things` | list, update, `{uuid}/lock`; ours: `{uuid}/log` |' \
        '| others | `feed` |' >"$tree/doc/protocol-api.md"
    printf '%s\n' '    {"GET", "/v1/dispatch", 0},' \
        >"$tree/core/dispatcher/mgmt.c"
    printf '%s\n' '.TH CRUNCH 8' '.SH NAME' 'crunch \- a daemon' \
        '.SH ROUTES' '.TP' '.B GET /v1/dispatch' 'Its text.' \
        >"$tree/doc/crunch-dispatch-cloud.8"
}

program()
{
    file=$1
    shift
    printf '%s\n' '#!/bin/sh' "printf '%s\\n' $(printf "'%s' " "$@")" >"$file"
    chmod +x "$file"
}

# docs_is GREEN-OR-RED WHAT
docs_is()
{
    total=$((total + 1))
    result=red
    if "$lint/docs.sh" "$tree" "$build" >"$work/log" 2>&1; then
        result=green
    fi
    if [ $result != "$1" ]; then
        echo "docs is $result for: $2"
        cat "$work/log"
        bad=$((bad + 1))
    fi
}

docs_tree
docs_is green 'complete pages'
docs_tree
program "$build/core/ctl/crunchctl" 'usage: crunchctl [--json] [--jso]'
docs_is red 'an option without a line'
docs_tree
rm "$tree/doc/crunchctl.1"
docs_is red 'a program without a page'
docs_tree
program "$build/core/conf/settings_doc" First-Key Second Third
docs_is red 'a setting without a line'
docs_tree
sed -i '/Its text/d' "$build/doc/crunch-dispatch-cloud.yml.5"
docs_is red 'a setting without a text'
for route in '"POST", "things"' '"GET", "things/{}/lock2"' \
    '"GET", "others"' '"GET", "things/current"' '"DELETE", "things/{}"'; do
    docs_tree
    printf '    {%s, 0},\n' "$route" >>"$tree/core/apiserver/routes.c"
    docs_is red "a route without a line: $route"
done
docs_tree
printf '    {%s, 0},\n' '"GET", "/v1/other"' >>"$tree/core/dispatcher/mgmt.c"
docs_is red 'a management route without a line'
docs_tree
sed -i '/NAME/d' "$tree/doc/crunchctl.1"
docs_is red 'a page without a name'

echo "$total cases, $bad wrong"
[ $bad = 0 ]
