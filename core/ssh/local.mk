# SPDX-License-Identifier: Apache-2.0
#
# ssh: the exec port over libssh.
