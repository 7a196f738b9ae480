# SPDX-License-Identifier: Apache-2.0
#
# isolate: cgroups, namespaces, mounts, killing a process tree.
