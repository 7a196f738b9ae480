# SPDX-License-Identifier: Apache-2.0
#
# dispatch: every decision of the dispatcher. Knows port, model, base only.
