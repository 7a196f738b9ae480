# SPDX-License-Identifier: Apache-2.0
#
# etc: example configuration, service units, the demo.

EXTRA_DIST += etc/demo.sh
