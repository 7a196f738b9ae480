# SPDX-License-Identifier: Apache-2.0
#
# base: memory, errors, text, JSON, clock, log, metrics. Knows nothing of ours.
