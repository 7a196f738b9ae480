# SPDX-License-Identifier: Apache-2.0
#
# lint: rules of the house that a program can check.

LINT_TESTS += \
	tests/lint/cleanup.sh \
	tests/lint/docs.sh \
	tests/lint/exports.sh \
	tests/lint/headers.sh \
	tests/lint/layers.sh \
	tests/lint/lengths.sh \
	tests/lint/selftest.sh \
	tests/lint/words.sh

LONG_TESTS += tests/lint/sanitize.sh
EXTRA_DIST += tests/lint/lsan.supp tests/lint/tsan.supp
CLEAN_DIRS += sanitize
