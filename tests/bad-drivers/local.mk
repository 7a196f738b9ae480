# SPDX-License-Identifier: Apache-2.0
#
# bad-drivers: modules that the loader must refuse or survive, and a scripted
# one that behaves badly, or well, on request.

noinst_HEADERS += tests/bad-drivers/bad.h

check_LTLIBRARIES += \
	tests/bad-drivers/wrong_magic.la \
	tests/bad-drivers/wrong_kind.la \
	tests/bad-drivers/short_size.la \
	tests/bad-drivers/absurd_size.la \
	tests/bad-drivers/lying_size.la \
	tests/bad-drivers/wrong_major.la \
	tests/bad-drivers/minor_too_new.la \
	tests/bad-drivers/minor_older.la \
	tests/bad-drivers/no_create.la \
	tests/bad-drivers/cap_without_callback.la \
	tests/bad-drivers/wrong_name.la \
	tests/bad-drivers/extra_export.la \
	tests/bad-drivers/no_entry.la \
	tests/bad-drivers/ctor_crash.la \
	tests/bad-drivers/ctor_hang.la \
	tests/bad-drivers/ctor_exit.la \
	tests/bad-drivers/undefined_function.la \
	tests/bad-drivers/crash_in_list.la \
	tests/bad-drivers/scripted.la \
	tests/bad-drivers/scripted_parallel.la

# Without the export list, without -z defs, and bound lazily.
BAD_LINKFLAGS_OPEN = $(SAN_CFLAGS) -module -avoid-version -shared \
	-Wl,-z,lazy -rpath /nowhere
BAD_LINKFLAGS_UNDEFINED = $(BAD_LINKFLAGS_OPEN) \
	-export-symbols-regex '^cdc_driver_entry$$'

tests_bad_drivers_wrong_magic_la_SOURCES = tests/bad-drivers/wrong_magic.c
tests_bad_drivers_wrong_magic_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_wrong_magic_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_wrong_magic_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_wrong_kind_la_SOURCES = tests/bad-drivers/wrong_kind.c
tests_bad_drivers_wrong_kind_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_wrong_kind_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_wrong_kind_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_short_size_la_SOURCES = tests/bad-drivers/short_size.c
tests_bad_drivers_short_size_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_short_size_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_short_size_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_absurd_size_la_SOURCES = tests/bad-drivers/absurd_size.c
tests_bad_drivers_absurd_size_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_absurd_size_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_absurd_size_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_lying_size_la_SOURCES = tests/bad-drivers/lying_size.c
tests_bad_drivers_lying_size_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_lying_size_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_lying_size_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_wrong_major_la_SOURCES = tests/bad-drivers/wrong_major.c
tests_bad_drivers_wrong_major_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_wrong_major_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_wrong_major_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_minor_too_new_la_SOURCES = tests/bad-drivers/minor_too_new.c
tests_bad_drivers_minor_too_new_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_minor_too_new_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_minor_too_new_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_minor_older_la_SOURCES = tests/bad-drivers/minor_older.c
tests_bad_drivers_minor_older_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_minor_older_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_minor_older_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_no_create_la_SOURCES = tests/bad-drivers/no_create.c
tests_bad_drivers_no_create_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_no_create_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_no_create_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_cap_without_callback_la_SOURCES = tests/bad-drivers/cap_without_callback.c
tests_bad_drivers_cap_without_callback_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_cap_without_callback_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_cap_without_callback_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_wrong_name_la_SOURCES = tests/bad-drivers/wrong_name.c
tests_bad_drivers_wrong_name_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_wrong_name_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_wrong_name_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_extra_export_la_SOURCES = tests/bad-drivers/extra_export.c
tests_bad_drivers_extra_export_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_extra_export_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_extra_export_la_LDFLAGS = $(BAD_LINKFLAGS_OPEN)
tests_bad_drivers_no_entry_la_SOURCES = tests/bad-drivers/no_entry.c
tests_bad_drivers_no_entry_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_no_entry_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_no_entry_la_LDFLAGS = $(BAD_LINKFLAGS_OPEN)
tests_bad_drivers_ctor_crash_la_SOURCES = tests/bad-drivers/ctor_crash.c
tests_bad_drivers_ctor_crash_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_ctor_crash_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_ctor_crash_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_ctor_hang_la_SOURCES = tests/bad-drivers/ctor_hang.c
tests_bad_drivers_ctor_hang_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_ctor_hang_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_ctor_hang_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_ctor_exit_la_SOURCES = tests/bad-drivers/ctor_exit.c
tests_bad_drivers_ctor_exit_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_ctor_exit_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_ctor_exit_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_undefined_function_la_SOURCES = tests/bad-drivers/undefined_function.c
tests_bad_drivers_undefined_function_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_undefined_function_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_undefined_function_la_LDFLAGS = $(BAD_LINKFLAGS_UNDEFINED)
tests_bad_drivers_crash_in_list_la_SOURCES = tests/bad-drivers/crash_in_list.c
tests_bad_drivers_crash_in_list_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_crash_in_list_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_crash_in_list_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_scripted_la_SOURCES = tests/bad-drivers/scripted.c
tests_bad_drivers_scripted_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
tests_bad_drivers_scripted_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_scripted_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
tests_bad_drivers_scripted_parallel_la_SOURCES = tests/bad-drivers/scripted.c
tests_bad_drivers_scripted_parallel_la_CPPFLAGS = $(DRIVER_CPPFLAGS) -DPARALLEL
tests_bad_drivers_scripted_parallel_la_CFLAGS = $(DRIVER_CFLAGS)
tests_bad_drivers_scripted_parallel_la_LDFLAGS = $(TEST_DRIVER_LINKFLAGS)
