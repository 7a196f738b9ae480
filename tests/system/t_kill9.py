#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""40 containers while dispatcher and API server are each killed with -9 three
times, at named fault points and at times that a seed chooses. Nothing is
lost, nothing runs twice, nothing is left.

  t_kill9.py [SEED]      CDC_SEED=N does the same; the seed is printed
"""
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster, check_once, isolate, once  # noqa: E402

N, KILLS = 40, 3
POINTS = {
    "dispatch": ["AFTER_INTENT", "AFTER_CREATE", "AFTER_ATTEMPT",
                 "AFTER_START_INTENT", "AFTER_START"],
    "api": ["BEFORE_FINAL", "AFTER_FINAL", "AFTER_LOCK",
            "AFTER_ATTEMPT_ROW"],
}
PATIENCE = 6.0  # a fault point not reached by then: kill by time instead


class Killer:
    """Starts a program again and again, each time armed to die."""

    def __init__(self, cluster, name, rng):
        self.c, self.name, self.rng = cluster, name, rng
        self.left, self.told = KILLS, []
        self.arm()

    def start(self, faults):
        if self.name == "api":
            # The dispatcher's first call may be the one that kills it.
            self.c.start_api(faults, wait=not faults)
        else:
            self.c.start_dispatch(faults, wait=False)
        self.since = time.monotonic()

    def arm(self):
        if not self.left:
            self.plan = None
            self.start(None)
        elif self.rng.random() < 0.7:
            point = self.rng.choice(POINTS[self.name])
            nth = self.rng.randint(1, 4)
            self.plan = "%s:%d" % (point, nth)
            self.deadline = PATIENCE
            self.start([self.plan + ":kill"])
        else:
            self.deadline = self.rng.uniform(0.3, 3.0)
            self.plan = "after %.2f s" % self.deadline
            self.start(None)

    def tick(self):
        """Restart it if it has died; kill it if its time has come."""
        p = self.c.procs[self.name]
        code = p.poll()
        if code is None:
            if self.plan and time.monotonic() - self.since > self.deadline:
                self.c.kill(self.name)
            return
        assert code == -signal.SIGKILL, "%s ended with %d: %s" % (
            self.name, code, self.c.tail(self.name))
        assert self.plan, "%s was killed once too often" % self.name
        self.left -= 1
        self.told.append(self.plan)
        self.arm()


def all_final(c, uuids):
    try:
        return all(c.get_request(u)["state"] == "Final" for u in uuids)
    except OSError:
        return False


def main():
    seed = int(sys.argv[1] if len(sys.argv) > 1 else
               os.environ.get("CDC_SEED", str(int(time.time()))))
    if not os.environ.get("CDC_ISOLATED"):
        print("seed", seed, flush=True)
        os.environ["CDC_SEED"] = str(seed)
    isolate()
    rng = random.Random(seed)
    with Cluster() as c:
        c.start_api()
        uuids = [c.submit(once(c, "sleep %.1f" % rng.uniform(0.2, 1.5)),
                          vcpus=rng.randint(1, 3))["uuid"]
                 for _ in range(N)]
        c.stop_one("api")
        killers = [Killer(c, "api", rng), Killer(c, "dispatch", rng)]
        end = time.monotonic() + 240
        while any(k.left for k in killers) or not all_final(c, uuids):
            for k in killers:
                k.tick()
            assert time.monotonic() < end, "not done in time; kills: %s" % [
                k.told for k in killers]
            time.sleep(0.05)
        got = c.wait_final(uuids)
        bad = {u: (g["state"], g["exit_code"], g["runtime_status"])
               for u, g in got.items()
               if g["state"] != "Complete" or g["exit_code"] != 0}
        assert not bad, bad
        check_once(c)
        c.wait_no_instances()
        c.stop()
        c.check_nothing_left()
        c.passed()
    for k in killers:
        print("%s killed: %s" % (k.name, ", ".join(k.told)))


main()
