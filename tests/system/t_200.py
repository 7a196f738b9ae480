#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""200 containers on local VMs: each ends in the right state, with the right
code and a readable log; nothing is left.

Among them: failing ones, an impossible one, one cancelled while it runs whose
program ignores SIGTERM, one over its memory limit.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import (Cluster, check_once, isolate, once,  # noqa: E402
                     wait_until)

N = int(os.environ.get("CDC_N", "196"))


def submit_all(c):
    """{request uuid: (kind, wanted code)}"""
    want = {}
    for i in range(N):
        code = 3 if i % 10 == 7 else 0
        r = c.submit(once(c, "echo out %d; echo err %d >&2; sleep 0.%d; "
                             "(exit %d)" % (i, i, 5 + i % 5, code)),
                     vcpus=1 + i % 4, priority=1 + i % 20)
        want[r["uuid"]] = ("plain", code, i)
    r = c.submit(["true"], vcpus=64)
    want[r["uuid"]] = ("impossible", None, 0)
    r = c.submit(once(c, "trap '' TERM; echo ready; "
                         "while :; do sleep 1; done"), priority=900)
    want[r["uuid"]] = ("cancelled", None, 0)
    r = c.submit(["python3", "-c",
                  "b=bytearray(300<<20); b[::4096]=b'x'*len(b[::4096])"],
                 ram=64 << 20)
    want[r["uuid"]] = ("memory", 137, 0)
    r = c.submit(["/no/such/program"])
    want[r["uuid"]] = ("notfound", 127, 0)
    return want


def cancel_running(c, want):
    uuid = next(u for u, w in want.items() if w[0] == "cancelled")
    wait_until("the stubborn container runs",
               lambda: "ready" in (c.log_file(uuid, "stdout.txt") or ""), 60)
    c.ctl("cancel", uuid)


def check(c, uuid, want, got):
    kind, code, i = want
    state, status = got["state"], got["runtime_status"]
    what = "%s %s: %s" % (kind, uuid, {k: got[k] for k in (
        "state", "exit_code", "runtime_status")})
    if kind in ("plain", "memory", "notfound"):
        assert state == "Complete" and got["exit_code"] == code, what
    if kind == "plain":
        assert c.log_file(uuid, "stdout.txt") == "out %d\n" % i, what
        assert c.log_file(uuid, "stderr.txt") == "err %d\n" % i, what
    if kind == "memory":
        assert "memory" in status.get("warning", ""), what
    if kind == "impossible":
        assert state == "Cancelled" and "VCPU" in status["error"], what
    if kind == "cancelled":
        assert state == "Cancelled", what
        assert c.log_file(uuid, "stdout.txt") == "ready\n", what


def main():
    isolate()
    with Cluster() as c:
        c.start()
        begun = time.monotonic()
        want = submit_all(c)
        cancel_running(c, want)
        got = c.wait_final(list(want), timeout=300)
        took = time.monotonic() - begun
        for uuid in want:
            check(c, uuid, want[uuid], got[uuid])
        ran = check_once(c)
        assert ran == N + 1, ran
        c.wait_no_instances()
        c.stop()
        c.check_nothing_left()
        c.passed()
    print("%d containers in %.1f s" % (len(want), took))


main()
