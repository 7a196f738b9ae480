#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of the dispatcher, each beside a floor measured in the same run.

The floor is tests/bench/bareloop: the same payloads, runner, API server and
local VMs over the same driver and SSH code, with no decision between them.
Each round runs both, one after the other; a ratio is taken within a round,
and what is printed is the median over the rounds. Goals, not gates: only
something that fails (not something slow) ends this with an error.

  start    container created -> Running acknowledged (floor: lock -> Running)
           on idle warm instances, one at a time and SLOTS at once
  next     a container's finished_at -> started_at of the next on its slot
  drain    N containers of 0.1 s on SLOTS warm one-slot instances: wall time,
           and the processor time of the programs
  memory   the dispatcher's VmRSS with SLOTS and with MANY instances

Warm means: a connection with at least one command done. Times are those of
the API server's records (durability full: WAL, synchronous=FULL, group
commit); everything runs on this one machine, the payloads too.

BENCH_ROUNDS, BENCH_CONTAINERS, BENCH_SLOTS, BENCH_WORKERS change the sizes.
"""
import datetime
import http.client
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "system"))
from cluster import (API_PORT, Cluster, build, isolate,  # noqa: E402
                     wait_until)

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
DRAIN = int(os.environ.get("BENCH_CONTAINERS", "1000"))
SLOTS = int(os.environ.get("BENCH_SLOTS", "20"))
MANY = int(os.environ.get("BENCH_WORKERS", "200"))
ALONE = 10      # containers that start one at a time
BURSTS = 5      # times SLOTS containers at once
TICKS = os.sysconf("SC_CLK_TCK")

TYPES = {"one": {"VCPUs": 1, "RAM": "256MiB", "IncludedScratch": "1GiB",
                 "Price": 0.01}}
# The product's defaults, but for what keeps the instances.
CLOUD = {"TimeoutIdle": "1h", "SyncInterval": "1m", "TimeoutShutdown": "10s",
         "PollInterval": "10s", "AbsentGrace": "2m", "TimeoutBooting": "10m"}
PAYLOAD = ["sleep", "0.1"]


# --- a cluster, and containers in it ---------------------------------------------

class Bench(Cluster):
    def __init__(self, instances, ram="256MiB"):
        types = {"one": dict(TYPES["one"], RAM=ram)}
        super().__init__(types=types, cloud=dict(CLOUD,
                                                 MaxInstances=instances))
        with open(self.config) as f:
            config = json.load(f)
        config["Clusters"]["zzzzz"]["SystemLogs"]["LogLevel"] = "info"
        with open(self.config, "w") as f:
            json.dump(config, f)

    def submit_many(self, n, command=None):
        """n requests over one connection; their uuids."""
        conn = http.client.HTTPConnection("127.0.0.1", API_PORT, timeout=60)
        body = json.dumps({"container_request": self.request(
            command or PAYLOAD)})
        headers = {"Authorization": "Bearer " + self.token,
                   "Content-Type": "application/json"}
        uuids = []
        for _ in range(n):
            conn.request("POST", "/arvados/v1/container_requests", body,
                         headers)
            reply = conn.getresponse()
            text = reply.read()
            assert reply.status == 200, text
            uuids.append(json.loads(text)["container_uuid"])
        conn.close()
        return uuids

    def open_containers(self):
        page = self.api("GET", "containers?limit=0&count=exact&filters="
                        "%5B%5B%22state%22,%22in%22,%5B%22Queued%22,"
                        "%22Locked%22,%22Running%22%5D%5D%5D")
        return page["items_available"]

    def wait_done(self, pause):
        wait_until("all containers have ended",
                   lambda: self.open_containers() == 0, 300, pause)

    def records(self):
        """{uuid: record} of all containers, times in seconds."""
        found = {}
        while True:
            page = self.api("GET", "containers?limit=1000&offset=%d&count=none"
                            "&order=uuid&select=%%5B%%22uuid%%22,"
                            "%%22created_at%%22,%%22started_at%%22,"
                            "%%22finished_at%%22,%%22state%%22,"
                            "%%22exit_code%%22%%5D" % len(found))["items"]
            for c in page:
                assert c["state"] == "Complete" and c["exit_code"] == 0, c
                for key in ("created_at", "started_at", "finished_at"):
                    c[key] = seconds_of(c[key])
                found[c["uuid"]] = c
            if not page:
                return found

    def hold_back(self, n):
        """n containers that end when the file named is there."""
        flag = os.path.join(self.shared, "go-%d" % time.monotonic_ns())
        self.submit_many(n, ["sh", "-c", "while [ ! -e %s ]; do sleep 0.2; "
                             "done" % flag])
        return flag

    def warm(self, n):
        """n instances in service that have run something and are idle."""
        flag = self.hold_back(n)
        wait_until("%d instances run" % n, lambda: self.in_state("running")
                   + self.in_state("idle") == n, 240, 0.3)
        open(flag, "w").close()
        wait_until("%d instances are idle" % n,
                   lambda: self.in_state("idle") == n, 60, 0.2)

    def in_state(self, state):
        return sum(1 for i in self.instances() if i["worker_state"] == state)

    def set_all(self, behaviour):
        for i in self.instances():
            self.manage("POST", "instances/%s?instance_id=%s"
                        % (behaviour, i["instance"]))

    def cpu(self, name):
        """Seconds of processor time so far."""
        return cpu_of(self.procs[name].pid)

    def rss(self, name):
        with open("/proc/%d/status" % self.procs[name].pid) as f:
            return next(int(line.split()[1]) for line in f
                        if line.startswith("VmRSS"))

    def where(self):
        """{container: instance}, by the dispatcher's log."""
        return {e["ContainerUUID"]: e["Instance"] for e in self.log_events()
                if e.get("msg") == "crunch-run process started"}

    def destroy_all(self):
        for i in self.instances():
            self.manage("POST", "instances/kill?instance_id=" + i["instance"])
        self.wait_no_instances(120)


