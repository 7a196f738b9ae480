# SPDX-License-Identifier: Apache-2.0
#
# port: the six contracts between decisions and the world. Headers only.

noinst_HEADERS += \
	core/port/api.h \
	core/port/clock.h \
	core/port/cloud.h \
	core/port/entropy.h \
	core/port/exec.h \
	core/port/journal.h \
	core/port/op.h
