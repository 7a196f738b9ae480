# SPDX-License-Identifier: Apache-2.0
#
# common: code shared by drivers; includes only plugins-api.
