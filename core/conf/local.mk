# SPDX-License-Identifier: Apache-2.0
#
# conf: the settings table and the reader of the Arvados YAML file.
