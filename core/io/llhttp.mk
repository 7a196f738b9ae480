# SPDX-License-Identifier: Apache-2.0
#
# llhttp from the C files that Debian 12's node-llhttp installs. They are
# compiled as they stand, so not under our warning options.

# A variable of make's own, so that programs depend on the archive.

if LLHTTP_SOURCES
LLHTTP_LIB = core/io/libllhttp.a
noinst_LIBRARIES += core/io/libllhttp.a
llhttp_copies = core/io/llhttp/api.c core/io/llhttp/http.c \
	core/io/llhttp/llhttp.c
nodist_core_io_libllhttp_a_SOURCES = $(llhttp_copies)
core_io_libllhttp_a_CPPFLAGS = $(LLHTTP_CFLAGS)
core_io_libllhttp_a_CFLAGS = -fPIE $(SAN_CFLAGS)
CLEANFILES += $(llhttp_copies)

$(llhttp_copies):
	$(AM_V_GEN)$(MKDIR_P) core/io/llhttp && \
	  cp $(LLHTTP_DIR)/$(@F) $@.tmp && chmod u+w $@.tmp && mv -f $@.tmp $@
else
LLHTTP_LIB = $(LLHTTP_LIBS)
endif
