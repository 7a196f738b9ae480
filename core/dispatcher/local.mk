# SPDX-License-Identifier: Apache-2.0
#
# dispatcher: the program crunch-dispatch-cloud.
bin_PROGRAMS += crunch-dispatch-cloud
crunch_dispatch_cloud_SOURCES = \
	core/dispatcher/admin.c core/dispatcher/admin.h \
	core/dispatcher/app.c core/dispatcher/app.h \
	core/dispatcher/main.c \
	core/dispatcher/runner_file.c core/dispatcher/runner_file.h \
	core/dispatcher/view.c core/dispatcher/view.h
crunch_dispatch_cloud_CPPFLAGS = $(AM_CPPFLAGS) \
	-DCDC_RUNNER_PATH='"$(bindir)/crunch-run"'
crunch_dispatch_cloud_LDADD = $(DISPATCH_LIBS) $(ARVADOS_LIBS) \
	$(PLUGIN_LIBS) $(SSHPORT_LIBS) $(STORE_LIBS) $(CONF_LIBS) $(IO_LIBS)
