# SPDX-License-Identifier: Apache-2.0
#
# sim: scenarios, checkers and planted bugs for the simulator.
