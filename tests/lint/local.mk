# SPDX-License-Identifier: Apache-2.0
#
# lint: rules of the house that a program can check.
