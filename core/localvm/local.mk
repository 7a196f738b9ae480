# SPDX-License-Identifier: Apache-2.0
#
# localvm: the program cdc-local-vm, behind the loopback driver.

noinst_HEADERS += core/localvm/wire.h
