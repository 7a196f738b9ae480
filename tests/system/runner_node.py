# SPDX-License-Identifier: Apache-2.0
"""A machine for tests of crunch-run: everything that its maker would provide,
in private folders and groups, with an API server of our own (apid.py)."""
import json
import os
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../fakes")]
import cluster  # noqa: E402
from apid import Api  # noqa: E402

RUNNER = cluster.build("core/runner/crunch-run")
SECRET = "secretsecretsecretsecret"  # part of every attempt token
MIB = 1 << 20


def text(path):
    with open(path, errors="replace") as f:
        return f.read()


def write(path, content, mode=0o644):
    with open(path, "wb") as f:
        f.write(content)
    os.chmod(path, mode)


class Groups:
    """Control groups as the maker of a machine would hand them on."""

    def __init__(self):
        self.name = "cdc-test-runner-%d-%d" % (os.getpid(),
                                               time.time_ns() % 10**9)
        self.dirs = {}
        top = "/sys/fs/cgroup"
        if os.path.exists(top + "/cgroup.controllers"):
            path = os.path.join(top, self.name)
            os.mkdir(path)
            with open(path + "/cgroup.subtree_control", "w") as f:
                f.write("+memory +cpu +pids")
            self.dirs["unified"] = path
            return
        for tree in ("memory", "cpu", "pids"):
            path = os.path.join(top, tree, self.name)
            if os.path.isdir(os.path.dirname(path)):
                os.mkdir(path)
                self.dirs[tree] = path

    def members(self):
        return [os.path.join(d, e) for d in self.dirs.values()
                for e in os.listdir(d) if os.path.isdir(os.path.join(d, e))]

    def remove(self):
        for path in self.members() + list(self.dirs.values()):
            os.rmdir(path)


PLAIN_UID = 64243


