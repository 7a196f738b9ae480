# SPDX-License-Identifier: Apache-2.0
#
# ctl: the program crunchctl.
