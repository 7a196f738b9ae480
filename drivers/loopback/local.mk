# SPDX-License-Identifier: Apache-2.0
#
# loopback: the driver for VMs on this machine, over cdc-local-vm.
