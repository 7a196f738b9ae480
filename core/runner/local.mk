# SPDX-License-Identifier: Apache-2.0
#
# runner: the program crunch-run.
