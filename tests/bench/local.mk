# SPDX-License-Identifier: Apache-2.0
#
# bench: figures, each beside a floor measured in the same run.
