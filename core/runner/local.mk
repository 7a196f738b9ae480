# SPDX-License-Identifier: Apache-2.0
#
# runner: the program crunch-run.

noinst_HEADERS += core/runner/node.h
