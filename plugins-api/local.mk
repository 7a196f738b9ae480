# SPDX-License-Identifier: Apache-2.0
#
# plugins-api: the public headers for drivers, and what proves them.

cdcincludedir = $(includedir)/cdc
cdcinclude_HEADERS = plugins-api/cdc/driver.h plugins-api/cdc/host.h \
	plugins-api/cdc/types.h
nodist_cdcinclude_HEADERS = plugins-api/cdc/version.h
pkgconfig_DATA = plugins-api/cdc-driver.pc
cdcaclocaldir = $(datadir)/aclocal
dist_cdcaclocal_DATA = plugins-api/m4/cdc-driver.m4
cdcexampledir = $(docdir)/example-driver
EXAMPLE_FILES = plugins-api/example/Makefile.am plugins-api/example/README \
	plugins-api/example/configure.ac plugins-api/example/machines.c
dist_cdcexample_DATA = $(EXAMPLE_FILES)
dist_doc_DATA += plugins-api/COMPATIBILITY.md

# Proof that the installed files suffice to build a driver outside the tree:
# the installed example is copied, built, tested with the installed program,
# installed into a folder of its own, and loaded from there by name.
EXAMPLE_WORK = installcheck.tmp
CLEAN_DIRS += $(EXAMPLE_WORK)
installcheck-local:
	rm -rf $(EXAMPLE_WORK) && mkdir $(EXAMPLE_WORK)
	cp '$(DESTDIR)$(cdcexampledir)'/* $(EXAMPLE_WORK)
	chmod -R u+w $(EXAMPLE_WORK)
	cd $(EXAMPLE_WORK) && \
	  ACLOCAL_PATH='$(DESTDIR)$(cdcaclocaldir)' autoreconf -fi >log 2>&1 && \
	  PKG_CONFIG_PATH='$(DESTDIR)$(pkgconfigdir)' \
	  PKG_CONFIG_SYSROOT_DIR='$(DESTDIR)' \
	  ./configure -q CC='$(CC)' CFLAGS='$(CFLAGS) -Werror' \
	    driverdir='$(abs_builddir)/$(EXAMPLE_WORK)/drivers' \
	    CDC_DRIVER_CHECK='$(DESTDIR)$(bindir)/cdc-driver-check' || \
	  { cat log; exit 1; }
	cd $(EXAMPLE_WORK) && $(MAKE) && \
	  $(MAKE) check CDC_DRIVER_CHECK_FLAGS=--trust-build-tree && \
	  $(MAKE) install DESTDIR=
	'$(DESTDIR)$(bindir)/cdc-driver-check' --describe --trust-build-tree \
	  --driver-dir '$(abs_builddir)/$(EXAMPLE_WORK)/drivers' machines
	rm -rf $(EXAMPLE_WORK)
