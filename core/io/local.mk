# SPDX-License-Identifier: Apache-2.0
#
# io: the event loop, HTTP client and server, child processes, crypto.
