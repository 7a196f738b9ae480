# SPDX-License-Identifier: Apache-2.0
#
# sim: the six ports over a seeded discrete-event world.
