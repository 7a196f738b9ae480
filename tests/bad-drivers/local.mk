# SPDX-License-Identifier: Apache-2.0
#
# bad-drivers: modules that the loader must refuse or survive.
