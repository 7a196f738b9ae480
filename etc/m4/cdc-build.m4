# SPDX-License-Identifier: Apache-2.0
#
# Macros of our own for configure.ac.

# CDC_CHECK_CFLAGS(VARIABLE, FLAG...)
# -----------------------------------
# Append to VARIABLE each FLAG that the compiler takes without a complaint.
# clang only warns about a warning option it does not know, hence -Werror;
# gcc says nothing about an unknown -Wno-x, hence the test of the plain -Wx.
AC_DEFUN([CDC_CHECK_CFLAGS],
[m4_foreach_w([cdc_flag], [$2],
  [AC_MSG_CHECKING([whether $CC takes cdc_flag])
   cdc_save_CFLAGS=$CFLAGS
   CFLAGS="$CFLAGS -Werror m4_bpatsubst(cdc_flag, [^-Wno-], [-W])"
   AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
     [AC_MSG_RESULT([yes])
      $1="$$1 cdc_flag"],
     [AC_MSG_RESULT([no])])
   CFLAGS=$cdc_save_CFLAGS
])])

# CDC_MISSING(WHAT, DEBIAN-PACKAGE)
# ---------------------------------
# Note one missing dependency. Everything that is missing is named in one
# message by CDC_REPORT_MISSING: nobody likes to learn of them one by one.
AC_DEFUN([CDC_MISSING],
[cdc_missing="$cdc_missing
  $1 (Debian: apt-get install $2)"])

# CDC_REQUIRE_PKG(VARIABLE-PREFIX, MODULES, DEBIAN-PACKAGE)
# ---------------------------------------------------------
AC_DEFUN([CDC_REQUIRE_PKG],
[PKG_CHECK_MODULES([$1], [$2], [], [CDC_MISSING([$2], [$3])])])

# CDC_REPORT_MISSING
# ------------------
AC_DEFUN([CDC_REPORT_MISSING],
[AS_IF([test -n "$cdc_missing"],
  [AC_MSG_ERROR([these are needed and were not found:$cdc_missing])])])
