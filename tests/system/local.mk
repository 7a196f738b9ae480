# SPDX-License-Identifier: Apache-2.0
#
# system: the real programs together.
EXTRA_DIST += tests/system/cluster.py
SYSTEM_TESTS += tests/system/t_200.py tests/system/t_break.py \
	tests/system/t_ctl.py \
	tests/system/t_degraded.py tests/system/t_faults.py \
	tests/system/t_kill9.py tests/system/t_service.py \
	tests/system/t_settings.py
SYSTEM_TESTS += tests/system/localvm.sh tests/system/t_driver.py
LONG_TESTS += tests/system/localvm_v2.sh

SYSTEM_TESTS += tests/system/t_runner.py
EXTRA_DIST += tests/system/runner_node.py tests/system/runner_breaks.py
