#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crunch-run with real containers, against a strict server of our own.

Runs in namespaces of its own (cluster.isolate), as root; each case is a
function below, given a `Node`: a machine with a lock folder, a scratch folder,
control groups, an image folder and a shared folder, all private. At the end
nothing of any container may be left.

    t_runner.py [CASE...]      only these cases
"""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import cluster
import runner_breaks
from runner_node import (MIB, PLAIN_UID, RUNNER, SECRET, Groups, Node, Watch,
                         expect, marked, text, write)

CASES = list(runner_breaks.CASES)


def case(f):
    CASES.append(f)
    return f


# --- the command ---------------------------------------------------------------


@case
def exit_codes(n):
    expect(n.run(["true"]), "Complete", 0)
    expect(n.sh("exit 3"), "Complete", 3)
    expect(n.sh("kill -TERM $$"), "Complete", 143)
    expect(n.run(["no-such-command"]), "Complete", 127,
           error="command not found: no-such-command")
    expect(n.run(["/no/such/file"]), "Complete", 127, error="not found")
    expect(n.run(["/etc/passwd"]), "Complete", 126, error="cannot be started")
    expect(n.run(["/usr"]), "Complete", 126, error="cannot be started")
    expect(n.run(["true"], cwd="/nowhere"), "Complete", 126, error="/nowhere")
    # A text without #! is no program: no shell is used.
    done = n.run(["/out/script"], mounts={
        "/out": {"kind": "tmp"},
        "/out/script": {"kind": "text", "content": "exit 0\n"}})
    expect(done, "Complete", 126, error="cannot be started")


@case
def arguments_as_they_are(n):
    done = n.run(["printf", "<%s>", "a b", "$HOME", "*", "", "'\"\\"])
    expect(done, "Complete", 0)
    assert n.out(done) == "<a b><$HOME><*><><'\"\\>", n.out(done)


@case
def environment_and_folder(n):
    done = n.run(["/usr/bin/env"], environment={"B": "2=3", "A": "",
                                                "PATH": "/usr/bin"})
    assert sorted(n.out(done).split("\n")) == sorted(
        ["", "A=", "B=2=3", "PATH=/usr/bin",
         "CDC_CONTAINER_UUID=" + done["uuid"]]), n.out(done)
    assert n.out(n.run(["pwd"])) == "/\n"
    assert n.out(n.run(["pwd"], cwd="/out")) == "/out\n"
    assert n.out(n.run(["x"], environment={"PATH": "/out"}, mounts={
        "/out": {"kind": "tmp"}})) == ""


@case
def standard_streams(n):
    mounts = {"/out": {"kind": "tmp"}}
    done = n.run(["cat"])
    expect(done, "Complete", 0)
    assert n.out(done) == ""
    done = n.run(["cat"], mounts=dict(
        mounts, stdin={"kind": "text", "content": "h\u00e9\n"}))
    assert n.out(done) == "h\u00e9\n"
    done = n.run(["cat"], mounts=dict(
        mounts, stdin={"kind": "json", "content": {"a": [1, None]}}))
    assert json.loads(n.out(done)) == {"a": [1, None]}
    done = n.sh("echo out; echo err >&2; echo again >/dev/stdout")
    assert n.out(done) == "out\nagain\n", n.out(done)
    assert n.out(done, "stderr.txt") == "err\n"
    done = n.sh("echo out; echo err >&2", mounts=dict(
        mounts, stdout={"kind": "file", "path": "/out/d/log"},
        stderr={"kind": "file", "path": "/out/d/log"}))
    assert n.api.output(done["uuid"]) == {"d/log": b"out\nerr\n"}
    assert n.out(done) == ""


# --- the root ------------------------------------------------------------------


@case
def isolation(n):
    done = n.sh("id -u; id -g; id -G; "
                "grep -E '^(Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp)' "
                "/proc/self/status; echo --; ls /proc/self/fd; echo --; "
                "ls -A /tmp /run /root 2>/dev/null; echo --; "
                "touch /x /usr/x /etc/x /run/x 2>/dev/null; "
                "ls /x /usr/x /etc/x /run/x 2>/dev/null; echo --; "
                "touch /tmp/x /dev/shm/x && ls /tmp /dev/shm; echo --; "
                "ps -e -o pid= | wc -l; mount -t tmpfs x /tmp && echo bad; "
                "kill -9 1; echo > /proc/1/oom_score_adj; "
                "cat /proc/1/environ /proc/1/maps; "
                "chroot / true && echo bad; cat /etc/shadow")
    expect(done, "Complete", 1)
    ids, fds, shown, written, private, rest = n.out(done).split("--\n")
    assert ids.split("\n")[:3] == ["65534"] * 3, ids
    assert re.findall(r"Cap\w+:\s+(\w+)", ids) == ["0" * 16] * 4, ids
    assert "NoNewPrivs:\t1" in ids, ids
    assert fds.split() == ["0", "1", "2", "3"], fds  # 3 is ls's own
    assert "lock" in shown and "crunch" not in shown, shown
    assert written == "", written
    assert private.count("x\n") == 2, private
    assert "bad" not in rest and SECRET not in rest, rest


@case
def mounts(n):
    done = n.sh(
        "cat /usr/share/deep/er/a.json /etc/here.txt /etc/hostname /a/b/c; "
        "echo; ls /usr/share | wc -l; ls -l /etc/here.txt | cut -c1-10; "
        "touch /etc/here.txt; echo x > /a/new; echo y > /var/spool/cwl/z; "
        "test -d /usr/share/doc && test -e /etc/passwd && echo whole; "
        "touch /usr/lib/x/y/w /usr/z/w && echo writable",
        output_path="/var/spool/cwl", mounts={
            "/var/spool/cwl": {"kind": "tmp"},
            "/usr/share/deep/er/a.json": {"kind": "json",
                                          "content": {"k": "v"}},
            "/etc/here.txt": {"kind": "text", "content": " here "},
            "/etc/hostname": {"kind": "text", "content": "over "},
            "/a": {"kind": "tmp", "device_type": "disk"},
            "/a/b/c": {"kind": "text", "content": "deep"},
            # the second must not make the first read-only
            "/usr/lib/x/y": {"kind": "tmp"}, "/usr/z": {"kind": "tmp"}})
    expect(done, "Complete", 0)
    lines = n.out(done).split("\n")
    assert re.fullmatch(r'{ ?"k": ?"v" ?} here over deep', lines[0]), lines
    assert lines[2] == "-r--r--r--" and lines[3:5] == [
        "whole", "writable"], lines
    assert n.api.output(done["uuid"]) == {"z": b"y\n"}


@case
def mount_kinds_refused(n):
    for path, mount in (("/in", {"kind": "collection", "uuid": ""}),
                        ("/in", {"kind": "keep"}),
                        ("/in", {"kind": "tmp", "content": "x"}),
                        ("/mnt/shared/x", {"kind": "tmp"}),
                        # found out only in the new root
                        ("/etc/passwd", {"kind": "tmp"}),
                        ("/etc/passwd/x", {"kind": "text", "content": ""})):
        done = n.sh("echo started > /mnt/shared/refused", mounts={
            "/out": {"kind": "tmp"}, path: mount})
        expect(done, "Cancelled", error=path, no_retry=True)
        states = [s for _, s in n.api.containers[done["uuid"]].history]
        assert states == ["Cancelled"], states
    assert not os.path.exists(n.shared + "/refused")
    assert "broken" not in n.list()


@case
def capacity(n):
    tmp = {"kind": "tmp", "capacity": 4 * MIB, "device_type": "ram"}
    script = "head -c %d /dev/zero > /out/a && echo %s"
    done = n.sh(script % (2 * MIB, "fits") + ";" +
                script % (6 * MIB, "too much"), mounts={"/out": tmp})
    assert n.out(done) == "fits\n", n.out(done)
    assert "No space left" in n.out(done, "stderr.txt")
    assert len(n.api.output(done["uuid"])["a"]) == 4 * MIB
    done = n.sh("true", mounts={"/out": {"kind": "tmp",
                                         "capacity": 1 << 60}})
    expect(done, "Cancelled", error="free")


def is_static():
    """A sanitizer build is not; it cannot run in a bare root."""
    linked = subprocess.run(["readelf", "-d", RUNNER], text=True,
                            stdout=subprocess.PIPE).stdout
    if "NEEDED" in linked:
        assert "asan" in linked or "ubsan" in linked, linked
        print("    (instrumented: not checked)")
    return "NEEDED" not in linked


@case
def images(n):
    if not is_static():
        return
    root = os.path.join(n.images, "bare")
    os.makedirs(root + "/bin")
    shutil.copy(RUNNER, root + "/bin/prog")
    os.symlink("bin", root + "/sbin")
    os.symlink("/", root + "/var")  # a trap for mount points
    write(root + "/bin/text", b"in the image\n")
    done = n.run(["prog", "--version"], container_image="bare",
                 mounts={"/var/x": {"kind": "tmp"}, "/d": {"kind": "text",
                                                           "content": "x"}},
                 output_path="/var/x")
    expect(done, "Complete", 0)
    assert n.out(done).startswith("crunch-run "), n.out(done)
    assert sorted(os.listdir(root)) == ["bin", "sbin", "var"]
    done = n.run(["sh"], container_image="bare")
    expect(done, "Complete", 127, error="not found")
    done = n.run(["true"], container_image="absent")
    expect(done, "Cancelled", error="absent")
    done = n.run(["true"], container_image="../lock")
    expect(done, "Cancelled", error="container_image", no_retry=True)
    shutil.rmtree(root)


@case
def images_stay_as_they_are(n):
    if not is_static():
        return
    root = os.path.join(n.images, "small")
    sh = shutil.which("sh")
    for f in [sh] + re.findall(r"/\S+", subprocess.check_output(
            ["ldd", sh], text=True)):
        os.makedirs(root + os.path.dirname(f), exist_ok=True)
        shutil.copy(f, root + f)
    for d in ("open", "open/in", "var/tmp"):
        os.makedirs(os.path.join(root, d))
        os.chmod(os.path.join(root, d), 0o777)
    write(root + "/open/file", b"mine\n", 0o666)

    def content():
        return sorted((d, sorted(ds), sorted(fs))
                      for d, ds, fs in os.walk(root))

    before = content()
    done = n.run([sh, "-c", "echo > /open/new; echo > /open/in/new; "
                  "echo > /open/file; echo > /open/mount/point/x; "
                  "echo > /var/tmp/x && echo mine; read v < /open/file; echo $v"],
                 container_image="small", mounts={
                     "/out": {"kind": "tmp"},
                     "/open/mount/point": {"kind": "tmp"},
                     "/var/lib/x": {"kind": "text", "content": "x"}})
    assert n.out(done) == "mine\nmine\n", n.out(done)
    refused = re.findall(r"create (\S+): Read-only",
                         n.out(done, "stderr.txt"))
    assert refused == ["/open/new", "/open/in/new", "/open/file"], refused
    assert content() == before
    assert text(root + "/open/file") == "mine\n"
    shutil.rmtree(root)


@case
def shared_folder(n):
    done = n.sh("echo $CDC_CONTAINER_UUID > /mnt/shared/f; cat /mnt/shared/f")
    expect(done, "Complete", 0)
    assert text(n.shared + "/f") == n.out(done) == done["uuid"] + "\n"


# --- limits --------------------------------------------------------------------

HOG = "perl -e '$x = \"a\" x (400 << 20); print length $x'"


@case
def memory_limit_of_the_main_program(n):
    limits = {"ram": 64 * MIB, "vcpus": 1}
    done = n.run(["perl", "-e", "$x = 'a' x (400 << 20)"],
                 runtime_constraints=limits)
    expect(done, "Complete", 137, warning="main program was killed")
    assert "67108864" in done["runtime_status"]["warning"]


@case
def memory_limit_of_a_child(n):
    done = n.sh(HOG + "; echo $?; exit 0",
                runtime_constraints={"ram": 64 * MIB})
    expect(done, "Complete", 0, warning="a process of the container")
    assert n.out(done) == "137\n", n.out(done)


@case
def usage_is_reported(n):
    done = n.sh("perl -e '$x = \"a\" x (40 << 20); sleep 1'",
                runtime_constraints={"ram": 128 * MIB})
    expect(done, "Complete", 0)
    log = n.out(done, "crunch-run.txt")
    share = int(re.search(r"memory rss usage was (\d+)%", log).group(1))
    assert 30 <= share <= 99, log
    # 3600 an hour, a quarter of the VCPUs: 0.25 a second
    assert 0.25 <= done["cost"] <= 1.0, done["cost"]
    assert "CPUs usable" in n.out(done, "node-info.txt")


@case
def processor_quota(n):
    script = ("for i in 1 2 3; do (while :; do :; done) & done; sleep 1.5")
    done = n.sh(script, runtime_constraints={"vcpus": 1})
    used = re.search(r"Container used ([\d.]+) s",
                     n.out(done, "crunch-run.txt")).group(1)
    assert float(used) < 2.2, used


@case
def fork_bomb(n):
    done = n.sh(
        "(perl -e 'use POSIX; $SIG{$_} = \"IGNORE\" for qw(TERM HUP INT); "
        "sub f { my $p = fork; defined $p && !$p } for (1..60) { if (f) { "
        "setsid; if (f) { while (1) { f; select undef, undef, undef, 0.01 } }"
        " exit } }' &); exec perl -e 'select undef, undef, undef, 0.5; exit 5'"
    )
    expect(done, "Complete", 5)
    assert not marked()


@case
def nothing_outlives_the_main_program(n):
    done = n.sh("(trap '' TERM HUP; while :; do echo x >> /mnt/shared/alive; "
                "sleep 0.02; done) & sleep 0.3; exit 0")
    expect(done, "Complete", 0)
    size = os.path.getsize(n.shared + "/alive")
    time.sleep(0.2)
    assert size > 0 and os.path.getsize(n.shared + "/alive") == size


# --- stopping ------------------------------------------------------------------


@case
def max_run_time(n):
    begun = time.monotonic()
    done = n.sh("echo partial > /out/f; exec sleep 60",
                scheduling_parameters={"max_run_time": 1})
    expect(done, "Cancelled", error="max_run_time", no_retry=True)
    assert 0.9 < time.monotonic() - begun < 8
    assert n.api.output(done["uuid"]) == {"f": b"partial\n"}


@case
def cancelled(n):
    uuid = n.start(["sh", "-c", "echo said; echo partial > /out/f; "
                    "touch /mnt/shared/c; exec sleep 60"])
    n.wait_running(uuid, "c")
    begun = time.monotonic()
    n.call("--kill", "15", uuid, check=False)
    done = n.api.wait(uuid)
    assert time.monotonic() - begun < 5
    expect(done, "Cancelled", error="cancelled")
    assert n.out(done) == "said\n"
    assert n.api.output(uuid) == {"f": b"partial\n"}
    n.wait_free(uuid)
    assert n.call("--kill", "15", uuid).returncode == 0


@case
def cancelled_but_ignores_sigterm(n):
    uuid = n.start(["sh", "-c", "trap '' TERM; touch /mnt/shared/i; "
                    "while :; do sleep 1; done"])
    n.wait_running(uuid, "i")
    begun = time.monotonic()
    assert n.call("--kill", "15", uuid, check=False).returncode == 1
    n.call("--kill", "15", uuid, check=False)  # a repetition changes nothing
    expect(n.api.wait(uuid), "Cancelled", error="cancelled")
    assert 9.5 < time.monotonic() - begun < 15


@case
def harmless_signals(n):
    uuid = n.start(["sh", "-c", "touch /mnt/shared/u; sleep 0.5; exit 4"])
    os.kill(n.info(uuid)["PID"], signal.SIGUSR2)
    n.wait_running(uuid, "u")
    os.kill(n.info(uuid)["PID"], signal.SIGUSR2)
    expect(n.api.wait(uuid), "Complete", 4)


@case
def killed_supervisor(n):
    uuid = n.start(["sh", "-c", "setsid sh -c 'while :; do "
                    "echo x >> /mnt/shared/k; sleep 0.01; done' & sleep 60"])
    n.wait_running(uuid, "k")
    os.kill(n.info(uuid)["PID"], signal.SIGKILL)
    n.wait_free(uuid, 5)
    size = os.path.getsize(n.shared + "/k")
    time.sleep(0.1)
    assert os.path.getsize(n.shared + "/k") == size
    assert n.api.get(uuid)["state"] == "Running"  # nothing was said


@case
def stale_while_the_tree_lives(n):
    uuid = n.start(["sh", "-c", "touch /mnt/shared/s; sleep 60"])
    n.wait_running(uuid, "s")
    pid = n.info(uuid)["PID"]
    init = int(subprocess.check_output(["pgrep", "-P", str(pid)]))
    os.kill(init, signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)
    cluster.wait_until("stale", lambda: n.list().get(uuid) == "stale", 5)
    token = n.api.containers[uuid].token
    p = n.call("--detach", "--stdin-config", uuid, data=n.config(token),
               check=False)
    assert p.returncode == 1 and b"already running" in p.stderr, p
    os.kill(init, signal.SIGCONT)
    n.wait_free(uuid, 5)


# --- host protocol -------------------------------------------------------------


@case
def watch(n):
    first = n.start(["sleep", "0.3"])
    n.wait_running(first)
    w = Watch(n)
    w.find("run", first)
    second = n.start(["sleep", "0.2"])
    assert w.find("start", second)[1]["attempt"] == 1
    w.find("exit", first)
    t, _ = w.find("exit", second)
    done = n.api.containers[second].history[-1][0]
    assert -0.05 < t - done < 0.25, t - done
    names = w.stop()
    assert names[0] == "hello" and names.index("sync") == 2, names
    assert names.count("start") == 1 and names.count("exit") == 2, names


@case
def watch_tells_stale(n):
    w = Watch(n)
    uuid = n.start(["sh", "-c", "touch /mnt/shared/w; sleep 60"])
    n.wait_running(uuid, "w")
    os.kill(n.info(uuid)["PID"], signal.SIGKILL)
    t, _ = w.find("exit", uuid)
    names = [e["event"] for _, e in w.events if e.get("uuid") == uuid]
    assert names in (["start", "stale", "exit"], ["start", "exit"]), names
    w.stop()


@case
def one_at_a_time(n):
    uuid = n.start(["sleep", "1"])
    token = n.api.containers[uuid].token
    p = n.call("--detach", "--stdin-config", uuid, data=n.config(token),
               check=False)
    assert p.returncode == 1 and not p.stdout, p
    expect(n.api.wait(uuid), "Complete", 0)


@case
def bad_start_commands(n):
    uuid = n.uuid()
    for data in (b"", b"{", b"{}", b"[1]"):
        p = n.call("--detach", "--stdin-config", uuid, data=data,
                   check=False)
        assert p.returncode == 1 and p.stderr and not p.stdout, p
    for args in (["--detach", uuid], ["--nonsense"], ["--stdin-config"]):
        assert n.call(*args, check=False).returncode == 2
    assert not n.list()


@case
def foreground(n):
    uuid = n.uuid()
    token = n.api.add(uuid, command=["sh", "-c", "exit 6"])
    p = n.call("-stdin-config", uuid, data=n.config(token))
    assert b"exit code 6" in p.stderr, p.stderr
    expect(n.api.get(uuid), "Complete", 6)


# --- the server ----------------------------------------------------------------


@case
def refused_attempts_start_nothing(n):
    for how in ("revoked", "not locked", "refused"):
        uuid = n.uuid()
        marker = "/mnt/shared/never"
        token = n.api.add(uuid, command=["touch", marker])
        if how == "revoked":
            n.api.revoke(uuid)
        elif how == "not locked":
            n.api.containers[uuid].record["state"] = "Queued"
        else:
            n.api.fault = lambda m, p: 422 if m == "PUT" else None
        before = n.api.get(uuid)["state"]
        n.call("--detach", "--stdin-config", uuid, data=n.config(token))
        n.wait_free(uuid)
        n.api.fault = None
        assert n.api.get(uuid)["state"] == before
        writes = [c for c in n.api.calls(uuid) if c[0] == "PUT"]
        assert writes == ([("PUT", "", 422)] if how == "refused" else [])
    assert not os.path.exists(n.shared + "/never")


@case
def revoked_while_running(n):
    uuid = n.start(["sh", "-c", "trap '' TERM; touch /mnt/shared/r; "
                    "while :; do echo x; sleep 0.1; done"])
    n.wait_running(uuid, "r")
    n.api.revoke(uuid)
    begun = time.monotonic()
    n.wait_free(uuid, 5)
    assert time.monotonic() - begun < 4
    after = [c for c in n.api.calls(uuid) if c[2] == 401]
    assert len(after) == 1, after
    assert n.api.get(uuid)["state"] == "Running"


@case
def server_with_faults(n):
    seen = {}

    def fault(method, path):
        key = (method, path.split("?")[0])
        seen[key] = seen.get(key, 0) + 1
        return [503, "drop", "lose", None][min(seen[key], 4) - 1]

    n.api.fault = fault
    done = n.sh("echo out; echo data > /out/f; exit 2", seconds=60)
    n.api.fault = None
    expect(done, "Complete", 2)
    assert n.out(done) == "out\n"
    assert n.api.output(done["uuid"]) == {"f": b"data\n"}


@case
def server_that_hangs_delays_no_cancel(n):
    uuid = n.start(["sh", "-c", "touch /mnt/shared/h; "
                    "while :; do echo x; sleep 0.1; done"])
    n.wait_running(uuid, "h")
    n.api.fault = lambda m, p: 6.0 if "/log/" in p else None
    time.sleep(1.5)  # it is waiting for an answer now
    begun = time.monotonic()
    n.call("--kill", "15", uuid, check=False)
    cluster.wait_until("payload is dead", lambda: not marked(), 3)
    assert time.monotonic() - begun < 2
    n.api.fault = None
    expect(n.api.wait(uuid), "Cancelled", error="cancelled")


@case
def live_log(n):
    uuid = n.start(["sh", "-c", "echo first; sleep 2.5; echo last"])
    cluster.wait_until("live log",
                       lambda: n.api.log(uuid, "stdout.txt") == "first\n", 2)
    assert n.api.get(uuid)["state"] == "Running"
    done = n.api.wait(uuid)
    assert n.out(done) == "first\nlast\n"


@case
def large_log_and_output(n):
    done = n.sh("head -c 20000000 /dev/zero | tr '\\0' a; "
                "head -c 20000001 /dev/zero > '/out/a b%c'",
                # enforced where /tmp is a tmpfs
                mounts={"/out": {"kind": "tmp", "capacity": 32 * MIB}})
    expect(done, "Complete", 0)
    assert n.out(done) == "a" * 20000000
    assert n.api.output(done["uuid"]) == {"a b%c": b"\0" * 20000001}


@case
def log_that_may_not_grow(n):
    uuid = n.uuid()
    token = n.api.add(uuid, command=["sh", "-c",
                                     "head -c 5000 /dev/zero; exit 0"])
    n.api.containers[uuid].log_max = 4000
    n.call("--detach", "--stdin-config", uuid, data=n.config(token))
    done = n.api.wait(uuid)
    expect(done, "Complete", 0)
    assert "stdout.txt: cut at" in n.out(done, "crunch-run.txt")


@case
def output_is_what_the_payload_may_have(n):
    done = n.sh("ln -s /etc/shadow /out/s; ln -s /etc /out/d; mkfifo /out/p; "
                "mkdir -p '/out/a b'; echo 1 > '/out/a b/%41'; echo 2 > /out/t"
                "; chmod 0 /out/t; echo 3 > /out/x.log; ln /out/t /out/u",
                output_glob=["t", "u", "s", "d/**", "p", "**/%41"])
    expect(done, "Complete", 0)
    assert n.api.output(done["uuid"]) == {
        "a b/%41": b"1\n", "t": b"2\n", "u": b"2\n"}
    assert "s: symbolic link" in n.out(done, "crunch-run.txt")


@case
def output_that_cannot_be_saved(n):
    done = n.sh("d=/out; for i in $(seq 40); do d=$d/d; done; mkdir -p $d; "
                "echo > $d/f")
    expect(done, "Cancelled", error="output cannot be saved", no_retry=True)
    done = n.sh("touch \"$(printf '/out/a\\nb')\"")
    expect(done, "Cancelled", error="output cannot be saved", no_retry=True)


@case
def exclusions(n):
    done = n.sh("cat /out/in.txt; echo new > /out/new", mounts={
        "/out": {"kind": "tmp"},
        "/out/in.txt": {"kind": "text", "content": "in",
                        "exclude_from_output": True},
        "/out/sub/kept.json": {"kind": "json", "content": 1}})
    assert n.out(done) == "in"
    assert n.api.output(done["uuid"]) == {"new": b"new\n",
                                          "sub/kept.json": b"1"}


# --- secrets and network ---------------------------------------------------------


@case
def token_is_nowhere(n):
    uuid = n.start(["sh", "-c", "cat /proc/*/environ /proc/*/cmdline "
                    "/proc/*/maps 2>/dev/null; ls -l /proc/1/fd; "
                    "touch /mnt/shared/t; sleep 1"])
    n.wait_running(uuid, "t")
    pid = n.info(uuid)["PID"]
    for name in ("environ", "cmdline"):
        assert SECRET not in text("/proc/%d/%s" % (pid, name))
    for top, _, files in os.walk(n.scratch):
        for f in files:
            assert SECRET not in text(os.path.join(top, f)), f
    assert SECRET not in text(n.lock_file(uuid))
    probe = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534",
                            "--clear-groups", "cat", "/proc/%d/mem" % pid],
                           stderr=subprocess.PIPE)
    assert probe.returncode, "its memory can be opened"
    done = n.api.wait(uuid)
    for log in ("stdout.txt", "stderr.txt", "crunch-run.txt"):
        assert SECRET not in n.out(done, log), log
    assert uuid in n.out(done)  # the search did look at something


CONNECT = ("use Socket; socket(S, PF_INET, SOCK_STREAM, 0); "
           "exit(connect(S, sockaddr_in(%d, inet_aton(\"127.0.0.1\"))) "
           "? 0 : 9)")


@case
def network(n):
    command = ["perl", "-e", CONNECT % n.api.port]
    expect(n.run(command), "Complete", 9)
    expect(n.run(command, runtime_constraints={"API": True}), "Complete", 0)
    done = n.run(["env"], runtime_constraints={"API": True})
    env = dict(line.split("=", 1) for line in n.out(done).split())
    assert env["CDC_API_URL"] == n.api.url
    assert env["ARVADOS_API_HOST"] == "localhost:1"
    assert env["ARVADOS_API_TOKEN"].startswith("v2/zzzzz-gj3su-"), env
    assert SECRET not in env["ARVADOS_API_TOKEN"]
    # its own loopback device works
    expect(n.run(["perl", "-e", "use Socket; socket(S, PF_INET, SOCK_STREAM, "
                  "0); bind(S, sockaddr_in(0, inet_aton('127.0.0.1'))) && "
                  "listen(S, 1) or exit 9; ($p) = sockaddr_in(getsockname S);"
                  "socket(T, PF_INET, SOCK_STREAM, 0); connect(T, "
                  "sockaddr_in($p, inet_aton('127.0.0.1'))) or exit 8"]),
           "Complete", 0)


# --- strange machines ------------------------------------------------------------


@case
def machine_without_libc(n):
    """The whole job in a root that holds nothing but crunch-run."""
    if not is_static():
        return
    root = os.path.join(n.top, "root")
    for d in ("proc", "sys", "tmp", "dev", "bin", "run/lock", "run/crunch"):
        os.makedirs(os.path.join(root, d))
    shutil.copy(RUNNER, root + "/bin/crunch-run")
    os.mknod(root + "/dev/null", 0o020666, os.makedev(1, 3))
    write(root + "/run/crunch/node.json",
          b'{"v":1,"lock_dir":"/run/lock"}', 0o600)
    mount = subprocess.check_call
    mount(["mount", "--bind", root, root])
    mount(["mount", "-t", "proc", "proc", root + "/proc"])
    uuid = n.uuid()
    token = n.api.add(uuid, command=["crunch-run", "--help"])
    p = subprocess.run([shutil.which("chroot"), root, "/bin/crunch-run",
                        "--stdin-config", uuid], input=n.config(token), timeout=30,
                       env={}, stderr=subprocess.PIPE)
    assert p.returncode == 0, p.stderr
    done = n.api.get(uuid)
    expect(done, "Complete", 0)
    assert n.out(done).startswith("usage: crunch-run"), n.out(done)
    mount(["umount", root + "/proc", root])
    shutil.rmtree(root)


@case
def no_name_services(n):
    if not is_static():
        return
    nm = shlex.split(os.environ.get("NM", "nm"))
    symbols = subprocess.check_output(nm + [RUNNER], text=True)
    assert " T main\n" in symbols, "stripped: nothing to check"
    bad = re.findall(r".*(?:__nss_|_nss_|_r@|initgroups).*", symbols)
    # libc keeps a dlopen of its own, for iconv; nothing of ours asks for it
    for lib in ("runner/librunner.a", "isolate/libisolate.a",
                "base/libbase.a"):
        wanted = subprocess.check_output(
            nm + ["-u", cluster.build("core/" + lib)], text=True)
        bad += re.findall(r"U ((?:getpw|getgr|getserv|gethostby|getaddrinfo|"
                          r"dlopen|iconv|initgroups)\w*)", wanted)
    assert not bad, bad


@case
def broken_machine(n):
    groups = dict(n.groups.dirs)
    n.write_json(cgroup={k: v + "/absent" for k, v in groups.items()})
    uuid = n.start(["touch", "/mnt/shared/b"])
    n.wait_free(uuid)
    assert n.api.get(uuid)["state"] == "Locked"
    assert "broken" in n.list()
    assert not os.path.exists(n.shared + "/b")
    os.unlink(n.lock + "/crunch-run-broken")
    n.write_json()


@case
def many_at_once(n):
    begun = time.monotonic()
    uuids = [n.start(["sh", "-c", "echo %d; sleep 0.2" % i])
             for i in range(20)]
    for i, uuid in enumerate(uuids):
        done = n.api.wait(uuid)
        expect(done, "Complete", 0)
        assert n.out(done) == "%d\n" % i
    print("    20 containers in %.2f s" % (time.monotonic() - begun))


@case
def overhead(n):
    times = []
    for _ in range(15):
        uuid = n.uuid()
        token = n.api.add(uuid, command=["true"])
        data = n.config(token)
        begun = time.monotonic()
        n.call("--detach", "--stdin-config", uuid, data=data)
        time.sleep(0.05)
        n.api.wait(uuid)
        c = n.api.containers[uuid]
        times.append((c.history[0][0] - begun, c.history[1][0] - begun))
        n.wait_free(uuid)
    times.sort()
    print("    start command to Running %.1f ms, to Complete %.1f ms "
          "(median of %d)" % (times[7][0] * 1e3, times[7][1] * 1e3,
                              len(times)))


# --- a machine where namespaces are refused -------------------------------------


def plain(f):
    f.plain = True
    return case(f)


@plain
def plain_run(n):
    done = n.sh("id -u; pwd; echo said > file; echo err >&2; exit 3",
                cwd="/out")
    expect(done, "Complete", 3)
    uid, cwd = n.out(done).split()
    assert uid == str(PLAIN_UID) and cwd.startswith(n.scratch), n.out(done)
    assert n.out(done, "stderr.txt") == "err\n"
    assert n.api.output(done["uuid"]) == {"file": b"said\n"}
    log = n.out(done, "crunch-run.txt")
    assert "isolation: plain" in log and "/out is not at its path" in log, log
    expect(n.run(["no-such-command"]), "Complete", 127, error="not found")


@plain
def plain_mounts(n):
    place = "/tmp/cdc-plain-%d" % os.getpid()
    done = n.sh("cat %s.txt; echo x > %s/f" % (place, place),
                output_path=place, mounts={
                    place: {"kind": "tmp"},
                    place + ".txt": {"kind": "text", "content": "t"}})
    expect(done, "Complete", 0)
    assert n.out(done) == "t"
    assert n.api.output(done["uuid"]) == {"f": b"x\n"}
    assert not os.path.lexists(place) and not os.path.lexists(place + ".txt")
    done = n.sh("true", mounts={"/out": {"kind": "tmp"}, "/etc/passwd": {
        "kind": "text", "content": "mine"}})
    expect(done, "Cancelled", error="/etc/passwd", no_retry=True)
    done = n.sh("true", container_image="other")
    expect(done, "Cancelled", error="container_image", no_retry=True)


@plain
def plain_nothing_outlives(n):
    done = n.sh("(setsid sh -c 'trap \"\" TERM HUP; while :; do "
                "echo x >> %s/p; sleep 0.02; done' &); sleep 0.3; exit 0"
                % n.shared)
    expect(done, "Complete", 0)
    size = os.path.getsize(n.shared + "/p")
    time.sleep(0.1)
    assert size > 0 and os.path.getsize(n.shared + "/p") == size


@plain
def plain_cancelled_and_killed(n):
    loop = "touch %s/%s; while :; do sleep 0.1; done"
    uuid = n.start(["sh", "-c", loop % (n.shared, "c")])
    n.wait_running(uuid, "c")
    n.call("--kill", "15", uuid, check=False)
    expect(n.api.wait(uuid), "Cancelled", error="cancelled")
    uuid = n.start(["sh", "-c", "setsid sh -c '%s' & sleep 60" % (
        loop % (n.shared, "k"))])
    n.wait_running(uuid, "k")
    pid = n.info(uuid)["PID"]
    for name in ("environ", "mem"):
        probe = subprocess.run(["cat", "/proc/%d/%s" % (pid, name)],
                               user=PLAIN_UID, group=PLAIN_UID,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        assert probe.returncode and not probe.stdout, name
    os.kill(pid, signal.SIGKILL)
    n.wait_free(uuid, 5)
    assert not marked()
    done = n.sh("sleep 60", scheduling_parameters={"max_run_time": 1})
    expect(done, "Cancelled", error="max_run_time", no_retry=True)


# --- all of it -------------------------------------------------------------------


def run_case(f, n):
    for name in os.listdir(n.shared):
        os.unlink(os.path.join(n.shared, name))
    n.api.complaints.clear()
    begun = time.monotonic()
    try:
        f(n)
        n.check()
    except Exception as e:  # noqa: BLE001
        n.api.fault = None
        for left in n.list():
            n.call("--kill", "9", left, check=False)
        print("not ok", f.__name__, "-", repr(e))
        uuid = "zzzzz-dz642-%015d" % n.count
        if uuid in n.api.containers:
            print(n.api.log(uuid, "crunch-run.txt"), n.api.calls(uuid))
            print(n.api.log(uuid, "stdout.txt")[:2000])
            print(n.api.log(uuid, "stderr.txt")[:2000])
        return False
    print("ok %s (%.2f s)" % (f.__name__, time.monotonic() - begun),
          flush=True)
    return True


def main():
    cluster.isolate()
    wanted = sys.argv[1:]
    top = tempfile.mkdtemp(prefix="cdc-runner-")
    os.chmod(top, 0o755)
    groups = Groups()
    nodes = [Node(os.path.join(top, name), groups, plain=name == "plain")
             for name in ("full", "plain")]
    failed = []
    try:
        for f in CASES:
            if not wanted or f.__name__ in wanted:
                if not run_case(f, nodes[hasattr(f, "plain")]):
                    failed.append(f.__name__)
    finally:
        for n in nodes:
            n.api.close()
        cluster.wait_until("groups are empty",
                           lambda: not groups.members() or
                           [os.rmdir(m) for m in groups.members()], 5)
        groups.remove()
        shutil.rmtree(top, ignore_errors=True)
    print("%d cases, %d failed %s" % (len(wanted or CASES), len(failed),
                                      " ".join(failed)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
