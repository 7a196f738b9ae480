# SPDX-License-Identifier: Apache-2.0
#
# store: SQLite behind the journal port and the API server's database.

noinst_HEADERS += core/store/schema.h core/store/store.h
