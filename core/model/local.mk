# SPDX-License-Identifier: Apache-2.0
#
# model: containers, instance types, needs: plain records, pure arithmetic.
