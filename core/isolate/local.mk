# SPDX-License-Identifier: Apache-2.0
#
# isolate: cgroups, namespaces, mounts, killing a process tree.

noinst_HEADERS += \
	core/isolate/caps.h \
	core/isolate/cgroup.h \
	core/isolate/killtree.h \
	core/isolate/mnt.h \
	core/isolate/ns.h \
	core/isolate/procid.h
