# SPDX-License-Identifier: Apache-2.0
#
# runner: the program crunch-run. All but main() is a library, for its tests.

noinst_LIBRARIES += core/runner/librunner.a
core_runner_librunner_a_SOURCES = \
	core/runner/api.c \
	core/runner/api.h \
	core/runner/cli.c \
	core/runner/cli.h \
	core/runner/host.c \
	core/runner/host.h \
	core/runner/http.c \
	core/runner/http.h \
	core/runner/http_rx.c \
	core/runner/http_rx.h \
	core/runner/lockfile.c \
	core/runner/lockfile.h \
	core/runner/node.c \
	core/runner/node.h \
	core/runner/watch.c
