#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What clouds and machines do to a dispatcher: a wrong empty list, a VM that
dies, SSH servers that hang for less and for more than TimeoutProbe, a start
command that wakes up after its container was released.

Nothing healthy is destroyed or cancelled; the rest goes on; a lost container
is released only by the release rule, so that no payload ever runs twice.

  t_faults.py [CASE ...]
"""
import os
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import (Cluster, build, check_once, isolate, once,  # noqa: E402
                     wait_until)

ONE = {"only": {"VCPUs": 1, "RAM": "512MiB", "IncludedScratch": "1GiB",
                "Price": 0.01}}


def vm_processes(vm):
    """(pid, command) of everything in a VM, by its control group."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cgroup" % pid) as f:
                if vm not in f.read():
                    continue
            with open("/proc/%s/comm" % pid) as f:
                yield int(pid), f.read().strip()
        except OSError:
            pass


def signal_sshd(vm, signum):
    n = 0
    for pid, comm in list(vm_processes(vm)):
        if comm.startswith("sshd"):
            os.kill(pid, signum)
            n += 1
    assert n, "no sshd in " + vm


def instance_of(c, uuid):
    """The instance on which a request's container runs."""
    container = c.get_request(uuid)["container_uuid"]

    def found():
        for i in c.instances():
            if container in (i["running_container_uuids"] or []):
                return i["instance"]
        return None
    return wait_until("the container is on an instance", found, 60)


def wait_running(c, uuids):
    wait_until("all run", lambda: all(
        c.container_of(u)["state"] == "Running" for u in uuids), 60)


def all_fine(c, uuids, timeout=120):
    for u, g in c.wait_final(uuids, timeout).items():
        assert g["state"] == "Complete" and g["exit_code"] == 0, \
            (u, g["state"], g["exit_code"], g["runtime_status"])


def untouched(c, uuids):
    """They completed at the first attempt of the first container."""
    for u in uuids:
        r = c.get_request(u)
        assert r["container_count"] == 1, (u, r["container_count"])
        assert c.container_of(u)["lock_count"] == 1, u


def end(c):
    check_once(c)
    c.wait_no_instances()
    c.stop()
    c.check_nothing_left()
    c.passed()


def empty_list():
    """One list that is empty and calls itself complete."""
    with Cluster(types=ONE, cloud={"SyncInterval": "300ms"}) as c:
        c.start_api()
        c.start_dispatch(["LIST_EMPTY:6:fail", "LIST_EMPTY:12:fail"])
        uuids = [c.submit(once(c, "sleep 8"))["uuid"] for _ in range(4)]
        wait_running(c, uuids)
        vms = {i["instance"] for i in c.instances()}
        time.sleep(5)
        assert {i["instance"] for i in c.instances()} == vms
        all_fine(c, uuids)
        untouched(c, uuids)
        end(c)


def vm_dies():
    """A VM is killed under a running container."""
    with Cluster(types=ONE) as c:
        c.start()
        victim = c.submit(once(c, "sleep 6"))["uuid"]
        rest = [c.submit(once(c, "sleep 6"))["uuid"] for _ in range(3)]
        wait_running(c, [victim] + rest)
        first = c.get_request(victim)["container_uuid"]
        vm = instance_of(c, victim)
        for pid, _ in list(vm_processes(vm)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        all_fine(c, [victim] + rest)
        untouched(c, rest)
        r = c.get_request(victim)
        assert r["container_count"] == 2, r["container_count"]
        dead = c.api("GET", "containers/" + first)
        assert dead["state"] == "Cancelled", dead["state"]
        os.unlink(os.path.join(c.shared, first + ".log"))
        end(c)


def sshd_hangs_briefly():
    """Listener and sessions stopped for less than TimeoutProbe."""
    with Cluster(types=ONE, cloud={"TimeoutProbe": "30s",
                                   "TimeoutCommand": "3s",
                                   "ProbeInterval": "1s"}) as c:
        c.start()
        uuids = [c.submit(once(c, "sleep 12"))["uuid"] for _ in range(3)]
        wait_running(c, uuids)
        vm = instance_of(c, uuids[0])
        vms = {i["instance"] for i in c.instances()}
        signal_sshd(vm, signal.SIGSTOP)
        time.sleep(7)
        signal_sshd(vm, signal.SIGCONT)
        assert {i["instance"] for i in c.instances()} == vms
        all_fine(c, uuids)
        untouched(c, uuids)
        end(c)


def sshd_hangs_long():
    """Stopped for more than TimeoutProbe: that VM goes, its container is
    tried again, and only that one."""
    with Cluster(types=ONE, cloud={"TimeoutProbe": "4s",
                                   "TimeoutCommand": "2s",
                                   "TimeoutConnect": "2s",
                                   "ProbeInterval": "1s"}) as c:
        c.start()
        victim = c.submit(once(c, "sleep 25"))["uuid"]
        rest = [c.submit(once(c, "sleep 25"))["uuid"] for _ in range(2)]
        wait_running(c, [victim] + rest)
        first = c.get_request(victim)["container_uuid"]
        vm = instance_of(c, victim)
        signal_sshd(vm, signal.SIGSTOP)
        wait_until("the silent VM is gone", lambda: vm not in
                   {i["instance"] for i in c.instances()}, 60)
        all_fine(c, [victim] + rest)
        untouched(c, rest)
        assert c.get_request(victim)["container_count"] == 2
        os.unlink(os.path.join(c.shared, first + ".log"))
        end(c)


WRAPPER = """#!/bin/sh
# Freezes the first start command until it is told to go on.
case " $* " in *" --detach "*)
    if mkdir %(shared)s/frozen 2>/dev/null; then
        while ! test -e %(shared)s/thaw; do sleep 0.1; done
        %(shared)s/runner "$@"
        touch %(shared)s/thawed
        exit 0
    fi;;
esac
exec %(shared)s/runner "$@"
"""


def frozen_start():
    """A start command that wakes up after its container was released."""
    with Cluster(types=ONE, cloud={"TimeoutCommand": "2s",
                                   "TimeoutProbe": "20s",
                                   "DeployRunnerBinary": None}) as c:
        shutil.copy(build("crunch-run"), os.path.join(c.shared, "runner"))
        wrapper = c.path("wrapper")
        with open(wrapper, "w") as f:
            f.write(WRAPPER % {"shared": c.shared})
        os.chmod(wrapper, 0o755)
        with open(c.config) as f:
            text = f.read()
        with open(c.config, "w") as f:
            f.write(text.replace('"DeployRunnerBinary": null',
                                 '"DeployRunnerBinary": "%s"' % wrapper))
        c.start()
        uuid = c.submit(once(c, "sleep 3"))["uuid"]
        wait_until("the start is frozen", lambda: os.path.isdir(
            os.path.join(c.shared, "frozen")), 60)
        # Released and started again elsewhere, while the first is frozen.
        wait_until("it runs under another attempt", lambda: c.container_of(
            uuid)["state"] in ("Running", "Complete"), 60)
        open(os.path.join(c.shared, "thaw"), "w").close()
        wait_until("the first start woke up", lambda: os.path.exists(
            os.path.join(c.shared, "thawed")) or not c.vm_dirs(), 60)
        all_fine(c, [uuid])
        end(c)


CASES = [empty_list, vm_dies, sshd_hangs_briefly, sshd_hangs_long,
         frozen_start]


def main():
    isolate()
    wanted = sys.argv[1:]
    for case in CASES:
        if not wanted or case.__name__ in wanted:
            begun = time.monotonic()
            case()
            print("%s: ok, %.1f s" % (case.__name__,
                                      time.monotonic() - begun), flush=True)


main()
