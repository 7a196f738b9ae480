#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An unprivileged user, where VMs cannot be made: one instance of plain
processes, login as the same user; log and capability say so; containers run
one after the other, and nothing is left."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402
from cluster import Cluster, build, isolate  # noqa: E402

UID = 64242
TYPES = {"only": {"VCPUs": 2, "RAM": "512MiB", "IncludedScratch": "1GiB",
                  "Price": 0.01}}


def add_user():
    """An account with a shell, in this mount namespace only."""
    path = "/run/cdc-test-passwd-%d" % os.getpid()
    with open("/etc/passwd") as old, open(path, "w") as new:
        new.write(old.read() + "cdctest:x:%d:%d::/tmp:/bin/sh\n" % (UID, UID))
    os.chmod(path, 0o644)
    subprocess.run(["mount", "--bind", path, "/etc/passwd"], check=True)
    os.unlink(path)


def open_build():
    """The build folder may lie where only root gets to, such as in /root."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/mnt"],
                   check=True)
    os.mkdir("/mnt/build")
    subprocess.run(["mount", "--bind", cluster.BUILD, "/mnt/build"],
                   check=True)
    cluster.BUILD = "/mnt/build"


def main():
    isolate()
    add_user()
    open_build()
    with Cluster(types=TYPES, user=UID) as c:
        probe = subprocess.run(
            [build("cdc-local-vm"), "--state", c.path("probe"), "probe"],
            input="{}", text=True, stdout=subprocess.PIPE, check=True,
            **c.as_user())
        assert json.loads(probe.stdout)["degraded"], probe.stdout
        c.start()
        uuids = [c.submit(["sh", "-c", "echo $((%d * 2)); exit %d" % (i, i)]
                          )["uuid"] for i in range(6)]
        got = c.wait_final(uuids)
        for i, u in enumerate(uuids):
            assert got[u]["state"] == "Complete", got[u]
            assert got[u]["exit_code"] == i
            assert c.log_file(u, "stdout.txt") == "%d\n" % (2 * i)
        assert len(c.instances()) <= 1, c.instances()
        assert any("degraded" in json.dumps(e) for e in c.log_events()), \
            "the log does not say that this is degraded"
        c.wait_no_instances()
        c.stop()
        assert not c.vm_dirs(), c.vm_dirs()
        assert not c.processes(), c.processes()
        c.passed()


main()
