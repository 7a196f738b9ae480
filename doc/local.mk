# SPDX-License-Identifier: Apache-2.0
#
# doc: manual pages, architecture, decisions.
