# SPDX-License-Identifier: Apache-2.0
#
# conformance: what every driver must do. The program is installed: authors of
# drivers run it in their own tests.

bin_PROGRAMS += cdc-driver-check
cdc_driver_check_SOURCES = tests/conformance/check.h \
	tests/conformance/check_steps.c tests/conformance/driver_check.c
cdc_driver_check_LDADD = $(PLUGIN_LIBS)

LINT_TESTS += tests/conformance/contract.sh
SYSTEM_TESTS += tests/conformance/drivers.sh tests/conformance/loopback.sh
