# SPDX-License-Identifier: Apache-2.0
#
# store: SQLite behind the journal port and the API server's database.

noinst_LIBRARIES += core/store/libstore.a
core_store_libstore_a_SOURCES = \
	core/store/journal.c core/store/journal.h \
	core/store/state_dir.c core/store/state_dir.h \
	core/store/schema.h core/store/store.h \
	core/store/store_row.c \
	core/store/store_schema.c \
	core/store/store_sqlite.c core/store/store_sqlite.h \
	core/store/store_sqlite_mig.c core/store/store_sqlite_mig.h \
	core/store/store_sqlite_rec.c \
	core/store/store_sqlite_sql.c \
	core/store/store_sqlite_tx.c \
	core/store/store_sqlite_work.c

noinst_HEADERS += tests/unit/store_util.h

UNIT_TESTS += tests/unit/test_store

tests_unit_test_store_SOURCES = tests/unit/test_store.c
tests_unit_test_store_LDADD = $(STORE_LIBS) $(TEST_LIBS)

UNIT_TESTS += tests/unit/test_journal
tests_unit_test_journal_SOURCES = tests/unit/test_journal.c
tests_unit_test_journal_LDADD = $(STORE_LIBS) $(TEST_LIBS)
