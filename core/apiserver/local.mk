# SPDX-License-Identifier: Apache-2.0
#
# apiserver: the program crunch-api-server. All but main is a library, so that
# unit tests link it.

dist_doc_DATA += doc/protocol-api.md
dist_man_MANS += doc/crunch-api-server.8
EXTRA_DIST += doc/decisions/0002-storage-of-the-api-server.md

noinst_LIBRARIES += core/apiserver/libapiserver.a
core_apiserver_libapiserver_a_SOURCES = \
	core/apiserver/app.c core/apiserver/app.h \
	core/apiserver/assign.c \
	core/apiserver/call.c core/apiserver/call.h \
	core/apiserver/change.c core/apiserver/change.h \
	core/apiserver/containers.c \
	core/apiserver/content.c \
	core/apiserver/discovery.c core/apiserver/discovery.h \
	core/apiserver/feed.c core/apiserver/feed.h \
	core/apiserver/files.c core/apiserver/files.h \
	core/apiserver/filters.c core/apiserver/filters.h \
	core/apiserver/finish.c \
	core/apiserver/handlers.h \
	core/apiserver/ident.c core/apiserver/ident.h \
	core/apiserver/init.c core/apiserver/init.h \
	core/apiserver/janitor.c core/apiserver/janitor.h \
	core/apiserver/life.c \
	core/apiserver/limit.c core/apiserver/limit.h \
	core/apiserver/locks.c \
	core/apiserver/manifest.c core/apiserver/manifest.h \
	core/apiserver/operand.c core/apiserver/operand.h \
	core/apiserver/params.c core/apiserver/params.h \
	core/apiserver/prio.c \
	core/apiserver/publish.c core/apiserver/publish.h \
	core/apiserver/records.c core/apiserver/records.h \
	core/apiserver/requests.c \
	core/apiserver/resource.c core/apiserver/resource.h \
	core/apiserver/routes.c core/apiserver/routes.h \
	core/apiserver/rules.c core/apiserver/rules.h \
	core/apiserver/spec.c core/apiserver/spec.h \
	core/apiserver/spec_constraints.c \
	core/apiserver/spec_mounts.c \
	core/apiserver/stats.c core/apiserver/stats.h \
	core/apiserver/status.c core/apiserver/status.h \
	core/apiserver/tokens.c \
	core/apiserver/walk.c core/apiserver/walk.h \
	core/apiserver/who.c core/apiserver/who.h

bin_PROGRAMS += crunch-api-server
crunch_api_server_SOURCES = core/apiserver/main.c
crunch_api_server_LDADD = core/apiserver/libapiserver.a $(CONF_LIBS) \
	$(STORE_LIBS)

EXTRA_DIST += tests/system/apiserver.py
SYSTEM_TESTS += tests/system/api-http.py tests/system/api-life.py \
	tests/system/api-sdk.py
CLEAN_DIRS += tests/venv-arvados

TEST_HELPERS += tests/bench/apibench
tests_bench_apibench_SOURCES = tests/bench/apibench.c
tests_bench_apibench_LDADD = $(SQLITE_LIBS)
BENCHES += tests/bench/api.sh

APISERVER_LIBS = core/apiserver/libapiserver.a $(STORE_LIBS)

UNIT_TESTS += tests/unit/test_feed tests/unit/test_filters \
	tests/unit/test_manifest tests/unit/test_routes tests/unit/test_rules
tests_unit_test_feed_SOURCES = tests/unit/test_feed.c
tests_unit_test_feed_LDADD = $(APISERVER_LIBS) $(TEST_LIBS)
tests_unit_test_filters_SOURCES = tests/unit/test_filters.c
tests_unit_test_filters_LDADD = $(APISERVER_LIBS) $(TEST_LIBS)
tests_unit_test_manifest_SOURCES = tests/unit/test_manifest.c
tests_unit_test_manifest_LDADD = $(APISERVER_LIBS) $(TEST_LIBS)
tests_unit_test_routes_SOURCES = tests/unit/test_routes.c
tests_unit_test_routes_LDADD = $(APISERVER_LIBS) $(TEST_LIBS)
tests_unit_test_rules_SOURCES = tests/unit/test_rules.c
tests_unit_test_rules_LDADD = $(APISERVER_LIBS) $(TEST_LIBS)
