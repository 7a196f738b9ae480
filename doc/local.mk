# SPDX-License-Identifier: Apache-2.0
#
# doc: manual pages, architecture, decisions.
dist_man_MANS += doc/crunch-dispatch-cloud.8
dist_man_MANS += doc/cdc-driver.7 doc/cdc-driver-check.1 \
	doc/cdc-driver-loopback.7

# The settings page: its frame around what the settings table prints.
SETTINGS_PAGE = doc/crunch-dispatch-cloud.yml.5
nodist_man_MANS += $(SETTINGS_PAGE)
CLEANFILES += $(SETTINGS_PAGE)
EXTRA_DIST += $(SETTINGS_PAGE).head $(SETTINGS_PAGE).tail \
	doc/decisions/0001-out-of-memory.md \
	doc/protocol-api.md
dist_doc_DATA += README.md NEWS.md COPYING HACKING.md doc/ARCHITECTURE.md

$(SETTINGS_PAGE): core/conf/settings_doc$(EXEEXT) \
	$(srcdir)/$(SETTINGS_PAGE).head $(srcdir)/$(SETTINGS_PAGE).tail
	@$(MKDIR_P) doc
	$(AM_V_GEN){ cat $(srcdir)/$(SETTINGS_PAGE).head && \
	  core/conf/settings_doc$(EXEEXT) man && \
	  cat $(srcdir)/$(SETTINGS_PAGE).tail; } > $@.tmp && mv $@.tmp $@

# crunchctl(1): its frame around what the verb table prints.
CTL_PAGE = doc/crunchctl.1
nodist_man_MANS += $(CTL_PAGE)
CLEANFILES += $(CTL_PAGE)
EXTRA_DIST += $(CTL_PAGE).head $(CTL_PAGE).tail

$(CTL_PAGE): crunchctl$(EXEEXT) \
	$(srcdir)/$(CTL_PAGE).head $(srcdir)/$(CTL_PAGE).tail
	@$(MKDIR_P) doc
	$(AM_V_GEN){ cat $(srcdir)/$(CTL_PAGE).head && \
	  ./crunchctl$(EXEEXT) --man-verbs && \
	  cat $(srcdir)/$(CTL_PAGE).tail; } > $@.tmp && mv $@.tmp $@
