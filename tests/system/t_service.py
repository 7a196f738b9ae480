#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dispatcher as a service: what the service manager hears, what SIGTERM
leaves alone, what a restart finds again, who may not start, what logs look
like."""
import json
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import (Cluster, build, check_once, isolate, once,  # noqa: E402
                     wait_until)


class Manager:
    """A service manager's end of the sd_notify protocol."""

    def __init__(self, path):
        self.path, self.heard = path, []
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(path)
        self.sock.setblocking(False)

    def listen(self):
        try:
            while True:
                self.heard += self.sock.recv(4096).decode().split("\n")
        except BlockingIOError:
            pass
        return self.heard

    def hears(self, text):
        wait_until("%s from the service" % text, lambda: any(
            text in line for line in self.listen()), 20)


def term_and_adopt(c):
    """SIGTERM leaves a running container alone; the next process adopts it."""
    m = Manager(c.path("notify"))
    env = {"NOTIFY_SOCKET": m.path, "WATCHDOG_USEC": "600000"}
    c.start_dispatch(env=env)
    m.hears("READY=1")
    m.hears("STATUS=dispatching")
    m.hears("WATCHDOG=1")
    uuids = [c.submit(once(c, "sleep 8"))["uuid"] for _ in range(3)]
    # A manager always listens: its socket holds a few messages only.
    wait_until("all run", lambda: m.listen() and all(
        c.container_of(u)["state"] == "Running" for u in uuids), 60)
    vms = {i["instance"] for i in c.instances()}
    m.listen()
    c.stop_one("dispatch")
    m.hears("STOPPING=1")
    assert len(c.vm_dirs()) == len(vms), "SIGTERM took instances along"
    c.start_dispatch()
    assert {i["instance"] for i in c.instances()} == vms, c.instances()
    for u, g in c.wait_final(uuids).items():
        assert g["state"] == "Complete" and g["exit_code"] == 0, g
        assert g["lock_count"] == 1 and g["attempt"] == 1, g
        assert c.get_request(u)["container_count"] == 1
    check_once(c)


def one_at_a_time(c):
    """A second dispatcher on the same state directory is refused."""
    p = subprocess.run([build("crunch-dispatch-cloud"), "-config", c.config,
                        "-trust-build-tree"], text=True, timeout=30,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.returncode == 1, p
    assert "in use by process" in p.stderr, p.stderr


def bad_configuration(c):
    def vms(z):
        return z["Containers"]["CloudVMs"]

    def refused(change, want, code=2):
        with open(c.config) as f:
            doc = json.load(f)
        vms(doc["Clusters"]["zzzzz"])["StateDirectory"] = c.path("state-2")
        change(doc["Clusters"]["zzzzz"])
        path = c.path("bad.yml")
        with open(path, "w") as f:
            json.dump(doc, f)
        os.chmod(path, 0o600)
        p = subprocess.run([build("crunch-dispatch-cloud"), "-config", path,
                            "-trust-build-tree"], text=True, timeout=30,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert p.returncode == code and want in p.stderr, (want, p)

    refused(lambda z: vms(z).update(PollInterval="soon"),
            "Containers.CloudVMs.PollInterval")
    refused(lambda z: vms(z).update(Driver="nonesuch"), "nonesuch")
    refused(lambda z: z["Containers"].update(
        DispatchPrivateKey="file:///nonexistent"), "DispatchPrivateKey", 2)
    refused(lambda z: z.update(SystemRootToken=""), "SystemRootToken")
    refused(lambda z: vms(z).update(StateDirectory="relative"),
            "StateDirectory")
    p = subprocess.run([build("crunch-dispatch-cloud"), "-bogus"], text=True,
                       stderr=subprocess.PIPE)
    assert p.returncode == 2 and "unknown option" in p.stderr
    p = subprocess.run([build("crunch-dispatch-cloud"), "-check-config",
                        "-config", c.config], text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.returncode == 0 and c.token not in p.stdout, p


def logs(c):
    """JSON lines with the fields of Arvados' dispatcher; no secret in any."""
    events = list(c.log_events())
    assert events and all({"time", "level", "msg", "PID"} <= set(e)
                          for e in events), events[:3]
    assert any("ContainerUUID" in e for e in events)
    assert any("Instance" in e for e in events)
    for name in ("dispatch", "api"):
        with open(c.path(name + ".log")) as f:
            text = f.read()
        assert c.token not in text and c.management not in text, name
    with open(c.path("key")) as f:
        assert f.read().split("\n")[1] not in text


def no_secrets_in_argv(c):
    uuid = c.submit(["sleep", "4"])["uuid"]
    wait_until("it runs",
               lambda: c.container_of(uuid)["state"] == "Running", 60)
    for line in c.processes():
        assert "v2/" not in line and c.token not in line, line
    c.ctl("cancel", uuid)
    c.wait_final([uuid])


def api_down(c):
    """The API server goes away for a while: health says so, then recovers."""
    c.stop_one("api")
    wait_until("health says so", lambda: c.health()["health"] == "ERROR", 60)
    assert c.health()["error"]
    time.sleep(1)
    c.start_api()
    wait_until("health recovers", c.dispatch_is_well, 60)


def text_format():
    with Cluster() as c:
        with open(c.config) as f:
            doc = json.load(f)
        doc["Clusters"]["zzzzz"]["SystemLogs"] = {"Format": "text",
                                                  "LogLevel": "info"}
        with open(c.config, "w") as f:
            json.dump(doc, f)
        c.start()
        c.stop()
        text = c.tail("dispatch", 100000)
        assert not text.startswith("{") and "INFO" in text.upper(), text
        assert "DEBUG" not in text.upper()
        c.passed()


def main():
    isolate()
    with Cluster() as c:
        c.start_api()
        for case in (term_and_adopt, one_at_a_time, bad_configuration,
                     no_secrets_in_argv, api_down, logs):
            case(c)
            print("%s: ok" % case.__name__, flush=True)
        c.wait_no_instances()
        c.stop()
        c.check_nothing_left()
        c.passed()
    text_format()
    print("text_format: ok")


main()
