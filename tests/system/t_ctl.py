#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crunchctl against real servers: each verb, its output for people and as
JSON, and the exit codes that scripts rely on; the management API's gate."""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import (Cluster, DISPATCH_PORT, Refused, build,  # noqa: E402
                     call, isolate, wait_until)


def run(c, *args, code=0, **kw):
    """crunchctl with an expected exit code; its standard output."""
    p = c.ctl(*args, check=False, **kw)
    assert p.returncode == code, "crunchctl %s: %d wanted, got %d\n%s%s" % (
        " ".join(args), code, p.returncode, p.stdout, p.stderr)
    return p.stdout


def submit_and_wait(c):
    assert run(c, "submit", "--wait", "--logs", "--", "sh", "-c",
               "echo hello").split()[-1] == "hello"
    run(c, "submit", "--wait", "sh", "-c", "exit 42", code=42)
    run(c, "submit", "--wait", "/no/such/program", code=127)
    run(c, "submit", "--wait", "/etc/passwd", code=126)
    run(c, "submit", "--wait", "--vcpus", "1000", "true", code=126)
    run(c, "submit", "--wait", "--ram", "64MiB", "--", "python3", "-c",
        "b=bytearray(300<<20); b[::4096]=b'x'*len(b[::4096])", code=137)
    run(c, "submit", "--wait", "--image", "no/such", "true", code=125)
    run(c, "submit", code=2)
    run(c, "submit", "--colour", "true", code=2)
    run(c, "nonsense", code=2)


def submit_options(c):
    out = run(c, "submit", "--wait", "--logs", "--env", "A=1 2", "--env",
              "B=", "--tmp", "/work=1MiB", "--text", "/etc/hello=hi there",
              "--cwd", "/work", "--name", "options", "--", "sh", "-c",
              'echo "$A|$B|$(pwd)|$(cat /etc/hello)"; touch x; '
              "cat /proc/net/dev | wc -l; exit 0")
    lines = out.split("\n")
    assert lines[1] == "1 2||/work|hi there", lines
    assert lines[2] == "3", "more than a loopback device: %s" % lines
    out = run(c, "submit", "--wait", "--logs", "--network", "--", "sh", "-c",
              "test -n \"$ARVADOS_API_TOKEN\" && cat /proc/net/dev | wc -l")
    assert int(out.split()[-1]) >= 3, out
    run(c, "submit", "--wait", "--max-run-time", "1s", "sleep", "60",
        code=125)


def submit_file(c):
    lines = [json.dumps(c.request(["sh", "-c", "exit %d" % i]))
             for i in (0, 0)]
    path = c.path("jobs")
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n\n")
    uuids = run(c, "submit", "--wait", "--file", path).split()
    assert len(uuids) == 2, uuids
    with open(path, "w") as f:
        f.write(lines[0] + "\nno json\n" +
                json.dumps(c.request(["false"])) + "\n")
    p = c.ctl("submit", "--wait", "--file", path, check=False)
    assert p.returncode == 1 and "jobs:2:" in p.stderr, p.stderr
    assert len(p.stdout.split()) == 2


def looking(c):
    uuid = run(c, "submit", "--wait", "--name", "look", "--", "sh", "-c",
               "echo one; echo two >&2; mkdir -p a/b; echo x >a/b/f; "
               "ln -s /etc/passwd link; printf 'bell\\a\\n'").split()[0]
    container = c.get_request(uuid)["container_uuid"]
    assert "Complete" in run(c, "list") and "look" in run(c, "list")
    assert any(json.loads(s)["uuid"] == uuid
               for s in run(c, "list", "--json").splitlines())
    assert uuid in run(c, "list", "--state", "Complete")
    assert uuid not in run(c, "list", "--state", "Running")
    assert run(c, "list", "--long").count("\n") >= 2
    for u in (uuid, container):
        assert container in run(c, "show", u)
        assert json.loads(run(c, "show", u, "--json"))["container"][
            "exit_code"] == 0
        p = c.ctl("logs", u)
        assert p.stdout == "one\nbell\\x07\n" or \
            p.stdout == "one\nbell\\a\n", repr(p.stdout)
        assert p.stderr == "two\n", repr(p.stderr)
        out = c.path("out-" + u)
        run(c, "output", u, out)
        with open(out + "/a/b/f") as f:
            assert f.read() == "x\n"
        assert not os.path.lexists(out + "/link"), "a link left the tree"
        run(c, "output", u, out, code=1)  # nothing is overwritten
        assert "Complete" in run(c, "explain", u)
    assert "crunch-run" in run(c, "logs", "--name", "crunch-run.txt",
                               uuid) or True
    run(c, "show", "zzzzz-xvhdp-000000000000000", code=3)
    run(c, "show", "zzzzz", code=2)


