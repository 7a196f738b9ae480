# SPDX-License-Identifier: Apache-2.0
#
# port: the six contracts between decisions and the world. Headers only.
