# SPDX-License-Identifier: Apache-2.0
#
# store: SQLite behind the journal port and the API server's database.
