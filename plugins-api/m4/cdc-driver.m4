# cdc-driver.m4 - build cloud drivers for crunch-dispatch-cloud
# serial 1
#
# SPDX-License-Identifier: Apache-2.0

# CDC_CHECK_DRIVER_API([MINOR])
# -----------------------------
# Find the installed driver ABI and check that it has at least this minor
# version (of its major). Sets, for use in Makefile.am:
#
#   CDC_DRIVER_CFLAGS   where the headers are
#   CDC_DRIVER_LDFLAGS  how a driver is linked (for libtool)
#   driverdir           where the dispatcher looks for drivers
#   CDC_DRIVER_CHECK    the program that tests a driver
#
# Needs pkg-config; call LT_INIT before. Only what is named here is promised
# to stay.
# "CDC_DRIVER" below must not be the name of a macro: it would expand.
AC_DEFUN([CDC_CHECK_DRIVER_API],
[AC_REQUIRE([PKG_PROG_PKG_CONFIG])
PKG_CHECK_MODULES([CDC_DRIVER], [cdc-driver])
PKG_CHECK_VAR([driverdir], [cdc-driver], [driverdir])
PKG_CHECK_VAR([CDC_DRIVER_LDFLAGS], [cdc-driver], [driver_ldflags])
PKG_CHECK_VAR([CDC_DRIVER_CHECK], [cdc-driver], [checktool])
PKG_CHECK_VAR([_cdc_abi_minor], [cdc-driver], [abi_minor])
m4_ifval([$1],
[AC_MSG_CHECKING([whether the driver ABI has minor version $1])
AS_IF([test "$_cdc_abi_minor" -ge "$1"],
  [AC_MSG_RESULT([yes])],
  [AC_MSG_RESULT([no, $_cdc_abi_minor])
   AC_MSG_ERROR([newer headers of crunch-dispatch-cloud are needed])])])
])
