# SPDX-License-Identifier: Apache-2.0
#
# system: the real programs together.