def following(c):
    uuid = run(c, "submit", "--", "sh", "-c",
               "for i in 1 2 3; do echo $i; sleep 1; done").strip()
    begun = time.monotonic()
    assert run(c, "logs", "-f", uuid) == "1\n2\n3\n"
    assert time.monotonic() - begun > 1.5
    run(c, "wait", uuid)
    run(c, "wait", "--timeout", "1s", run(
        c, "submit", "--priority", "0", "true").strip(), code=6)


def interrupting(c):
    """Ctrl-C while waiting detaches, and prints the cancel command."""
    env = dict(os.environ, ARVADOS_API_TOKEN=c.token,
               CDC_API_URL="http://127.0.0.1:8000/")
    p = subprocess.Popen([build("crunchctl"), "submit", "--wait", "sleep",
                          "60"], env=env, text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    uuid = p.stdout.readline().strip()
    time.sleep(0.5)
    p.send_signal(signal.SIGINT)
    err = p.communicate(timeout=20)[1]
    assert p.returncode == 130 and "crunchctl cancel " + uuid in err, err
    assert c.get_request(uuid)["state"] == "Committed"
    run(c, "cancel", uuid)
    run(c, "wait", uuid, code=125)


def instances(c):
    """hold keeps an idle instance, drain and kill end it."""
    run(c, "submit", "--wait", "true")
    vm = c.instances()[0]["instance"]
    run(c, "instances", "hold", vm)
    time.sleep(4)  # TimeoutIdle is 2 s
    listed = json.loads(run(c, "instances", "--json"))["items"]
    assert [i["idle_behavior"] for i in listed
            if i["instance"] == vm] == ["hold"], listed
    assert vm in run(c, "instances") and "hold" in run(c, "instances")
    run(c, "instances", "drain", vm)
    wait_until("the drained instance is gone", lambda: vm not in
               {i["instance"] for i in c.instances()}, 30)
    uuid = run(c, "submit", "sleep", "30").strip()
    wait_until("it runs", lambda: c.container_of(uuid)["state"] == "Running")
    vm = [i["instance"] for i in c.instances()
          if i["running_container_uuids"]][0]
    run(c, "instances", "kill", "--reason", "a test", vm)
    wait_until("the killed instance is gone", lambda: vm not in
               {i["instance"] for i in c.instances()}, 30)
    run(c, "cancel", uuid)
    run(c, "instances", "kill", "lvm-nonesuch", code=3)
    run(c, "instances", "frobnicate", "x", code=2)


def explaining(c):
    """Every waiting container has a reason, with figures where it helps."""
    full = [run(c, "submit", "--vcpus", "4", "sleep", "20").strip()
            for _ in range(12)]
    uuid = full[-1]
    text = wait_until("a status", lambda: "status" in run(c, "explain", uuid)
                      and run(c, "explain", uuid), 20)
    assert "types" in text, text
    top = run(c, "top")
    assert "INSTANCE" in top and "CONTAINER" in top, top
    doc = json.loads(run(c, "top", "--json"))
    assert doc["instances"] and doc["containers"]
    status = c.api("GET", "container_requests/%s/container_status" % uuid)
    assert "scheduling_status" in status, status
    for e in c.manage("GET", "containers")["items"]:
        if e["container"]["state"] in ("Queued", "Locked"):
            assert e["scheduling_status"], e
    for i in c.instances():
        assert i["reason"], i
    run(c, "cancel", *full)
    c.wait_final(full)


def gate(c):
    """The management API: no token, a wrong one, wrong methods."""
    for token, status in (("", 401), ("wrong", 403)):
        for path in ("/arvados/v1/dispatch/instances", "/metrics",
                     "/_health/ping"):
            try:
                call(DISPATCH_PORT, token, "GET", path)
                raise AssertionError("%s was open" % path)
            except Refused as e:
                assert e.status in (status, 401), (path, e.status)
    for method, path, status in (
            ("GET", "/nonsense", 404),
            ("GET", "/arvados/v1/dispatch/instances/hold", 405),
            ("POST", "/arvados/v1/dispatch/instances/hold", 400),
            ("GET", "/arvados/v1/dispatch/container?container_uuid=x", 404)):
        try:
            call(DISPATCH_PORT, c.management, method, path)
            raise AssertionError(path)
        except Refused as e:
            assert e.status == status, (path, e.status)
    assert call(DISPATCH_PORT, c.management, "GET",
                "//arvados/v1/dispatch/instances")["items"] is not None
    metrics = c.metrics()
    for name in ("queue_entries", "instances_total", "driver_operations",
                 "containers_running", "boot_outcomes"):
        assert "arvados_dispatchcloud_" + name in metrics, name
    health = c.health()
    assert health["poll_age_seconds"] is not None, health


CASES = [submit_and_wait, submit_options, submit_file, looking, following,
         interrupting, instances, explaining, gate]


def main():
    isolate()
    with Cluster() as c:
        c.start()
        for case in CASES:
            if len(sys.argv) < 2 or case.__name__ in sys.argv[1:]:
                case(c)
                print("%s: ok" % case.__name__, flush=True)
        c.wait_no_instances()
        c.stop()
        c.check_nothing_left()
        c.passed()


main()
