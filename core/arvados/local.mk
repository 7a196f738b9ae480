# SPDX-License-Identifier: Apache-2.0
#
# arvados: the api port over HTTP and JSON.