def seconds_of(text):
    whole, fraction = text.rstrip("Z").split(".")
    t = datetime.datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(
        tzinfo=datetime.timezone.utc)
    return t.timestamp() + float("0." + fraction)


def cpu_of(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p / 100))]


def turnarounds(containers, where):
    """From the end of each to the start of the next on its slot."""
    slots = {}
    for c in containers:
        slots.setdefault(where[c["uuid"]], []).append(c)
    gaps = []
    for slot in slots.values():
        slot.sort(key=lambda c: c["started_at"])
        gaps += [b["started_at"] - a["finished_at"]
                 for a, b in zip(slot, slot[1:])]
    return gaps


def figures(alone, burst, drain, where, drain_begun):
    """alone, burst: latencies; drain: records."""
    return {
        "alone_p50": 1000 * statistics.median(alone),
        "alone_max": 1000 * max(alone),
        "burst_p50": 1000 * statistics.median(burst),
        "burst_p99": 1000 * percentile(burst, 99),
        "next_p50": 1000 * statistics.median(turnarounds(drain, where)),
        "wall": max(c["finished_at"] for c in drain) - drain_begun,
    }


# --- the floor -------------------------------------------------------------------

def run_bareloop(c):
    """[(phase, start)], {uuid: line}, CPU seconds of the last phase."""
    loop = subprocess.Popen(
        [build("tests/bench/bareloop"), c.config, str(SLOTS), "1:%d" % ALONE,
         "%d:%d" % (SLOTS, SLOTS * BURSTS), "0:%d" % DRAIN],
        stdout=subprocess.PIPE, text=True)
    begun, lines, cpu, ended = [], {}, {}, 0
    for text in loop.stdout:
        line = json.loads(text)
        if "phase" in line:
            begun.append(line["us"] / 1e6)
            if len(begun) == 3:
                cpu = {"loop": cpu_of(loop.pid), "api": c.cpu("api")}
        elif "uuid" in line:
            lines[line["uuid"]] = line
            ended += 1
            if ended == ALONE + SLOTS * BURSTS + DRAIN:
                cpu = {"loop": cpu_of(loop.pid) - cpu["loop"],
                       "api": c.cpu("api") - cpu["api"]}
    assert loop.wait(60) == 0, "the bare loop failed"
    return begun, lines, cpu


def floor():
    with Bench(SLOTS) as c:
        c.start_api()
        c.submit_many(ALONE + SLOTS * BURSTS + DRAIN)
        begun, lines, cpu = run_bareloop(c)
        records = c.records()
        c.stop()
        c.passed()
    phases = [[], [], []]
    for uuid, line in lines.items():
        at = sum(1 for t in begun if line["lock_us"] / 1e6 >= t) - 1
        phases[at].append(uuid)

    def latency(uuids):
        return [records[u]["started_at"] - lines[u]["lock_us"] / 1e6
                for u in uuids]
    f = figures(latency(phases[0]), latency(phases[1]),
                [records[u] for u in phases[2]],
                {u: lines[u]["slot"] for u in lines}, begun[2])
    f.update(cpu=cpu["loop"], cpu_api=cpu["api"])
    return f


# --- the dispatcher --------------------------------------------------------------

def start_alone(c):
    uuids = []
    for _ in range(ALONE):
        uuids += c.submit_many(1)
        c.wait_done(0.1)
    return uuids


