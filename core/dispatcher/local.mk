# SPDX-License-Identifier: Apache-2.0
#
# dispatcher: the program crunch-dispatch-cloud.
