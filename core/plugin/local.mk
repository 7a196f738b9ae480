# SPDX-License-Identifier: Apache-2.0
#
# plugin: the cloud port over drivers loaded with libltdl.
