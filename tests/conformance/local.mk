# SPDX-License-Identifier: Apache-2.0
#
# conformance: what every driver must do.
