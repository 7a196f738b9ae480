# SPDX-License-Identifier: Apache-2.0
#
# fakes: stand-ins that tests link or start.

EXTRA_DIST += tests/fakes/apid.py
