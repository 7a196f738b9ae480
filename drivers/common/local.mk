# SPDX-License-Identifier: Apache-2.0
#
# common: code shared by drivers; includes only plugins-api.

noinst_LTLIBRARIES += drivers/common/libcommon.la
drivers_common_libcommon_la_CPPFLAGS = $(DRIVER_CPPFLAGS)
drivers_common_libcommon_la_CFLAGS = $(DRIVER_CFLAGS)
drivers_common_libcommon_la_SOURCES = \
	drivers/common/jsonw.c drivers/common/jsonw.h \
	drivers/common/vmprog.c drivers/common/vmprog.h
