# SPDX-License-Identifier: Apache-2.0
#
# apiserver: the program crunch-api-server.

dist_doc_DATA += doc/protocol-api.md
