# SPDX-License-Identifier: Apache-2.0
#
# localvm: the program cdc-local-vm, behind the loopback driver.

noinst_LIBRARIES += core/localvm/liblocalvm.a
core_localvm_liblocalvm_a_SOURCES = \
	core/localvm/addr.c core/localvm/addr.h \
	core/localvm/command.c core/localvm/command.h \
	core/localvm/groups.c core/localvm/groups.h \
	core/localvm/guest.c core/localvm/guest.h \
	core/localvm/guest_etc.c \
	core/localvm/guest_files.c \
	core/localvm/guest_init.c \
	core/localvm/guest_root.c \
	core/localvm/keygen.c core/localvm/keygen.h \
	core/localvm/launch.c core/localvm/launch.h \
	core/localvm/mode.c core/localvm/mode.h \
	core/localvm/state.c core/localvm/state.h \
	core/localvm/status.c core/localvm/status.h \
	core/localvm/vm.c core/localvm/vm.h \
	core/localvm/wire.c core/localvm/wire.h

# Of io only what needs libcrypto alone: the program starts for every call.
LOCALVM_LIBS = core/localvm/liblocalvm.a core/io/libio.a $(ISOLATE_LIBS) \
	$(CRYPTO_LIBS)

pkglibexec_PROGRAMS += cdc-local-vm
cdc_local_vm_SOURCES = core/localvm/main.c
cdc_local_vm_LDADD = $(LOCALVM_LIBS)
dist_man_MANS += doc/cdc-local-vm.8
EXTRA_DIST += doc/decisions/0003-groups-of-local-vms.md

UNIT_TESTS += tests/unit/test_localvm
tests_unit_test_localvm_SOURCES = tests/unit/test_localvm.c
tests_unit_test_localvm_LDADD = $(LOCALVM_LIBS) $(TEST_LIBS)