class Node:
    """plain: without namespaces, as an unprivileged user."""

    def __init__(self, top, groups, plain=False):
        self.top = top
        self.groups = groups
        self.plain = plain
        self.runner = RUNNER
        self.api = Api()
        self.count = 0
        for name in ("lock", "scratch", "images", "shared"):
            os.makedirs(os.path.join(top, name), exist_ok=True)
        self.lock, self.scratch, self.images, self.shared = (
            os.path.join(top, n) for n in ("lock", "scratch", "images",
                                           "shared"))
        os.chmod(self.shared, 0o1777)
        if plain:  # a user may not be able to enter the build folder
            self.runner = shutil.copy(RUNNER, top)
            for path in (self.lock, self.scratch):
                os.chown(path, PLAIN_UID, PLAIN_UID)
        self.json = os.path.join(top, "node.json")
        self.write_json()
        self.env = {"PATH": "/usr/bin:/bin", "CDC_NODE_JSON": self.json,
                    "LEAK": "not for payloads",
                    # the leak checker must trace, which the runner forbids
                    "ASAN_OPTIONS": "detect_leaks=0"}

    def write_json(self, **more):
        node = {"v": 1, "instance": "test", "lock_dir": self.lock,
                "scratch_dir": self.scratch, "image_dir": self.images,
                "plain": self.plain, "pids_max": 300,
                "cgroup": {} if self.plain else self.groups.dirs,
                "shared_dirs": [{"path": "/mnt/shared", "source": self.shared,
                                 "writable": True}]}
        node.update(more)
        write(self.json, json.dumps(node).encode(), 0o600)
        if self.plain:
            os.chown(self.json, PLAIN_UID, PLAIN_UID)

    def uuid(self):
        self.count += 1
        return "zzzzz-dz642-%015d" % self.count

    def config(self, token, attempt=1):
        return json.dumps({
            "Env": {"ARVADOS_API_HOST": "localhost:1",
                    "ARVADOS_API_TOKEN": token,
                    "InstanceType": json.dumps({"VCPUs": 4, "RAM": 4 << 30,
                                                "Price": 3600.0})},
            "CDC": {"APIURL": self.api.url, "CABundle": "",
                    "Attempt": attempt}}).encode()

    def call(self, *args, data=b"", check=True, **more):
        if self.plain:
            more.update(user=PLAIN_UID, group=PLAIN_UID, extra_groups=[])
        p = subprocess.run([self.runner] + list(args), input=data,
                           env=self.env, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=60, **more)
        if check and p.returncode:
            raise AssertionError("%r: %d %s" % (args, p.returncode,
                                                p.stderr.decode()))
        return p

    def start(self, command, **record):
        """Start a container in the background; its uuid."""
        uuid = self.uuid()
        token = self.api.add(uuid, command=command, **record)
        p = self.call("--detach", "--stdin-config", uuid,
                      data=self.config(token))
        line = json.loads(p.stdout)
        assert line["UUID"] == uuid and line["Attempt"] == 1, line
        assert line["PID"] > 1 and line["StartTime"] > 0, line
        return uuid

    def run(self, command, seconds=40, **record):
        """The container at its end, with `uuid`, its lock free."""
        uuid = self.start(command, **record)
        done = self.api.wait(uuid, seconds=seconds)
        self.wait_free(uuid)
        return done

    def sh(self, script, **record):
        return self.run(["sh", "-c", script], **record)

    def out(self, done, name="stdout.txt"):
        return self.api.log(done["uuid"], name)

    def info(self, uuid):
        return json.loads(text(self.lock_file(uuid)))

    def lock_file(self, uuid):
        return os.path.join(self.lock, "crunch-run-%s.lock" % uuid)

    def wait_free(self, uuid, seconds=30):
        cluster.wait_until("lock of %s is free" % uuid,
                           lambda: uuid not in self.list(), seconds, 0.01)

    def list(self):
        out = self.call("--list").stdout.decode()
        return dict((line.split() + [""])[:2] for line in out.splitlines())

    def wait_running(self, uuid, marker=None):
        self.api.wait(uuid, ("Running",))
        if marker:
            path = os.path.join(self.shared, marker)
            cluster.wait_until(marker, lambda: os.path.exists(path), 10, 0.01)

    def check(self):
        assert not self.api.complaints, self.api.complaints
        cluster.wait_until("locks are free", lambda: not self.list(), 20)
        left = [f for f in os.listdir(self.lock)
                if f != "crunch-run-all.lock"]
        left += os.listdir(self.scratch)
        left += self.groups.members()
        with open("/proc/self/mounts") as f:
            left += [m for m in f if "crunch-run." in m]
        left += marked()
        assert not left, "left behind: %r" % left


def marked():
    """Processes of containers."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if b"CDC_CONTAINER_UUID=zzzzz-dz642-" in f.read():
                    found.append("pid " + pid)
        except OSError:
            pass
    return found


def expect(done, state, code=None, error=None, warning=None, no_retry=None):
    status = done["runtime_status"]
    assert done["state"] == state, done
    assert done["exit_code"] == code, done
    for key, wanted in (("error", error), ("warning", warning)):
        if wanted is None:
            assert key not in status, done
        else:
            assert wanted in status.get(key, ""), done
    assert bool(status.get("noRetry")) == bool(no_retry), done


class Watch:
    def __init__(self, n):
        self.p = subprocess.Popen([RUNNER, "--watch"], env=n.env,
                                  stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        self.events = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.p.stdout:
            self.events.append((time.monotonic(), json.loads(line)))

    def find(self, event, uuid, seconds=10):
        def found():
            return [(t, e) for t, e in self.events
                    if e["event"] == event and e.get("uuid") == uuid]
        return cluster.wait_until("%s %s" % (event, uuid), found, seconds,
                                  0.001)[0]

    def stop(self):
        self.p.stdin.close()
        assert self.p.wait(5) == 0
        self.thread.join(5)
        return [e["event"] for _, e in self.events]