def start_bursts(c):
    uuids = []
    for _ in range(BURSTS):
        uuids += c.submit_many(SLOTS)
        c.wait_done(0.2)
    return uuids


def drain(c):
    """All queued first, while no instance takes any."""
    c.set_all("hold")
    uuids = c.submit_many(DRAIN)
    time.sleep(1)
    cpu = {n: c.cpu(n) for n in ("dispatch", "api")}
    begun = time.time()
    c.set_all("run")
    c.wait_done(0.25)
    return uuids, begun, {n: c.cpu(n) - cpu[n] for n in cpu}


def dispatcher():
    with Bench(SLOTS) as c:
        c.start()
        c.warm(SLOTS)
        alone = start_alone(c)
        bursts = start_bursts(c)
        drained, begun, cpu = drain(c)
        rss = c.rss("dispatch")
        records = c.records()
        where = c.where()
        c.destroy_all()
        c.stop()
        c.check_nothing_left()
        c.passed()

    def latency(uuids):
        return [records[u]["started_at"] - records[u]["created_at"]
                for u in uuids]
    f = figures(latency(alone), latency(bursts),
                [records[u] for u in drained], where, begun)
    f.update(cpu=cpu["dispatch"], cpu_api=cpu["api"], rss=rss)
    return f


def memory():
    """VmRSS with SLOTS and with MANY idle instances, in one dispatcher."""
    with Bench(MANY, ram="64MiB") as c:
        c.start()
        c.warm(SLOTS)
        few = c.rss("dispatch")
        c.warm(MANY)
        time.sleep(1)
        many = c.rss("dispatch")
        c.destroy_all()
        c.stop()
        c.passed()
    return few, many


# --- the report ------------------------------------------------------------------

def row(name, unit, got, base, key, goal, base_key=None, aim=""):
    """One line: medians of both, and the median of the ratios."""
    base_key = base_key or key
    ratio = statistics.median(g[key] / b[base_key] for g, b in zip(got, base))
    print("  %-34s %8.1f %-3s %8.1f %-3s %6.2f  %-6s %s" % (
        name, statistics.median(g[key] for g in got), unit,
        statistics.median(b[key] for b in base), unit, ratio,
        "<= %g" % goal if goal else "", aim))


def report(got, base, rss):
    print("dispatcher beside the bare loop: medians of %d rounds, ratios "
          "within a round;\n%d warm one-slot local VMs, payload `%s`; API "
          "server durability full" % (ROUNDS, SLOTS, " ".join(PAYLOAD)))
    print("  %-34s %12s %12s %6s  %s" % ("", "dispatcher", "floor", "ratio",
                                         "goal"))
    row("start, one at a time, p50", "ms", got, base, "alone_p50", 2,
        aim="aim 20 ms")
    row("start, one at a time, max / p50", "ms", got, base, "alone_max", 5,
        "alone_p50", "aim 100 ms")
    row("start, %d at once, p50" % SLOTS, "ms", got, base, "burst_p50", 2)
    row("start, %d at once, p99 / p50" % SLOTS, "ms", got, base, "burst_p99",
        5, "burst_p50")
    row("end -> next start on the slot, p50", "ms", got, base, "next_p50", 3,
        aim="aim 50 ms")
    row("%d of 0.1 s, wall" % DRAIN, "s", got, base, "wall", 1.5)
    print("  rows a / b: a beside the floor's a, the ratio is to its b")
    scale = 1000 / DRAIN
    print("  processor time per 1,000 containers: dispatcher %.2f s (goal <= "
          "1), API server %.2f s;\n    in the floor: loop %.2f s, API server "
          "%.2f s" % tuple(
              scale * statistics.median(r[k] for r in rs)
              for rs, k in ((got, "cpu"), (got, "cpu_api"), (base, "cpu"),
                            (base, "cpu_api"))))
    print("  RSS after the drain, %d instances: %d kB (goal <= 32768)"
          % (SLOTS, statistics.median(g["rss"] for g in got)))
    if rss:
        print("  RSS idle: %d kB with %d instances, %d kB with %d: %.1f kB "
              "each (goal <= 40)" % (
                  rss[0], SLOTS, rss[1], MANY,
                  (rss[1] - rss[0]) / (MANY - SLOTS)))


def main():
    if os.geteuid() != 0:
        print("dispatcher: not measured, local VMs need root")
        return
    isolate()
    got, base = [], []
    for _ in range(ROUNDS):
        base.append(floor())
        got.append(dispatcher())
        if os.environ.get("BENCH_VERBOSE"):
            print(json.dumps({"floor": base[-1], "dispatcher": got[-1]}))
    report(got, base, memory() if MANY > SLOTS else None)


main()
